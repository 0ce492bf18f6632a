"""What every reproduced figure is: a run that gives numbers and verdicts, a drawing, and the files they go to.

>>> from papers import names
>>> "jiang-1" in names()
True

A verdict is computed from the numbers of the run and their statistical error, never written down beforehand. The key
numbers of a row are checked as well: a run whose number leaves its interval fails, and says which row it was. Nothing
in this room carries a privacy promise of its own: published baselines stand beside releases of the package.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dpmanifolds._validate import choice
from dpmanifolds.errors import ArgumentError, NoiseExceedsDomainWarning
from papers._checks import Check

__all__ = [
    "CONFIRMED",
    "CORRECTED",
    "NOT_REPRODUCIBLE",
    "Claim",
    "Numbers",
    "Result",
    "Setting",
    "claim",
    "compared",
    "names",
    "not_reproducible",
    "reproduce",
    "run_study",
]

CONFIRMED, CORRECTED, NOT_REPRODUCIBLE = "confirmed", "corrected", "not reproducible"
DATA_VARIABLE = "DPMANIFOLDS_DATA"
"""The environment variable that names the folder of real data."""

_SIZES = ("smoke", "quick", "full")
_STUDIES = {
    "reimherr-1": "reimherr_figure_1",
    "soto-1": "soto_figure_1",
    "soto-2": "soto_figure_2",
    "jiang-1": "jiang_figure_1",
    "han-1": "han_figure_1",
    "utpala-1": "utpala_figure_1",
    "utpala-2": "utpala_figure_2",
    "utpala-3": "utpala_figure_3",
    "errata": "errata",
    "comparison": "comparison",
    "private-pca": "private_pca",
    "mammals": "mammals",
}
_COLUMNS = ("panel", "series", "x", "value", "low", "high")
T = TypeVar("T")


@dataclass(frozen=True)
class Claim:
    """One quantitative statement of a paper, and what a run says to it.

    >>> from papers import Claim
    >>> Claim(where="Figure 1", says="the error halves", sees="0.51 ± 0.02 of it", verdict="confirmed").verdict
    'confirmed'
    """

    where: str
    says: str
    sees: str
    verdict: str
    checks: tuple[Check, ...] = ()

    @property
    def failures(self) -> list[str]:
        """A line for each number outside of its interval, with the row that it stands in."""
        return [f"{self.where}: {self.says}: {check}" for check in self.checks if not check.passed]


def claim(where: str, says: str, sees: str, holds: bool, *checks: Check | None) -> Claim:
    """Confirmed if the run bears it out, else corrected by what was seen; `checks` are what its numbers must be.

    A check that is None is one that this size or this data does not allow.
    """
    return Claim(where, says, sees, CONFIRMED if holds else CORRECTED, _real(checks))


def compared(
    where: str,
    says: str,
    value: float,
    within: tuple[float, float],
    *,
    error: float = 0.0,
    unit: str = "",
    note: str = "",
    checks: Sequence[Check | None] = (),
) -> Claim:
    """Confirmed if `value`, give or take four standard errors, meets the interval of what was said.

    >>> compared("section 1", "about a half", 0.52, (0.45, 0.55), error=0.01).verdict
    'confirmed'
    >>> compared("section 1", "about a half", 0.9, (0.45, 0.55), error=0.01).verdict
    'corrected'
    """
    low, high = within
    spread = f" ± {error:.2g}" if error else ""
    sees = f"{value:.4g}{spread}{unit}" + (f"; {note}" if note else "")
    return claim(where, says, sees, value - 4 * error <= high and value + 4 * error >= low, *checks)


def not_reproducible(where: str, says: str, why: str, *checks: Check | None) -> Claim:
    """Something that nobody can check from what was published; numbers of ours in `why` may still be checked."""
    return Claim(where, says, why, NOT_REPRODUCIBLE, _real(checks))


def _real(checks: Sequence[Check | None]) -> tuple[Check, ...]:
    return tuple(check for check in checks if check is not None)


class Numbers:
    """The rows of a figure: panel, series, x, value and, where there is one, an interval."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, float, float, float, float]] = []

    def add(self, panel: str, series: str, x: float, value: float, low: float = np.nan, high: float = np.nan) -> None:
        """One point."""
        self.rows.append((panel, series, float(x), float(value), float(low), float(high)))

    def add_sample(self, panel: str, series: str, x: float, sample: np.ndarray, errors: float = 2.0) -> None:
        """The mean of a sample, give or take so many standard errors."""
        middle, error = mean_and_error(sample)
        self.add(panel, series, x, middle, middle - errors * error, middle + errors * error)


