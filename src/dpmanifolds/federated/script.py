"""A statistic as a script of rounds: the same code that releases it in one place, with sums that sites send.

Where one place has the records, a statistic sums their integers and adds noise. Here a sum is only a question until its
noise is asked for: then it is looked up among the sums that came back, noise included, or else the script stops and
says what must be asked next (`AskNextError`). Everything but the sums is a function of public values, so that going
through the script again with one more sum leads to the same questions, and one farther.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from dpmanifolds.errors import DPManifoldsError, NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.federated.rules import Rule
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.releases.covariance import CovariancePlan
from dpmanifolds.releases.second_moment import TangentMomentPlan
from dpmanifolds.releases.statistic import Request
from dpmanifolds.sums import Facts, Mechanism
from dpmanifolds.sums.counts import PERSON_UNIT, CountsNoise, counts_noise
from dpmanifolds.sums.moments import MomentNoise
from dpmanifolds.sums.steps import StepPlan
from dpmanifolds.sums.total import RecordSums
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism

Noise = TypeVar("Noise")
_COARSEST = 8
"""So many bits at least, and half of those of the dimension, tell how far a record lies from the centre."""


class Heard(NamedTuple):
    """One noisy sum of one part, as it came back."""

    integers: list[int]
    rows: int | None
    """The public number of records in it; None where that is protected."""


class AskNextError(DPManifoldsError):
    """The script has come to a sum that nobody has asked for yet."""

    def __init__(self, rule: Rule, mu: float, weight: int) -> None:
        super().__init__("the next sum must be asked for.")
        self.rule, self.mu, self.weight = rule, mu, weight


@dataclass
class Script:
    """The sums that came back, and how many of them were used."""

    heard: Sequence[Heard]
    count: int
    """The public number of records, or the guess of it."""
    guess: int | None
    used: int = 0
    is_single_use: ClassVar[bool] = False

    def records(self) -> RecordSums:
        """What stands for the records: every pass over them is a question."""
        return RecordSums(self, guess=self.guess)  # type: ignore[arg-type]

    def refuse_single_use(self) -> None:
        """Sites can be asked again."""

    def uncut(self) -> Script:
        """Each site cuts its own."""
        return self

    def reduce(self, part: Any, _: Any) -> Question:
        """A pass over the records."""
        return self.ask(part.contribution)

    def ask(self, rule: Rule) -> Question:
        """The sum of what this rule gives records."""
        return Question(self, rule)


@dataclass(frozen=True)
class Question:
    """A sum that stands for itself until its noise is asked for."""

    script: Script
    rule: Rule
    rows: int = field(default=0)

    @property
    def integers(self) -> Question:
        return self

    def hear(self, mu: float, weight: int = 0) -> Heard:
        """The sum with its noise; where it has not come back yet the script stops."""
        script = self.script
        if script.used == len(script.heard):
            raise AskNextError(self.rule, mu, weight)
        script.used += 1
        return script.heard[script.used - 1]


def _mu(guarantee: Guarantee) -> float:
    return guarantee.as_gaussian().mu


@dataclass(frozen=True, kw_only=True)
class SharedGaussianMechanism(WrappedGaussianMechanism):
    """Gaussian noise that comes with the sum, in the shares that sites drew."""

    theorem: ClassVar[str] = "B1 and Gaussian noise in shares (docs/proofs/shares.md, federated.md)"

    def noisy_mean(self, total: Any, rows: int, rng: Any = None) -> np.ndarray:
        shape = self.facts.shape
        assert shape is not None
        assert self.exponent is not None
        weight = shape.weight(self.exponent, gaussian=True) if shape.counted else 0
        heard = total.hear(_mu(self.guarantee), weight)
        noisy = np.array([float(number) for number in heard.integers])
        if not weight:
            return np.asarray(noisy * (self.step * shape.count / max(1, heard.rows)))
        return np.asarray(noisy[:-1] * (self.step * shape.count / max(1.0, noisy[-1] / weight)))


@dataclass(frozen=True)
class SharedCounts(CountsNoise):
    """The same for counts."""

    count: int = 1

    def draw(self, total: Any, rng: Any = None) -> np.ndarray:
        heard = total.hear(_mu(self.guarantee))
        scale = 1.0 if heard.rows is None else self.count / max(1, heard.rows)
        return np.array([float(number) for number in heard.integers]) * (scale / self.unit)


@dataclass(frozen=True)
class SharedMoment(MomentNoise):
    """The same for sums of squares, of which the diagonal and what is above it travel."""

    count: int = 1

    def draw(self, total: Any, rng: Any = None) -> np.ndarray:
        heard, dim = total.hear(_mu(self.guarantee)), self.law.dim
        matrix = np.zeros((dim, dim))
        above = np.triu_indices(dim, 1)
        numbers = np.array([float(number) for number in heard.integers])
        matrix[above] = numbers[dim:]
        matrix = matrix + matrix.T + np.diag(numbers[:dim])
        return matrix * (1.0 if heard.rows is None else self.count / max(1, heard.rows))


def _shared(kind: type[Noise], noise: Any, **more: Any) -> Noise:
    """The same numbers, in a class that draws nothing."""
    return kind(**{each.name: getattr(noise, each.name) for each in fields(noise)}, **more)


def _share_law(law: Mechanism, bits: int | None = None) -> SharedGaussianMechanism:
    """The same law, on a lattice so coarse that the sum and its noise stay within so many bits."""
    if not isinstance(law, WrappedGaussianMechanism):
        raise NotAvailableError(f"shares of noise are Gaussian, and this was planned with {law.name}.")
    shared = _shared(SharedGaussianMechanism, law)
    shape, exponent = law.facts.shape, law.exponent
    if bits is None or shape is None or exponent is None:
        return shared
    # n records of 2^e steps each, and ten deviations of noise for neighbours that are 2·2^e apart
    room = (1 << (bits - 1)) * 0.99 / (shape.count + 20 / _mu(law.guarantee))
    coarser = min(exponent, math.floor(math.log2(room)))
    if coarser < _COARSEST + (law.facts.domain.manifold.dim - 1).bit_length() / 2:
        raise ScaleOutOfRangeError(
            f"a modulus of {bits} bits does not hold the sum of {shape.count} records in "
            f"{law.facts.domain.manifold.dim} dimensions with enough precision. Take a larger one."
        )
    return replace(shared, exponent=coarser, step=law.step * 2.0 ** (exponent - coarser))


@dataclass(frozen=True, kw_only=True)
class SiteRequest(Request):
    """A question to sites: planned for the noise that their shares add up to, by Gaussian laws that draw nothing."""

    count: int
    labelled: bool = False
    bits: int | None = None
    """Of the modulus, where it was given."""

    def plan(self, n: int, budget: Budget | None = None, *, once: bool = False, labelled: bool = False) -> StepPlan:
        plan = super().plan(n, budget, once=once, labelled=self.labelled)
        return replace(plan, mechanisms=tuple(_share_law(law, self.bits) for law in plan.mechanisms))

    def choose(self, facts: Facts, budget: Budget) -> SharedGaussianMechanism:
        return _share_law(super().choose(facts, budget), self.bits)

    def counts(self, cells: int, part: Budget, unit: int) -> CountsNoise:
        """Gaussian, with a unit so fine that shares of it add up."""
        drawn = counts_noise(cells, part, self.unit, unit=PERSON_UNIT, adjacency=self.adjacency, gaussian_only=True)
        return _shared(SharedCounts, drawn, count=self.count)


def share_tangent_moment(way: TangentMomentPlan, request: SiteRequest) -> TangentMomentPlan:
    """The same, with squares whose noise comes with their sum."""
    return way._replace(moment=_share_moment(way.moment, request))


def _share_moment(noise: MomentNoise, request: SiteRequest) -> MomentNoise:
    if not noise.is_gaussian:
        raise NotAvailableError("shares of noise are Gaussian, and this was planned with other noise.")
    return _shared(SharedMoment, noise, count=request.count)


def share_covariance(plan: CovariancePlan, request: SiteRequest) -> CovariancePlan:
    """The same stages, all of them Gaussian, none of which draws."""
    mean = None if plan.mean is None else request.plan(request.count, plan.mean.parts[0])
    counts = plan.counts
    if counts is not None:
        counts = request.counts(counts.law.dim, counts.part, counts.unit)
    return replace(plan, mean=mean, counts=counts, moment=_share_moment(plan.moment, request))
