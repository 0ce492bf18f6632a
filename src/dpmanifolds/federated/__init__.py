"""Several sites, no trusted centre: rounds, sites, a coordinator, and releases that tell who may learn what."""

from dpmanifolds.federated.block_test import SitesDecision
from dpmanifolds.federated.coordinator import Coordinator
from dpmanifolds.federated.engines import SummedAnswers, run_study, sum_in_process
from dpmanifolds.federated.gradients import Descent
from dpmanifolds.federated.policy import SitePolicy
from dpmanifolds.federated.receipts import Reconciliation, reconcile
from dpmanifolds.federated.round import Round
from dpmanifolds.federated.site import Answer, Site
from dpmanifolds.federated.sites_alone import combine
from dpmanifolds.federated.study import Study
from dpmanifolds.federated.ways import SitesPlan, plan_sites

__all__ = [
    "Answer",
    "Coordinator",
    "Descent",
    "Reconciliation",
    "Round",
    "Site",
    "SitePolicy",
    "SitesDecision",
    "SitesPlan",
    "Study",
    "SummedAnswers",
    "combine",
    "plan_sites",
    "reconcile",
    "run_study",
    "sum_in_process",
]
