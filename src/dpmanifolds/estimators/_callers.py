"""Who fits a private estimator: a tool that fits it several times, or a pipeline with steps after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sklearn.pipeline import Pipeline

_REFITTING = tuple(
    f"sklearn.{name}."
    for name in (
        "model_selection",
        "calibration",
        "ensemble",
        "feature_selection",
        "multiclass",
        "multioutput",
        "semi_supervised",
    )
)


def refitting_tool() -> str | None:
    """The package of scikit-learn whose tool is calling, if it is one that fits an estimator several times."""
    modules = (str(frame.f_globals.get("__name__", "")) for frame in _callers())
    found = next((name for name in modules if name.startswith(_REFITTING)), None)
    return found and found.rpartition(".")[0]


def is_followed_by_private_steps(step: Any) -> bool:
    """Whether a pipeline is fitting this step, and all those after it are private in their training.

    A pipeline with a memory fits a copy of its step: it is known by its kind then.
    """
    for frame in _callers():
        pipeline = frame.f_locals.get("self")
        if frame.f_code.co_name == "_fit" and isinstance(pipeline, Pipeline):
            steps = [each for _, each in pipeline.steps if each not in (None, "passthrough")]
            own = [number for number, each in enumerate(steps) if each is step or type(each) is type(step)]
            later = steps[own[0] + 1 :] if own else []
            return bool(later) and all(getattr(each, "protects_training", False) for each in later)
    return False


def _callers() -> Iterator[FrameType]:
    """The frames above, the nearest first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
