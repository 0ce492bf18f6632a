"""The path of a stranger: from the built wheel to a refused release, in an empty directory, written down as it went.

    python docs/strangers_path.py           run it, write docs/strangers_path.md
    python docs/strangers_path.py --check   run it, and fail where an exit code is not what the page says

The wheel is built from this checkout and installed into a fresh environment, with nothing else at hand. Noise is drawn
anew on every run, so that released numbers differ from run to run; everything else on the page does not. It needs a
system with pseudo-terminals (Linux, macOS), as a question is answered on the way.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "strangers_path.md"
_WIDTH = 110


@dataclass(frozen=True)
class Step:
    """A command of the path: what is said before it, what is typed, what is answered, how it must end."""

    text: str
    command: str
    answer: str = ""
    code: int = 0


FILES = """\
import numpy as np
from dpmanifolds import SPD
from dpmanifolds.data import write_nifti

rng = np.random.default_rng(0)

# covariance matrices of 1,000 persons, one row each: xx, xy, xz, yy, yz, zz
upper = np.triu_indices(3)
matrices = SPD(3).random_point(1000, rng=0)
np.savetxt("tensors.csv", matrices[:, *upper], delimiter=",", header="xx,xy,xz,yy,yz,zz", comments="", fmt="%.6f")

# diffusion tensors (mm²/s) of 500 persons in two voxels of an atlas: xx, xy, xz, yy, yz, zz
for person in range(500):
    sizes = np.exp(0.2 * rng.standard_normal((2, 1, 1, 1)))
    tensors = 7e-4 * sizes * np.array([1.8, 0.1, 0.0, 0.7, 0.0, 0.6])
    write_nifti(f"sub-{person + 1:03}.nii.gz", tensors, affine=np.diag([2.0, 2.0, 2.0, 1.0]))

# five landmarks on the wings of 300 insects, and a published drawing of the species
drawing = np.array([[0.0, 0.0], [2.0, 0.2], [3.1, 1.0], [2.1, 1.9], [0.3, 1.6]])
np.savetxt("drawing.csv", drawing.reshape(1, -1), delimiter=",", fmt="%.2f")
with open("wings.tps", "w", encoding="utf-8") as file:
    for number in range(300):
        points = 100 * (drawing + 0.08 * rng.standard_normal((5, 2)))
        lines = [f"{x:.3f} {y:.3f}" for x, y in points]
        print("LM=5", *lines, f"ID=wing-{number + 1}", "SCALE=0.01", sep="\\n", file=file)
"""

STEPS = (
    Step(
        """## Look

What is in the file, as far as it may be told: no value, no range.""",
        "dpmanifolds info tensors.csv",
    ),
    Step(
        """## Plan

How far off will the private mean be? The answer needs no record: only where records live, how many there are, and the
budget. Eigenvalues between 0.1 and 10 are what is physically possible here; nobody looked at the file to say so.""",
        "dpmanifolds plan --manifold spd:3 --eigenvalues 0.1 10 --n 1000 --epsilon 0.5 --epsilon 1 --epsilon 2",
    ),
    Step(
        "The other way round: what do errors of 0.1 and 0.03 cost?",
        "dpmanifolds plan --manifold spd:3 --eigenvalues 0.1 10 --n 1000 --error 0.1 --error 0.03",
    ),
    Step(
        """## A release from a CSV file

The plan is shown once more, and nothing is spent before the answer is yes.""",
        "dpmanifolds mean tensors.csv --layout upper --manifold spd:3 --eigenvalues 0.1 10 --epsilon 1 --out csv",
        answer="y\n",
    ),
    Step("What may be shown to others is in one folder; `report.html` opens in any browser.", "ls csv"),
    Step(
        """## A release from NIfTI files

One tensor map per person; the private mean map comes back as NIfTI, in the space and unit of the files. `--yes` is for
scripts: it answers the question.""",
        "dpmanifolds mean sub-*.nii.gz --layout upper --eigenvalues 1e-4 3e-3 --epsilon 1 --delta 1e-6 --out maps "
        "--yes",
    ),
    Step(
        """## A release from a TPS file

Landmarks as tpsDig writes them. The centre is a published drawing, and 0.15 what is known of the species; the space
itself allows any radius below 0.79.""",
        "dpmanifolds mean wings.tps --center drawing.csv --radius 0.15 --epsilon 1 --out wings --yes",
    ),
    Step(
        """## Do not believe it: attack it

