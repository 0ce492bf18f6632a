"""Where randomness comes from: the only room that makes noise for a release.

>>> from dpmanifolds.noise import as_generator, secure_generator
>>> secure_generator().standard_normal(3).shape
(3,)
>>> as_generator(7).random() == as_generator(7).random()
True
"""

from dpmanifolds.noise.exact import RoundedGaussian, RoundedLaplace
from dpmanifolds.noise.generators import as_generator, secure_generator, uniform_directions
from dpmanifolds.noise.lattice import LatticeGaussian, LatticeLaplace
from dpmanifolds.noise.log_concave import LogConcaveSampler

__all__ = [
    "LatticeGaussian",
    "LatticeLaplace",
    "LogConcaveSampler",
    "RoundedGaussian",
    "RoundedLaplace",
    "as_generator",
    "secure_generator",
    "uniform_directions",
]
