"""A study through FLARE's simulator in which clients die, in a chosen phase; every site has a ledger.

    python -m tests.federated.flare_kills FOLDER TOLERATED asked|spent NUMBER …

The clients of these numbers die when they are asked, or once their answer is drawn, before it leaves: by an error that
their executor does not catch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from nvflare.job_config.api import FedJob

from dpmanifolds import Ball, Euclidean, GaussianDP, Ledger, Release, Site, Study
from dpmanifolds.federated.flare_engine import SiteExecutor, StudyController

SITES = 4


class MortalSite(Site):
    """It dies."""

    phase = "asked"

    def answer(self, asked):
        if self.phase == "spent":
            super().answer(asked)
        raise RuntimeError("dead")


class MortalExecutor(SiteExecutor):
    def __init__(self, folder: str, phase: str, doomed: list):
        super().__init__()
        self.folder, self.phase, self.doomed = folder, phase, doomed

    def find_site(self, name):
        mortal = int(name.split("-")[1]) in self.doomed
        ledger = Ledger(Path(self.folder) / f"{name}.ledger")
        site = (MortalSite if mortal else Site)(name, np.zeros((20, 2)), ledger=ledger, dataset="patients")
        site.phase = self.phase
        return site


def main(folder, tolerated, phase, *doomed):
    names = [f"site-{number}" for number in range(1, SITES + 1)]
    for name in names:
        Ledger(folder / f"{name}.ledger").open_dataset("patients", GaussianDP(5.0))
    ball = Ball(Euclidean(2), np.zeros(2), 1.0)
    study = Study("mean", ball, GaussianDP(1.0), n=20 * SITES, sites=names, transport="plain", tolerated=tolerated)
    (folder / "study.json").write_text(study.to_json())
    job = FedJob(name="study", min_clients=SITES)
    job.to_server(StudyController(str(folder / "study.json"), str(folder / "release.json"), timeout=60))
    job.to_clients(MortalExecutor(str(folder), phase, list(doomed)))
    job.simulator_run(str(folder / "work"), n_clients=SITES, threads=SITES)
    told = None
    if (folder / "release.json").exists():
        release = Release.from_json((folder / "release.json").read_text())
        told = {"answered": list(release.sites.answered[0]), "mu": release.sites.coalition}
    spent = [len(list(Ledger(folder / f"{name}.ledger").entries())) - 1 for name in names]
    print("OUTCOME", json.dumps({"release": told, "spent": spent}))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:]))
