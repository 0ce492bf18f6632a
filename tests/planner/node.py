"""The planner's JavaScript, run by node: one process per module of questions."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[2] / "docs" / "planner"
NODE = shutil.which("node") or shutil.which("nodejs")
_ANSWER = """
const planner = require(process.argv[1] + "/planner.js");
const snippets = require(process.argv[1] + "/snippets.js");
const special = require(process.argv[1] + "/special.js");
const spaces = require(process.argv[1] + "/spaces.js");
const space = planner.space;
const questions = JSON.parse(require("fs").readFileSync(0, "utf8"));
const plain = (_, x) => (typeof x === "number" && !Number.isFinite(x) ? String(x) : x);
console.log(JSON.stringify(questions.map((question) => eval(question)), plain));
"""


def ask(*questions: str) -> list[Any]:
    """What these JavaScript expressions are."""
    done = subprocess.run(
        [str(NODE), "-e", _ANSWER, str(SOURCES)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))
