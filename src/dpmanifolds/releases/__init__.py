"""The front door: private answers, and what they promise."""

from dpmanifolds.releases.classes import ClassMeans, private_class_means
from dpmanifolds.releases.confidence import ConfidenceRegion, confidence_region, population_region
from dpmanifolds.releases.covariance import private_covariance
from dpmanifolds.releases.descent import private_descent, private_median
from dpmanifolds.releases.difference import Difference, private_difference
from dpmanifolds.releases.mean import private_mean
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.spread import private_mean_and_spread
from dpmanifolds.releases.synthetic import SyntheticRecords, synthesize
from dpmanifolds.releases.value import privatize
from dpmanifolds.releases.variance import private_variance

__all__ = [
    "ClassMeans",
    "ConfidenceRegion",
    "Difference",
    "Release",
    "SyntheticRecords",
    "confidence_region",
    "population_region",
    "private_class_means",
    "private_covariance",
    "private_descent",
    "private_difference",
    "private_mean",
    "private_mean_and_spread",
    "private_median",
    "private_variance",
    "privatize",
    "synthesize",
]
