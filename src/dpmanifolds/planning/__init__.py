"""What a release would cost and how good it would be, before any data is touched."""

from dpmanifolds.planning.inverse import budget_for, radius_for, records_for
from dpmanifolds.planning.page import plan_page, write_plan_page
from dpmanifolds.planning.plan import Plan, plan, split_plan
from dpmanifolds.planning.rows import PlanRow
from dpmanifolds.planning.useful import Usefulness

__all__ = [
    "Plan",
    "PlanRow",
    "Usefulness",
    "budget_for",
    "plan",
    "plan_page",
    "radius_for",
    "records_for",
    "split_plan",
    "write_plan_page",
]
