"""What every law must show: its distance law, the uniformity of its direction, its equivariance.

All tests run at fixed seeds with n = 20,000 draws and a false-alarm rate of 1e−6 per p-value; the distance test
must also reject draws made with 0.7 and 1.3 times the scale.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from dpmanifolds.intrinsic import RiemannianLaw, TangentLaw

COUNT = 20_000
FALSE_ALARM = 1e-6

MakeLaw = Callable[[float], TangentLaw]


def distances(law: TangentLaw, seed: int = 1, count: int = COUNT) -> np.ndarray:
    return np.linalg.norm(law.sample_coordinates(count, np.random.default_rng(seed)), axis=1)


def distance_p_value(drawn: np.ndarray, law: TangentLaw) -> float:
    """Kolmogorov–Smirnov against the law's own distribution function."""
    return float(stats.kstest(drawn, law.distance_cdf).pvalue)


def check_distance_law(make_law: MakeLaw, sigma: float, wrong: tuple[float, ...] = (0.7, 1.3)) -> None:
    """Draws at `sigma` pass the test against the exact law at `sigma`; draws at wrong scales fail it."""
    law = make_law(sigma)
    assert distance_p_value(distances(law), law) > FALSE_ALARM
    for factor in wrong:
        assert distance_p_value(distances(make_law(factor * sigma)), law) < FALSE_ALARM


def check_direction(law: TangentLaw, seed: int = 2, count: int = COUNT) -> None:
    """Rayleigh's test (mean direction), Bingham's test (second moments), and independence from the distance."""
    drawn = law.sample_coordinates(count, np.random.default_rng(seed))
    radius = np.linalg.norm(drawn, axis=1)
    units = drawn / radius[:, None]
    d = units.shape[1]
    rayleigh = count * d * np.sum(np.mean(units, axis=0) ** 2)
    assert stats.chi2.sf(rayleigh, d) > FALSE_ALARM
    assert stats.spearmanr(radius, units[:, 0]).pvalue > FALSE_ALARM
    if d > 1:
        scatter = units.T @ units / count
        bingham = count * d * (d + 2) / 2 * (np.sum(scatter**2) - 1 / d)
        assert stats.chi2.sf(bingham, (d - 1) * (d + 2) // 2) > FALSE_ALARM
        assert stats.spearmanr(radius, units[:, 0] ** 2).pvalue > FALSE_ALARM


def check_equivariance(law: RiemannianLaw, isometry: Callable, count: int = COUNT) -> None:
    """isometry(X) has the law around isometry(footpoint): densities agree, and so do distances to a third point."""
    moved = type(law)(law.manifold, isometry(law.footpoint), law.sigma)
    first, second = law.sample(count, rng=3), moved.sample(count, rng=4)
    assert np.allclose(law.log_density(first), moved.log_density(isometry(first)), rtol=1e-7, atol=1e-7)
    witness = law.sample(rng=5)
    seen = law.manifold.dist(witness, isometry(first)), law.manifold.dist(witness, second)
    assert stats.ks_2samp(*seen).pvalue > FALSE_ALARM
