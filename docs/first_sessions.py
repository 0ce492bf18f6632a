"""Three first sessions, typed into empty directories from the built wheel, and written down as they went.

    python docs/first_sessions.py           run them, write docs/sessions/NAME.txt
    python docs/first_sessions.py --check   run them, and fail where an exit code is not what it must be

The wheel of this checkout is installed into a fresh environment for each, with nothing else at hand. Noise is drawn
anew on every run, so that released numbers differ; everything else does not. It needs a system with pseudo-terminals
(Linux, macOS), as a question is answered on the way, and Chromium on the PATH, in which the planner page is opened and
its command read off.
"""

from __future__ import annotations

import contextlib
import html
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "sessions"
_WIDTH = 96
_PAGE = "(the command that plan.html shows)"
_BALL = "--layout upper --manifold spd:3 --typical diffusion-tensor:mm2/s"


@dataclass(frozen=True)
class Step:
    """What is thought, what is typed, what is answered, how it must end."""

    note: str
    command: str
    answer: str = ""
    code: int = 0


@dataclass(frozen=True)
class Session:
    """Somebody's first session: which files lie there, what is typed, which packages are installed beside."""

    files: tuple[str, ...]
    steps: tuple[Step, ...]
    beside: str = ""


README = (
    Step("What does it do?", "dpmanifolds demo"),
    Step("A table to try things on.", "dpmanifolds sample tensors.csv"),
    Step("What is in it, as far as it may be told: no value, no range.", "dpmanifolds info tensors.csv"),
    Step(
        "How far off will the private mean be, beside the error of having 500 records at all?",
        "dpmanifolds plan --manifold spd:3 --typical diffusion-tensor:mm2/s --n 500 --epsilon 1 --spread 0.5",
    ),
    Step(
        "A release. Nothing is spent before the answer is yes.",
        f"dpmanifolds mean tensors.csv {_BALL} --epsilon 1 --out mean",
        answer="y\n",
    ),
    Step("What may be shown to others is in one folder; report.html opens in any browser.", "ls mean"),
    Step("The same in Python: the README's block, with these records.", "python readme.py"),
    Step(
        "An account of what may be spent in all.",
        "dpmanifolds ledger open privacy.ledger --dataset clinic --epsilon 1.5",
    ),
    Step(
        "The first release fits.",
        f"dpmanifolds mean tensors.csv {_BALL} --epsilon 1 --out first --yes --ledger privacy.ledger --dataset clinic",
    ),
    Step(
        "The second would overspend: refused before any noise is drawn, with an exit code of its own.",
        f"dpmanifolds mean tensors.csv {_BALL} --epsilon 1 --out second --yes --ledger privacy.ledger --dataset clinic",
        code=3,
    ),
    Step("Nothing was spent by it.", "dpmanifolds ledger show privacy.ledger"),
    Step(
        "Attack the mechanism with 30 % too little noise: it is found out, and the exit code is 1.",
        "dpmanifolds audit --manifold sphere:2 --center 0,0,1 --radius 0.5 --n 100 --epsilon 1 --seed 0 "
        "--noise-factor 0.7",
        code=1,
    ),
)
EEG = (
    Step(
        "Trials of one private subject, new trials of theirs, and five public subjects: made up.",
        "python make_trials.py",
    ),
    Step(
        "Will class means of 120 trials and 8 channels survive ε = 1? The plan says that noise is 60 % of the radius.",
        "dpmanifolds plan --manifold spd:8 --typical eeg:uV2 --n 120 --epsilon 1",
    ),
    Step("pyRiemann's pipeline, with its classifier swapped.", "cat first_try.py"),
    Step("It runs, and is no better than chance, as the plan said.", "python first_try.py"),
    Step("The guide on pipelines says what helps: public subjects.", "cat with_public_subjects.py"),
    Step(
        "Better than the public subjects alone, and not far from pyRiemann without privacy.",
        "python with_public_subjects.py",
    ),
)
REGISTER = (
    Step("Two tables and 300 tensor maps, made up.", "python make_register.py"),
    Step("What is in a table, as far as it may be told.", "dpmanifolds info controls.csv"),
    Step(
        "The plan, and the page to try others on.",
        "dpmanifolds plan --manifold spd:3 --typical diffusion-tensor:mm2/s --n 400 --epsilon 1 --spread 0.5 "
        "--html plan.html",
    ),
    Step("The command that the page shows, with the table's name and layout.", _PAGE, answer="y\n"),
    Step("The folder for the ethics board.", "ls controls"),
    Step("Once more in words.", "dpmanifolds info controls"),
    Step(
        "Do the groups differ? One private bit.",
        f"dpmanifolds compare controls.csv patients.csv {_BALL} --epsilon 1 --yes",
    ),
    Step(
        "One map per person in, a private mean map out, in the files' space and unit.",
        "dpmanifolds mean sub-*.nii.gz --layout upper --typical diffusion-tensor:mm2/s --epsilon 1 --delta 1e-6 "
        "--out maps --yes",
    ),
)
SESSIONS = {
    "readme": Session(("readme.py",), README),
    "eeg": Session(("make_trials.py", "first_try.py", "with_public_subjects.py"), EEG, "pyriemann"),
    "register": Session(("make_register.py",), REGISTER),
}


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


