"""EEG motor imagery: which hand was imagined? Accuracy against ε, with public subjects to help.

Eight channels, 300 trials of one private subject, of which 240 are learned from; simulated, as `benchmarks/eeg.py` does
it. Five public subjects say which spatial filters to take, where records live and what contrast to expect
(`PrivateTangentClassifier`). Covariances are taken of each trial alone; everything that is learned from the private
trials, labels too, is inside of the promise. Beside it: public subjects alone, and the same records without privacy.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpmanifolds as dpm
from examples._shared import save_figure

CHANNELS, SAMPLES, TRIALS, TRAINED = 8, 150, 300, 240
EPSILONS = (0.3, 1.0, 3.0)


def simulate_subject(rng: np.random.Generator, common: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Trials (n, channels, samples) of a subject, mixed somewhat like those of others, and which hand (0 or 1)."""
    labels = rng.integers(0, 2, TRIALS)
    logs = 0.5 * rng.standard_normal((TRIALS, CHANNELS))
    logs[:, :2] += 0.45 * np.outer(2 * labels - 1, [1.0, -1.0])
    mixing = common @ (np.eye(CHANNELS) + 0.5 * rng.standard_normal((CHANNELS, CHANNELS)) / np.sqrt(CHANNELS))
    return mixing @ (rng.standard_normal((TRIALS, CHANNELS, SAMPLES)) * np.exp(logs / 2)[..., None]), labels


def covariances(signals: np.ndarray) -> np.ndarray:
    """One matrix for each trial."""
    return np.asarray(signals @ np.swapaxes(signals, 1, 2) / signals.shape[-1])


def accuracy_of_means(learned: tuple[np.ndarray, np.ndarray], new: tuple[np.ndarray, np.ndarray]) -> float:
    """Of the nearest class mean, without privacy."""
    space = dpm.SPD(CHANNELS)
    means = [dpm.frechet_mean(space, learned[0][learned[1] == label]).point for label in (0, 1)]
    return float(np.mean(np.argmin([space.dist(mean, new[0]) for mean in means], axis=0) == new[1]))


def main(folder: str | Path = "out", subjects: int = 6) -> None:
    """Simulate, learn with privacy, tell what it is worth: averages over private subjects, each learned by itself."""
    found: dict[str, list[float]] = {}
    kept = True
    for number in range(subjects):
        rng = np.random.default_rng([number, CHANNELS])
        common = rng.standard_normal((CHANNELS, CHANNELS)) / np.sqrt(CHANNELS)
        public = [
            (covariances(signals), labels) for signals, labels in (simulate_subject(rng, common) for _ in range(5))
        ]
        signals, labels = simulate_subject(rng, common)
        new = covariances(signals[TRAINED:]), labels[TRAINED:]
        pooled = np.concatenate([points for points, _ in public]), np.concatenate([given for _, given in public])
        found.setdefault("public subjects alone", []).append(accuracy_of_means(pooled, new))
        for epsilon in EPSILONS:
            model = make_pipeline(
                FunctionTransformer(covariances),
                dpm.PrivateTangentClassifier(None, dpm.ApproxDP(epsilon, 1e-5), classes=[0, 1], public=public),
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dpm.NoiseExceedsDomainWarning)  # of small ε: the public contrast helps
                model.fit(signals[:TRAINED], labels[:TRAINED])
            kept = kept and model[-1].guarantee_.fits(dpm.ApproxDP(epsilon, 1e-5))
            right = float(np.mean(model.predict(signals[TRAINED:]) == new[1]))
            found.setdefault(f"private, ε = {epsilon:g}", []).append(right)
        learned = covariances(signals[:TRAINED]), labels[:TRAINED]
        found.setdefault("no privacy", []).append(accuracy_of_means(learned, new))
    print(f"{subjects} private subjects, {CHANNELS} channels, {TRAINED} trials learned from, {TRIALS - TRAINED} new")
    for name, shares in found.items():
        print(f"  {name:24s} {100 * np.mean(shares):5.1f} % right")
    print(f"Each fit keeps its (ε, 1e−5), labels included, for one trial replaced: {kept}")
    draw_accuracies({name: float(np.mean(shares)) for name, shares in found.items()}, Path(folder))


def draw_accuracies(found: dict[str, float], folder: Path) -> None:
    """Accuracy by ε, between public subjects alone and no privacy."""

    def paint(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.plot(EPSILONS, [100 * found[f"private, ε = {epsilon:g}"] for epsilon in EPSILONS], "o-", label="private")
        for name, style in (("public subjects alone", ":"), ("no privacy", "--")):
            axes.axhline(100 * found[name], linestyle=style, color="gray", label=name)
        axes.set(xscale="log", xlabel="ε (δ = 1e−5)", ylabel="% of new trials told apart")
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.minorticks_off()
        axes.legend(loc="center right")

    save_figure(folder / "accuracy.png", (5.6, 3.8), paint)


if __name__ == "__main__":
    main()
