"""What the fuzzer calls: each target draws its own arguments and makes one call of the public interface."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dpmanifolds as dpm
from tests.fuzz.readers import damaged_file
from tests.fuzz.values import Values

__all__ = ["TARGETS"]

_MECHANISMS = ("auto", "wrapped-laplace", "wrapped-gaussian", "riemannian-laplace", "riemannian-gaussian")
_BUDGETS = (dpm.PureDP, dpm.ApproxDP, dpm.GaussianDP, dpm.ZeroConcentratedDP, dpm.RenyiDP)


def _constructor(v: Values) -> Any:
    name = v.pick(
        "SPD", "Euclidean", "Sphere", "Hyperbolic", "PlanarShapes", "SpecialOrthogonal", "Grassmann", "Stiefel",
        "Power", "Product", "PureDP", "ApproxDP", "GaussianDP", "ZeroConcentratedDP", "RenyiDP", "Sensitivity",
        "Guarantee", "DescriptorDomain", "Ball",
    )  # fmt: skip
    arguments = [
        v.pick(v.wild(), v.wild(), v.integer(), v.number(), v.manifold()) for _ in range(v.pick(0, 1, 1, 2, 3))
    ]
    return repr(getattr(dpm, name)(*arguments))


def _manifold_method(v: Values) -> Any:
    manifold = v.manifold()
    a, b = (v.points(manifold, v.pick((), (), (3,), (2, 3))) for _ in range(2))
    a, b = manifold.as_points(a), manifold.as_points(b)
    return manifold.belongs(a), manifold.belongs(b)


def _ball_of(v: Values) -> Any:
    kind = v.pick("from_eigenvalues", "from_bounds", "positive_orthant")
    manifold = v.or_wild(v.manifold())
    arguments = {"from_eigenvalues": 2, "from_bounds": 2, "positive_orthant": 0}[kind]
    given = [v.pick(v.number(), v.array((2,)), v.number()) for _ in range(arguments)]
    return getattr(dpm.Ball, kind)(manifold, *given)


def _domain_method(v: Values) -> Any:
    ball = v.ball()
    points = ball.manifold.as_points(v.points(ball.manifold, 3))
    if not np.all(ball.manifold.belongs(points)):
        return None
    return ball.contains(ball.clip(points))


def _validate(v: Values) -> Any:
    domain = v.domain()
    return str(dpm.validate(v.or_wild(v.points(domain.manifold, v.pick(1, 4)), 0.1), v.or_wild(domain, 0.03)))


def _statistic(v: Values) -> Any:
    manifold = v.manifold()
    options = {"sample_weight": v.or_wild(v.rng.random(4), 0.3)} if v.chance(0.3) else {}
    if v.chance(0.2):
        options["tolerance"] = v.number()
    function = v.pick(dpm.frechet_mean, dpm.frechet_mean, dpm.frechet_median)
    return function(v.or_wild(manifold, 0.03), v.or_wild(v.points(manifold, 4), 0.1), **options)


def _reference(v: Values) -> Any:
    manifold = v.manifold()
    return dpm.Ball.from_sample(manifold, v.points(manifold, 5), coverage=v.share(), margin=v.number())


def _release_options(v: Values) -> dict[str, Any]:
    """One kind of numerics: choosing between several is slow, and is a target of its own."""
    mechanism, numerics = v.pick(*_MECHANISMS[1:3]), v.pick("rounded", "rounded", "rounded", "lattice")
    if v.chance(0.1):
        mechanism, numerics = v.pick(*_MECHANISMS[3:]), "idealized"
    options = {"mechanism": v.or_wild(mechanism, 0.03), "numerics": v.or_wild(numerics, 0.03)}
    optional = {
        "on_invalid": v.name("raise", "center"),
        "unit": v.or_wild("family"),
        "rng": v.seed(),
        "dataset": v.wild(),
    }
    return options | {name: value for name, value in optional.items() if v.chance(0.3 if name != "dataset" else 0.02)}


def _mean(v: Values) -> Any:
    domain, options = v.domain(), _release_options(v)
    count = v.pick(1, 2, 6, 6)
    if v.chance(0.2):
        options["group_by"] = v.labels(count)
    if v.chance(0.1):
        options["refine"] = v.or_wild(v.pick(1, 2))
    points = v.or_wild(v.points(domain.manifold, count), 0.05)
    return _looked_at(dpm.private_mean(points, v.or_wild(domain, 0.02), v.or_wild(v.budget(), 0.03), **options))


def _automatic_mean(v: Values) -> Any:
    ball = v.ball()
    return dpm.private_mean(v.points(ball.manifold, 5), ball, v.budget(), numerics=v.name("safe", "idealized"))


def _variance(v: Values) -> Any:
    ball = v.ball()
    return dpm.private_variance(v.points(ball.manifold, v.pick(1, 2, 6)), ball, v.budget(), **_release_options(v))


def _median(v: Values) -> Any:
    ball = v.ball()
    options = {name: value for name, value in _release_options(v).items() if name in ("on_invalid", "unit", "rng")}
    points = v.points(ball.manifold, v.pick(1, 6))
    return dpm.private_median(points, ball, v.budget(), steps=v.or_wild(v.pick(1, 2, 3)), **options)


def _class_means(v: Values) -> Any:
    domain, options = v.domain(), _release_options(v)
    if v.chance(0.5):
        options |= {"private_labels": True, "classes": v.pick([0, 1, 2], ["a", "b", "c"], [0, 0], v.wild())}
    return repr(dpm.private_class_means(v.points(domain.manifold, 6), v.labels(6), domain, v.budget(), **options))


def _privatize(v: Values) -> Any:
    domain = v.domain()
    value = v.points(domain.manifold, ())
    options = {name: value for name, value in _release_options(v).items() if name != "on_invalid"}
    return dpm.privatize(value, domain, v.number(), v.budget(), **options)


def _sensitivity(v: Values) -> Any:
    function = v.pick(dpm.sensitivity_of_mean, dpm.sensitivity_of_mean_at_center, dpm.sensitivity_of_variance)
    options = {"solver_tolerance": v.number(), "rounding": v.number()} if v.chance(0.3) else {}
    return function(v.or_wild(v.ball()), v.or_wild(int(v.rng.integers(1, 10**6))), **options)


def _accounting(v: Values) -> Any:
    if v.chance(0.3):
        return dpm.split(v.or_wild(v.budget()), v.or_wild([v.share() for _ in range(v.pick(0, 1, 3))]))
    if v.chance(0.5):
        return dpm.convert(
            v.budget(), v.or_wild(v.pick(*_BUDGETS)), delta=v.pick(None, v.share()), alpha=v.pick(None, 3)
        )
    makers = (dpm.Guarantee.pure, dpm.Guarantee.gaussian, dpm.Guarantee.zcdp, dpm.Guarantee.laplace)
    parts = [v.pick(*makers)(v.number()) for _ in range(v.pick(1, 2))]
    promise = dpm.compose(*parts) if v.chance(0.9) else dpm.compose(*parts, v.wild())
    return promise.fits(v.budget()), promise.k_fold(v.or_wild(3)), dpm.Guarantee.from_json(promise.to_json())


@cache
def _written() -> tuple[str, ...]:
    ball = dpm.Ball(dpm.SPD(2), np.eye(2), 1.0)
    shapes = dpm.PlanarShapes(3)
    records = dpm.SPD(2).random_point(20, rng=0)
    releases = (
        dpm.private_mean(records, ball, dpm.PureDP(1.0), mechanism="wrapped-laplace", rng=0),
        dpm.private_mean(records, ball, dpm.ApproxDP(1.0, 1e-6), mechanism="wrapped-gaussian", refine=1, rng=0),
        dpm.private_variance(records, ball, dpm.GaussianDP(1.0), mechanism="wrapped-gaussian", rng=0),
        dpm.private_mean(
            shapes.random_point(9, rng=0), dpm.Ball(shapes, shapes.random_point(rng=1), 0.5), dpm.PureDP(1.0),
            mechanism="wrapped-laplace", rng=0,
        ),
    )  # fmt: skip
    return tuple(release.to_json() for release in releases)


def _json(v: Values) -> Any:
    text = v.pick(*_written())
    if v.chance(0.5):
        data = json.loads(text)
        for _ in range(v.pick(1, 1, 2)):
            _change_somewhere(v, data)
        text = json.dumps(data, default=repr)
    else:
        place = int(v.rng.integers(len(text)))
        text = text[:place] + v.pick("", "9", "-", "null", '"', "]", "NaN", "1e999") + text[place + v.pick(0, 1, 5) :]
    reader = v.pick(dpm.Release.from_json, dpm.Release.from_json, dpm.Guarantee.from_json)
    return _looked_at(reader(v.or_wild(text, 0.02)))


def _change_somewhere(v: Values, data: Any) -> None:
    """Walk down at random and put something else there."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = v.pick(*keys)
        if isinstance(data[key], dict | list) and data[key] and v.chance(0.8):
            data = data[key]
            continue
        if v.chance(0.2):
            del data[key]
        else:
            data[key] = v.pick(None, True, -1, 0, 10**30, 1e308, "x", [], {}, [1, [2]], {"number": 1.0}, "float32")
        return


