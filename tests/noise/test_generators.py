"""Secure generators: no two places ever draw the same noise."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from randomgen import ChaCha

from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise import as_generator, secure_generator

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def in_child(function) -> bytes:
    """What `function` returns in a forked child."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of forks in processes with threads, which numerical libraries start
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, function())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        result = stream.read()
    os.waitpid(child, 0)
    return result


@forks
def test_parent_and_children_draw_differently():
    secure_generator().bytes(1)
    children = [in_child(lambda: secure_generator().bytes(64)) for _ in range(3)]
    drawn = [*children, secure_generator().bytes(64)]
    assert all(len(each) == 64 for each in drawn)
    assert len(set(drawn)) == 4


@forks
def test_a_generator_held_across_the_fork_is_rekeyed_too():
    held = secure_generator()
    held.bytes(5)
    children = [in_child(lambda: held.bytes(64)) for _ in range(3)]
    drawn = [*children, held.bytes(64)]
    assert all(len(each) == 64 for each in drawn)
    assert len(set(drawn)) == 4


@forks
@pytest.mark.parametrize("used", range(1, 20))
def test_nothing_buffered_survives_the_fork(used):
    """After an odd number of 32-bit words, the rest of the block and of the word is not handed to both sides."""
    held = secure_generator()
    held.integers(2**32, size=used, dtype=np.uint32)
    child = np.frombuffer(in_child(lambda: held.integers(2**32, size=8, dtype=np.uint32).tobytes()), np.uint32)
    parent = held.integers(2**32, size=8, dtype=np.uint32)
    # one of 8 × 8 pairs of independent words agrees with probability 1.5e-8
    assert child.size == 8
    assert not set(child.tolist()) & set(parent.tolist())


@forks
def test_a_generator_of_another_thread_is_rekeyed_and_unlocked_in_the_child():
    """A thread that holds the lock at the fork does not exist in the child: its generator must not hang there."""
    box, taken, done = [], threading.Event(), threading.Event()

    def hold():
        box.append(secure_generator())
        with box[0].bit_generator.lock:
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    child = in_child(lambda: box[0].bytes(64))
    done.set()
    thread.join()
    assert len(child) == 64
    assert child != box[0].bytes(64)


@forks
def test_a_child_of_a_child_draws_differently():
    held = secure_generator()

    def both() -> bytes:
        return held.bytes(32) + in_child(lambda: held.bytes(32))

    first = in_child(both)
    assert len({first[:32], first[32:], held.bytes(32)}) == 3


def test_threads_have_their_own_streams():
    drawn, generators = [], []

    def draw():
        generators.append(secure_generator())
        drawn.append(secure_generator().bytes(64))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 8
    assert len({id(generator) for generator in [*generators, secure_generator()]}) == 9


def test_one_thread_keeps_its_generator():
    assert secure_generator() is secure_generator()


def test_no_seed_reaches_the_secure_generator():
    with pytest.raises(TypeError):
        secure_generator(7)
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        drawn.append(secure_generator().bytes(32))
    assert drawn[0] != drawn[1]
    for attempt in (
        lambda bits: bits.seed(1),
        lambda bits: bits.state,
        lambda bits: setattr(bits, "state", ChaCha(1).state),
        lambda bits: bits.spawn(1),
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
    ):
        with pytest.raises(TypeError, match="secure generator"):
            attempt(secure_generator().bit_generator)
    for attempt in (copy.deepcopy, pickle.dumps, lambda generator: generator.spawn(2)):
        with pytest.raises(TypeError, match="secure generator"):
            attempt(secure_generator())


def test_two_processes_draw_differently():
    code = "from dpmanifolds.noise import secure_generator; print(secure_generator().bytes(32).hex())"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert len({run.stdout for run in runs}) == 2


def test_the_stream_is_chacha20():
    """The key-stream of the all-zero key and nonce (RFC 8439, A.1, test vector 1)."""
    words = np.random.Generator(ChaCha(key=0, rounds=20)).integers(2**32, size=16, dtype=np.uint32)
    expected = (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    assert words.astype("<u4").tobytes().hex() == expected


def test_rng_accepts_seeds_and_generators():
    assert as_generator(3).random() == np.random.default_rng(3).random()
    assert as_generator(np.int64(3)).random() == np.random.default_rng(3).random()
    given = np.random.default_rng(1)
    assert as_generator(given) is given
    assert as_generator(None) is secure_generator()
    assert as_generator() is secure_generator()


@pytest.mark.parametrize("rng", [np.random.RandomState(0), np.random, True, -1, 1.5, "seed"])
def test_rng_refuses_legacy_state_and_what_is_no_seed(rng):
    with pytest.raises(ArgumentError, match="rng must be None, a seed"):
        as_generator(rng)
