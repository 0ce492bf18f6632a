"""Private principal components of vectors: ours beside published ones, at the same promise.

    python -m benchmarks.league.vectors [--replicates 6] [--write docs/league_vectors.md]

Everybody gets ρ of zero-concentrated privacy, or a pure ε, replace-one, the same bound on lengths and nothing else. The
error of k orthonormal directions V is the share of the variance that the best k directions U hold and V does not,
1 − tr(VᵀΣV)/tr(UᵀΣU), Σ the second moment of the records as they are.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import optimize
from sklearn.datasets import load_breast_cancer, load_digits
from threadpoolctl import threadpool_limits

from benchmarks.league.cases import shorten
from benchmarks.league.noises import paid_radii
from benchmarks.league.tables import markdown, write_csv
from dpmanifolds import Budget, PureDP, ZeroConcentratedDP, private_covariance

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from covariance import adaptive, clipped, noisy_moment, pure_separate, separate

Rival = Callable[[np.ndarray, float, float, int, np.random.Generator], np.ndarray]
"""Of vectors, a bound, ρ or ε, k and a source of noise: k orthonormal directions (dim, k)."""
RHOS, EPSILONS = (0.005, 0.1, 0.5), (0.3, 1.0, 3.0)
OURS = "private_covariance"


def leading(matrix: np.ndarray, k: int) -> np.ndarray:
    """The eigenvectors of the k largest eigenvalues."""
    return np.asarray(np.linalg.eigh(matrix)[1][:, ::-1][:, :k])


def _ours(table: np.ndarray, bound: float, budget: Budget, k: int, rng: np.random.Generator) -> np.ndarray:
    """What `PrivatePCA` stands on."""
    return leading(private_covariance(table, bound, budget, about="origin", rng=rng).value, k)


def ours(table: np.ndarray, bound: float, rho: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """Zero-concentrated."""
    return _ours(table, bound, ZeroConcentratedDP(rho), k, rng)


def pure_ours(table: np.ndarray, bound: float, epsilon: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """Pure."""
    return _ours(table, bound, PureDP(epsilon), k, rng)


def analyze_gauss(table: np.ndarray, bound: float, rho: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """Dwork, Talwar, Thakurta and Zhang (2014): Gaussian noise on the second moment, √2·bound² apart."""
    return leading(noisy_moment(table, bound, rho, rng), k)


def separate_cov(table: np.ndarray, bound: float, rho: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """SeparateCov (Dong, Liang and Yi 2022)."""
    return leading(separate(table, bound, rho, rng), k)


def adaptive_cov(table: np.ndarray, bound: float, rho: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """AdaptiveCov, of the same paper."""
    return leading(adaptive(table, bound, rho, rng), k)


def dp_pca(table: np.ndarray, bound: float, rho: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """DP-PCA (Liu, Kong, Jain and Oh 2022) for one direction, k-DP-PCA (Düngler and Sanyal 2025) for several.

    Oja's rule w ← w + η·mean of x(xᵀw) over batches that no record is in twice, so that each has the whole budget: a
    twentieth of it pays for the range of these vectors, the rest for their clipped mean. k directions: a k-th of the
    records for each, projected off those before. With the exact Gaussian calibration, and of 2, 4, 8 and 16 batches and
    three rates the one that does best on the records themselves, which is not private: it flatters the rival.
    """
    parts = np.array_split(rng.permutation(len(table)), k)
    directions = np.zeros((table.shape[1], 0))
    for part in parts:
        rows = table[part] - table[part] @ directions @ directions.T
        tries = [_oja(rows, bound, rho, batches, rate, rng) for batches in (2, 4, 8, 16) for rate in (0.5, 2.0, 8.0)]
        best = max(tries, key=lambda w: float(np.sum((rows @ w) ** 2)))
        best = best - directions @ (directions.T @ best)
        directions = np.column_stack([directions, best / max(float(np.linalg.norm(best)), 1e-300)])
    return directions


def _oja(rows: np.ndarray, bound: float, rho: float, batches: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    mu = math.sqrt(2 * rho)
    w = rng.standard_normal(rows.shape[1])
    w /= np.linalg.norm(w)
    for batch in np.array_split(rows, batches):
        pulled = batch * (batch @ w)[:, None]
        lengths = np.linalg.norm(pulled, axis=-1)
        cut = float(paid_radii(lengths, bound**2, 0.95, math.sqrt(0.05) * mu, 1, rng)[0])
        sigma = 2 * cut / len(batch) / (math.sqrt(0.95) * mu)
        mean = shorten(pulled, cut).mean(axis=0) + sigma * rng.standard_normal(rows.shape[1])
        w = w + rate * mean / max(float(np.linalg.norm(mean)), 1e-300)
        w /= np.linalg.norm(w)
    return w


def wishart(table: np.ndarray, bound: float, epsilon: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """Analyze Gauss with the noise of a pure ε: the difference of two Wishart matrices."""
    return leading(noisy_moment(table, bound, PureDP(epsilon), rng), k)


def pure_separate_cov(table: np.ndarray, bound: float, epsilon: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """SeparateCov on top of it."""
    return leading(pure_separate(table, bound, epsilon, rng), k)


def exponential_pca(table: np.ndarray, bound: float, epsilon: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """One direction after the other by the exponential mechanism, as diffprivlib does (Amin et al. 2019).

    Density ∝ e^{ε/2k · uᵀCu} on the unit vectors that are orthogonal to those before, C = Σxxᵀ/bound², which moves by
    at most 1. All of ε is for directions, and half of ε/k, where diffprivlib has a quarter and pays for eigenvalues.
    """
    short = clipped(table, bound) / bound
    moment, directions = short.T @ short, np.zeros((table.shape[1], 0))
    for _ in range(k):
        free = np.linalg.svd(directions, full_matrices=True)[0][:, directions.shape[1] :]
        found = free @ bingham(epsilon / (2 * k) * free.T @ moment @ free, rng)
        directions = np.column_stack([directions, found])
    return directions


def bingham(matrix: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A unit vector of density ∝ e^{uᵀMu}, by rejection from an angular central Gaussian law (Kent et al. 2018)."""
    values, frame = np.linalg.eigh(matrix)
    gaps, dim = values[-1] - values, len(values)
    if dim == 1:
        return frame[:, 0]
    b = optimize.brentq(lambda each: float(np.sum(1 / (each + 2 * gaps))) - 1, 0.5, dim + 1.0)
    omega = 1 + 2 * gaps / b
    most = -(dim - b) / 2 + dim / 2 * math.log(dim / b)
    while True:
        draws = rng.standard_normal((64, dim)) / np.sqrt(omega)
        draws /= np.linalg.norm(draws, axis=1, keepdims=True)
        likely = -(draws**2) @ gaps + dim / 2 * np.log(draws**2 @ omega) - most
        kept = np.flatnonzero(np.log(rng.random(64)) <= likely)
        if kept.size:
            return np.asarray(frame @ draws[kept[0]])


