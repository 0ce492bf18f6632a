"""The command line: `dpmanifolds demo | mean | median | variance | pca | compare | regress | site | plan | …`.

Exit codes: 0 done, 2 wrong use, 3 refused by a ledger, 1 anything else, such as a promise that an audit finds broken.
Results go to the standard output, everything else to the standard error.
"""

import importlib

from dpmanifolds.cli._app import app, main

__all__ = ["app", "main"]

# importing them registers the commands, in the order in which --help lists them
for _room in (
    "release_commands",
    "compare_command",
    "regress_command",
    "site_commands",
    "plan_commands",
    "other_commands",
):
    importlib.import_module(f"dpmanifolds.cli.{_room}")
