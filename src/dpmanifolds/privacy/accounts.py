"""The accounts that a list of terms allows: sums of ε, μ², ρ and D_α, and one privacy-loss distribution for all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.privacy.budgets import PureDP
from dpmanifolds.privacy.conversions import (
    epsilon_of_mu,
    epsilon_of_zcdp,
    log_delta_of_zcdp,
    log_delta_upper,
    mu_of_pure,
    mu_of_pure_copies,
)
from dpmanifolds.privacy.loss_grid import LossGrid, compose_grids, first_below, power
from dpmanifolds.privacy.rounding import float_above, root_above
from dpmanifolds.privacy.terms import ApproxTerm, GaussianTerm, PureTerm, Term, ZcdpTerm
from dpmanifolds.privacy.tilted_grid import TailLaw

_TAIL = 1e-14
_FINENESS = 0.01
_SMALL_GRID = 2**14
_LARGEST_GRID = 2**19
_POINTS = 2000
_PURE_LIMIT = 700.0
_WIDEST = 64


@dataclass(frozen=True)
class Account:
    """One true account: upper bounds on δ(ε) and ε(δ)."""

    delta: Callable[[np.ndarray], np.ndarray]
    epsilon: Callable[[float], float]


def _sum(values: list[float | None], counts: list[int]) -> float | None:
    """Σ count·value, rounded up unless there is only one; None where one is missing."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if len(known) == 1 and counts[0] == 1:
        return known[0]
    return float_above(sum((count * Fraction(value) for count, value in zip(counts, known, strict=True)), Fraction(0)))


def _counts(terms: tuple[Term, ...]) -> list[int]:
    return [term.count for term in terms]


def total_pure(terms: tuple[Term, ...]) -> float | None:
    """Σε."""
    return _sum([term.pure_epsilon for term in terms], _counts(terms))


def total_mu(terms: tuple[Term, ...]) -> float | None:
    """√Σμ², or the μ of Σε where that is smaller."""
    found = [term.gaussian_mu for term in terms]
    if len(terms) == 1 and terms[0].count == 1:
        return found[0]
    if any(mu is None for mu in found):
        return None
    squares = Fraction(0)
    for term, mu in zip(terms, found, strict=True):
        if isinstance(term, PureTerm):
            squares += Fraction(mu_of_pure_copies(term.epsilon, term.count)) ** 2
        elif mu is not None:
            squares += term.count * Fraction(mu) ** 2
    mu = root_above(squares)
    epsilon = total_pure(terms)
    return mu if epsilon is None else min(mu, mu_of_pure(epsilon))


def total_rho(terms: tuple[Term, ...]) -> float | None:
    """Σρ."""
    return _sum([term.zcdp_rho for term in terms], _counts(terms))


def total_renyi(terms: tuple[Term, ...], alpha: float) -> float | None:
    """ΣD_α."""
    return _sum([term.renyi(alpha) for term in terms], _counts(terms))


def is_exact(terms: tuple[Term, ...]) -> bool:
    """Whether a formula already gives all there is: Gaussians alone, zCDP alone, one single term."""
    if len(terms) == 1 and terms[0].count == 1:
        return True
    return all(term.is_gaussian for term in terms) or all(isinstance(term, ZcdpTerm) for term in terms)


def simple_accounts(terms: tuple[Term, ...]) -> list[Account]:
    """The accounts by formula; at least one of them, or the privacy-loss distribution, is finite."""
    if len(terms) == 1 and terms[0].count == 1 and not isinstance(terms[0], PureTerm | GaussianTerm | ZcdpTerm):
        return [_of_profile(terms[0])]
    if all(isinstance(term, ZcdpTerm) for term in terms):
        return [_of_rho(total_rho(terms))]
    epsilon = total_pure(terms)
    if len(terms) == 1 and terms[0].count == 1 and epsilon is not None:
        return [_of_pure(epsilon)]
    accounts = [_of_pure(epsilon)] if epsilon is not None and epsilon <= _PURE_LIMIT else []
    mu, rho = total_mu(terms), total_rho(terms)
    if mu is not None:
        accounts.append(_of_mu(mu))
    elif rho is not None:
        accounts.append(_of_rho(rho))
    return accounts or [Account(np.ones_like, lambda delta: math.inf)]


def _of_pure(epsilon: float) -> Account:
    return Account(PureTerm(epsilon=epsilon).profile, lambda delta: _pure_reading(epsilon, delta))


