"""A study through Flower's simulation, compared with the same study in one process.

    python -m tests.federated.flower_study 64 [every]
    python -m tests.federated.flower_study 8 secagg

Sites whose number is a multiple of the second argument refuse the round: they are gone. With "secagg" answers are added
up by SecAgg+.
"""

from __future__ import annotations

import os
import sys
import time

os.environ.update(
    FLWR_TELEMETRY_ENABLED="0", RAY_USAGE_STATS_ENABLED="0", FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION="1"
)

import numpy as np

from dpmanifolds import SPD, Ball, GaussianDP, RoundRefusedError, Site, SitePolicy, Study, run_study
from dpmanifolds.federated.flower_engine import client_app, server_app
from dpmanifolds.federated.secagg_engine import SECAGG_MODULUS, secagg_client_app, secagg_server_app


def main(sites, every=0, secret=False):
    from flwr.simulation import run_simulation

    names = [f"site {number}" for number in range(sites)]
    ball = Ball(SPD(3, "log-euclidean"), np.eye(3), 2.0)
    gone = [number for number in range(sites) if every and number % every == 0]
    study = Study(
        "mean",
        ball,
        GaussianDP(1.0),
        n=10 * sites,
        sites=names,
        tolerated=1 if secret else min(len(gone), max(1, sites // 2) - 1),
        **({"modulus": SECAGG_MODULUS} if secret else {"transport": "plain"}),
    )
    server, client = (secagg_server_app, secagg_client_app) if secret else (server_app, client_app)
    parts = np.split(SPD(3).random_point(10 * sites, rng=0), sites)

    def find_site(context):
        number = int(context.node_config["partition-id"])
        refuses = SitePolicy(statistics=()) if number in gone else SitePolicy()
        return Site(names[number], parts[number], refuses, rng=number)

    made = []
    start = time.perf_counter()
    try:
        run_simulation(
            server(study, made.append, timeout=120.0),
            client(find_site),
            num_supernodes=sites,
            backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
        )
    except RoundRefusedError as refused:
        print(f"refused: {refused}")
        return
    seconds = time.perf_counter() - start
    here = [Site(name, parts[number], rng=number) for number, name in enumerate(names) if number not in gone]
    expected = run_study(study, here)
    assert np.array_equal(made[0].coordinates, expected.coordinates)
    assert made[0].n == expected.n
    print(f"exact: {len(here)} of {sites} sites, {seconds:.1f} s with the start of Flower")


if __name__ == "__main__":
    main(int(sys.argv[1]), secret=True) if "secagg" in sys.argv else main(*map(int, sys.argv[1:]))
