"""Integer noise on a lattice: the discrete Gaussian and the discrete Laplace, through OpenDP.

>>> from dpmanifolds.noise.lattice import LatticeGaussian, LatticeLaplace
>>> gaussian = LatticeGaussian(dim=3, scale=2.0**30)
>>> gaussian.release([10, -20, 30]).dtype.name
'int64'
>>> gaussian.rho(l2_steps=2.0**30)
0.5
>>> LatticeLaplace(dim=3, scale=4.0).epsilon(l1_steps=2.0)
0.5

Values, scales and sensitivities are in lattice steps. The draws and the privacy maps are OpenDP's. OpenDP draws from
its own secure source and takes no seed: with `rng` the same law is drawn by the reference samplers of
`lattice_reference`, for experiments that must be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from dpmanifolds._validate import positive_integer
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise.exact import exact_scale, saturated_sum, whole_steps
from dpmanifolds.noise.exact_arithmetic import BitStream
from dpmanifolds.noise.generators import as_generator
from dpmanifolds.noise.lattice_reference import discrete_gaussian, discrete_laplace

__all__ = ["LatticeGaussian", "LatticeLaplace"]

_LARGEST_SCALE = 2.0**52
_features = Lock()


@dataclass(frozen=True)
class LatticeGaussian:
    """values + N_Z(0, scale²) in every coordinate, P(k) ∝ exp(−k²/(2·scale²)) on the integers.

    It is ρ-zCDP with ρ = l2_steps²/(2·scale²) (Canonne, Kamath and Steinke 2020; docs/proofs/numerics.md, theorem 3),
    and what else it is says `Guarantee.discrete_gaussian`. Sums beyond int64 are set to the nearest int64, which is
    post-processing: no value is refused, so nothing about the values shows in an error.

    >>> from dpmanifolds.noise import LatticeGaussian
    >>> LatticeGaussian(dim=2, scale=8.0).rho(l2_steps=8.0)
    0.5
    >>> LatticeGaussian(dim=2, scale=8.0).release([0, 0], rng=0).shape
    (2,)
    """

    dim: int
    scale: float

    def __post_init__(self) -> None:
        _check(self.dim, self.scale)

    def release(self, values: Any, rng: Any = None) -> np.ndarray:
        """The integers `values` (dim,) plus noise, as int64 (dim,)."""
        steps = whole_steps(values, self.dim)
        if rng is None:
            return np.asarray(_gaussian(int(self.dim), float(self.scale))(steps.tolist()), dtype=np.int64)
        source = BitStream(as_generator(rng))
        variance = exact_scale(self.scale, _LARGEST_SCALE) ** 2
        return saturated_sum(steps, [discrete_gaussian(variance, source) for _ in range(self.dim)])

    def log_density(self, offsets: np.ndarray) -> np.ndarray:
        """ln of the density of noise (..., dim), up to a constant."""
        return np.asarray(-np.sum(np.square(offsets / float(self.scale)), axis=-1) / 2)

    def rho(self, l2_steps: float) -> float:
        """OpenDP's privacy map, rounded up: ρ of zCDP for values that move by up to `l2_steps` in ℓ2."""
        return float(_gaussian(int(self.dim), float(self.scale)).map(_distance("l2_steps", l2_steps)))


@dataclass(frozen=True)
class LatticeLaplace:
    """values + the discrete Laplace law in every coordinate, P(k) ∝ exp(−|k|/scale) on the integers.

    It is ε-DP with ε = l1_steps/scale (docs/proofs/numerics.md, theorem 3). Sums beyond int64 are set to the
    nearest int64, which is post-processing.

    >>> from dpmanifolds.noise import LatticeLaplace
    >>> LatticeLaplace(dim=2, scale=4.0).epsilon(l1_steps=2.0)
    0.5
    >>> LatticeLaplace(dim=2, scale=4.0).release([0, 0], rng=0).shape
    (2,)
    """

    dim: int
    scale: float

    def __post_init__(self) -> None:
        _check(self.dim, self.scale)

    def release(self, values: Any, rng: Any = None) -> np.ndarray:
        """The integers `values` (dim,) plus noise, as int64 (dim,)."""
        steps = whole_steps(values, self.dim)
        if rng is None:
            return np.asarray(_laplace(int(self.dim), float(self.scale))(steps.tolist()), dtype=np.int64)
        source = BitStream(as_generator(rng))
        scale = exact_scale(self.scale, _LARGEST_SCALE)
        return saturated_sum(steps, [discrete_laplace(scale, source) for _ in range(self.dim)])

    def log_density(self, offsets: np.ndarray) -> np.ndarray:
        """ln of the density of noise (..., dim), up to a constant."""
        return np.asarray(-np.linalg.norm(offsets / float(self.scale), ord=1, axis=-1))

    def epsilon(self, l1_steps: float) -> float:
        """OpenDP's privacy map, rounded up: ε for values that move by up to `l1_steps` in ℓ1."""
        return float(_laplace(int(self.dim), float(self.scale)).map(_distance("l1_steps", l1_steps)))


def _check(dim: Any, scale: Any) -> None:
    positive_integer("dim", dim)
    exact = exact_scale(scale, _LARGEST_SCALE)
    if exact != float(exact):
        raise ArgumentError(f"scale must be a floating-point number, for OpenDP takes no other; got {scale!r}.")


def _distance(name: str, steps: Any) -> float:
    if not 0 <= steps < math.inf:
        raise ArgumentError(f"must be finite and at least 0; got {steps!r}.", argument=name)
    nearest = float(steps)
    # an integer or a fraction may lie above the nearest float
    return nearest if nearest >= steps else math.nextafter(nearest, math.inf)


@contextmanager
def _contrib() -> Iterator[None]:
    """OpenDP asks for an opt-in to build these measurements; it is given here and taken back."""
    from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

    with _features:
        given_already = "contrib" in GLOBAL_FEATURES
        enable_features("contrib")
        try:
            yield
        finally:
            if not given_already:
                disable_features("contrib")


@lru_cache(maxsize=16)
def _gaussian(dim: int, scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    with _contrib():
        return make_gaussian(vector_domain(atom_domain(T="i64"), size=dim), l2_distance(T="f64"), scale=scale)


@lru_cache(maxsize=16)
def _laplace(dim: int, scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    with _contrib():
        return make_laplace(vector_domain(atom_domain(T="i64"), size=dim), l1_distance(T="f64"), scale=scale)
