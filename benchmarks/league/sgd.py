"""DP-SGD logistic regression on tangent features, the rival of our classifiers: all at the same promise.

    python -m benchmarks.league.sgd [--subjects 24] [--data FOLDER] [--write docs/tables/league_classifiers.csv]

As Opacus does it (Abadi et al. 2016): every record is drawn with probability q in each of T steps (Poisson sampling),
its gradient is clipped, Gaussian noise is added to the sum. Noise is calibrated to (ε, δ), replace-one, by
dp-accounting's privacy loss distributions. It knows what we know: public filters (four, or all channels), the public
mean as the point of tangency, features scaled by their public root mean square, public weights to start from, or zeros.
Its setting is chosen where that is free, as ours are: every public subject (where there is one, either half of it)
plays the private one in turn, under as much noise, and the setting does best there. Beside it stands the setting that
does best on the records told apart, over all subjects: not private, and it flatters the rival. Ours is
`PrivateTangentClassifier` as it comes.

Data: the EEG-like simulation of `benchmarks/eeg.py`, and real EEG (left against right stimuli) and digits (3 against 8)
with a random fifth public and a fifth told apart.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import dp_accounting
import numpy as np
from dp_accounting import pld
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import dpmanifolds as dpm
from benchmarks.league.tables import write_csv

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import eeg

__all__ = ["noise_multiplier", "train"]

DELTA, EPSILONS = 1e-5, (1.0, 3.0)
# of the rival: sampling rate and steps, rate of learning, clip; each with both kinds of features, weights that start
# from public ones or from 0
SCHEDULES, PACES, CLIPS = ((1.0, 8), (0.25, 40), (0.1, 100)), (0.1, 0.5, 2.0), (0.3, 1.0)
COMPETITORS = ("tangent", "chosen", "DP-SGD", "public weights")
HEAD = (
    "data",
    "runs",
    "ε",
    "PrivateTangentClassifier",
    "DP-SGD",
    "DP-SGD, best of 72",
    "public weights, better of 2",
    "se of PrivateTangentClassifier less DP-SGD",
)
Labelled = tuple[np.ndarray, np.ndarray]


class Study(NamedTuple):
    """Public subjects, records to learn from and records to tell apart."""

    space: dpm.Manifold
    public: list[Labelled]
    train: Labelled
    test: Labelled


@cache
def noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """σ over the clip with which `steps` Poisson samples keep (ε, δ), replace-one."""

    def excess(sigma: float) -> float:
        account = pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE, value_discretization_interval=1e-3)
        account.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma)), steps)
        return float(account.get_epsilon(delta)) - epsilon

    return float(optimize.brentq(excess, 0.3, 400.0, xtol=1e-2)) + 1e-2


def train(
    rows: np.ndarray,
    signs: np.ndarray,
    start: np.ndarray,
    *,
    rate: float,
    steps: int,
    pace: np.ndarray | float,
    clip: np.ndarray | float,
    sigma: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Weights after `steps` of DP-SGD on log(1 + e^{−sign·row·w}), one column for each start, pace and clip.

    A gradient is a multiple of its row, so that clipping it is clipping that multiple.
    """
    weights, batch = start.copy(), rate * len(rows)
    most = clip / np.maximum(np.linalg.norm(rows, axis=1), 1e-300)[:, None]
    for _ in range(steps):
        chosen = rng.random(len(rows)) < rate
        seen, side = rows[chosen], signs[chosen, None]
        pull = side * np.minimum(special.expit(-side * (seen @ weights)), most[chosen])
        weights = weights + pace / clip * (seen.T @ pull + sigma * clip * rng.standard_normal(weights.shape)) / batch
    return weights


def _features(study: Study, filters: int | None) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows of public, learned and told records, with a one at the end; and public weights."""
    space, parts = study.space, [*study.public, study.train, study.test]
    points = [each[0] for each in parts]
    if filters is not None:
        chosen = dpm.Congruence.from_public(study.public, filters)
        points, space = [chosen.transform(each) for each in points], dpm.SPD(filters)
    means = [dpm.frechet_mean(space, each, tolerance=1e-3).point for each in points[:-2]]
    base = dpm.frechet_mean(space, np.stack(means)).point
    seen = [space.log_coordinates(mean, each) for mean, each in zip([*means, base, base], points, strict=True)]
    public = np.concatenate(seen[:-2])
    scale = float(np.sqrt(np.mean(np.sum(public**2, axis=1))))
    learned = LogisticRegression().fit(public / scale, np.concatenate([labels for _, labels in study.public]))
    rows = [np.column_stack([each / scale, np.ones(len(each))]) for each in seen[-2:]]
    return rows, np.append(learned.coef_[0], learned.intercept_)


def look(study: Study) -> dict[int | None, tuple[list[np.ndarray], np.ndarray]]:
    """Features behind four public filters, and of all channels."""
    return {filters: _features(study, filters) for filters in (4, None)}


def scores(study: Study, seen: Any, epsilon: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Accuracy of the rival in every setting, under the noise that n records get."""
    labels, truth, found = study.train[1], study.test[1] == 1, []
    pace, clip, warm = np.array(list(itertools.product(PACES, CLIPS, (1.0, 0.0)))).T
    for (rate, steps), ((rows, told), public) in itertools.product(SCHEDULES, seen.values()):
        made = train(
            rows,
            2.0 * labels - 1,
            public[:, None] * warm,
            rate=rate,
            steps=steps,
            pace=pace,
            clip=clip,
            sigma=noise_multiplier(epsilon, DELTA, rate, steps) * len(rows) / n,
            rng=rng,
        )
        found.append(np.mean((told @ made > 0) == truth[:, None], axis=0))
    return np.concatenate(found)


