"""Private Riemannian optimisation: what `private_descent` rests on, step sizes, plans; losses are in `losses`."""

from dpmanifolds.descent.descent import DescentDetails
from dpmanifolds.descent.noise_plan import DescentPlan, plan_descent
from dpmanifolds.descent.step_sizes import (
    ConvexSteps,
    GeometricSteps,
    PolyakSteps,
    SmoothSteps,
    StepRule,
    StronglyConvexSteps,
)
from dpmanifolds.descent.svrg import SVRGResult, private_svrg

__all__ = [
    "ConvexSteps",
    "DescentDetails",
    "DescentPlan",
    "GeometricSteps",
    "PolyakSteps",
    "SVRGResult",
    "SmoothSteps",
    "StepRule",
    "StronglyConvexSteps",
    "plan_descent",
    "private_svrg",
]
