"""Private Riemannian optimisation: noisy gradient descent with an exact promise, and losses to descend."""

from dpmanifolds.optimize.autograd import AutogradLoss
from dpmanifolds.optimize.covariance import GaussianCovarianceLoss
from dpmanifolds.optimize.descent import DescentResult, private_descent
from dpmanifolds.optimize.embedding import HyperbolicEmbeddingLoss
from dpmanifolds.optimize.frechet import FrechetMeanLoss, FrechetMedianLoss
from dpmanifolds.optimize.loss import Loss
from dpmanifolds.optimize.median import descend_to_median
from dpmanifolds.optimize.plan import DescentPlan, plan_descent
from dpmanifolds.optimize.regression import GeodesicRegressionLoss
from dpmanifolds.optimize.step_sizes import (
    ConvexSteps,
    GeometricSteps,
    PolyakSteps,
    SmoothSteps,
    StepRule,
    StronglyConvexSteps,
)
from dpmanifolds.optimize.subspaces import EigenvectorLoss, PCALoss
from dpmanifolds.optimize.svrg import SVRGResult, private_svrg

__all__ = [
    "AutogradLoss",
    "ConvexSteps",
    "DescentPlan",
    "DescentResult",
    "EigenvectorLoss",
    "FrechetMeanLoss",
    "FrechetMedianLoss",
    "GaussianCovarianceLoss",
    "GeodesicRegressionLoss",
    "GeometricSteps",
    "HyperbolicEmbeddingLoss",
    "Loss",
    "PCALoss",
    "PolyakSteps",
    "SVRGResult",
    "SmoothSteps",
    "StepRule",
    "StronglyConvexSteps",
    "descend_to_median",
    "plan_descent",
    "private_descent",
    "private_svrg",
]
