"""What is known to be wrong with promises of earlier versions, by what can be told of a release (docs/security.md).

>>> from dpmanifolds.ledger.advisories import advisories_for
>>> [advisory.name for advisory in advisories_for("0.1.0", "class mean", mechanism="wrapped-gaussian")]
['company', 'labels']
>>> advisories_for("0.2.0", "class mean", mechanism="wrapped-gaussian")
()
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpmanifolds.privacy import ApproxDP, Budget

_OF_RECORDS = (
    *("mean", "refined mean", "class mean", "class means", "median", "variance", "minimiser", "tangent PCA"),
    *("descent", "svrg"),
)
_OF_STEPS = ("descent", "minimiser")
_SHARE = 1e-9


@dataclass(frozen=True)
class Advisory:
    """One thing that went wrong, in one sentence, and what to do about it."""

    name: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text} {self.advice}"


SECOND_USE = Advisory(
    "plan",
    "Version 0.1 took a plan under a wrong number for another one: this use was paid for by no part of it.",
    "Count its promise once more than the ledger shows.",
)
"""Of an entry that uses a plan which is not there."""


@dataclass(frozen=True)
class _Facts:
    statistic: str
    mechanism: str
    budget: Budget | None


_VERSION_0_1: tuple[tuple[Advisory, Callable[[_Facts], bool]], ...] = (
    (
        Advisory(
            "company",
            "In version 0.1 one record could change how others were computed, and more could be learned of it than was "
            "promised.",
            "Do not count on the promise: keep the release closed, or release again with this version from what is "
            "left of the budget.",
        ),
        lambda facts: facts.statistic in _OF_RECORDS,
    ),
    (
        Advisory(
            "labels",
            "In version 0.1 one label of another type turned all labels into text, and moved records between classes.",
            "Do not count on the promise unless all labels were of one type.",
        ),
        lambda facts: facts.statistic in ("class mean", "class means"),
    ),
    (
        Advisory(
            "calibration",
            "In version 0.1 the noise was chosen with a slack of 1e−12 in ε, which exceeds a δ as small as this one.",
            "Count a δ that is larger by ε·1e−12.",
        ),
        lambda facts: isinstance(facts.budget, ApproxDP) and facts.budget.delta < _SHARE * facts.budget.epsilon,
    ),
    (
        Advisory(
            "profile",
            "In version 0.1 the promise of the Riemannian Gaussian was below the truth in high dimension.",
            "Do not count on the promise beyond a few dimensions.",
        ),
        lambda facts: facts.mechanism == "riemannian-gaussian",
    ),
    (
        Advisory(
            "resumed",
            "In version 0.1 a descent that was resumed from a file of state could draw more often than was charged.",
            "If state= was used, count one charge for each time the file was resumed, and for each copy of it.",
        ),
        lambda facts: facts.statistic in _OF_STEPS or facts.mechanism == "noisy gradient descent",
    ),
)


def advisories_for(
    version: str | None, statistic: str, *, mechanism: str = "", budget: Budget | None = None
) -> tuple[Advisory, ...]:
    """The advisories about a release of this version; None, a version that noted none, is 0.1."""
    if version is not None and not version.startswith("0.1."):
        return ()
    facts = _Facts(statistic, mechanism, budget)
    return tuple(advisory for advisory, concerns in _VERSION_0_1 if concerns(facts))