RIVALS: Mapping[str, Rival] = {
    OURS: ours,
    "Analyze Gauss": analyze_gauss,
    "SeparateCov": separate_cov,
    "AdaptiveCov": adaptive_cov,
    "DP-PCA, k-DP-PCA": dp_pca,
}
PURE_RIVALS: Mapping[str, Rival] = {
    OURS: pure_ours,
    "Wishart noise": wishart,
    "SeparateCov": pure_separate_cov,
    "exponential mechanism (diffprivlib)": exponential_pca,
}


class Block(NamedTuple):
    """A kind of promise."""

    title: str
    sign: str
    budgets: tuple[float, ...]
    rivals: Mapping[str, Rival]
    file: str


BLOCKS = (
    Block("Zero-concentrated privacy", "ρ", RHOS, RIVALS, "league_vectors.csv"),
    Block("A pure ε", "ε", EPSILONS, PURE_RIVALS, "league_vectors_pure.csv"),
)


class Line(NamedTuple):
    """One cell: every competitor's mean error, and ours over the best rival's."""

    vectors: str
    k: int
    budget: float
    errors: dict[str, float]
    best: str
    ratio: float
    width: float


def tables() -> dict[str, tuple[np.ndarray, float]]:
    """Vectors and a public bound on their lengths."""
    rng = np.random.default_rng(0)
    spiked = rng.standard_normal((20_000, 50)) * np.sqrt(np.r_[np.full(1, 10.0), np.full(49, 1.0)])
    falling = rng.standard_normal((4_000, 100)) / np.sqrt(np.arange(1, 101))
    cancer = load_breast_cancer().data
    cancer = (cancer - cancer.mean(axis=0)) / cancer.std(axis=0)
    return {
        "digits (64 columns, 1,797 rows, bound 128)": (load_digits().data, 128.0),
        "breast cancer, standardised (30, 569, bound 20)": (cancer, 20.0),
        "one spike (50, 20,000, bound 16)": (spiked, 16.0),
        "one over i (100, 4,000, bound 6)": (falling, 6.0),
    }


