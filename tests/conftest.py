"""The same examples and surroundings in every run, and the array libraries that geometric tests run on."""

from __future__ import annotations

import gc
import importlib
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tests.selection import leave_out_absent_libraries, leave_out_weak_cases, mark_long_cases

# the same examples in every run and no clock, so that neither chance nor a slow machine fails a test;
# --hypothesis-profile=default looks for other examples
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

# what is printed depends neither on the terminal nor on what else is on the machine
for _name in (
    *("COLUMNS", "LINES", "TERMINAL_WIDTH", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE", "GITHUB_ACTIONS"),
    *("DPMANIFOLDS_DATA", "DPMANIFOLDS_PEER", "DPMANIFOLDS_DEBUG"),
):
    os.environ.pop(_name, None)


# collected tests stay to the end: there is nothing among them for a collector of garbage to find
gc.disable()


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, among what tests make."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Grids are thinned out for the quick run, and an absent library is told of once."""
    absent = set(leave_out_absent_libraries(items))
    mark_long_cases(item for item in items if item not in absent)
    gone = absent | set(leave_out_weak_cases(items))
    config.hook.pytest_deselected(items=list(gone))
    items[:] = [item for item in items if item not in gone]


@dataclass(frozen=True)
class Backend:
    """One array library: how to hand it NumPy data and how to get them back."""

    name: str
    xp: Any

    def array(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self.array(part) for part in value)
        return self.xp.asarray(value)

    def numpy(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self.numpy(part) for part in value)
        return np.asarray(value)


def _load(name: str) -> Backend:
    module = pytest.importorskip({"jax": "jax.numpy"}.get(name, name))
    if name == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    if name == "torch":
        module.set_num_threads(1)
    return Backend(name, module)


@pytest.fixture(params=["numpy", "array_api_strict", "torch", "jax"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """NumPy, array-api-strict, PyTorch and JAX; the last two only where they are installed."""
    return _load(request.param)
