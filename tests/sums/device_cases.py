"""Records for kernels of a device, hard ones among them, and the contract they must keep; plain NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Integers = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Records (n, k, k) to integers (dim, n) and the number of the rule that each of them breaks."""


def ordinary_records(k: int, count: int, condition: float = 100.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    frames = np.linalg.qr(rng.standard_normal((count, k, k)))[0]
    values = np.exp(rng.uniform(-0.5, 0.5, (count, k)) * math.log(condition))
    made = (frames * values[:, None, :]) @ frames.swapaxes(1, 2)
    return (made + made.swapaxes(1, 2)) / 2


def hard_records(k: int) -> dict[str, np.ndarray]:
    """By name; subnormal ones are last."""
    one = np.eye(k)
    usual = ordinary_records(k, 1, 10.0, seed=7)[0]
    rng = np.random.default_rng(3)
    frame = np.linalg.qr(rng.standard_normal((k, k)))[0]

    def with_values(*values: float) -> np.ndarray:
        made = (frame * np.resize(values, k)) @ frame.T
        return (made + made.T) / 2

    cases = {
        "identity": one,
        "usual": usual,
        "repeated eigenvalues": with_values(2.0, 2.0, 3.0),
        "almost repeated eigenvalues": with_values(2.0, 2.0 * (1 + 1e-9), 3.0),
        "condition 1e6": with_values(1.0, 1e-6, 1e-3),
        "condition 1e12": with_values(1.0, 1e-12, 1.0),
        "condition 1e16": with_values(1.0, 1e-16, 1.0),
        "singular": np.outer(frame[0], frame[0]) if k > 1 else 0 * one,
        "negative": -usual,
        "one negative eigenvalue": with_values(-1e-3, 1.0, 1.0),
        "zero": 0 * one,
        "very large": 1e300 * usual,
        "almost overflowing": 1.7e308 * one,
        "very small": 1e-300 * usual,
        "stretched": np.diag(np.resize([1e150, 1e-150, 1.0], k)),
    }
    for name, value in (("not a number", math.nan), ("infinite", math.inf), ("minus infinite", -math.inf)):
        for place in {(0, 0), (0, k - 1), (k - 1, 0), (k - 1, k - 1)}:
            case = usual.copy()
            case[place] = value
            cases[f"{name} at {place}"] = case
    if k > 1:
        for skew in (1e-9, 1e-7, 1e-3, 1.0):
            case = usual.copy()
            case[0, 1] += skew
            cases[f"off by {skew}"] = case
    cases["smallest normal"] = 2.0**-1022 * one
    cases["subnormal"] = 1e-310 * usual
    cases["least subnormal"] = 5e-324 * one
    return cases


def breaches(
    integers: Integers, k: int, exponent: int, *, seed: int = 0, every_nth: int = 1, places: bool = True
) -> list[str]:
    """Where a record's integers depend on its company, place or cut, or leave the ball; empty if nowhere.

    `every_nth` of the hard records is looked at in companies of its own. Without `places` each record keeps its own
    among as many, of which one is replaced: what is promised of larger matrices on a device.
    """
    named = hard_records(k)
    names, hard = list(named), np.stack(list(named.values()))
    # some of them out of reach of products
    usual = ordinary_records(k, 700, 1e3, seed)
    usual[100:140] = ordinary_records(k, 40, 1e12, seed + 1)
    every = np.concatenate([hard, usual])
    names += [f"record {number}" for number in range(len(usual))]
    expected, rules = integers(every)
    found: list[str] = []

    def compare(what: str, at: np.ndarray, whole: np.ndarray, broken: np.ndarray) -> None:
        same = (whole == expected[:, at]).all(axis=0) & (broken == rules[at])
        found.extend(f"{what}: {names[row]}" for row in at[~same])

    rng = np.random.default_rng(seed + 1)
    count = len(every)
    for number in range(4 if places else 0):
        order = rng.permutation(count) if number else np.arange(count)[::-1]
        compare(f"order {number}", order, *integers(every[order]))
    for size in (1, 2, 127, 128, 129, 500) if places else ():
        some = np.arange(len(hard)) if size < 3 else np.arange(count)
        for first in range(0, len(some), size * (every_nth if size < 3 else 1)):
            at = some[first : first + size]
            compare(f"cut into {size}", at, *integers(every[at]))
    for row in range(0, len(hard) if places else 0, every_nth):
        # last of a block of other hard ones, and of usual ones
        for before in (np.delete(np.arange(len(hard)), row), np.arange(len(hard), len(hard) + 131)):
            at = np.append(before, row)
            compare("in other company", at, *integers(every[at]))
    # the same records beside another one: one hard record more, or less
    for row in range(0, len(hard), every_nth):
        if places:
            at = np.append(np.arange(len(hard), len(hard) + 140), row)
            at[[3, -1]] = at[[-1, 3]]
            compare("a neighbour replaced", at, *integers(every[at]))
        for old, new in ((row, len(hard) + row), (len(hard) + row, row)):
            at = np.where(np.arange(count) == old, new, np.arange(count))
            whole, broken = integers(every[at])
            others = np.arange(count) != old
            compare("one of all replaced", at[others], whole[:, others], broken[others])
    for row, column in enumerate(expected.T.tolist()):
        if sum(number * number for number in column) > 4**exponent:
            found.append(f"outside of the ball: {names[row]}")
    return found
