"""A custodian's year: quarterly means from one register, a ledger that adds up, and a fifth release that is refused.

The register may spend ε = 1 in all. Each quarter costs 0.25; the ledger enters it before noise is drawn, and refuses
what does not fit.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import dpmanifolds as dpm
from examples._shared import save_figure, tell_usefulness


def main(folder: str | Path = "out", n: int = 2000) -> None:
    """Four releases fit into ε = 1, the fifth does not."""
    space = dpm.SPD(3, "log-euclidean")
    ball = dpm.Ball.from_eigenvalues(space, 0.1, 10.0)
    records = space.random_point(n, rng=0)
    with tempfile.TemporaryDirectory() as private:
        ledger = dpm.Ledger(Path(private) / "privacy.ledger")
        ledger.open_dataset("register", dpm.PureDP(1.0))
        spent = []
        for quarter in range(1, 6):
            try:
                release = dpm.private_mean(records, ball, dpm.PureDP(0.25), ledger=ledger, dataset="register")
            except dpm.BudgetExceededError as refusal:
                print(f"Quarter {quarter}: refused before any noise was drawn. {refusal}")
            else:
                print(f"Quarter {quarter}: spent {release.spent!r}")
            so_far = ledger.spent("register")
            assert isinstance(so_far, dpm.PureDP)
            spent.append(so_far.epsilon)
    tell_usefulness(release, spread=1.0)

    def paint(figure: Any) -> None:
        axes = figure.add_subplot()
        names = [f"quarter {number}" for number in range(1, 5)] + ["fifth:\nrefused"]
        axes.bar(names, spent, color=["C0"] * 4 + ["#BBBBBB"], width=0.6)
        axes.axhline(1.0, color="black", linestyle="--")
        axes.annotate("what may be spent in all", (-0.3, 1.02))
        axes.set(ylabel="ε spent so far", ylim=(0, 1.15))

    save_figure(Path(folder) / "ledger.png", (6.0, 3.4), paint)


if __name__ == "__main__":
    main()
