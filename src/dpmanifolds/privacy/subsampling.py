"""Private descent on random batches: what T noisy gradient steps promise under replace-one, or under add/remove.

>>> from dpmanifolds.privacy import poisson_descent
>>> promise = poisson_descent(n=1000, rate=0.01, steps=100, clip=1.0, sigma=0.1)
>>> promise.epsilon(1e-5) < 1.0
True

`sigma` is the standard deviation, per coordinate, of the noise on the MEAN gradient: the sum of the clipped
gradients is divided by the public batch size b, or by the public q·n under Poisson sampling, never by the realised
number. So the noise on the sum, in units of the clip norm C, is σb/C or σqn/C (MATH.md section 6, docs/accounting.md).
With `law="laplace"` each coordinate gets Laplace noise of scale σ, and gradients are clipped to C in the ℓ1 norm.
Under `adjacency="add-remove-one"` n is no fact about the records but the public number that the sum is divided by.
"""

from __future__ import annotations

from fractions import Fraction

from dpmanifolds._validate import choice, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy.batches import SubsampledGaussianTerm, SubsampledLaplaceTerm, TruncatedGaussianTerm
from dpmanifolds.privacy.guarantee import Guarantee, records_moved
from dpmanifolds.privacy.rounding import down, float_above, up
from dpmanifolds.privacy.terms import GaussianTerm, LaplaceTerm, Term

_LAWS = ("gaussian", "laplace")


def full_batch_descent(
    *,
    n: int,
    steps: int,
    clip: float,
    sigma: float,
    law: str = "gaussian",
    adjacency: str = "replace-one",
    unit: str = "record",
) -> Guarantee:
    """T steps on all n records: μ = 2C√T/(nσ), or ε = 2CT/(nσ) for Laplace noise; half of that under add/remove.

    >>> from dpmanifolds.privacy import full_batch_descent
    >>> round(full_batch_descent(n=1000, steps=100, clip=1.0, sigma=0.1).as_gaussian().mu, 12)
    0.2
    """
    n, steps = positive_integer("n", n), positive_integer("steps", steps)
    moved = records_moved(adjacency) * Fraction(positive_number("clip", clip))
    return Guarantee((_full(law, moved / (n * Fraction(positive_number("sigma", sigma))), steps),), adjacency, unit)


def poisson_descent(
    *,
    n: int,
    rate: float,
    steps: int,
    clip: float,
    sigma: float,
    law: str = "gaussian",
    largest_batch: int | None = None,
    n_cap: int | None = None,
    adjacency: str = "replace-one",
    unit: str = "record",
) -> Guarantee:
    """T steps, each on a fresh Poisson sample of rate q; clipping is required, even where gradients are Lipschitz.

    `largest_batch`: a larger sample is cut to so many of its records, drawn at random (Gaussian noise only). Under
    add/remove that needs `n_cap`, a public bound on the number of records.

    >>> from dpmanifolds.privacy import poisson_descent
    >>> one, many = (poisson_descent(n=1000, rate=0.01, steps=steps, clip=1.0, sigma=0.1) for steps in (1, 100))
    >>> 0 < one.epsilon(1e-5) < many.epsilon(1e-5)
    True
    >>> cut = poisson_descent(n=1000, rate=0.01, steps=100, clip=1.0, sigma=0.1, largest_batch=40)
    >>> 0 < cut.epsilon(1e-5) / many.epsilon(1e-5) - 1 < 1e-3
    True
    """
    n, steps = positive_integer("n", n), positive_integer("steps", steps)
    rate = positive_number("rate", rate)
    if rate > 1:
        raise ArgumentError(f"rate is a probability; got {rate}. Use batch size divided by n.")
    noise = positive_number("sigma", sigma) * rate * n / positive_number("clip", clip)
    sampling = "poisson" if records_moved(adjacency) == 2 else "poisson-add-remove"
    records = _records(n, n_cap, adjacency, largest_batch)
    if records is None:
        return Guarantee((_step(law, sampling, rate, noise, steps),), adjacency, unit)
    if choice("law", law, _LAWS) == "laplace":
        raise ArgumentError("batches that are cut are offered for law='gaussian' only. Leave largest_batch out.")
    term = TruncatedGaussianTerm(
        sampling=sampling,
        records=records,
        rate=min(up(rate, 51), 1.0),
        largest_batch=positive_integer("largest_batch", largest_batch),
        noise_multiplier=down(noise, 50),
        count=steps,
    )
    return Guarantee((term,), adjacency, unit)


def fixed_size_descent(
    *,
    n: int,
    batch: int,
    steps: int,
    clip: float,
    sigma: float,
    law: str = "gaussian",
    adjacency: str = "replace-one",
    unit: str = "record",
) -> Guarantee:
    """T steps, each on a fresh set of b records drawn without replacement; under replace-one only.

    >>> from dpmanifolds.privacy import fixed_size_descent
    >>> promise = fixed_size_descent(n=1000, batch=10, steps=100, clip=1.0, sigma=0.4)
    >>> promise.terms[0].noise_multiplier <= 4.0
    True
    """
    n, batch, steps = positive_integer("n", n), positive_integer("batch", batch), positive_integer("steps", steps)
    if records_moved(adjacency) == 1:
        raise ArgumentError(
            "batches of a fixed size are drawn from a public number of records, which add/remove neighbours do not "
            "share. Use Poisson sampling, or adjacency='replace-one'."
        )
    if batch > n:
        raise ArgumentError(f"batch is at most n = {n}; got {batch}.")
    noise = positive_number("sigma", sigma) * batch / positive_number("clip", clip)
    return Guarantee((_step(law, "fixed-size", batch / n, noise, steps),), unit=unit)


def _records(n: int, n_cap: int | None, adjacency: str, largest_batch: int | None) -> int | None:
    """The number of records, or the bound on it, that batches can be cut from; None where none is ever cut."""
    if largest_batch is None or adjacency == "replace-one":
        if n_cap is not None:
            raise ArgumentError("n_cap is for largest_batch under adjacency='add-remove-one'; leave it out.")
        records = n
    elif n_cap is None:
        raise ArgumentError("largest_batch under adjacency='add-remove-one' needs n_cap, a public bound on records.")
    else:
        records = positive_integer("n_cap", n_cap)
    if largest_batch is None or positive_integer("largest_batch", largest_batch) >= records:
        return None
    return records


def _full(law: str, moved: Fraction, steps: int) -> Term:
    """All records: ordinary noise, for a sum that moves by so much in units of it."""
    if choice("law", law, _LAWS) == "laplace":
        return LaplaceTerm(epsilon=float_above(moved), count=steps)
    return GaussianTerm(mu=float_above(moved), count=steps)


def _step(law: str, sampling: str, rate: float, noise: float, steps: int) -> Term:
    """The term, its rate rounded up and its noise down; a full batch is ordinary noise."""
    noise, rate = down(noise, 50), min(up(rate, 51), 1.0)
    if rate == 1.0:
        return _full(law, (1 if sampling == "poisson-add-remove" else 2) / Fraction(noise), steps)
    if choice("law", law, _LAWS) == "laplace":
        return SubsampledLaplaceTerm(sampling=sampling, rate=rate, noise_multiplier=noise, count=steps)
    return SubsampledGaussianTerm(sampling=sampling, rate=rate, noise_multiplier=noise, count=steps)
