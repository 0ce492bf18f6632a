"""Whether the rule of admission keeps (ε, δ) against adaptive analysts, computed exactly, and what it pays for."""

from __future__ import annotations

import math
import random

import pytest

from dpmanifolds.errors import BudgetExceededError, NotAvailableError
from dpmanifolds.ledger import filters
from dpmanifolds.ledger.filters import Standing, pure_epsilon
from dpmanifolds.ledger.records import Dataset
from dpmanifolds.privacy import ApproxDP, Guarantee, fixed_size_descent

DEPTH = 9


def standing_of(total, name):
    return Standing(Dataset("survey", total, filters.limit_of(total, name), "replace-one", "record", None))


def admitted(standing, release, delta=None):
    """The standing after the release, or None where it is refused."""
    try:
        charged = standing.priced(release, delta)
    except BudgetExceededError:
        return None
    if charged is None:
        return Standing(standing.dataset, whole=True)
    return standing.with_charge(charged, pure_epsilon(release))


def transcripts(standing, menu, rng, p=1.0, q=1.0, depth=DEPTH):
    """(p, q, standing) of every final transcript of one analyst who chooses each question in view of the answers.

    Each answer is randomised response, which tells 1 with probability 1/(1 + e^−ε) on one data set and 1/(1 + e^ε)
    on its neighbour. An answer of 1 makes the analyst bold, one of 0 makes him stop or ask for little.
    """
    offered = rng.sample(menu, len(menu)) if depth else []
    for epsilon, release in offered:
        after = admitted(standing, release)
        if after is None:
            continue
        likely = 1 / (1 + math.exp(-epsilon))
        yield from transcripts(after, menu, rng, p * likely, q * (1 - likely), depth - 1)
        if rng.random() < 0.3:
            yield p * (1 - likely), q * likely, after
        else:
            yield from transcripts(after, menu, rng, p * (1 - likely), q * likely, depth - 1)
        return
    yield p, q, standing


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", ["renyi", "zcdp", "gaussian"])
def test_adaptive_analysts_stay_within_epsilon_and_delta(name):
    total = ApproxDP(1.0, 0.02)
    menu = [(epsilon, Guarantee.pure(epsilon)) for epsilon in (0.1, 0.25, 0.5)]
    if name == "gaussian":
        menu += [(e, Guarantee.gaussian(Guarantee.pure(e).as_gaussian().mu)) for e in (0.1, 0.2)]
    else:
        menu += [(e, Guarantee.zcdp(Guarantee.pure(e).as_zcdp().rho)) for e in (0.1, 0.2)]
    rng = random.Random(1)
    beyond_filter = beyond_epsilon = 0
    for _ in range(12):
        found = list(transcripts(standing_of(total, name), menu, rng))
        assert math.fsum(p for p, _, _ in found) == pytest.approx(1.0)
        excess = math.fsum(max(p - math.e * q, 0.0) for p, q, _ in found)
        assert excess <= total.delta
        beyond_filter += sum(not standing.by_filter for _, _, standing in found)
        beyond_epsilon += sum(p > math.e * q for p, q, _ in found)
    # both ways of admission were taken: without the first nothing, without the second no δ, would be tested
    assert beyond_filter > 0
    assert beyond_epsilon > 0


@pytest.mark.long
def test_figures_of_the_ledger_page():
    releases = [
        Guarantee.gaussian(0.02),
        Guarantee.zcdp(0.0002),
        Guarantee.laplace(0.02),
        Guarantee.laplace(0.25),
        fixed_size_descent(n=10_000, batch=100, steps=100, clip=1.0, sigma=0.08),
    ]
    expected = {
        "renyi": [121, 121, 126, 4, 63],
        "zcdp": [121, 121, 122, 4, 0],
        "gaussian": [140, None, 90, 4, 0],
        "basic": [10, 10, 50, 4, 7],
        "pure": [None, None, 50, 4, None],
    }
    for name, counts in expected.items():
        assert [paid_for(standing_of(ApproxDP(1.0, 1e-6), name), release) for release in releases] == counts


def paid_for(standing, release):
    """How many copies of a release are admitted as parts of an account, by counting; None where none is read."""
    delta = 1e-8 if standing.dataset.filter == "basic" and pure_epsilon(release) is None else None
    count = 0
    try:
        while (after := admitted(standing, release, delta)) is not None and not after.whole:
            count, standing = count + 1, after
    except NotAvailableError:
        return None
    return count
