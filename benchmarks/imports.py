"""How long `import dpmanifolds` takes, against `import numpy` and pyRiemann.

python benchmarks/imports.py
"""

from __future__ import annotations

import subprocess
import sys
import time

PROGRAMS = {
    "python alone": "pass",
    "import numpy": "import numpy",
    "import dpmanifolds": "import dpmanifolds",
    "import dpmanifolds and use SPD": "import dpmanifolds; dpmanifolds.SPD(3)",
    "import pyriemann": "import pyriemann",
}


def main() -> None:
    """Print the best wall time of each program over several starts."""
    best = dict.fromkeys(PROGRAMS, float("inf"))
    for _ in range(7):
        for name, program in PROGRAMS.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            best[name] = min(best[name], time.perf_counter() - started)
    for name, seconds in best.items():
        print(f"{name:32s} {seconds:.3f} s")


if __name__ == "__main__":
    main()
