"""The solvers of pymanopt on the manifolds of this package."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.manifolds.base import Manifold
from dpmanifolds.manifolds.product import Product


def pymanopt_manifold(manifold: Manifold) -> Any:
    """`manifold` as one of pymanopt's, for its solvers; NumPy arrays, a `Product` as pymanopt's own product.

    Give it to `pymanopt.Problem`, with Euclidean or Riemannian derivatives. Nothing that pymanopt computes is private.

    >>> import dpmanifolds as dpm
    >>> try:
    ...     dimension = dpm.pymanopt_manifold(dpm.Sphere(2)).dim
    ... except dpm.NotAvailableError:  # pymanopt is not installed
    ...     dimension = dpm.Sphere(2).dim
    >>> dimension
    2
    """
    try:
        import pymanopt
    except ModuleNotFoundError:
        raise NotAvailableError("pymanopt_manifold needs the package pymanopt: pip install 'pymanopt>=2.2'.") from None
    if isinstance(manifold, Product):
        return pymanopt.manifolds.Product([pymanopt_manifold(factor) for factor in manifold.factors])
    return _adapter()(manifold)


@cache
def _adapter() -> Any:
    from pymanopt.manifolds.manifold import Manifold as Theirs

    class Adapter(Theirs):  # type: ignore[misc, unused-ignore]
        """Their names for our methods."""

        def __init__(self, ours: Manifold) -> None:
            super().__init__(repr(ours), ours.dim)
            self.ours = ours
            self.dist, self.exp, self.log, self.transport = ours.dist, ours.exp, ours.log, ours.transport
            self.retraction, self.to_tangent_space = ours.retract, ours.project_tangent
            self.euclidean_to_riemannian_gradient = ours.riemannian_gradient
            self.euclidean_to_riemannian_hessian = ours.riemannian_hessian

        @property
        def typical_dist(self) -> float:
            return self.ours.typical_dist

        def inner_product(self, point: Array, tangent_vector_a: Array, tangent_vector_b: Array) -> Array:
            return self.ours.inner(point, tangent_vector_a, tangent_vector_b)

        def norm(self, point: Array, tangent_vector: Array) -> Array:
            return self.ours.norm(point, tangent_vector)

        def projection(self, point: Array, vector: Array) -> Array:
            return self.ours.project_tangent(point, vector)

        def random_point(self) -> Array:
            return self.ours.random_point()

        def random_tangent_vector(self, point: Array) -> Array:
            vector = self.ours.random_tangent(point)
            return vector / self.ours.norm(point, vector)

        def zero_vector(self, point: Array) -> Array:
            return np.zeros_like(point)

        def pair_mean(self, point_a: Array, point_b: Array) -> Array:
            return self.ours.geodesic(point_a, point_b, 0.5)

    return Adapter
