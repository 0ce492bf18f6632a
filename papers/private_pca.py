"""Private principal components of images: what five of them capture, against exact ones and against diffprivlib.

>>> from papers.private_pca import captured
>>> import numpy as np
>>> captured(np.array([[1.0, 0.0]]), np.array([[3.0, 4.0]]))
0.36

    python -m papers.private_pca [--quick] [--data DIR] [--peer PYTHON]

Pixels lie in [0, 1], the public centre is 0 and the public radius R half of the longest norm that pixels allow; longer
images are shortened. Captured is the share of Σ|x|² in the subspace. Promises, all for one image replaced: ours at
(ε, 10⁻⁶) and at pure ε, by solver="auto" and by "descent"; diffprivlib's at pure ε, told to take 0 as the centre and R
as the norm. diffprivlib 0.6.6 needs scikit-learn below 1.9, so it runs in an environment of its own, named by --peer or
DPMANIFOLDS_PEER. It answers for four columns and hardly for sixteen (`_bingham.py` says why), so each kind of images is
also averaged to 2×2 pixels, and its algorithm is run everywhere with the sampler repaired.

A few hundred columns are too many for a small pure ε. The noise of "covariance" hides a leading eigenvalue λ of Σxxᵀ
below 2.06·R²d/ε, and an eigenvector drawn by the exponential mechanism is as good as uniform where λ is below R²d/ε
(docs/proofs/second_moment.md): 16,100·R² and 7,840·R² for MNIST at ε = 0.1, where λ is 1,965·R². So every answer there
is at the level of chance. That no other mechanism could do better is not a theorem: counting subspaces only shows that
none captures more than 0.41 of the leading direction, half of the time, of every table with that λ.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError
from dpmanifolds.estimators import PrivatePCA
from dpmanifolds.privacy import ApproxDP, Budget, PureDP
from papers._bingham import sequential_eigenvectors
from papers._checks import inside
from papers._plots import curves, legend_below
from papers._study import (
    Claim,
    Numbers,
    Result,
    Setting,
    claim,
    mean_and_error,
    not_reproducible,
    reproduce,
)

__all__ = ["PANELS", "PEER_VARIABLE", "SIZE", "captured", "draw", "main", "run"]

PANELS, SIZE = (2, 2), (9.0, 7.8)
PEER_VARIABLE = "DPMANIFOLDS_PEER"
"""The environment variable that names a Python with diffprivlib."""

_Samples = dict[float, dict[str, list[float]]]
"""For each ε the captured shares of every series."""

_EPSILONS = (0.1, 1.0, 10.0)
_DELTA = 1e-6
_APPROX, _PURE = "ours, (ε, 10⁻⁶)", "ours, pure ε"
_APPROX_DESCENT, _PURE_DESCENT = "by descent, (ε, 10⁻⁶)", "by descent, pure ε"
_EXACT, _CHANCE = "exact components (not private)", "no information: a random subspace"
_AMIN, _PEER = "Amin et al. 2019, pure ε, drawn correctly", "diffprivlib 0.6.6, pure ε"
_PEER_SCRIPT = """
import signal, sys, warnings
import numpy as np
from diffprivlib.models import PCA
warnings.simplefilter("ignore")
source, target, count, radius, epsilon, runs, limit = sys.argv[1:]
found = []
for seed in range(int(runs)):
    signal.setitimer(signal.ITIMER_PROF, float(limit))
    pca = PCA(int(count), epsilon=float(epsilon), data_norm=float(radius), centered=True, random_state=seed)
    found.append(pca.fit(np.load(source)).components_)
