"""The way of every release: read, plan, ask, charge and draw, write."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from dpmanifolds._points import has_parts
from dpmanifolds.cli.options import Accounting, Budgeting, Place, Records, Saving
from dpmanifolds.cli.records import Loaded, ball_from, budget_from, load, persons
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NoiseExceedsDomainWarning
from dpmanifolds.ledger import Ledger
from dpmanifolds.planning import Plan
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.releases import Release
from dpmanifolds.show import save_release
from dpmanifolds.show.report import new_files
from dpmanifolds.show.tables import aside, facts, left_in_words, plan_table, result, say, working
from dpmanifolds.show.words import percent


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that a release needs, with nothing spent yet."""

    loaded: Loaded
    ball: Ball
    budget: Budget
    groups: np.ndarray | None
    """The number of the person of each record, where persons have several."""
    n: int
    saving: Saving
    terms: dict[str, Any]
    """unit, ledger, dataset and rng, as the entry points take them."""
    on_invalid: str

    @property
    def counted(self) -> str:
        """n in words."""
        return f"{self.n} {self.terms['unit'].partition(' within ')[0]}{'s' if self.n != 1 else ''}"


def prepare(records: Records, place: Place, budgeting: Budgeting, accounting: Accounting, saving: Saving) -> Job:
    """Check everything that can be checked, and read the records."""
    budget = budget_from(asked_budget(budgeting, saving))
    terms = account_of(accounting, saving)
    if place.reference is not None and any(_same_file(path, place.reference) for path in records.files):
        raise ArgumentError(
            "--reference must be PUBLIC records, other than those to be released: this would leak them."
        )
    new_files(saving.out, overwrite=saving.overwrite)
    loaded = load(records, place)
    ball = ball_from(_asked_place(place, saving), loaded.manifold)
    known = persons(records, loaded)
    kind = loaded.kind if known is None else "person"
    if accounting.unit is None and terms["unit"] not in (None, "record", kind):
        raise ArgumentError(
            f"the account protects one {terms['unit']} at a time, and here each record is one {kind}. Group them "
            f"(--group-by), or say with --unit {terms['unit']} that none has more than one."
        )
    terms["unit"] = terms["unit"] or kind
    numbers, count = (None, len(loaded.points)) if known is None else (known.numbers, known.count)
    return Job(loaded, ball, budget, numbers, count, saving, terms, records.on_invalid)


