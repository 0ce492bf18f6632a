"""One random call after another, each watched for crashes and hangs; any call can be repeated by its number."""

from __future__ import annotations

import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmanifolds import DPManifoldsError
from tests.fuzz.calls import TARGETS
from tests.fuzz.values import Values

__all__ = ["Report", "call", "run"]

LONGEST = 5.0
"""Seconds of processor time that one call may take; asleep it may take twelve times that."""


class Hang(BaseException):
    """A call that took too long."""


@dataclass
class Report:
    """What became of the calls."""

    outcomes: Counter[str] = field(default_factory=Counter)
    by_target: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: dict[str, list[int]] = field(default_factory=dict)
    """Where a call crashed or hung (target, error, place in the code), and the numbers of the calls."""

    def note(self, number: int, target: str, outcome: str, where: str) -> None:
        self.outcomes[outcome] += 1
        self.by_target[target, outcome] += 1
        if where:
            self.failures.setdefault(f"{target}: {where}", []).append(number)

    def __str__(self) -> str:
        names = sorted({target for target, _ in self.by_target})
        kinds = ("done", "refused", "signature", "crashed", "hung")
        lines = [f"{'':36}" + "".join(f"{kind:>10}" for kind in kinds)]
        lines += [f"{name:36}" + "".join(f"{self.by_target[name, kind]:10}" for kind in kinds) for name in names]
        lines.append(f"{'all':36}" + "".join(f"{self.outcomes[kind]:10}" for kind in kinds))
        lines += [f"FAILED {len(calls)} times, e.g. call {calls[0]}: {where}" for where, calls in self.failures.items()]
        return "\n".join(lines)


def run(calls: int, seed: int, *, first: int = 0, most_failures: int = 10**9) -> Report:
    """Calls number first, …, first + calls − 1 of this seed."""
    report = Report()
    for number in range(first, first + calls):
        report.note(number, *call(seed, number))
        if len(report.failures) >= most_failures:
            break
    return report


def call(seed: int, number: int, *, loud: bool = False) -> tuple[str, str, str]:
    """The target, the outcome and, for a failure, where it happened."""
    values = Values(np.random.default_rng([seed, number]))
    weights = np.array([weight for weight, _ in TARGETS.values()])
    target = list(TARGETS)[int(values.rng.choice(len(weights), p=weights / weights.sum()))]
    try:
        # paths among the arguments are relative: what a call writes goes with the folder
        with tempfile.TemporaryDirectory() as folder, chdir(folder), _watched(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TARGETS[target][1](values)
    except DPManifoldsError:
        outcome = "refused", ""
    except TypeError as error:
        outcome = ("signature", "") if _is_about_the_signature(error) else ("crashed", _place(error))
        if loud:
            traceback.print_exc()
    except Hang as error:
        outcome = "hung", _place(error)
        if loud:
            traceback.print_exc()
    except Exception as error:
        outcome = "crashed", _place(error)
        if loud:
            traceback.print_exc()
    else:
        outcome = "done", ""
    return target, *outcome


def _is_about_the_signature(error: TypeError) -> bool:
    """Whether the call did not fit the parameters of the function that was called from here."""
    frames = traceback.extract_tb(error.__traceback__)
    told = "positional argument" in str(error) or "keyword argument" in str(error) or "abstract" in str(error)
    return told and "dpmanifolds" not in frames[-1].filename


def _place(error: BaseException) -> str:
    inside = [frame for frame in traceback.extract_tb(error.__traceback__) if "/dpmanifolds/" in frame.filename]
    where = f"{inside[-1].filename.split('/dpmanifolds/')[-1]}, {inside[-1].name}" if inside else "outside"
    return f"{type(error).__name__} in {where}"


@contextmanager
def _watched() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Hang

    before = {name: signal.signal(name, stop) for name in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.setitimer(signal.ITIMER_REAL, 12 * LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for name, handler in before.items():
            signal.signal(name, handler)
