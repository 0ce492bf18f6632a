"""The papers' laws around the Fréchet mean, and its direct release: used by name, and never by default."""

from dpmanifolds.intrinsic.direct import DirectGaussianMechanism, DirectLaplaceMechanism, frechet_facts
from dpmanifolds.intrinsic.mechanisms import (
    KNormGradientMechanism,
    RiemannianGaussianMechanism,
    RiemannianLaplaceMechanism,
)

__all__ = [
    "DirectGaussianMechanism",
    "DirectLaplaceMechanism",
    "KNormGradientMechanism",
    "RiemannianGaussianMechanism",
    "RiemannianLaplaceMechanism",
    "frechet_facts",
]
