"""Records become integers, integers are summed exactly, noise is added once: mechanisms, each with its promise."""

from dpmanifolds.sums.choose import (
    DIRECT,
    MECHANISMS,
    NUMERICS,
    Choice,
    calibrate,
    choose,
    error_metric,
    error_quantile,
    numerics_of,
    offered,
)
from dpmanifolds.sums.facts import ADJACENCIES, mean_facts, value_facts
from dpmanifolds.sums.frames import horizon, point_at
from dpmanifolds.sums.mechanism import Draw, ExpectedError, Facts, Mechanism, SumShape
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedLaplaceMechanism

__all__ = [
    "ADJACENCIES",
    "DIRECT",
    "MECHANISMS",
    "NUMERICS",
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
