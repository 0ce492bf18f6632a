"""`python -m dpmanifolds.experiments NAME [--quick] [--out DIR] [--data DIR]`; NAME may be `all`."""

from __future__ import annotations

import argparse

from rich.console import Console

from dpmanifolds.experiments import names, reproduce

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run one study or all of them."""
    parser = argparse.ArgumentParser(prog="python -m dpmanifolds.experiments", description="The papers, reproduced.")
    parser.add_argument("name", choices=[*names(), "all"], metavar="NAME", help=f"all, {', '.join(names())}")
    parser.add_argument("--quick", action="store_true", help="smaller sizes: all of them within 15 minutes")
    parser.add_argument("--out", default="out", help="the folder for figures and tables")
    parser.add_argument("--data", default=None, help="the folder of real data (else DPMANIFOLDS_DATA, else synthetic)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    console = Console()
    for name in names() if given.name == "all" else [given.name]:
        reproduce(name, quick=given.quick, out=given.out, data=given.data, seed=given.seed, console=console)


if __name__ == "__main__":
    main()
