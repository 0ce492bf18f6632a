"""Every wrong argument gives one clear error before anything is drawn or spent; every usable form works."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import SPD, Ball, Euclidean, PureDP, Sphere
from dpmanifolds.releases.discriminant import private_discriminant
from dpmanifolds.sums.wrapped import WrappedLaplaceMechanism

SPACE = SPD(3)
BALL = Ball(SPACE, np.eye(3), 2.0)
X = SPACE.random_point(40, rng=0)


class Spy:
    """Stands in for a ledger: remembers what was charged."""

    def __init__(self):
        self.charged = []

    def spend(self, dataset, guarantee, **rest):
        self.charged.append((dataset, guarantee, rest))


@pytest.fixture
def nothing_is_drawn(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(WrappedLaplaceMechanism, "release", refuse)


def with_entry(value):
    records = X.copy()
    records[7, 1, 1] = value
    return records


BAD_POINTS = {
    "nan": (with_entry(np.nan), "finite"),
    "infinite": (with_entry(np.inf), "finite"),
    "empty": (np.empty((0, 3, 3)), "empty"),
    "wrong shape": (np.ones((40, 2, 2)), "shape"),
    "one axis too many": (X[None], "leading axis"),
    "a single point": (X[0], "leading axis"),
    "not symmetric": (X + np.triu(np.ones((3, 3)), 1), "symmetric"),
    "negative": (-X, "positive|lie on"),
    "singular": (np.zeros((40, 3, 3)), "positive|lie on"),
    "a generator": ((x for x in X), "array"),
    "strings": (["a", "b"], "finite"),
    "ragged": ([[1.0], [1.0, 2.0]], "finite"),
    "objects": (np.array([object()] * 3), "finite"),
    "none": (None, "array"),
}


@pytest.mark.parametrize("case", BAD_POINTS)
@pytest.mark.usefixtures("nothing_is_drawn")
@pytest.mark.parametrize("entry", [dpm.private_mean, dpm.private_variance])
def test_malformed_records_are_refused_before_anything_is_drawn_or_spent(case, entry, monkeypatch):
    points, message = BAD_POINTS[case]
    spy = Spy()
    monkeypatch.setattr("dpmanifolds.ledger.as_ledger", lambda given: given)
    with pytest.raises(dpm.DPManifoldsError, match=message) as caught:
        entry(points, BALL, PureDP(1.0), ledger=spy, dataset="people")
    assert spy.charged == []
    assert "7" not in str(caught.value).replace("SPD(3", "")


@pytest.mark.usefixtures("nothing_is_drawn")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": "everywhere"}, "domain must be"),
        ({"domain": SPACE}, "domain must be"),
        ({"budget": 1.0}, "budget must be"),
        ({"budget": None}, "budget must be"),
        ({"mechanism": "laplace"}, "mechanism must be one of"),
        ({"mechanism": "riemannian-laplace"}, "numerics='idealized'"),
        ({"numerics": "float"}, "numerics must be one of"),
        ({"refine": -1}, "refine"),
        ({"refine": 0.5}, "refine"),
        ({"refine": 1, "numerics": "idealized"}, "idealized"),
        ({"group_by": [1, 2]}, "group_by"),
        ({"on_invalid": "drop"}, "on_invalid"),
        ({"ledger": "file.sqlite"}, "dataset"),
        ({"dataset": "people"}, "ledger"),
        ({"ledger": "file.sqlite", "dataset": "people", "rng": 0}, "reproducible"),
        ({"rng": "seed"}, "rng must be"),
        ({"rng": -1}, "rng must be"),
        ({"mechanism": "wrapped-gaussian"}, "Gaussian noise"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    given = {"domain": BALL, "budget": PureDP(1.0), **arguments}
    with pytest.raises(dpm.DPManifoldsError, match=message):
        dpm.private_mean(X, given.pop("domain"), given.pop("budget"), **given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PureDP(0.0), "above 0"),
        (lambda: PureDP(-1.0), "above 0"),
        (lambda: PureDP(np.nan), "finite"),
        (lambda: PureDP(1e9), "promises nothing"),
        (lambda: dpm.ApproxDP(1.0, 0.0), "delta"),
        (lambda: dpm.ApproxDP(1.0, 1.0), "delta"),
        (lambda: dpm.ApproxDP(1.0, -1e-6), "delta"),
        (lambda: Ball(Sphere(2), [0.0, 0.0, 1.0], 3.2), "radius must be below"),
        (lambda: Ball(SPACE, np.zeros((3, 3)), 1.0), "center"),
        (lambda: Ball(SPACE, np.eye(3), -1.0), "above 0"),
    ],
)
def test_impossible_budgets_and_balls_are_refused(make, message):
    with pytest.raises(dpm.DPManifoldsError, match=message):
        make()


def test_a_ball_too_wide_for_a_solver_is_no_obstacle_to_sums():
    wide = Ball(SPACE, np.eye(3), 12.0)
    with pytest.raises(dpm.NotAvailableError, match="tolerance"):
        dpm.private_mean(X, wide, PureDP(1.0), mechanism="direct")
    assert dpm.private_mean(X, wide, PureDP(1.0)).value.shape == (3, 3)


@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
def test_one_record_works_and_promises_what_it_says():
    release = dpm.private_mean(X[:1], BALL, PureDP(1.0))
    assert release.n == 1
    assert float(release.sensitivity) == pytest.approx(2 * BALL.radius, rel=1e-6)
    assert bool(BALL.contains(release.value))


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x.astype(np.float32),
        np.asfortranarray,
        lambda x: x[::-1],
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: x.tolist(),
        lambda x: (x.setflags(write=False), x)[1],
    ],
    ids=["float32", "fortran order", "reversed", "strided", "nested lists", "read-only"],
)
def test_other_forms_of_the_same_records_give_the_same_release(form):
    exact = dpm.private_mean(X, BALL, PureDP(1.0), rng=3)
    other = dpm.private_mean(form(X.copy()), BALL, PureDP(1.0), rng=3)
    assert float(SPACE.dist(exact.value, other.value)) < 1e-4
    assert float(other.sensitivity) >= float(exact.sensitivity) * (1 - 1e-12)


def test_records_are_not_changed():
    before = X.copy()
    dpm.private_mean(X, Ball(SPACE, np.eye(3), 0.1), PureDP(1.0), refine=1)
    assert np.array_equal(X, before)


@pytest.mark.parametrize("space", [SPACE, Sphere(2), Euclidean(2), dpm.PlanarShapes(4), dpm.Product(Sphere(2), SPD(2))])
def test_malformed_records_become_the_centre_when_asked(space):
    center = space.random_point(rng=5)
    ball = Ball(space, center, 0.5)
    records = space.random_point(30, rng=1)

    def spoiled(part, value):
        copy = part.copy()
        copy[3] = value
        return copy

    def at_center(part, middle):
        return spoiled(part, middle)

    parts, centers = (records, center) if isinstance(records, tuple) else ((records,), (center,))
    broken = tuple(spoiled(part, np.nan) for part in parts)
    mended = tuple(at_center(part, middle) for part, middle in zip(parts, centers, strict=True))
    if not isinstance(records, tuple):
        broken, mended = broken[0], mended[0]
    with pytest.raises(dpm.NotOnManifoldError):
        dpm.private_mean(broken, ball, PureDP(1.0))
    first = dpm.private_mean(broken, ball, PureDP(1.0), on_invalid="center", rng=2)
    second = dpm.private_mean(mended, ball, PureDP(1.0), rng=2)
    assert first == second


def test_a_value_off_the_domain_is_projected_where_that_is_safe_and_refused_elsewhere():
    inside = dpm.privatize(10 * np.eye(3), Ball(SPACE, np.eye(3), 1.0), 0.01, PureDP(1.0))
    assert bool(inside.domain.contains(inside.value))
    cap = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.5)
    with pytest.raises(dpm.NotOnManifoldError, match="must lie in the domain"):
        dpm.privatize(np.array([1.0, 0.0, 0.0]), cap, 0.01, PureDP(1.0))
    for wrong in (0.0, -1.0, np.inf, np.nan, "much"):
        with pytest.raises(dpm.ArgumentError, match=r"sensitivity|value"):
            dpm.privatize(np.eye(3), BALL, wrong, PureDP(1.0))


def test_labels_are_checked():
    labels = np.repeat([0, 1], 20)
    with pytest.raises(dpm.ArgumentError, match="one entry per record"):
        dpm.private_class_means(X, labels[:3], BALL, PureDP(1.0))
    with pytest.raises(dpm.ArgumentError, match="needs classes"):
        dpm.private_class_means(X, labels, BALL, PureDP(1.0), private_labels=True)
    with pytest.raises(dpm.ArgumentError, match="each label once"):
        dpm.private_class_means(X, labels, BALL, PureDP(1.0), classes=[0, 0, 1])
    with pytest.raises(dpm.ArgumentError, match="must be one of classes"):
        dpm.private_class_means(X, labels, BALL, PureDP(1.0), classes=[0])
    with pytest.raises(dpm.ArgumentError, match="must have a record"):
        dpm.private_class_means(X, labels, BALL, PureDP(1.0), classes=[0, 1, 2])


@pytest.mark.usefixtures("nothing_is_drawn")
@pytest.mark.parametrize(
    "domain",
    [dpm.WholeSpace(SPACE, np.eye(3)), dpm.Ellipsoid(SPACE, np.eye(3), np.ones(6))],
    ids=["all of a space", "an ellipsoid"],
)
@pytest.mark.parametrize(
    "entry",
    [
        lambda domain: dpm.private_variance(X, domain, PureDP(1.0)),
        lambda domain: dpm.private_median(X, domain, PureDP(1.0)),
        lambda domain: dpm.private_mean(X, domain, PureDP(1.0), refine="axes"),
        lambda domain: dpm.private_mean(X, domain, PureDP(1.0), refine=1),
        lambda domain: dpm.private_covariance(X.reshape(len(X), -1), domain, PureDP(1.0)),
        lambda domain: private_discriminant(X, np.arange(len(X)) % 2, domain, PureDP(1.0), classes=(0, 1)),
    ],
    ids=["variance", "median", "axes", "refined", "covariance", "discriminant"],
)
def test_what_needs_a_ball_says_so(entry, domain):
    with pytest.raises(dpm.ArgumentError, match="Ball"):
        entry(domain)
