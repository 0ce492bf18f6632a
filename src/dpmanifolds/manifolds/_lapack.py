"""LAPACK for many small matrices on the host, where a matrix that it refuses costs the others nothing.

>>> import numpy as np
>>> factors = call_each(np.linalg.cholesky, np.stack([4 * np.eye(2), -np.eye(2)]))
>>> factors[0].tolist(), bool(np.isnan(factors[1]).all())
([[2.0, 0.0], [0.0, 2.0]], True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmanifolds._points import leaves, map_parts

__all__ = ["call_each"]


def call_each(routine: Callable[[np.ndarray], Any], matrices: np.ndarray) -> Any:
    """routine(matrices) for a routine of `np.linalg`, with NaN for the matrices that it refuses.

    NumPy calls LAPACK once for each matrix, on a copy of that matrix in the same place, so that what comes out for one
    does not depend on the others; only its refusal is for all of them together. Where it refuses they are handed over
    one by one: the same calls, hence the same bits (tests/sums/test_contract.py).
    """
    try:
        return routine(matrices)
    except np.linalg.LinAlgError:
        pass
    found = routine(np.broadcast_to(np.eye(matrices.shape[-1]), (1, *matrices.shape[1:])))
    results = map_parts(lambda part: np.full((len(matrices), *part.shape[1:]), np.nan), found)
    for row, matrix in enumerate(matrices):
        try:
            one = routine(matrix[None])
        except np.linalg.LinAlgError:
            continue
        for result, part in zip(leaves(results), leaves(one), strict=True):
            result[row] = part[0]
    return results
