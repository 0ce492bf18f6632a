"""What every entry point does before and around a draw: check, charge the ledger, draw once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._validate import choice, positive_integer, shown
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import Guarantee
from dpmanifolds.sums import ADJACENCIES

__all__ = [
    "ON_INVALID",
    "Account",
    "checked_domain",
    "checked_guess",
    "checked_unit",
    "open_account",
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
        raise ArgumentError(f"a ledger needs dataset=, the name of the account to charge; got {shown(dataset)}.")
    if generator is not None:
        raise ArgumentError("a release made with rng= is reproducible, and a ledger takes none of those. Drop rng=.")
    from dpmanifolds.ledger import as_ledger

    return Account(None, as_ledger(ledger), dataset)


def checked_domain(domain: Any) -> Domain:
    """A domain, or an error that says what it is for."""
    if not isinstance(domain, Domain):
        raise ArgumentError(
            f"domain must be a Domain such as Ball(manifold, center, radius), the public promise about where records "
            f"live; got {type(domain).__name__}."
        )
    return domain


def checked_unit(unit: str | None, group_by: Any) -> str:
    """What one of the neighbours differ in is called: a record, or a person where records are grouped."""
    if unit is None:
        return "record" if group_by is None else "person"
    if not isinstance(unit, str) or not unit:
        raise ArgumentError(
            f"must say what neighbours differ in, for instance 'person'; got {shown(unit)}.", argument="unit"
        )
    return unit


def checked_guess(adjacency: Any, n_guess: Any) -> int | None:
    """The public guess of the number of records where that is protected, else None."""
    if choice("adjacency", adjacency, ADJACENCIES) == "replace-one":
        if n_guess is not None:
            raise ArgumentError("n_guess is for adjacency='add-remove-one'; with 'replace-one' n is public.")
        return None
    if n_guess is None:
        raise ArgumentError("adjacency='add-remove-one' needs n_guess, a public guess of the number of records.")
    return positive_integer("n_guess", n_guess)