def _same_file(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def _can_ask(saving: Saving) -> bool:
    return at_terminal() and not saving.yes


def asked_budget(budgeting: Budgeting, saving: Saving) -> Budgeting:
    """With ε from the person at the terminal where no budget was given."""
    if (budgeting.epsilon, budgeting.mu, budgeting.rho) == (None, None, None) and _can_ask(saving):
        return replace(budgeting, epsilon=typer.prompt("Budget ε (1 is usual)", type=float, err=True))
    return budgeting


def _asked_place(place: Place, saving: Saving) -> Place:
    """With the radius from the person at the terminal where no ball was given."""
    ways = (place.radius, place.eigenvalues, place.bounds, place.reference, place.typical)
    if all(way is None for way in ways) and not place.positive_orthant and _can_ask(saving):
        words = "Radius of the public ball, from knowledge and not from the records"
        return replace(place, radius=typer.prompt(words, type=float, err=True))
    return place


def account_of(accounting: Accounting, saving: Saving) -> dict[str, Any]:
    """unit, ledger, dataset and rng; an account that is not open is refused with the command that opens it."""
    if accounting.ledger is None:
        if accounting.dataset is not None:
            raise ArgumentError("--dataset names an account of a ledger: pass --ledger FILE too, or leave both out.")
        return {"unit": accounting.unit, "ledger": None, "dataset": None, "rng": saving.seed}
    if accounting.dataset is None:
        raise ArgumentError("--ledger needs --dataset NAME, the account to charge.")
    if saving.seed is not None:
        raise ArgumentError("--seed makes a release for tests, and a ledger takes none of those. Leave --seed out.")
    ledger = Ledger(accounting.ledger)
    known = {dataset.name: dataset for dataset in ledger.datasets()} if accounting.ledger.exists() else {}
    if accounting.dataset not in known:
        raise ArgumentError(
            f"the ledger has no data set {accounting.dataset!r}. Open it once, with its total budget: dpmanifolds "
            f"ledger open {accounting.ledger} --dataset {accounting.dataset} --epsilon 1 --delta 1e-6"
        )
    unit = accounting.unit or known[accounting.dataset].unit
    return {"unit": unit, "ledger": ledger, "dataset": accounting.dataset, "rng": None}


@contextmanager
def confirm(job: Job, what: str, *, plan: Plan | None = None, remarks: Sequence[str] = ()) -> Iterator[None]:
    """Show what is about to be spent and what it buys, and ask; without a terminal, --yes must have been given.

    The folder for the answer is made then, while nothing is spent, and taken away if none comes.
    """
    console, saving = aside(), job.saving
    if job.loaded.volume is not None and not saving.overwrite and any(saving.out.glob("*.nii.gz")):
        raise ArgumentError(f"{str(saving.out)!r} holds an earlier map. Name another folder, or pass --overwrite.")
    if not saving.quiet:
        _show_job(job, what, plan, remarks)
    if not saving.yes:
        if not at_terminal():
            raise ArgumentError("nobody can be asked here, as this is no terminal: pass --yes to spend the budget.")
        if not typer.confirm(f"Spend {job.budget.in_words()}?", err=True):
            say(console, "Nothing was spent.")
            raise typer.Exit(1)
    fresh = [folder for folder in (saving.out, *saving.out.parents) if not folder.exists()]
    saving.out.mkdir(parents=True, exist_ok=True)
    try:
        with warnings.catch_warnings():
            if not saving.quiet and _too_noisy(job, plan):
                # it was said above, before the question
                warnings.simplefilter("ignore", NoiseExceedsDomainWarning)
            yield
    except BaseException:
        with suppress(OSError):
            for folder in fresh:
                folder.rmdir()
        raise


def _show_job(job: Job, what: str, plan: Plan | None, remarks: Sequence[str]) -> None:
    console, terms = aside(), job.terms
    promise = Guarantee((job.budget.term,), unit=terms["unit"])
    say(console, f"About to release the private {what} of {job.counted}", style="bold")
    rows = [
        ("records", job.loaded.manifold.words),
        ("domain", repr(job.ball)),
        ("budget", f"{job.budget.in_words()}, {promise.neighbours}"),
        (
            "attacker",
            f"guesses right in at most {percent(promise.best_guess)} of cases (50 % by a coin)",
        ),
    ]
    if terms["ledger"] is not None:
        told = left_in_words(terms["ledger"], terms["dataset"])
        rows.append(("ledger", f"{Path(terms['ledger'].path).name}, {terms['dataset']}: {told} left before this"))
    if terms["rng"] is not None:
        rows.append(("seed", "given: NOT FOR REAL RECORDS, the noise can be removed"))
    facts(console, [*rows, *(("note", note) for note in (*job.loaded.notes, *remarks))])
    if plan is not None:
        console.print()
        console.print(plan_table(plan))
        if _too_noisy(job, plan):
            say(console, f"warning: {NoiseExceedsDomainWarning.words}", style="yellow")
    console.print()


def _too_noisy(job: Job, plan: Plan | None) -> bool:
    error = None if plan is None else plan.best().error
    return error is not None and error.exceeds(job.ball)


@contextmanager
def print_if_unwritten(word: str, *answers: Any) -> Iterator[None]:
    """Print answers that cannot be written, as they have been paid for; `word`: what they are called."""
    try:
        yield
    except Exception as problem:
        # whatever went wrong, what has been paid for is not lost
        for answer in answers:
            typer.echo(answer.to_json())
        raise ArgumentError(
            f"the {word} was drawn and paid for, but could not be written ({problem}). It stands on the standard "
            "output: keep it."
        ) from None


def finish(job: Job, release: Release, *, remarks: Sequence[str] = ()) -> None:
    """Write the release into its folder and say where; if that fails, print it, as it has been paid for."""
    notes = (*job.loaded.notes, *remarks)
    with print_if_unwritten("release", release), working("Writing the report"):
        paths = save_release(release, job.saving.out, notes=notes, overwrite=job.saving.overwrite)
        written = list(paths.values())
        if job.loaded.volume is not None and not isinstance(release.value, float):
            written.append(_written_map(job, release))
    if job.saving.quiet:
        typer.echo(str(paths["json"]))
        return
    console = result()
    say(console, f"Released: the private {release.statistic} of {job.counted}", style="bold green")
    rows = [("spent", release.spent.in_words()), ("mechanism", f"{release.mechanism} ({release.numerics})")]
    rows.append(("error", release.error_statement))
    rows += [("warning", text) for text in (release.noise_warning, release.edge_warning) if text]
    value = _short(release.value)
    if value:
        rows.append(("value", value))
    rows += [("written", str(path)) for path in written]
    facts(console, rows)


def _written_map(job: Job, release: Release) -> Path:
    """The released map of tensors in the unit of the files, at its voxels."""
    path = job.saving.out / f"{release.statistic}.nii.gz"
    if job.saving.overwrite:
        path.unlink(missing_ok=True)
    assert job.loaded.volume is not None
    return job.loaded.volume.write(path, np.asarray(release.value) / job.loaded.scale)


def _short(value: Any) -> str:
    """A small value as text; none for a large one."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if has_parts(value) or value.size > 25 or value.ndim > 2:
        return ""
    return str(np.array2string(value, precision=4, suppress_small=False, max_line_width=60))