def lost(table: np.ndarray, directions: np.ndarray) -> float:
    """Of the variance that as many directions can hold."""
    moment = table.T @ table
    most = float(np.sum(np.linalg.eigvalsh(moment)[-directions.shape[1] :]))
    return 1 - float(np.sum((table @ directions) ** 2)) / most


def play(block: Block, replicates: int) -> Iterator[Line]:
    """All cells of one kind of promise."""
    for name, (table, bound) in tables().items():
        for k in (1, 5):
            for budget in block.budgets:
                found = {}
                for rival, estimate in block.rivals.items():
                    rng = np.random.default_rng([k, round(1000 * budget)])
                    errors = [lost(table, estimate(table, bound, budget, k, rng)) for _ in range(replicates)]
                    found[rival] = (float(np.mean(errors)), float(np.std(errors, ddof=1)) / math.sqrt(replicates))
                best = min((rival for rival in found if rival != OURS), key=lambda rival: found[rival][0])
                ratio = found[OURS][0] / found[best][0]
                width = ratio * math.hypot(*(found[who][1] / found[who][0] for who in (OURS, best)))
                yield Line(name, k, budget, {who: mean for who, (mean, _) in found.items()}, best, ratio, width)


def write_table(path: Path, block: Block, lines: list[Line]) -> None:
    """All of them as CSV."""
    head = ("vectors", "k", block.sign, *block.rivals, "best rival", "ours over it", "standard error")
    rows = [
        (
            line.vectors,
            str(line.k),
            f"{line.budget:g}",
            *(f"{error:.3g}" for error in line.errors.values()),
            line.best,
            f"{line.ratio:.3f}",
            f"{line.width:.3f}",
        )
        for line in lines
    ]
    write_csv(path, head, rows)


def summarize(block: Block, lines: list[Line]) -> Iterator[str]:
    """Ours over the best rival for each table of vectors, and in how many cells it is behind."""
    behind = [line for line in lines if line.ratio - 3 * line.width > 1.02]
    middle = float(np.median([line.ratio for line in lines]))
    yield f"## {block.title}\n"
    yield (
        f"{len(lines)} cells, {block.sign} = {', '.join(f'{each:g}' for each in block.budgets)}; ours over the best "
        f"rival: median {middle:.2f}. {len(behind) or 'None'} above 1.02 by more than three standard errors. Every "
        f"cell: [{block.file}](tables/{block.file}).\n"
    )
    rows = []
    for name in dict.fromkeys(line.vectors for line in lines):
        mine = [line for line in lines if line.vectors == name]
        wins = dict.fromkeys(sorted((line.best for line in mine), key=[line.best for line in mine].count)[::-1])
        shown = [f"{min(at):.2f} – {max(at):.2f}" for at in ([x.ratio for x in mine if x.k == k] for k in (1, 5))]
        rows.append((name, *shown, "; ".join(wins)))
    yield from markdown(("vectors", "ours / best, k = 1", "k = 5", "best rivals"), rows)
    for line in behind:
        yield f"- behind: {line.vectors}, k = {line.k}, {block.sign} = {line.budget:g}: {line.ratio:.2f} of {line.best}"
    yield ""


_HEAD = """# The league: principal components of vectors

Directions from `private_covariance`, which `PrivatePCA` stands on, against published private PCA, at the same promise
and with the same public bound on lengths. Printed by

    python -m benchmarks.league.vectors --replicates {replicates} --write docs/league_vectors.md

Errors are the share of the variance of the best k directions that is lost, means over {replicates} releases; below 1
ours loses less. Analyze Gauss has the exact Δ = √2·bound²; under a pure ε its noise is the difference of two Wishart
matrices. DP-PCA has exact Gaussian noise in place of its asymptotic constants, and the best of twelve settings by the
records themselves, which flatters it. diffprivlib's PCA is the exponential mechanism, one direction after the other
(Amin et al. 2019), drawn here by exact rejection in floating point, with all of ε for the directions and twice
diffprivlib's exponent, which is enough.
"""


def main() -> None:
    """Print the tables, and write page and tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=6)
    parser.add_argument("--write", type=Path, help="the page; tables go to tables/ beside it")
    arguments = parser.parse_args()
    threadpool_limits(1)
    page = [_HEAD.format(replicates=arguments.replicates)]
    for block in BLOCKS:
        lines = []
        for line in play(block, arguments.replicates):
            lines.append(line)
            print(line.vectors, line.k, line.budget, line.best, f"{line.ratio:.3f} ± {line.width:.3f}", flush=True)
        page += summarize(block, lines)
        if arguments.write is not None:
            write_table(arguments.write.parent / "tables" / block.file, block, lines)
    if arguments.write is not None:
        arguments.write.write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
