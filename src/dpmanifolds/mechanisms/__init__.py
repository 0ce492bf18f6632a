"""Mechanisms: a law of noise calibrated to a budget and a sensitivity, with its promise and its expected error."""

from dpmanifolds.mechanisms._frames import horizon, point_at
from dpmanifolds.mechanisms.base import Draw, ExpectedError, Facts, Mechanism, SumShape
from dpmanifolds.mechanisms.choose import (
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
from dpmanifolds.mechanisms.facts import ADJACENCIES, frechet_facts, mean_facts, value_facts
from dpmanifolds.mechanisms.intrinsic import (
    KNormGradientMechanism,
    RiemannianGaussianMechanism,
    RiemannianLaplaceMechanism,
)
from dpmanifolds.mechanisms.wrapped import WrappedGaussianMechanism, WrappedLaplaceMechanism

__all__ = [
    "ADJACENCIES",
    "DIRECT",
    "MECHANISMS",
    "NUMERICS",
    "Choice",
    "Draw",
    "ExpectedError",
    "Facts",
    "KNormGradientMechanism",
    "Mechanism",
    "RiemannianGaussianMechanism",
    "RiemannianLaplaceMechanism",
    "SumShape",
    "WrappedGaussianMechanism",
    "WrappedLaplaceMechanism",
    "calibrate",
    "choose",
    "error_metric",
    "error_quantile",
    "frechet_facts",
    "horizon",
    "mean_facts",
    "numerics_of",
    "offered",
    "point_at",
    "value_facts",
]
