"""The laws that every manifold obeys, on every array library."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import Manifold, Stiefel
from tests.manifolds.cases import MANIFOLDS, SMOOTH, tangent_of_length

pytestmark = pytest.mark.grid

every_manifold = pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
every_smooth_manifold = pytest.mark.parametrize("manifold", SMOOTH, ids=repr)
TOLERANCE = 2e-9
BATCH = (2, 3)


def leaves(value):
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]


def close(a, b, tolerance: float = TOLERANCE) -> bool:
    return all(np.allclose(x, y, rtol=tolerance, atol=tolerance) for x, y in zip(leaves(a), leaves(b), strict=True))


def combine(manifold: Manifold, a: float, u, b: float, v):
    """a·u + b·v for tangent vectors, tuples included."""
    if isinstance(u, tuple):
        return tuple(combine(f, a, x, b, y) for f, x, y in zip(manifold.factors, u, v, strict=True))
    return a * u + b * v


@pytest.fixture
def sample(manifold: Manifold):
    """Points and two tangent vectors at them, NumPy float64."""
    rng = np.random.default_rng(20)
    points = manifold.random_point(BATCH, rng=rng)
    return points, tangent_of_length(manifold, points, rng), tangent_of_length(manifold, points, rng)


@every_manifold
def test_random_points_and_results_of_exp_lie_on_the_manifold(manifold, sample, backend):
    base, v, _ = map(backend.array, sample)
    reached = manifold.exp(base, v)
    assert bool(np.all(backend.numpy(manifold.belongs(base, 1e-9))))
    assert bool(np.all(backend.numpy(manifold.belongs(reached, 1e-9))))
    assert [a.shape for a in leaves(reached)] == [a.shape for a in leaves(base)]
    assert all(a.dtype == b.dtype for a, b in zip(leaves(reached), leaves(base), strict=True))
    assert all(type(a) is type(b) for a, b in zip(leaves(reached), leaves(base), strict=True))


@every_manifold
def test_log_inverts_exp(manifold, sample, backend):
    base, v, _ = map(backend.array, sample)
    assert close(backend.numpy(manifold.log(base, manifold.exp(base, v))), sample[1])


@every_manifold
def test_exp_inverts_log(manifold, sample, backend):
    base, v, _ = map(backend.array, sample)
    point = manifold.exp(base, v)
    again = manifold.exp(base, manifold.log(base, point))
    assert np.max(backend.numpy(manifold.dist(again, point))) < 1e-9


@every_manifold
def test_dist_is_the_norm_of_log_and_symmetric(manifold, sample, backend):
    base, v, _ = map(backend.array, sample)
    point = manifold.exp(base, v)
    distance = backend.numpy(manifold.dist(base, point))
    assert distance.shape == BATCH
    assert close(distance, backend.numpy(manifold.norm(base, v)))
    assert close(distance, backend.numpy(manifold.norm(base, manifold.log(base, point))))
    assert close(distance, backend.numpy(manifold.dist(point, base)))
    assert np.max(backend.numpy(manifold.dist(base, base))) < 1e-7


@every_manifold
def test_triangle_inequality(manifold, sample, backend):
    base, u, v = map(backend.array, sample)
    a, b = manifold.exp(base, manifold.scale(0.5, u)), manifold.exp(base, manifold.scale(0.5, v))
    sides = [backend.numpy(manifold.dist(*pair)) for pair in ((base, a), (base, b), (a, b))]
    assert np.all(sides[2] <= sides[0] + sides[1] + 1e-12)
    assert np.all(sides[0] <= sides[2] + sides[1] + 1e-12)


@every_manifold
def test_geodesics_have_constant_speed(manifold, sample, backend):
    base, v, _ = map(backend.array, sample)
    point = manifold.exp(base, v)
    whole = backend.numpy(manifold.dist(base, point))
    for t in (0.0, 0.25, 0.6, 1.0):
        middle = manifold.geodesic(base, point, t)
        assert np.allclose(backend.numpy(manifold.dist(base, middle)), t * whole, atol=1e-7)
        assert np.allclose(backend.numpy(manifold.dist(middle, point)), (1 - t) * whole, atol=1e-7)
    times = backend.array(np.full(BATCH, 0.25))
    assert close(
        backend.numpy(manifold.geodesic(base, point, times)), backend.numpy(manifold.geodesic(base, point, 0.25))
    )


@every_manifold
def test_coordinates_are_an_isometry(manifold, sample, backend):
    base, u, v = map(backend.array, sample)
    cu, cv = manifold.to_coordinates(base, u), manifold.to_coordinates(base, v)
    assert tuple(cu.shape) == (*BATCH, manifold.dim)
    assert close(backend.numpy(manifold.from_coordinates(base, cu)), sample[1])
    product = np.sum(backend.numpy(cu) * backend.numpy(cv), axis=-1)
    assert close(product, backend.numpy(manifold.inner(base, u, v)))
    basis = backend.array(np.broadcast_to(np.eye(manifold.dim), (*BATCH, manifold.dim, manifold.dim)).copy())
    for j in range(min(manifold.dim, 6)):
        tangent = manifold.from_coordinates(base, basis[..., j, :])
        again = backend.numpy(manifold.to_coordinates(base, tangent))
        assert close(again, np.broadcast_to(np.eye(manifold.dim)[j], again.shape))


@every_smooth_manifold
def test_transport_is_an_isometry_that_keeps_the_velocity(manifold, sample, backend):
    base, u, v = map(backend.array, sample)
    to = manifold.exp(base, manifold.scale(0.7, u))
    moved_u, moved_v = manifold.transport(base, to, u), manifold.transport(base, to, v)
    assert close(backend.numpy(manifold.inner(to, moved_u, moved_v)), backend.numpy(manifold.inner(base, u, v)))
    velocity = manifold.scale(-1.0, manifold.log(to, base))
    assert close(backend.numpy(manifold.transport(base, to, manifold.log(base, to))), backend.numpy(velocity))
    assert close(backend.numpy(manifold.transport(to, base, moved_v)), sample[2])


@every_manifold
def test_everything_broadcasts_one_base_against_many(manifold, sample):
    many = sample[0]

    def first(value):
        return tuple(map(first, value)) if isinstance(value, tuple) else value[0, 0]

    one = first(many)
    near = manifold.exp(one, tangent_of_length(manifold, one, np.random.default_rng(1), 0.3))
    row = manifold.random_point((), rng=3)
    assert manifold.batch_shape(row) == ()
    v_one = tangent_of_length(manifold, one, np.random.default_rng(1), 0.3)
    stacked = manifold.from_coordinates(one, np.stack([manifold.to_coordinates(one, v_one)] * 4))
    reached = manifold.exp(one, stacked)
    assert manifold.batch_shape(reached) == (4,)
    assert close(manifold.dist(one, reached), np.full(4, 0.3))
    assert manifold.batch_shape(manifold.log(one, reached)) == (4,)
    assert manifold.batch_shape(manifold.transport(one, reached, stacked)) == (4,)
    assert manifold.batch_shape(manifold.transport(one, near, v_one)) == ()
    assert manifold.batch_shape(manifold.random_tangent(many, rng=1)) == BATCH


@every_smooth_manifold
def test_half_squared_distance_has_gradient_minus_log_to_second_order(manifold):
    """f(exp(tv)) = f + t⟨grad, v⟩ + O(t²): the remainder divided by t² stays bounded as t shrinks."""
    rng = np.random.default_rng(4)
    base = manifold.random_point((), rng=rng)
    target = manifold.exp(base, tangent_of_length(manifold, base, rng, min(0.5, 0.3 * manifold.injectivity_radius)))
    v = tangent_of_length(manifold, base, rng, 1.0)
    slope = -float(manifold.inner(base, manifold.log(base, target), v))
    value = float(manifold.dist(base, target)) ** 2 / 2

    def remainder(t: float) -> float:
        moved = manifold.exp(base, manifold.scale(t, v))
        return float(manifold.dist(moved, target)) ** 2 / 2 - value - t * slope

    assert abs(remainder(1e-2) / 1e-4 - remainder(1e-3) / 1e-6) < 0.02
    # along the geodesic to the target itself the second derivative is exactly 1
    towards = manifold.log(base, target)
    whole = float(manifold.dist(base, target))
    moved = manifold.exp(base, manifold.scale(1e-2 / whole, towards))
    assert abs(float(manifold.dist(moved, target)) - (whole - 1e-2)) < 1e-10


@every_smooth_manifold
def test_log_volume_density_is_the_determinant_of_the_differential_of_exp(manifold):
    rng = np.random.default_rng(7)
    base = manifold.random_point((), rng=rng)
    v = tangent_of_length(manifold, base, rng)
    point = manifold.exp(base, v)
    center, step = manifold.to_coordinates(base, v), 1e-5
    columns = []
    for j in range(manifold.dim):
        ends = []
        for sign in (1, -1):
            shifted = center.copy()
            shifted[j] += sign * step
            moved = manifold.exp(base, manifold.from_coordinates(base, shifted))
            ends.append(manifold.to_coordinates(point, manifold.log(point, moved)))
        columns.append((ends[0] - ends[1]) / (2 * step))
    measured = np.linalg.slogdet(np.stack(columns))[1]
    assert abs(measured - float(manifold.log_volume_density(base, v))) < 1e-6


@every_smooth_manifold
def test_sectional_curvature_lies_within_the_stated_bounds(manifold):
    """Bertrand–Puiseux: d(exp(tu), exp(tv))² = t²|u−v|² − (K/3)·t⁴·|u∧v|² + O(t⁵) for orthonormal u, v."""
    if manifold.dim < 2:
        assert manifold.curvature_bounds == (0.0, 0.0)
        return
    lower, upper = manifold.curvature_bounds
    seen = []
    rng = np.random.default_rng(11)
    step = 1e-2 if not np.isfinite(manifold.injectivity_radius) else 1e-2 * min(manifold.injectivity_radius, 1)
    for _ in range(60):
        base = manifold.random_point((), rng=rng)
        frame = np.linalg.qr(rng.standard_normal((manifold.dim, 2)))[0].T
        u, v = (manifold.from_coordinates(base, step * row) for row in frame)
        squared = float(manifold.dist(manifold.exp(base, u), manifold.exp(base, v))) ** 2
        seen.append(3 * (2 * step**2 - squared) / step**4)
    slack = 2e-2 * max(1.0, abs(lower), abs(upper))
    assert lower - slack <= min(seen)
    assert max(seen) <= upper + slack
    if lower == upper:
        assert np.allclose(seen, lower, atol=slack)


@every_manifold
def test_float32_stays_float32(manifold, backend):
    rng = np.random.default_rng(5)
    base = manifold.random_point((3,), rng=rng)
    v = tangent_of_length(manifold, base, rng, 0.3)

    def single(value):
        if isinstance(value, tuple):
            return tuple(map(single, value))
        return value.astype(np.complex64 if np.iscomplexobj(value) else np.float32)

    base32, v32 = backend.array(single(base)), backend.array(single(v))
    point = manifold.exp(base32, v32)
    results = [point, manifold.log(base32, point), manifold.transport(base32, point, v32)]
    for leaf in (leaf for result in results for leaf in leaves(result)):
        assert str(leaf.dtype).rsplit(".", maxsplit=1)[-1] in ("float32", "complex64")
    for leaf in [manifold.dist(base32, point), manifold.to_coordinates(base32, v32), manifold.norm(base32, v32)]:
        assert str(leaf.dtype).endswith("float32")
    assert np.allclose(backend.numpy(manifold.dist(base32, point)), 0.3, atol=2e-3)


@every_manifold
def test_equality_and_repr(manifold):
    assert manifold == type(manifold)(*manifold.parameters)
    assert hash(manifold) == hash(type(manifold)(*manifold.parameters))
    assert manifold != Stiefel(9, 3)
    assert type(manifold).__name__[:3] in repr(manifold)
