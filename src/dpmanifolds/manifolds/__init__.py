"""Geometry alone: one file per manifold and metric, all behind one contract (`Manifold`)."""

from dpmanifolds.manifolds._pymanopt import pymanopt_manifold
from dpmanifolds.manifolds.base import Manifold
from dpmanifolds.manifolds.correlation import Correlation
from dpmanifolds.manifolds.euclidean import Euclidean, FlatManifold
from dpmanifolds.manifolds.grassmann import Grassmann
from dpmanifolds.manifolds.hyperbolic import Hyperbolic
from dpmanifolds.manifolds.names import manifold_from_json, manifold_from_name
from dpmanifolds.manifolds.planar_shapes import PlanarShapes
from dpmanifolds.manifolds.product import Power, Product
from dpmanifolds.manifolds.smooth_maps import SmoothMaps
from dpmanifolds.manifolds.spd import SPD
from dpmanifolds.manifolds.spd_affine_invariant import SPDAffineInvariant
from dpmanifolds.manifolds.spd_log_cholesky import SPDLogCholesky
from dpmanifolds.manifolds.spd_log_euclidean import SPDLogEuclidean
from dpmanifolds.manifolds.special_orthogonal import SpecialOrthogonal
from dpmanifolds.manifolds.sphere import Sphere
from dpmanifolds.manifolds.stiefel import Stiefel

__all__ = [
    "SPD",
    "Correlation",
    "Euclidean",
    "FlatManifold",
    "Grassmann",
    "Hyperbolic",
    "Manifold",
    "PlanarShapes",
    "Power",
    "Product",
    "SPDAffineInvariant",
    "SPDLogCholesky",
    "SPDLogEuclidean",
    "SmoothMaps",
    "SpecialOrthogonal",
    "Sphere",
    "Stiefel",
    "manifold_from_json",
    "manifold_from_name",
    "pymanopt_manifold",
]
