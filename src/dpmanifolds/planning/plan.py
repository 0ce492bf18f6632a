"""Expected errors of every mechanism, numerics and budget, from public facts alone.

>>> import numpy as np
>>> from dpmanifolds import Ball, Hyperbolic, PureDP
>>> from dpmanifolds.planning import plan
>>> ball = Ball(Hyperbolic(2), Hyperbolic(2).origin, radius=3.0)
>>> print(plan(ball, n=1000, budgets=[PureDP(0.5), PureDP(1.0)], mechanisms="wrapped-laplace"))
Expected error of the private mean of 1000 records in Ball(Hyperbolic(2, -1.0), radius=3)
budget  mechanism                  sensitivity  sigma     mean     90 %     at edge  price  note
ε=0.5   wrapped-laplace (rounded)  0.006        0.012     0.024    0.04668  0.05593  1      chosen
ε=0.5   wrapped-laplace (lattice)  0.006        0.01697   0.02755  0.0538   0.0642   1.15   quantile from draws
ε=1     wrapped-laplace (rounded)  0.006        0.006     0.012    0.02334  0.02796  1      chosen
ε=1     wrapped-laplace (lattice)  0.006        0.008485  0.01377  0.0269   0.0321   1.15   quantile from draws
How the noise compares with having 1000 records at all is left out: it takes spread=, the root mean square distance of \
records to their mean, from public knowledge or paid for, never from these records.
The public centre alone is better if the mean lies closer to it than 0.0198 (ε=0.5), 0.0099 (ε=1).
Curvature: noise of one size at the centre moves points near the edge of the domain up to 2.3 times as far.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from dpmanifolds._validate import choice, positive_integer, shown
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.planning.inverse import budget_for
from dpmanifolds.planning.rows import (
    KINDS,
    PlanRow,
    add_sample,
    flatten_row,
    mark_choice,
    mean_error,
    plan_rows,
    show_cells,
    show_headings,
)
from dpmanifolds.planning.useful import Usefulness, check_offset, check_spread, describe_usefulness
from dpmanifolds.privacy import Budget, PureDP, split
from dpmanifolds.releases import Release
from dpmanifolds.releases.extrinsic import find_extrinsic_mean
from dpmanifolds.releases.refine_plan import rounds_for
from dpmanifolds.releases.statistic import check_request
from dpmanifolds.sums import MECHANISMS, TANGENT, mean_facts
from dpmanifolds.sums.ambient import body_of
from dpmanifolds.sums.steps import is_wide

_WORTH_TELLING = 0.8
_USUAL_BUDGETS = (PureDP(0.1), PureDP(0.3), PureDP(1.0), PureDP(3.0))


@dataclass(frozen=True)
class Plan:
    """A table of expected errors. Every number is public: made of the domain, n and the budgets.

    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.4)
    >>> found = dpm.plan(ball, 100, [dpm.PureDP(0.5), dpm.PureDP(1.0)])
    >>> [round(found.best(budget).error.mean, 4) for budget in found.budgets]
    [0.032, 0.016]
    >>> found.to_csv().splitlines()[0].split(",")[:4]
    ['budget', 'mechanism', 'numerics', 'sensitivity']
    """

    domain: Domain
    n: int
    rows: tuple[PlanRow, ...]
    kind: str = "frechet"
    """Of the mean that is planned: see `private_mean`."""
    spread: float | None = None
    """The root mean square distance of records to their mean, from public knowledge or paid for."""
    offset: float | None = None
    """A public guess of how far the mean lies from the public centre."""

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """In the order they were planned."""
        return tuple(dict.fromkeys(row.budget for row in self.rows))

    def best(self, budget: Budget | None = None) -> PlanRow:
        """The row that `private_mean` would take within this budget; without one, the best of all budgets."""
        if budget is not None and budget not in self.budgets:
            planned = ", ".join(map(repr, self.budgets))
            raise ArgumentError(f"budget must be one that was planned: {planned}; got {shown(budget)}.")
        rows = [row for row in self.rows if row.chosen and budget in (None, row.budget)]
        if not rows:
            raise NotAvailableError(
                "nothing that was planned keeps the budget: "
                + " ".join(dict.fromkeys(row.note for row in self.rows if budget in (None, row.budget)))
            )
        return min(rows, key=mean_error)

    def usefulness(self, budget: Budget | None = None) -> Usefulness:
        """What `best(budget)` comes to beside the sampling error and beside the public centre alone."""
        row = self.best(budget)
        assert row.error is not None
        if row.public is not None:
            raise NotAvailableError("what a public sample makes of a mean is told by the row's `public` alone.")
        return Usefulness(self.domain, self.n, row.error.mean, row.mechanism, row.numerics, self.spread, self.offset)

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat dictionary per row, for tables and data frames; None where a mechanism is not available."""
        return [flatten_row(row) for row in self.rows]

    def to_csv(self) -> str:
        """The rows as text, with a header; empty fields for None."""
        out, rows = io.StringIO(), self.to_rows()
        writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    @property
    def remarks(self) -> list[str]:
        """What the numbers do not say: what they are worth, other targets, curvature, what is not available and why."""
        chosen = [row for row in self.rows if row.chosen]
        useful = [(row.budget.label, self.usefulness(row.budget)) for row in chosen if row.public is None]
        found = [*describe_usefulness(useful), *_other_target(self), *_stand_ins(self)]
        several = len(self.budgets) > 1
        found += [
            f"{f'{row.budget.label}: ' if several else ''}{row.public}" for row in chosen if row.public is not None
        ]
        stretch = max(
            (row.error.mean_at_edge / row.error.mean for row in self.rows if row.error is not None), default=1.0
        )
        if stretch > 1.01:
            flat = self.domain.manifold.flat_metric
            end = f"; metric={flat!r} is flat, and does not." if flat else "."
            found.append(
                "Curvature: noise of one size at the centre moves points near the edge of the domain up to "
                f"{stretch:.2g} times as far{end}"
            )
        missing: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if not row.available:
                reason = row.note.replace(repr(row.budget), type(row.budget).__name__)
                missing.setdefault((f"{row.mechanism} ({row.numerics})", reason), []).append(row.budget.label)
        together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (name, reason), labels in missing.items():
            together.setdefault((reason, tuple(labels)), []).append(name)
        for (reason, labels_there), names in together.items():
            where = "" if len(labels_there) == len(self.budgets) else f" at {'; '.join(labels_there)}"
            found.append(f"Not planned: {', '.join(names)}{where}: {reason}")
        return found

    def __str__(self) -> str:
        lines = [show_headings(self.spread is not None), *(show_cells(row) for row in self.rows if row.available)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        kind = "" if self.kind == "frechet" else f"{self.kind} "
        title = f"Expected error of the private {kind}mean of {self.n} records in {self.domain!r}"
        table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join([title, *table, *self.remarks])


def plan(
    domain: Domain,
    n: int,
    budgets: Budget | Iterable[Budget] | None = None,
    *,
    errors: float | Iterable[float] | None = None,
    mechanisms: str | Iterable[str] = "all",
    numerics: str = "safe",
    steps: int | str = 1,
    kind: str = "frechet",
    spread: float | Release | None = None,
    offset: float | None = None,
    public_sample: Any = None,
    dtype: Any = "float64",
) -> Plan:
    """What `private_mean` of n records in the domain would err, for every mechanism and budget. No data is touched.

    `errors` adds, for each, the smallest pure ε that brings the expected error down to it. Without budgets or errors,
    ε = 0.1, 0.3, 1 and 3 are planned. `numerics` is one that `private_mean` knows, or "all"; `steps` as there, one
    unless said otherwise; `kind` as there, with errors for records that lie close together. Expected errors are of
    noise before projection to the domain; what a mechanism cannot do is listed with the reason. `spread`, the root mean
    square distance of records to their mean, from public knowledge or paid for (a number, or a release of
    `private_variance`), and `offset`, a public guess of how far that mean lies from the centre, tell when the release
    is useful (`Plan.usefulness`). `public_sample`: points that are public and like the records; a row more for each
    budget has what the release with that sample is expected to err, and it is chosen where `private_mean` would. Some
    idealized laws are simulated, with a fixed seed, which takes seconds in high dimension.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball
    >>> table = plan(Ball(SPD(2), np.eye(2), radius=1.5), n=500, errors=0.01)
    >>> row = table.best()
    >>> row.mechanism, round(row.budget.epsilon, 6), round(row.error.mean, 6)
    ('wrapped-laplace', 1.8, 0.01)
    """
    n = positive_integer("n", n)
    names = _names(mechanisms)
    kinds = KINDS[choice("numerics", numerics, tuple(KINDS))]
    known, distance = check_spread(spread), check_offset(offset, domain)
    body = None
    if public_sample is not None and (kind != "frechet" or errors is not None or numerics == "idealized"):
        raise ArgumentError(
            "is planned for budgets, Fréchet means and numerics that hold to the last bit.", argument="public_sample"
        )
    if choice("kind", kind, ("frechet", "extrinsic")) == "extrinsic":
        if errors is not None or steps != 1:
            raise ArgumentError("an extrinsic mean is planned for budgets and one step: leave errors and steps out.")
        body, names = body_of(domain), tuple(name for name in names if name in TANGENT)
    facts = mean_facts(domain, n, dtype) if body is None else body.facts(n)
    planned = _budgets(budgets) if budgets is not None else []
    if errors is not None:
        wanted = errors if isinstance(errors, Iterable) else [errors]
        way = {
            "mechanism": names[0] if len(names) == 1 else "auto",
            "numerics": "safe" if numerics == "all" else numerics,
            "steps": steps,
            "dtype": dtype,
        }
        planned += [budget_for(domain, n, error, **way) for error in wanted]
    if budgets is None and errors is None:
        planned = list(_USUAL_BUDGETS)
    rows: list[PlanRow] = []
    for budget in dict.fromkeys(planned):
        found = [row for name in names for row in plan_rows(name, kinds, facts, budget, steps, body)]
        if public_sample is None:
            rows += mark_choice(found, numerics)
        else:
            rows += add_sample(found, domain, n, budget, public_sample, names, numerics)
    if known is not None:
        rows = [
            replace(row, over_sampling=mean_error(row) * math.sqrt(n) / known) if row.available else row for row in rows
        ]
    return Plan(domain, n, tuple(rows), kind, known, distance)


def split_plan(
    domain: Domain,
    n: int,
    budget: Budget,
    releases: int,
    *,
    numerics: str = "safe",
    spread: float | Release | None = None,
    offset: float | None = None,
    dtype: Any = "float64",
) -> Plan:
    """What each of several equal releases would err when together they may spend `budget` (`privacy.split`).

    A point (ε, δ) is cut as the pure ε and as the Gaussian μ that it affords; `best()` tells which cut errs less.

    >>> import numpy as np
    >>> from dpmanifolds import ApproxDP, Ball, SPD
    >>> ball = Ball(SPD(3, "log-euclidean"), np.eye(3), radius=1.0)
    >>> for count in (2, 50):
    ...     row = split_plan(ball, 1000, ApproxDP(1.0, 1e-6), releases=count).best()
    ...     print(row.mechanism, round(row.error.mean, 3))
    wrapped-laplace 0.024
    wrapped-gaussian 0.14
    """
    count = positive_integer("releases", releases)
    parts = [way[0] for way in split(budget, [1 / count] * count)]
    return plan(domain, n, parts, numerics=numerics, spread=spread, offset=offset, dtype=dtype)


def _names(mechanisms: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(mechanisms, str):
        mechanisms = MECHANISMS if mechanisms == "all" else (mechanisms,)
    try:
        return tuple(choice("mechanisms", name, MECHANISMS) for name in mechanisms)
    except TypeError:
        raise ArgumentError(f"mechanisms must be 'all', a name or a list of names; got {shown(mechanisms)}.") from None


def _budgets(budgets: Budget | Iterable[Budget]) -> list[Budget]:
    try:
        found: list[Budget | None] = [budgets] if isinstance(budgets, Budget) else list(budgets)
    except TypeError:
        found = []
    if not found or not all(isinstance(budget, Budget) for budget in found):
        raise ArgumentError(
            "budgets must be one or more of PureDP, ApproxDP, GaussianDP, ZeroConcentratedDP, RenyiDP; got "
            f"{budgets!r}."
        )
    return [budget for budget in found if budget is not None]


def _other_target(planned: Plan) -> Iterator[str]:
    """That the extrinsic mean would have less noise, where it has: σ as the radii of the bodies, in units of distance.

    Noise across the manifold is lost when the nearest point is taken. Gaussian noise has one size in all directions; in
    each of D dimensions ℓ2-Laplace noise of one scale has the size √(D + 1).
    """
    domain, manifold = planned.domain, planned.domain.manifold
    if planned.kind != "frechet" or not isinstance(domain, Ball) or not manifold.ambient_dim:
        return
    short = 1e-6 * manifold.injectivity_radius
    body = body_of(domain)
    moved = float(body.facts(planned.n).at_center) * planned.n / 2
    ratio = moved * short / manifold.chord(short) / domain.radius
    spread = math.sqrt((manifold.ambient_dim + 1) / (manifold.dim + 1))
    shares = [ratio * (spread if "laplace" in row.mechanism else 1.0) for row in planned.rows if row.chosen]
    if shares and min(shares) <= _WORTH_TELLING:
        yield (
            f"Another target: the extrinsic mean (kind='extrinsic') has {min(shares):.2g} times this error where "
            "records lie close together; where they spread, it is another point than the Fréchet mean."
        )


def _stand_ins(planned: Plan) -> Iterator[str]:
    """Where `private_mean` as it comes takes the extrinsic mean in place of the Fréchet mean."""
    if planned.kind != "frechet" or not is_wide(planned.domain):
        return
    for row in (row for row in planned.rows if row.chosen and row.public is None and row.numerics != "idealized"):
        request = check_request(planned.domain, row.budget)
        found = find_extrinsic_mean(request, planned.n, rounds_for(request, planned.n))
        if found is not None:
            yield (
                f"At {row.budget.label} private_mean takes the extrinsic mean, unless steps= or refine= is named: it "
                f"stands in for the Fréchet mean, with an error of {found.noise.mean:.4g} from noise; a release tells "
                "how far both may be apart."
            )
