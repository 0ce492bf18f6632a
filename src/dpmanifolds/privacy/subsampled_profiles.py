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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import special

from dpmanifolds.privacy._normal import log_delta_upper
from dpmanifolds.privacy.loss_grid import connect_dots
from dpmanifolds.privacy.rounding import down, float_above, up

__all__ = ["fixed_size_profile", "poisson_profile", "subsampled_renyi"]

_RELATIVE = 2.0**-44
_MARGIN = 120.0
_UNDERFLOW = 2.0**-140
_LARGEST_EXPONENT = 600.0
_DOTS = 6000


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
    base = epsilon + np.log1p((1 / share - 1) * -np.expm1(-epsilon))
    return np.asarray(up(share * np.exp(log_delta_upper(float_above(2 / Fraction(noise)), down(base, 50))), 50))


def subsampled_renyi(profile: Callable[[np.ndarray], np.ndarray], noise: float, share: float, alpha: float) -> float:
    """D_α of one step with this symmetric profile, an upper bound; never above that of the full batch, 2α/σ².

    e^{(α−1)D_α} = 1 + α(α − 1)∫₀^∞ (e^{(α−1)ε} + e^{−αε}) δ(ε) dε. Up to a point the profile is replaced by chords
    through its dots, for which the integral is a sum over their law; beyond, δ ≤ share·Φ(−t), t = ε/μ − μ/2, μ = 2/σ,
    by the convexity of the hockey-stick divergence, and Φ(−t) ≤ e^{−t²/2}/2.
    """
    mu = 2 / noise
    full = alpha * mu * mu / 2
    reach = math.sqrt(2 * (alpha - 1) * full + _MARGIN)
    top = min(mu * ((alpha - 0.5) * mu + reach), _LARGEST_EXPONENT / (alpha - 1))
    reach = top / mu - (alpha - 0.5) * mu
    dots = np.append(0.0, np.geomspace(min(1e-4 * share * mu, top / 10), top, _DOTS))
    masses, beyond = connect_dots(dots, profile(dots))
    growth = np.expm1((alpha - 1) * dots[1:]) * -np.expm1(-alpha * dots[1:])
    plateau = alpha * math.expm1((alpha - 1) * top) - (alpha - 1) * math.expm1(-alpha * top)
    # the weight is below 2e^{(α−1)ε}, and ∫ e^{(α−1)ε − t²/2} dε beyond the top is μ√(2π)·e^{α(α−1)μ²/2}·Φ(−reach)
    log_tail = (alpha - 1) * full + float(special.log_ndtr(-reach)) + math.log(share * mu * math.sqrt(2 * math.pi))
    if log_tail > 0:
        return full
    tail = alpha * (alpha - 1) * math.exp(log_tail) + _UNDERFLOW
    total = float(np.sum(masses * growth)) + beyond * plateau + tail
    return min(math.log1p(up(total, 38)) / (alpha - 1), full)
