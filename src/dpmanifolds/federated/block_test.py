"""Do two groups differ, at several sites? A test on noisy sums of random blocks, whose level is exact.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=3.0)
>>> X, y = np.random.default_rng(0).normal(size=(3000, 2)), np.arange(3000) % 2
>>> X[y == 1] += [0.5, 0.0]
>>> options = {"n": [1500, 1500], "classes": [0, 1], "sites": ["a", "b", "c"]}
>>> study = dpm.Study("two-sample test", ball, dpm.GaussianDP(1.0), **options)
>>> parts = zip("abc", np.split(X, 3), np.split(y, 3))
>>> decision = dpm.run_study(study, [dpm.Site(name, part, labels=own, rng=7) for name, part, own in parts])
>>> decision.rejected, round(decision.pvalue, 3), decision.blocks
(True, 0.008, (5, 5))

Each site cuts the records of either group into blocks at random, all of one size, so that a record is in one sum. If at
every site both groups come from one law, the noisy sums of all blocks are exchangeable, and the rank of the distance of
the groups among all ways to call so many blocks the first group is a p-value, noise included (docs/proofs/federated.md,
section 5). Value of that test, p-value and difference are functions of the noisy sums: they cost nothing more.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._validate import number_between, positive_integer
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.releases.sites import SitesPart
from dpmanifolds.releases.written import WrittenAnswer, domain_from_json, domain_to_json, read_json

_SCHEMA = 1
_MOST_WAYS = 50_000
_AT_ONCE = 1 << 22


def check_blocks(blocks: Any, level: Any) -> tuple[int, int]:
    """How many blocks either group has, or an error where no p-value can reach the level."""
    given = (blocks, blocks) if isinstance(blocks, int) else tuple(blocks)
    if len(given) != 2:
        raise ArgumentError("must be one number, or one for each group.", argument="blocks")
    first, second = (positive_integer("blocks", each) for each in given)
    ways = math.comb(first + second, first)
    least = (2 if first == second else 1) / ways
    if not least <= number_between("level", level, 0.0, 1.0):
        raise ArgumentError(
            f"are too few: no p-value is below {least:.3g}, and the level is {level:g}.", argument="blocks"
        )
    if ways > _MOST_WAYS:
        raise ArgumentError(
            f"are too many: at most {_MOST_WAYS} ways to divide them are gone through.", argument="blocks"
        )
    return first, second


def rank_blocks(sums: np.ndarray, first: int) -> float:
    """The share of all choices of `first` rows whose mean is as far from that of the others as that of the first ones.

    >>> rank_blocks(np.array([[5.0], [5.1], [5.2], [0.1], [0.0], [0.2], [0.3]]), 3)  # 1 of 35
    0.02857142857142857
    """
    # what all blocks have in common would drown ties in rounding
    sums = sums - np.mean(sums, axis=0)
    count, whole = len(sums), np.sum(sums, axis=0)
    chosen = np.array(list(itertools.combinations(range(count), first)))
    pieces = []
    # so few at a time that many coordinates fit into memory, too: sites have paid already
    for some in np.array_split(chosen, math.ceil(chosen.size * sums.shape[1] / _AT_ONCE)):
        parts = np.sum(sums[some], axis=1)
        pieces.append(np.linalg.norm(parts / first - (whole - parts) / (count - first), axis=1))
    lengths = np.concatenate(pieces)
    # the first of them is the one that was observed; ties of rounding count against it
    return float(np.mean(lengths >= lengths[0] * (1 - 1e-12)))


@dataclass(frozen=True, eq=False, kw_only=True)
class SitesDecision(WrittenAnswer):
    """Whether two groups at several sites differ, and everything that is promised about the answer.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=1.0)
    >>> X = ball.clip(dpm.Sphere(2).random_point(400, rng=0))
    >>> study = dpm.Study("two-sample test", ball, dpm.GaussianDP(1.0), n=[200, 200], classes=[0, 1], sites=["a", "b"])
    >>> sites = [dpm.Site(name, part, labels=np.arange(200) % 2, rng=7) for name, part in zip("ab", np.split(X, 2))]
    >>> decision = dpm.run_study(study, sites)
    >>> decision.sizes, dpm.SitesDecision.from_json(decision.to_json()) == decision
    ((200, 200), True)
    """

    rejected: bool
    """Whether "both groups come from one law, at every site" is rejected at the level."""
    pvalue: float
    level: float
    classes: tuple[str | int, ...]
    blocks: tuple[int, int]
    sizes: tuple[int, int]
    """How many records of either group are in blocks."""
    difference: tuple[float, ...]
    """Mean of the first group less that of the second: coordinates at the centre of the domain, with noise."""
    sigma: float
    """Of the noise on a coordinate of the difference."""
    guarantee: Guarantee
    budget: Budget
    domain: Domain
    sites: SitesPart
    reproducible: bool

    def __repr__(self) -> str:
        answer = "they differ" if self.rejected else "no difference was found"
        sizes = " and ".join(map(str, self.sizes))
        return f"SitesDecision({answer} at level {self.level:g}, p = {self.pvalue:.4g}, n = {sizes}, {self.budget!r})"

    def to_json(self, *, indent: int | None = None) -> str:
        """Everything, every float bit for bit."""
        told: dict[str, Any] = {"schema": _SCHEMA, **vars(self)}
        told |= {"guarantee": json.loads(self.guarantee.to_json()), "budget": self.budget.to_dict()}
        told |= {"domain": domain_to_json(self.domain), "sites": self.sites.to_dict()}
        return json.dumps(told, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> SitesDecision:
        """The decision that `to_json` wrote; anything else is refused."""
        with read_json(cls, text, _SCHEMA) as data:
            data |= {name: tuple(data[name]) for name in ("classes", "blocks", "sizes", "difference")}
            data |= {
                "guarantee": Guarantee.from_json(json.dumps(data["guarantee"])),
                "budget": Budget.from_dict(data["budget"]),
                "domain": domain_from_json(data["domain"]),
                "sites": SitesPart.from_dict(data["sites"]),
            }
            return cls(**data)
