"""Pictures: each returns the axes it drew on, and shows what it says."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpmanifolds as dpm
from dpmanifolds.show.plots import (
    plot_error_vs_epsilon,
    plot_poincare,
    plot_profile,
    plot_release,
    plot_shape,
    plot_spd,
    plot_sphere,
    plot_tradeoff,
)
from dpmanifolds.show.plots._axes import NOISE, VALUE
from dpmanifolds.show.plots.release import caption_of, edge_of, reach_of
from tests.show.examples import NAMES, example

NORTH = np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize("name", NAMES)
def test_every_release_has_a_picture_on_the_axes_given_and_a_caption_that_promises_what_is_drawn(name):
    figure = Figure()
    ax = figure.add_subplot()
    assert plot_release(example(name), ax=ax) is ax
    assert ax.has_data()
    drawn = any(NOISE in _hex(artist) for artist in (*ax.lines, *ax.patches, *ax.collections))
    assert drawn == ("Orange" in caption_of(example(name)))
    assert "released" in caption_of(example(name))


@pytest.mark.parametrize(
    ("budgets", "caption", "scale"),
    [
        ([dpm.PureDP(0.5), dpm.PureDP(1.0)], "ε", "log"),
        ([dpm.PureDP(1.0), dpm.ApproxDP(1.0, 1e-6), dpm.GaussianDP(0.5)], "budget", "linear"),
    ],
)
def test_pictures_of_plans_have_a_line_per_mechanism(budgets, caption, scale):
    table = dpm.plan(dpm.Ball(dpm.Sphere(2), NORTH, np.pi / 8), 300, budgets)
    ax = plot_error_vs_epsilon(table, ax=Figure().add_subplot())
    lines = [line for line in ax.lines if line.get_label() != "radius of the domain"]
    assert len(lines) == len({(row.mechanism, row.numerics) for row in table.rows if row.available})
    assert (ax.get_xlabel(), ax.get_xscale(), ax.get_yscale()) == (caption, scale, "log")


def test_without_axes_there_is_a_new_figure():
    before = set(plt.get_fignums())
    assert isinstance(plot_release(example("sphere2")), Axes)
    assert len(set(plt.get_fignums()) - before) == 1


def _hex(artist) -> str:
    from matplotlib.colors import to_hex

    color = artist.get_facecolor() if hasattr(artist, "get_facecolor") else artist.get_color()
    edge = artist.get_edgecolor() if hasattr(artist, "get_edgecolor") else color
    rows = [np.atleast_2d(each)[0] if not isinstance(each, str) else each for each in (color, edge) if len(each)]
    return " ".join(to_hex(row) for row in rows)


@pytest.mark.parametrize("name", ["spd2", "sphere2", "hyperbolic2", "shapes", "euclidean2"])
def test_the_edge_of_a_region_has_the_radius_of_the_region_where_the_domain_does_not_cut_it(name):
    region = dpm.confidence_region(example(name), 0.9)
    edge = edge_of(region, 40)
    inside = region.release.manifold.dist(region.release.domain.center, edge) < region.release.domain.radius * 0.999
    # a hair inside and a hair outside of the edge
    smaller = dpm.ConfidenceRegion(region.release, region.radius * 0.99, region.metric, 0.9, "")
    larger = dpm.ConfidenceRegion(region.release, region.radius * 1.01, region.metric, 0.9, "")
    assert inside.any()
    assert larger.contains(edge[inside]).all()
    assert not smaller.contains(edge[inside]).any()


def test_an_ellipse_reaches_the_root_of_the_largest_eigenvalue():
    ax = plot_spd(np.diag([4.0, 1.0]))
    x, y = next(line for line in ax.lines if line.get_linewidth() > 2).get_data()
    assert np.max(np.abs(x)) == pytest.approx(2.0, rel=1e-3)
    assert np.max(np.abs(y)) == pytest.approx(1.0, rel=1e-3)


def test_a_ball_looks_round_from_anywhere_and_an_ellipsoid_is_as_wide_as_its_shadow():
    x, y = next(line for line in plot_spd(np.eye(3)).lines if line.get_linewidth() > 2).get_data()
    np.testing.assert_allclose(np.hypot(x, y), 1.0, rtol=1e-12)
    lines = plot_spd(np.diag([4.0, 1.0, 0.25])).lines
    outline = next(line for line in lines if line.get_linewidth() > 2)
    for line in lines:
        if line.get_alpha() is not None:
            assert np.max(np.abs(line.get_xdata())) <= np.max(np.abs(outline.get_xdata())) * 1.01


def test_landmarks_lie_within_their_circles_for_every_shape_of_the_region():
    release = example("shapes")
    space, region = release.manifold, dpm.confidence_region(release, 0.9)
    ax = plot_release(release)
    radius = ax.patches[0].get_radius()
    middle = space.align(release.domain.center, release.value)
    others = space.align(middle, edge_of(region, 500))
    assert np.max(np.abs(others - middle)) <= radius


def test_points_behind_the_sphere_are_faint():
    ax = plot_sphere(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]), cap=dpm.Ball(dpm.Sphere(2), NORTH, 0.3))
    faint, strong = (line for line in ax.lines if line.get_marker() == "o")
    assert len(faint.get_xdata()) == len(strong.get_xdata()) == 1
    assert faint.get_alpha() < 0.5


def test_points_of_the_disc_are_where_poincare_puts_them():
    plane = dpm.Hyperbolic(2)
    points = plane.random_point(4, rng=0)
    ax = plot_poincare(points)
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_allclose(np.stack(dots.get_data(), axis=1), plane.to_poincare(points))


def test_a_tradeoff_curve_lies_below_guessing_and_a_second_one_has_another_colour():
    ax = plot_tradeoff(dpm.Guarantee.gaussian(1.0), label="one")
    plot_tradeoff(dpm.Guarantee.pure(1.0), label="two", ax=ax)
    curves = [line for line in ax.lines if line.get_linestyle() == "-"]
    assert [line.get_label() for line in curves] == ["one", "two"]
    assert curves[0].get_color() == VALUE != curves[1].get_color()
    for line in curves:
        assert np.all(line.get_ydata() <= 1 - line.get_xdata() + 1e-12)
    assert sum(line.get_label() == "guessing" for line in ax.lines) == 1


def test_a_profile_shows_the_deltas_of_the_guarantee():
    promise = dpm.Guarantee.gaussian(0.7)
    ax = plot_profile(promise, epsilons=[0.0, 1.0, 2.0])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), promise.delta(np.array([0.0, 1.0, 2.0])))


def test_error_falls_with_epsilon_and_a_plan_gives_the_same_picture():
    from dpmanifolds.planning import plan

    ball = dpm.Ball(dpm.SPD(2), np.eye(2), 1.0)
    ax = plot_error_vs_epsilon(ball, 200, epsilons=[0.5, 1.0, 2.0])
    again = plot_error_vs_epsilon(plan(ball, 200, [dpm.PureDP(e) for e in (0.5, 1.0, 2.0)]))
    curve = ax.lines[0].get_ydata()
    assert np.all(np.diff(curve) < 0)
    np.testing.assert_array_equal(curve, again.lines[0].get_ydata())


def test_lines_are_of_one_width_and_numerics_differ_in_their_dashes():
    ax = plot_error_vs_epsilon(dpm.Ball(dpm.SPD(2), np.eye(2), 1.0), 200, epsilons=[0.5, 2.0], delta=1e-6)
    lines = {line.get_label(): line for line in ax.lines if line.get_marker() != "None"}
    assert len({line.get_linewidth() for line in lines.values()}) == 1
    rounded, lattice = lines["wrapped-laplace (rounded)"], lines["wrapped-laplace (lattice)"]
    assert rounded.get_color() == lattice.get_color() != lines["wrapped-gaussian (rounded)"].get_color()
    assert rounded.get_linestyle() != lattice.get_linestyle()


def test_one_budget_is_shown_as_bars_with_the_best_on_top():
    ball = dpm.Ball(dpm.SPD(2), np.eye(2), 1.0)
    found = dpm.plan(ball, 200, dpm.PureDP(1.0))
    bars = plot_error_vs_epsilon(found).patches
    assert [bar.get_width() for bar in bars] == sorted((bar.get_width() for bar in bars), reverse=True)
    assert bars[-1].get_width() == found.best().error.mean


def test_a_second_profile_is_not_cut_off_where_the_first_one_ends():
    ax = plot_profile(dpm.Guarantee.pure(1.0))
    plot_profile(dpm.Guarantee.gaussian(1.0), ax=ax)
    assert ax.get_xlim()[1] >= dpm.Guarantee.gaussian(1.0).epsilon(1e-10)


def test_round_tensors_are_grey_and_needles_have_the_colour_of_their_direction():
    ax = plot_spd(np.stack([np.eye(3), np.diag([1.0, 1e-4, 1e-4])]))
    ball, needle = ax.collections[0].get_facecolors()[:, :3]
    assert np.ptp(ball) < 1e-9
    assert needle[0] > 5 * needle[1]


def test_a_large_field_of_tensors_shows_a_selection_and_says_so():
    ax = plot_spd(dpm.SPD(3).random_point(900, rng=0))
    assert ax.get_title() == "400 of 900 matrices"


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (lambda: plot_tradeoff(1.0), "guarantee must be a Guarantee"),
        (lambda: plot_error_vs_epsilon(dpm.Ball(dpm.SPD(2), np.eye(2), 1.0)), "n must be given"),
        (lambda: plot_error_vs_epsilon(3), "planned must be a Plan"),
        (lambda: plot_spd(np.ones((2, 3))), "shape"),
        (lambda: plot_spd(np.ones((2, 5, 5))), "one matrix at a time"),
        (lambda: plot_sphere(np.ones(4)), "points must have the shape"),
        (lambda: plot_poincare(np.ones(4)), "Hyperbolic"),
        (lambda: plot_shape(np.ones((4, 2)) * np.arange(4)[:, None], links="dotted"), "links must be one of"),
        (lambda: plot_release("mean"), "release must be a Release"),
        (lambda: plot_spd(np.eye(2), ax=3), "ax must be matplotlib axes"),
    ],
    ids=["guarantee", "n", "plan", "matrix", "field", "sphere", "disc", "links", "release", "axes"],
)
def test_wrong_arguments_are_told(draw, told):
    with pytest.raises(dpm.ArgumentError, match=told):
        draw()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(dpm.NotAvailableError, match=r'pip install "dpmanifolds\[plot\]"'):
        plot_spd(np.eye(2))


@pytest.mark.parametrize("name", ["spd2", "shapes", "euclidean5", "variance"])
@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
def test_the_reach_around_the_value_holds_the_region_also_where_noise_left_the_domain(name):
    """With a small budget the draw lies far outside of the ball, and the value on its edge or inside."""
    ball = example(name).domain
    points = ball.clip(ball.manifold.random_point(20, rng=0))
    make = dpm.private_variance if name == "variance" else dpm.private_mean
    release = make(points, ball, dpm.PureDP(0.05), rng=3)
    region = dpm.confidence_region(release, 0.9)
    reach = reach_of(region)
    assert reach >= region.radius
    if name == "variance":
        inside = np.linspace(0, ball.radius**2, 200)
        inside = inside[region.contains(inside)]
        assert np.all(np.abs(inside - release.value) <= reach)
    else:
        inside = ball.clip(ball.manifold.random_point(500, rng=1))
        inside = inside[region.contains(inside)]
        assert np.all(ball.manifold.dist(release.value, inside) <= reach * (1 + edge_stretch(ball)))


def edge_stretch(ball) -> float:
    """How much longer distances are than coordinates, where the curvature is negative."""
    lower = ball.manifold.curvature_bounds[0]
    if lower >= 0:
        return 1e-9
    reach = np.sqrt(-lower) * ball.radius
    return np.sinh(reach) / reach - 1
