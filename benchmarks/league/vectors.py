"""Private principal components of vectors: ours beside published ones, at the same promise.

    python -m benchmarks.league.vectors [--replicates 6] [--write docs/league_vectors.md]

Everybody gets ρ of zero-concentrated privacy, replace-one, the same bound on lengths and nothing else. The error of k
orthonormal directions V is the share of the variance that the best k directions U hold and V does not,
1 − tr(VᵀΣV)/tr(UᵀΣU), Σ the second moment of the records as they are.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from threadpoolctl import threadpool_limits

from benchmarks.league.cases import shorten
from benchmarks.league.noises import paid_radii
from dpmanifolds import ZeroConcentratedDP, private_covariance

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from covariance import adaptive, noisy_moment, separate

Rival = Callable[[np.ndarray, float, float, int, np.random.Generator], np.ndarray]
"""Of vectors, a bound, ρ, k and a source of noise: k orthonormal directions (dim, k)."""
RHOS = (0.005, 0.1, 0.5)
OURS = "private_covariance"


def leading(matrix: np.ndarray, k: int) -> np.ndarray:
    """The eigenvectors of the k largest eigenvalues."""
    return np.asarray(np.linalg.eigh(matrix)[1][:, ::-1][:, :k])


def ours(table: np.ndarray, bound: float, rho: float, k: int, rng: np.random.Generator) -> np.ndarray:
    """What `PrivatePCA` stands on."""
    return leading(private_covariance(table, bound, ZeroConcentratedDP(rho), about="origin", rng=rng).value, k)


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


RIVALS: Mapping[str, Rival] = {
    OURS: ours,
    "Analyze Gauss": analyze_gauss,
    "SeparateCov": separate_cov,
    "AdaptiveCov": adaptive_cov,
    "DP-PCA, k-DP-PCA": dp_pca,
}


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


def write_page(replicates: int) -> str:
    """Play, and tell."""
    lines = [_HEAD.format(replicates=replicates)]
    lines += ["| vectors | k | ρ | " + " | ".join(RIVALS) + " | ours over the best rival |"]
    lines += ["|---" * (len(RIVALS) + 4) + "|"]
    for name, (table, bound) in tables().items():
        for k in (1, 5):
            for rho in RHOS:
                found = {}
                for rival, estimate in RIVALS.items():
                    rng = np.random.default_rng([k, round(1000 * rho)])
                    errors = [lost(table, estimate(table, bound, rho, k, rng)) for _ in range(replicates)]
                    found[rival] = (float(np.mean(errors)), float(np.std(errors)) / math.sqrt(replicates))
                best = min((found[rival] for rival in RIVALS if rival != OURS), key=lambda pair: pair[0])
                ratio = found[OURS][0] / best[0]
                width = ratio * math.hypot(found[OURS][1] / found[OURS][0], best[1] / best[0])
                cells = " | ".join(f"{mean:.3g}" for mean, _ in found.values())
                lines.append(f"| {name} | {k} | {rho:g} | {cells} | {ratio:.2f} ± {width:.2f} |")
                print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


_HEAD = """# The league: principal components of vectors

Directions from `private_covariance`, which `PrivatePCA` stands on, against published private PCA, at the same
zero-concentrated promise and with the same public bound on lengths. Printed by

    python -m benchmarks.league.vectors --replicates {replicates} --write docs/league_vectors.md

Numbers are the share of the variance of the best k directions that is lost, means over {replicates} releases. Analyze
Gauss has the exact Δ = √2·bound². DP-PCA has exact Gaussian noise in place of its asymptotic constants, and the best of
twelve settings by the records themselves, which flatters it. diffprivlib's PCA (one eigenvector after the other by the
exponential mechanism, pure ε) is not here.
"""


def main() -> None:
    """Print the table, and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=6)
    parser.add_argument("--write", type=Path, help="the page")
    arguments = parser.parse_args()
    threadpool_limits(1)
    page = write_page(arguments.replicates)
    if arguments.write is not None:
        arguments.write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
