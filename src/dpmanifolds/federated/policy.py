"""What a site answers, whoever asks.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
>>> asked = dpm.Coordinator(dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=90, sites=["a", "b", "c"])).round
>>> dpm.SitePolicy(least_tolerated=1).refusal(asked)
'it tolerates t = 0 sites, and at least 1 are wanted'
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dpmanifolds._validate import choice, positive_integer, shown
from dpmanifolds.errors import ArgumentError
from dpmanifolds.federated.round import RULES, TRANSPORTS, Round
from dpmanifolds.federated.rules import records_live_on
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget
from dpmanifolds.privacy.guarantee import ADJACENCIES


@dataclass(frozen=True)
class SitePolicy:
    """What a site answers, whoever asks: every field that is not None must hold for a round.

    >>> import dpmanifolds as dpm
    >>> dpm.SitePolicy(most=dpm.GaussianDP(0.5), transports=("secure-sum",), least_tolerated=1).least_tolerated
    1
    """

    most: Budget | None = None
    """The most that one round may spend; what all of them may spend together is for the ledger."""
    transports: tuple[str, ...] = TRANSPORTS
    least_tolerated: int = 0
    """t must be at least so much: 0 protects against everyone who takes no part, and against no one who does."""
    least_sites: int = 1
    statistics: tuple[str, ...] | None = None
    manifold: Manifold | None = None
    sites: tuple[str, ...] | None = None
    """All that one is ready to be added up with, itself among them."""
    adjacency: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        for name, kind in (("most", Budget), ("manifold", Manifold), ("unit", str)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ArgumentError(f"must be a {kind.__name__}, or None; got {shown(value)}.", argument=name)
        for name, known in (("transports", TRANSPORTS), ("statistics", tuple(RULES)), ("sites", None)):
            value = getattr(self, name)
            if value is None and name != "transports":
                continue
            # a text holds others: "mean" is in "class means"
            if isinstance(value, str) or not isinstance(value, Collection):
                raise ArgumentError(f"must be a list of names; got {shown(value)}.", argument=name)
            for each in value:
                if known is not None:
                    choice(name, each, known)
            object.__setattr__(self, name, tuple(value))
        if self.adjacency is not None:
            choice("adjacency", self.adjacency, ADJACENCIES)
        positive_integer("least_tolerated", self.least_tolerated, at_least=0)
        positive_integer("least_sites", self.least_sites)

    def refusal(self, asked: Round) -> str:
        """Why a round is not answered; empty where it is."""
        if self.most is not None and not asked.guarantee.fits(self.most):
            return f"it spends μ = {asked.mu:.6g}, more than {self.most.in_words()}"
        if asked.transport not in self.transports:
            return f"its transport is {asked.transport!r}, and allowed is {' or '.join(self.transports)}"
        if asked.transport != "plain" and asked.tolerated < self.least_tolerated:
            return f"it tolerates t = {asked.tolerated} sites, and at least {self.least_tolerated} are wanted"
        if len(asked.sites) < self.least_sites:
            return f"{len(asked.sites)} sites take part, and at least {self.least_sites} are wanted"
        if self.statistics is not None and asked.statistic not in self.statistics:
            return f"it asks for {asked.statistic!r}"
        if self.sites is not None and not set(asked.sites) <= set(self.sites):
            return "sites take part that are not known here"
        for name in ("adjacency", "unit"):
            wanted = getattr(self, name)
            if wanted is not None and getattr(asked, name) != wanted:
                return f"its {name} is {getattr(asked, name)!r}, and wanted is {wanted!r}"
        if self.manifold is not None and any(records_live_on(part.rule) != self.manifold for part in asked.parts):
            return f"it is not about records of {self.manifold!r}"
        return ""
