"""Losses to descend, each with a bound on what one record can do to its gradient: `dpmanifolds.losses`.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> loss = dpm.losses.FrechetMeanLoss(dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.0))
>>> loss.bound
1.0
"""

from dpmanifolds.descent.losses.autograd import AutogradLoss
from dpmanifolds.descent.losses.distances import FrechetMeanLoss, FrechetMedianLoss, GeodesicRegressionLoss
from dpmanifolds.descent.losses.embedding import HyperbolicEmbeddingLoss
from dpmanifolds.descent.losses.logistic import LogisticLoss
from dpmanifolds.descent.losses.loss import Loss
from dpmanifolds.descent.losses.vectors import EigenvectorLoss, GaussianCovarianceLoss, PCALoss

__all__ = [
    "AutogradLoss",
    "EigenvectorLoss",
    "FrechetMeanLoss",
    "FrechetMedianLoss",
    "GaussianCovarianceLoss",
    "GeodesicRegressionLoss",
    "HyperbolicEmbeddingLoss",
    "LogisticLoss",
    "Loss",
    "PCALoss",
]
