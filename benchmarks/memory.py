"""Peak memory of the mean of a million 3×3 matrices, beyond the data themselves.

python benchmarks/memory.py
"""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource, sys
import numpy as np
from dpmanifolds import SPD, frechet_mean
rng = np.random.default_rng(0)
records = np.empty((1_000_000, 3, 3))
for start in range(0, len(records), 50_000):
    factors = rng.standard_normal((50_000, 3, 6))
    records[start : start + 50_000] = factors @ factors.swapaxes(1, 2) / 6
frechet_mean(SPD(3, sys.argv[1]), records[:10_000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = frechet_mean(SPD(3, sys.argv[1]), records)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"{sys.argv[1]}: {(after - before) / 1024:.0f} MB beyond the {records.nbytes / 2**20:.0f} MB of data, "
      f"{result.passes} passes, whole process {after / 1024:.0f} MB")
"""


def main() -> None:
    """Measure each metric in a process of its own."""
    for metric in ("affine-invariant", "log-euclidean", "log-cholesky"):
        subprocess.run([sys.executable, "-c", PROGRAM, metric], check=True)


if __name__ == "__main__":
    main()
