"""Write the values that test_oracles.py compares with: `python tests/manifolds/freeze_oracles.py`.

Needs NumPy, mpmath and geomstats, and nothing of dpmanifolds. Each case holds a base, a point and a tangent vector at
the base (float64, exactly as written), and what the oracle says of dist, log, exp and transport (base to point).

The mpmath oracles work with 50 digits and with other formulas than the package: geodesics of the symmetric spaces
and of the Stiefel manifold are one-parameter groups (`expm`), and transport is the motion of such a group.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

FOLDER = Path(__file__).parent / "frozen"
SEED = 20240229
Case = dict[str, Any]


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def frame(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((n, p)))[0]


def rotation(rng: np.random.Generator, n: int) -> np.ndarray:
    orthogonal = frame(rng, n, n)
    orthogonal[:, 0] *= np.sign(np.linalg.det(orthogonal))
    return orthogonal


def exact(array: np.ndarray) -> Any:
    """A float64 array as an mpmath matrix with the same numbers (a vector becomes a column)."""
    convert = mp.mpc if np.iscomplexobj(array) else mp.mpf
    return mp.matrix([[convert(entry) for entry in np.atleast_1d(row)] for row in array])


def adjoint(matrix: Any) -> Any:
    return matrix.transpose_conj()


def rounded(matrix: Any, like: np.ndarray) -> np.ndarray:
    convert = complex if np.iscomplexobj(like) else lambda entry: float(mp.re(entry))
    return np.array([convert(entry) for entry in matrix]).reshape(like.shape)


def frobenius(matrix: Any) -> Any:
    return mp.sqrt(mp.fsum(abs(entry) ** 2 for entry in matrix))


def written(array: np.ndarray) -> Any:
    """JSON form: complex numbers become pairs."""
    array = np.asarray(array)
    return np.stack([array.real, array.imag], axis=-1).tolist() if np.iscomplexobj(array) else array.tolist()


def case(name: str, parameters: list, **values: Any) -> Case:
    return {"manifold": name, "parameters": parameters, **{key: written(value) for key, value in values.items()}}


def space_form(d: int, curvature: float, rng: np.random.Generator) -> Case:
    """Sphere and hyperbolic space from cos θ = κ⟨x,y⟩ and the rotation or boost in the plane of x and y."""
    sign, root = (1 if curvature > 0 else -1), np.sqrt(abs(curvature))
    if sign > 0:
        base, point = unit(rng.standard_normal(d + 1)) / root, unit(rng.standard_normal(d + 1)) / root
        vector = rng.standard_normal(d + 1) / root
        vector -= curvature * (base @ vector) * base
    else:
        lift = [np.concatenate([[np.sqrt(1 + s @ s)], s]) / root for s in rng.standard_normal((2, d))]
        base, point = lift
        spatial = rng.standard_normal(d) / root
        vector = np.concatenate([[base[1:] @ spatial / base[0]], spatial])
    form = mp.diag([mp.mpf(sign)] + [mp.mpf(1)] * d)
    cos, sin, arccos = (mp.cos, mp.sin, mp.acos) if sign > 0 else (mp.cosh, mp.sinh, mp.acosh)
    kappa, scale = abs(mp.mpf(curvature)), mp.sqrt(abs(mp.mpf(curvature)))
    x, y, v = exact(base), exact(point), exact(vector)

    def inner(a: Any, b: Any) -> Any:
        return (a.T * form * b)[0]

    cosine = sign * kappa * inner(x, y)
    angle = arccos(cosine)
    log = (y - x * cosine) * (angle / sin(angle))
    direction = log * (scale / angle)
    along = inner(direction, v)
    moved = v + (direction * (cos(angle) - 1) - x * (sign * scale * sin(angle))) * along
    length = scale * mp.sqrt(inner(v, v))
    reached = x * cos(length) + v * (sin(length) / length)
    return case(
        "Sphere" if sign > 0 else "Hyperbolic",
        [d, curvature],
        base=base,
        point=point,
        vector=vector,
        dist=float(angle / scale),
        log=rounded(log, base),
        exp=rounded(reached, base),
        transport=rounded(moved, base),
    )


def planar_shapes(k: int, rng: np.random.Generator) -> Case:
    """CP^(k−2): dist = arccos|x*y|; geodesics and transport are exp(t(ux* − xu*)) in the unitary group."""
    draws = rng.standard_normal((3, k)) + 1j * rng.standard_normal((3, k))
    base, point, vector = draws - draws.mean(axis=-1, keepdims=True)
    base, point = unit(base), unit(point)
    vector = 0.4 * (vector - base * np.vdot(base, vector))
    x, y, v = exact(base), exact(point), exact(vector)
    product = (adjoint(x) * y)[0]
    angle = mp.acos(abs(product))
    aligned = y * (mp.conj(product) / abs(product))
    log = (aligned - x * mp.cos(angle)) * (angle / mp.sin(angle))
    motion = mp.expm(log * adjoint(x) - x * adjoint(log))
    return case(
        "PlanarShapes",
        [k],
        base=base,
        point=point,
        vector=vector,
        dist=float(angle),
        log=rounded(log, base),
        exp=rounded(mp.expm(v * adjoint(x) - x * adjoint(v)) * x, base),
        transport=rounded(motion * v * (product / abs(product)), base),
    )


def grassmann(n: int, p: int, rng: np.random.Generator) -> Case:
    """Gr(n,p): log = U arctan(Σ) Vᵀ with (y − xxᵀy)(xᵀy)⁻¹ = UΣVᵀ; motions exp(vxᵀ − xvᵀ)."""
    base, point = frame(rng, n, p), frame(rng, n, p)
    vector = rng.standard_normal((n, p)) / 2
    vector -= base @ (base.T @ vector)
    x, y, v = exact(base), exact(point), exact(vector)
    overlap = x.T * y
    left, tangents, right = mp.svd_r((y - x * overlap) * overlap**-1)
    angles = [mp.atan(tangent) for tangent in tangents]
    log = left * mp.diag(angles) * right
    motion = mp.expm(log * x.T - x * log.T)
    return case(
        "Grassmann",
        [n, p],
        base=base,
        point=point,
        vector=vector,
        dist=float(mp.norm(mp.matrix(angles))),
        log=rounded(log, base),
        exp=rounded(mp.expm(v * x.T - x * v.T) * x, base),
        transport=rounded(motion * v * (y.T * motion * x).T, base),
    )


def special_orthogonal(n: int, rng: np.random.Generator) -> Case:
    """SO(n) with ⟨u,v⟩ = ½tr(uᵀv): dist = ‖logm(xᵀy)‖/√2, transport of xΩ along x·exp(tA) is x·exp(A/2)Ω exp(A/2)."""
    base, point = rotation(rng, n), rotation(rng, n)
    skew = rng.standard_normal((n, n)) / 2
    vector = base @ (skew - skew.T)
    x, y, v = exact(base), exact(point), exact(vector)
    inner = mp.logm(x.T * y)
    half = mp.expm(inner / 2)
    return case(
        "SpecialOrthogonal",
        [n],
        base=base,
        point=point,
        vector=vector,
        dist=float(frobenius(inner) / mp.sqrt(2)),
        log=rounded(x * inner, base),
        exp=rounded(x * mp.expm(x.T * v), base),
        transport=rounded(x * half * (x.T * v) * half, base),
    )


def stiefel(n: int, p: int, rng: np.random.Generator) -> Case:
    """Canonical metric: exp_x v = expm(W)x with W = (I − ½xxᵀ)vxᵀ − xvᵀ(I − ½xxᵀ); log by going there and back."""
    base = frame(rng, n, p)
    vector, reach = 0.3 * rng.standard_normal((2, n, p))
    half = np.eye(n) - base @ base.T / 2

    def tangent(matrix: np.ndarray) -> np.ndarray:
        return matrix - base @ (base.T @ matrix + matrix.T @ base) / 2

    vector, reach = tangent(vector), tangent(reach)
    x = exact(base)

    def exponential(v: Any) -> Any:
        lifted = (mp.eye(n) - x * x.T / 2) * v * x.T
        return mp.expm(lifted - lifted.T) * x

    return case(
        "Stiefel",
        [n, p],
        base=base,
        point=rounded(exponential(exact(reach)), base),
        vector=vector,
        dist=np.sqrt(np.sum(reach * (half @ reach))),
        log=reach,
        exp=rounded(exponential(exact(vector)), base),
    )


def mpmath_cases() -> list[Case]:
    mp.mp.dps = 50
    rng = np.random.default_rng(SEED)
    return [
        *(space_form(d, curvature, rng) for d, curvature in ((1, 1.0), (2, 1.0), (4, 0.5), (3, 4.0))),
        *(space_form(d, curvature, rng) for d, curvature in ((1, -1.0), (2, -1.0), (4, -0.25), (3, -4.0))),
        *(planar_shapes(k, rng) for k in (3, 4, 7)),
        *(grassmann(n, p, rng) for n, p in ((2, 1), (4, 1), (5, 2), (5, 3))),
        *(special_orthogonal(n, rng) for n in (2, 3, 4, 5)),
        *(stiefel(n, p, rng) for n, p in ((4, 1), (5, 2), (4, 3))),
    ]


def geomstats_case(name: str, parameters: list, metric: Any, *arrays: np.ndarray) -> Case:
    base, point, vector = arrays
    return case(
        name,
        parameters,
        base=base,
        point=point,
        vector=vector,
        dist=float(metric.dist(base, point)),
        log=metric.log(point, base),
        exp=metric.exp(vector, base),
        transport=metric.parallel_transport(vector, base, end_point=point),
    )


def geomstats_grassmann(n: int, p: int, rng: np.random.Generator) -> Case:
    """Their points are projectors xxᵀ and their vectors vxᵀ + xvᵀ: the lengths are √2 times those of the angles."""
    from geomstats.geometry.grassmannian import Grassmannian

    metric = Grassmannian(n, p).metric
    base, point = frame(rng, n, p), frame(rng, n, p)
    vector = rng.standard_normal((n, p)) / 2
    vector -= base @ (base.T @ vector)
    theirs = vector @ base.T + base @ vector.T
    at, to = base @ base.T, point @ point.T
    moved = metric.parallel_transport(theirs, at, end_point=to)
    return case(
        "Grassmann",
        [n, p],
        base=base,
        point=point,
        vector=vector,
        dist=float(metric.dist(at, to)) / np.sqrt(2),
        log=metric.log(to, at) @ base,
        exp=np.linalg.eigh(metric.exp(theirs, at))[1][:, -p:],
        transport=moved @ point,
    )


def geomstats_shapes(k: int, rng: np.random.Generator) -> Case:
    """Their pre-shapes are real (k, 2); their transport is a numerical integration and is left out."""
    from geomstats.geometry.pre_shape import PreShapeSpace

    space = PreShapeSpace(k, 2)
    space.equip_with_group_action("rotations")
    space.equip_with_quotient()
    metric = space.quotient.metric

    def complex_form(real: np.ndarray) -> np.ndarray:
        return real[..., 0] + 1j * real[..., 1]

    base, point = space.projection(rng.standard_normal((2, k, 2)))
    ambient = rng.standard_normal((k, 2)) / 2
    vector = space.fiber_bundle.horizontal_projection(space.to_tangent(ambient, base), base)
    return case(
        "PlanarShapes",
        [k],
        base=complex_form(base),
        point=complex_form(point),
        vector=complex_form(vector),
        dist=float(metric.dist(base, point)),
        log=complex_form(metric.log(point, base)),
        exp=complex_form(metric.exp(vector, base)),
    )


def geomstats_stiefel(n: int, p: int, rng: np.random.Generator) -> Case:
    from geomstats.geometry.stiefel import Stiefel

    space = Stiefel(n, p)
    base = frame(rng, n, p)
    vector, reach = (space.to_tangent(matrix, base) for matrix in 0.3 * rng.standard_normal((2, n, p)))
    point = space.metric.exp(reach, base)
    return case(
        "Stiefel",
        [n, p],
        base=base,
        point=point,
        vector=vector,
        dist=float(space.metric.dist(base, point)),
        log=space.metric.log(point, base),
        exp=space.metric.exp(vector, base),
    )


def geomstats_cases() -> list[Case]:
    from geomstats.geometry.hyperboloid import Hyperboloid
    from geomstats.geometry.hypersphere import Hypersphere
    from geomstats.geometry.special_orthogonal import SpecialOrthogonal

    rng = np.random.default_rng(SEED)
    sphere, hyperboloid = Hypersphere(3), Hyperboloid(3)
    points = [unit(rng.standard_normal(4)) for _ in range(2)]
    lifted = [np.concatenate([[np.sqrt(1 + s @ s)], s]) for s in rng.standard_normal((2, 3))]
    ambient = rng.standard_normal(4)
    cases = [
        geomstats_case("Sphere", [3, 1.0], sphere.metric, *points, sphere.to_tangent(ambient, points[0])),
        geomstats_case(
            "Hyperbolic", [3, -1.0], hyperboloid.metric, *lifted, hyperboloid.to_tangent(ambient, lifted[0])
        ),
    ]
    for n in (3, 4):
        # their bi-invariant metric on matrices is ½tr(uᵀv) too: the SO(3) distance is the angle
        base, point = rotation(rng, n), rotation(rng, n)
        skew = rng.standard_normal((n, n)) / 2
        metric = SpecialOrthogonal(n).metric
        cases.append(geomstats_case("SpecialOrthogonal", [n], metric, base, point, base @ (skew - skew.T)))
    cases += [geomstats_grassmann(n, p, rng) for n, p in ((4, 2), (5, 2))]
    cases += [geomstats_shapes(k, rng) for k in (4, 6)]
    cases += [geomstats_stiefel(5, 2, rng)]
    return cases


def write(name: str, cases: list[Case]) -> None:
    rows = ",\n".join(json.dumps(row) for row in cases)
    (FOLDER / name).write_text(f"[\n{rows}\n]\n")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write("mpmath.json", mpmath_cases())
    write("geomstats.json", geomstats_cases())
