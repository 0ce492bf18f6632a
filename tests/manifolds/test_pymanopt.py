"""pymanopt's solvers find our Fréchet means."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    Euclidean,
    Grassmann,
    Hyperbolic,
    NotAvailableError,
    PlanarShapes,
    Power,
    Product,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
    frechet_mean,
    pymanopt_manifold,
)
from dpmanifolds._points import leaves
from tests.manifolds.cases import MANIFOLDS, tangent_of_length

pytestmark = pytest.mark.grid

SPACES = [
    Euclidean(3),
    Sphere(2),
    Hyperbolic(3),
    SPD(3),
    SPD(2, "log-euclidean"),
    SPD(2, "log-cholesky"),
    PlanarShapes(4),
    Grassmann(5, 2),
    SpecialOrthogonal(3),
    Power(Sphere(2), 2),
]


def records_around(space, count=12):
    rng = np.random.default_rng(0)
    center = space.random_point(rng=rng)
    tangents = space.from_coordinates(center, 0.2 * rng.standard_normal((count, space.dim)))
    return center, space.exp(center, tangents)


def mean_problem(pymanopt, space, records):
    """½·mean ρ², its gradient −mean log, and its Hessian by differences of gradients carried back."""
    adapted = pymanopt_manifold(space)

    @pymanopt.function.numpy(adapted)
    def cost(x):
        return float(np.mean(space.squared_dist(x, records))) / 2

    @pymanopt.function.numpy(adapted)
    def gradient(x):
        return -np.mean(space.log(x, records), axis=0)

    @pymanopt.function.numpy(adapted)
    def hessian(x, v):
        step = 1e-4
        moved = space.exp(x, step * v)
        return (space.transport(moved, x, gradient(moved)) - gradient(x)) / step

    return pymanopt.Problem(adapted, cost, riemannian_gradient=gradient, riemannian_hessian=hessian)


@pytest.mark.needs("pymanopt")
# conjugate gradients divide by a step of length 0 where a line search no longer moves
@pytest.mark.filterwarnings("ignore:invalid value encountered in scalar divide:RuntimeWarning")
@pytest.mark.parametrize("solver", ["SteepestDescent", "ConjugateGradient", "TrustRegions"])
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_solvers_of_pymanopt_find_the_frechet_mean(space, solver):
    pymanopt = pytest.importorskip("pymanopt")
    center, records = records_around(space)
    problem = mean_problem(pymanopt, space, records)
    optimizer = getattr(pymanopt.optimizers, solver)(verbosity=0, min_gradient_norm=1e-9, max_iterations=300)
    found = optimizer.run(problem, initial_point=center).point
    assert float(space.dist(found, frechet_mean(space, records).point)) < 1e-6


@pytest.mark.needs("pymanopt")
def test_a_product_is_that_of_pymanopt():
    """−a·x + ½|y − b|² on a sphere and positive matrices is least at (a/|a|, b)."""
    pymanopt = pytest.importorskip("pymanopt")
    space, a, b = Product(Sphere(2), SPD(2)), np.array([1.0, 2.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    adapted = pymanopt_manifold(space)

    @pymanopt.function.numpy(adapted)
    def cost(x, y):
        return float(np.sum((y - b) ** 2)) / 2 - float(a @ x)

    @pymanopt.function.numpy(adapted)
    def gradient(x, y):
        return [-a, y - b]

    @pymanopt.function.numpy(adapted)
    def hessian(x, y, u, v):
        return [np.zeros(3), v]

    problem = pymanopt.Problem(adapted, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    for solver in (pymanopt.optimizers.ConjugateGradient, pymanopt.optimizers.TrustRegions):
        optimizer = solver(verbosity=0, min_gradient_norm=1e-9, max_iterations=300)
        found = optimizer.run(problem, initial_point=[np.eye(3)[0], np.eye(2)]).point
        assert float(space.dist(tuple(found), (a / 3, b))) < 1e-6


@pytest.mark.needs("pymanopt")
def test_frames_of_largest_variance_by_euclidean_derivatives():
    """tr(xᵀAx·diag(p, …, 1)) is largest at the eigenvectors: gradient and Hessian are converted by the manifold."""
    pymanopt = pytest.importorskip("pymanopt")
    space, rng = Stiefel(5, 2), np.random.default_rng(1)
    basis = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    matrix, weights = basis @ np.diag([9.0, 6.0, 3.0, 2.0, 1.0]) @ basis.T, np.diag([2.0, 1.0])
    adapted = pymanopt_manifold(space)

    @pymanopt.function.numpy(adapted)
    def cost(x):
        return -float(np.trace(x.T @ matrix @ x @ weights))

    @pymanopt.function.numpy(adapted)
    def gradient(x):
        return -2 * matrix @ x @ weights

    @pymanopt.function.numpy(adapted)
    def hessian(x, v):
        return -2 * matrix @ v @ weights

    problem = pymanopt.Problem(adapted, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    optimizer = pymanopt.optimizers.TrustRegions(verbosity=0, min_gradient_norm=1e-9)
    found = optimizer.run(problem, initial_point=space.random_point(rng=2))
    assert np.allclose(np.abs(basis[:, :2].T @ found.point), np.eye(2), atol=1e-8)
    assert found.iterations < 30


def test_without_pymanopt_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymanopt", None)
    with pytest.raises(NotAvailableError, match="pip install"):
        pymanopt_manifold(Sphere(2))


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_typical_distances_are_lengths_of_the_space(manifold):
    assert 0 < manifold.typical_dist < np.inf
    if manifold.typical_dist > np.sqrt(manifold.dim) + 1e-12:
        assert isinstance(manifold, (Product, Power))


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_projections_are_tangent_and_leave_tangent_vectors_alone(manifold):
    rng = np.random.default_rng(3)
    base = manifold.random_point(rng=rng)
    vector = tangent_of_length(manifold, base, rng, 1.0)
    kept, found = (manifold.project_tangent(base, given) for given in (vector, manifold.random_point(rng=rng)))
    again = manifold.from_coordinates(base, manifold.to_coordinates(base, found))
    for one, other in zip(leaves((kept, found)), leaves((vector, again)), strict=True):
        assert np.allclose(one, other, atol=1e-10)
