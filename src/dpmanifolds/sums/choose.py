"""Which mechanisms there are, and which of them errs least: decided by public facts alone.

>>> import numpy as np
>>> from dpmanifolds import SPD, ApproxDP, Ball
>>> from dpmanifolds.sums import choose, mean_facts
>>> ball = Ball(SPD(3, "log-euclidean"), np.eye(3), radius=1.0)
>>> choice = choose(mean_facts(ball, n=500), ApproxDP(1.0, 1e-6))
>>> choice.mechanism.name, choice.mechanism.numerics
('wrapped-laplace', 'rounded')
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dpmanifolds._validate import choice as one_of
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.sums.mechanism import FAMILIES, Facts, Mechanism
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedLaplaceMechanism

_OF_SUMS = (WrappedGaussianMechanism.name, WrappedLaplaceMechanism.name)
_IDEALIZED = ("riemannian-gaussian", "riemannian-laplace", "k-norm-gradient")
DIRECT = ("direct-gaussian", "direct-laplace")
"""Noise on the Fréchet mean as a solver finds it; "direct" is the better of the two, and "auto" never takes them."""
TANGENT = ("auto", *_OF_SUMS)
"""What `mechanism=` may be for a mean by sums."""
MECHANISMS = (*_OF_SUMS, *_IDEALIZED, *DIRECT)
"""Names of all mechanisms."""
NUMERICS = ("safe", "lattice", "rounded", "idealized")
"""What `numerics=` may be; "safe" is the better of lattice and rounded."""

_ALLOWED = {
    "safe": ("rounded", "lattice"),
    "rounded": ("rounded",),
    "lattice": ("lattice",),
    "idealized": ("idealized", "rounded"),
}


@dataclass(frozen=True)
class Choice:
    """A calibrated mechanism, and why it was taken.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, PureDP
    >>> from dpmanifolds.sums import choose, mean_facts
    >>> choice = choose(mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500), PureDP(1.0))
    >>> choice.mechanism.name, choice.reason.split(";")[0]
    ('wrapped-laplace', 'smallest expected error from public facts')
    """

    mechanism: Mechanism
    budget: Budget
    asked: str
    """The mechanism or the set of them that was asked for."""
    numerics: str

    @cached_property
    def reason(self) -> str:
        """Told when it is asked for, as mechanisms that err more have to be calibrated for it."""
        best = self.mechanism
        found = offered(best.facts, self.budget, mechanism=self.asked, numerics=self.numerics)
        if len(found) == 1:
            return f"the only one with numerics {self.numerics!r} that keeps the budget"
        own = best.name, best.numerics
        others = sorted(
            (one for one in found if (one.name, one.numerics) != own), key=lambda one: one.expected_error.mean
        )
        listed = ", ".join(
            f"{one.name} ({one.numerics}) {one.expected_error.mean / best.expected_error.mean:.3g} times"
            for one in others
        )
        return f"smallest expected error from public facts; the others: {listed}"


def _family(name: str) -> type[Mechanism]:
    if one_of("mechanism", name, MECHANISMS) not in FAMILIES:
        # a wing of its own, above this room: it registers its mechanisms when one of them is asked for
        importlib.import_module("dpmanifolds.intrinsic")
    return FAMILIES[name]


def calibrate(name: str, facts: Facts, budget: Budget, numerics: str) -> Mechanism:
    """The named mechanism, its scale calibrated so that its promise is within the budget.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, GaussianDP
    >>> from dpmanifolds.sums import calibrate, mean_facts
    >>> facts = mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500)
    >>> round(calibrate("wrapped-gaussian", facts, GaussianDP(0.5), "rounded").sigma, 6)
    0.008
    """
    family = _family(name)
    return family.calibrate(facts, checked_budget(budget), numerics)


def error_quantile(name: str, numerics: str, facts: Facts, sigma: float, guarantee: Guarantee, level: float) -> float:
    """The error that a release of this mechanism keeps with probability `level`; see `error_metric`.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean, Ball, GaussianDP
    >>> from dpmanifolds.sums import calibrate, error_quantile, mean_facts
    >>> facts = mean_facts(Ball(Euclidean(1), [0.0], radius=1.0), n=500)
    >>> found = calibrate("wrapped-gaussian", facts, GaussianDP(1.0), "rounded")
    >>> round(error_quantile(found.name, found.numerics, facts, found.sigma, found.guarantee, 0.9) / found.sigma, 4)
    1.6449
    """
    family = _family(name)
    return family(facts=facts, sigma=sigma, step=sigma, guarantee=guarantee, numerics=numerics).error_quantile(level)


def numerics_of(name: str) -> tuple[str, ...]:
    """The numerics that a mechanism is offered with.

    >>> from dpmanifolds.sums import numerics_of
    >>> numerics_of("wrapped-laplace"), numerics_of("riemannian-laplace")
    (('rounded', 'lattice'), ('idealized',))
    """
    return _family(name).offered_numerics


def error_metric(name: str) -> str:
    """Whether the errors of a mechanism are "coordinates" at the centre or a geodesic "distance".

    >>> from dpmanifolds.sums import error_metric
    >>> error_metric("wrapped-laplace"), error_metric("riemannian-laplace")
    ('coordinates', 'distance')
    """
    return _family(name).error_metric


def offered(facts: Facts, budget: Budget, *, mechanism: str = "auto", numerics: str = "safe") -> list[Mechanism]:
    """Every mechanism, with every numerics allowed, that keeps the budget; `NotAvailableError` where none does.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, PureDP
    >>> from dpmanifolds.sums import mean_facts, offered
    >>> found = offered(mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500), PureDP(1.0))
    >>> [(one.name, one.numerics) for one in found]
    [('wrapped-laplace', 'rounded'), ('wrapped-laplace', 'lattice')]
    """
    return list(_calibrated(facts, budget, mechanism, numerics))


def choose(facts: Facts, budget: Budget, *, mechanism: str = "auto", numerics: str = "safe") -> Choice:
    """The mechanism with the smallest expected error among those offered.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, PureDP
    >>> from dpmanifolds.sums import choose, mean_facts
    >>> choose(mean_facts(Ball(SPD(2), np.eye(2), radius=1.0), n=500), PureDP(1.0)).mechanism.name
    'wrapped-laplace'
    """
    best: Mechanism | None = None
    for one in _calibrated(facts, budget, mechanism, numerics, better_only=True):
        if best is None or one.expected_error.mean < best.expected_error.mean:
            best = one
    assert best is not None
    return Choice(best, budget, mechanism, numerics)


def _calibrated(
    facts: Facts, budget: Budget, mechanism: str, numerics: str, *, better_only: bool = False
) -> Iterator[Mechanism]:
    """What `offered` lists; with `better_only` not those that plainly err more than one before."""
    one_of("numerics", numerics, NUMERICS)
    sets = {"auto": _OF_SUMS if numerics != "idealized" else (*_OF_SUMS, *_IDEALIZED), "direct": DIRECT}
    names = sets.get(one_of("mechanism", mechanism, (*sets, *MECHANISMS)), (mechanism,))
    if mechanism not in sets and not set(_family(mechanism).offered_numerics) & set(_ALLOWED[numerics]):
        usable = ", ".join(map(repr, _family(mechanism).offered_numerics))
        raise ArgumentError(
            f"mechanism {mechanism!r} has no numerics {numerics!r}: its promise holds in real numbers only. Pass "
            f"numerics={usable} to accept that, or take a wrapped mechanism."
        )
    least, reasons = math.inf, list[str]()
    for name in names:
        for kind in _ALLOWED[numerics]:
            family = _family(name)
            if kind not in family.offered_numerics:
                continue
            if better_only and least < math.inf and family.errs_more(facts, budget, kind, least):
                continue
            try:
                found = calibrate(name, facts, budget, kind)
            except NotAvailableError as reason:
                reasons.append(f"{name} ({kind}): {reason}")
                continue
            least = min(least, found.expected_error.mean)
            yield found
    if least == math.inf:
        raise NotAvailableError(
            f"no mechanism with numerics {numerics!r} keeps {budget!r} here. " + " ".join(dict.fromkeys(reasons))
        )
