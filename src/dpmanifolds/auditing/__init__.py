"""Attacks on our own mechanisms, and what they show against the promises."""

from dpmanifolds.auditing.audit import audit
from dpmanifolds.auditing.bounds import Claim, LowerBound, lower_bound, profile_bands
from dpmanifolds.auditing.front_door import audit_release, find_difference
from dpmanifolds.auditing.neighbours import Neighbours, worst_neighbours
from dpmanifolds.auditing.report import AuditReport

__all__ = [
    "AuditReport",
    "Claim",
    "LowerBound",
    "Neighbours",
    "audit",
    "audit_release",
    "find_difference",
    "lower_bound",
    "profile_bands",
    "worst_neighbours",
]
