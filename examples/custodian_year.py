"""A custodian's year: quarterly means from one register, a ledger that adds up, and a fifth release that is refused."""

from __future__ import annotations

import tempfile
from pathlib import Path

import dpmanifolds as dpm
from examples._shared import tell_usefulness


def main(folder: str | Path = "out", n: int = 2000) -> None:
    """Four releases fit into ε = 1, the fifth does not."""
    space = dpm.SPD(3, "log-euclidean")
    ball = dpm.Ball.from_eigenvalues(space, 0.1, 10.0)
    records = space.random_point(n, rng=0)
    with tempfile.TemporaryDirectory() as private:
        ledger = dpm.Ledger(Path(private) / "privacy.ledger")
        ledger.open_dataset("register", dpm.PureDP(1.0))
        for quarter in range(1, 6):
            try:
                release = dpm.private_mean(records, ball, dpm.PureDP(0.25), ledger=ledger, dataset="register")
            except dpm.BudgetExceededError as refusal:
                print(f"Quarter {quarter}: refused before any noise was drawn. {refusal}")
            else:
                print(f"Quarter {quarter}: spent {release.spent!r}")
    tell_usefulness(release, spread=1.0)


if __name__ == "__main__":
    main()