def rehearsals(study: Study) -> Iterator[Study]:
    """Every public subject as the private one, half of it told apart by the other; one subject is two halves."""
    subjects = study.public
    if len(subjects) == 1:
        points, labels = subjects[0]
        subjects = [(points[first::2], labels[first::2]) for first in (0, 1)]
    for held, (points, labels) in enumerate(subjects):
        others, half = [each for number, each in enumerate(subjects) if number != held], len(labels) // 2
        yield Study(study.space, others, (points[:half], labels[:half]), (points[half:], labels[half:]))


def play(study: Study, seed: int) -> dict[tuple[str, float], np.ndarray]:
    """Accuracy of ours, and of the rival in the setting that public subjects choose and in all of them."""
    found: dict[tuple[str, float], np.ndarray] = {}
    (points, labels), (others, truth) = study.train, study.test
    rng, seen = np.random.default_rng(seed), look(study)
    rehearsed = [(each, look(each)) for each in rehearsals(study)]
    alone = np.array([np.mean((rows[1] @ public > 0) == (truth == 1)) for rows, public in seen.values()])
    for epsilon in EPSILONS:
        budget = dpm.ApproxDP(epsilon, DELTA)
        model = dpm.PrivateTangentClassifier(None, budget, classes=[0, 1], public=study.public, random_state=seed)
        found["tangent", epsilon] = np.array([np.mean(model.fit(points, labels).predict(others) == truth)])
        told = np.mean([scores(*each, epsilon, len(labels), rng) for each in rehearsed], axis=0)
        found["DP-SGD", epsilon] = scores(study, seen, epsilon, len(labels), rng)
        found["chosen", epsilon] = found["DP-SGD", epsilon][[np.argmax(told)]]
        found["public weights", epsilon] = alone
    return found


def simulated(channels: int, related: str, subjects: int) -> Iterator[Study]:
    """Of `benchmarks/eeg.py`."""
    for seed in range(subjects):
        public, (points, labels) = eeg.study(seed, channels, related)
        cut = eeg.TRAINED
        yield Study(dpm.SPD(channels), public, (points[:cut], labels[:cut]), (points[cut:], labels[cut:]))


def real(points: np.ndarray, labels: np.ndarray, splits: int) -> Iterator[Study]:
    """A random fifth is public, another one is told apart."""
    fifth = len(points) // 5
    for split in range(splits):
        order = np.random.default_rng([split, 2026]).permutation(len(points))
        public, test, train_ = order[:fifth], order[fifth : 2 * fifth], order[2 * fifth :]
        parts = [(points[rows], labels[rows]) for rows in (public, train_, test)]
        yield Study(dpm.SPD(points.shape[-1]), parts[:1], parts[1], parts[2])


def studies(folder: Path | None, subjects: int) -> Iterator[tuple[str, Iterator[Study]]]:
    """All that are there; half as many subjects with 22 channels."""
    if folder is not None:
        yield from real_studies(folder, subjects)
    for channels, related in itertools.product((8, 22), ("0.5", "unrelated")):
        told = "unrelated" if related == "unrelated" else "related"
        count = subjects if channels == 8 else (subjects + 1) // 2
        yield f"EEG simulation, {channels} channels, {told} public subjects", simulated(channels, related, count)


def real_studies(folder: Path, splits: int) -> Iterator[tuple[str, Iterator[Study]]]:
    """Of the folder of real data."""
    with np.load(folder / "spd/eeg_erp_cov32.npz") as arrays:
        matrices, sides = 1e26 * arrays["x"][:, ::4, ::4], arrays["label"]
    right = np.array([side.startswith("R") for side in sides]).astype(int)
    matrices = (matrices + np.swapaxes(matrices, 1, 2)) / 2
    yield "real EEG, left against right (8 of 32 channels)", real(matrices, right, 2 * splits)
    with np.load(folder / "images/mnist10k.npz") as arrays:
        kept = np.isin(arrays["y"], (3, 8))
        digits, threes = dpm.image_descriptors(arrays["x"][kept]), (arrays["y"][kept] == 8).astype(int)
    yield "digit descriptors, 3 against 8", real(np.asarray(digits), threes, splits)


def table(folder: Path | None, subjects: int) -> Iterator[Sequence[str]]:
    """Lines of the table."""
    yield HEAD
    for name, runs in studies(folder, subjects):
        played = [play(study, seed) for seed, study in enumerate(runs)]
        for epsilon in EPSILONS:
            best = [_best(np.array([each[who, epsilon] for each in played])) for who in COMPETITORS]
            width = float(np.std(best[0] - best[1], ddof=1)) / np.sqrt(len(played))
            yield name, str(len(played)), f"{epsilon:g}", *(f"{each.mean():.3f}" for each in best), f"{width:.3f}"


def _best(scores: np.ndarray) -> np.ndarray:
    """Of (runs, settings), those of the setting that does best on average."""
    return np.asarray(scores[:, np.argmax(scores.mean(axis=0))])


def main() -> None:
    """Print the table, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=int, default=24)
    parser.add_argument("--data", type=Path, help="the folder of real data")
    parser.add_argument("--write", type=Path, help="a CSV file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    threadpool_limits(1)
    lines = []
    for line in table(options.data, options.subjects):
        print(" | ".join(line), flush=True)
        lines.append(line)
    if options.write is not None:
        write_csv(options.write, lines[0], lines[1:])


if __name__ == "__main__":
    main()
