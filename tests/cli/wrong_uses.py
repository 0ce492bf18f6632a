"""Wrong uses of the command line and what the user sees: docs/tables/errors.csv.

`python -m tests.cli.wrong_uses` writes the table; a test compares it with what the commands say.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from dpmanifolds.cli import app
from tests.cli.files import write_files

__all__ = ["TABLE", "WRONG_USES", "WrongUse", "seen", "table_text"]

TABLE = Path(__file__).parents[2] / "docs" / "tables" / "errors.csv"
_SPHERE = "mean directions.npy --manifold sphere:2 --center 0,0,1 --radius 0.5 --yes"
_SPD = "mean tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-5 1e-2 --yes"


@dataclass(frozen=True)
class WrongUse:
    """What was done wrong, in words and as a command; commands before it set the scene."""

    name: str
    command: str
    code: int = 2
    before: tuple[str, ...] = ()


WRONG_USES = (
    WrongUse("no file was named", "mean --manifold spd:3 --radius 1 --epsilon 1"),
    WrongUse("a command that does not exist", "average tensors.csv"),
    WrongUse("an option that does not exist", f"{_SPD} --eps 1"),
    WrongUse("a file that does not exist", "mean tensor.csv --manifold spd:3 --radius 1 --epsilon 1 --yes"),
    WrongUse("a kind of file that is not read", "mean table.xlsx --manifold spd:3 --radius 1 --epsilon 1 --yes"),
    WrongUse("several arrays in a file", "mean eeg.npz --manifold spd:3 --radius 1 --epsilon 1 --yes"),
    WrongUse("six columns, but no layout", "mean tensors.csv --manifold spd:3 --radius 1 --epsilon 1 --yes"),
    WrongUse(
        "a layout that does not exist",
        "mean tensors.csv --layout triangle --manifold spd:3 --radius 1 --epsilon 1 --yes",
    ),
    WrongUse("tensor maps without their layout", "mean sub-0.nii.gz sub-1.nii.gz --radius 1 --epsilon 1 --yes"),
    WrongUse(
        "tensor maps of different spaces",
        "mean sub-0.nii.gz shifted.nii.gz --layout upper --radius 1 --epsilon 1 --yes",
    ),
    WrongUse("no manifold", "mean directions.npy --center 0,0,1 --radius 0.5 --epsilon 1 --yes"),
    WrongUse("a manifold misspelt", "mean tensors.csv --layout upper --manifold spd3 --radius 1 --epsilon 1 --yes"),
    WrongUse("a metric where there is a single one", f"{_SPHERE} --metric log-euclidean --epsilon 1"),
    WrongUse("no ball", "mean directions.npy --manifold sphere:2 --epsilon 1 --yes"),
    WrongUse("two balls", f"{_SPD} --radius 1 --epsilon 1"),
    WrongUse(
        "no centre where there is no natural one",
        "mean directions.npy --manifold sphere:2 --radius 0.5 --epsilon 1 --yes",
    ),
    WrongUse(
        "a centre that is not on the manifold",
        "mean directions.npy --manifold sphere:2 --center 0,0,0 --radius 0.5 --epsilon 1 --yes",
    ),
    WrongUse(
        "a ball that goes around the sphere",
        "mean directions.npy --manifold sphere:2 --center 0,0,1 --radius 3.2 --epsilon 1 --yes",
    ),
    WrongUse(
        "eigenvalues in the wrong order",
        "mean tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-2 1e-5 --epsilon 1 --yes",
    ),
    WrongUse(
        "the private records as their own public reference",
        "mean directions.npy --manifold sphere:2 --reference directions.npy --epsilon 1 --yes",
    ),
    WrongUse(
        "a common kind of data without its unit",
        "mean tensors.csv --layout upper --manifold spd:3 --typical diffusion-tensor --epsilon 1 --yes",
    ),
    WrongUse(
        "a common kind of data of another space",
        "mean directions.npy --manifold sphere:2 --typical eeg:uV2 --epsilon 1 --yes",
    ),
    WrongUse("a sample in another format", "sample tensors.json"),
    WrongUse("a unit for what has none", f"{_SPHERE} --unit-scale 1000 --epsilon 1"),
    WrongUse("no budget", _SPHERE),
    WrongUse("a budget of nothing", f"{_SPHERE} --epsilon 0"),
    WrongUse("a budget that promises nothing", f"{_SPHERE} --epsilon 1e6"),
    WrongUse("two budgets", f"{_SPHERE} --epsilon 1 --mu 1"),
    WrongUse("δ without ε", f"{_SPHERE} --mu 1 --delta 1e-6"),
    WrongUse("a mechanism that does not exist", f"{_SPHERE} --epsilon 1 --mechanism laplace"),
    WrongUse("a mechanism without safe numerics", f"{_SPHERE} --epsilon 1 --mechanism riemannian-laplace"),
    WrongUse("Gaussian noise for a pure budget", f"{_SPHERE} --epsilon 1 --mechanism wrapped-gaussian"),
    WrongUse(
        "a record that is no positive definite matrix",
        "mean not-spd.npy --manifold spd:3 --center 1e-3*I --radius 2 --epsilon 1 --yes",
    ),
    WrongUse("names for some of the records only", f"{_SPHERE} --epsilon 1 --group-by too-few.txt"),
    WrongUse("persons by a column that is not there", f"{_SPD} --epsilon 1 --group-by person"),
    WrongUse(
        "a record without the name of a person",
        "mean unnamed.csv --manifold euclidean:2 --radius 9 --epsilon 1 --group-by person --yes",
    ),
    WrongUse("a column that is not there", f"{_SPD} --epsilon 1 --columns xx,xy,xw"),
    WrongUse("channels of what has none", f"{_SPHERE} --epsilon 1 --picks Cz"),
    WrongUse(
        "an account of persons, but records of another kind",
        "mean sub-0.nii.gz --layout upper --eigenvalues 1e-5 1e-2 --epsilon 1 --yes --ledger privacy.ledger "
        "--dataset clinic",
        before=("ledger open privacy.ledger --dataset clinic --epsilon 1 --unit person",),
    ),
    WrongUse(
        "records of another size than the manifold",
        "mean tensors.csv --layout upper --manifold spd:4 --radius 1 --epsilon 1 --yes",
    ),
    WrongUse(
        "a layout that does not fit the columns",
        "mean tensors.csv --layout full --manifold spd:3 --radius 1 --epsilon 1 --yes",
    ),
    WrongUse(
        "an axis that is not there",
        "mean directions.npy --record-axis 7 --manifold sphere:2 --center 0,0,1 --radius 0.5 --epsilon 1 --yes",
    ),
    WrongUse(
        "a range of eigenvalues for what has none",
        "mean directions.npy --manifold sphere:2 --eigenvalues 1 2 --epsilon 1 --yes",
    ),
    WrongUse("a δ that is no probability", f"{_SPHERE} --epsilon 1 --delta 2"),
    WrongUse(
        "random batches under a pure budget", f"descend {_SPHERE.removeprefix('mean ')} --epsilon 1 --batch-size 10"
    ),
    WrongUse(
        "more components than there are",
        "pca vectors.npy --manifold euclidean:4 --radius 9 --epsilon 1 --components 4 --yes",
    ),
    WrongUse("no steps", f"median {_SPHERE.removeprefix('mean ')} --epsilon 1 --steps 0"),
    WrongUse("an unknown way to treat malformed records", f"{_SPHERE} --epsilon 1 --on-invalid drop"),
    WrongUse("a script that nobody can confirm", _SPHERE.removesuffix(" --yes") + " --epsilon 1"),
    WrongUse("a folder that holds a release already", f"{_SPHERE} --epsilon 1 --out full"),
    WrongUse("a data set without a ledger", f"{_SPHERE} --epsilon 1 --dataset clinic"),
    WrongUse("a ledger without this data set", f"{_SPHERE} --epsilon 1 --ledger privacy.ledger --dataset clinic"),
    WrongUse(
        "a seed together with a ledger",
        f"{_SPHERE} --epsilon 1 --seed 1 --ledger privacy.ledger --dataset clinic",
        before=("ledger open privacy.ledger --dataset clinic --epsilon 1",),
    ),
    WrongUse(
        "more than the ledger has left",
        f"{_SPHERE} --epsilon 0.75 --ledger privacy.ledger --dataset clinic --out second",
        code=3,
        before=(
            "ledger open privacy.ledger --dataset clinic --epsilon 1",
            f"{_SPHERE} --epsilon 0.5 --ledger privacy.ledger --dataset clinic --out first",
        ),
    ),
    WrongUse("a ledger that does not exist", "ledger show nowhere.ledger"),
    WrongUse("a file that is no release", "report letter.json"),
    WrongUse("a plan without n", "plan --manifold spd:3 --radius 1"),
    WrongUse("a δ alone in a plan", "plan --manifold spd:3 --radius 1 --n 100 --delta 1e-6"),
    WrongUse("an error that no budget reaches", "plan --manifold spd:3 --radius 1 --n 10 --error 1e-9"),
)


def seen(use: WrongUse) -> tuple[int, str]:
    """The exit code and the last line of the standard error, in a fresh folder."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        write_files()
        for line in use.before:
            done = CliRunner().invoke(app, shlex.split(line), prog_name="dpmanifolds")
            if done.exit_code != 0:
                raise RuntimeError(f"{line}: {done.stderr}")
        outcome = CliRunner().invoke(app, shlex.split(use.command), prog_name="dpmanifolds")
        told = outcome.stderr.strip().splitlines() or [""]
        return outcome.exit_code, told[-1].replace(os.path.realpath(place) + os.sep, "").replace(place + os.sep, "")


def table_text(found: dict[str, str]) -> str:
    """The table, from the messages by name."""
    text = io.StringIO()
    rows = ([use.name, found[use.name].removeprefix("error: ")] for use in WRONG_USES)
    csv.writer(text, lineterminator="\n").writerows([("what was done", "what you see"), *rows])
    return text.getvalue()


if __name__ == "__main__":
    TABLE.write_text(table_text({use.name: seen(use)[1] for use in WRONG_USES}), encoding="utf-8")
