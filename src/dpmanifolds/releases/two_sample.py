"""Do two groups differ? A permutation test whose answer is private."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifolds._points import host
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget
from dpmanifolds.releases.decision import PERMUTATIONS, Decision, Setting, check_settings
from dpmanifolds.releases.statistic import check_domain, check_terms, domain_first, names_of_groups, read_named
from dpmanifolds.sums.features import KernelContribution, kernel_of
from dpmanifolds.sums.permutation import (
    TwoSampleStatistic,
    chosen_sums,
    draw_groups,
)
from dpmanifolds.sums.total import ExactSum, RecordSums, check_rules
from dpmanifolds.sums.walk import generator_of

_STATEMENT = "√2/min(n, m), the diameter of the features over the smaller group, for every permutation"


@domain_first
def private_two_sample_test(
    x: Any,
    y: Any,
    domain: Domain,
    budget: Budget,
    *,
    level: float = 0.05,
    kernel: str = "auto",
    bandwidth: Any = None,
    permutations: int = PERMUTATIONS,
    pvalue: bool = False,
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Decision:
    """Whether the records `x` and `y` come from one law, as one private bit at a public level.

    The distance T of the mean kernel features of the two groups is compared with that under random permutations of all
    records; each gets noise of scale 2Δ/ε, Δ = √2/min(n, m), whatever the dimension is (docs/proofs/tests.md). If both
    groups come from one law, `rejected` is true with a probability of at most `level`, exactly, noise included.
    Which group a record is in, n and m are public; neighbours differ in one record of one group.

    `kernel`: "directions" (the usual one in bounded domains: cut projections on many public directions, of which the
    one that differs most counts), "gaussian" or "linear" in coordinates at the public centre, whitened in an
    `Ellipsoid`; "exponential" in the flat space around spheres, shapes, subspaces and rotations, for a ball or a
    `WholeSpace`.
    `bandwidth`: one public number or several, of which the test takes the largest statistic without more noise; by
    default 0.58 of the radius, for directions, where projections are cut, a third of radius/√dimension. A ball about as
    wide as the records is worth a lot; take it, and bandwidths, from public knowledge, never from the records.
    `permutations` B must satisfy ⌊level·(B + 1)⌋ ≥ 1.

    `pvalue=True` also tells the rank of T, which costs twice the noise: budget the whole for both together.

    `group_by=(names of x, names of y)`: a person's records count as one, averaged. Somebody in both groups is refused,
    for one person would then move both means. Budgets of every kind: pure ε and (ε, δ) get Laplace noise, μ
    and ρ Gaussian noise where that is less.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> x = dpm.SPD(2).random_point(300, rng=0)
    >>> dpm.private_two_sample_test(x, 4 * x, ball, dpm.PureDP(1.0), rng=1).rejected
    True
    """
    terms = check_terms(
        budget, group_by=group_by, on_invalid=on_invalid, unit=unit, ledger=ledger, dataset=dataset, rng=rng
    )
    settings = check_settings(level, permutations, pvalue)
    check_domain(domain)
    names = names_of_groups(x, y, group_by)
    groups = read_named("x", domain, x, names[0]), read_named("y", domain, y, names[1])
    sizes = (groups[0].count, groups[1].count)
    if min(sizes) < 2:
        raise ArgumentError("each group must have at least two records, or persons; at least one has fewer.")
    chosen = kernel_of(domain, kernel, bandwidth, size=(sum(sizes), settings.permutations))
    terms = replace(terms, unit=f"{terms.unit} within class")
    statistic = TwoSampleStatistic(chosen, sizes)
    noise = settings.noise(statistic, budget)
    # one generator for permutations and noise
    source = generator_of(terms.account.rng)
    rule = chosen.contribution(statistic.exponent, host(domain.center) if terms.mends else None)
    members = draw_groups(sizes, settings.permutations, source)
    first, second = (
        _permuted_sums(records, rule, own, domain)
        for records, own in zip(groups, np.split(members, [sizes[0]], axis=1), strict=True)
    )
    about = Setting("two-sample", domain, chosen.words, sizes, statistic, _STATEMENT)
    return settings.decide(about, terms, noise, statistic.values(first + second), source)


def _permuted_sums(records: RecordSums, rule: KernelContribution, members: np.ndarray, domain: Domain) -> np.ndarray:
    """Those of one group; malformed records are told before any noise is drawn."""
    sums, broken = chosen_sums(records, rule, members)
    check_rules(ExactSum.of_counts(broken[:0], broken), domain.manifold.rules, domain.manifold)
    return sums
