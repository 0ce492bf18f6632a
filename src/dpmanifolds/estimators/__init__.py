"""Private statistics with scikit-learn's interface, for pipelines, grids and people who know it."""

from dpmanifolds.estimators.mdm import PrivateMDM, UnprotectedScoreWarning
from dpmanifolds.estimators.mean import PrivateFrechetMean, PrivateFrechetMedian, PrivateTangentSpace
from dpmanifolds.estimators.pca import PrivatePCA, PrivateTangentPCA

__all__ = [
    "PrivateFrechetMean",
    "PrivateFrechetMedian",
    "PrivateMDM",
    "PrivatePCA",
    "PrivateTangentPCA",
    "PrivateTangentSpace",
    "UnprotectedScoreWarning",
]
