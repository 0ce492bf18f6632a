"""Three ways for several sites, compared before any record is touched: one trusted place, noise in shares, each alone.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.SPD(3, "log-euclidean"), np.eye(3), radius=2.0)
>>> ways = dpm.plan_sites(ball, [100] * 16, dpm.GaussianDP(1.0), tolerated=4)
>>> print(ways)
one trusted place          0.005875
secure sum, t = 0          0.005875
secure sum, t = 4          0.006784
answers in plain           0.0235
each site alone, combined  0.0235
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpmanifolds._validate import positive_integer
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget
from dpmanifolds.sums import calibrate, mean_facts


@dataclass(frozen=True)
class SitesPlan:
    """Expected errors of a mean by one sum: the length of the Gaussian noise, on average.

    >>> plan = SitesPlan(sites=4, tolerated=1, central=1.0, alone=2.0)
    >>> plan.plain, round(plan.secure, 3)
    (2.0, 1.155)
    """

    sites: int
    tolerated: int
    central: float
    """One place that all trust has all records."""
    alone: float
    """Each site makes a release of its own records, and `combine` weighs them by their precision."""

    @property
    def secure(self) -> float:
        """Shares of noise in a secure sum: √(k/(k − t)) times the noise of one place."""
        return self.central * math.sqrt(self.sites / (self.sites - self.tolerated))

    @property
    def plain(self) -> float:
        """The coordinator sees each answer: √k times the noise of one place."""
        return self.central * math.sqrt(self.sites)

    def __str__(self) -> str:
        rows = [("one trusted place", self.central), ("secure sum, t = 0", self.central)]
        if self.tolerated:
            rows.append((f"secure sum, t = {self.tolerated}", self.secure))
        rows += [("answers in plain", self.plain), ("each site alone, combined", self.alone)]
        return "\n".join(f"{name:<25}  {error:.4g}" for name, error in rows)


def plan_sites(domain: Domain, counts: Sequence[int], budget: Budget, *, tolerated: int = 0) -> SitesPlan:
    """What the mean will err by in each of the ways, for sites with these public numbers of records.

    Sites alone have noise in proportion to 1/n_i each; weighted by precision their combination has that of
    √Σn_i² records in one place, which is least useful where many small sites take part. A secure sum does not care how
    records are divided.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(6), np.zeros(6), radius=1.0)
    >>> cuts = [250] * 4, [970, 10, 10, 10]
    >>> equal, one_large = (dpm.plan_sites(ball, counts, dpm.GaussianDP(1.0)) for counts in cuts)
    >>> round(equal.alone / equal.secure, 2), round(one_large.alone / one_large.secure, 2)
    (2.0, 1.03)
    """
    sizes = [positive_integer("counts", count) for count in counts]
    if not sizes:
        raise ArgumentError("must have the number of records of each site.", argument="counts")
    if positive_integer("tolerated", tolerated, at_least=0) >= len(sizes):
        raise ArgumentError(f"must be below the number of sites, {len(sizes)}.", argument="tolerated")

    def error(count: int) -> float:
        return calibrate("wrapped-gaussian", mean_facts(domain, count), budget, "rounded").expected_error.mean

    alone = 1 / math.sqrt(sum(error(count) ** -2 for count in sizes))
    return SitesPlan(len(sizes), tolerated, error(sum(sizes)), alone)
