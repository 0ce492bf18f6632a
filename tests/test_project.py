"""What surrounds the package: workflows call targets that exist, the citation has the version, versions are pinned."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import dpmanifolds

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def steps_of(workflow):
    return [step for job in yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_every_step_is_a_target_of_the_makefile_or_a_public_action(workflow):
    steps = steps_of(workflow)
    assert steps
    for step in steps:
        if "run" in step:
            program, *words = step["run"].split()
            assert program == "make"
            assert {word for word in words if "=" not in word} <= TARGETS
        else:
            assert re.fullmatch(r"(actions|pypa)/[\w-]+@[\w/.]+", step["uses"])


def test_tests_run_on_three_systems_and_every_python_that_is_promised():
    matrix = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))["jobs"]["test"]["strategy"][
        "matrix"
    ]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert f'requires-python = ">={matrix["python"][0]}"' in (ROOT / "pyproject.toml").read_text("utf-8")


def test_only_the_publishing_job_has_an_identity_and_none_a_password():
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text
    assert "password" not in text.split("\n", 1)[1]


def test_the_citation_has_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert str(citation["version"]) == dpmanifolds.__version__


def test_the_readme_speaks_of_the_version_of_the_package():
    text = (ROOT / "README.md").read_text("utf-8")
    assert set(re.findall(r"dpmanifolds-([\d.]+)-py3", text)) == {dpmanifolds.__version__}
    assert re.findall(r"This is version ([\d.]+\d)", text) == [dpmanifolds.__version__.rpartition(".")[0]]


def test_the_source_archive_has_what_its_tests_and_its_readme_need():
    """Whatever README, Makefile and these tests name at the top of the repository."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packed = set(settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    texts = [(ROOT / name).read_text("utf-8") for name in ("README.md", "Makefile", "CONTRIBUTING.md")]
    named = {name for text in texts for name in re.findall(r"\b\w[\w.-]*", text) if (ROOT / name).exists()}
    assert named - {"pyproject.toml", "out", "dist", "build"} <= packed
    assert {"Makefile", ".github"} <= packed
    assert all((ROOT / name).exists() for name in packed)


def test_the_lock_has_one_version_of_everything_and_no_place_of_origin():
    lines = [line for line in (ROOT / "requirements/test.lock").read_text("utf-8").splitlines() if line[:1] != "#"]
    assert all(re.fullmatch(r"[\w.-]+==[\w.!+]+", line) for line in lines)
    names = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    assert len(names) == len(lines)
    assert {"numpy", "scipy", "opendp", "pytest", "hypothesis"} <= names
