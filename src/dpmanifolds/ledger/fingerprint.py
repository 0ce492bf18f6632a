"""A keyed digest that tells whether two data sets are the same, to nobody without the key.

>>> import numpy as np
>>> from dpmanifolds.ledger import keyed_fingerprint
>>> key = b"sixteen bytes, or more"
>>> keyed_fingerprint(np.zeros(3), key) == keyed_fingerprint(np.zeros(3), key)
True
>>> keyed_fingerprint(np.zeros(3), key) == keyed_fingerprint(np.zeros((1, 3)), key)
False

A plain hash of records is no fingerprint: whoever suspects one value of one record can try it. With a key that stays
with the custodian the digest is a pseudorandom function of the data. The ledger stores the digest, never the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError

__all__ = ["keyed_fingerprint"]

_SHORTEST, _LONGEST = 16, hashlib.blake2b.MAX_KEY_SIZE


def keyed_fingerprint(data: Any, key: bytes) -> str:
    """BLAKE2b of `data` under `key`, in hexadecimal: 256 bits.

    `data` is bytes, an array, or an iterable of these (columns, blocks). Shape, dtype and division into blocks
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
