"""The exception family: what was given, what is allowed, what to do.

Errors about public arguments say everything. Errors that depend on records say only which rule failed, never a
value, an index or a count.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

__all__ = [
    "ArgumentError",
    "BudgetExceededError",
    "ConvergenceError",
    "DPManifoldsError",
    "LargeDeltaWarning",
    "LedgerError",
    "NoiseExceedsDomainWarning",
    "NotAvailableError",
    "NotOnManifoldError",
    "PrivacyLeakWarning",
    "RadiusTooLargeError",
    "RoundRefusedError",
    "ScaleOutOfRangeError",
    "SharedRecordsWarning",
]


class DPManifoldsError(Exception):
    """Base of every error this package raises on purpose.

    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.errors import DPManifoldsError
    >>> try:
    ...     dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=4.0)
    ... except DPManifoldsError as error:
    ...     print(type(error).__name__, error.argument)
    RadiusTooLargeError radius
    """

    def __init__(self, message: str = "", *, argument: str | None = None) -> None:
        super().__init__(message if argument is None else f"{argument} {message}")
        self.argument = argument
        """The argument that is wrong, with whose name the text begins; None where it is about no single one."""
        self.message = message
        """The text after that name."""


class ArgumentError(DPManifoldsError, ValueError):
    """A public argument is outside what is allowed.

    >>> import dpmanifolds as dpm
    >>> try:
    ...     dpm.PureDP(-1.0)
    ... except dpm.ArgumentError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class NotOnManifoldError(DPManifoldsError, ValueError):
    """Records, a centre or a start point do not lie on the manifold.

    >>> import dpmanifolds as dpm
    >>> try:
    ...     dpm.Ball(dpm.SPD(2), [[1.0, 2.0], [2.0, 1.0]], radius=1.0)  # an eigenvalue is negative
    ... except dpm.NotOnManifoldError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class RadiusTooLargeError(DPManifoldsError, ValueError):
    """A ball reaches the cut locus of its centre, or is too large for a bound that needs a unique Fréchet mean.

    >>> import dpmanifolds as dpm
    >>> try:
    ...     dpm.Ball(dpm.PlanarShapes(10), dpm.PlanarShapes(10).random_point(rng=0), radius=1.6)
    ... except dpm.RadiusTooLargeError:
    ...     print(round(dpm.PlanarShapes(10).injectivity_radius, 4))
    1.5708
    """


class ScaleOutOfRangeError(DPManifoldsError, ValueError):
    """A law does not exist, or cannot be drawn or represented, at this scale.

    >>> import dpmanifolds as dpm
    >>> try:
    ...     dpm.RiemannianLaplace(dpm.Hyperbolic(3), dpm.Hyperbolic(3).origin, 0.6)  # its integral is infinite
    ... except dpm.ScaleOutOfRangeError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class NotAvailableError(DPManifoldsError, NotImplementedError):
    """A quantity that exists but that this package does not compute on this manifold.

    >>> import dpmanifolds as dpm
    >>> try:
    ...     dpm.GaussianDP(1.0).as_pure()  # no Gaussian promise is a pure one
    ... except dpm.NotAvailableError as error:
    ...     print(isinstance(error, NotImplementedError))
    True
    """


class ConvergenceError(DPManifoldsError, ArithmeticError):
    """An iteration could not reach what it promised.

    >>> from dpmanifolds.errors import ConvergenceError, DPManifoldsError
    >>> issubclass(ConvergenceError, DPManifoldsError), issubclass(ConvergenceError, ArithmeticError)
    (True, True)
    """


