"""What the releases of this process have spent, by data set: a count that needs no ledger.

>>> from dpmanifolds.privacy import Guarantee, spent
>>> from dpmanifolds.privacy.budget import note_spending
>>> _ = spent(reset=True)
>>> for _ in range(5):
...     note_spending("survey", Guarantee.pure(0.2))
>>> [(each.dataset, each.releases, round(each.guarantee.as_pure().epsilon, 6)) for each in spent()]
[('survey', 5, 1.0)]

It is a help against spending unawares, as tools that fit a model several times do, and no account: it ends with the
process, and knows nothing of other processes. Promises and names of data sets go in, never records.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpmanifolds.privacy.budget import NOTED, NOTING
from dpmanifolds.privacy.guarantee import Guarantee, compose


@dataclass(frozen=True)
class Spending:
    """What was spent on one data set, by releases whose promises add up.

    >>> import dpmanifolds as dpm
    >>> dpm.Spending("survey", 2, dpm.Guarantee.pure(0.5))
    Spending(survey: 2 releases, together ε = 0.5, replace-one: neighbours differ in one record, replaced by any other;
    how many there are is public)
    """

    dataset: str | None
    """The name of the ledger's account; None for releases without a ledger, whatever records they were of."""
    releases: int
    guarantee: Guarantee
    """Of all of them together, if they were of the same records."""

    def __repr__(self) -> str:
        promise = self.guarantee
        told = promise.as_pure() if promise.total_pure() is not None else promise.as_approx(1e-6)
        return (
            f"Spending({self.dataset or 'no ledger'}: {self.releases} releases, together {told.in_words()}, "
            f"{promise.neighbours})"
        )


def spent(*, reset: bool = False) -> list[Spending]:
    """What releases of this process have spent since it began, or since `reset`: one entry for each data set.

    Releases without a ledger are counted as if they were of the same records. Those that differ in what neighbours are
    (record, person, …) do not add up and have entries of their own. Releases with a seed are for tests, and are not
    counted; neither are rounds of `federated` sites, whose ledgers count.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> _ = dpm.spent(reset=True)
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> for _ in range(3):
    ...     model = dpm.PrivateFrechetMean(ball, dpm.PureDP(0.5)).fit(dpm.SPD(2).random_point(200, rng=0))
    >>> [(each.releases, each.guarantee.fits(dpm.PureDP(1.5))) for each in dpm.spent()]
    [(3, True)]
    """
    with NOTING:
        found = {key: counts.copy() for key, counts in NOTED.items()}
        if reset:
            NOTED.clear()
    return [
        Spending(key[0], counts.total(), compose(*(promise.k_fold(count) for promise, count in counts.items())))
        for key, counts in found.items()
    ]
