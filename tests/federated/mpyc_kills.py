"""One party of a secure sum by MPyC that dies in a chosen phase, or in none.

    python -m tests.federated.mpyc_kills PHASE SECONDS round.json answer.json sum.json -P … -I …

PHASE: "told" (the parties know of each other), "shared" (its answer is shared out), "opening" (before its share of the
sum leaves), "summed" (before the sum is written), or "none".
"""

from __future__ import annotations

import os
import sys

from dpmanifolds.federated import mpyc_engine


def die(*_, **__):
    os._exit(9)


def main():
    from mpyc.runtime import mpc

    phase, seconds = sys.argv.pop(1), float(sys.argv.pop(1))
    mpyc_engine._SECONDS = seconds
    if phase == "told":
        mpc.input = die
    elif phase == "shared":
        mpc.vector_add = die
    elif phase == "opening":
        mpc.output = die
    elif phase == "summed":
        mpyc_engine.write_sum = die
    mpyc_engine.main()


if __name__ == "__main__":
    main()