class BudgetExceededError(DPManifoldsError, ValueError):
    """A ledger refuses a release: what was spent, asked for and remains, as budgets (None is nothing).

    >>> import tempfile
    >>> from pathlib import Path
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.privacy import Guarantee
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = dpm.Ledger(Path(folder) / "privacy.ledger")
    ...     _ = ledger.open_dataset("survey", dpm.PureDP(1.0))
    ...     try:
    ...         ledger.spend("survey", Guarantee.pure(2.0), what="mean")
    ...     except dpm.BudgetExceededError as error:
    ...         print(error.dataset, error.asked, error.remaining)
    survey PureDP(epsilon=2.0) PureDP(epsilon=1.0)
    """

    def __init__(
        self, message: str, *, dataset: str = "", spent: Any = None, asked: Any = None, remaining: Any = None
    ) -> None:
        super().__init__(message)
        self.dataset = dataset
        self.spent = spent
        self.asked = asked
        self.remaining = remaining


class LedgerError(DPManifoldsError, RuntimeError):
    """The file of a ledger cannot be read, trusted or written; nothing was spent.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import dpmanifolds as dpm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "privacy.ledger").write_text("not a ledger")
    ...     try:
    ...         dpm.Ledger(Path(folder) / "privacy.ledger").datasets()
    ...     except dpm.LedgerError as error:
    ...         print(isinstance(error, RuntimeError))
    True
    """


class RoundRefusedError(DPManifoldsError, ValueError):
    """A site refuses a round, or a coordinator refuses answers: nothing is drawn, or nothing is released.

    >>> import dpmanifolds as dpm
    >>> try:
    ...     dpm.Round.from_json("{}")
    ... except dpm.RoundRefusedError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class PrivacyLeakWarning(UserWarning):
    """A public quantity was computed from private records.

    >>> import dpmanifolds as dpm
    >>> issubclass(dpm.UnprotectedScoreWarning, dpm.PrivacyLeakWarning)
    True
    """


class NoiseExceedsDomainWarning(UserWarning):
    """The expected error of the noise is as large as the radius of the ball that the answer lies in.

    It is a function of public facts alone, and is said before anything is spent: turned into an error, it saves the
    budget.

    >>> import warnings
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(8), np.eye(8), radius=3.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", dpm.NoiseExceedsDomainWarning)
    ...     try:
    ...         dpm.private_mean(dpm.SPD(8).random_point(50, rng=0), ball, dpm.PureDP(1.0))
    ...     except dpm.NoiseExceedsDomainWarning as warning:
    ...         print(warning)
    the noise is larger than the ball: this release says little more than the public centre
    """

    words = "the noise is larger than the ball: this release says little more than the public centre"
    """The same everywhere: Python, summary, report, command line and planner."""


class LargeDeltaWarning(UserWarning):
    """δ is not below 1/n: publishing one record in n, as it is, would keep such a promise.

    It is said from public facts alone, before anything is spent.

    >>> import warnings
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", dpm.LargeDeltaWarning)
    ...     try:
    ...         dpm.private_mean(dpm.SPD(2).random_point(200, rng=0), ball, dpm.ApproxDP(1.0, 0.1))
    ...     except dpm.LargeDeltaWarning as warning:
    ...         print(warning)
    δ = 0.1 is not below 1/n = 0.005: publishing one record in n as it is would keep this promise. Choose δ far below
    1/n, for instance 1e-6.
    """


_CALLERS = (__name__.partition(".")[0], "sklearn", "joblib")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the user's line: the one that called into this package, directly or through scikit-learn."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _CALLERS:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)


class SharedRecordsWarning(UserWarning):
    """Two accounts of a ledger have one fingerprint: the same records would be paid for from two budgets.

    >>> import tempfile, warnings
    >>> from pathlib import Path
    >>> import dpmanifolds as dpm
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     ledger = dpm.Ledger(Path(folder) / "privacy.ledger")
    ...     _ = ledger.open_dataset("survey", dpm.PureDP(1.0), fingerprint="9f2c")
    ...     _ = ledger.open_dataset("Survey", dpm.PureDP(1.0), fingerprint="9f2c")
    >>> [warning.category.__name__ for warning in caught]
    ['SharedRecordsWarning']
    """
