"""Smooth maps: the cosine transform as oracle, details that stay, and a release at the size of an image."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.fft import dctn

import dpmanifolds as dpm
from dpmanifolds.manifolds import manifold_from_json

TENSORS = dpm.SPD(2, "log-euclidean")
SPACE = dpm.SmoothMaps(TENSORS, (4, 6, 5), 3)


def rough_maps(count, rng, size=0.3):
    return TENSORS.inverse_chart(size * rng.standard_normal((count, 4, 6, 5, 3)))


def test_coordinates_are_the_low_frequencies_of_the_cosine_transform():
    maps = rough_maps(7, np.random.default_rng(0))
    expected = dctn(TENSORS.chart(maps), axes=(1, 2, 3), norm="ortho")[:, :3, :3, :3]
    assert np.allclose(SPACE.chart(maps), expected.reshape(7, -1), atol=1e-13)
    center = maps[0]
    assert np.allclose(SPACE.log_coordinates(center, maps), (expected - expected[:1]).reshape(7, -1), atol=1e-13)


def test_with_all_frequencies_it_is_the_power():
    space, power = dpm.SmoothMaps(TENSORS, (2, 3), 9), dpm.Power(TENSORS, 6)
    a, b = power.random_point(2, rng=0)
    assert space.dim == power.dim
    grid = (2, 3, 2, 2)
    assert float(space.dist(a.reshape(grid), b.reshape(grid))) == pytest.approx(float(power.dist(a, b)))


def test_distance_is_that_to_the_nearest_map_up_to_rough_ones():
    a, b = rough_maps(2, np.random.default_rng(1))
    moved = SPACE.exp(a, SPACE.log(a, b))
    power = np.linalg.norm(TENSORS.dist(a, moved))
    assert float(SPACE.dist(a, b)) == pytest.approx(power)
    assert float(SPACE.dist(moved, b)) < 1e-12


def test_steps_leave_the_details_of_their_base():
    rng = np.random.default_rng(2)
    base = rough_maps(1, rng)[0]
    there = SPACE.exp_coordinates(base, rng.standard_normal(SPACE.dim))
    change = dctn(TENSORS.chart(there) - TENSORS.chart(base), axes=(0, 1, 2), norm="ortho")
    change[:3, :3, :3] = 0
    assert np.max(np.abs(change)) < 1e-12


@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
def test_a_malformed_voxel_is_told():
    rng = np.random.default_rng(3)
    maps = rough_maps(20, rng)
    ball = dpm.Ball(SPACE, SPACE.natural_center, 5.0)
    maps[3, 1, 2, 3] = -np.eye(2)
    with pytest.raises(dpm.NotOnManifoldError, match="positive definite"):
        dpm.private_mean(maps, ball, dpm.PureDP(1.0))
    assert bool(SPACE.belongs(dpm.private_mean(maps, ball, dpm.PureDP(1.0), on_invalid="center").value))


def test_bad_arguments_are_refused():
    for wrong in ((dpm.SPD(2), (3, 3), 2), (TENSORS, (), 2), (TENSORS, 5, 2), (TENSORS, (3, 0), 2), (TENSORS, (3,), 0)):
        with pytest.raises(dpm.ArgumentError):
            dpm.SmoothMaps(*wrong)


def test_json_and_words():
    assert manifold_from_json(json.loads(json.dumps(SPACE.to_json()))) == SPACE
    assert SPACE.words == "smooth maps of 4×6×5 positive definite 2×2 matrices (log-euclidean metric)"
    ball = dpm.Ball(SPACE, SPACE.natural_center, 5.0)
    release = dpm.private_mean(rough_maps(30, np.random.default_rng(4)), ball, dpm.GaussianDP(1.0), rng=0)
    assert dpm.Release.from_json(release.to_json()) == release


def test_a_map_of_many_voxels_is_better_than_its_template():
    """A smooth change of 0.2 in each of 1,728 voxels, 200 people with noise of 0.2 in every voxel, μ = 1."""
    line, side = dpm.Euclidean(1), 12
    space = dpm.SmoothMaps(line, (side,) * 3, 3)
    rng = np.random.default_rng(5)
    template = rng.standard_normal((side, side, side, 1))
    waves = np.cos(np.pi * (np.arange(side) + 0.5) / side)
    change = 0.2 * np.sqrt(2) * waves[:, None, None, None] + np.zeros_like(template)
    people = template + change + 0.2 * rng.standard_normal((200, side, side, side, 1))
    radius = 0.3 * np.sqrt(side**3)
    errors = {}
    for name, where in (("smooth", space), ("all", dpm.Power(line, side**3))):
        shape = where.point_shape
        ball = dpm.Ball(where, template.reshape(shape), radius)
        release = dpm.private_mean(people.reshape(-1, *shape), ball, dpm.GaussianDP(1.0), rng=0)
        gap = release.value.reshape(template.shape) - (template + change)
        errors[name] = np.sqrt(np.mean(gap**2))
    assert errors["smooth"] < 0.03
    assert errors["all"] > 0.1
