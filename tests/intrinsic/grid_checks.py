"""The distance check of `checks` for laws whose distribution function is slow: through 2,000 of its values.

Linear interpolation between the quantiles of 20,000 draws is off by less than 1e−4, where the test sees 2e−2.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from dpmanifolds.intrinsic import TangentLaw
from tests.intrinsic.checks import FALSE_ALARM, MakeLaw, distances


def distance_p_value(drawn: np.ndarray, law: TangentLaw) -> float:
    grid = np.quantile(drawn, np.linspace(0, 1, 2000))
    below = law.distance_cdf(grid)
    return float(stats.kstest(drawn, lambda r: np.interp(r, grid, below)).pvalue)


def check_distance_law(make_law: MakeLaw, sigma: float, wrong: tuple[float, ...] = (0.7, 1.3)) -> None:
    """Draws at `sigma` pass the test against the exact law at `sigma`; draws at wrong scales fail it."""
    law = make_law(sigma)
    assert distance_p_value(distances(law), law) > FALSE_ALARM
    for factor in wrong:
        assert distance_p_value(distances(make_law(factor * sigma)), law) < FALSE_ALARM
