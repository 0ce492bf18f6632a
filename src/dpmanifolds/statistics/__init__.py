"""Estimators without privacy, with certified numerical error: what the mechanisms add noise to."""

from dpmanifolds.statistics.mean import MeanResult, frechet_mean
from dpmanifolds.statistics.median import frechet_median

__all__ = ["MeanResult", "frechet_mean", "frechet_median"]
