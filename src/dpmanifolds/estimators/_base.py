"""What all private estimators share: the scikit-learn contract, records that are no tables, and the account."""
# ruff: noqa: N803

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import host
from dpmanifolds._validate import numeric_array, real_numbers
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, PrivacyLeakWarning, warn_user
from dpmanifolds.manifolds import SPD, Manifold
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.records.blocks import check_block, record_array

_REFITTING = (
    "model_selection",
    "calibration",
    "ensemble",
    "feature_selection",
    "multiclass",
    "multioutput",
    "semi_supervised",
)
_PARAMETERS = {
    "domain": """Domain
        The public promise about where records live, usually a `Ball`; never made from the records.""",
    "budget": """Budget
        What one `fit` may spend: `PureDP`, `ApproxDP`, `GaussianDP`, `ZeroConcentratedDP` or `RenyiDP`.""",
    "mechanism": """str, default="auto"
        The noise, as in `private_mean`; "auto" takes what public facts say errs least.""",
    "numerics": """str, default="safe"
        "safe", "rounded" or "lattice": all hold down to the last bit.""",
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
        if isinstance(getattr(self, "domain", None), Budget):
            raise ArgumentError(
                f"is missing: the ball where records live comes before the budget; got {self.domain!r} in its place.",
                argument="domain",
            )
        if group_by is not None and groups is not None and not np.array_equal(group_by, groups):
            raise ArgumentError("groups= is group_by= under the name that scikit-learn's splitters have: give one.")
        if get_tags(self).input_tags.two_d_array:
            in_words_of_tables(self, X)
        _check_feature_names(self, X, reset=True)
        tool = next((name for name in map(_module_of, _callers()) if name.startswith(_refitting_modules())), None)
        if tool is not None and self.random_state is None:
            warn_user(
                f"{tool.rpartition('.')[0]} fits {type(self).__name__} several times, and each fit spends its budget "
                "again: what they spend adds up. dpm.spent() tells what this process has spent; choose models on "
                "public records, with a random_state.",
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
        if not _is_followed_by_private_steps(self):
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


def check_target(model: Asked, y: Any) -> None:
    """Refuse a missing y in scikit-learn's words."""
    if y is None:
        raise ArgumentError(
            f"{type(model).__name__} requires y to be passed, but the target y is None: it has one entry per record."
        )


def row_of_labels(model: Asked, y: Any) -> Any:
    """Labels, one for each record; a column (n, 1) is a row of n."""
    check_target(model, y)
    if hasattr(y, "__array__") and not hasattr(y, "tolist"):
        y = np.asarray(y)
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        warn_user("A column-vector y was passed when a 1d array was expected: y.ravel().", DataConversionWarning)
        return y.ravel()
    return y


def rows_of(X: Any, columns: int) -> np.ndarray:
    """A table of real numbers with this many columns, or an error that says so."""
    table = np.asarray(real_numbers("X", numeric_array("X", X)))
    if table.ndim != 2 or table.shape[1] != columns:
        raise ArgumentError(f"X must be a table of shape (n, {columns}), as transform returns it; got {table.shape}.")
    if not np.all(np.isfinite(table)):
        raise ArgumentError("must hold finite numbers, not NaN or inf.", argument="X")
    return table


def _rows_of_numbers(manifold: Any) -> bool:
    """Whether points of it are rows of real numbers, so that records are a table."""
    return len(getattr(manifold, "point_shape", ())) == 1 and not manifold.is_complex


def in_words_of_tables(model: Asked, X: Any, columns: int | None = None) -> None:
    """What is wrong with the type and the shape of a table, in scikit-learn's words; `columns`: how many were fitted.

    Entries are not looked at. What is no table of numbers yet is left to those who read it: a file, a frame, a list,
    whose type and shape as a whole one odd record may decide.
    """
    if issparse(X):
        raise ArgumentError("Sparse data are not supported: noise fills every entry. Use X.toarray().", argument="X")
    if not isinstance(X, np.ndarray):
        return
    shape = X.shape
    if X.dtype.kind == "c":
        raise ArgumentError("must hold real numbers. Complex data not supported.", argument="X")
    if len(shape) != 2:
        raise ArgumentError(
            f"must be a table (n, columns); got shape {shape}. Reshape your data either using X.reshape(-1, 1) if they "
            "have one column or X.reshape(1, -1) if they are one record.",
            argument="X",
        )
    if not shape[1]:
        raise ArgumentError(f"has 0 feature(s) (shape={shape}) while a minimum of 1 is required.", argument="X")
    if columns is not None and shape[1] != columns:
        raise ArgumentError(
            f"has {shape[1]} features, but {type(model).__name__} is expecting {columns} features as input.",
            argument="X",
        )


def width_of_most(X: Any) -> tuple[int, ...] | None:
    """The shape of a row in a list of rows: that of most, so that no single record decides it; None of an array.

    >>> width_of_most([[1.0, 2.0], [3.0], [4.0, 5.0]])
    (2,)
    """
    if not isinstance(X, list | tuple):
        return None
    found = Counter(len(row) for row in X if hasattr(row, "__len__"))
    return (found.most_common(1)[0][0],) if found else None


def keep_weighted(sample_weight: Any, *aligned: Any) -> tuple[Any, ...]:
    """Records, labels and names of those records whose public weight is not 0; other weights must be equal.

    The weights are public. Records of weight 0 are dropped, so that what is left is the ordinary statistic of the
    others, with its promise; neighbours that differ in a record of weight 0 have the same law. Unequal weights would
    raise one record's share above the 1/n that the promise of a mean rests on.
    """
    if sample_weight is None:
        return aligned
    weights = np.asarray(numeric_array("sample_weight", sample_weight), dtype=np.float64)
    if weights.ndim != 1 or len(weights) != len(aligned[0]):
        raise ArgumentError(f"must be one number for each record; got shape {weights.shape}.", argument="sample_weight")
    kept = np.flatnonzero(weights)
    if not len(kept) or not np.all(weights[kept] == weights[kept[0]]) or not 0 < weights[kept[0]] < np.inf:
        raise ArgumentError(
            "must be 0, which drops a record, or one and the same number above 0 for all others: with unequal weights "
            "one record counts for more than 1/n, which no promise here covers. Weights are taken as public.",
            argument="sample_weight",
        )
    if len(kept) == len(weights):
        return aligned
    return tuple(None if each is None else _safe_indexing(each, kept) for each in aligned)


def manifold_for(role: str, manifold: Manifold, metric: Any) -> Manifold:
    """The manifold whose metric is used for the `role` ("distance" or "map"), by pyRiemann's way to ask for it.

    `metric` is None (that of the domain), a name for everything, or a dict of names for "mean" and the role. The mean
    is that of the domain; whatever is done with it afterwards is free.
    """
    if metric is None:
        return manifold
    asked = dict(metric) if isinstance(metric, Mapping) else {"mean": metric, role: metric}
    if set(asked) != {"mean", role} or not hasattr(manifold, "metric"):
        raise ArgumentError(
            f'must be None, the name of a metric of SPD matrices, or a dict of names for "mean" and "{role}"; got '
            f"{metric!r} for {manifold!r}.",
            argument="metric",
        )
    size: int = manifold.point_shape[0]
    mean = SPD(size, asked["mean"])
    if mean != manifold:
        raise ArgumentError(
            f"asks for a mean in {mean!r}, and the domain is one of {manifold!r}: say the metric there, as in "
            f'Ball(SPD({size}, "{mean.metric}"), center, radius).',
            argument="metric",
        )
    return SPD(size, asked[role])


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _refitting_modules() -> tuple[str, ...]:
    return tuple(f"sklearn.{name}." for name in _REFITTING)


def _is_followed_by_private_steps(step: Any) -> bool:
    """Whether a pipeline is fitting this step, and all those after it are private in their training.

    A pipeline with a memory fits a copy of its step: it is known by its kind then.
    """
    for frame in _callers():
        pipeline = frame.f_locals.get("self")
        if frame.f_code.co_name == "_fit" and isinstance(pipeline, Pipeline):
            steps = [each for _, each in pipeline.steps if each not in (None, "passthrough")]
            own = [number for number, each in enumerate(steps) if each is step or type(each) is type(step)]
            later = steps[own[0] + 1 :] if own else []
            return bool(later) and all(getattr(each, "protects_training", False) for each in later)
    return False
