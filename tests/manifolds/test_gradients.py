"""Euclidean gradients become Riemannian ones on every manifold, against finite differences along geodesics."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import ArgumentError, PlanarShapes, Product, SpecialOrthogonal, Sphere
from dpmanifolds._points import leaves
from tests.manifolds.cases import MANIFOLDS, tangent_of_length

pytestmark = pytest.mark.grid


def _target(manifold, rng):
    """A random ambient array like a point, for f(w) = Re⟨target, w⟩ + ¼Σ|w|⁴."""
    point = manifold.random_point(rng=rng)

    def make(leaf):
        turned = 1j * rng.standard_normal(leaf.shape) if leaf.dtype.kind == "c" else 0.0
        return rng.standard_normal(leaf.shape) + turned

    return tuple(make(leaf) for leaf in point) if isinstance(point, tuple) else make(point)


def _value(w, target):
    return sum(
        float(np.sum((leaf.conj() * t).real) + np.sum((np.abs(leaf) ** 2) ** 2) / 4)
        for leaf, t in zip(leaves(w), leaves(target), strict=True)
    )


def _egrad(w, target):
    parts = [t + np.abs(leaf) ** 2 * leaf for leaf, t in zip(leaves(w), leaves(target), strict=True)]
    return tuple(parts) if isinstance(w, tuple) else parts[0]


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_the_riemannian_gradient_is_the_derivative_along_every_geodesic(manifold):
    rng = np.random.default_rng(5)
    w, target = manifold.random_point(rng=rng), _target(manifold, rng)
    # functions on a quotient must not see the phase
    quotient = isinstance(manifold, PlanarShapes)
    egrad = 2 * target * np.vdot(target, w) if quotient else _egrad(w, target)

    def value(point):
        return float(np.abs(np.vdot(target, point)) ** 2) if quotient else _value(point, target)

    gradient = manifold.riemannian_gradient(w, egrad)
    for _ in range(3):
        v = tangent_of_length(manifold, w, rng, 0.3)
        h = 1e-4
        slope = (value(manifold.exp(w, manifold.scale(h, v))) - value(manifold.exp(w, manifold.scale(-h, v)))) / (2 * h)
        size = float(np.sqrt(manifold.inner(w, gradient, gradient)))
        assert float(manifold.inner(w, gradient, v)) == pytest.approx(slope, abs=2e-6 * (1 + size))


@pytest.mark.parametrize("manifold", [Sphere(2), SpecialOrthogonal(3), Product(Sphere(2), Sphere(1))], ids=repr)
def test_many_gradients_convert_at_once(manifold):
    rng = np.random.default_rng(0)
    w = manifold.random_point(rng=rng)
    many = manifold.random_point(7, rng=rng)
    rows = manifold.gradient_coordinates(w, many)
    assert rows.shape == (7, manifold.dim)
    one = tuple(part[3] for part in many) if isinstance(many, tuple) else many[3]
    assert np.allclose(rows[3], manifold.gradient_coordinates(w, one))


def test_a_gradient_of_the_wrong_shape_is_refused():
    with pytest.raises(ArgumentError, match=r"shape \(\.\.\., 3\)"):
        Sphere(2).riemannian_gradient(np.array([0.0, 0.0, 1.0]), np.zeros(4))
    with pytest.raises(ArgumentError, match="tuple of 2"):
        Product(Sphere(2), Sphere(1)).gradient_coordinates((np.zeros(3), np.zeros(2)), np.zeros(5))


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_the_riemannian_hessian_is_the_second_derivative_along_every_geodesic(manifold):
    rng = np.random.default_rng(7)
    w, target = manifold.random_point(rng=rng), _target(manifold, rng)
    quotient = isinstance(manifold, PlanarShapes)

    def value(point):
        return float(np.abs(np.vdot(target, point)) ** 2) if quotient else _value(point, target)

    egrad = 2 * target * np.vdot(target, w) if quotient else _egrad(w, target)

    def hessian_along(v):
        if quotient:
            return manifold.riemannian_hessian(w, egrad, 2 * target * np.vdot(target, v), v)
        # ∂²(¼|w|⁴)·v of each number
        parts = [np.abs(a) ** 2 * b + 2 * (a.conj() * b).real * a for a, b in zip(leaves(w), leaves(v), strict=True)]
        return manifold.riemannian_hessian(w, egrad, tuple(parts) if isinstance(w, tuple) else parts[0], v)

    for _ in range(3):
        u, v = (tangent_of_length(manifold, w, rng, 0.3) for _ in range(2))
        hessian = hessian_along(v)
        h = 1e-3
        ends = value(manifold.exp(w, manifold.scale(h, v))) + value(manifold.exp(w, manifold.scale(-h, v)))
        bend = (ends - 2 * value(w)) / h**2
        found = float(manifold.inner(w, hessian, v))
        size = float(manifold.norm(w, hessian)) + abs(value(w))
        assert found == pytest.approx(bend, abs=2e-5 * (1 + size))
        turned = hessian_along(u)
        assert float(manifold.inner(w, hessian, u)) == pytest.approx(
            float(manifold.inner(w, turned, v)), rel=1e-9, abs=1e-9 * size
        )


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_the_acceleration_of_geodesics_is_their_second_derivative(manifold):
    rng = np.random.default_rng(8)
    w = manifold.random_point(rng=rng)
    v, h = tangent_of_length(manifold, w, rng, 0.5), 1e-3
    ends = [manifold.exp(w, manifold.scale(sign * h, v)) for sign in (1, -1)]
    for found, ahead, behind, here in zip(
        *(leaves(part) for part in (manifold.acceleration(w, v, v), *ends, w)), strict=True
    ):
        assert np.allclose(found, (ahead + behind - 2 * here) / h**2, atol=1e-6 * (1 + np.max(np.abs(here))))
