"""Private descent on random batches: what T noisy gradient steps promise under replace-one, or under add/remove.

>>> from dpmanifolds.privacy import poisson_descent
>>> promise = poisson_descent(n=1000, rate=0.01, steps=100, clip=1.0, sigma=0.1)
>>> promise.epsilon(1e-5) < 1.0
True

`sigma` is the standard deviation, per coordinate, of the noise on the MEAN gradient: the sum of the clipped
gradients is divided by the public batch size b, or by the public q·n under Poisson sampling, never by the realised
number. So the noise on the sum, in units of the clip norm C, is σb/C or σqn/C (MATH.md section 6, docs/accounting.md).
Under `adjacency="add-remove-one"` n is no fact about the records but the public number that the sum is divided by.
"""

from __future__ import annotations

from fractions import Fraction

from dpmanifolds._validate import choice, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy.guarantee import ADJACENCIES, Guarantee
from dpmanifolds.privacy.rounding import down, float_above, up
from dpmanifolds.privacy.terms import GaussianTerm, SubsampledGaussianTerm, Term

__all__ = ["fixed_size_descent", "full_batch_descent", "poisson_descent"]


def full_batch_descent(
    *, n: int, steps: int, clip: float, sigma: float, adjacency: str = "replace-one", unit: str = "record"
) -> Guarantee:
    """T steps on all n records: μ = 2C√T/(nσ), and half of that under add/remove.

    >>> from dpmanifolds.privacy import full_batch_descent
    >>> round(full_batch_descent(n=1000, steps=100, clip=1.0, sigma=0.1).as_gaussian().mu, 12)
    0.2
    """
    n, steps = positive_integer("n", n), positive_integer("steps", steps)
    moved = _records_moved(adjacency) * Fraction(positive_number("clip", clip))
    mu = float_above(moved / (n * Fraction(positive_number("sigma", sigma))))
    return Guarantee((GaussianTerm(mu=mu, count=steps),), adjacency, unit)


def poisson_descent(
    *, n: int, rate: float, steps: int, clip: float, sigma: float, adjacency: str = "replace-one", unit: str = "record"
) -> Guarantee:
    """T steps, each on a fresh Poisson sample of rate q; clipping is required, even where gradients are Lipschitz.

    >>> from dpmanifolds.privacy import poisson_descent
    >>> one, many = (poisson_descent(n=1000, rate=0.01, steps=steps, clip=1.0, sigma=0.1) for steps in (1, 100))
    >>> 0 < one.epsilon(1e-5) < many.epsilon(1e-5)
    True
    """
    n, steps = positive_integer("n", n), positive_integer("steps", steps)
    rate = positive_number("rate", rate)
    if rate > 1:
        raise ArgumentError(f"rate is a probability; got {rate}. Use batch size divided by n.")
    noise = positive_number("sigma", sigma) * rate * n / positive_number("clip", clip)
    sampling = "poisson" if _records_moved(adjacency) == 2 else "poisson-add-remove"
    return Guarantee((_step(sampling, rate, noise, steps),), adjacency, unit)


def fixed_size_descent(
    *, n: int, batch: int, steps: int, clip: float, sigma: float, adjacency: str = "replace-one", unit: str = "record"
) -> Guarantee:
    """T steps, each on a fresh set of b records drawn without replacement; under replace-one only.

    >>> from dpmanifolds.privacy import fixed_size_descent
    >>> promise = fixed_size_descent(n=1000, batch=10, steps=100, clip=1.0, sigma=0.4)
    >>> promise.terms[0].noise_multiplier <= 4.0
    True
    """
    n, batch, steps = positive_integer("n", n), positive_integer("batch", batch), positive_integer("steps", steps)
    if _records_moved(adjacency) == 1:
        raise ArgumentError(
            "batches of a fixed size are drawn from a public number of records, which add/remove neighbours do not "
            "share. Use Poisson sampling, or adjacency='replace-one'."
        )
    if batch > n:
        raise ArgumentError(f"batch is at most n = {n}; got {batch}.")
    noise = positive_number("sigma", sigma) * batch / positive_number("clip", clip)
    return Guarantee((_step("fixed-size", batch / n, noise, steps),), unit=unit)


def _records_moved(adjacency: str) -> int:
    """How many clipped gradients a neighbour changes in the sum: two for a replacement, one added or removed."""
    return 2 if choice("adjacency", adjacency, ADJACENCIES) == "replace-one" else 1


def _step(sampling: str, rate: float, noise: float, steps: int) -> Term:
    """The term, its rate rounded up and its noise down; a full batch is an ordinary Gaussian."""
    noise, rate = down(noise, 50), min(up(rate, 51), 1.0)
    if rate == 1.0:
        moved = 1 if sampling == "poisson-add-remove" else 2
        return GaussianTerm(mu=float_above(moved / Fraction(noise)), count=steps)
    return SubsampledGaussianTerm(sampling=sampling, rate=rate, noise_multiplier=noise, count=steps)
