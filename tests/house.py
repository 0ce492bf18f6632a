"""Counts of the house: how large it is, how far a mean walks through it, and what one room asks about another.

Run it by `python -m tests.house`; with a folder it counts the lines of another state of `src/dpmanifolds`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

HOME = Path(__file__).parents[1] / "src" / "dpmanifolds"
LONGEST = 400
"""Lines of a file."""
BUDGETS = {"Budget", "PureDP", "ApproxDP", "ZeroConcentratedDP", "GaussianDP", "RenyiDP"}


def modules() -> list[Path]:
    """Python files of the wheel."""
    return sorted(HOME.rglob("*.py"))


def room_of(path: Path) -> str:
    """The package below the root that a file lies in, or its own name."""
    return path.relative_to(HOME).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    """What a file says, read once."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def asked_in(path: Path) -> tuple[ast.AST, ...]:
    """The imports, calls and classes of a file, looked for once."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call, ast.ClassDef)
    return tuple(node for node in ast.walk(tree_of(path)) if isinstance(node, kinds))


@dataclass(frozen=True)
class Lines:
    """How the lines of some files are used."""

    code: int = 0
    docstring: int = 0
    """With the examples in them, which are run as tests."""
    example: int = 0
    """Those of the docstrings' lines that are run or show what is printed."""
    comment: int = 0
    blank: int = 0

    @property
    def total(self) -> int:
        return self.code + self.docstring + self.comment + self.blank

    def __add__(self, other: Lines) -> Lines:
        return Lines(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


def documented(path: Path) -> set[int]:
    """Numbers of the lines of a file that lie in docstrings, those of attributes too."""
    found: set[int] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def lines_of(path: Path) -> Lines:
    """What each line of a file is for; a blank line inside of a docstring is part of it."""
    text, inside = path.read_text().splitlines(), documented(path)
    counted = Lines()
    running = False
    for number, line in enumerate(text, start=1):
        bare = line.strip()
        running = number in inside and (bare.startswith(">>>") or (running and bool(bare) and bare != '"""'))
        counted += Lines(
            code=number not in inside and bool(bare) and not bare.startswith("#"),
            docstring=number in inside,
            example=running,
            comment=number not in inside and bare.startswith("#"),
            blank=number not in inside and not bare,
        )
    return counted


def lines_by_room(home: Path = HOME) -> dict[str, Lines]:
    """The lines of every room."""
    found: dict[str, Lines] = {}
    for path in sorted(home.rglob("*.py")):
        room = path.relative_to(home).parts[0].removesuffix(".py")
        found[room] = found.get(room, Lines()) + lines_of(path)
    return found


def names_in(node: ast.AST) -> set[str]:
    """All names that an expression mentions."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | {
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }


def class_checks(asked: set[str], but: set[str]) -> list[str]:
    """Places outside of some rooms that ask `isinstance` for one of these classes."""
    found = []
    for path in modules():
        if room_of(path) in but:
            continue
        for node in asked_in(path):
            is_check = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
            if is_check and names_in(node.args[1]) & asked:
                found.append(f"{path.relative_to(HOME)}:{node.lineno}")
    return found


def manifold_classes() -> set[str]:
    """Every class that the room of manifolds defines."""
    found = set()
    for path in (HOME / "manifolds").rglob("*.py"):
        found |= {node.name for node in asked_in(path) if isinstance(node, ast.ClassDef)}
    return found


def imported_modules(path: Path) -> set[str]:
    """Every module that a file imports by its full name, lazily or not."""
    names = set()
    for node in asked_in(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names


def imported_rooms(path: Path) -> set[str]:
    """Rooms of this package that a file imports, lazily or not; those of names that it takes from the root, too."""
    import dpmanifolds

    rooms = {name.split(".")[1] for name in imported_modules(path) if name.startswith("dpmanifolds.")}
    for node in asked_in(path):
        if isinstance(node, ast.ImportFrom) and node.module == "dpmanifolds":
            homes = (getattr(getattr(dpmanifolds, alias.name), "__module__", None) for alias in node.names)
            rooms.update(room_of(Path(str(sys.modules[home].__file__))) for home in homes if home is not None)
    return rooms


def rooms_that_import(*wanted: str) -> set[str]:
    """Rooms with at least one import from each of these."""
    known: dict[str, set[str]] = {}
    for path in modules():
        known.setdefault(room_of(path), set()).update(imported_rooms(path))
    return {room for room, seen in known.items() if set(wanted) <= seen}


def walk(job: Callable[[], Any]) -> tuple[set[str], int]:
    """Files that a call touches, and how often two calls in a row lie in different rooms (`_arrays` left out)."""
    files: set[str] = set()
    changes, last = 0, ""

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal changes, last
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(str(HOME)):
            return
        files.add(name)
        room = room_of(Path(name))
        if room != "_arrays":
            changes += bool(last) and room != last
            last = room

    sys.setprofile(watch)
    try:
        job()
    finally:
        sys.setprofile(None)
    return files, changes


def walk_of_a_mean() -> tuple[set[str], int]:
    """That of a default private mean on the sphere, in one shot, once everything is imported and planned."""
    import numpy as np

    import dpmanifolds as dpm

    records = dpm.Sphere(2).random_point(20, rng=0)
    ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.5)

    def mean() -> None:
        dpm.private_mean(records, ball, dpm.GaussianDP(1.0))

    mean()
    return walk(mean)


def rooms_of_default_releases() -> set[str]:
    """Rooms that default releases load, in a process of their own."""
    program = (
        "import sys, numpy as np, dpmanifolds as dpm;"
        "ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.5);"
        "records, budget = dpm.Sphere(2).random_point(50, rng=0), dpm.PureDP(1.0);"
        "dpm.private_mean(records, ball, budget);"
        "dpm.private_median(records, ball, budget);"
        "dpm.private_variance(records, ball, budget);"
        "print(*{name.split('.')[1] for name in sys.modules if name.startswith('dpmanifolds.')})"
    )
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def files_of_a_new_manifold() -> list[str]:
    """Files of the worked example of a manifold, which works everywhere (tests/manifolds/test_own_manifold.py)."""
    here = Path(__file__).parent / "manifolds"
    return [path.name for path in sorted(here.glob("*.py")) if "class Cylinder(" in path.read_text()]


def long_files() -> list[str]:
    """Files that do not fit one sitting."""
    return [str(path.relative_to(HOME)) for path in modules() if lines_of(path).total > LONGEST]


def lists_outside_of_rooms() -> list[str]:
    """Modules that list the names they offer, as only a room does: a package, or a module that is a room."""
    found = []
    for path in modules():
        is_room = path.name == "__init__.py" or path.parent == HOME
        if not is_room and any(
            "__all__" in names_in(node) for node in tree_of(path).body if isinstance(node, ast.Assign)
        ):
            found.append(str(path.relative_to(HOME)))
    return found


def is_private(name: str) -> bool:
    """Whether a name begins with one underscore."""
    return name.startswith("_") and not name.startswith("__")


@cache
def private_names() -> frozenset[str]:
    """Every private name of a function, a class, a constant or a field that the package defines."""
    found = set()
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return frozenset(filter(is_private, found))


def private_names_in(path: Path) -> set[str]:
    """Those that a test takes from the package: imported, asked of an object that is not its own, or replaced."""
    found, foreign = set(), {"self", "cls"}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if (node.module or "").startswith("dpmanifolds"):
                found |= names
            else:
                foreign |= names
        elif isinstance(node, ast.Attribute):
            found |= set() if isinstance(node.value, ast.Name) and node.value.id in foreign else {node.attr}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            found |= {str(given.value) for given in node.args if isinstance(given, ast.Constant)}
    return found & private_names()


TESTS_OF_INSIDES = {
    "federated/mpyc_kills.py": "a process that is killed cannot wait two minutes for the others",
    "federated/test_flower.py": "the adapter of an engine that is not installed, over a stand-in for that engine",
    "intrinsic/test_compact.py": "what proposals are drawn from and how often they are taken: a draw does not show it",
    "intrinsic/test_knorm_gradient.py": "bounds below the norm, and each kind of proposal alone",
    "intrinsic/test_spd.py": "two exact samplers of the same spectra, of which a draw takes the faster",
    "noise/test_exact.py": "integers with and without floating point, which are the same by design",
    "statistics/test_device.py": "that a kernel ran, and not the formulas that take its place where it fails",
    "sums/test_device.py": "kernels interpreted on the host, and pieces so small that a test has several",
}
"""Test files that use private names of the package, and what no public behaviour shows."""


def tests_of_private_names() -> set[str]:
    """Test files that use private names of the package."""
    here = Path(__file__).parent
    return {path.relative_to(here).as_posix() for path in here.rglob("*.py") if private_names_in(path)}


def files_in_the_wheel() -> int:
    """What is installed, data files included."""
    return sum(path.is_file() and path.suffix != ".pyc" for path in HOME.rglob("*"))


def print_lines(rooms: dict[str, Lines]) -> None:
    """A row for every room, the largest first, and one for all."""
    names = [field.name for field in fields(Lines)]
    print("".join(f"{name:>11}" for name in ("", "lines", *names)))
    largest = sorted(rooms.items(), key=lambda item: -item[1].total)
    for name, room in (*largest, ("all", sum(rooms.values(), Lines()))):
        print("".join(f"{entry:>11}" for entry in (name, room.total, *astuple(room))))


def main() -> None:
    """Print all counts."""
    files, changes = walk_of_a_mean()
    print(f"files in the wheel: {files_in_the_wheel()}")
    rooms = lines_by_room()
    print(f"lines of Python: {sum(room.total for room in rooms.values())}")
    print(f"files that a private mean touches: {len(files)}")
    print(f"changes of room on its way: {changes}")
    print(f"isinstance on budgets elsewhere: {len(class_checks(BUDGETS, {'privacy'}))}")
    print(f"isinstance on manifolds elsewhere: {len(class_checks(manifold_classes(), {'manifolds'}))}")
    print(f"files of a new manifold: {len(files_of_a_new_manifold())}")
    print(f"rooms that import both records and noise: {sorted(rooms_that_import('records', 'noise'))}")
    print(f"files past {LONGEST} lines: {', '.join(long_files()) or 'none'}")
    print(f"test files that use private names: {len(tests_of_private_names())}")
    print(f"default releases load the wing of idealized laws: {'intrinsic' in rooms_of_default_releases()}")
    print_lines(rooms)


if __name__ == "__main__":
    print_lines(lines_by_room(Path(sys.argv[1]))) if sys.argv[1:] else main()
