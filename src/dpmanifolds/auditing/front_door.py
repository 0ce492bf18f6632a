"""Audits of whole releases, called as everybody calls them.

>>> import numpy as np
>>> from dpmanifolds import Ball, Euclidean, GaussianDP, private_mean
>>> ball = Ball(Euclidean(1), [0.0], radius=1.0)
>>> def released(records, rng):
...     return private_mean(records, ball, GaussianDP(1.0), rng=rng)
>>> pair = np.zeros((10, 1)), np.append(np.zeros((9, 1)), [[1.0]], axis=0)
>>> find_difference(released, *pair) is None
True
>>> report = audit_release(released, *pair, draws=200, rng=0)
>>> report.claim.name, report.flagged
('μ', False)

The attacker sees every noisy sum that the release was made of, which is more than the release shows, and scores all of
them by the exact log-likelihood ratio: what a neighbour would have had to hide behind the same answers is found by
calling the function on the neighbour with the same answers forced upon it. Then nothing else may differ: not the path,
not a warning, not an error, not a bit of what is released (`find_difference`). Plans, which are made of public facts
and take most of the time, are remembered between calls.

>>> with overheard_noise() as tap:
...     release = released(pair[0], 0)
>>> [said] = tap.said
>>> said.values.tolist(), bool(said.noisy[0] * release.step == release.coordinates[0])
([0], True)

All noise of means, counts, variances and covariances is added by seven classes of `dpmanifolds.noise`. While
`overheard_noise` is open they note down the integers that came in (private) and went out (public), and draw with
`factor` times their scale: the one place where an audit makes noise weaker. A transcript can also be `forced`: the
integers that go out are then those of another run, so that the same call on a neighbour shows what it would have had to
hide there. Meant for audits: while it is open, it is open for all threads of the process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeAlias, get_args

import numpy as np

from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.auditing.report import AuditReport
from dpmanifolds.errors import ArgumentError, DPManifoldsError, NoiseExceedsDomainWarning
from dpmanifolds.noise import LatticeGaussian, LatticeLaplace, RoundedGaussian, RoundedLaplace, as_generator
from dpmanifolds.noise.symmetric import SymmetricGaussian, SymmetricLaplace, WishartDifference
from dpmanifolds.releases import ClassMeans, Difference, GeodesicRegression, Release, statistic, variance
from dpmanifolds.releases.clusters import Clusters
from dpmanifolds.releases.discriminant import Discriminant

_Scored: TypeAlias = (
    RoundedGaussian | RoundedLaplace | LatticeGaussian | LatticeLaplace | SymmetricGaussian | SymmetricLaplace
)
Law: TypeAlias = _Scored | WishartDifference
LAWS: tuple[type[Law], ...] = get_args(Law)


class PathError(DPManifoldsError):
    """The same noisy answers led a neighbour down another path: what is drawn next depends on the records."""


@dataclass(frozen=True, eq=False)
class Said:
    """One noisy sum."""

    law: Law
    """As it was asked for, before any weakening."""
    values: np.ndarray
    """Integers without noise. Private."""
    noisy: np.ndarray
    """The same with noise: all that may be known."""

    def ratio(self, others: np.ndarray, factor: float) -> float:
        """How much likelier, in logarithms, the answer is for these values than for others, at so much of the noise.

        The density of a difference of two Wishart matrices, A − B of density ∝ e^{−tr/σ} each, has no formula; where it
        is definite it is e^{−‖·‖_*/σ} up to a constant, in nuclear norm: X = A − B ⪰ 0 has ∫ e^{−tr(X + 2B)/σ} dB. That
        is taken for all of them. Any score makes a valid attack, and one record more moves definite answers by all that
        it is charged for.
        """
        if isinstance(self.law, WishartDifference):
            sigma = float(self.law.sigma) * factor
            lengths = [
                np.abs(np.linalg.eigvalsh((self.noisy - each).astype(np.float64))) for each in (self.values, others)
            ]
            return float(np.sum(lengths[1]) - np.sum(lengths[0])) / sigma
        law = replace(self.law, sigma=self.law.sigma * factor)
        return float(law.log_density(self.noisy - self.values) - law.log_density(self.noisy - others))


@dataclass
class Tap:
    """What one run has said, and what it is forced to say."""

    factor: float = 1.0
    forced: Sequence[Said] | None = None
    said: list[Said] = field(default_factory=list)

    def answer(self, law: Law, values: Any, rng: Any, draw: Callable[[Law, Any, Any], np.ndarray]) -> np.ndarray:
        """Draw, or repeat what was said before."""
        if self.forced is None:
            noisy = draw(replace(law, sigma=law.sigma * self.factor), values, rng)
        else:
            noisy = self._repeated(law)
        self.said.append(Said(law, np.array(values), noisy))
        return noisy

    def _repeated(self, law: Law) -> np.ndarray:
        assert self.forced is not None
        number = len(self.said)
        if number >= len(self.forced):
            raise PathError(f"the neighbour asks for noise {number + 1} times, and {len(self.forced)} were enough.")
        if self.forced[number].law != law:
            raise PathError(f"noise number {number + 1} is {law!r} here and {self.forced[number].law!r} there.")
        return self.forced[number].noisy


@contextmanager
def overheard_noise(factor: float = 1.0, forced: Sequence[Said] | None = None) -> Iterator[Tap]:
    """Listen to all noise that is drawn meanwhile; `factor` times its scale is drawn."""
    tap = Tap(factor, forced)
    kept = {law: law.release for law in LAWS}

    def listening(draw: Any) -> Any:
        return lambda law, values, rng=None: tap.answer(law, values, rng, draw)

    for law, draw in kept.items():
        law.release = listening(draw)  # type: ignore[method-assign]
    try:
        yield tap
    finally:
        for law, draw in kept.items():
            law.release = draw  # type: ignore[method-assign]


Made: TypeAlias = Release | ClassMeans | Discriminant | GeodesicRegression | Clusters | Difference
Door: TypeAlias = Callable[[Any, Any], Made]
"""A release of records, with a source of noise."""
_Runs: TypeAlias = tuple[list[list[Said]], list[list[Said]]]
"""What every call said, on the first neighbour and on the second."""
_PLANNERS: tuple[tuple[ModuleType, str], ...] = ((statistic, "plan_steps"), (variance, "_plan"))


@contextmanager
def remembered_plans() -> Iterator[None]:
    """Make each plan once: plans are functions of public facts, and draw nothing."""
    kept = [(room, name, getattr(room, name)) for room, name in _PLANNERS]
    for room, name, planner in kept:
        setattr(room, name, lru_cache(maxsize=64)(planner))
    try:
        yield
    finally:
        for room, name, planner in kept:
            setattr(room, name, planner)


def audit_release(
    release: Door,
    first: Any,
    second: Any,
    *,
    draws: int = 10_000,
    calls: int | None = None,
    confidence: float = 0.95,
    noise_factor: float = 1.0,
    description: str = "",
    rng: Any = None,
) -> AuditReport:
    """Attack `release(records, rng)` on two neighbours with `draws` calls on each.

    `calls` fewer calls are enough where every one adds the same noise to the same sums, whatever was answered before:
    the other draws are then made of that noise and those sums alone. Where calls differ, that is refused.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.auditing import audit_release
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], radius=1.0)
    >>> def released(records, rng):
    ...     return dpm.private_mean(records, ball, dpm.PureDP(1.0), rng=rng)
    >>> ends = np.array([[0.0], [1.0]]), np.array([[0.0], [-1.0]])
    >>> audit_release(released, *ends, draws=300, noise_factor=0.2, rng=0).flagged
    True
    """
    draws = positive_integer("draws", draws, at_least=200)
    factor = positive_number("noise_factor", noise_factor)
    source = None if rng is None else as_generator(rng)
    with remembered_plans(), warnings.catch_warnings():
        # few records are attacked best
        warnings.simplefilter("ignore", NoiseExceedsDomainWarning)
        made, runs = _runs(release, (first, second), calls or draws, factor, source)
        if calls is not None:
            runs = _continued(runs, draws, factor, source)
        scores = _scores(release, (first, second), runs, factor)
    last = made if isinstance(made, Release) else made.releases[-1]
    return AuditReport.from_scores(
        *scores,
        made.guarantee,
        confidence,
        mechanism=last.mechanism,
        numerics=last.numerics,
        domain=repr(last.domain.manifold),
        n=last.n,
        draws=draws,
        noise_factor=factor,
        pair=description,
    )


def _runs(release: Door, pair: tuple[Any, Any], draws: int, factor: float, source: Any) -> tuple[Made, _Runs]:
    """What `draws` calls on each neighbour said, and one of the releases, for its promise."""
    runs: _Runs = ([], [])
    for records, run in zip(pair, runs, strict=True):
        for _ in range(draws):
            with overheard_noise(factor) as tap:
                made = release(records, source)
            run.append(tap.said)
    return made, runs


def _continued(runs: _Runs, draws: int, factor: float, source: Any) -> _Runs:
    """More noise of the same laws on the same sums, up to so many draws: the same for both neighbours.

    Either error rate is bounded on its own, and no bound needs the two to be independent.
    """
    laws = [each.law for each in runs[0][0]]
    first, second = (_fixed_values(run) for run in runs)
    if first is None or second is None or any([each.law for each in said] != laws for run in runs for said in run):
        raise ArgumentError("later sums depend on earlier answers, or on chance: leave calls out.")
    weak = [replace(law, sigma=law.sigma * factor) for law in laws]
    nothing = [np.zeros_like(value) for value in first]
    more: _Runs = ([], [])
    for _ in range(draws - len(runs[0])):
        noise = [law.release(zeros, source) for law, zeros in zip(weak, nothing, strict=True)]
        for run, values in zip(more, (first, second), strict=True):
            run.append([Said(*each) for each in zip(laws, values, map(np.add, values, noise), strict=True)])
    return runs[0] + more[0], runs[1] + more[1]


def _scores(release: Door, pair: tuple[Any, Any], runs: _Runs, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood ratios of all runs, for the first neighbour over the second."""
    fixed = [_fixed_values(run) for run in runs]
    first, second = (_against(release, pair[1 - which], runs[which], fixed[1 - which], factor) for which in (0, 1))
    return first, -second