def _pure_reading(epsilon: float, delta: float) -> float:
    found = PureDP(epsilon).as_approx(delta).epsilon
    return found if found > np.finfo(float).tiny else 0.0


def _of_mu(mu: float) -> Account:
    return Account(lambda at: np.exp(log_delta_upper(mu, at)), lambda delta: epsilon_of_mu(mu, delta))


def _of_rho(rho: float | None) -> Account:
    value = math.inf if rho is None else rho
    return Account(lambda at: np.exp(log_delta_of_zcdp(value, at)), lambda delta: epsilon_of_zcdp(value, delta))


def _of_profile(term: Term) -> Account:
    def epsilon(delta: float) -> float:
        high = term.reach(delta)
        if float(term.profile(np.asarray(high))) > delta:
            return math.inf
        return 0.0 if float(term.profile(np.asarray(0.0))) <= delta else first_below(term.profile, delta, high)

    return Account(term.profile, epsilon)


def _merged(terms: tuple[Term, ...]) -> list[Term]:
    """All Gaussian terms as one, all zCDP terms as one: their formulas lose nothing."""
    gaussians = tuple(term for term in terms if term.is_gaussian)
    zcdps = tuple(term for term in terms if isinstance(term, ZcdpTerm))
    merged: list[Term] = [term for term in terms if not term.is_gaussian and not isinstance(term, ZcdpTerm)]
    mu, rho = total_mu(gaussians) if gaussians else None, total_rho(zcdps) if zcdps else None
    if mu is not None:
        merged.append(GaussianTerm(mu=mu))
    if rho is not None:
        merged.append(ZcdpTerm(rho=rho))
    return merged


def _interval(terms: list[Term], tail: float) -> float:
    """A step of 1/100 of the losses' root mean square (a dot costs h²/6 in variance), within 2^14 to 2^19 cells."""
    copies = sum(term.count for term in terms)
    variance = math.fsum(term.count * term.spread**2 for term in terms)
    widest = max(term.reach(tail) for term in terms)
    span = max(
        2 * widest, min(variance + 16 * math.sqrt(variance), 2 * math.fsum(t.count * t.reach(tail) for t in terms))
    )
    interval = max(min(_FINENESS * math.sqrt(variance / copies), span / _SMALL_GRID), span / _LARGEST_GRID)
    epsilon = max((term.epsilon for term in terms if isinstance(term, PureTerm | ApproxTerm)), default=0.0)
    # a grid that contains the largest of these ε represents its randomised response without rounding; one far below
    # the step would make the grid of the others endless
    return epsilon / math.ceil(epsilon / interval) if epsilon >= interval / 2 else interval


def composed_grid(terms: tuple[Term, ...], *, backward: bool = False) -> LossGrid:
    """One privacy-loss distribution for all terms in one direction, pessimistic in every step."""
    merged = _merged(terms)
    copies = sum(term.count for term in merged)
    interval = _interval(merged, _TAIL / copies)
    grids = [
        power(term.grid(interval, _TAIL / copies, backward=backward), term.count, tail=_TAIL * term.count / copies)
        for term in merged
    ]
    result = grids[0]
    for grid in grids[1:]:
        result = compose_grids(result, grid, tail=_TAIL / len(grids))
    return result


def tail_law(terms: tuple[Term, ...], tail: float, *, backward: bool = False, widening: int = 1) -> TailLaw | None:
    """The law of all losses for `TailLaw`, cut off where `tail` is left; None where no grid can hold it."""
    merged = _merged(terms)
    copies = sum(term.count for term in merged)
    interval = _interval(merged, tail / copies) * widening
    try:
        parts = [(term.grid(interval, tail / copies, backward=backward), term.count) for term in merged]
    except ScaleOutOfRangeError:
        return None
    if widening > _WIDEST:
        return TailLaw(parts)
    return TailLaw(parts, lambda: tail_law(terms, tail, backward=backward, widening=4 * widening))


def reading_points(terms: tuple[Term, ...], top: float) -> np.ndarray:
    """Where a trade-off function is read off a profile: evenly up to `top`, and at each pure ε."""
    special = [term.pure_epsilon for term in terms] + [getattr(term, "epsilon", None) for term in terms]
    total = total_pure(terms)
    corners = [value for value in (*special, total) if value is not None and value <= _PURE_LIMIT]
    return np.unique(np.concatenate([np.linspace(0.0, top, _POINTS), corners]))
