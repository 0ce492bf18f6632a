"""Pages and pictures of differences."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.show import difference_html
from tests.show.places import PLACES


def difference(name):
    space, center, radius = PLACES[name]
    rng = np.random.default_rng(0)
    away = 0.4 * radius * np.eye(space.dim)[0]
    x, y = (
        space.exp_coordinates(center, 0.1 * radius * rng.standard_normal((300, space.dim)) + at) for at in (0, away)
    )
    return dpm.private_difference(x, y, dpm.Ball(space, center, radius), dpm.GaussianDP(1.0), rng=0)


@pytest.mark.parametrize("name", PLACES)
def test_a_page_says_how_large_it_is_and_shows_it(name):
    made = difference(name)
    page = difference_html(made)
    assert f"{made.interval[0]:.4g} to {made.interval[1]:.4g}" in page
    assert "zero is outside of the region" in page
    assert "per record within group" in page
    assert "Not for real records" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    pytest.importorskip("matplotlib")
    assert "<svg" in page


def test_edges_of_the_picture_are_the_edge_of_the_region():
    from dpmanifolds.show.plots.difference import edge_of_difference

    made = difference("SPD")
    edge = edge_of_difference(made, 30)
    vectors = made.manifold.log_coordinates(made.first.value, edge)
    assert made.contains(made.vector + 0.999 * (vectors - made.vector)).all()
    assert not made.contains(made.vector + 1.001 * (vectors - made.vector)).any()


def test_other_things_are_refused():
    with pytest.raises(dpm.ArgumentError, match="Difference"):
        difference_html("difference")
    pytest.importorskip("matplotlib")
    from dpmanifolds.show.plots import plot_difference

    with pytest.raises(dpm.ArgumentError, match="Difference"):
        plot_difference(3)
