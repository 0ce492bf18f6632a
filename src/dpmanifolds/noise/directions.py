"""Uniform directions."""

from __future__ import annotations

import numpy as np


def uniform_directions(count: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """`count` independent, uniformly distributed unit vectors of R^dim, as rows.

    >>> import numpy as np
    >>> from dpmanifolds.noise import uniform_directions
    >>> bool(np.allclose(np.linalg.norm(uniform_directions(4, 3, np.random.default_rng(0)), axis=1), 1))
    True
    """
    draws = rng.standard_normal((count, dim))
    lengths = np.linalg.norm(draws, axis=1)
    # a row of exact zeros (probability about 2^-52 for dim 1) has no direction: take the first axis
    draws[lengths == 0, 0] = 1.0
    lengths[lengths == 0] = 1.0
    return np.asarray(draws / lengths[:, None])
