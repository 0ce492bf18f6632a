"""Laws on products and powers."""

from __future__ import annotations

import numpy as np

from dpmanifolds.distributions.base import TangentLaw, gaussian_law, laplace_law
from dpmanifolds.distributions.flat import FlatGaussian, FlatLaplace, is_euclidean
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold, Power, Product

__all__ = ["ProductGaussian"]


class ProductGaussian(TangentLaw):
    """The Gaussian on M₁ × … × M_m: squared distances add, so it is the product of the factors' Gaussians.

    E ρ² is the sum of the factors'; the distance itself has no one-dimensional form.

    >>> from dpmanifolds import Euclidean, Product, Sphere
    >>> from dpmanifolds.distributions import gaussian_law
    >>> law = gaussian_law(Product(Sphere(2), Euclidean(3)), 0.1)
    >>> round(law.distance_moment(2), 6)
    0.049933
    """

    def __init__(self, manifold: Product | Power, sigma: float) -> None:
        super().__init__(manifold, sigma)
        self._factors = [(gaussian_law(factor, sigma), copies) for factor, copies in _factors(manifold)]

    @property
    def log_normalizer(self) -> float:
        return sum(copies * law.log_normalizer for law, copies in self._factors)

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        blocks = [
            law.sample_coordinates(count * copies, rng).reshape((count, copies * law.manifold.dim))
            for law, copies in self._factors
        ]
        return np.concatenate(blocks, axis=1)

    def distance_moment(self, order: float) -> float:
        if order != 2:
            return super().distance_moment(order)
        return sum(copies * law.distance_moment(2) for law, copies in self._factors)


def _factors(manifold: Product | Power) -> list[tuple[Manifold, int]]:
    """The factors, and how many copies of each stand side by side."""
    return [(factor, 1) for factor in manifold.factors] or [(manifold.single, manifold.copies)]


def _only_factor(manifold: Product | Power) -> Manifold | None:
    """The factor of a product that has just one."""
    (first, copies), *others = _factors(manifold)
    return first if copies == 1 and not others else None


@gaussian_law.register(Product)
@gaussian_law.register(Power)
def _(manifold: Product | Power, sigma: float) -> TangentLaw:
    if is_euclidean(manifold):
        return FlatGaussian(manifold, sigma)
    alone = _only_factor(manifold)
    return ProductGaussian(manifold, sigma) if alone is None else gaussian_law(alone, sigma)


@laplace_law.register(Product)
@laplace_law.register(Power)
def _(manifold: Product | Power, sigma: float) -> TangentLaw:
    if is_euclidean(manifold):
        return FlatLaplace(manifold, sigma)
    alone = _only_factor(manifold)
    if alone is not None:
        return laplace_law(alone, sigma)
    raise ArgumentError(
        f"the Riemannian Laplace law on {manifold!r} is not a product of laws on the factors, and no exact sampler of "
        "it is offered. Use WrappedLaplace or RiemannianGaussian."
    )
