"""Sphinx: `make docs` builds the site into out/docs and treats every warning as an error."""

from __future__ import annotations

import html
import importlib
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import dpmanifolds
from dpmanifolds.planning import write_plan_page

sys.path.insert(0, str(Path(__file__).resolve().parent))
from parameter_lists import list_parameters

logger = logging.getLogger(__name__)
project = "dpmanifolds"
author = copyright = "the dpmanifolds authors"
version = release = dpmanifolds.__version__
language = "en-GB"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["figures", "planner", "sessions", "_static"]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 3
# typed text stays as it is typed: --help, not an en dash and "help"
smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
autosummary_generate = False
add_module_names = False
python_use_unqualified_type_names = True

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "dpmanifolds"
html_sidebars = {"first_steps": []}
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "footer_start": [],
    "footer_end": [],
}

ROOMS = (
    "domains",
    "manifolds",
    "releases",
    "planning",
    "privacy",
    "ledger",
    "estimators",
    "descent",
    "descent.losses",
    "statistics",
    "sums",
    "intrinsic",
    "noise",
    "data",
    "auditing",
    "show.plots",
    "show",
    "errors",
)


class PublicNames(SphinxDirective):
    """A table of everything that `import dpmanifolds` offers, by the room it lives in."""

    def run(self) -> list[nodes.Node]:
        """One summary table per room."""
        lines: list[str] = []
        for room in ROOMS:
            module = importlib.import_module(f"dpmanifolds.{room}")
            names = [name for name in module.__all__ if name in dpmanifolds.__all__]
            if names:
                lines += [f".. rubric:: {room}", "", ".. autosummary::", ""]
                lines += [f"   ~dpmanifolds.{room}.{name}" for name in sorted(names)] + [""]
        # this directive stands in Markdown, the tables are made by a directive of reStructuredText
        text = ["```{eval-rst}", *lines, "```"]
        holder = nodes.container()
        self.state.nested_parse(StringList(text, "public names"), 0, holder)
        return holder.children


class Picture(SphinxDirective):
    """A figure of `pictures.py`, drawn while the site is built."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The figure with its caption, which is also what a screen reader says."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from pictures import PICTURES, STYLE

        name = self.arguments[0]
        draw, size, caption = PICTURES[name]
        folder = Path(self.env.app.outdir) / "_images"
        folder.mkdir(parents=True, exist_ok=True)
        with rc_context(fname=STYLE):
            figure = Figure(figsize=size, layout="constrained")
            draw(figure.add_subplot())
            figure.savefig(folder / f"{name}.svg")
        text = html.escape(caption)
        image = f'<img src="_images/{name}.svg" alt="{text}"><figcaption>{text}</figcaption>'
        return [nodes.raw("", f'<figure class="align-default">{image}</figure>', format="html")]


_CODE = re.compile(r"`+[^`]+`+")
# markup of docstrings that scikit-learn writes into estimators: its words stay
_FOREIGN = re.compile(r":[a-z]+:`~?([^`<]+?)(?:\s*<[^>`]*>)?`")
_SPECIAL = re.compile(r"(\*\*[^*\s][^*]*\*\*)|([\\*|_])")


def _plain(line: str) -> str:
    """One line of a docstring, which is plain text with `code`, as reStructuredText."""
    done, last, line = "", 0, _FOREIGN.sub(r"\1", line)
    for found in _CODE.finditer(line):
        done += _escaped(line[last : found.start()]) + f"``{found[0].strip('`')}``\\ "
        last = found.end()
    return (done + _escaped(line[last:])).rstrip()


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: found[1] or "\\" + found[2], text)


def show_parameters(name: str, kind: Any) -> list[str]:
    """The parameters of a class as a list, in reStructuredText."""
    listed = list_parameters(kind)
    lines = ["", ".. rubric:: Parameters", ""] if listed else []
    for parameter, (taken, meaning) in listed.items():
        if not meaning:
            logger.warning("%s: nothing says what %s means (docs/api/parameters.csv)", name, parameter)
        lines += [" : ".join(filter(None, [_plain(parameter), _plain(taken)])), f"    {_plain(meaning)}"]
    return [*lines, ""]


def translate(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings as reStructuredText: examples are left alone, indented formulas are shown as they are."""
    result: list[str] = []
    in_example = in_formula = False
    for line in lines:
        if line.lstrip().startswith(".. versionadded::"):
            # in scikit-learn, not here
            continue
        if line.lstrip().startswith(">>>"):
            in_example = True
        if not line.strip():
            in_example = in_formula = False
            result.append("")
        elif in_example:
            result.append(line)
        elif in_formula or (line.startswith("    ") and result and not result[-1]):
            if not in_formula:
                result += ["::", ""]
            in_formula = True
            result.append(line)
        elif re.fullmatch("-{3,}", line) and result and result[-1]:
            # a heading of a docstring stands inside of a page, and is none of its sections
            result[-1:] = [f".. rubric:: {result[-1]}", ""]
        else:
            if line.startswith("- ") and result and result[-1] and not result[-1].startswith(("- ", "  ")):
                result.append("")
            result.append(_plain(line))
    if what == "class":
        place = next((number for number, line in enumerate(result) if line.startswith(">>>")), len(result))
        result[place:place] = show_parameters(name, obj)
    lines[:] = result


def shorten(app: Sphinx, what: str, name: str, obj: object, options: object, signature: str, returned: str) -> Any:
    """scikit-learn's mark for what is not given is a word between signs."""
    return (signature.replace("'$UNCHANGED$'", "UNCHANGED"), returned) if signature else None


def write_formula(writer: Any, node: nodes.math | nodes.math_block) -> None:
    """A formula as MathML, which browsers draw without a script and without the network."""
    try:
        writer.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    except MathError as problem:
        logger.warning("%s in the formula %s", problem, node.astext(), location=node)
    raise nodes.SkipNode


def planner(app: Sphinx, failure: Exception | None) -> None:
    """The planner page stands beside the documents."""
    if failure is None and app.builder.format == "html":
        write_plan_page(Path(app.outdir) / "plan.html")


def complete(app: Sphinx, environment: BuildEnvironment) -> None:
    """Every public name of every room stands in the reference."""
    shown = environment.domains["py"].objects
    for room in ROOMS:
        for name in importlib.import_module(f"dpmanifolds.{room}").__all__:
            if f"dpmanifolds.{room}.{name}" not in shown:
                logger.warning("dpmanifolds.%s.%s is public and not in the reference", room, name)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_directive("public-names", PublicNames)
    app.add_directive("picture", Picture)
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("autodoc-process-docstring", translate)
    app.connect("autodoc-process-signature", shorten)
    app.connect("env-check-consistency", complete)
    app.connect("build-finished", planner)
