"""Cryptographically strong generators that never share a stream between processes, threads or copies."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError

__all__ = ["as_generator", "secure_generator"]

_local = threading.local()


def secure_generator() -> np.random.Generator:
    """This thread's generator: ChaCha with 20 rounds and a 256-bit key from the operating system.

    It cannot be seeded, duplicated, pickled or spawned from. Each thread has its own key. In a forked child every
    secure generator has a new key, also one that was held in a variable across the fork, and also where C code forked.

    >>> from dpmanifolds.noise import secure_generator
    >>> secure_generator().standard_normal(3).shape
    (3,)
    """
    generator: np.random.Generator | None = getattr(_local, "generator", None)
    if generator is None:
        from dpmanifolds.noise._chacha import SecureGenerator

        generator = _local.generator = SecureGenerator()
    return generator


def as_generator(rng: Any = None) -> np.random.Generator:
    """`rng` as a Generator: None means the secure one, an integer seeds a reproducible one.

    >>> from dpmanifolds.noise import as_generator
    >>> as_generator(7).random() == as_generator(7).random()
    True
    """
    if rng is None:
        return secure_generator()
    if isinstance(rng, np.random.Generator):
        return rng
    if not (isinstance(rng, (bool, np.random.RandomState)) or rng is np.random):
        try:
            return np.random.default_rng(rng)
        except (TypeError, ValueError):
            pass
    raise ArgumentError(
        "must be None, a seed (a whole number of at least 0) or a numpy.random.Generator; legacy state such as "
        f"numpy.random.RandomState is not taken. Got {rng!r}.",
        argument="rng",
    )
