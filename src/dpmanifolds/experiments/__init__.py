"""The papers, reproduced, corrected and on real data. Nothing here carries a privacy promise.

>>> from dpmanifolds.experiments import names
>>> names()[:3]
['reimherr-1', 'soto-1', 'soto-2']

`reproduce(name)` runs one figure; `python -m dpmanifolds.experiments all --quick` runs them all. Each states what the
paper says, what the run sees and a verdict. Published algorithms and noise levels that keep no promise live here only,
as baselines, and their names say "not private".
"""

from dpmanifolds.experiments._study import Claim, Result, names, reproduce

__all__ = ["Claim", "Result", "names", "reproduce"]
