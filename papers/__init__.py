"""The papers, reproduced, corrected and on real data. Nothing here carries a privacy promise.

>>> from papers import names
>>> names()[:3]
['reimherr-1', 'soto-1', 'soto-2']

`reproduce(name)` runs one figure; `python -m papers all --quick` runs them all, from the repository. Each states what
the paper says, what the run sees and a verdict. Published algorithms and noise levels that keep no promise live here
only, as baselines, and their names say "not private".
"""

from papers._study import Claim, Result, names, reproduce

__all__ = ["Claim", "Result", "names", "reproduce"]
