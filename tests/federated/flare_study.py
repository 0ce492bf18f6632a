"""A study through FLARE's simulator, compared with the same study in one process.

    python -m tests.federated.flare_study FOLDER 8 [gone]

The last so many sites refuse the round, where one is tolerated.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from nvflare.job_config.api import FedJob

from dpmanifolds import SPD, Ball, GaussianDP, Release, Site, SitePolicy, Study, run_study
from dpmanifolds.federated.flare_engine import SiteExecutor, StudyController


def site_of(name, sites, policy=None):
    """The simulator calls its clients site-1, site-2, …"""
    number = int(name.split("-")[1])
    part = np.split(SPD(3).random_point(10 * sites, rng=0), sites)[number - 1]
    return Site(name, part, policy or SitePolicy(), rng=number)


class SeededExecutor(SiteExecutor):
    def __init__(self, sites: int, gone: int):
        super().__init__()
        self.sites, self.gone = sites, gone

    def find_site(self, name):
        refuses = int(name.split("-")[1]) > self.sites - self.gone
        return site_of(name, self.sites, SitePolicy(statistics=()) if refuses else None)


def main(folder, sites, gone=0):
    names = [f"site-{number}" for number in range(1, sites + 1)]
    ball = Ball(SPD(3, "log-euclidean"), np.eye(3), 2.0)
    study = Study("mean", ball, GaussianDP(1.0), n=10 * sites, sites=names, transport="plain", tolerated=min(gone, 1))
    (folder / "study.json").write_text(study.to_json())
    job = FedJob(name="study", min_clients=sites)
    job.to_server(StudyController(str(folder / "study.json"), str(folder / "release.json"), timeout=60))
    job.to_clients(SeededExecutor(sites, gone))
    start = time.perf_counter()
    job.simulator_run(str(folder / "work"), n_clients=sites, threads=sites)
    seconds = time.perf_counter() - start
    if not (folder / "release.json").exists():
        print("no release")
        return
    made = Release.from_json((folder / "release.json").read_text())
    expected = run_study(study, [site_of(name, sites) for name in names[: sites - gone]])
    assert np.array_equal(made.coordinates, expected.coordinates)
    print(f"exact: {sites - gone} of {sites} sites, {seconds:.1f} s with the start of FLARE")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:]))
