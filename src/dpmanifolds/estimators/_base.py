"""What all private estimators share: the scikit-learn contract, records that are no tables, and the account."""
# ruff: noqa: N803

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import host
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, PrivacyLeakWarning, warn_user
from dpmanifolds.estimators._arguments import in_words_of_tables
from dpmanifolds.estimators._callers import is_followed_by_private_steps, refitting_tool
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.privacy.budget import refuse_as_domain
from dpmanifolds.records.blocks import check_block, record_array

_PARAMETERS = {
    "domain": """Domain
        The public promise about where records live, usually a `Ball`; never made from the records.""",
    "budget": """Budget
        What one `fit` may spend: `PureDP`, `ApproxDP`, `GaussianDP`, `ZeroConcentratedDP` or `RenyiDP`.""",
    "mechanism": """str, default="auto"
        The noise, as in `private_mean`; "auto" takes what public facts say errs least.""",
    "numerics": """str, default="safe"
        "safe", "rounded" or "lattice": all hold down to the last bit.""",
    "refine": """int or str, default="auto"
        Whether to pay for a smaller ball first, as in `private_mean`.""",
    "public_sample": """array (m, *point_shape), default=None
        Public points like the records, not taken from them: noise gets the shape of their spread.""",
    "on_invalid": """str, default="raise"
        "raise" refuses malformed records, outside of the promise; "center" takes them as the centre, inside of it.""",
    "unit": """str, default=None
        What neighbours differ in; None is "record", or "person" with names of persons.""",
    "random_state": """int or numpy.random.Generator, default=None
        For tests and teaching: a fit that can be repeated promises nothing. None draws from the secure source.""",
    "ledger": """Ledger or path, default=None
        The account that pays; it takes no fit with a `random_state`.""",
    "dataset": """str, default=None
        The name of the data set in the ledger.""",
    "state": """path, default=None
        Where a descent goes on after a crash, as in `private_descent`; needs a ledger.""",
}
_SHARED = "on_invalid, unit, random_state, ledger, dataset"


def _listed_parameters(found: re.Match[str]) -> str:
    """The lines of a docstring that say what parameters of these names are."""
    names = found[1].replace("shared", _SHARED).split(", ")
    return "\n".join(f"    {name} : {_PARAMETERS[name]}" for name in names)


class RefitSpendsWarning(UserWarning):
    """A tool of scikit-learn fits a private estimator several times, and each fit spends the budget again.

    It is said before anything is spent. `spent` tells what this process has spent so far.

    >>> import warnings
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from sklearn.model_selection import cross_val_predict
    >>> X, y = dpm.SPD(2).random_point(200, rng=0), np.repeat([0, 1], 100)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     _ = cross_val_predict(dpm.PrivateMDM(dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0), dpm.PureDP(1.0)), X, y)
    >>> sum(each.category is dpm.RefitSpendsWarning for each in said)
    5
    """