def mean_and_error(sample: Any) -> tuple[float, float]:
    """The mean and its standard error."""
    values = np.asarray(sample, dtype=np.float64).ravel()
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def log_slope(x: Sequence[float], samples: Sequence[Any]) -> tuple[float, float]:
    """The slope of log mean against log x by least squares, and its standard error from the spread of the samples.

    >>> log_slope([1, 10, 100], [[1.0, 1.0], [0.01, 0.01], [0.0001, 0.0001]])[0].__round__(6)
    -2.0
    """
    means, errors = np.array([mean_and_error(sample) for sample in samples]).T
    away = np.log(np.asarray(x, dtype=np.float64))
    weights = (away - away.mean()) / np.sum((away - away.mean()) ** 2)
    return float(weights @ np.log(means)), float(np.sqrt(np.sum((weights * errors / means) ** 2)))


@dataclass(frozen=True)
class Result:
    """Numbers for a figure and verdicts on claims.

    >>> from papers import Claim, Result
    >>> from papers._study import Numbers
    >>> claim = Claim("Figure 1", "the error halves", "0.51 ± 0.02 of it", "confirmed")
    >>> result = Result("demo", "Error against n", Numbers(), (claim,))
    >>> "| Figure 1 | the error halves | 0.51 ± 0.02 of it | **confirmed** |" in result.markdown()
    True
    """

    name: str
    title: str
    numbers: Numbers
    claims: tuple[Claim, ...]
    size: str = "full"

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The numbers by name of column: panel, series, x, value, low, high."""
        return {name: [row[index] for row in self.numbers.rows] for index, name in enumerate(_COLUMNS)}

    @property
    def panels(self) -> list[str]:
        """In the order in which they were filled."""
        return list(dict.fromkeys(row[0] for row in self.numbers.rows))

    def series(self, panel: str) -> dict[str, np.ndarray]:
        """For each series of a panel its (points, 4) array of x, value, low, high."""
        found: dict[str, list[tuple[float, ...]]] = {}
        for row in self.numbers.rows:
            if row[0] == panel:
                found.setdefault(row[1], []).append(row[2:])
        return {name: np.array(points) for name, points in found.items()}

    @property
    def failures(self) -> list[str]:
        """A line for each checked number that is not what it must be."""
        return [f"{self.name}: {line}" for one in self.claims for line in one.failures]

    def markdown(self) -> str:
        """The verdicts as a table."""
        cells = [("where", "paper says", "we see", "verdict"), ("---",) * 4]
        cells += [(one.where, one.says, one.sees, f"**{one.verdict}**") for one in self.claims]
        return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in cells)

    def write(self, folder: Path, **facts: Any) -> None:
        """`NAME.csv` with the numbers, `NAME.md` with the verdicts, `NAME.json` with verdicts, checks and `facts`."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{self.name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_COLUMNS)
            writer.writerows(self.numbers.rows)
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")
        told = {"name": self.name, "title": self.title, "size": self.size, **facts}
        told["claims"] = [asdict(one) for one in self.claims]
        text = json.dumps(told, ensure_ascii=False, indent=1)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Setting:
    """How large a run is, where its randomness and its data come from, and who is told how far it is."""

    size: str = "full"
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    data: Path | None = None
    console: Any = None

    def pick(self, smoke: T, quick: T, full: T) -> T:
        """The one of three values that fits the size."""
        return {"smoke": smoke, "quick": quick, "full": full}[self.size]

    def above_smoke(self, check: Check) -> Check | None:
        """The check, or None where a run is too small for it."""
        return None if self.size == "smoke" else check

    def each(self, values: Sequence[T], what: str) -> Iterator[T]:
        """`values`, one after the other, behind a progress bar."""
        if self.console is None:
            yield from values
            return
        from rich.progress import track

        yield from track(values, what, console=self.console, transient=True)

    def file(self, name: str) -> Path | None:
        """A file of the data folder, or None where it is not there."""
        path = None if self.data is None else self.data / name
        return path if path is not None and path.is_file() else None


