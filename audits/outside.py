"""Our promises before auditors that others wrote: `make auditors`.

dp-recorder (Re:cord-play) runs every public release of `audits.doors` on one neighbour, writes down every noisy sum,
and runs it on the other with the same noisy sums put in their place. It objects where anything differs but what noise
hides (the laws, their order, every bit and every public fact of the release), and where what noise hides differs by
more than the promise covers. DP-Auditorium sees draws alone: a histogram of one number and a neural network on all of
them try to show a δ above the promised one.

Faults are planted: too little noise, a ball around the records' own mean, a path that looks at records, a sum that is
released twice and told once. Each must be found, and nothing may be found in what is released as it is.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from audits.doors import DOORS, DoorRow
from dpmanifolds.auditing.front_door import LAWS, Law, overheard_noise, remembered_plans
from dpmanifolds.domains import Ball
from dpmanifolds.noise import LatticeGaussian, RoundedGaussian, as_generator
from dpmanifolds.noise.symmetric import SymmetricGaussian, WishartDifference
from dpmanifolds.releases import Release, private_mean

__all__ = ["FAULTS", "attack_draws", "main", "object_to"]

_GAUSSIAN = (RoundedGaussian, LatticeGaussian, SymmetricGaussian)
_WEAK = {"dp-recorder": 0.7, "network": 0.7, "histogram": 0.3}
"""How much of the noise is left where too little is planted: a histogram shows far less than what there is."""
_FAILURE = 1e-5
"""The probability that one attack of DP-Auditorium finds what is not there."""
Attempt = Callable[[Any, Any], Any]
"""A release of records, with a source of noise."""


def _loss(law: Law, first: np.ndarray, second: np.ndarray) -> float:
    """μ of the Gaussian laws, ε of the others, for two sums of integers that they hide."""
    between = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if isinstance(law, WishartDifference):
        return float(np.linalg.norm(between, "nuc") / float(law.sigma))
    lost = -float(law.log_density(between))
    return float(np.sqrt(2 * lost)) if isinstance(law, _GAUSSIAN) else lost


def _whole_loss(laws: Sequence[Law], shapes: Sequence[tuple[int, ...]], first: np.ndarray, second: np.ndarray) -> float:
    """Of all sums of a release together: μ are added as squares, ε as they are."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    pieces = zip(laws, shapes, np.split(first, ends), np.split(second, ends), strict=True)
    losses = [_loss(law, one.reshape(shape), other.reshape(shape)) for law, shape, one, other in pieces]
    if all(isinstance(law, _GAUSSIAN) for law in laws):
        return float(np.linalg.norm(losses))
    return sum(losses)


def _promised(made: Any) -> float:
    """The same of what the release promises."""
    pure = made.guarantee.total_pure()
    return float(made.guarantee.as_gaussian().mu if pure is None else pure)


@contextmanager
def _through_the_recorder(factor: float, source: Any, heard: list[tuple[Law, np.ndarray]]) -> Iterator[None]:
    """All noise is drawn by a function that dp-recorder watches, with `factor` times its scale."""
    from dp_recorder.auditing.audit_primitives import audit_spec

    kept = {law: law.release for law in LAWS}

    def watch(draw: Any) -> Any:
        def release(law: Law, values: Any, rng: Any = None) -> Any:
            used = replace(law, sigma=law.sigma * factor)
            heard.append((used, np.array(values)))

            # how far sums may move is asked of all of them together, at the end
            def noisy(values: np.ndarray, law: Law, most: float) -> Any:
                return draw(law, values, source)

            watched = audit_spec("noise", "values", "most", partial(_loss, used))(noisy)
            return watched(values=np.array(values), law=used, most=np.inf)

        return release

    for law, draw in kept.items():
        law.release = watch(draw)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for law, draw in kept.items():
            law.release = draw  # type: ignore[method-assign]


def object_to(release: Attempt, first: Any, second: Any, factor: float = 1.0, rng: Any = None) -> str | None:
    """What dp-recorder says against the release of two neighbours; None if it has nothing to say."""
    from dp_recorder.auditing.audit_primitives import Auditor, audit_spec, ensure_equality

    auditor, source = Auditor(), as_generator(rng)

    def run(records: Any) -> None:
        heard: list[tuple[Law, np.ndarray]] = []
        with _through_the_recorder(factor, source, heard):
            made = release(records, source)
        laws, shapes = [law for law, _ in heard], [values.shape for _, values in heard]

        def told(sums: np.ndarray, promise: float) -> None:
            """What all noise of the release hides, against what it promises."""

        watched = audit_spec("release", "sums", "promise", partial(_whole_loss, laws, shapes))(told)
        watched(sums=np.concatenate([values.ravel() for _, values in heard]), promise=_promised(made) * (1 + 1e-12))
        shown = made.releases if hasattr(made, "releases") else [made]
        ensure_equality(release=[each.to_json() for each in shown])

    with warnings.catch_warnings(), remembered_plans():
        warnings.simplefilter("ignore")
        try:
            with auditor:
                run(first)
            auditor.set_replay()
            with auditor:
                run(second)
            auditor.validate_records()
        except (AssertionError, RuntimeError) as objection:
            return " ".join(str(objection).split())
    return None


def _around_their_mean(ball: Ball, budget: Any, data: Any, rng: Any) -> Release:
    return private_mean(data[0], Ball(ball.manifold, data[0].mean(axis=0), ball.radius), budget, steps=1, rng=rng)


def _looking_twice(ball: Ball, budget: Any, data: Any, rng: Any) -> Release:
    steps = 2 if data[0].max() > ball.radius else 1
    return private_mean(data[0], ball, budget, steps=steps, refine=0, rng=rng)


