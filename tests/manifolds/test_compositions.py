"""Compositions on the sphere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dpmanifolds import Ball, Sphere
from dpmanifolds.errors import ArgumentError, NotOnManifoldError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@settings(max_examples=100, deadline=None)
@given(arrays(float, array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=6), elements=st.floats(0, 1e300)))
def test_proportions_come_back_and_points_lie_in_the_public_ball(parts):
    parts[..., 0] += 1e-300
    sphere = Sphere(parts.shape[-1] - 1)
    points = sphere.from_compositions(parts)
    assert np.all(sphere.belongs(points, 1e-14))
    assert np.all(points >= 0)
    assert np.all(Ball.positive_orthant(sphere).contains(points))
    scaled = parts / parts.max(axis=-1, keepdims=True)
    proportions = scaled / scaled.sum(axis=-1, keepdims=True)
    assert np.allclose(sphere.to_compositions(points), proportions, rtol=1e-13, atol=1e-15)


def test_the_distance_is_half_of_fisher_rao():
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4, 0.0])
    fisher_rao = 2 * np.arccos(np.sum(np.sqrt(p * q)))
    assert 2 * Sphere(2).dist(*Sphere(2).from_compositions([p, q])) == pytest.approx(fisher_rao)


def test_library_and_precision_are_kept(backend):
    counts = np.random.default_rng(0).uniform(size=(4, 5)).astype(np.float32)
    points = Sphere(4).from_compositions(backend.array(counts))
    assert backend.numpy(points).dtype == np.float32
    assert np.allclose(backend.numpy(points), Sphere(4).from_compositions(counts.astype(float)), atol=1e-6)
    assert np.allclose(backend.numpy(Sphere(4).to_compositions(points)).sum(axis=-1), 1, atol=1e-6)


def test_counts_as_integers_and_empty_tables_are_taken():
    assert np.allclose(Sphere(2).from_compositions(np.array([[9, 0, 16]])), [[0.6, 0.0, 0.8]])
    assert Sphere(3).from_compositions(np.zeros((0, 4))).shape == (0, 4)


def test_rows_that_are_no_compositions_are_refused_without_naming_them():
    for bad in (-1.0, np.nan, np.inf):
        rows = np.ones((7, 3))
        rows[4, 1] = bad
        with pytest.raises(NotOnManifoldError) as refusal:
            Sphere(2).from_compositions(rows)
        assert not any(character.isdigit() for character in str(refusal.value))
    rows = np.ones((7, 3))
    rows[4] = 0
    with pytest.raises(NotOnManifoldError, match="zeros"):
        Sphere(2).from_compositions(rows)
    for shape in ((), (5, 1)):
        with pytest.raises(ArgumentError, match="real numbers of shape"):
            Sphere(2).from_compositions(np.ones(shape))
    with pytest.raises(ArgumentError, match="numbers"):
        Sphere(1).from_compositions(["a", "b"])
    for point in (np.zeros(3), np.full(3, np.nan)):
        with pytest.raises(NotOnManifoldError, match="positive length"):
            Sphere(2).to_compositions(point)


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not on this machine")
@pytest.mark.parametrize("name", ["crohn", "hiv"])
def test_microbiomes_lie_in_the_public_ball(name):
    with np.load(DATA / "sphere" / f"compositional_{name}_microbiome.npz") as arrays_:
        counts = next(arrays_[key] for key in arrays_.files if arrays_[key].ndim == 2)
    sphere = Sphere(counts.shape[1] - 1)
    assert np.all(Ball.positive_orthant(sphere).contains(sphere.from_compositions(counts)))


def test_other_curvatures_only_scale_the_points():
    parts = np.array([[1.0, 0.0, 3.0]])
    wide = Sphere(2, curvature=0.25)
    assert np.allclose(wide.from_compositions(parts), 2 * Sphere(2).from_compositions(parts))
    assert np.allclose(wide.to_compositions(wide.from_compositions(parts)), parts / 4)
