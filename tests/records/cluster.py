"""A cluster of two processes on this machine, what it says, and the death of one of its workers."""

from __future__ import annotations

import contextlib
import os
import signal
import time

__all__ = ["kill_a_worker", "local_client", "said"]


@contextlib.contextmanager
def local_client():
    """A client of two processes of one thread each."""
    import distributed

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def kill_a_worker(client):
    """SIGKILL to one worker process; its number."""
    victim = sorted(client.run(os.getpid).values())[0]
    os.kill(victim, signal.SIGKILL)
    return victim


def said(client):
    """Everything that workers and the scheduler logged, and the names of all tasks they know or knew."""
    names = client.run_on_scheduler(
        lambda dask_scheduler: (
            [str(key) for key in dask_scheduler.tasks] + [str(entry) for entry in dask_scheduler.transition_log]
        )
    )
    # a worker that is just being replaced cannot be asked
    for _ in range(20):
        try:
            return str(client.get_worker_logs()) + str(client.get_scheduler_logs()) + str(names)
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the workers did not answer")
