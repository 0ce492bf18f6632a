"""Do records depend on age, score or label? A permutation test whose answer is private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._points import host
from dpmanifolds.domains import Domain, WholeSpace
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget
from dpmanifolds.records.persons import persons_of
from dpmanifolds.releases.classes import class_names, read_classes
from dpmanifolds.releases.decision import PERMUTATIONS, Decision, Setting, check_settings
from dpmanifolds.releases.statistic import Terms, check_domain, check_terms, domain_first, read_named
from dpmanifolds.sums.features import Kernel, kernel_of
from dpmanifolds.sums.permutation import (
    IndependenceStatistic,
    average_persons,
    draw_pairings,
    paired_sums,
    term_integers,
)
from dpmanifolds.sums.total import ExactSum, RecordSums, check_rules
from dpmanifolds.sums.walk import generator_of

_PAIRS, _PARTNER_PAIRS = 64, 16
_STATEMENT = "4(n − 1)/n² for features of diameter √2 each, for every pairing; √6(n − 1)/n² for the given one"


@domain_first
def private_independence_test(
    points: Any,
    covariates: Any,
    domain: Domain,
    budget: Budget,
    *,
    covariate_domain: Domain | None = None,
    classes: Sequence[Any] | None = None,
    level: float = 0.05,
    kernel: str = "auto",
    bandwidth: Any = None,
    covariate_kernel: str = "auto",
    covariate_bandwidth: Any = None,
    permutations: int = PERMUTATIONS,
    pvalue: bool = False,
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Decision:
    """Whether records are independent of what is known beside them, as one private bit at a public level.

    `covariates` are points of a `covariate_domain` (for an age `Ball.from_bounds(Euclidean(1), [0], [100])`, or a ball
    of a second manifold), or labels of public `classes`. The norm of the covariance between the kernel features of
    both (HSIC) is compared with that under random pairings; each gets noise of scale (4 + √6)(n − 1)/n²ε
    (docs/proofs/tests.md). If both are independent, `rejected` is true with a probability of at most `level`, exactly,
    noise included. A record and its covariate are protected together.

    A constant covariate depends on nothing, and is not told: the test then rejects with a probability of about `level`.
    With `group_by`, one name for each record, the features of a person's records and covariates are averaged.
    Other arguments as in `private_two_sample_test`; numbers may be given as (n,) for `Euclidean(1)`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ages = np.random.default_rng(0).uniform(20, 80, size=500)
    >>> lean = (ages - 50) / 60
    >>> directions = np.stack([np.sin(lean), 0 * lean, np.cos(lean)], axis=-1)
    >>> cap = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.6)
    >>> years = dpm.Ball.from_bounds(dpm.Euclidean(1), [20.0], [80.0])
    >>> dpm.private_independence_test(directions, ages, cap, dpm.PureDP(1.0), covariate_domain=years, rng=0).rejected
    True
    """
    terms = check_terms(
        budget, group_by=group_by, on_invalid=on_invalid, unit=unit, ledger=ledger, dataset=dataset, rng=rng
    )
    settings = check_settings(level, permutations, pvalue)
    chosen = kernel_of(check_domain(domain), kernel, bandwidth, pairs=_PAIRS)
    partner = _partner_of(covariate_domain, classes, covariate_kernel, covariate_bandwidth)
    records = read_named("points", domain, points, group_by)
    if records.count < 4:
        raise ArgumentError("an independence test needs at least four records, or persons.", argument="points")
    statistic = IndependenceStatistic(chosen, partner.size, records.count)
    noise = settings.noise(statistic, budget)
    source = generator_of(terms.account.rng)
    partners = partner.integers(covariates, records, group_by, statistic.partner_exponent, terms)
    rule = chosen.contribution(statistic.exponent, host(domain.center) if terms.mends else None)
    pairings = draw_pairings(records.count, settings.permutations, source)
    products, sums, broken = paired_sums(records, rule, partners, pairings)
    check_rules(ExactSum.of_counts(broken[:0], broken), domain.manifold.rules, domain.manifold)
    values = statistic.values(products, sums, partners.sum(axis=1))
    words = f"{chosen.words}; covariates: {partner.words}"
    about = Setting("independence", domain, words, (records.count,), statistic, _STATEMENT)
    return settings.decide(about, terms, noise, values, source)


@dataclass(frozen=True, eq=False)
class _Partner:
    """What covariates are, in public: points of a domain, or labels of classes."""

    kernel: Kernel | None
    names: tuple[Any, ...] = ()

    @property
    def size(self) -> int:
        """How many features a covariate has."""
        return len(self.names) if self.kernel is None else sum(self.kernel.sizes)

    @property
    def words(self) -> str:
        return f"labels of {len(self.names)} classes" if self.kernel is None else self.kernel.words

    def integers(self, covariates: Any, records: RecordSums, group_by: Any, exponent: int, terms: Terms) -> np.ndarray:
        """(features, n), each column from one covariate, or one person's, alone; two are at most √2·R apart."""
        if self.kernel is None:
            return self._one_hot(covariates, records, group_by, exponent, terms.mends)
        domain = self.kernel.domain
        if domain.manifold.point_shape == (1,):
            covariates = _as_column(covariates)
        given = read_named("covariates", domain, covariates, group_by)
        if given.source.counted() != records.source.counted():
            raise ArgumentError("must be as many as there are records.", argument="covariates")
        rule = self.kernel.contribution(exponent, host(domain.center) if terms.mends else None)
        whole, broken = term_integers(given, rule)
        check_rules(ExactSum.of_counts(broken[:0], broken), domain.manifold.rules, domain.manifold)
        return whole

    def _one_hot(self, labels: Any, records: RecordSums, group_by: Any, exponent: int, lenient: bool) -> np.ndarray:
        """A label of no class has no feature, inside of the promise, where that is `lenient`."""
        count = records.source.counted()
        numbers, _ = read_classes(labels, count, self.names, private=True, lenient=lenient)
        whole = (np.arange(len(self.names))[:, None] == numbers).astype(np.int64) << exponent
        return whole if group_by is None else average_persons(whole, persons_of(group_by, count))