def _looked_at(result: Any) -> Any:
    if isinstance(result, dpm.Release):
        return repr(result), result.summary(), result.to_json(), result == result  # noqa: PLR0124
    return repr(result)


@cache
def _example_release() -> dpm.Release:
    return dpm.Release.from_json(_written()[0])


def _region(v: Values) -> Any:
    release = v.or_wild(dpm.Release.from_json(v.pick(*_written())), 0.1)
    region = dpm.population_region(release, v.number(), v.share()) if v.chance(0.5) else dpm.confidence_region(
        release, v.share()
    )  # fmt: skip
    return str(region), region.contains(v.or_wild(region.release.value, 0.3))


def _law(v: Values) -> Any:
    manifold = v.manifold()
    kind = v.pick(dpm.WrappedGaussian, dpm.WrappedLaplace, dpm.RiemannianGaussian, dpm.RiemannianLaplace)
    law = kind(manifold, v.points(manifold, ()), v.number())
    return law.sample(v.pick(None, 2, (2, 2)) or (), rng=0)


def _descriptors(v: Values) -> Any:
    images = v.array(v.pick((2, 8, 8), (1, 9, 9, 3), (0, 8, 8), (8, 8), (2, 3, 3)))
    return dpm.image_descriptors(images, eta=v.number(), full_scale=v.pick(None, v.number()))


