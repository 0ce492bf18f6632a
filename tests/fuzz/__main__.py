"""python -m tests.fuzz --calls 100000: random calls of the public interface and of the readers."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.engine import call, run


def main() -> int:
    """Print what became of the calls; 1 if one of them crashed or hung."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000, help="how many calls")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other calls")
    parser.add_argument("--first", type=int, default=0, help="the number of the first call, to share the work")
    parser.add_argument("--replay", type=int, default=None, help="make this one call again and show its traceback")
    options = parser.parse_args()
    if options.replay is not None:
        print(*call(options.seed, options.replay, loud=True))
        return 0
    report = run(options.calls, options.seed, first=options.first)
    print(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