def read_page(page: Path) -> str:
    """The line that the planner page shows for a mean, as a browser draws it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("the planner page is opened in chromium or google-chrome; neither is on the PATH")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom"]
    drawn = subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True, text=True).stdout
    shown = re.search(r'id="command"[^>]*>(.*?)</', drawn, flags=re.DOTALL)
    lines = html.unescape(shown[1]).splitlines() if shown else []
    return next(line for line in lines if line.startswith("dpmanifolds mean"))


def typed(command: str, answer: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """The exit code and all that is seen, at a terminal: questions are asked only there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, shell=True, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen, reply = b"", answer.encode()
    # reading from a terminal that the other side has closed is an error on Linux, and an empty answer elsewhere
    with contextlib.suppress(OSError):
        while read := os.read(ours, 65536):
            seen += read
            if reply and seen.endswith(b"]: "):
                os.write(ours, reply)
                reply = b""
    os.close(ours)
    return process.wait(), seen.decode("utf-8", errors="replace")


def run(step: Step, folder: Path, environment: dict[str, str]) -> str:
    """The step as it is written down; an error where it ends otherwise than it must."""
    command = step.command
    if command == _PAGE:
        command = (
            read_page(folder / "plan.html").replace("records.npy", "controls.csv --layout upper") + " --out controls"
        )
    code, said = typed(command, step.answer, folder, environment)
    said = scrubbed(said, folder)
    if code != step.code:
        raise SystemExit(f"$ {command}\n{said}\nended with {code}, not with {step.code}")
    lines = [f"# {step.note}", f"$ {command}", said]
    if step.code:
        lines += ["$ echo $?", str(step.code)]
    return "\n".join(line for line in lines if line) + "\n"


def walk(session: Session, wheel: Path) -> str:
    """A whole session, as it was typed."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        home = folder / "home"
        home.mkdir()
        for file in session.files:
            shutil.copyfile(FOLDER / file, home / file)
        venv.create(folder / "env", with_pip=True)
        places = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        pip = [places / "python", "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        subprocess.run(
            [*pip, f"{wheel}[plot]", *session.beside.split()], check=True, stderr=subprocess.DEVNULL, cwd=home
        )
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DPM"))}
        environment |= {
            "PATH": f"{places}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": str(_WIDTH),
            "NO_COLOR": "1",
            "TERM": "xterm",
            "PYTHONUTF8": "1",
            "LC_ALL": "C.UTF-8",
        }
        install = f'$ pip install "{wheel.name}[plot]" {session.beside}'.rstrip()
        head = f"$ python -m venv env && . env/bin/activate\n{install}\n"
        return "\n".join([head, *(run(step, home, environment) for step in session.steps)])


def main() -> None:
    """Walk all, and write them down unless only asked to check."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        for name, session in SESSIONS.items():
            text = walk(session, wheel)
            if "--check" not in sys.argv[1:]:
                (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")
            print(f"{name}: {2 + len(session.steps)} commands, all as they must be.")


if __name__ == "__main__":
    main()
