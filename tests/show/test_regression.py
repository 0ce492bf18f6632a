"""Pages and pictures of regressions."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.show import regression_html
from tests.show.places import PLACES


def regress(name, n=400, **options):
    """Records that move along the first axis with their age, and not with their dose."""
    space, center, radius = PLACES[name]
    rng = np.random.default_rng(0)
    table = rng.uniform([20, 0], [80, 5], (n, 2))
    ahead = 0.1 * radius * rng.standard_normal((n, space.dim))
    ahead[:, 0] += 0.4 * radius * (table[:, 0] - 50) / 30
    options = {"covariate_bounds": [(20, 80), (0, 5)], "rng": 0, **options}
    points = space.exp_coordinates(center, ahead)
    return dpm.private_geodesic_regression(points, table, dpm.Ball(space, center, radius), dpm.GaussianDP(2), **options)


@pytest.mark.parametrize("name", PLACES)
def test_a_page_says_what_changes_and_shows_it(name):
    fit = regress(name)
    page = regression_html(fit, ["age", "dose <mg>"])
    assert fit.slope_region().excludes_zero.tolist() == [True, False]
    assert page.count("confidence: zero lies outside") == 1
    assert page.count("confidence: zero lies inside") == 1
    assert "change with age and dose &lt;mg&gt;" in page
    assert "Not for real records" in page
    assert "Do not rely on regions" not in page
    assert "http" not in page.replace("http://www.w3.org", "")
    pytest.importorskip("matplotlib")
    assert page.count("<svg") == 2


def test_a_region_that_is_not_to_be_relied_on_is_told_first():
    page = regression_html(regress("plane", 50))
    assert page.index("Do not rely on regions") < page.index("class='cards'")
    assert "change with covariate 1 and covariate 2" in page


def test_the_picture_goes_from_the_lowest_to_the_highest_covariate():
    pytest.importorskip("matplotlib")
    from dpmanifolds.show.plots import plot_regression

    moved = [plot_regression(regress("plane"), covariate=number).lines[1].get_ydata() for number in (0, 1)]
    assert moved[0] == pytest.approx([1.6, 0.0], abs=0.1)
    assert moved[1] == pytest.approx([0.0, 0.0], abs=0.1)


def test_other_things_are_refused():
    with pytest.raises(dpm.ArgumentError, match="GeodesicRegression"):
        regression_html("fit")
    with pytest.raises(dpm.ArgumentError, match="names must be 2"):
        regression_html(regress("plane"), ["age"])
    pytest.importorskip("matplotlib")
    from dpmanifolds.show.plots import plot_regression

    with pytest.raises(dpm.ArgumentError, match="GeodesicRegression"):
        plot_regression(3)
    with pytest.raises(dpm.ArgumentError, match="covariate must be a number from 0 to 1"):
        plot_regression(regress("plane"), covariate=2)
