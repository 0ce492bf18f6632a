"""The commands as one program, and what it says when something goes wrong."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dpmanifolds.errors import BudgetExceededError, ConvergenceError, DPManifoldsError, LedgerError

OTHER, WRONG_USE, REFUSED = 1, 2, 3
_DEBUG = "DPMANIFOLDS_DEBUG"


class Commands(TyperGroup):
    """A group of commands whose errors are one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what this package raises on purpose becomes a message, never a traceback."""
        try:
            with warnings.catch_warnings():
                if not sys.warnoptions:
                    warnings.showwarning = lambda message, *_, **__: _said(f"warning: {self._words(ctx, message)}")
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except DPManifoldsError as problem:
            raise _ended(self._words(ctx, problem), _code(problem)) from None
        except OSError as problem:
            raise _ended(f"{problem.strerror or problem}: {problem.filename or ''}".rstrip(": "), OTHER) from None
        except Exception as problem:
            if type(problem).__name__ == "NoArgsIsHelpError":
                raise
            if hasattr(problem, "format_message"):
                raise _ended(_usage(problem), WRONG_USE) from None
            if os.environ.get(_DEBUG):
                raise
            # the message of an unforeseen error may quote records
            raise _ended(
                f"unforeseen {type(problem).__name__}; no more is shown, as it might quote records. Set {_DEBUG}=1 "
                "to see the traceback, and keep that to yourself.",
                OTHER,
            ) from None

    def _words(self, ctx: Any, message: object) -> str:
        """A message of the Python layer in the words of the command that runs."""
        from dpmanifolds.show.words import flags_of, in_flags

        command = None if ctx.invoked_subcommand is None else self.get_command(ctx, ctx.invoked_subcommand)
        return in_flags(message, flags_of(command))


def _code(problem: DPManifoldsError) -> int:
    if isinstance(problem, BudgetExceededError):
        return REFUSED
    return OTHER if isinstance(problem, (LedgerError, ConvergenceError)) else WRONG_USE


def _usage(problem: Any) -> str:
    where = getattr(problem.ctx, "command_path", "dpmanifolds") if getattr(problem, "ctx", None) else "dpmanifolds"
    message = str(problem.format_message()).strip().rstrip(".")
    # a word in the place of a number: newer versions of typer do not say which
    given: Any = getattr(problem.__cause__, "errors", list)()
    if given and isinstance(given[0].get("input"), str):
        taken = getattr(problem.param, "metavar", None)
        message += f"; got {given[0]['input']!r}" + (f" for {taken}" if taken else "")
    return f"{message}. See: {where} --help"


def _ended(message: str, code: int) -> typer.Exit:
    _said(f"error: {' '.join(message.split())}")
    return typer.Exit(code)


def _said(line: str) -> None:
    typer.echo(line, err=True)


app = typer.Typer(
    cls=Commands,
    name="dpmanifolds",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Private statistics of data on curved spaces: covariance matrices, diffusion tensors, directions, landmark "
        "shapes.\n\n"
        "[bold]First steps[/bold]\n\n"
        "  dpmanifolds demo\n\n"
        "  dpmanifolds plan --manifold spd:3 --eigenvalues 1e-4 3e-3 --n 500\n\n"
        "  dpmanifolds mean tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-4 3e-3 --epsilon 1\n\n"
        "Everything but the records is public, and must be chosen without looking at them: the manifold, the ball "
        "(centre and radius), n, the budget.\n\n"
        "Exit codes: 0 done, 2 wrong use, 3 refused by a ledger, 1 anything else."
    ),
)


def _version(wanted: bool) -> None:
    if wanted:
        from dpmanifolds import __version__

        typer.echo(f"dpmanifolds {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """The help text stands above."""


def main() -> None:
    """Run the command line; the console script `dpmanifolds`."""
    app()
