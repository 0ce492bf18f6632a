"""Private statistics with scikit-learn's interface, for pipelines, grids and people who know it."""

from dpmanifolds.estimators._base import RefitSpendsWarning, UnprotectedModelWarning, UnprotectedScoreWarning
from dpmanifolds.estimators.congruence import Congruence
from dpmanifolds.estimators.kmeans import PrivateKMeans
from dpmanifolds.estimators.logistic import PrivateLogisticRegression
from dpmanifolds.estimators.mdm import PrivateMDM
from dpmanifolds.estimators.mean import PrivateFrechetMean, PrivateFrechetMedian, PrivateTangentSpace
from dpmanifolds.estimators.pca import PrivatePCA, PrivateTangentPCA
from dpmanifolds.estimators.regression import PrivateGeodesicRegression
from dpmanifolds.estimators.tangent_classifier import PrivateTangentClassifier

__all__ = [
    "Congruence",
    "PrivateFrechetMean",
    "PrivateFrechetMedian",
    "PrivateGeodesicRegression",
    "PrivateKMeans",
    "PrivateLogisticRegression",
    "PrivateMDM",
    "PrivatePCA",
    "PrivateTangentClassifier",
    "PrivateTangentPCA",
    "PrivateTangentSpace",
    "RefitSpendsWarning",
    "UnprotectedModelWarning",
    "UnprotectedScoreWarning",
]
