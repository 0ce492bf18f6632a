"""Private statistics with scikit-learn's interface, for pipelines, grids and people who know it."""

from dpmanifolds.estimators.mdm import PrivateMDM, UnprotectedScoreWarning
from dpmanifolds.estimators.mean import PrivateFrechetMean
from dpmanifolds.estimators.median import PrivateFrechetMedian
from dpmanifolds.estimators.pca import PrivateEigenvector, PrivatePCA
from dpmanifolds.estimators.tangent_pca import PrivateTangentPCA
from dpmanifolds.estimators.tangent_space import PrivateTangentSpace

__all__ = [
    "PrivateEigenvector",
    "PrivateFrechetMean",
    "PrivateFrechetMedian",
    "PrivateMDM",
    "PrivatePCA",
    "PrivateTangentPCA",
    "PrivateTangentSpace",
    "UnprotectedScoreWarning",
]
