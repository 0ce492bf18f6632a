"""Where records are promised to live: the public domain that every record is clipped to.

>>> import numpy as np
>>> from dpmanifolds import Ball, Sphere
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.5)
>>> clipped = ball.clip(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
>>> ball.contains(clipped).tolist()
[True, True]
"""

from dpmanifolds.domains.ball import Ball
from dpmanifolds.domains.domain import Domain, WholeSpace
from dpmanifolds.domains.ellipsoid import Ellipsoid
from dpmanifolds.domains.validate import ValidationReport, validate

__all__ = ["Ball", "Domain", "Ellipsoid", "ValidationReport", "WholeSpace", "validate"]
