"""Cryptographically strong generators that never share a stream between processes or threads."""

from __future__ import annotations

import os
import secrets
import threading
from typing import Any

import numpy as np

__all__ = ["as_generator", "secure_generator"]

_local = threading.local()


def secure_generator() -> np.random.Generator:
    """This thread's generator: ChaCha with 20 rounds and a 256-bit key from the operating system.

    It cannot be seeded. Each thread has its own key; a forked child forgets its parent's and draws a new one.
    """
    generator = getattr(_local, "generator", None)
    if generator is None:
        from randomgen import ChaCha

        bits = ChaCha(key=secrets.randbits(256), rounds=20)
        generator = _local.generator = np.random.Generator(bits)
    return generator


def _forget() -> None:
    _local.__dict__.clear()


os.register_at_fork(after_in_child=_forget)


def as_generator(rng: Any = None) -> np.random.Generator:
    """`rng` as a Generator: None means the secure one, an integer seeds a reproducible one."""
    if rng is None:
        return secure_generator()
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.RandomState) or rng is np.random:
        raise TypeError("rng must be None, an integer seed or a numpy.random.Generator; legacy state is not taken")
    return np.random.default_rng(rng)
