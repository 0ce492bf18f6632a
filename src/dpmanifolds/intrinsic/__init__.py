"""The papers' laws on the curved space, and mechanisms around the Fréchet mean: used by name, and never by default.

All draws are exact in the sense of real numbers: no Markov chain anywhere.

>>> from dpmanifolds import Hyperbolic
>>> from dpmanifolds.intrinsic import RiemannianLaplace
>>> plane = Hyperbolic(2)
>>> law = RiemannianLaplace(plane, plane.origin, sigma=0.5)
>>> law.sample(3, rng=0).shape
(3, 3)
"""

from dpmanifolds.intrinsic.compact import RootSystemLaw
from dpmanifolds.intrinsic.direct import DirectGaussianMechanism, DirectLaplaceMechanism, frechet_facts
from dpmanifolds.intrinsic.knorm_gradient import KNormGradientLaw
from dpmanifolds.intrinsic.law import TangentLaw
from dpmanifolds.intrinsic.mechanisms import (
    KNormGradientMechanism,
    RiemannianGaussianMechanism,
    RiemannianLaplaceMechanism,
)
from dpmanifolds.intrinsic.riemannian import (
    FlatGaussian,
    FlatLaplace,
    ProductGaussian,
    RiemannianGaussian,
    RiemannianLaplace,
    RiemannianLaw,
    WrappedGaussian,
    WrappedLaplace,
    WrappedLaw,
    gaussian_law,
    laplace_law,
)
from dpmanifolds.intrinsic.spd import SPDGaussian, SPDLaplace, largest_laplace_scale

__all__ = [
    "DirectGaussianMechanism",
    "DirectLaplaceMechanism",
    "FlatGaussian",
    "FlatLaplace",
    "KNormGradientLaw",
    "KNormGradientMechanism",
    "ProductGaussian",
    "RiemannianGaussian",
    "RiemannianGaussianMechanism",
    "RiemannianLaplace",
    "RiemannianLaplaceMechanism",
    "RiemannianLaw",
    "RootSystemLaw",
    "SPDGaussian",
    "SPDLaplace",
    "TangentLaw",
    "WrappedGaussian",
    "WrappedLaplace",
    "WrappedLaw",
    "frechet_facts",
    "gaussian_law",
    "laplace_law",
    "largest_laplace_scale",
]
