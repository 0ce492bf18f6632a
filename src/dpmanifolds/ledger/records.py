"""What stands in a ledger, as frozen values, and its one spelling as JSON.

>>> from dpmanifolds.ledger.records import canonical
>>> from dpmanifolds.privacy import PureDP
>>> canonical(PureDP(1.0).to_dict())
'{"epsilon":1.0,"kind":"PureDP"}'
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError
from dpmanifolds.ledger.advisories import SECOND_USE, Advisory, advisories_for
from dpmanifolds.privacy import Budget, Guarantee, compose

WHOLE = "whole"
_SHORTEST, _LONGEST = 16, hashlib.blake2b.MAX_KEY_SIZE


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted names, no spaces, ASCII, every float as its shortest exact digits."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def guarantee_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    """What `Guarantee.to_json` writes, as a dictionary."""
    data: dict[str, Any] = json.loads(guarantee.to_json())
    return data


def public_parameters(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Parameters as plain JSON values, NumPy numbers and arrays included; anything else is refused."""

    def plain(value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        raise TypeError

    try:
        data: Any = json.loads(json.dumps({} if parameters is None else parameters, allow_nan=False, default=plain))
    except (TypeError, ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise ArgumentError(
            "parameters must be a dictionary of public facts that JSON can hold: text, finite numbers, True, False, "
            "None, and lists and dictionaries of these."
        )
    return data


def refuse_reproducible(reproducible: bool) -> None:
    """Whoever has the seed of a release can subtract its noise."""
    if reproducible:
        raise ArgumentError(
            "a release made with rng= or random_state= can be drawn again, and its noise subtracted, by whoever has "
            "the seed: it promises nothing and is not entered. Leave the seed out, or leave the ledger out of a trial."
        )


def keyed_fingerprint(data: Any, key: bytes) -> str:
    """BLAKE2b of `data` under `key`, in hexadecimal, 256 bits: whether two data sets are the same.

    A plain hash of records is no fingerprint: whoever suspects one value of one record can try it. With a key that
    stays with the custodian the digest is a pseudorandom function of the data. The ledger stores the digest, never the
    key. `data` is bytes, an array, or an iterable of these (columns, blocks). Shape, dtype and division into blocks
    count; byte order and memory layout do not.

    >>> import numpy as np
    >>> from dpmanifolds.ledger import keyed_fingerprint
    >>> key = b"sixteen bytes, or more"
    >>> keyed_fingerprint(np.arange(3.0), key) == keyed_fingerprint(np.array([0.0, 1.0, 3.0]), key)
    False
    """
    if not isinstance(key, bytes) or not _SHORTEST <= len(key) <= _LONGEST:
        raise ArgumentError(
            f"must be {_SHORTEST} to {_LONGEST} random bytes that stay with you, for instance secrets.token_bytes(32).",
            argument="key",
        )
    digest = hashlib.blake2b(key=key, digest_size=32, person=b"dpmanifolds")
    for piece in _pieces(data):
        # every piece is preceded by its length, so that no two lists of pieces feed the same bytes
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.hexdigest()


def _pieces(data: Any) -> Iterable[bytes | memoryview]:
    if isinstance(data, bytes | bytearray | memoryview):
        yield b"bytes"
        yield bytes(data)
    elif hasattr(data, "shape") and hasattr(data, "dtype"):
        array = np.asarray(data)
        if array.dtype.hasobject:
            raise ArgumentError(
                "must be bytes or arrays of numbers or fixed-width strings; got objects.", argument="data"
            )
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        yield f"{array.dtype.str} {np.shape(data)}".encode()
        yield array.tobytes()
    elif isinstance(data, Iterable) and not isinstance(data, str):
        for part in data:
            yield from _pieces(part)
    else:
        raise ArgumentError(
            f"must be bytes, an array, or an iterable of these; got {type(data).__name__}.", argument="data"
        )


@dataclass(frozen=True)
class Dataset:
    """A data set of a ledger: its total budget, and the limit of the filter that keeps it.

    >>> from dpmanifolds.ledger import Dataset
    >>> from dpmanifolds.privacy import PureDP
    >>> Dataset("survey", PureDP(2.0), PureDP(2.0), "replace-one", "record", None).filter
    'pure'
    """

    name: str
    budget: Budget
    limit: Budget
    adjacency: str
    unit: str
    fingerprint: str | None

    @property
    def filter(self) -> str:
        """The name of the filter."""
        return self.limit.filter

    def to_dict(self) -> dict[str, Any]:
        """Names and numbers only."""
        return {
            "budget": self.budget.to_dict(),
            "limit": self.limit.to_dict(),
            "adjacency": self.adjacency,
            "unit": self.unit,
            "fingerprint": self.fingerprint,
        }


@dataclass(frozen=True)
class Entry:
    """One line of the ledger: `kind` is "open", "spend", "reserve", "use" or "look", `details` what that kind needs.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.privacy import Guarantee
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = dpm.Ledger(Path(folder) / "privacy.ledger")
    ...     _ = ledger.open_dataset("survey", dpm.PureDP(2.0))
    ...     receipt = ledger.spend("survey", Guarantee.pure(0.5), what="mean")
    ...     entries = ledger.entries()
    >>> [(entry.number, entry.kind, entry.dataset) for entry in entries], entries[1].hash == receipt.hash
    ([(1, 'open', 'survey'), (2, 'spend', 'survey')], True)
    """

    number: int
    when: str
    kind: str
    dataset: str
    details: Mapping[str, Any]
    hash: str

    @property
    def what(self) -> str | None:
        """What was released; None for an opening."""
        return self.details.get("what")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The public facts that were noted with it."""
        found: Mapping[str, Any] = self.details.get("parameters", {})
        return found

    @property
    def version(self) -> str | None:
        """Of the package that made it; version 0.1 noted none."""
        return self.details.get("version")

    @property
    def advisories(self) -> tuple[Advisory, ...]:
        """What is known to be wrong with such releases of its version (docs/security.md)."""
        if self.kind not in ("spend", "use"):
            return ()
        found = advisories_for(self.version, str(self.what), mechanism=str(self.parameters.get("mechanism", "")))
        forged = self.kind == "use" and not 0 < self.details["reservation"] < self.number
        return (*found, SECOND_USE) if forged else found

    @property
    def parts(self) -> tuple[Guarantee, ...]:
        """The promises of a plan, in its order; one for a single release, none where nothing was spent."""
        return tuple(Guarantee.from_json(json.dumps(part)) for part in self.details.get("guarantees", ()))

    @property
    def guarantee(self) -> Guarantee | None:
        """The promise that was spent, of all parts together."""
        return compose(*self.parts) if self.parts else None

    @property
    def takes_whole(self) -> bool:
        """Whether the whole budget went into it (docs/ledger.md, "A plan fixed in advance")."""
        return self.details.get("charged") == WHOLE

    @property
    def charged(self) -> Budget | None:
        """What the filter added; None where nothing was spent or the whole budget was."""
        found = self.details.get("charged")
        return None if found is None or found == WHOLE else Budget.from_dict(found)

    def as_dataset(self) -> Dataset:
        """The data set that an entry of kind "open" describes."""
        data = self.details
        return Dataset(
            self.dataset,
            Budget.from_dict(data["budget"]),
            Budget.from_dict(data["limit"]),
            data["adjacency"],
            data["unit"],
            data["fingerprint"],
        )


@dataclass(frozen=True)
class Receipt:
    """Proof that a spend stands in the ledger: keep it with the release, `Ledger.verify` finds it again.

    >>> from dpmanifolds.ledger import Receipt
    >>> Receipt("survey", "mean", 2, "2026-01-01T00:00:00.000+00:00", "0" * 64).what
    'mean'
    """

    dataset: str
    what: str
    number: int
    when: str
    hash: str
