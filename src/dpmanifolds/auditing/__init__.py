"""Attacks on our own mechanisms, and what they show against the promises."""

from dpmanifolds.auditing.audit import audit
from dpmanifolds.auditing.bounds import Claim, LowerBound, lower_bound, profile_bands
from dpmanifolds.auditing.canaries import CanaryReport, audit_descent, one_run_bound
from dpmanifolds.auditing.front_door import audit_release, find_difference
from dpmanifolds.auditing.neighbours import Neighbours, hard_neighbours, hard_records, worst_neighbours
from dpmanifolds.auditing.precision import PrecisionReport, precision_attack
from dpmanifolds.auditing.report import AuditReport

__all__ = [
    "AuditReport",
    "CanaryReport",
    "Claim",
    "LowerBound",
    "Neighbours",
    "PrecisionReport",
    "audit",
    "audit_descent",
    "audit_release",
    "find_difference",
    "hard_neighbours",
    "hard_records",
    "lower_bound",
    "one_run_bound",
    "precision_attack",
    "profile_bands",
    "worst_neighbours",
]