def _as_column(covariates: Any) -> Any:
    """Numbers (n,) as records of one number; those of a list one by one, so that an odd one changes no other."""
    if isinstance(covariates, list | tuple):
        return [each if _has_entries(each) else [each] for each in covariates]
    if getattr(covariates, "ndim", 0) == 1:
        return (covariates if hasattr(covariates, "reshape") else np.asarray(covariates)).reshape(-1, 1)
    return covariates


def _has_entries(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0


def _partner_of(domain: Any, classes: Any, kernel: Any, bandwidth: Any) -> _Partner:
    if (domain is None) == (classes is None):
        raise ArgumentError(
            "say what covariates are, in public, in one way: covariate_domain=, such as Ball.from_bounds(Euclidean(1), "
            "[0], [100]) for an age, or classes=[…] for labels."
        )
    if classes is None:
        check_domain(domain)
        usual = "gaussian" if kernel == "auto" and not isinstance(domain, WholeSpace) else kernel
        partner = kernel_of(domain, usual, bandwidth, pairs=_PARTNER_PAIRS)
        if partner.is_separate:
            raise ArgumentError("'directions' is for records: covariates have one part.", argument="covariate_kernel")
        if len(partner.parts) > 1:
            raise ArgumentError("must be one number.", argument="covariate_bandwidth")
        return _Partner(partner)
    names = class_names(classes)
    if len(names) < 2:
        raise ArgumentError("must list at least two labels: on a single one nothing can depend.", argument="classes")
    if kernel != "auto" or bandwidth is not None:
        raise ArgumentError("is for covariate_domain=; labels have a kernel of their own.", argument="covariate_kernel")
    return _Partner(None, names)
