"""The front door: private answers, and what they promise."""

from dpmanifolds.releases.classes import ClassMeans, private_class_means
from dpmanifolds.releases.clipped import private_clipped_share
from dpmanifolds.releases.confidence import ConfidenceRegion, confidence_region, population_region
from dpmanifolds.releases.covariance import private_covariance
from dpmanifolds.releases.decision import Decision
from dpmanifolds.releases.descent import private_descent, private_median
from dpmanifolds.releases.difference import Difference, private_difference
from dpmanifolds.releases.geodesic_regression import GeodesicRegression, SlopeRegion
from dpmanifolds.releases.independence import private_independence_test
from dpmanifolds.releases.mean import private_mean
from dpmanifolds.releases.regression import private_geodesic_regression
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.spread import private_mean_and_spread
from dpmanifolds.releases.synthetic import SyntheticRecords, synthesize
from dpmanifolds.releases.two_sample import private_two_sample_test
from dpmanifolds.releases.value import privatize
from dpmanifolds.releases.variance import private_variance

__all__ = [
    "ClassMeans",
    "ConfidenceRegion",
    "Decision",
    "Difference",
    "GeodesicRegression",
    "Release",
    "SlopeRegion",
    "SyntheticRecords",
    "confidence_region",
    "population_region",
    "private_class_means",
    "private_clipped_share",
    "private_covariance",
    "private_descent",
    "private_difference",
    "private_geodesic_regression",
    "private_independence_test",
    "private_mean",
    "private_mean_and_spread",
    "private_median",
    "private_two_sample_test",
    "private_variance",
    "privatize",
    "synthesize",
]
