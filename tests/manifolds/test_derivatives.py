"""Derivatives by PyTorch and JAX are right at every point, of both orders, forward and reverse.

Everything is seen in orthonormal coordinates c of the tangent space at a base p: the gradient of ½ρ²(exp_p c, q) at 0
is −log_p q wherever q lies, and its Hessian at q = p is the metric, the identity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    Correlation,
    Euclidean,
    Grassmann,
    Hyperbolic,
    NotAvailableError,
    PlanarShapes,
    Power,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
)
from dpmanifolds.manifolds._derivatives import call_smoothly
from dpmanifolds.manifolds._symmetric import matrix_form
from tests.manifolds.cases import MANIFOLDS, tangent_of_length

# what PyTorch says of itself: that it batches complex conjugation slowly, and that it uses what it gave up
pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning"),
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]

# for JAX, which compiles every case: one of each kind
KINDS = [
    Euclidean(4),
    Sphere(3, curvature=4.0),
    Hyperbolic(3, curvature=-4.0),
    *(SPD(3, metric) for metric in ("affine-invariant", "log-euclidean", "log-cholesky")),
    Correlation(3),
    PlanarShapes(4),
    Grassmann(5, 2),
    SpecialOrthogonal(4),
    Stiefel(5, 2),
    Power(Sphere(2), 3),
]


@dataclass(frozen=True)
class Library:
    name: str
    transforms: Any
    module: Any

    def array(self, value):
        if isinstance(value, tuple):
            return tuple(map(self.array, value))
        return self.module.asarray(value)

    def grad(self, function):
        return self.first(self.transforms.grad, function)

    def hessian(self, function):
        return self.first(self.transforms.hessian, function)

    def forward(self, function):
        return self.first(self.transforms.jacfwd, function)

    def reverse(self, function):
        return self.first(self.transforms.jacrev, function)

    def first(self, transform, function):
        """By the first argument alone: the others may be complex."""
        return self.compile(lambda c, *rest: transform(lambda x: function(x, *rest))(c))

    def compile(self, function):
        if self.name == "torch":
            return function
        # to run once: the compiler had better not look for the best way
        options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
        return self.transforms.jit(function, compiler_options=options)


def load(name: str) -> Library:
    if name == "jax":
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        return Library(name, jax, jax.numpy)
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    return Library(name, torch.func, torch)


@pytest.fixture(params=["torch", "jax"])
def library(request):
    return load(request.param)


def each_case(cases):
    """All of them on PyTorch, one of each kind on JAX."""
    pairs = [("torch", case) for case in cases] + [("jax", case) for case in cases if case in KINDS]
    return pytest.mark.parametrize(("name", "manifold"), pairs, ids=repr)


def pair(manifold, length=0.5):
    rng = np.random.default_rng(0)
    base = manifold.random_point((), rng=rng)
    return base, manifold.exp(base, tangent_of_length(manifold, base, rng, length))


def half_square(manifold):
    """½ρ² from the point with coordinates c around `base`."""

    def value(c, base, other):
        return manifold.squared_dist(manifold.exp(base, manifold.from_coordinates(base, c)), other) / 2

    return value


def log_seen(manifold):
    """Coordinates at `base` of the logarithm of the point with coordinates c around `other`."""

    def value(c, base, other):
        point = manifold.exp(other, manifold.from_coordinates(other, c))
        return manifold.to_coordinates(base, manifold.log(base, point))

    return value


def slopes(function, dim, step=1e-5):
    columns = [(np.asarray(function(step * e)) - np.asarray(function(-step * e))) / (2 * step) for e in np.eye(dim)]
    return np.stack(columns, axis=-1)


@each_case(MANIFOLDS)
def test_half_the_squared_distance_has_gradient_minus_log_and_the_metric_as_its_hessian(name, manifold):
    library = load(name)
    base, other = pair(manifold)
    here, there, zero = library.array(base), library.array(other), library.array(np.zeros(manifold.dim))
    expected = -manifold.to_coordinates(base, manifold.log(base, other))
    gradient, hessian = library.grad(half_square(manifold)), library.hessian(half_square(manifold))
    assert np.allclose(gradient(zero, here, there), expected, rtol=1e-12, atol=1e-13)
    assert np.allclose(gradient(zero, here, here), 0, atol=1e-13)
    assert np.allclose(hessian(zero, here, here), np.eye(manifold.dim), atol=1e-12)
    measured = slopes(lambda c: gradient(library.array(c), here, there), manifold.dim)
    assert np.allclose(hessian(zero, here, there), measured, rtol=1e-6, atol=1e-8)


@each_case(MANIFOLDS)
def test_the_square_of_the_distance_has_gradient_zero_between_equal_points(name, manifold):
    library = load(name)
    base, other = pair(manifold)
    here, there, zero = library.array(base), library.array(other), library.array(np.zeros(manifold.dim))

    def half(c, here, there):
        return manifold.dist(manifold.exp(here, manifold.from_coordinates(here, c)), there) ** 2 / 2

    gradient = library.grad(half)
    assert np.allclose(gradient(zero, here, here), 0, atol=1e-13)
    expected = -manifold.to_coordinates(base, manifold.log(base, other))
    assert np.allclose(gradient(zero, here, there), expected, rtol=1e-12, atol=1e-13)


@each_case(MANIFOLDS)
def test_log_has_the_jacobian_of_finite_differences_forward_and_reverse(name, manifold):
    library = load(name)
    base, other = pair(manifold)
    here, zero, function = library.array(base), library.array(np.zeros(manifold.dim)), log_seen(manifold)
    jacobians = [library.reverse(function), library.forward(function)]
    for there in (other, base):
        measured = slopes(lambda c, there=there: function(c, base, there), manifold.dim)
        for jacobian in jacobians:
            assert np.allclose(jacobian(zero, here, library.array(there)), measured, rtol=1e-6, atol=1e-8)


@each_case([manifold for manifold in MANIFOLDS if not isinstance(manifold, Stiefel)])
def test_transport_has_the_jacobian_of_finite_differences_at_its_own_base_too(name, manifold):
    library = load(name)
    base, other = pair(manifold)
    rng = np.random.default_rng(1)
    vector, seen = (tangent_of_length(manifold, base, rng, 1.0) for _ in range(2))
    zero = library.array(np.zeros(manifold.dim))

    def moved(c, start, there, vector, seen):
        to = manifold.exp(there, manifold.from_coordinates(there, c))
        # against a field of vectors that has nothing to do with coordinates at `to`
        return manifold.inner(to, manifold.transport(start, to, vector), manifold.project_tangent(to, seen))

    gradient = library.grad(moved)
    for there in (other, base):
        arguments = (base, there, vector, seen)
        found = gradient(zero, *map(library.array, arguments))
        measured = slopes(lambda c, arguments=arguments: moved(c, *arguments), manifold.dim)
        assert np.allclose(found, measured, rtol=1e-6, atol=1e-8)


SPOTS = {
    "hyperbolic origin": (Hyperbolic(3), Hyperbolic(3).origin),
    "far from the hyperbolic origin": (Hyperbolic(2), Hyperbolic(2).exp(Hyperbolic(2).origin, np.array([0.0, 6, 8]))),
    "identity, affine-invariant": (SPD(4), np.eye(4)),
    "identity, log-Euclidean": (SPD(4, "log-euclidean"), np.eye(4)),
    "two equal eigenvalues": (SPD(3, "log-euclidean"), np.diag([2.0, 2.0, 5.0])),
    "identity, log-Cholesky": (SPD(3, "log-cholesky"), np.eye(3)),
    "identity, correlations": (Correlation(3), np.eye(3)),
    "identity, rotations": (SpecialOrthogonal(4), np.eye(4)),
    "first axes": (Grassmann(5, 2), np.eye(5)[:, :2]),
    "first axes, frames": (Stiefel(5, 2), np.eye(5)[:, :2]),
    "pole": (Sphere(2), np.eye(3)[2]),
}


@pytest.mark.parametrize("spot", SPOTS)
def test_derivatives_of_both_orders_are_right_at_awkward_points(spot, library):
    """At equal points, along ½ρ² from there, and in every entry of exp at v = 0."""
    manifold, base = SPOTS[spot]
    here, zero = library.array(base), library.array(np.zeros(manifold.dim))
    equal = half_square(manifold)
    far = spot.startswith("far")
    assert np.allclose(library.grad(equal)(zero, here, here), 0, atol=1e-11 if far else 1e-13)
    assert np.allclose(library.hessian(equal)(zero, here, here), np.eye(manifold.dim), atol=1e-10 if far else 1e-12)
    if far:
        return

    def reached(c):
        return manifold.exp(here, manifold.from_coordinates(here, c))

    frame = manifold.from_coordinates(base, np.eye(manifold.dim))
    assert np.allclose(np.moveaxis(np.asarray(library.reverse(reached)(zero)), -1, 0), frame, atol=1e-13)
    bend = np.asarray(library.hessian(reached)(zero))
    expected = manifold.acceleration(base, frame[:, None, ...], frame[None, ...])
    assert np.allclose(np.moveaxis(bend, (-2, -1), (0, 1)), expected, atol=1e-12)


def test_log_euclidean_gradients_from_the_identity_are_never_nan(library):
    space = SPD(3, "log-euclidean")
    records = space.random_point(200, rng=0)
    identity = library.array(np.eye(3))
    gradients = library.compile(
        library.transforms.vmap(library.transforms.grad(lambda x: space.squared_dist(identity, x) / 2))
    )(library.array(records))
    assert np.all(np.isfinite(np.asarray(gradients)))
    towards = library.compile(
        library.transforms.vmap(
            library.transforms.grad(lambda p, x: space.squared_dist(p, x) / 2), **_axes(library, (None, 0))
        )
    )(identity, library.array(records))
    assert np.allclose(np.asarray(towards), -space.log(np.eye(3), records), rtol=1e-12, atol=1e-13)


def _axes(library, axes):
    return {"in_axes": axes} if library.name == "jax" else {"in_dims": axes}


def test_equal_principal_angles_are_no_obstacle(library):
    space, angle = Grassmann(6, 3), 0.7
    base = np.eye(6)[:, :3]
    other = math.cos(angle) * base + math.sin(angle) * np.eye(6)[:, 3:]
    zero = library.array(np.zeros(space.dim))
    found = library.reverse(log_seen(space))(zero, library.array(base), library.array(other))
    assert np.allclose(found, slopes(lambda c: log_seen(space)(c, base, other), 9), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("angles", [(1.0, 1.0), (2.5, 0.0), (3.0, 0.1), (0.4, 2.0)])
def test_logarithms_of_rotations_have_the_right_slope(angles, library):
    space = SpecialOrthogonal(4)
    turn = np.zeros((4, 4))
    turn[0, 1], turn[2, 3] = angles
    base = space.random_point(rng=3)
    other = space.exp(base, base @ (turn - turn.T))
    zero = library.array(np.zeros(space.dim))
    found = library.reverse(log_seen(space))(zero, library.array(base), library.array(other))
    measured = slopes(lambda c: log_seen(space)(c, base, other), space.dim)
    assert np.allclose(found, measured, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("manifold", [Grassmann(5, 2), Stiefel(5, 2), SpecialOrthogonal(3), SPD(3)], ids=repr)
def test_project_is_differentiable_on_the_manifold(manifold, library):
    """It is the identity along the manifold, where all singular values are one."""
    base, _ = pair(manifold)
    start = np.eye(3) if isinstance(manifold, type(SPD(3))) else base
    vector = tangent_of_length(manifold, start, np.random.default_rng(2), 1.0)
    here, step = library.array(start), library.array(vector)
    for jacobian in (library.forward, library.reverse):
        found = jacobian(lambda t: manifold.project(here + t * step))(library.array(0.0))
        assert np.allclose(found, vector, atol=1e-12)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("manifold", KINDS, ids=repr)
def test_derivatives_map_over_batches_as_one_by_one(manifold):
    """torch.func.vmap of gradients, over either argument; JAX does the same in the tests above, compiled."""
    library = load("torch")
    rng = np.random.default_rng(4)
    base = manifold.random_point((), rng=rng)
    others = np.stack([manifold.exp(base, tangent_of_length(manifold, base, rng, 0.4)) for _ in range(3)])
    here, there = library.array(base), library.array(others)
    gradient = library.transforms.grad(lambda p, q: manifold.squared_dist(p, q) / 2)
    singly = [np.asarray(gradient(here, row)) for row in there]
    together = library.transforms.vmap(gradient, in_dims=(None, 0))(here, there)
    assert np.allclose(together, singly, rtol=1e-12, atol=1e-13)
    swapped = library.transforms.vmap(gradient, in_dims=(0, None))(there, here)
    assert np.allclose(swapped, [np.asarray(gradient(row, here)) for row in there], rtol=1e-12, atol=1e-13)
    along = np.stack([manifold.log(q, base) for q in others])
    moved = [manifold.riemannian_gradient(q, np.asarray(g)) for q, g in zip(others, swapped, strict=True)]
    assert np.allclose(moved, -along, rtol=1e-9, atol=1e-11)


@pytest.mark.needs("torch")
def test_backward_and_forward_mode_outside_of_torch_func():
    torch = pytest.importorskip("torch")
    space = SPD(3)
    base, other = map(torch.as_tensor, pair(space))
    base.requires_grad_()
    (gradient,) = torch.autograd.grad(space.squared_dist(base, other) / 2, base, create_graph=True)
    found = space.riemannian_gradient(base.detach(), gradient.detach())
    assert torch.allclose(found, -space.log(base.detach(), other), rtol=1e-12)
    (twice,) = torch.autograd.grad(gradient.sum(), base)
    assert bool(torch.all(torch.isfinite(twice)))
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        dual = ad.make_dual(base.detach(), torch.eye(3, dtype=torch.float64))
        slope = ad.unpack_dual(space.squared_dist(dual, other) / 2).tangent
    assert float(slope) == pytest.approx(float(torch.trace(gradient.detach())), rel=1e-12)


def read_divided(name, points):
    """f[x₀, …, x_n]: the corner of the n-th derivative at diag(x) along the pairs next to each other, which meet in
    one way only.
    """
    size = len(points)
    directions = np.zeros((size - 1, size, size))
    for at, direction in enumerate(directions):
        direction[at, at + 1] = direction[at + 1, at] = 1.0
    return float(matrix_form(name, np.diag(points), *directions)[0, -1])


@pytest.mark.parametrize("name", ["log", "exp", "arc"])
def test_divided_differences_keep_their_digits_close_together_and_far_apart(name):
    exact = {
        "log": mpmath.log,
        "exp": mpmath.exp,
        "arc": lambda x: mpmath.acos(x) / mpmath.sqrt(1 - x * x) if x != 1 else mpmath.mpf(1),
    }[name]

    def divided(points):
        if len(points) == 1:
            return exact(points[0])
        return (divided(points[1:]) - divided(points[:-1])) / (points[-1] - points[0])

    rng = np.random.default_rng(6)
    with mpmath.workdps(80):
        for spread in (1e-6, 1e-2, 0.1, 0.3, 1.0, 3.0):
            draw = np.sort(rng.standard_normal(4)) * spread
            points = {"log": np.exp(draw), "exp": draw, "arc": np.cos(np.minimum(np.abs(draw), 2.8))}[name]
            points = np.sort(points)
            for order, slack in ((1, 4e-15), (2, 4e-14), (3, 2e-10)):
                expected = divided([mpmath.mpf(float(x)) for x in points[: order + 1]])
                assert read_divided(name, points[: order + 1]) == pytest.approx(float(expected), rel=slack)


def test_derivatives_that_are_not_there_are_refused():
    with pytest.raises(NotAvailableError, match="order 4"):
        matrix_form("log", *[np.eye(2)] * 5)


def test_numpy_sees_the_value_alone():
    assert call_smoothly(lambda x: x + 1, lambda x: x / 0, (0,), np.float64(1.0)) == 2
