"""What every entry point does before and around a draw: check, charge the ledger, draw once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, is_numpy, leaves, namespace
from dpmanifolds._validate import choice, positive_integer
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, ConvergenceError
from dpmanifolds.manifolds import Product
from dpmanifolds.mechanisms import ADJACENCIES, host
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import Budget, Guarantee, solver_tolerance
from dpmanifolds.releases._placing import is_near, mended, placed
from dpmanifolds.statistics import MeanResult, frechet_mean
from dpmanifolds.statistics._clipping import clip_block
from dpmanifolds.statistics.persons import Persons, persons_of
from dpmanifolds.statistics.records import check_block, record_array
from dpmanifolds.statistics.streaming import Records, clipped_records_of, materialised
from dpmanifolds.sums.total import taken

__all__ = [
    "Account",
    "by_person",
    "certain_mean",
    "checked_budget",
    "checked_domain",
    "checked_guess",
    "clipped_records",
    "computed_mean",
    "grouped",
    "lasting_records",
    "open_account",
    "precision_of",
    "stacked",
    "streamed_records",
]

ON_INVALID = ("raise", "center")


@dataclass(frozen=True)
class Account:
    """Where randomness comes from and where it is paid for."""

    rng: np.random.Generator | None
    """None: the secure source."""
    ledger: Any
    dataset: str | None

    @property
    def reproducible(self) -> bool:
        return self.rng is not None

    def spend(self, what: str, guarantee: Guarantee, **parameters: Any) -> None:
        """Record the promise before the noise is drawn; a refusal leaves nothing behind."""
        if self.ledger is not None:
            self.ledger.spend(self.dataset, guarantee, what=what, parameters=parameters, reproducible=self.reproducible)


def open_account(ledger: Any, dataset: str | None, rng: Any) -> Account:
    """Check the three arguments that every entry point takes."""
    generator = None if rng is None else as_generator(rng)
    if ledger is None:
        if dataset is not None:
            raise ArgumentError("dataset= names an account of a ledger; pass ledger= too, or leave both out.")
        return Account(generator, None, None)
    if not isinstance(dataset, str) or not dataset:
        raise ArgumentError(f"a ledger needs dataset=, the name of the account to charge; got {dataset!r}.")
    if generator is not None:
        raise ArgumentError("a release made with rng= is reproducible, and a ledger takes none of those. Drop rng=.")
    from dpmanifolds.ledger import as_ledger

    return Account(None, as_ledger(ledger), dataset)


def checked_budget(budget: Any) -> Budget:
    """A budget, or an error that lists the kinds."""
    if not isinstance(budget, Budget):
        raise ArgumentError(
            f"budget must be PureDP, ApproxDP, GaussianDP, ZeroConcentratedDP or RenyiDP; got {budget!r}."
        )
    return budget


def checked_domain(domain: Any) -> Domain:
    """A domain, or an error that says what it is for."""
    if not isinstance(domain, Domain):
        raise ArgumentError(
            f"domain must be a Domain such as Ball(manifold, center, radius), the public promise about where records "
            f"live; got {type(domain).__name__}."
        )
    return domain


def checked_guess(adjacency: Any, n_guess: Any) -> int | None:
    """The public guess of the number of records where that is protected, else None."""
    if choice("adjacency", adjacency, ADJACENCIES) == "replace-one":
        if n_guess is not None:
            raise ArgumentError("n_guess is for adjacency='add-remove-one'; with 'replace-one' n is public.")
        return None
    if n_guess is None:
        raise ArgumentError("adjacency='add-remove-one' needs n_guess, a public guess of the number of records.")
    return positive_integer("n_guess", n_guess)


def precision_of(points: Array) -> str:
    """The dtype of the records, as NumPy spells it; of a product, the coarsest of its parts."""
    names = [str(leaf.dtype).rsplit(".", maxsplit=1)[-1] for leaf in leaves(points)]
    return next((name for name in names if name in ("float32", "complex64")), names[0])


def clipped_records(points: Any, domain: Domain, on_invalid: str) -> Array:
    """Records of the domain in memory, one per row; malformed ones raise, or become the centre."""
    manifold = domain.manifold
    if not isinstance(manifold, Product):
        return materialised(lasting_records(points, domain, on_invalid))
    records = _in_double(record_array(manifold, points))
    if choice("on_invalid", on_invalid, ON_INVALID) == "center":
        return mended(domain, records)
    check_block(manifold, records)
    return clip_block(domain, placed(manifold, records))


def streamed_records(points: Any, domain: Domain, on_invalid: str) -> Records:
    """Records that are placed and clipped block by block while the statistic reads them: no copy of all is made.

    NumPy records of single precision become double: exact, and what single precision would cost in noise is more. Other
    libraries keep their precision, and its rounding is charged.
    """
    center = choice("on_invalid", on_invalid, ON_INVALID) == "center"
    return clipped_records_of(
        points, domain, place=partial(placed, domain.manifold), mend=partial(mended, domain) if center else None
    )


def lasting_records(points: Any, domain: Domain, on_invalid: str) -> Records:
    """Records that are placed and clipped as points, the same in every pass, block by block while they are read.

    They are read again by routines that look at other parts of an array than clipping does: each is placed first.
    """
    records = streamed_records(points, domain, on_invalid)
    place = partial(placed, domain.manifold)
    return replace(records, preparation=replace(records.preparation, in_chart=False, place=place))


def _in_double(records: Array) -> Array:
    if isinstance(records, tuple):
        return tuple(map(_in_double, records))
    if not is_numpy(records) or records.dtype not in (np.float32, np.complex64):
        return records
    return host(records)


def grouped(domain: Domain, records: Array, persons: Persons) -> Array:
    """One point per person: the Fréchet mean of that person's clipped records, which lies in the domain like them.

    Balls up to `max_radius` are convex, and so is every other domain here: whatever a person's records are, they become
    one point of the domain, and replacing a person replaces one point. Every theorem for n records holds for n persons.
    """
    parts = [taken(records, persons.rows(each)) for each in np.flatnonzero(persons.sizes > 1).tolist()]
    points = taken(records, persons.order[persons.starts[:-1][persons.sizes == 1]])
    if parts:
        means = stacked([frechet_mean(domain.manifold, part).point for part in parts])
        places = np.argsort(np.argsort(persons.sizes > 1, kind="stable"))
        points = taken(_concatenated(points, means), places)
    return domain.clip(points)


def _concatenated(first: Array, second: Array) -> Array:
    if isinstance(first, tuple):
        return tuple(map(_concatenated, first, second))
    return namespace(first, second).concat([first, second], axis=0)


def by_person(domain: Domain, records: Array, group_by: Any) -> Array:
    """Clipped records as they are, or one point per person where `group_by` names the persons."""
    if group_by is None:
        return records
    return grouped(domain, records, persons_of(group_by, domain.manifold.batch_shape(records)[0]))


def stacked(points: list[Array]) -> Array:
    """Points along a new leading axis."""
    if isinstance(points[0], tuple):
        return tuple(stacked(list(parts)) for parts in zip(*points, strict=True))
    return namespace(*points).stack(points)


def computed_mean(domain: Domain, records: Array, dtype: str) -> MeanResult:
    """The Fréchet mean of clipped records to the public tolerance that the sensitivity pays for."""
    n = domain.manifold.batch_shape(records)[0]
    return certain_mean(frechet_mean(domain.manifold, records), domain, n, dtype)


def certain_mean(result: MeanResult, domain: Domain, n: int, dtype: str) -> MeanResult:
    """The result, or an error where it is not certain to be within the public tolerance."""
    error = solver_tolerance(domain, n, dtype) / 2
    if result.error_bound > error or not (domain.manifold.is_hadamard or is_near(domain, result.point, error)):
        raise ConvergenceError(
            "the mean was not found to the public tolerance, and nothing was released. Use double precision or a "
            "smaller ball."
        )
    return result