def _against(
    release: Door, other: Any, run: list[list[Said]], fixed: list[np.ndarray] | None, factor: float
) -> np.ndarray:
    """How much likelier each run is for the neighbour that it came from than for the other one."""
    ratios = []
    for said in run:
        hidden = fixed if fixed is not None else _replayed(release, other, said)
        ratios.append(sum(each.ratio(values, factor) for each, values in zip(said, hidden, strict=True)))
    return np.array(ratios)


def _fixed_values(run: list[list[Said]]) -> list[np.ndarray] | None:
    """The sums without noise, if they are the same in every run; None where later ones depend on earlier answers."""
    values = [each.values for each in run[0]]
    for said in run:
        if len(said) != len(values) or not all(map(np.array_equal, values, (each.values for each in said))):
            return None
    return values


def _replayed(release: Door, records: Any, said: Sequence[Said]) -> list[np.ndarray]:
    """The sums that a neighbour would have had to hide behind the same answers."""
    with overheard_noise(forced=said) as tap:
        release(records, None)
    return [each.values for each in tap.said]


def find_difference(release: Door, first: Any, second: Any, *, rng: Any = None) -> str | None:
    """What tells two neighbours apart although their noisy sums are the same; None if nothing does.

    Both must ask for the same noise, release the same bits, warn of the same things and raise the same errors.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.auditing import find_difference
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], radius=1.0)
    >>> def careless(records, rng):
    ...     if records.max() > 1:
    ...         raise ValueError("a record is too large")
    ...     return dpm.private_mean(records, ball, dpm.PureDP(1.0), rng=rng)
    >>> find_difference(careless, np.zeros((5, 1)), np.full((5, 1), 2.0))
    "it releases on the first, and raises ValueError('a record is too large') on the second"
    """
    one, said = _outcome(release, first, rng, None)
    other, again = _outcome(release, second, None, said)
    if one != other:
        return f"it {_told(one)} on the first, and {_told(other)} on the second"
    if len(again) != len(said):
        return f"noise is asked for {len(said)} times on the first, and {len(again)} times on the second"
    return None


def _outcome(
    release: Door, records: Any, rng: Any, forced: Sequence[Said] | None
) -> tuple[tuple[str, ...], list[Said]]:
    """Everything that a caller sees, as text, and what was said."""
    with warnings.catch_warnings(record=True) as heard, overheard_noise(forced=forced) as tap:
        warnings.simplefilter("always")
        try:
            made = release(records, None if rng is None else as_generator(rng))
            end = "releases", _text(made)
        except Exception as error:  # an error of any kind is an answer
            end = "raises", f"{type(error).__name__}({str(error)!r})"
    return (*end, *(str(each.message) for each in heard)), tap.said


def _text(made: Made) -> str:
    if isinstance(made, Release | GeodesicRegression):
        return made.to_json().replace('"reproducible": true', '"reproducible": false')
    if isinstance(made, Difference):
        return repr((made.guarantee, [_text(each) for each in made.releases]))
    beside = made.counts.tolist() if isinstance(made, Clusters) else made.classes
    return repr((beside, made.guarantee, [_text(each) for each in made.releases]))


def _told(outcome: tuple[str, ...]) -> str:
    kind, what, *heard = outcome
    said = kind if kind == "releases" else f"{kind} {what}"
    return f"{said}, and warns {heard!r}" if heard else said
