"""One noisy sum over a random batch: profiles, Rényi divergences and terms.

`noise` is the standard deviation of the noise on the SUM of the clipped gradients, in units of the clip norm C.

**Poisson** (each record takes part with probability q): given the other records, the neighbours' laws are
(1 − q)N(0, σ²) + qN(x, σ²) and the same with x', |x|, |x'| ≤ 1, up to a shift. The worst pair is x = e, x' = −e. Proof:
for e^ε ≥ 1 the divergence is max_S qP_x(S) − e^ε qP_x'(S) − (e^ε − 1)(1 − q)P_0(S). With p = P_x(S), Neyman and Pearson
give P_x'(S) ≥ Φ(Φ⁻¹(p) − |x − x'|/σ) ≥ Φ(Φ⁻¹(p) − 2/σ) and P_0(S) ≥ Φ(Φ⁻¹(p) − 1/σ), and one half-space attains both
for the antipodal pair. Its likelihood ratio grows with x and reaches e^ε where y = e^{x/σ²} solves
r·y² − (e^ε − 1)y − r·e^ε = 0, r = q/(1 − q)·e^{−1/2σ²}.

**Without replacement**, b of n: for ε ≥ 0 the profile is at most γ·δ(log(1 + (e^ε − 1)/γ)), γ = b/n, with δ
the profile of the full-batch step at replace-one sensitivity 2C (Balle, Barthe and Gaboardi 2018, Theorem 9). It bounds
both directions, so its symmetric extension is the profile of a dominating pair and composes (Zhu, Dong and Wang 2022,
Theorem 10).

**Laplace noise** of scale `noise`·C on each coordinate of a sum of gradients clipped to C in ℓ1, and **batches that are
cut** to a largest size, are in docs/proofs/accounts.md, A3 and A4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy import special

from dpmanifolds._validate import choice, number_between, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy.conversions import log_delta_upper
from dpmanifolds.privacy.rounding import down, float_above, up
from dpmanifolds.privacy.terms import Term, laplace_profile, within_floats

_RELATIVE = 2.0**-44
_MARGIN = 120.0
_UNDERFLOW = 1e-280
_DOTS, _MOST_DOTS = 400, 200_000
_FINE, _NEGLIGIBLE = 0.05, 1e-7
_ROUNDS = 40
_LARGEST_EXPONENT = 500.0
_ADDED = "poisson-add-remove"


def poisson_profile(rate: float, noise: float, epsilon: np.ndarray) -> np.ndarray:
    """δ(ε), ε ≥ 0, of one Poisson-sampled step; an upper bound."""
    if rate == 1.0:
        return _gaussian(2 / Fraction(noise))(epsilon)
    with np.errstate(over="ignore", invalid="ignore"):
        log_ratio = math.log(rate) - math.log1p(-rate) - 1 / (2 * noise**2)
        # y·e^{−ε/2} = a + √(a² + 1), a = sinh(ε/2)/r, computed from log a
        log_sinh = np.where(
            epsilon > 0, epsilon / 2 + np.log(-np.expm1(-np.maximum(epsilon, 1e-300))) - math.log(2), -np.inf
        )
        log_a = log_sinh - log_ratio
        log_y = epsilon / 2 + np.where(log_a < 300, np.arcsinh(np.exp(np.minimum(log_a, 300))), log_a + math.log(2))
        x = noise * log_y
        parts = (
            rate * special.ndtr(1 / noise - x),
            rate * np.exp(epsilon + special.log_ndtr(-1 / noise - x)),
            (1 - rate) * np.expm1(np.minimum(epsilon, 700.0)) * special.ndtr(-x),
        )
    value = parts[0] - parts[1] - parts[2]
    # x enters the tails multiplied by itself
    error = _RELATIVE * (1 + x * x) * (parts[0] + parts[1] + parts[2])
    bound = np.nan_to_num(np.maximum(value, 0.0) + error, nan=0.0)
    return np.where(np.isfinite(epsilon), np.minimum(bound, rate), 0.0)


def fixed_size_profile(share: float, noise: float, epsilon: np.ndarray) -> np.ndarray:
    """δ(ε), ε ≥ 0, of one step on b = share·n records drawn without replacement; an upper bound."""
    return _amplified(share, _gaussian(2 / Fraction(noise)), epsilon)


def remove_profile(rate: float, noise: float, epsilon: np.ndarray) -> np.ndarray:
    """δ(ε), ε ≥ 0, of a Poisson-sampled step with a record against the same without it; an upper bound.

    ∫((1 − q)P₀ + qP₁ − e^ε P₀)₊ = q·δ_{1/σ}(log(1 + (e^ε − 1)/q)), exactly. By advanced joint convexity the other
    direction is no larger at any ε ≥ 0 (Balle, Barthe and Gaboardi 2018, Theorem 8).
    """
    return fixed_size_profile(rate, 2 * noise, epsilon)


def add_profile(rate: float, noise: float, epsilon: np.ndarray) -> np.ndarray:
    """δ(ε), ε ≥ 0, of a Poisson-sampled step without a record against the same with it; an upper bound.

    ∫(P₀ − e^ε((1 − q)P₀ + qP₁))₊ = k·δ_{1/σ}(log(e^ε q/k)), k = 1 − e^ε(1 − q), and 0 where k ≤ 0.
    """
    return _added(rate, _gaussian(1 / Fraction(noise)), epsilon)


def laplace_poisson_profile(rate: float, noise: float, epsilon: np.ndarray) -> np.ndarray:
    """δ(ε), ε ≥ 0, of a Poisson-sampled step with Laplace noise under replace-one; an upper bound.

    q·(1 − √z)₊, z = e^{−a}(1/q − 1)(e^ε − 1) + e^{ε−2a}, a = 1/noise.
    """
    if rate == 1.0:
        return _laplace(2 / Fraction(noise))(epsilon)
    single = 1 / noise
    with np.errstate(over="ignore"):
        near = np.exp(np.minimum(epsilon - 2 * single, 0.0))
        full = -np.expm1(np.minimum(epsilon - 2 * single, 0.0))
        odds = math.exp(-single) * (1 / rate - 1) * np.expm1(np.minimum(epsilon, 700.0))
        error = _RELATIVE * (full + np.minimum(odds, 1.0) + single * near)
        gap = np.clip(full - odds + error, 0.0, 1.0)
    return np.asarray(np.where(np.isfinite(epsilon), up(rate * gap / (1 + np.sqrt(1 - gap))), 0.0))


def _gaussian(mu: Fraction) -> Callable[[np.ndarray], np.ndarray]:
    above = float_above(mu)
    return lambda epsilon: np.asarray(np.exp(log_delta_upper(above, epsilon)))


def _laplace(loss: Fraction) -> Callable[[np.ndarray], np.ndarray]:
    above = float_above(loss)
    return lambda epsilon: laplace_profile(above, epsilon)


def _amplified(share: float, base: Callable[[np.ndarray], np.ndarray], epsilon: np.ndarray) -> np.ndarray:
    """γ·δ(log(1 + (e^ε − 1)/γ))."""
    return np.asarray(up(share * base(_level_in(share, epsilon)), 50))


def _level_in(share: float, epsilon: np.ndarray) -> np.ndarray:
    """log(1 + (e^ε − 1)/γ), rounded down."""
    return np.asarray(down(epsilon + np.log1p((1 / share - 1) * -np.expm1(-epsilon)), 50))


def _added(rate: float, base: Callable[[np.ndarray], np.ndarray], epsilon: np.ndarray) -> np.ndarray:
    """k·δ(log(e^ε q/k)), k = 1 − e^ε(1 − q)."""
    with np.errstate(over="ignore", divide="ignore"):
        # k rounded up makes both factors larger
        share = np.maximum(rate - (1 - rate) * np.expm1(np.minimum(epsilon, 700.0)), 0.0) + 2.0**-48 * rate
        level = np.maximum(epsilon + math.log(rate) - np.log(share) - 2.0**-46 * (1 + epsilon), 0.0)
    return np.asarray(up(share * base(level), 48))


def log_profile_upper(sampling: str, rate: float, noise: float, epsilon: np.ndarray) -> np.ndarray:
    """log δ(ε) of one step for any ε ≥ 0, however small δ is: by Theorem 9 for a fixed size; for Poisson sampling the
    profile where that is a floating-point number, and beyond q·δ_{1/σ}(log c), c = (1 − q)(e^ε − 1)/q, where c ≥ 1.

    For Q ≥ (1 − q)P₀, so that ∫(P − e^ε Q)₊ ≤ ∫(qP₁ − (1 − q)(e^ε − 1)P₀)₊.
    """
    if sampling == _ADDED:
        return log_profile_upper("fixed-size", rate, 2 * noise, epsilon)
    if sampling == "fixed-size":
        at = _level_in(rate, epsilon)
        return np.asarray(math.log(rate) + log_delta_upper(float_above(2 / Fraction(noise)), at) + _RELATIVE)
    if rate == 1.0:
        return np.asarray(log_delta_upper(float_above(2 / Fraction(noise)), epsilon) + _RELATIVE)
    exact = poisson_profile(rate, noise, epsilon)
    with np.errstate(divide="ignore"):
        odds = epsilon + np.log(-np.expm1(-epsilon)) + math.log1p(-rate) - math.log(rate)
    mu = float_above(1 / Fraction(noise))
    far = math.log(rate) + log_delta_upper(mu, np.maximum(odds - 2.0**-46 * (1 + np.abs(odds)), 0.0)) + _RELATIVE
    near = np.log(np.maximum(exact, _UNDERFLOW))
    return np.asarray(np.where(odds < 0, near, np.where(exact > _UNDERFLOW, np.minimum(near, far), far)))


def subsampled_renyi(
    log_profile: Callable[[np.ndarray], np.ndarray], noise: float, share: float, alpha: float
) -> float:
    """D_α of one step with this symmetric profile, an upper bound; never above that of the full batch, 2α/σ².

    e^{(α−1)D_α} = 1 + α(α − 1)∫₀^∞ (e^{(α−1)ε} + e^{−αε}) δ(ε) dε. Up to a point δ is replaced by its chords in e^ε,
    which lie above it; beyond, δ ≤ share·Φ(−t), t = ε/μ − μ/2, μ = 2/σ, by the convexity of the hockey-stick
    divergence, and Φ(−t) ≤ e^{−t²/2}/2. All in logarithms: neither e^{(α−1)ε} nor δ need be a floating-point number.
    """
    mu = 2 / noise
    full = alpha * mu * mu / 2
    reach = math.sqrt(2 * (alpha - 1) * full + _MARGIN)
    top = mu * ((alpha - 0.5) * mu + reach)
    dots = np.append(0.0, np.geomspace(min(1e-4 * share * mu, top / 10), top, _DOTS))
    logs = log_profile(dots)
    for _ in range(_ROUNDS):
        falls = np.diff(np.minimum.accumulate(logs))
        cells = np.logaddexp(
            *(
                logs[:-1] + _log_cells(power, dots[:-1], np.diff(dots), -np.expm1(falls))
                for power in (alpha - 1, -alpha)
            )
        )
        rough = np.maximum(alpha * np.diff(dots), -falls) > _FINE
        rough &= cells > np.logaddexp.reduce(cells) + math.log(_NEGLIGIBLE)
        if not np.any(rough) or len(dots) > _MOST_DOTS:
            break
        between = ((dots[:-1] + dots[1:]) / 2)[rough]
        places = np.flatnonzero(rough) + 1
        dots, logs = np.insert(dots, places, between), np.insert(logs, places, log_profile(between))
    # the weight is below 2e^{(α−1)ε}, and ∫ e^{(α−1)ε − t²/2} dε beyond the top is μ√(2π)·e^{α(α−1)μ²/2}·Φ(−reach)
    log_tail = (alpha - 1) * full + float(special.log_ndtr(-reach)) + math.log(share * mu * math.sqrt(2 * math.pi))
    parts = np.append(cells, log_tail)
    log_sum = float(np.logaddexp.reduce(parts)) + math.log(alpha) + math.log(alpha - 1)
    size = float(np.max(np.abs(dots))) * alpha + abs(log_sum)
    total = float(np.logaddexp(0.0, log_sum + 2.0**-38 + 2.0**-50 * size))
    return min(float(up(total / (alpha - 1))), full)


def _log_cells(power: float, start: np.ndarray, width: np.ndarray, fall: np.ndarray) -> np.ndarray:
    """log ∫ e^{k·ε}·(1 − fall·(e^{ε−a} − 1)/(e^h − 1)) dε over cells [a, a + h], k = `power`, 0 ≤ fall ≤ 1.

    With F(k) = (e^{kh} − 1)/k it is e^{ka}·(F(k) − fall·(F(k+1) − F(k))/(e^h − 1)), computed from positive parts,
    (1 − fall)·F(k) + fall·(F(k)·e^h − F(k+1))/(e^h − 1); each is taken relative to e^{k(a+h)} for k > 0.
    """
    if power > 0:
        own, next_one = -np.expm1(-power * width) / power, -np.expm1(-(power + 1) * width) / (power + 1)
        # F(k)e^h − F(k+1) = e^{(k+1)h}·(own − next): own > next
        last, ahead = power * (start + width), (own - next_one) / -np.expm1(-width)
    else:
        own, next_one = -np.expm1(power * width) / -power, -np.expm1((power + 1) * width) / -(power + 1)
        last, ahead = power * start, (own * np.exp(width) - next_one) / np.expm1(width)
    # the difference of two close numbers: no more than h/2 of what is rounded is added
    ahead = np.maximum(ahead, 0.0) + 2.0**-50 * own / np.minimum(width, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(last + np.log((1 - fall) * own + fall * ahead))


def _rate(name: str, value: Any) -> float:
    return number_between(name, positive_number(name, value), 0, 1)


@dataclass(frozen=True, kw_only=True)
class _BatchTerm(Term):
    """A sum over a random batch of gradients clipped to C; `noise_multiplier` is the noise on the sum over C.

    Poisson: each record with probability `rate`. Fixed size: a share `rate` of the records, without replacement. Both
    are for replace-one neighbours; "poisson-add-remove" is Poisson sampling where one neighbour has a record more.
    """

    sampling: str
    rate: float
    noise_multiplier: float
    samplings: ClassVar[tuple[str, ...]] = ("poisson", "fixed-size", _ADDED)
    checks: ClassVar = {"rate": _rate, "noise_multiplier": within_floats}

    def __post_init__(self) -> None:
        choice("sampling", self.sampling, self.samplings)
        super().__post_init__()

    @property
    def is_symmetric(self) -> bool:
        return self.sampling != _ADDED

    @property
    def adjacency(self) -> str:
        return "replace-one" if self.is_symmetric else "add-remove-one"

    @property
    def _moved(self) -> int:
        """How many clipped gradients a neighbour changes."""
        return 2 if self.is_symmetric else 1

    @property
    def _full(self) -> float:
        """How far the sum moves in units of the noise: the loss of the full batch."""
        return float_above(self._moved / Fraction(self.noise_multiplier))

    @property
    def spread(self) -> float:
        return self._moved * self.rate / self.noise_multiplier

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return self.directed(epsilon, backward=False)


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussianTerm(_BatchTerm):
    """One such sum with Gaussian noise; `noise_multiplier` is its standard deviation over C."""

    kind: ClassVar[str] = "subsampled-gaussian"

    @property
    def gaussian_mu(self) -> float:
        """That of the full batch, 2/noise (1/noise for add/remove): sampling only helps, though by no known μ."""
        return self._full

    def renyi(self, alpha: float) -> float:
        def log_profile(epsilon: np.ndarray) -> np.ndarray:
            return log_profile_upper(self.sampling, self.rate, self.noise_multiplier, epsilon)

        return subsampled_renyi(log_profile, 2 / self._moved * self.noise_multiplier, self.rate, alpha)

    def directed(self, epsilon: np.ndarray, *, backward: bool) -> np.ndarray:
        added = add_profile if backward else remove_profile
        laws = {"poisson": poisson_profile, "fixed-size": fixed_size_profile, _ADDED: added}
        return laws[self.sampling](self.rate, self.noise_multiplier, epsilon)


@dataclass(frozen=True, kw_only=True)
class SubsampledLaplaceTerm(_BatchTerm):
    """One such sum with Laplace noise on each coordinate and gradients clipped in ℓ1 (docs/proofs/accounts.md, A3).

    `noise_multiplier` is the scale of the noise over C. Its loss is bounded.
    """

    kind: ClassVar[str] = "subsampled-laplace"

    @property
    def pure_epsilon(self) -> float:
        """log(1 − q + q·e^ε) of a share q of ε; for Poisson sampling under replace-one the ratio for ±ε/2."""
        if self.sampling == "poisson":
            value = _log_mixed(self.rate, self._full / 2) - _log_mixed(self.rate, -self._full / 2)
        else:
            value = _log_mixed(self.rate, self._full)
        return min(float(up(value, 44)), self._full)

    @property
    def laplace_epsilon(self) -> float:
        return self._full

    @property
    def spread(self) -> float:
        return 2 * float(self.profile(np.asarray(0.0)))

    def directed(self, epsilon: np.ndarray, *, backward: bool) -> np.ndarray:
        if self.sampling == "poisson":
            return laplace_poisson_profile(self.rate, self.noise_multiplier, epsilon)
        law = _added if backward and not self.is_symmetric else _amplified
        return law(self.rate, _laplace(self._moved / Fraction(self.noise_multiplier)), epsilon)


def _log_mixed(share: float, loss: float) -> float:
    """log(1 − q + q·e^loss)."""
    if loss < _LARGEST_EXPONENT:
        return math.log1p(share * math.expm1(loss))
    return loss + math.log(share) + math.log1p((1 / share - 1) * math.exp(-loss))


@dataclass(frozen=True, kw_only=True)
class TruncatedGaussianTerm(_BatchTerm):
    """A Poisson-sampled Gaussian step whose batch, where larger, is cut to `largest_batch` records drawn from it.

    `records` is the public number of records ("poisson", replace-one), or a public bound on it ("poisson-add-remove").
    A cut batch trades the record for another one: it moves the sum by up to 2C (docs/proofs/accounts.md, A4).
    """

    records: int
    largest_batch: int
    kind: ClassVar[str] = "truncated-gaussian"
    samplings: ClassVar[tuple[str, ...]] = ("poisson", _ADDED)
    checks: ClassVar = {**_BatchTerm.checks, "records": positive_integer, "largest_batch": positive_integer}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.largest_batch >= self.records:
            raise ArgumentError(f"largest_batch must be below the {self.records} records; got {self.largest_batch}.")

    @property
    def cut_chances(self) -> tuple[float, float]:
        """The probability that the others alone fill a batch, and that the record is then in it; rounded up."""
        limit, others = self.largest_batch, self.records - 1
        full = float(special.bdtrc(limit - 1, others, self.rate))
        most = self.rate * limit / (limit + 1)
        if self.is_symmetric and full > 0:
            kept = limit * float(special.bdtrc(limit, self.records, self.rate)) / (self.records * full)
            most = min(most, up(kept, 30))
        return min(up(full, 30) + 1e-300, 1.0), up(most)

    @property
    def plain_chance(self) -> float:
        """The probability that nothing can be cut, rounded up; at most 1 where the number of records is not known."""
        if not self.is_symmetric:
            return 1.0
        unfilled = float(special.bdtr(self.largest_batch - 1, self.records - 1, self.rate))
        return float(min(up(unfilled, 30), 1.0))

    @property
    def gaussian_mu(self) -> float:
        """That of the full batch, 2/noise."""
        return float_above(2 / Fraction(self.noise_multiplier))

    def renyi(self, alpha: float) -> float:
        full, kept = self.cut_chances
        log_plain = math.log(max(self.plain_chance, 1e-300))

        def log_profile(epsilon: np.ndarray) -> np.ndarray:
            plain = log_plain + log_profile_upper(self.sampling, self.rate, self.noise_multiplier, epsilon)
            cut = math.log(full) + log_profile_upper("fixed-size", kept, self.noise_multiplier, epsilon)
            return np.asarray(np.logaddexp(plain, cut))

        return subsampled_renyi(log_profile, self.noise_multiplier, min(2 * self.rate, 1.0), alpha)

    def directed(self, epsilon: np.ndarray, *, backward: bool) -> np.ndarray:
        (full, kept), noise = self.cut_chances, self.noise_multiplier
        if self.is_symmetric:
            plain, cut = poisson_profile(self.rate, noise, epsilon), fixed_size_profile(kept, noise, epsilon)
            return np.asarray(np.minimum(up(self.plain_chance * plain + full * cut), 1.0))
        law = add_profile if backward else remove_profile
        plain, cut = law(self.rate, noise, epsilon), law(kept, noise / 2, epsilon)
        return np.asarray(np.minimum(up(plain + full * np.maximum(cut - plain, 0.0)), 1.0))
