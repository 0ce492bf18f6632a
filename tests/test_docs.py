"""The pages of the documentation: their Python runs and prints what they show, and the reference is complete."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import tomllib
from pathlib import Path

import pytest

import dpmanifolds

DOCS = Path(__file__).resolve().parents[1] / "docs"


def script(name):
    specification = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


run_pages = script("run_pages")


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("path", run_pages.pages(), ids=lambda path: path.stem)
def test_the_python_of_a_page_runs_and_prints_what_it_shows(path):
    assert run_pages.run_page(path) > 0


def test_a_page_that_shows_something_else_is_found(tmp_path):
    page = tmp_path / "wrong.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    with pytest.raises(run_pages.PageError, match=r"wrong\.md, line 1"):
        run_pages.run_page(page)
    page.write_text("```python\nundefined_name\n```\n", encoding="utf-8")
    with pytest.raises(run_pages.PageError, match="NameError"):
        run_pages.run_page(page)


def test_a_block_that_needs_a_missing_package_is_left_out_and_told(tmp_path):
    page = tmp_path / "optional.md"
    needs = "<!-- needs: no_such_package, numpy -->\n```python\nundefined_name\n```\n"
    page.write_text(f"```python\n1 + 1\n```\n\n{needs}", encoding="utf-8")
    left_out = []
    assert run_pages.run_page(page, left_out) == 1
    assert left_out == ["optional.md, line 6 (needs no_such_package)"]
    page.write_text(needs.replace("no_such_package, ", ""), encoding="utf-8")
    with pytest.raises(run_pages.PageError, match="NameError"):
        run_pages.run_page(page)


def test_what_the_pages_need_is_installed_by_make_docs():
    needs = {name for page in run_pages.pages() for name in run_pages.needs_of(page)}
    extras = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = extras["dependencies"] + extras["optional-dependencies"]["docs"]
    assert needs <= {re.match(r"[a-z_]+", requirement)[0] for requirement in installed}


def test_the_first_sessions_show_what_their_script_types():
    pytest.importorskip("pty")
    sessions = script("first_sessions")
    for name, session in sessions.SESSIONS.items():
        text = (sessions.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
        typed = re.findall(r"^# (.*)\n\$ (.*)$", text, flags=re.MULTILINE)
        assert [note for note, _ in typed] == [step.note for step in session.steps]
        for (_, line), step in zip(typed, session.steps, strict=True):
            if step.command.startswith("("):
                assert line.startswith("dpmanifolds mean controls.csv --layout upper --manifold spd:3 --center ")
            else:
                assert line == step.command
        assert re.findall(r"^\$ echo \$\?\n(\d)$", text, flags=re.MULTILINE) == [
            str(step.code) for step in session.steps if step.code
        ]
        assert 2 + len(session.steps) < 15
        assert not re.search(r"/tmp|/home|/root|20\d\d-\d\d|Traceback", text)
        for file in session.files:
            assert (sessions.FOLDER / file).is_file()


def test_the_planner_page_of_a_session_shows_the_plan_that_was_asked_for():
    """The command that was read off the page has the ball of the plan before it, to the last digit."""
    text = (DOCS / "sessions" / "register.txt").read_text(encoding="utf-8")
    shown = re.search(r'--center "([\d.e-]+)\*I" --radius ([\d.]+) --epsilon 1 ', text)
    ball = dpmanifolds.Ball.typical(dpmanifolds.SPD(3), "diffusion-tensor", unit="mm²/s")
    assert float(shown[1]) == ball.center[0, 0]
    assert float(shown[2]) == ball.radius


def test_tables_that_pages_include_are_there_and_have_a_heading():
    for page in DOCS.glob("*.md"):
        for name in re.findall(r"^:file: (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
            heading, first = (DOCS / name).read_text(encoding="utf-8").splitlines()[:2]
            assert heading.count(",") >= 1, name
            assert first, name


def test_words_are_counted_with_tables_and_code_but_for_the_gallery(tmp_path):
    count_words = script("count_words").count_words
    text = "# One two\n\n| three | four |\n\n```text\nfive six\n```\n"
    for folder, words in (("guide", 12), ("gallery", 8)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "page.md").write_text(text, encoding="utf-8")
        assert count_words(tmp_path / folder / "page.md") == words
    assert not {"api", "proofs"} & {name.split("/")[0] for name in script("count_words").count_pages()}


def test_every_room_with_public_names_has_a_page_in_the_reference():
    listed = re.search(
        r"```\{toctree\}\n:maxdepth: 1\n\n(.*?)```", (DOCS / "api" / "index.md").read_text("utf-8"), re.S
    )
    pages = set(listed[1].split())
    package = Path(dpmanifolds.__file__).parent
    rooms = {path.parent.name for path in package.glob("*/__init__.py")} | {"domains", "errors"}
    assert pages == rooms - {"cli", "records"}
    assert pages == {path.stem for path in (DOCS / "api").glob("*.md")} - {"index"}
    for room in pages:
        assert f"automodule:: dpmanifolds.{room}\n" in (DOCS / "api" / f"{room}.md").read_text(encoding="utf-8")


def test_every_public_name_has_one_home_and_one_page_in_the_reference():
    rooms = [path.stem for path in (DOCS / "api").glob("*.md") if path.stem != "index"]
    found = [name for room in rooms for name in importlib.import_module(f"dpmanifolds.{room}").__all__]
    assert [name for name in set(found) if found.count(name) > 1] == []
    assert set(dpmanifolds.__all__) - {"__version__", "losses"} <= set(found)


def rooms_of_the_reference() -> list[str]:
    return sorted(path.stem for path in (DOCS / "api").glob("*.md") if path.stem != "index")


@pytest.mark.parametrize("room", [*rooms_of_the_reference(), "show.plots", "descent.losses"])
def test_every_public_name_has_a_docstring_with_an_example(room):
    """Classes and functions have an example of their own, which `make test` runs. Constants are tuples of names, listed
    with their room; they have no docstring at run time."""
    module = importlib.import_module(f"dpmanifolds.{room}")
    assert (module.__doc__ or "").strip()
    bare = []
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, tuple):
            continue
        assert callable(value), name
        if ">>> " not in (value.__doc__ or ""):
            bare.append(name)
    assert bare == []


@pytest.mark.parametrize("room", [*rooms_of_the_reference(), "show.plots", "descent.losses"])
def test_every_parameter_of_a_public_class_has_a_meaning(room):
    lists = script("parameter_lists")
    module = importlib.import_module(f"dpmanifolds.{room}")
    kinds = [value for value in map(vars(module).get, module.__all__) if inspect.isclass(value)]
    bare = {
        (kind.__name__, name)
        for kind in kinds
        for name in lists.list_parameters(kind)
        if not lists.find_meaning(kind, name)
    }
    assert bare == set(), "write docs/api/parameters.csv"


def test_dead_links_and_foreign_markup_are_found(tmp_path):
    check = script("check_links")
    (tmp_path / "other.html").write_text("<h1 id='here'>5 $ and 6 $</h1><pre>$x$</pre>", encoding="utf-8")
    page = tmp_path / "page.html"
    page.write_text("<a href='other.html#here'>1</a><a href='#there'>2</a><p id='there'>3</p>", encoding="utf-8")
    assert check.find_faults(tmp_path) == []
    check.read_page.cache_clear()
    page.write_text("<a href='other.html#gone'>1</a><img src='no.png'><p>:term:`fit`</p>", encoding="utf-8")
    assert check.find_faults(tmp_path) == [
        "page.html: shows ':term:`'",
        "page.html: no anchor other.html#gone",
        "page.html: no file no.png",
    ]


def test_examples_of_public_names_are_found_by_the_doctest_runner():
    """An example that is not collected is not run: every file of the package is under `testpaths`."""
    settings = (DOCS.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'testpaths = \[.*"src".*\]', settings)
    assert "--doctest-modules" in settings
    package = Path(dpmanifolds.__file__).resolve().parent
    for room in rooms_of_the_reference():
        module = importlib.import_module(f"dpmanifolds.{room}")
        for name in module.__all__:
            value = inspect.unwrap(getattr(module, name))
            if not isinstance(value, tuple):
                assert package in Path(inspect.getsourcefile(value)).resolve().parents, name
