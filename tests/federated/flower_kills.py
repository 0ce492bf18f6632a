"""A study through Flower's simulation in which clients die, in a chosen phase; every site has a ledger.

    python -m tests.federated.flower_kills FOLDER plain|secagg TOLERATED PHASE before|after NUMBER …

PHASE is "query" (the only one of plain answers), or one of SecAgg+: "setup", "share_keys", "collect_masked_vectors",
"unmask". The clients of these numbers die when a message of that phase comes, or once they have worked on it, before
their reply leaves. A worker process of the simulation is shared by clients: a client dies by an error that its handler
does not catch, and stays dead.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.update(
    FLWR_TELEMETRY_ENABLED="0", RAY_USAGE_STATS_ENABLED="0", FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION="1"
)

import numpy as np

from dpmanifolds import Ball, Euclidean, GaussianDP, Ledger, RoundRefusedError, Site, Study
from dpmanifolds.federated.flower_engine import client_app, server_app
from dpmanifolds.federated.secagg_engine import SECAGG_MODULUS, secagg_client_app, secagg_server_app

SITES = 5


def name_of(number):
    return f"site {number}"


class Mortal:
    """A client app, some of whose clients die."""

    def __init__(self, app, folder, phase, moment, doomed):
        self.app, self.folder, self.phase, self.moment, self.doomed = app, folder, phase, moment, doomed

    def __call__(self, message, context):
        number = int(context.node_config["partition-id"])
        grave = self.folder / f"{number}.dead"
        configs = message.content.config_records
        phase = str(configs["secaggplus_configs"]["stage"]) if "secaggplus_configs" in configs else "query"
        dies = number in self.doomed and phase == self.phase
        if grave.exists() or (dies and self.moment == "before"):
            grave.touch()
            raise RuntimeError("dead")
        reply = self.app(message, context)
        if dies:
            grave.touch()
            raise RuntimeError("dead")
        return reply


def main(folder, kind, tolerated, phase, moment, *doomed):
    from flwr.simulation import run_simulation

    secret = kind == "secagg"
    ball = Ball(Euclidean(2), np.zeros(2), 1.0)
    more = {"modulus": SECAGG_MODULUS} if secret else {"transport": "plain"}
    names = [name_of(number) for number in range(SITES)]
    study = Study("mean", ball, GaussianDP(1.0), n=20 * SITES, sites=names, tolerated=tolerated, **more)
    for name in names:
        Ledger(folder / f"{name}.ledger").open_dataset("patients", GaussianDP(5.0))

    def find_site(context):
        name = name_of(context.node_config["partition-id"])
        return Site(name, np.zeros((20, 2)), ledger=Ledger(folder / f"{name}.ledger"), dataset="patients")

    made = []
    server, client = (secagg_server_app, secagg_client_app) if secret else (server_app, client_app)
    try:
        run_simulation(
            server(study, made.append, timeout=300.0),
            Mortal(client(find_site), folder, phase, moment, doomed),
            num_supernodes=SITES,
            backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
        )
    except RoundRefusedError as refused:
        print(f"refused: {refused}")
    spent = [len(list(Ledger(folder / f"{name}.ledger").entries())) - 1 for name in names]
    told = {"answered": list(made[0].sites.answered[0]), "mu": made[0].sites.coalition} if made else None
    print("OUTCOME", json.dumps({"release": told, "spent": spent}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), *sys.argv[4:6], *map(int, sys.argv[6:]))