def _told_once(ball: Ball, budget: Any, data: Any, rng: Any) -> Release:
    private_mean(data[0], ball, budget, steps=1, rng=rng)
    return private_mean(data[0], ball, budget, steps=1, rng=rng)


FAULTS: dict[str, Any] = {
    "a ball around the records' own mean": _around_their_mean,
    "a path that looks at records": _looking_twice,
    "released twice, told once": _told_once,
}


def attack_draws(row: DoorRow, tester: str, draws: int, factor: float = 1.0, rng: Any = None) -> tuple[float, bool]:
    """The δ that DP-Auditorium shows at ε = 1 with so much of the noise, and whether it is above the promised one."""
    from dp_auditorium import privacy_test_runner
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.configs import privacy_test_runner_config as settings
    from dp_auditorium.generators import ConstantDatasetGenerator
    from dp_auditorium.testers import HistogramTester, HockeyStickPropertyTester, hockey_stick_tester

    source, hidden = as_generator(rng), []
    release, *pair = row.opened()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for records in pair:
            with overheard_noise() as tap:
                made = release(records, source)
            hidden.append(np.concatenate([said.values.ravel() for said in tap.said]).astype(np.float64))
    laws = [(replace(said.law, sigma=said.law.sigma * factor), np.zeros_like(said.values)) for said in tap.said]
    sizes = np.concatenate([np.full(nothing.size, float(law.sigma)) for law, nothing in laws])
    # the first number of the histogram lies along what moves, in the middle of both neighbours
    way = (hidden[0] - hidden[1]) / sizes
    middle, ahead = (hidden[0] + hidden[1]) / 2, way / np.linalg.norm(way)

    def mechanism(sums: np.ndarray, count: int) -> np.ndarray:
        noise = [np.concatenate([law.release(nothing, source).ravel() for law, nothing in laws]) for _ in range(count)]
        standing = (np.array(noise, dtype=np.float64) + sums - middle) / sizes
        return np.asarray(standing @ ahead if tester == "histogram" else standing)

    claim = privacy_property.ApproximateDp(1.0, float(made.guarantee.delta(1.0)))
    judge: Any
    if tester == "histogram":
        # bins of the histogram are public; what lies beyond goes into the outermost
        judge = HistogramTester(
            property_tester_config.HistogramPropertyTesterConfig(
                test_discrete_mechanism=False,
                histogram_size=12,
                min_value=-4.0,
                max_value=4.0,
                approximate_dp=claim,
            )
        )
    else:
        judge = HockeyStickPropertyTester(
            property_tester_config.HockeyStickPropertyTesterConfig(
                training_config=hockey_stick_tester.make_default_hs_training_config(), approximate_dp=claim
            ),
            hockey_stick_tester.make_default_hs_base_model(),
        )
    kinds = settings.PropertyTester
    kind = kinds.HISTOGRAM_TESTER if tester == "histogram" else kinds.HOCKEY_STICK_TESTER
    config = settings.PrivacyTestRunnerConfig(kind, 1, _FAILURE, draws, settings.PostProcessing.NONE)
    runner = privacy_test_runner.PrivacyTestRunner(config, ConstantDatasetGenerator(tuple(hidden)), judge)
    found = runner.test_privacy(mechanism, row.label)
    return float(found.lower_bound_divergence_estimates[-1]), found.found_privacy_violation is not None


def _row(label: str) -> DoorRow:
    return next(row for row in DOORS if row.label == label)


ATTACKED = {
    "private_mean, one step on Sphere(2, 1.0), pure": ("network",),
    "private_mean, one step on SPD(2, metric='affine-invariant'), Gaussian": ("network", "histogram"),
    "private_clipped_share on SPD(2, metric='affine-invariant'), Gaussian": ("network", "histogram"),
    "private_geodesic_regression, one look on Euclidean(1), Gaussian": ("network",),
    "private_covariance, squares alone on Euclidean(2), Gaussian": ("network",),
}
"""Whose draws DP-Auditorium sees, and by what: one sum of few numbers, so that draws show what tells them apart."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what both say; 1 where they find what should not be there, or miss what is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=40_000, help="of each neighbour, for DP-Auditorium")
    parser.add_argument("--only", default="", help="rows whose name holds this")
    asked = parser.parse_args(arguments)
    wrong = 0

    def tell(what: str, found: str | None, expected: bool) -> None:
        nonlocal wrong
        good = (found is not None) == expected
        wrong += not good
        print(f"{'' if good else 'WRONG: '}{what}: {'nothing found' if found is None else found[:120]}", flush=True)

    rows = [row for row in DOORS if asked.only in row.label]
    for row in rows:
        tell(f"dp-recorder, {row.label}", object_to(*row.opened()), expected=False)
        weak = object_to(*row.opened(), _WEAK["dp-recorder"])
        tell(f"dp-recorder, 30 % less noise, {row.label}", weak, expected=True)
    plain = _row("private_mean, refine=1 on Euclidean(1), pure")
    for name, call in FAULTS.items():
        tell(f"dp-recorder, {name}", object_to(*replace(plain, call=call).opened()), expected=True)
    for row in (row for row in map(_row, ATTACKED) if asked.only in row.label):
        for tester in ATTACKED[row.label]:
            for factor in (1.0, _WEAK[tester]):
                delta, found = attack_draws(row, tester, row.draws(asked.draws), factor)
                shown = f"at ε = 1 a δ of at least {delta:.3f}"
                what = f"DP-Auditorium's {tester}, {factor:.0%} of the noise, {row.label}"
                tell(what, shown if found else None, expected=factor < 1)
    print(f"{wrong} wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
