"""Records become integers, integers are summed exactly, noise is added once: mechanisms, each with its promise."""

from dpmanifolds.privacy.guarantee import ADJACENCIES
from dpmanifolds.sums.choose import (
    DIRECT,
    MECHANISMS,
    NUMERICS,
    TANGENT,
    Choice,
    calibrate,
    choose,
    error_metric,
    error_quantile,
    numerics_of,
    offered,
)
from dpmanifolds.sums.frames import horizon, point_at
from dpmanifolds.sums.mechanism import (
    Draw,
    ExpectedError,
    Facts,
    Mechanism,
    SumShape,
    mean_facts,
    value_facts,
)
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedLaplaceMechanism

__all__ = [
    "ADJACENCIES",
    "DIRECT",
    "MECHANISMS",
    "NUMERICS",
    "TANGENT",
    "Choice",
    "Draw",
    "ExpectedError",
    "Facts",
    "Mechanism",
    "SumShape",
    "WrappedGaussianMechanism",
    "WrappedLaplaceMechanism",
    "calibrate",
    "choose",
    "error_metric",
    "error_quantile",
    "horizon",
    "mean_facts",
    "numerics_of",
    "offered",
    "point_at",
    "value_facts",
]
