"""Attacks on our own mechanisms, and what they show against the promises."""

from dpmanifolds.auditing.audit import audit
from dpmanifolds.auditing.bounds import LowerBound, lower_bound, profile_bands
from dpmanifolds.auditing.claims import Claim
from dpmanifolds.auditing.precision import PrecisionReport, precision_attack
from dpmanifolds.auditing.report import AuditReport

__all__ = [
    "AuditReport",
    "Claim",
    "LowerBound",
    "PrecisionReport",
    "audit",
    "lower_bound",
    "precision_attack",
    "profile_bands",
]
