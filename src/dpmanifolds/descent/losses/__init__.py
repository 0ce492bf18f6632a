"""Losses to descend, each with a bound on what one record can do to its gradient."""

from dpmanifolds.descent.losses.autograd import AutogradLoss
from dpmanifolds.descent.losses.covariance import GaussianCovarianceLoss
from dpmanifolds.descent.losses.embedding import HyperbolicEmbeddingLoss
from dpmanifolds.descent.losses.frechet import FrechetMeanLoss, FrechetMedianLoss
from dpmanifolds.descent.losses.loss import Loss
from dpmanifolds.descent.losses.regression import GeodesicRegressionLoss
from dpmanifolds.descent.losses.subspaces import EigenvectorLoss, PCALoss

__all__ = [
    "AutogradLoss",
    "EigenvectorLoss",
    "FrechetMeanLoss",
    "FrechetMedianLoss",
    "GaussianCovarianceLoss",
    "GeodesicRegressionLoss",
    "HyperbolicEmbeddingLoss",
    "Loss",
    "PCALoss",
]
