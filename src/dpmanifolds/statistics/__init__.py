"""Estimators without privacy, with certified numerical error: what the mechanisms add noise to."""

from dpmanifolds.statistics.mean import MeanResult, frechet_mean
from dpmanifolds.statistics.median import frechet_median
from dpmanifolds.statistics.reference import ball_from_reference

__all__ = ["MeanResult", "ball_from_reference", "frechet_mean", "frechet_median"]