`audit` runs the mechanism many times on the worst pair of data sets that is known, and tries to tell them apart.""",
        "dpmanifolds audit --manifold sphere:2 --center 0,0,1 --radius 0.5 --n 100 --epsilon 1 --seed 0",
    ),
    Step(
        "The same attack on a mechanism with 30 % too little noise finds it out, and exits with 1:",
        "dpmanifolds audit --manifold sphere:2 --center 0,0,1 --radius 0.5 --n 100 --epsilon 1 --seed 0 "
        "--noise-factor 0.7",
        code=1,
    ),
    Step(
        """## Keep an account, and be refused

A ledger holds what may be spent on a data set in all.""",
        "dpmanifolds ledger open privacy.ledger --dataset wings --epsilon 1.5",
    ),
    Step(
        "The first release fits.",
        "dpmanifolds mean wings.tps --center drawing.csv --radius 0.15 --epsilon 1 --out first --yes "
        "--ledger privacy.ledger --dataset wings",
    ),
    Step(
        "The second would overspend. It is refused before any noise is drawn, with an exit code of its own:",
        "dpmanifolds mean wings.tps --center drawing.csv --radius 0.15 --epsilon 1 --out second --yes "
        "--ledger privacy.ledger --dataset wings",
        code=3,
    ),
    Step("Nothing was spent by it:", "dpmanifolds ledger show privacy.ledger"),
    Step("And nobody has changed the file since:", "dpmanifolds ledger verify privacy.ledger"),
)

_HEAD = """\
# A first session on the command line, from install to a refused release

From nothing to a release, and to one that is refused: typed into an empty directory, from the built package, by
`make stranger`, which wrote this page. Released numbers are drawn anew each time; everything else stays as it is.

## Install

```console
$ python -m venv env && . env/bin/activate
$ pip install "{wheel}[plot]"
```

`[plot]` is for the figures in reports; everything else works without it.

## Files to play with

Three kinds of records, made up:

```python
{files}```
"""


def scrubbed(text: str, folder: Path) -> str:
    """What a command said, without places and times."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace(f"{folder}{os.sep}", "").replace(str(folder), ".")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?", "(the time)", text)
    # a line that is written over keeps its last state; spinners wipe themselves off the screen
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(line for line in lines if not re.match("[\u2800-\u28ff]", line)).strip("\n")


def build(folder: Path) -> Path:
    """The wheel of this checkout."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps", "-w", folder]
    subprocess.run([*command, DOCS.parent], check=True, stderr=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def typed(step: Step, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """The exit code and all that is seen, at a terminal: questions are asked only there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        step.command, shell=True, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen, answer = b"", step.answer.encode()
    # reading from a terminal that the other side has closed is an error on Linux, and an empty answer elsewhere
    with contextlib.suppress(OSError):
        while read := os.read(ours, 65536):
            seen += read
            if answer and seen.rstrip().endswith(b"]:"):
                os.write(ours, answer)
                answer = b""
    os.close(ours)
    return process.wait(), seen.decode("utf-8", errors="replace")


def run(step: Step, folder: Path, environment: dict[str, str]) -> str:
    """The step as a block of the page; an error where it ends otherwise than it must."""
    code, said = typed(step, folder, environment)
    said = scrubbed(said, folder)
    if code != step.code:
        raise SystemExit(f"$ {step.command}\n{said}\nended with {code}, not with {step.code}")
    lines = [f"$ {step.command}", said]
    if step.code:
        lines += ["$ echo $?", str(step.code)]
    block = "\n".join(line for line in lines if line)
    return f"{step.text}\n\n```console\n{block}\n```\n".lstrip("\n")


def walk() -> str:
    """The whole path, as the text of the page."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        (folder / "wheel").mkdir()
        wheel = build(folder / "wheel")
        home = folder / "home"
        home.mkdir()
        venv.create(folder / "env", with_pip=True)
        places = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        pip = [places / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        subprocess.run([*pip, f"{wheel}[plot]"], check=True, stderr=subprocess.DEVNULL, cwd=home)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DPM"))}
        environment |= {
            "PATH": f"{places}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": str(_WIDTH),
            "NO_COLOR": "1",
            "TERM": "xterm",
            "PYTHONUTF8": "1",
            "LC_ALL": "C.UTF-8",
        }
        subprocess.run([places / "python", "-c", FILES], env=environment, cwd=home, check=True)
        head = _HEAD.format(wheel=wheel.name, files=FILES)
        parts = [head, *(run(step, home, environment) for step in STEPS)]
    return "\n".join(parts) + "\nNext: [choosing a manifold, a ball and an ε](choosing.md).\n"


def main() -> None:
    """Walk, and write the page unless only asked to check."""
    text = walk()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    print(f"{len(STEPS)} commands, all as they must be.")


if __name__ == "__main__":
    main()
