"""The package as a whole: light to import, and all that is asked of it is there."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dpmanifolds
from tests.house import tree_of

PACKAGE = Path(dpmanifolds.__file__).parent


def can_import(module: str, name: str) -> bool:
    """Whether `from module import name` finds it."""
    return hasattr(importlib.import_module(module), name) or find_spec(f"{module}.{name}") is not None


def names_defined_in(path: Path) -> set[str]:
    """Names of the functions, classes, imports and values at the top of a file."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


@pytest.mark.parametrize("room", ["audits", "benchmarks", "certificates", "docs", "examples", "papers"])
def test_what_stays_out_of_the_wheel_asks_for_names_that_exist(room):
    """Also where a function imports them, and in files that no test runs."""
    for path in sorted((PACKAGE.parents[1] / room).rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {"dpmanifolds", "papers"}:
                for alias in node.names:
                    assert can_import(node.module, alias.name), f"{path}: {node.module} has no {alias.name}"
            elif isinstance(node, ast.ImportFrom) and (path.parent / f"{node.module}.py").exists():
                missing = {alias.name for alias in node.names} - names_defined_in(path.parent / f"{node.module}.py")
                assert not missing, f"{path}: {node.module} has no {missing}"
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "dpm":
                assert hasattr(dpmanifolds, node.attr), f"{path}: dpmanifolds has no {node.attr}"


def test_importing_the_package_loads_no_heavy_library():
    heavy = ("sklearn", "opendp", "dp_accounting", "scipy", "matplotlib", "rich", "typer", "torch", "jax")
    heavy += ("pyarrow", "zarr", "mne")
    program = f"import sys, dpmanifolds; print([m for m in {heavy!r} if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"


def test_geometry_and_means_load_no_scipy():
    program = (
        "import sys, dpmanifolds as dpm; dpm.frechet_mean(dpm.SPD(2), dpm.SPD(2).random_point(5, rng=0));"
        "print('scipy' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "False"


def test_every_public_name_can_be_had_and_has_a_docstring():
    for name in dpmanifolds.__all__:
        value = getattr(dpmanifolds, name)
        assert isinstance(value, str) or value.__doc__
    assert set(dir(dpmanifolds)) == set(dpmanifolds.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = dpmanifolds.no_such_name
