"""What a private test says: one bit, and everything that is promised about it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dpmanifolds._validate import choice, positive_integer, shown
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity
from dpmanifolds.releases.release import this_version
from dpmanifolds.releases.statistic import Terms
from dpmanifolds.releases.written import WrittenAnswer, domain_from_json, domain_to_json, read_json
from dpmanifolds.sums.decision_noise import DecisionNoise, Statistic, among_largest, decision_noise, rank_of_first

PERMUTATIONS = 199
_SCHEMA = 1
_NUMERICS = {
    "rounded": "rounded: exactly rounded Gaussian noise on exact integers; the promise holds for the bit that is "
    "shown, given ideal random bits",
    "lattice": "lattice: discrete Laplace noise, drawn exactly, on exact integers; the promise holds for the bit "
    "that is shown, given ideal random bits",
}
_QUESTIONS = {
    "two-sample": ("Do the two groups come from one law?", "They differ", "No difference was found"),
    "independence": ("Are records and their covariates independent?", "They depend", "No dependence was found"),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Decision(WrittenAnswer):
    """The answer of a private test. It holds no statistic, no permutation and no seed.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=3.0)
    >>> x, y = np.random.default_rng(0).normal(size=(2, 200, 2))
    >>> decision = dpm.private_two_sample_test(x, y + [1.5, 0.0], ball, dpm.PureDP(1.0), rng=1)
    >>> decision.rejected, decision.level, decision.spent
    (True, 0.05, PureDP(epsilon=1.0))
    >>> dpm.Decision.from_json(decision.to_json()) == decision
    True
    """

    question: str
    """"two-sample" or "independence"."""
    rejected: bool
    """Whether the null hypothesis (one law; independence) is rejected at the level."""
    pvalue: float | None
    """The rank of the noisy statistic over B + 1, where it was asked and paid for."""
    level: float
    """Under the null hypothesis `rejected` comes up with at most this probability."""
    permutations: int
    """B."""
    sizes: tuple[int, ...]
    """The public numbers of records, or persons: of each group, or of all."""
    kernel: str
    """In words, with its public bandwidths."""
    guarantee: Guarantee
    budget: Budget
    mechanism: str
    """"permutation-laplace" or "permutation-gaussian"."""
    numerics: str
    sensitivity: Sensitivity
    """Of the statistic, over all permutations."""
    sigma: float
    """Of the noise on the statistic of every permutation."""
    reach: float
    """What the statistic must exceed its null level by, so that noise leaves a power of about 0.8."""
    domain: Domain
    reproducible: bool
    """Made with a seed: for tests and teaching, never for real records. A ledger refuses it."""
    version: str = field(default_factory=this_version)

    @property
    def spent(self) -> Budget:
        """The guarantee, read as the kind of budget that was asked for."""
        return self.budget.read(self.guarantee)

    @property
    def answer(self) -> str:
        """In a few words."""
        return _QUESTIONS[self.question][1 if self.rejected else 2]

    def __repr__(self) -> str:
        rank = "" if self.pvalue is None else f", p = {self.pvalue:.4g}"
        seeded = ", reproducible (not for real records)" if self.reproducible else ""
        sizes = " and ".join(map(str, self.sizes))
        answer = f"{self.answer.lower()} at level {self.level:g}{rank}"
        return f"Decision({self.question}: {answer}, {self.spent!r}, n = {sizes}{seeded})"

    def summary(self) -> str:
        """One page in plain language."""
        return _summarize(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """Everything, every float bit for bit."""
        plain = ("question", "rejected", "pvalue", "level", "permutations", "kernel", "mechanism", "numerics")
        data = {
            "schema": _SCHEMA,
            **{name: getattr(self, name) for name in (*plain, "sigma", "reach", "reproducible", "version")},
            "sizes": list(self.sizes),
            "guarantee": json.loads(self.guarantee.to_json()),
            "budget": self.budget.to_dict(),
            "sensitivity": asdict(self.sensitivity),
            "domain": domain_to_json(self.domain),
        }
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> Decision:
        """The decision that `to_json` wrote; anything else is refused."""
        with read_json(cls, text, _SCHEMA) as data:
            choice("question", data["question"], tuple(_QUESTIONS))
            choice("numerics", data["numerics"], tuple(_NUMERICS))
            data |= {
                "rejected": bool(data["rejected"]),
                "sizes": tuple(int(size) for size in data["sizes"]),
                "guarantee": Guarantee.from_json(json.dumps(data["guarantee"])),
                "budget": Budget.from_dict(data["budget"]),
                "sensitivity": Sensitivity(**data["sensitivity"]),
                "domain": domain_from_json(data["domain"]),
            }
            made = cls(**data)
            made.to_json()
        return made


def _summarize(decision: Decision) -> str:
    promise, sizes = decision.guarantee, " and ".join(map(str, decision.sizes))
    question = _QUESTIONS[decision.question][0]
    rank = "not asked for: it would cost twice the noise" if decision.pvalue is None else f"{decision.pvalue:.4g}"
    seeded = ""
    if decision.reproducible:
        seeded = (
            "\nNOT FOR REAL RECORDS\n  It was made with a seed: whoever knows the seed can take the noise away again.\n"
        )
    return (
        f"What was asked\n"
        f"  {question} n = {sizes}, on {decision.domain.manifold!r}.\n"
        f"\nThe answer\n"
        f"  {decision.answer} (level {decision.level:g}; p-value: {rank}).\n"
        f"  Where nothing differs, this test says otherwise in at most {decision.level:.2%} of cases, noise included.\n"
        f"  That nothing was found is no proof that nothing is there.\n"
        f"\nThe promise\n"
        f"  {decision.spent!r}, {promise.neighbours}.\n"
        f"  Someone who knows everyone else's record, and wonders which of two values one {promise.unit} has, guesses\n"
        f"  right with a probability of at most {promise.best_guess:.1%} after seeing the answer; without it, 50 %.\n"
        f"\nWhat it rests on\n"
        f"  Statistic: distance of mean features; kernel {decision.kernel}; {decision.permutations} permutations.\n"
        f"  Noise: {decision.mechanism}, sigma {decision.sigma:.6g} on every permutation. The statistic must be\n"
        f"  above its null level by some {decision.reach:.3g} to be found in four of five cases.\n"
        f"  Sensitivity (how far one {promise.unit} can move a statistic before noise): "
        f"{float(decision.sensitivity):.6g}, {decision.sensitivity.reason}.\n"
        f"  Theorem: docs/proofs/tests.md. Numerics: {_NUMERICS[decision.numerics]}.\n"
        f"  The domain, the kernel, its bandwidth and the level must have been chosen without looking at the records.\n"
        f"{seeded}"
    )


@dataclass(frozen=True)
class Setting:
    """What is asked of which records; public."""

    question: str
    domain: Domain
    kernel: str
    sizes: tuple[int, ...]
    statistic: Statistic
    statement: str
    """How far it moves."""


@dataclass(frozen=True)
class Settings:
    """How it is asked; public."""

    level: float
    permutations: int
    pvalue: bool

    @property
    def rank(self) -> int:
        """k = ⌊level·(B + 1)⌋."""
        return _rank(self.level, self.permutations)

    def noise(self, statistic: Statistic, budget: Budget) -> DecisionNoise:
        """The noise on every permutation."""
        return decision_noise(statistic, budget, self.level, pvalue=self.pvalue)

    def decide(
        self, about: Setting, terms: Terms, noise: DecisionNoise, values: list[int], source: np.random.Generator
    ) -> Decision:
        """Charge the account, draw the noise once, and answer. Nothing fails after the charge."""
        promise = noise.guarantee(terms.unit)
        steps = about.statistic.unit
        moved = math.nextafter(about.statistic.sensitivity / steps, math.inf)
        told = {"level": self.level, "permutations": self.permutations, "kernel": about.kernel, "pvalue": self.pvalue}
        terms.spend(f"{about.question} test", promise, sum(about.sizes), **told, domain=about.domain)
        noisy = noise.add_to(values, source)
        place = rank_of_first(noisy, source) if self.pvalue else None
        return Decision(
            question=about.question,
            rejected=among_largest(noisy, self.rank) if place is None else place <= self.rank,
            pvalue=None if place is None else place / (self.permutations + 1),
            level=self.level,
            permutations=self.permutations,
            sizes=about.sizes,
            kernel=about.kernel,
            guarantee=promise,
            budget=terms.budget,
            mechanism=f"permutation-{noise.law}",
            numerics="rounded" if noise.law == "gaussian" else "lattice",
            sensitivity=Sensitivity(moved, "B8", "P", about.statement),
            sigma=noise.sigma / steps,
            reach=noise.reach(self.level) / steps,
            domain=about.domain,
            reproducible=terms.account.reproducible,
        )


def check_settings(level: Any, permutations: Any, pvalue: Any) -> Settings:
    """The level, B, and whether a p-value is wanted; or an error that says what is allowed."""
    try:
        share = float(level)
    except (TypeError, ValueError):
        share = math.nan
    if not 0 < share < 1:
        raise ArgumentError(f"must be a number between 0 and 1, such as 0.05; got {shown(level)}.", argument="level")
    count = positive_integer("permutations", permutations)
    if _rank(share, count) < 1:
        raise ArgumentError(
            f"must be at least {math.ceil(1 / share) - 1} at level {share:g}, so that level·(permutations + 1) ≥ 1: "
            f"with fewer nothing is ever found; got {count}.",
            argument="permutations",
        )
    if not isinstance(pvalue, bool):
        raise ArgumentError(f"must be True or False; got {shown(pvalue)}.", argument="pvalue")
    return Settings(share, count, pvalue)


def _rank(level: float, permutations: int) -> int:
    """⌊level·(B + 1)⌋ of the shortest decimal that the level is: 0.07·100 is 7."""
    return math.floor(Fraction(repr(level)) * (permutations + 1))
