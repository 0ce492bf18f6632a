"""What a promise says, and what it costs, as curves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.planning import Plan, plan
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.privacy.budget import budget_of
from dpmanifolds.show.plots._axes import DOMAIN, NOISE, VALUE, axes

_COLORS = (VALUE, NOISE, "#5b8c3a", "#8456a8", "#b3476b")
_LINES = {"rounded": "-", "lattice": "--", "idealized": ":"}
_MARKERS = ("o", "s", "^", "D", "v")
_SMALLEST_DELTA = 1e-10
_EPSILONS = tuple(np.geomspace(0.1, 10.0, 13).tolist())


def _checked(guarantee: Any) -> Guarantee:
    if not isinstance(guarantee, Guarantee):
        raise ArgumentError(f"guarantee must be a Guarantee, such as release.guarantee; got {guarantee!r}.")
    return guarantee


def _next_color(ax: Any) -> str:
    """Another one for every curve that is drawn on the same axes."""
    drawn = [line for line in ax.lines if line.get_linestyle() == "-"]
    return _COLORS[len(drawn) % len(_COLORS)]


def plot_tradeoff(guarantee: Guarantee, *, label: str | None = None, ax: Any = None) -> Any:
    """The best that any attack can do: missed cases against false alarms, for telling two neighbours apart.

    On the diagonal the attacker guesses. The shaded corner is out of reach whatever the attacker knows or computes.

    >>> from dpmanifolds import Guarantee
    >>> from dpmanifolds.show.plots import plot_tradeoff
    >>> plot_tradeoff(Guarantee.gaussian(1.0)).get_xlabel()
    'false alarms'
    """
    promise = _checked(guarantee)
    ax = axes(ax, (4.6, 4.2))
    # curves of pure promises have corners; two-sided logarithmic spacing shows the steep ends
    near = np.geomspace(1e-4, 0.5, 150)
    alarms = np.unique(np.concatenate([np.linspace(0.0, 1.0, 501), near, 1 - near]))
    missed = np.asarray(promise.tradeoff(alarms))
    color = _next_color(ax)
    ax.plot(alarms, missed, color=color, label=label or "this promise")
    ax.fill_between(alarms, 0, missed, color=color, alpha=0.12, linewidth=0)
    if not any(other.get_label() == "guessing" for other in ax.lines):
        ax.plot([0, 1], [1, 0], color=DOMAIN, linestyle="--", linewidth=1, label="guessing")
    ax.set(xlabel="false alarms", ylabel="missed cases", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(frameon=False, loc="upper right")
    return ax


def plot_profile(
    guarantee: Guarantee, *, epsilons: Iterable[float] | None = None, label: str | None = None, ax: Any = None
) -> Any:
    """δ against ε: every (ε, δ) on or above the curve holds, not only the one that was asked for.

    >>> from dpmanifolds import Guarantee
    >>> from dpmanifolds.show.plots import plot_profile
    >>> plot_profile(Guarantee.gaussian(1.0)).get_yscale()
    'log'
    """
    promise = _checked(guarantee)
    ax = axes(ax)
    if epsilons is None:
        epsilons = np.linspace(0.0, promise.epsilon(_SMALLEST_DELTA) * 1.02 + 1e-3, 240)
    grid = np.asarray(list(epsilons), dtype=float)
    deltas = np.asarray(promise.delta(grid), dtype=float)
    seen = deltas > 0
    color = _next_color(ax)
    ax.plot(grid[seen], deltas[seen], color=color, label=label)
    if seen.any() and not seen.all():
        # a pure promise ends: δ is 0 from there on
        ax.plot([grid[seen][-1]] * 2, [deltas[seen][-1], _SMALLEST_DELTA], color=color, linestyle=":", linewidth=1)
    widest = max(float(np.max(line.get_xdata())) for line in ax.lines if len(line.get_xdata()))
    ax.set(xlabel="ε", ylabel="δ", yscale="log", xlim=(0, widest), ylim=(_SMALLEST_DELTA, 1))
    if label:
        ax.legend(frameon=False)
    return ax


def plot_error_vs_epsilon(
    planned: Plan | Domain,
    n: int | None = None,
    *,
    epsilons: Iterable[float] = _EPSILONS,
    delta: float | None = None,
    numerics: str = "safe",
    ax: Any = None,
) -> Any:
    """Expected error of the private mean against the budget, a line per mechanism; a bar where there is one budget.

    From a `Plan`, or from a domain and n, which are then planned at `epsilons` (pure, or (ε, δ) with `delta`). Colours
    tell mechanisms apart, kinds of lines their numerics. Beyond the grey line the public centre is as good an answer
    as the release.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball
    >>> from dpmanifolds.show.plots import plot_error_vs_epsilon
    >>> plot_error_vs_epsilon(Ball(SPD(2), np.eye(2), 1.0), 500, epsilons=[0.5, 1.0, 2.0]).get_xlabel()
    'ε'
    """
    if isinstance(planned, Domain):
        if n is None:
            raise ArgumentError("n must be given with a domain: the public number of records.")
        budgets = [budget_of(epsilon=epsilon, delta=delta) for epsilon in epsilons]
        planned = plan(planned, n, budgets, numerics=numerics)
    elif not isinstance(planned, Plan):
        raise ArgumentError(f"planned must be a Plan, or a domain with n; got {planned!r}.")
    if len(planned.budgets) == 1:
        return _bars(planned, axes(ax, (6.0, 2.6)))
    ax = axes(ax, (5.6, 4.2))
    _draw_lines(planned, ax)
    ax.set_title(f"{planned.domain!r}, n = {planned.n}", fontsize="small", wrap=True)
    low, high = ax.get_ylim()
    if planned.domain.radius < 3 * high:
        ax.axhline(planned.domain.radius, color=DOMAIN, linestyle="--", linewidth=1, label="radius of the domain")
        ax.set_ylim(low, max(high, 1.3 * planned.domain.radius))
    ax.grid(alpha=0.25)
    # errors fall towards the right, so that the upper right is free
    ax.legend(frameon=True, framealpha=0.85, edgecolor="none", fontsize="small", loc="upper right")
    return ax


def _draw_lines(planned: Plan, ax: Any) -> None:
    """A colour and a marker per mechanism, a kind of line per numerics; hollow markers, as curves may be equal.

    On a logarithmic axis where all budgets are of one kind and differ in one number.
    """
    places, caption = _places(planned.budgets)
    colors: dict[str, int] = {}
    for name in dict.fromkeys((row.mechanism, row.numerics) for row in planned.rows if row.available):
        rows = [row for row in planned.rows if (row.mechanism, row.numerics) == name]
        points = sorted((places[row.budget], row.error.mean) for row in rows if row.error is not None)
        color = colors.setdefault(name[0], len(colors)) % len(_COLORS)
        (line,) = ax.plot(*zip(*points, strict=True), color=_COLORS[color], label=f"{name[0]} ({name[1]})")
        line.set(linestyle=_LINES[name[1]], linewidth=1.6, marker=_MARKERS[color], markerfacecolor="none")
        line.set_markersize(5.5 + (name[1] == "idealized"))
    ax.set(xlabel=caption, ylabel="expected geodesic error", yscale="log")
    if caption == "budget":
        ax.set_xticks(list(places.values()), [budget.label for budget in places])
    else:
        ax.set_xscale("log")


def _places(budgets: tuple[Budget, ...]) -> tuple[dict[Budget, float], str]:
    """Where budgets stand on the axis, and its name."""
    kinds = {type(budget) for budget in budgets}
    if len(kinds) == 1 and len({tuple(budget.kept.values()) for budget in budgets}) == 1:
        return {budget: budget.amount for budget in budgets}, budgets[0].letter
    return {budget: float(place) for place, budget in enumerate(budgets)}, "budget"


def _bars(planned: Plan, ax: Any) -> Any:
    """One budget: the mechanisms one below the other, the best on top."""
    errors = {f"{row.mechanism} ({row.numerics})": row.error.mean for row in planned.rows if row.error is not None}
    names = sorted(errors, key=errors.__getitem__, reverse=True)
    bars = ax.barh(names, [errors[name] for name in names], height=0.6, color=DOMAIN, alpha=0.6)
    bars[-1].set(color=VALUE, alpha=1.0)
    ax.bar_label(bars, fmt="{:.3g}", padding=4, fontsize="small")
    ax.margins(x=0.14)
    if planned.domain.radius < 3 * max(errors.values()):
        ax.axvline(planned.domain.radius, color=DOMAIN, linestyle="--", linewidth=1)
    ax.set(xlabel="expected geodesic error")
    ax.set_title(f"{planned.domain!r}, n = {planned.n}, {planned.budgets[0].label}", fontsize="small", wrap=True)
    for side in ("right", "top"):
        ax.spines[side].set_visible(False)
    return ax
