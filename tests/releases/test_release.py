"""The release itself: it differs from call to call, repeats with a seed, and comes back from JSON bit for bit."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import ApproxDP, ArgumentError, GaussianDP, PureDP, Release, RenyiDP, ZeroConcentratedDP
from dpmanifolds.data import DescriptorDomain
from tests.sums.cases import BALLS, BUDGETS

NUMBERS = [("wrapped-laplace", "rounded"), ("wrapped-laplace", "lattice")]


def records_in(ball, count=30):
    return ball.clip(ball.manifold.random_point(count, rng=0))


def leaves_of(value):
    return [leaf for part in value for leaf in leaves_of(part)] if isinstance(value, tuple) else [np.asarray(value)]


def bits_of(value):
    return [(leaf.dtype.str, leaf.shape, leaf.tobytes()) for leaf in leaves_of(value)]


def assert_comes_back(release):
    text = release.to_json()
    back = Release.from_json(text)
    assert back == release
    assert back.to_json() == text
    assert type(back.value) is type(release.value)
    assert bits_of(back.value) == bits_of(release.value)
    assert back.guarantee == release.guarantee
    assert back.domain.manifold == release.domain.manifold
    assert back.summary() == release.summary()
    assert repr(back) == repr(release)
    assert hash(back) == hash(release)


@pytest.mark.parametrize("where", BALLS)
def test_a_release_on_every_manifold_comes_back_bit_for_bit(where):
    ball = BALLS[where]
    for mechanism, numerics in NUMBERS:
        assert_comes_back(dpm.private_mean(records_in(ball), ball, PureDP(1.0), mechanism=mechanism, numerics=numerics))


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=repr)
def test_a_release_with_every_budget_comes_back(budget):
    ball = BALLS["sphere"]
    assert_comes_back(dpm.private_mean(records_in(ball), ball, budget))


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", ["riemannian-laplace", "riemannian-gaussian", "k-norm-gradient"])
def test_idealized_releases_come_back_and_say_what_they_are(name):
    ball = BALLS["sphere"]
    release = dpm.private_mean(records_in(ball), ball, GaussianDP(1.0), mechanism=name, numerics="idealized")
    assert_comes_back(release)
    assert release.numerics == "idealized"
    assert "real numbers" in release.summary()


def test_releases_built_on_others_come_back():
    ball = BALLS["spd"]
    release = dpm.private_mean(records_in(ball), ball, PureDP(1.0), refine=1)
    assert release.stages
    assert_comes_back(release)


@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
def test_numbers_and_descriptors_come_back():
    ball = BALLS["spd"]
    assert_comes_back(dpm.private_variance(records_in(ball), ball, PureDP(1.0)))
    domain = DescriptorDomain(1, 1e-2)
    images = np.random.default_rng(0).uniform(size=(20, 12, 12))
    from dpmanifolds.data import image_descriptors

    points = image_descriptors(images, eta=1e-2)
    assert_comes_back(dpm.private_mean(points, domain, ApproxDP(1.0, 1e-6)))


@pytest.mark.parametrize("where", BALLS)
def test_two_identical_calls_differ(where):
    ball, budget = BALLS[where], ZeroConcentratedDP(0.5)
    one, other = (dpm.private_mean(records_in(ball), ball, budget) for _ in range(2))
    assert bits_of(one.coordinates) != bits_of(other.coordinates)
    assert one != other
    assert not one.reproducible


@pytest.mark.grid
@pytest.mark.parametrize(("mechanism", "numerics"), NUMBERS)
@pytest.mark.parametrize("where", BALLS)
def test_the_same_seed_repeats_the_release_and_marks_it(mechanism, numerics, where):
    ball = BALLS[where]
    kind = {"mechanism": mechanism, "numerics": numerics, "rng": 11}
    one, other = (dpm.private_mean(records_in(ball), ball, PureDP(1.0), **kind) for _ in range(2))
    assert one == other
    assert bits_of(one.value) == bits_of(other.value)
    assert one.reproducible
    assert "reproducible" in repr(one)
    assert "NOT FOR REAL RECORDS" in one.summary()


def test_a_release_holds_no_trace_of_the_records():
    """The un-noised mean, in any of its numbers, does not occur in what is written down."""
    ball = BALLS["spd"]
    records = records_in(ball)
    release = dpm.private_mean(records, ball, RenyiDP(4.0, 0.5))
    mean = dpm.frechet_mean(ball.manifold, records).point
    text = release.to_json()
    for number in (*mean.ravel(), *records.ravel()):
        assert repr(float(number)) not in text


@pytest.mark.parametrize("schema", [1, 2])
def test_a_release_of_an_older_schema_called_sigma_scale(schema):
    ball = BALLS["sphere"]
    release = dpm.private_mean(records_in(ball), ball, PureDP(1.0), steps=2)
    older = json.loads(release.to_json())
    for written in (older, *older["stages"]):
        written.update(schema=schema, scale=written.pop("sigma"))
    assert Release.from_json(json.dumps(older)) == release
    older["sigma"] = older.pop("scale")
    with pytest.raises(ArgumentError, match="scale"):
        Release.from_json(json.dumps(older))


@pytest.mark.parametrize("text", ["", "[]", "null", "3", '{"schema": 1}', "{" * 2000, b"\xff"])
def test_anything_else_is_refused(text):
    with pytest.raises(ArgumentError):
        Release.from_json(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", 99),
        ("value", {"point": {"dtype": "object", "values": []}}),
        ("budget", {"kind": "os.system"}),
        ("domain", {"kind": "elsewhere"}),
        ("sigma", "x"),
        ("statistic", 3),
        ("guarantee", {}),
    ],
)
def test_fields_that_were_changed_are_refused(field, value):
    ball = BALLS["sphere"]
    data = json.loads(dpm.private_mean(records_in(ball), ball, PureDP(1.0)).to_json())
    data[field] = value
    with pytest.raises((ArgumentError, ValueError)):
        Release.from_json(json.dumps(data))
