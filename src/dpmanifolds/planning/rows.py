"""One row of a plan: what a mechanism with one numerics errs within one budget, and which row `private_mean` takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, DPManifoldsError, NoiseExceedsDomainWarning
from dpmanifolds.privacy import Budget, Sensitivity
from dpmanifolds.releases.public_sample import expected_of, read_sample
from dpmanifolds.releases.refine_plan import rounds_for
from dpmanifolds.releases.statistic import check_request
from dpmanifolds.sums import DIRECT, TANGENT, ExpectedError, Facts, Mechanism, calibrate, numerics_of
from dpmanifolds.sums.ambient import AmbientBody
from dpmanifolds.sums.public import PublicPart
from dpmanifolds.sums.steps import plan_steps
from dpmanifolds.sums.wrapped import WrappedMechanism

KINDS = {
    "safe": ("rounded", "lattice"),
    "rounded": ("rounded",),
    "lattice": ("lattice",),
    "idealized": ("idealized", "rounded"),
    "all": ("rounded", "lattice", "idealized"),
}


@dataclass(frozen=True)
class PlanRow:
    """One mechanism with one numerics within one budget; no numbers where it is not available.

    >>> import dpmanifolds as dpm
    >>> row = dpm.plan(dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.4), 100, dpm.PureDP(1.0)).best()
    >>> row.mechanism, row.numerics, round(row.sigma, 6), row.available
    ('wrapped-laplace', 'rounded', 0.008, True)
    """

    mechanism: str
    numerics: str
    budget: Budget
    sigma: float | None = None
    """σ of the noise."""
    sensitivity: Sensitivity | None = None
    """What σ was made from."""
    error: ExpectedError | None = None
    price: float | None = None
    """The expected error over the smallest one planned for this budget. With numerics="all" the idealized laws
    compete, and the price of a safe mechanism is what safe numerics cost."""
    chosen: bool = False
    """Whether `private_mean` would take it (under "all": with its default numerics, "safe")."""
    note: str = ""
    """Why it is not available, or what to know about it."""
    steps: int = 1
    """How many tangent steps share the budget; sigma is that of the last one."""
    over_sampling: float | None = None
    """The expected error over the sampling error spread/√n; None where no spread is known."""
    public: PublicPart | None = None
    """What a public sample would contribute, in the row of a release with one: its error is what the sample predicts
    for records like it."""

    @property
    def way(self) -> str:
        """The mechanism, and whether it has a public sample at hand."""
        return self.mechanism if self.public is None else f"{self.mechanism}, public sample"

    @property
    def available(self) -> bool:
        """Whether the mechanism keeps the budget here."""
        return self.error is not None


def flatten_row(row: PlanRow) -> dict[str, Any]:
    """Plain numbers and strings."""
    error = row.error
    return {
        "budget": repr(row.budget),
        "mechanism": row.way,
        "numerics": row.numerics,
        "sensitivity": None if row.sensitivity is None else float(row.sensitivity),
        "sigma": row.sigma,
        "mean": None if error is None else error.mean,
        "radius_90": None if error is None else error.radius_90,
        "mean_at_edge": None if error is None else error.mean_at_edge,
        "price": row.price,
        "over_sampling": row.over_sampling,
        "chosen": row.chosen,
        "note": row.note,
    }


def show_headings(spread_known: bool) -> tuple[str, ...]:
    """Over the cells of rows; with a known spread there is a column more."""
    headings = ("budget", "mechanism", "sensitivity", "sigma", "mean", "90 %", "at edge", "price")
    return (*headings, "× sampling", "note") if spread_known else (*headings, "note")


def show_cells(row: PlanRow) -> tuple[str, ...]:
    """An available row as text, under `show_headings`."""
    error, sensitivity = row.error, row.sensitivity
    assert error is not None
    assert sensitivity is not None
    numbers = (float(sensitivity), row.sigma, error.mean, error.radius_90, error.mean_at_edge)
    note = "; ".join(filter(None, ("chosen" if row.chosen else "", row.note)))
    return (
        row.budget.label,
        f"{row.way} ({row.numerics})",
        *(f"{number:.4g}" for number in numbers),
        f"{row.price:.3g}",
        *([] if row.over_sampling is None else [f"{row.over_sampling:.3g}"]),
        note,
    )


def plan_rows(
    name: str, kinds: Sequence[str], facts: Facts, budget: Budget, steps: int | str, body: AmbientBody | None
) -> list[PlanRow]:
    """The mechanism with each of the numerics asked for that it has, or the reason why it is left out."""
    offered = [kind for kind in kinds if kind in numerics_of(name)]
    if offered:
        return [_row(name, kind, facts, budget, steps, body) for kind in offered]
    own = numerics_of(name)[0]
    return [PlanRow(name, own, budget, note=f"offered with numerics {own!r} only: plan with numerics='all' to see it.")]


def _row(name: str, kind: str, facts: Facts, budget: Budget, steps: int | str, body: AmbientBody | None) -> PlanRow:
    try:
        if name in TANGENT and steps != 1:
            return _stepped_row(name, kind, facts, budget, steps)
        mechanism = calibrate(name, facts, budget, kind)
        error = mechanism.expected_error
        if body is not None:
            assert isinstance(mechanism, WrappedMechanism)
            error = body.expected_error(mechanism)
    except DPManifoldsError as reason:
        return PlanRow(name, kind, budget, note=str(reason))
    return PlanRow(name, kind, budget, mechanism.sigma, mechanism.sensitivity, error, note=_note(mechanism))


def _stepped_row(name: str, kind: str, facts: Facts, budget: Budget, steps: int | str) -> PlanRow:
    """With as many steps as `private_mean` would take."""
    assert facts.shape is not None
    found = plan_steps(facts.domain, facts.shape.count, budget, steps=steps, mechanism=name, numerics=kind)
    law, count = found.last, len(found.mechanisms)
    note = "; ".join(filter(None, [f"{count} steps" if count > 1 else "", _note(law)]))
    return PlanRow(name, kind, budget, law.sigma, law.sensitivity, found.expected_error, note=note, steps=count)


def _note(mechanism: Mechanism) -> str:
    error, domain = mechanism.expected_error, mechanism.facts.domain
    notes = []
    if error.exceeds(domain):
        notes.append(NoiseExceedsDomainWarning.words)
    if error.simulated:
        notes.append("quantile from draws" if mechanism.error_metric == "coordinates" else "from draws")
    return "; ".join(notes)


def mark_choice(rows: list[PlanRow], numerics: str) -> list[PlanRow]:
    """With prices, and the choice of `private_mean`."""
    available = [row for row in rows if row.available]
    if not available:
        return rows
    smallest = min(map(mean_error, available))
    allowed = KINDS["safe" if numerics == "all" else numerics]
    usual = [row for row in available if row.numerics in allowed and row.mechanism not in DIRECT]
    best = min(usual, key=mean_error) if usual else None
    return [
        replace(row, price=mean_error(row) / smallest, chosen=row is best) if row.available else row for row in rows
    ]


def add_sample(
    rows: list[PlanRow], domain: Domain, n: int, budget: Budget, sample: Any, names: Sequence[str], numerics: str
) -> list[PlanRow]:
    """The rows of the domain alone, and one with the sample: chosen where `private_mean` would take it."""
    mechanism = names[0] if len(names) == 1 else "auto"
    if mechanism not in TANGENT:
        raise ArgumentError(f"is for means by sums; got mechanism {mechanism!r}.", argument="public_sample")
    request = check_request(
        domain, budget, mechanism=mechanism, numerics="safe" if numerics == "all" else numerics, shaped=True
    )
    public = read_sample(request, sample)
    fit = public.fit(request, n)
    law = public.plan(request, n, fit)[1].last
    taken = fit.predicted < public.error_without(request, n, rounds_for(request, n))
    error, part = expected_of(fit), public.part(fit)
    marked = mark_choice(rows, numerics)
    smallest = min([fit.predicted, *(mean_error(row) for row in marked)])
    marked = [
        replace(row, price=mean_error(row) / smallest, chosen=row.chosen and not taken) if row.available else row
        for row in marked
    ]
    note = "if the records are like the sample"
    own = PlanRow(law.name, law.numerics, budget, law.sigma, law.sensitivity, error, note=note, public=part)
    return [*marked, replace(own, price=fit.predicted / smallest, chosen=taken)]


def mean_error(row: PlanRow) -> float:
    """The expected error, infinite where the mechanism is not available."""
    return float("inf") if row.error is None else row.error.mean