class Asked(BaseEstimator):  # type: ignore[misc]
    """What every private estimator is asked under: the constructor stores, `fit` checks and works."""

    budget: Budget
    on_invalid: str
    unit: str | None
    random_state: Any
    ledger: Any
    dataset: str | None
    guarantee_: Guarantee
    """What the last fit promises."""
    n_features_in_: int
    """Columns of a table; channels or landmarks of records that are no rows, as scikit-learn counts them."""
    feature_names_in_: np.ndarray
    """Names of columns, where the records were a frame that has them."""

    # groups that a splitter keeps together are persons, and reach `fit` where scikit-learn routes metadata
    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    protects_training = True
    """Whether a model that is fitted to records by this step is private."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = re.sub(r"(?m)^    <(.+)>$", _listed_parameters, cls.__doc__)

    def _store(self, given: dict[str, Any]) -> None:
        """Keep the arguments of a constructor, its `locals()`, as they are."""
        for name, value in given.items():
            if name not in {"self", "__class__"}:
                setattr(self, name, value)

    def _terms(self) -> dict[str, Any]:
        """The arguments that every release takes in the same way; no `random_state` is the secure source."""
        return {
            "on_invalid": self.on_invalid,
            "unit": self.unit,
            "ledger": self.ledger,
            "dataset": self.dataset,
            "rng": self.random_state,
        }

    def _begin(self, X: Any, group_by: Any, groups: Any) -> Any:
        """What a fit does first: note the columns, say what refitting costs; the names of persons, by either name."""
        refuse_as_domain(getattr(self, "domain", None))
        if group_by is not None and groups is not None and not np.array_equal(group_by, groups):
            raise ArgumentError("groups= is group_by= under the name that scikit-learn's splitters have: give one.")
        if get_tags(self).input_tags.two_d_array:
            in_words_of_tables(self, X)
        _check_feature_names(self, X, reset=True)
        tool = refitting_tool()
        if tool is not None and self.random_state is None:
            warn_user(
                f"{tool} fits {type(self).__name__} several times, and each fit spends its budget again: what they "
                "spend adds up, and predictions and scores of left-out records have no noise. dpm.spent() tells what "
                "this process has spent; choose models on public records, with a random_state.",
                RefitSpendsWarning,
            )
        return groups if group_by is None else group_by


class PrivateEstimator(Asked):
    """An estimator for records of a domain; what was learned ends in an underscore and is private.

    Records are arrays (n, *point_shape) of points of the domain's manifold: (n, k, k) for matrices, complex (n, k) for
    planar shapes.
    """

    domain: Domain
    manifold_: Manifold
    """Where the records of the last fit live."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = _rows_of_numbers(getattr(self.domain, "manifold", None))
        tags.input_tags.three_d_array = not tags.input_tags.two_d_array
        return tags

    def _live_on(self, manifold: Manifold) -> None:
        """Keep where the records of a fit live."""
        self.manifold_ = manifold
        shape = manifold.point_shape
        if shape and isinstance(shape[0], int):
            self.n_features_in_ = shape[0]

    def _points(self, X: Any) -> Array:
        """Records for a fitted estimator to look at, in double precision."""
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        if _rows_of_numbers(self.manifold_):
            in_words_of_tables(self, X, self.manifold_.point_shape[0])
        points = host(record_array(self.manifold_, X))
        check_block(self.manifold_, points)
        with np.errstate(all="ignore"):
            on_manifold = to_numpy(self.manifold_.belongs(points))
        if not on_manifold.all():
            raise NotOnManifoldError(f"records must lie on {self.manifold_!r}, and at least one does not.")
        return points


class UnprotectedModelWarning(PrivacyLeakWarning):
    """Records without noise were handed on by `fit_transform`, as the next step of a pipeline is trained on them.

    Fine on public records. Steps whose training is private, as that of every estimator here, are not warned of. It is
    said before anything is spent.

    >>> import warnings
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = dpm.SPD(2).random_point(200, rng=0), np.repeat([0, 1], 100)
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     _ = make_pipeline(dpm.PrivateTangentSpace(ball, dpm.PureDP(1.0)), LogisticRegression()).fit(X, y)
    >>> said[0].category.__name__
    'UnprotectedModelWarning'
    """


class HandingOn(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """`transform`, names for the columns that come out of it, and a word of warning."""

    _n_features_out: int

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """`fit`, and `transform` of the same records, as a pipeline asks for: warns with `UnprotectedModelWarning`.

        What is learned is private; what comes out of `transform` is each record in other numbers. In a pipeline all of
        whose later steps are private in their own training nothing is said.
        """
        if not is_followed_by_private_steps(self):
            warn_user(
                f"what {type(self).__name__} hands on is each record in other numbers, without noise: a model that is "
                "fitted to it is not private. Use PrivateTangentClassifier or PrivateMDM on the records themselves, "
                "let PrivateLogisticRegression follow, or fit on public records only.",
                UnprotectedModelWarning,
            )
        return super().fit_transform(X, y, **fit_params)


class PrivateTransformer(HandingOn, PrivateEstimator):
    """An estimator for records of a domain with `transform`."""


class UnprotectedScoreWarning(PrivacyLeakWarning):
    """A score was computed from records without noise: fine on public records, a leak on private ones.

    >>> import warnings
    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> X, y = dpm.SPD(2).random_point(200, rng=0), np.repeat([0, 1], 100)
    >>> model = dpm.PrivateMDM(dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0), dpm.PureDP(1.0)).fit(X, y)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     score = model.score(X, y)
    >>> said[0].category.__name__
    'UnprotectedScoreWarning'
    """


class PrivateClassifier(ClassifierMixin, PrivateTransformer):  # type: ignore[misc]
    """A classifier that can also hand its scores to the next step of a pipeline."""

    classes_: np.ndarray
    """The labels, sorted."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of records classified correctly, without noise: warns with `UnprotectedScoreWarning`."""
        warnings.warn(
            "this score is computed from the records it was given, without noise. On public records that is fine; on "
            "private ones it leaks, and so does everything chosen by it.",
            UnprotectedScoreWarning,
            stacklevel=2,
        )
        return float(super().score(X, y, sample_weight))


def _rows_of_numbers(manifold: Any) -> bool:
    """Whether points of it are rows of real numbers, so that records are a table."""
    return len(getattr(manifold, "point_shape", ())) == 1 and not manifold.is_complex
