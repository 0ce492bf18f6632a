"""What methods make of input that is none of theirs, and that they run compiled."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ArgumentError,
    ConvergenceError,
    Correlation,
    Euclidean,
    Grassmann,
    Hyperbolic,
    PlanarShapes,
    Power,
    Product,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
)
from tests.manifolds.cases import MANIFOLDS, tangent_of_length

pytestmark = pytest.mark.grid

REAL = [manifold for manifold in MANIFOLDS if not isinstance(manifold, (Product, PlanarShapes))]
KINDS = [
    Euclidean(2),
    Sphere(2),
    Hyperbolic(2),
    SPD(2),
    SPD(5),
    SPD(2, "log-euclidean"),
    SPD(5, "log-euclidean"),
    SPD(2, "log-cholesky"),
    Correlation(3),
    PlanarShapes(4),
    Grassmann(5, 2),
    SpecialOrthogonal(3),
    Stiefel(5, 2),
    Power(Sphere(2), 3),
]


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_a_point_of_another_shape_does_not_belong(manifold, backend):
    if isinstance(manifold, Product):
        point = backend.array(manifold.random_point(3, rng=0))
        assert not bool(manifold.belongs(point[:1]))
        assert not bool(manifold.belongs(point[0]))
        return
    point = manifold.random_point((3,), rng=0)
    longer = backend.array(np.concatenate([point, point], axis=-1))
    found = backend.numpy(manifold.belongs(longer))
    assert found.shape == (3,)
    assert not found.any()
    assert not bool(manifold.belongs(backend.array(np.asarray(1.0))))
    assert bool(np.all(backend.numpy(manifold.belongs(backend.array(point)))))


@pytest.mark.parametrize("manifold", REAL, ids=repr)
def test_complex_numbers_are_refused_where_their_imaginary_part_would_be_dropped(manifold, backend):
    rng = np.random.default_rng(0)
    point = manifold.random_point(rng=rng)
    vector = tangent_of_length(manifold, point, rng, 0.3)
    other = backend.array(manifold.exp(point, vector))
    odd, tilted = backend.array(point + 0.1j), backend.array(vector + 0.1j)
    point, vector = backend.array(point), backend.array(vector)
    calls = [
        ("dist", (odd, other)),
        ("squared_dist", (other, odd)),
        ("log", (point, odd)),
        ("log_coordinates", (point, odd)),
        ("exp", (point, tilted)),
        ("inner", (point, vector, tilted)),
        ("norm", (point, tilted)),
        ("transport", (point, odd, vector)),
        ("to_coordinates", (odd, vector)),
        ("geodesic", (odd, other, 0.5)),
        ("project", (odd,)),
        ("project_tangent", (point, tilted)),
    ]
    for name, arguments in calls:
        with pytest.raises(ArgumentError, match="real numbers; got complex ones"):
            getattr(manifold, name)(*arguments)
    assert not bool(manifold.belongs(odd))


def test_arguments_have_names():
    x, y = Sphere(2).random_point(2, rng=0)
    assert Sphere(2).log(base=x, point=y).tolist() == Sphere(2).log(x, y).tolist()
    torch = pytest.importorskip("torch")
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    assert Sphere(2).log(point=y, base=x).tolist() == Sphere(2).log(x, y).tolist()


@pytest.mark.parametrize("outside", [[1.0, 0.0], [0.8, 0.8], [3.0, 0.0], [np.nan, 0.0], [np.inf, 0.0]])
def test_poincare_coordinates_outside_of_the_ball_are_refused(outside, backend):
    plane = Hyperbolic(2)
    with pytest.raises(ArgumentError, match="norm must be below 1"):
        plane.from_poincare(backend.array(np.array([[0.1, 0.2], outside])))
    inside = backend.array(np.array([[0.1, 0.2], [0.0, 0.0]]))
    assert np.allclose(backend.numpy(plane.to_poincare(plane.from_poincare(inside))), backend.numpy(inside))


@pytest.mark.needs("jax", "torch")
def test_poincare_coordinates_outside_of_the_ball_are_nan_where_nothing_can_be_raised():
    points = np.array([[0.1, 0.2], [0.8, 0.8]])
    jax, torch = pytest.importorskip("jax"), pytest.importorskip("torch")
    for found in (
        jax.jit(Hyperbolic(2).from_poincare)(jax.numpy.asarray(points)),
        torch.func.vmap(Hyperbolic(2).from_poincare)(torch.as_tensor(points)),
    ):
        assert np.isfinite(np.asarray(found)[0]).all()
        assert np.isnan(np.asarray(found)[1]).all()


def test_frames_of_full_rank_are_two_spaces_and_refused():
    with pytest.raises(ArgumentError, match=r"n=3, p=3\. For p = n.*SpecialOrthogonal"):
        Stiefel(3, 3)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("manifold", KINDS, ids=repr)
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_every_method_compiles_or_maps_over_records_and_gives_the_same(manifold, library):
    rng = np.random.default_rng(0)
    base = manifold.random_point((2,), rng=rng)
    vector = tangent_of_length(manifold, base, rng, 0.3)
    one, point = base[0], manifold.exp(base, vector)

    def everything(one, base, vector, point):
        return (
            manifold.exp(base, vector),
            manifold.log(base, point),
            manifold.dist(base, point),
            manifold.squared_dist(base, point),
            manifold.transport(base, point, vector),
            manifold.inner(base, vector, vector),
            manifold.to_coordinates(base, vector),
            manifold.log_coordinates(one, point),
            manifold.geodesic(base, point, 0.3),
            manifold.belongs(base),
            manifold.project(base),
            manifold.project_tangent(base, point),
        )

    arrays = (one, base, vector, point)
    if library == "jax":
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        results = jax.jit(everything)(*map(jax.numpy.asarray, arrays))
    else:
        torch = pytest.importorskip("torch")
        results = torch.func.vmap(everything, in_dims=(None, 0, 0, 0))(*map(torch.as_tensor, arrays))
    for found, expected in zip(results, everything(*arrays), strict=True):
        assert np.allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-9)


def test_frames_too_far_apart_raise_or_are_nan_where_nothing_can_be_raised(monkeypatch):
    monkeypatch.setattr("dpmanifolds.manifolds.stiefel._LOG_ITERATIONS", 2)
    space = Stiefel(4, 2)
    x, y = space.random_point(2, rng=0)
    with pytest.raises(ConvergenceError, match="too far apart"):
        space.log(x, y)
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    assert np.isnan(np.asarray(jax.jit(space.log)(jax.numpy.asarray(x), jax.numpy.asarray(y)))).all()


@pytest.mark.needs("jax")
def test_landmarks_without_a_shape_are_nan_where_nothing_can_be_raised():
    jax = pytest.importorskip("jax")
    landmarks = np.random.default_rng(0).standard_normal((2, 4, 2))
    landmarks[1] = 3.0
    found = np.asarray(jax.jit(PlanarShapes(4).from_landmarks)(jax.numpy.asarray(landmarks)))
    assert np.allclose(found[0], PlanarShapes(4).from_landmarks(landmarks[0]))
    assert np.isnan(found[1]).all()
