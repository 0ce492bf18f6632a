"""Finished releases put together, and books compared."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import (
    ArgumentError,
    Ball,
    Euclidean,
    GaussianDP,
    Ledger,
    NotAvailableError,
    PureDP,
    Release,
    Site,
    combine,
    frechet_mean,
    private_mean,
    private_variance,
    run_study,
)
from dpmanifolds.federated import reconcile
from tests.federated.parties import FLAT, MATRICES, NAMES, records, study

LINE = Ball(Euclidean(6), np.zeros(6), 2.0)


def alone(points, ball, budget, parts, seed):
    return [
        private_mean(part, ball, budget, mechanism="auto", refine=0, rng=1000 * seed + number)
        for number, part in enumerate(np.array_split(points, parts))
    ]


def test_sites_alone_err_by_the_root_of_their_number_as_is_told():
    """300 runs of 4 sites, 6 coordinates of 0: the root mean square is told within 2 %, seeded (four deviations)."""
    points, budget = np.zeros((200, 6)), GaussianDP(1.0)
    found = [combine(alone(points, LINE, budget, 4, seed)) for seed in range(300)]
    central = private_mean(points, LINE, budget, mechanism="wrapped-gaussian", refine=0, rng=0)
    assert found[0].sigma == pytest.approx(2 * central.sigma, rel=1e-9)
    assert found[0].expected_error.mean == pytest.approx(2 * central.expected_error.mean, rel=1e-9)
    lengths = [np.linalg.norm(release.coordinates) for release in found]
    assert np.mean(lengths) == pytest.approx(found[0].expected_error.mean, rel=0.07)


def test_precision_is_what_counts():
    """Twice the records are half the error, four times the weight."""
    sizes = (400, 200)
    releases = [private_mean(np.zeros((n, 3)), FLAT, GaussianDP(1.0), refine=0, rng=n) for n in sizes]
    both = combine(releases)
    wanted = 0.8 * releases[0].coordinates + 0.2 * releases[1].coordinates
    np.testing.assert_allclose(both.coordinates, wanted, rtol=1e-9)
    assert both.sigma == pytest.approx(releases[0].sigma * np.sqrt(0.8), rel=1e-9)
    assert Release.from_json(both.to_json()) == both


def test_curved_releases_of_several_steps_are_combined_as_points():
    points = records(MATRICES, 600)
    releases = alone(points, MATRICES, GaussianDP(2.0), 3, 0)
    both = combine(releases)
    assert both.n == 600
    assert bool(MATRICES.manifold.belongs(both.value))
    whole = frechet_mean(MATRICES.manifold, MATRICES.clip(points)).point
    assert float(MATRICES.manifold.dist(both.value, whole)) < 3 * both.expected_error.radius_90


def test_what_is_promised_is_what_the_weakest_promises():
    budgets = (GaussianDP(0.5), GaussianDP(1.0))
    releases = [
        private_mean(np.zeros((100, 3)), FLAT, budget, mechanism="wrapped-gaussian", rng=0) for budget in budgets
    ]
    assert combine(releases).guarantee.as_gaussian().mu == pytest.approx(1.0)
    pure = [private_mean(np.zeros((100, 3)), FLAT, PureDP(epsilon), rng=0) for epsilon in (0.5, 1.0)]
    assert combine(pure).guarantee.as_pure().epsilon == pytest.approx(1.0)
    # a pure promise implies a Gaussian one
    assert combine([releases[0], pure[0]]).guarantee.as_gaussian().mu >= 0.5


def test_what_cannot_be_combined_is_told():
    one = private_mean(np.zeros((100, 3)), FLAT, GaussianDP(1.0), rng=0)
    with pytest.raises(ArgumentError, match="one or more"):
        combine([])
    with pytest.raises(ArgumentError, match="one or more"):
        combine([one, 3])
    with pytest.raises(NotAvailableError, match="variance"):
        combine([private_variance(np.zeros((100, 3)), FLAT, GaussianDP(1.0), rng=0)])
    with pytest.raises(ArgumentError, match="one manifold"):
        combine([one, private_mean(np.zeros((100, 6)), LINE, GaussianDP(1.0), rng=0)])
    person = private_mean(np.zeros((100, 3)), FLAT, GaussianDP(1.0), unit="person", rng=0)
    with pytest.raises(ArgumentError, match="unit must agree"):
        combine([one, person])


def test_books_are_compared(tmp_path):
    ledger = Ledger(tmp_path / "north.ledger")
    ledger.open_dataset("patients", GaussianDP(3.0))
    points = records(FLAT)

    def sites():
        first = Site("north", points[:50], ledger=ledger, dataset="patients")
        return [first, *(Site(name, points[:50]) for name in NAMES[1:])]

    release, again = run_study(study(), sites()), run_study(study(), sites())
    for each in (release, again):
        found = reconcile(each, "north", ledger)
        assert found.agrees
        assert (len(found.paid), found.unused) == (1, ())
    assert not reconcile(release, "east", ledger).agrees
    with pytest.raises(ArgumentError, match="several sites"):
        reconcile(private_mean(points, FLAT, GaussianDP(1.0), rng=0), "north", ledger)


def test_releases_of_the_same_records_are_not_combined():
    """What they promise together is their composition, and no more records are in it."""

    def released(names, mu, seed):
        wanted = study(n=100, sites=names, budget=GaussianDP(mu))
        return run_study(wanted, [Site(name, np.zeros((50, 3)), rng=seed) for name in names])

    one, again, other = (
        released(names, 0.5, seed) for names, seed in ((NAMES[:2], 0), (NAMES[1:3], 1), (NAMES[2:], 2))
    )
    for given in ([one, again], [one, one]):
        with pytest.raises(ArgumentError, match="different records"):
            combine(given)
    alone_ = private_mean(np.zeros((100, 3)), FLAT, GaussianDP(1.0), rng=0)
    with pytest.raises(ArgumentError, match="different records"):
        combine([alone_, alone_])
    both = combine([one, released(NAMES[2:], 2.0, 3)])
    assert both.guarantee.fits(both.budget)
    assert both.budget == GaussianDP(2.0)
    assert combine([one, other]).n == 200