np.save(target, found)
"""


def captured(components: np.ndarray, X: np.ndarray) -> float:  # noqa: N803
    """The share of Σ|x|² that lies in the subspace of these orthonormal rows."""
    return float(np.sum((X @ components.T) ** 2) / np.sum(X * X))


def run(setting: Setting) -> Result:
    """Every table of images at every ε."""
    numbers, claims = Numbers(), []
    peer = os.environ.get(PEER_VARIABLE)
    for panel, table, kept, repeats in _tables(setting):
        claims += _table(setting, numbers, panel, table, kept, repeats, peer)
    if peer is None:
        claims.append(
            not_reproducible("diffprivlib 0.6.6", "its PCA at the same ε", f"not run: give --peer or {PEER_VARIABLE}")
        )
    title = "Private principal components: captured share of the second moment"
    return Result("private-pca", title, numbers, tuple(claims), setting.size)


def _tables(setting: Setting) -> Iterator[tuple[str, np.ndarray, int, int]]:
    """Panel, pixels in [0, 1], number of components, and number of runs."""
    if setting.size == "smoke":
        images = setting.rng.random((300, 1, 1)) * np.linspace(0, 1, 16).reshape(4, 4)
        images = np.clip(images + 0.1 * setting.rng.standard_normal((300, 4, 4)), 0, 1)
        yield "synthetic 4×4", images.reshape(300, -1), 2, 2
        return
    from sklearn.datasets import load_digits

    digits = load_digits().images / 16
    repeats = setting.pick(1, 3, 10)
    yield "digits averaged to 2×2", _averaged(digits, 4), 2, repeats
    yield "digits 8×8", digits.reshape(len(digits), -1), 5, repeats
    file = setting.file("images/mnist10k.npz")
    if file is not None:
        with np.load(str(file)) as arrays:
            images = arrays["x"] / 255.0
        yield "MNIST 10k averaged to 2×2", _averaged(images, 14), 2, repeats
        # 28×28 pixels take 1.2 million exact normal numbers per pure release
        side = setting.pick(4, 2, 1)
        yield f"MNIST 10k {28 // side}×{28 // side}", _averaged(images, side), 5, setting.pick(1, 2, 4)


def _averaged(images: np.ndarray, side: int) -> np.ndarray:
    n, height, width = images.shape
    cells = images.reshape(n, height // side, side, width // side, side).mean(axis=(2, 4))
    return np.asarray(cells.reshape(n, -1))


def _table(
    setting: Setting, numbers: Numbers, panel: str, table: np.ndarray, kept: int, repeats: int, peer: str | None
) -> list[Claim]:
    columns = table.shape[1]
    radius = float(np.sqrt(columns)) / 2
    clipped = table * np.minimum(1, radius / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300))
    moment = clipped.T @ clipped
    best = captured(np.linalg.eigh(table.T @ table)[1].T[-kept:], table)

    def shares(solver: str, budget: Budget) -> list[float]:
        runs = (PrivatePCA(kept, budget, radius, solver=solver, random_state=setting.rng) for _ in range(repeats))
        return [captured(run.fit(table).components_, table) for run in runs]

    found: _Samples = {}
    for epsilon in setting.each(_EPSILONS, panel):
        approximate, pure = ApproxDP(epsilon, _DELTA), PureDP(epsilon)
        samples = {_APPROX: shares("auto", approximate), _PURE: shares("auto", pure)}
        samples |= {_APPROX_DESCENT: shares("descent", approximate), _PURE_DESCENT: shares("descent", pure)}
        # the baselines cost next to nothing: more runs for smaller errors
        samples[_AMIN] = [
            captured(sequential_eigenvectors(moment, kept, epsilon=epsilon, radius=radius, rng=setting.rng), table)
            for _ in range(3 * repeats)
        ]
        if peer is not None:
            theirs = _of_peer(peer, table, kept, radius, epsilon, 3 * repeats, _limit(setting))
            if theirs is not None:
                samples[_PEER] = [captured(components, table) for components in theirs]
        numbers.add(panel, _EXACT, epsilon, best)
        numbers.add(panel, _CHANCE, epsilon, kept / columns)
        for name, sample in samples.items():
            numbers.add_sample(panel, name, epsilon, np.array(sample))
        found[epsilon] = samples
    return _verdicts(panel, best, found, peer, setting)


def _limit(setting: Setting) -> float:
    """Seconds of CPU time that diffprivlib gets for one answer."""
    return setting.pick(5, 10, 20)


def _against(found: _Samples, ours: str, theirs: str) -> tuple[str, bool]:
    """Both mean shares with their standard errors at every ε that has both; whether ours is nowhere below theirs.

    Below means: by more than four standard errors of the difference.
    """
    told, holds = [], True
    for epsilon, samples in found.items():
        if theirs in samples:
            (mine, my_error), (other, other_error) = (mean_and_error(samples[name]) for name in (ours, theirs))
            told.append(f"{mine:.4f} ± {my_error:.4f} against {other:.4f} ± {other_error:.4f} at ε = {epsilon:g}")
            holds = holds and mine - other + 4 * float(np.hypot(my_error, other_error)) >= 0
    return "; ".join(told), holds


def _verdicts(panel: str, best: float, found: _Samples, peer: str | None, setting: Setting) -> list[Claim]:
    means = {epsilon: float(np.mean(samples[_APPROX])) / best for epsilon, samples in found.items()}
    told = ", ".join(f"{share:.1%} at ε = {epsilon:g}" for epsilon, share in means.items())
    where = f"PrivatePCA, {panel}"
    claims = [
        claim(
            where,
            "at (1, 10⁻⁶) it captures 90 % of what exact components capture",
            f"{told} of {best:.4f}",
            means[1.0] >= 0.9,
            setting.above_smoke(inside("share of exact at (1, 10⁻⁶)", means[1.0], 0.8, 1.0, proven="high")),
            setting.above_smoke(inside("share of exact at (10, 10⁻⁶)", means[10.0], 0.97, 1.0, proven="high")),
        ),
        claim(where, 'at (ε, 10⁻⁶) "auto" is not worse than "descent"', *_against(found, _APPROX, _APPROX_DESCENT)),
        claim(where, 'at pure ε "auto" is not worse than "descent"', *_against(found, _PURE, _PURE_DESCENT)),
        claim(
            where,
            "at pure ε it is not worse than the eigenvectors of Amin et al. 2019",
            *_against(found, _PURE, _AMIN),
        ),
    ]
    says = "at pure ε it is not worse than diffprivlib's PCA"
    if any(_PEER in samples for samples in found.values()):
        claims.append(claim(where, says, *_against(found, _PURE, _PEER)))
    silent = [f"{epsilon:g}" for epsilon, samples in found.items() if _PEER not in samples]
    if peer is not None and silent:
        told = f"diffprivlib gave no answer within {_limit(setting):g} s of CPU time at ε = {', '.join(silent)}"
        claims.append(not_reproducible(where, says, told))
    return claims


def _of_peer(peer: str, table: np.ndarray, kept: int, radius: float, epsilon: float, runs: int, limit: float) -> Any:
    """diffprivlib's components in each run, or None where one does not end within `limit` seconds of CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "table.npy", Path(folder) / "components.npy"
        np.save(source, table)
        arguments = [str(source), str(target), str(kept), repr(radius), repr(epsilon), str(runs), repr(limit)]
        try:
            done = subprocess.run(
                [peer, "-c", _PEER_SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=60 * limit
            )
        except FileNotFoundError:
            raise ArgumentError(f"peer must be a Python interpreter; {peer!r} is none.") from None
        if "ModuleNotFoundError" in done.stderr:
            raise ArgumentError(f"{peer!r} has no diffprivlib: install diffprivlib==0.6.6 there, or leave peer out.")
        return np.load(target) if target.exists() else None


def draw(result: Result, axes: Any) -> None:
    """One panel per table, and one legend."""
    for axis, panel in zip(axes, result.panels, strict=False):
        curves(axis, result, panel, x="ε", y="captured share of Σ|x|²", log="x", legend=False)
    legend_below(axes[: len(result.panels)], 2)


def main(arguments: list[str] | None = None) -> None:
    """Run this study, with diffprivlib where there is one."""
    parser = argparse.ArgumentParser(prog="python -m papers.private_pca", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="out")
    parser.add_argument("--data", default=None, help="the folder of real data (else DPMANIFOLDS_DATA)")
    parser.add_argument("--peer", default=None, help="a Python with diffprivlib 0.6.6 (else DPMANIFOLDS_PEER)")
    given = parser.parse_args(arguments)
    if given.peer is not None:
        os.environ[PEER_VARIABLE] = given.peer
    from rich.console import Console

    reproduce("private-pca", quick=given.quick, out=given.out, data=given.data, console=Console())


if __name__ == "__main__":
    main()