def _compositions(v: Values) -> Any:
    raw = v.rng.random(v.pick((3,), (2, 4), (0, 2), (1, 1)))
    total = raw.sum(axis=-1, keepdims=True)
    parts = v.spoilt(raw / total) if v.chance(0.6) and raw.size else raw
    return dpm.Sphere(max(raw.shape[-1] - 1, 1)).from_compositions(parts)


def _reader(v: Values) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = damaged_file(v, Path(folder))
        options: dict[str, Any] = {
            "manifold": v.pick(None, None, dpm.SPD(3), dpm.PlanarShapes(3), v.wild()),
            "key": v.pick(None, "x", "y", v.wild()),
            "layout": v.pick(None, "upper", "lower", "full", v.wild()),
            "header": v.name("auto", "yes", "no"),
            "record_axis": v.pick(0, 0, -1, 7, v.wild()),
            "missing": v.name("raise", "drop"),
            "max_bytes": v.pick(1 << 22, 1 << 22, 100, v.wild()),
        }
        given = {name: value for name, value in options.items() if v.chance(0.3)}
        return dpm.read_points(v.or_wild(path, 0.02), **{"max_bytes": 1 << 22} | given)


def _ledger(v: Values) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "account"
        if v.chance(0.3):
            path.write_bytes(v.rng.bytes(300))
        ledger = dpm.Ledger(v.or_wild(path, 0.1))
        ledger.open_dataset(v.or_wild("people", 0.2), v.or_wild(v.budget(), 0.1))
        guarantee = v.pick(dpm.Guarantee.pure, dpm.Guarantee.gaussian, dpm.Guarantee.zcdp)(v.number())
        ledger.spend(v.or_wild("people"), v.or_wild(guarantee), what=v.or_wild("mean"), parameters=v.or_wild({"n": 3}))
        return ledger.remaining("people"), ledger.export(v.name("json", "csv"))


def _plan(v: Values) -> Any:
    ball = v.ball(v.pick(dpm.Euclidean(2), dpm.Sphere(2), dpm.SPD(2, "log-euclidean")))
    goal = {"errors": v.number()} if v.chance(0.3) else {"budgets": v.or_wild(v.budget())}
    return str(dpm.plan(ball, v.or_wild(100), mechanisms=v.name(*_MECHANISMS[1:3]), numerics="rounded", **goal))


def _estimator(v: Values) -> Any:
    ball = v.ball()
    kinds = (dpm.PrivateFrechetMean, dpm.PrivateTangentSpace, dpm.PrivateMDM)
    options = {"mechanism": "wrapped-laplace", "numerics": "rounded", "random_state": v.seed()}
    estimator = v.pick(*kinds)(v.or_wild(ball, 0.03), v.or_wild(v.budget(), 0.05), **options)
    points = v.points(ball.manifold, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(points, v.labels(6))
    return repr(estimator)


TARGETS: dict[str, tuple[float, Callable[[Values], Any]]] = {
    "constructors": (20, _constructor),
    "points of manifolds": (12, _manifold_method),
    "balls of public facts": (5, _ball_of),
    "clip and contains": (8, _domain_method),
    "validate": (5, _validate),
    "means and medians without privacy": (5, _statistic),
    "Ball.from_sample": (2, _reference),
    "private_mean": (8, _mean),
    "private_mean, automatic": (0.1, _automatic_mean),
    "private_variance": (3, _variance),
    "private_median": (1, _median),
    "private_class_means": (2, _class_means),
    "privatize": (4, _privatize),
    "sensitivities": (8, _sensitivity),
    "split, convert, compose": (4, _accounting),
    "releases and guarantees from JSON": (6, _json),
    "regions": (2, _region),
    "laws": (2, _law),
    "image_descriptors": (2, _descriptors),
    "Sphere.from_compositions": (3, _compositions),
    "read_points": (14, _reader),
    "ledger": (0.5, _ledger),
    "plan": (0.5, _plan),
    "estimators": (1, _estimator),
}
"""Name of a target: how often it is called, and the call."""
