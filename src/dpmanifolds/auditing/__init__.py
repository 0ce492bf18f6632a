"""Attacks on our own mechanisms, and what they show against the promises."""

from dpmanifolds.auditing.audit import audit
from dpmanifolds.auditing.bounds import Claim, LowerBound, lower_bound, profile_bands
from dpmanifolds.auditing.canaries import CanaryReport, audit_descent, one_run_bound
from dpmanifolds.auditing.front_door import audit_release, find_difference
from dpmanifolds.auditing.neighbours import Neighbours, worst_neighbours
from dpmanifolds.auditing.report import AuditReport

__all__ = [
    "AuditReport",
    "CanaryReport",
    "Claim",
    "LowerBound",
    "Neighbours",
    "audit",
    "audit_descent",
    "audit_release",
    "find_difference",
    "lower_bound",
    "one_run_bound",
    "profile_bands",
    "worst_neighbours",
]
