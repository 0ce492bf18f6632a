"""Laws on manifolds with exact samplers: no Markov chain anywhere.

>>> import numpy as np
>>> from dpmanifolds import Hyperbolic
>>> from dpmanifolds.distributions import RiemannianLaplace
>>> plane = Hyperbolic(2)
>>> law = RiemannianLaplace(plane, plane.origin, sigma=0.5)
>>> law.sample(3, rng=0).shape
(3, 3)
"""

from dpmanifolds.distributions.base import (
    RiemannianGaussian,
    RiemannianLaplace,
    RiemannianLaw,
    TangentLaw,
    gaussian_law,
    laplace_law,
)

# each of these files registers the laws of its manifolds with laplace_law and gaussian_law
from dpmanifolds.distributions.compact import RootSystemLaw
from dpmanifolds.distributions.flat import FlatGaussian, FlatLaplace
from dpmanifolds.distributions.knorm_gradient import KNormGradientLaw
from dpmanifolds.distributions.products import ProductGaussian
from dpmanifolds.distributions.rank_one import critical_scale
from dpmanifolds.distributions.spd import SPDGaussian, SPDLaplace, largest_laplace_scale
from dpmanifolds.distributions.wrapped import WrappedGaussian, WrappedLaplace, WrappedLaw

__all__ = [
    "FlatGaussian",
    "FlatLaplace",
    "KNormGradientLaw",
    "ProductGaussian",
    "RiemannianGaussian",
    "RiemannianLaplace",
    "RiemannianLaw",
    "RootSystemLaw",
    "SPDGaussian",
    "SPDLaplace",
    "TangentLaw",
    "WrappedGaussian",
    "WrappedLaplace",
    "WrappedLaw",
    "critical_scale",
    "gaussian_law",
    "laplace_law",
    "largest_laplace_scale",
]
