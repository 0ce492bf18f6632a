"""Private Riemannian optimisation: noisy gradient descent with an exact promise, and losses to descend."""

from dpmanifolds.descent.descent import DescentResult, private_descent
from dpmanifolds.descent.losses.autograd import AutogradLoss
from dpmanifolds.descent.losses.covariance import GaussianCovarianceLoss
from dpmanifolds.descent.losses.embedding import HyperbolicEmbeddingLoss
from dpmanifolds.descent.losses.frechet import FrechetMeanLoss, FrechetMedianLoss
from dpmanifolds.descent.losses.loss import Loss
from dpmanifolds.descent.losses.regression import GeodesicRegressionLoss
from dpmanifolds.descent.losses.subspaces import EigenvectorLoss, PCALoss
from dpmanifolds.descent.median import descend_to_median
from dpmanifolds.descent.noise_plan import DescentPlan, plan_descent
from dpmanifolds.descent.step_sizes import (
    ConvexSteps,
    GeometricSteps,
    PolyakSteps,
    SmoothSteps,
    StepRule,
    StronglyConvexSteps,
)
from dpmanifolds.descent.svrg import SVRGResult, private_svrg

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
