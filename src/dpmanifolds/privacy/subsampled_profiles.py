"""One step of noisy descent on a random batch: profiles and Rényi divergences under replace-one.

`noise` is the standard deviation of the noise on the SUM of the clipped gradients, in units of the clip norm C.

**Poisson** (each record takes part with probability q): given the other records, the neighbours' laws are
(1 − q)N(0, σ²) + qN(x, σ²) and the same with x', |x|, |x'| ≤ 1, up to a shift. The worst pair is x = e, x' = −e. Proof:
for e^ε ≥ 1 the divergence is max_S qP_x(S) − e^ε qP_x'(S) − (e^ε − 1)(1 − q)P_0(S). With p = P_x(S), Neyman and Pearson
give P_x'(S) ≥ Φ(Φ⁻¹(p) − |x − x'|/σ) ≥ Φ(Φ⁻¹(p) − 2/σ) and P_0(S) ≥ Φ(Φ⁻¹(p) − 1/σ), and one half-space attains both
for the antipodal pair. Its likelihood ratio grows with x and reaches e^ε where y = e^{x/σ²} solves
r·y² − (e^ε − 1)y − r·e^ε = 0, r = q/(1 − q)·e^{−1/2σ²}.

**Fixed size without replacement**, b of n: for ε ≥ 0 the profile is at most γ·δ(log(1 + (e^ε − 1)/γ)), γ = b/n, with δ
the profile of the full-batch step at replace-one sensitivity 2C (Balle, Barthe and Gaboardi 2018, Theorem 9). It bounds
both directions, so its symmetric extension is the profile of a dominating pair and composes (Zhu, Dong and Wang 2022,
Theorem 10).

**Laplace noise** of scale `noise`·C on each coordinate of a sum of gradients clipped to C in ℓ1, and **batches that are
cut** to a largest size, are in docs/proofs/accounts.md, A3 and A4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import special

from dpmanifolds.privacy._normal import log_delta_upper
from dpmanifolds.privacy.rounding import down, float_above, up

__all__ = [
    "add_profile",
    "fixed_size_profile",
    "laplace_add_profile",
    "laplace_fixed_size_profile",
    "laplace_poisson_profile",
    "log_profile_upper",
    "poisson_profile",
    "remove_profile",
    "subsampled_renyi",
]

_RELATIVE = 2.0**-44
_MARGIN = 120.0
_UNDERFLOW = 1e-280
_DOTS = 400
_MOST_DOTS = 200_000
_FINE = 0.05
_NEGLIGIBLE = 1e-7
_ROUNDS = 40


def poisson_profile(rate: float, noise: float, epsilon: np.ndarray) -> np.ndarray:
    """δ(ε), ε ≥ 0, of one Poisson-sampled step; an upper bound."""
    if rate == 1.0:
        return np.asarray(np.exp(log_delta_upper(float_above(2 / Fraction(noise)), epsilon)))
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


def laplace_fixed_size_profile(share: float, noise: float, epsilon: np.ndarray) -> np.ndarray:
    """The same for b = share·n records drawn without replacement; with 2·noise, that of a record removed."""
    return _amplified(share, _laplace(2 / Fraction(noise)), epsilon)


def laplace_add_profile(rate: float, noise: float, epsilon: np.ndarray) -> np.ndarray:
    """The same for a Poisson-sampled step and a record added."""
    return _added(rate, _laplace(1 / Fraction(noise)), epsilon)


def _gaussian(mu: Fraction) -> Callable[[np.ndarray], np.ndarray]:
    above = float_above(mu)
    return lambda epsilon: np.asarray(np.exp(log_delta_upper(above, epsilon)))


def _laplace(loss: Fraction) -> Callable[[np.ndarray], np.ndarray]:
    """1 − e^{(ε−ε₀)/2} up to the largest loss ε₀."""
    above = float_above(loss)
    return lambda epsilon: np.asarray(up(-np.expm1(np.minimum((epsilon - above) / 2, 0.0))))


def _amplified(share: float, base: Callable[[np.ndarray], np.ndarray], epsilon: np.ndarray) -> np.ndarray:
    """γ·δ(log(1 + (e^ε − 1)/γ))."""
    level = epsilon + np.log1p((1 / share - 1) * -np.expm1(-epsilon))
    return np.asarray(up(share * base(down(level, 50)), 50))


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
    if sampling == "poisson-add-remove":
        return log_profile_upper("fixed-size", rate, 2 * noise, epsilon)
    if sampling == "fixed-size":
        base = down(epsilon + np.log1p((1 / rate - 1) * -np.expm1(-epsilon)), 50)
        return np.asarray(math.log(rate) + log_delta_upper(float_above(2 / Fraction(noise)), base) + _RELATIVE)
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