def names() -> list[str]:
    """What `reproduce` can run.

    >>> from papers import names
    >>> "errata" in names()
    True
    """
    return list(_STUDIES)


def run_study(name: str, setting: Setting) -> Result:
    """The numbers and verdicts of one study, without writing anything."""
    module = _module(name)
    with warnings.catch_warnings():
        # figures show what little budgets leave, too
        warnings.simplefilter("ignore", NoiseExceedsDomainWarning)
        result: Result = module.run(setting)
    return result


def reproduce(
    name: str,
    *,
    quick: bool = False,
    out: str | os.PathLike[str] = "out",
    data: str | os.PathLike[str] | None = None,
    seed: int = 0,
    console: Any = None,
) -> Result:
    """Run one study and write `NAME.csv`, `NAME.md`, `NAME.json` and, with matplotlib, `NAME.png` to `out`.

    `quick` runs smaller sizes with wider error bars. `data` is the folder of real data; without it the variable
    DPMANIFOLDS_DATA is asked, and where that is not set either, synthetic records stand in and the titles say so.
    `console` is a rich Console on which progress and the table of verdicts are shown. `failures` of the result names
    the rows whose numbers are not what they must be.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from papers import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = reproduce("utpala-3", quick=True, out=folder)
    ...     sorted(path.name for path in Path(folder).iterdir())[:2]
    ['utpala-3.csv', 'utpala-3.json']
    """
    choice("name", name, tuple(_STUDIES))
    folder = data if data is not None else os.environ.get(DATA_VARIABLE)
    if folder is not None and not Path(folder).is_dir():
        raise ArgumentError(f"data must be a folder of real data; {os.fspath(folder)!r} is none.")
    setting = Setting(
        "quick" if quick else "full", np.random.default_rng(seed), None if folder is None else Path(folder), console
    )
    started = time.process_time()
    result = run_study(name, setting)
    spent = round(time.process_time() - started, 1)
    result.write(Path(out), seed=seed, real_data=folder is not None, cpu_seconds=spent)
    drawn = draw_to(result, Path(out) / f"{name}.png")
    if console is not None:
        show(result, console)
        told = f"{name}.csv, {name}.md, {name}.json" + (
            f", {name}.png" if drawn else "; install matplotlib for the figure"
        )
        console.print(f"Written to {Path(out)}: {told}")
    return result


def draw_to(result: Result, path: Path) -> bool:
    """The figure as a PNG; False where matplotlib is not installed."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return False
    from papers._plots import STYLE

    module = _module(result.name)
    rows, columns = module.PANELS
    with rc_context(fname=STYLE):
        figure = Figure(figsize=module.SIZE, layout="constrained")
        axes = np.atleast_1d(np.asarray(figure.subplots(rows, columns))).ravel()
        module.draw(result, axes)
        figure.suptitle(result.title)
        _save(figure, path)
    return True


def _save(figure: Any, path: Path) -> None:
    """As a PNG with a palette: a third of the bytes, and no difference to the eye."""
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(128).save(path, optimize=True)


def show(result: Result, console: Any) -> None:
    """The table of verdicts."""
    from rich.table import Table

    table = Table(title=f"{result.name} ({result.size}): {result.title}", show_lines=True)
    for heading in ("where", "paper says", "we see", "verdict"):
        table.add_column(heading)
    colours = {CONFIRMED: "green", CORRECTED: "yellow", NOT_REPRODUCIBLE: "magenta"}
    for one in result.claims:
        table.add_row(one.where, one.says, one.sees, f"[{colours[one.verdict]}]{one.verdict}[/]")
    console.print(table)
    for line in result.failures:
        console.print(f"WRONG NUMBER in {line}", style="red", markup=False, highlight=False)


def _module(name: str) -> Any:
    choice("name", name, tuple(_STUDIES))
    return importlib.import_module(f"papers.{_STUDIES[name]}")
