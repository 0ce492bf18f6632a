"""The geometry agrees with oracles written by other people or with other formulas, to nine digits.

SPD is compared with pyRiemann as installed; the rest with frozen values of mpmath (50 digits) and geomstats, which
freeze_oracles.py writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmanifolds import manifolds
from dpmanifolds.manifolds import SPD

FROZEN = Path(__file__).parent / "frozen"
TOLERANCE = 1e-9
PYRIEMANN_NAMES = {"affine-invariant": "riemann", "log-euclidean": "logeuclid", "log-cholesky": "logchol"}


def frozen_cases(with_key: str = "base") -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}-{case['manifold']}({', '.join(map(str, case['parameters']))})")
        for path in sorted(FROZEN.glob("*.json"))
        for case in json.loads(path.read_text())
        if with_key in case
    ]


@pytest.fixture(params=frozen_cases())
def frozen(request: pytest.FixtureRequest) -> tuple[Any, dict[str, Any]]:
    """A manifold and the oracle's arrays (pairs become complex numbers for shapes)."""
    case = request.param
    space = getattr(manifolds, case["manifold"])(*case["parameters"])
    arrays = {key: np.array(case[key]) for key in case.keys() - {"manifold", "parameters"}}
    if case["manifold"] == "PlanarShapes":
        arrays = {key: value if value.ndim == 0 else value @ np.array([1, 1j]) for key, value in arrays.items()}
    return space, arrays


def close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return np.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE)


def test_the_frozen_values_cover_every_curved_manifold_that_pyriemann_lacks():
    names = {parameter.values[0]["manifold"] for parameter in frozen_cases()}
    assert names == {"Sphere", "Hyperbolic", "PlanarShapes", "Grassmann", "SpecialOrthogonal", "Stiefel"}
    assert sum(path.stat().st_size for path in FROZEN.glob("*.json")) < 60_000


def test_distance_agrees_with_the_frozen_oracle(frozen):
    space, case = frozen
    assert close(space.dist(case["base"], case["point"]), case["dist"])


def test_log_agrees_with_the_frozen_oracle(frozen):
    space, case = frozen
    assert close(space.log(case["base"], case["point"]), case["log"])


def test_exp_agrees_with_the_frozen_oracle(frozen):
    space, case = frozen
    reached, expected = space.exp(case["base"], case["vector"]), case["exp"]
    if isinstance(space, manifolds.Grassmann):
        # a subspace has many bases
        reached, expected = reached @ reached.T, expected @ expected.T
    assert close(reached, expected)


@pytest.mark.parametrize("frozen", frozen_cases(with_key="transport"), indirect=True)
def test_transport_agrees_with_the_frozen_oracle(frozen):
    space, case = frozen
    assert close(space.transport(case["base"], case["point"], case["vector"]), case["transport"])


@pytest.fixture(params=PYRIEMANN_NAMES, ids=str)
def metric(request: pytest.FixtureRequest) -> str:
    pytest.importorskip("pyriemann")
    return request.param


def spd_sample(k: int, count: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices of condition up to 1e3, others, and symmetric directions."""
    rng = np.random.default_rng(k)
    frames = np.linalg.qr(rng.standard_normal((2, count, k, k)))[0]
    values = np.exp(rng.uniform(-np.log(1e3) / 2, np.log(1e3) / 2, size=(2, count, 1, k)))
    a, b = (frames * values) @ np.swapaxes(frames, -1, -2)
    v = rng.standard_normal((count, k, k))
    a, b, v = ((matrix + np.swapaxes(matrix, -1, -2)) / 2 for matrix in (a, b, v))
    return a, b, v


def relative_gap(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference of matrices, relative to the size of each."""
    return float(np.max(np.linalg.norm(ours - theirs, axis=(-2, -1)) / np.linalg.norm(theirs, axis=(-2, -1))))


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_spd_distance_agrees_with_pyriemann(metric, k):
    from pyriemann.geometry.distance import distance

    a, b, _ = spd_sample(k)
    theirs = distance(a, b, metric=PYRIEMANN_NAMES[metric])
    assert np.allclose(SPD(k, metric).dist(a, b), theirs, rtol=TOLERANCE, atol=0)


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_spd_log_agrees_with_pyriemann(metric, k):
    from pyriemann.geometry.tangentspace import log_map

    a, b, _ = spd_sample(k)
    # by default their affine-invariant vectors are the whitened ones; C12 asks for those of the manifold
    options = {"C12": True} if metric == "affine-invariant" else {}
    theirs = np.stack([log_map(y, x, metric=PYRIEMANN_NAMES[metric], **options) for x, y in zip(a, b, strict=True)])
    assert relative_gap(SPD(k, metric).log(a, b), theirs) < TOLERANCE


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_spd_exp_agrees_with_pyriemann(metric, k):
    from pyriemann.geometry.tangentspace import exp_map

    space = SPD(k, metric)
    a, _, v = spd_sample(k)
    v = v / space.norm(a, v)[:, None, None]
    options = {"Cm12": True} if metric == "affine-invariant" else {}
    theirs = np.stack([exp_map(u, x, metric=PYRIEMANN_NAMES[metric], **options) for x, u in zip(a, v, strict=True)])
    assert relative_gap(space.exp(a, v), theirs) < TOLERANCE


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_spd_transport_agrees_with_pyriemann(metric, k):
    from pyriemann.geometry.tangentspace import transport

    a, b, v = spd_sample(k)
    theirs = np.stack([transport(u, x, y, metric=PYRIEMANN_NAMES[metric]) for x, y, u in zip(a, b, v, strict=True)])
    assert relative_gap(SPD(k, metric).transport(a, b, v), theirs) < TOLERANCE


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_spd_inner_product_agrees_with_pyriemann(metric, k):
    from pyriemann.geometry.tangentspace import innerproduct

    space = SPD(k, metric)
    a, b, v = spd_sample(k)
    u = b - a
    theirs = np.array([innerproduct(p, q, x, metric=PYRIEMANN_NAMES[metric]) for p, q, x in zip(u, v, a, strict=True)])
    scale = space.norm(a, u) * space.norm(a, v)
    assert np.max(np.abs(space.inner(a, u, v) - theirs) / scale) < TOLERANCE


@pytest.mark.parametrize("t", [0.0, 0.3, 0.5, 1.0])
def test_spd_geodesic_agrees_with_pyriemann(metric, t):
    from pyriemann.geometry.geodesic import geodesic

    a, b, _ = spd_sample(4)
    theirs = geodesic(a, b, t, metric=PYRIEMANN_NAMES[metric])
    assert relative_gap(SPD(4, metric).geodesic(a, b, t), theirs) < TOLERANCE
