"""Mechanisms: a law of noise calibrated to a budget and a sensitivity, with its promise and its expected error."""

from dpmanifolds.mechanisms._frames import coordinates_at, host, point_at
from dpmanifolds.mechanisms.base import Draw, ExpectedError, Facts, Mechanism
from dpmanifolds.mechanisms.choose import (
    MECHANISMS,
    NUMERICS,
    Choice,
    calibrate,
    choose,
    error_metric,
    error_quantile,
    offered,
)
from dpmanifolds.mechanisms.facts import mean_facts, value_facts
from dpmanifolds.mechanisms.intrinsic import (
    KNormGradientMechanism,
    RiemannianGaussianMechanism,
    RiemannianLaplaceMechanism,
)
from dpmanifolds.mechanisms.wrapped import WrappedGaussianMechanism, WrappedLaplaceMechanism

__all__ = [
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
    "WrappedGaussianMechanism",
    "WrappedLaplaceMechanism",
    "calibrate",
    "choose",
    "coordinates_at",
    "error_metric",
    "error_quantile",
    "host",
    "mean_facts",
    "offered",
    "point_at",
    "value_facts",
]
