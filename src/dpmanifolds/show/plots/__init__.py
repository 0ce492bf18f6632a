"""Pictures of promises, plans and releases. Needs matplotlib: pip install "dpmanifolds[plot]".

Every function takes `ax=None` (matplotlib axes, or None for new ones) and returns the axes. They draw what they are
given: to draw private records is to show them. `plot_release` draws a release, which may be shown.
"""

from dpmanifolds.show.plots.difference import plot_difference
from dpmanifolds.show.plots.points import plot_poincare, plot_shape, plot_spd, plot_sphere
from dpmanifolds.show.plots.privacy import plot_error_vs_epsilon, plot_profile, plot_tradeoff
from dpmanifolds.show.plots.regression import plot_regression
from dpmanifolds.show.plots.release import plot_release

__all__ = [
    "plot_difference",
    "plot_error_vs_epsilon",
    "plot_poincare",
    "plot_profile",
    "plot_regression",
    "plot_release",
    "plot_shape",
    "plot_spd",
    "plot_sphere",
    "plot_tradeoff",
]
