"""Cryptographically strong generators that never share a stream between processes, threads or copies.

A fork copies the key. Python's own forks give every copy a new one at once; those of C code, which Python does not hear
of, are found by the number of the process, which is compared before every draw.
"""

from __future__ import annotations

import os
import secrets
import threading
import weakref
from typing import Any, NoReturn

import numpy as np
from randomgen import ChaCha

from dpmanifolds.errors import ArgumentError

_local = threading.local()
_ROUNDS = 20
_live: weakref.WeakSet[SecureChaCha] = weakref.WeakSet()


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


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError(
        "the secure generator takes no seed or state and cannot be duplicated, pickled or spawned from: two places "
        "would draw the same noise. Call secure_generator() there, or pass rng=seed for experiments."
    )


class SecureChaCha(ChaCha):  # type: ignore[misc]
    """ChaCha with 20 rounds and a 256-bit key from the operating system, whose stream belongs to one place only."""

    _sealed = False

    def __init__(self) -> None:
        super().__init__(key=secrets.randbits(256), rounds=_ROUNDS)
        self._process = os.getpid()
        self._sealed = True
        _live.add(self)

    def seed(self, *arguments: Any, **options: Any) -> None:
        """Used by the constructor of the base class, refused afterwards."""
        if self._sealed:
            _refuse()
        super().seed(*arguments, **options)

    state = property(_refuse, _refuse)
    spawn = __reduce__ = __reduce_ex__ = __getstate__ = __setstate__ = __copy__ = __deepcopy__ = _refuse

    def random_raw(self, *arguments: Any, **options: Any) -> Any:
        """Bits of this process alone."""
        self.rekey_in_child()
        return super().random_raw(*arguments, **options)

    def rekey_in_child(self) -> None:
        """A new key where this is another process than the one that the key was made in."""
        if self._process != os.getpid():
            self.rekey()

    def rekey(self) -> None:
        """A new key, counter and block: nothing of the old stream is left, buffered or to come.

        The state is all there is: a Generator on top of it buffers nothing between calls.
        """
        fresh = ChaCha(key=secrets.randbits(256), rounds=_ROUNDS).state
        # the setter wants to see the name of the class it sets
        fresh["bit_generator"] = ChaCha.state.__get__(self)["bit_generator"]
        ChaCha.state.__set__(self, fresh)
        # a thread that was drawing at the fork would hold this lock for ever: it does not exist in the child
        self.lock._at_fork_reinit()
        self._process = os.getpid()


class SecureGenerator(np.random.Generator):
    """A Generator on a `SecureChaCha` whose every draw begins with a look at the number of the process."""

    def __init__(self) -> None:
        super().__init__(SecureChaCha())

    def __getattribute__(self, name: str) -> Any:
        find = super().__getattribute__
        find("bit_generator").rekey_in_child()
        return find(name)


def _rekey_all() -> None:
    for bits in list(_live):
        bits.rekey()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rekey_all)


def uniform_directions(count: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """`count` independent, uniformly distributed unit vectors of R^dim, as rows.

    >>> import numpy as np
    >>> from dpmanifolds.noise import uniform_directions
    >>> bool(np.allclose(np.linalg.norm(uniform_directions(4, 3, np.random.default_rng(0)), axis=1), 1))
    True
    """
    draws = rng.standard_normal((count, dim))
    lengths = np.linalg.norm(draws, axis=1)
    # a row of exact zeros (probability about 2^-52 for dim 1) has no direction: take the first axis
    draws[lengths == 0, 0] = 1.0
    lengths[lengths == 0] = 1.0
    return np.asarray(draws / lengths[:, None])
