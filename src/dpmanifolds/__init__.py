"""Differential privacy for data on curved spaces.

>>> import dpmanifolds as dpm
>>> X = dpm.SPD(3).random_point(100, rng=0)
>>> dpm.frechet_mean(dpm.SPD(3), X).point.shape
(3, 3)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmanifolds.auditing.audit import audit
    from dpmanifolds.data import DescriptorDomain, image_descriptors, read_points
    from dpmanifolds.descent import losses
    from dpmanifolds.domains import Ball, Domain, Ellipsoid, WholeSpace, validate
    from dpmanifolds.errors import (
        ArgumentError,
        BudgetExceededError,
        ConvergenceError,
        DPManifoldsError,
        LargeDeltaWarning,
        LedgerError,
        NoiseExceedsDomainWarning,
        NotAvailableError,
        NotOnManifoldError,
        PrivacyLeakWarning,
        RadiusTooLargeError,
        RoundRefusedError,
        ScaleOutOfRangeError,
        SharedRecordsWarning,
    )
    from dpmanifolds.estimators import (
        Congruence,
        PrivateFrechetMean,
        PrivateFrechetMedian,
        PrivateGeodesicRegression,
        PrivateKMeans,
        PrivateLogisticRegression,
        PrivateMDM,
        PrivatePCA,
        PrivateTangentClassifier,
        PrivateTangentPCA,
        PrivateTangentSpace,
        RefitSpendsWarning,
        UnprotectedModelWarning,
        UnprotectedScoreWarning,
    )
    from dpmanifolds.federated import (
        Answer,
        Coordinator,
        Descent,
        Round,
        Site,
        SitePolicy,
        SitesDecision,
        Study,
        combine,
        plan_sites,
        run_study,
    )
    from dpmanifolds.intrinsic import RiemannianGaussian, RiemannianLaplace, WrappedGaussian, WrappedLaplace
    from dpmanifolds.ledger import Ledger
    from dpmanifolds.manifolds import (
        SPD,
        Correlation,
        Euclidean,
        Grassmann,
        Hyperbolic,
        Manifold,
        PlanarShapes,
        Power,
        Product,
        SmoothMaps,
        SpecialOrthogonal,
        Sphere,
        Stiefel,
        pymanopt_manifold,
    )
    from dpmanifolds.planning.plan import plan
    from dpmanifolds.privacy import (
        ApproxDP,
        Budget,
        GaussianDP,
        Guarantee,
        PureDP,
        RenyiDP,
        Sensitivity,
        Spending,
        ZeroConcentratedDP,
        compose,
        convert,
        sensitivity_of_mean,
        sensitivity_of_mean_at_center,
        sensitivity_of_variance,
        spent,
        split,
    )
    from dpmanifolds.releases import (
        ClassMeans,
        ConfidenceRegion,
        Decision,
        Difference,
        GeodesicRegression,
        Release,
        SlopeRegion,
        SyntheticRecords,
        confidence_region,
        population_region,
        private_class_means,
        private_clipped_share,
        private_covariance,
        private_descent,
        private_difference,
        private_geodesic_regression,
        private_independence_test,
        private_mean,
        private_mean_and_spread,
        private_median,
        private_two_sample_test,
        private_variance,
        privatize,
        synthesize,
    )
    from dpmanifolds.statistics import MeanResult, frechet_mean, frechet_median
    from dpmanifolds.sums import ExpectedError

__version__ = "0.2.0"

__all__ = [
    "SPD",
    "Answer",
    "ApproxDP",
    "ArgumentError",
    "Ball",
    "Budget",
    "BudgetExceededError",
    "ClassMeans",
    "ConfidenceRegion",
    "Congruence",
    "ConvergenceError",
    "Coordinator",
    "Correlation",
    "DPManifoldsError",
    "Decision",
    "Descent",
    "DescriptorDomain",
    "Difference",
    "Domain",
    "Ellipsoid",
    "Euclidean",
    "ExpectedError",
    "GaussianDP",
    "GeodesicRegression",
    "Grassmann",
    "Guarantee",
    "Hyperbolic",
    "LargeDeltaWarning",
    "Ledger",
    "LedgerError",
    "Manifold",
    "MeanResult",
    "NoiseExceedsDomainWarning",
    "NotAvailableError",
    "NotOnManifoldError",
    "PlanarShapes",
    "Power",
    "PrivacyLeakWarning",
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
    "Product",
    "PureDP",
    "RadiusTooLargeError",
    "RefitSpendsWarning",
    "Release",
    "RenyiDP",
    "RiemannianGaussian",
    "RiemannianLaplace",
    "Round",
    "RoundRefusedError",
    "ScaleOutOfRangeError",
    "Sensitivity",
    "SharedRecordsWarning",
    "Site",
    "SitePolicy",
    "SitesDecision",
    "SlopeRegion",
    "SmoothMaps",
    "SpecialOrthogonal",
    "Spending",
    "Sphere",
    "Stiefel",
    "Study",
    "SyntheticRecords",
    "UnprotectedModelWarning",
    "UnprotectedScoreWarning",
    "WholeSpace",
    "WrappedGaussian",
    "WrappedLaplace",
    "ZeroConcentratedDP",
    "__version__",
    "audit",
    "combine",
    "compose",
    "confidence_region",
    "convert",
    "frechet_mean",
    "frechet_median",
    "image_descriptors",
    "losses",
    "plan",
    "plan_sites",
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
    "pymanopt_manifold",
    "read_points",
    "run_study",
    "sensitivity_of_mean",
    "sensitivity_of_mean_at_center",
    "sensitivity_of_variance",
    "spent",
    "split",
    "synthesize",
    "validate",
]

_ROOMS = (
    "errors",
    "manifolds",
    "domains",
    "statistics",
    "data",
    "privacy",
    "ledger",
    "sums",
    "descent",
    "releases",
    "estimators",
    "planning",
    "auditing",
    "federated",
    "intrinsic",
)


def __getattr__(name: str) -> Any:
    """Load a public name from its room on first use, so that importing the package stays light."""
    if name == "losses":
        return importlib.import_module(f"{__name__}.descent.losses")
    if name in __all__:
        for room in _ROOMS:
            module = importlib.import_module(f"{__name__}.{room}")
            if name in module.__all__:
                value = globals()[name] = getattr(module, name)
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
