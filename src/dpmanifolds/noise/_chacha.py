"""The bit generator behind secure_generator(); importing this file loads randomgen."""

from __future__ import annotations

import os
import secrets
import weakref
from typing import Any, NoReturn

from randomgen import ChaCha

__all__ = ["SecureChaCha"]

_ROUNDS = 20
_live: weakref.WeakSet[SecureChaCha] = weakref.WeakSet()


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
        self._sealed = True
        _live.add(self)

    def seed(self, *arguments: Any, **options: Any) -> None:
        """Used by the constructor of the base class, refused afterwards."""
        if self._sealed:
            _refuse()
        super().seed(*arguments, **options)

    state = property(_refuse, _refuse)
    spawn = __reduce__ = __reduce_ex__ = __getstate__ = __setstate__ = __copy__ = __deepcopy__ = _refuse

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


def _rekey_all() -> None:
    for bits in list(_live):
        bits.rekey()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rekey_all)
