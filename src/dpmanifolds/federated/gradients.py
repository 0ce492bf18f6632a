"""Steps of a descent at several sites: each is a round that asks for the sum of gradients at a public point.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> loss = dpm.losses.EigenvectorLoss(dimension=3, radius=1.0)
>>> X = np.random.default_rng(0).standard_normal((3000, 3)) * [0.5, 0.1, 0.1]
>>> start = dpm.WholeSpace(loss.manifold, np.array([0.6, 0.8, 0.0]))
>>> way = dpm.Descent(loss, steps=5, step_size=2.0)
>>> study = dpm.Study("descent", start, dpm.GaussianDP(2.0), n=3000, sites=["a", "b", "c"], descent=way)
>>> release = dpm.run_study(study, [dpm.Site(name, part, rng=7) for name, part in zip("abc", np.split(X, 3))])
>>> bool(abs(release.value[0]) > 0.9), len(release.sites.rounds)
(True, 5)

The gradient of a record is made integers on its own, inside of a ball of `clip_norm` (docs/proofs/descent.md): the
bound of logarithms. A site reads the loss by its name, and brings its own records into the domain of the loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifolds._validate import choice, positive_integer, positive_number, shown
from dpmanifolds.descent import losses
from dpmanifolds.descent.descent import OUTPUTS, Run, choose_clip_norm, start_domain
from dpmanifolds.descent.draws import Draws
from dpmanifolds.descent.losses import Loss
from dpmanifolds.descent.losses.loss import OuterLoss
from dpmanifolds.descent.noise_plan import plan_descent
from dpmanifolds.descent.noisy_step import NoisyGradient, contribution_at
from dpmanifolds.descent.records import hold_records
from dpmanifolds.descent.step_sizes import median_schedule, step_sizes
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, RoundRefusedError
from dpmanifolds.manifolds import Euclidean, Manifold
from dpmanifolds.releases import Release
from dpmanifolds.releases.descent import release_descent
from dpmanifolds.releases.written import from_plain, point_from_json, point_to_json, to_plain
from dpmanifolds.sums.outer import finest_factor_exponent
from dpmanifolds.sums.rounding import finest_exponent
from dpmanifolds.sums.total import ExactSum

if TYPE_CHECKING:
    from dpmanifolds.federated.script import Script, SiteRequest

_NAMES = (
    "FrechetMeanLoss FrechetMedianLoss EigenvectorLoss PCALoss GaussianCovarianceLoss LogisticLoss "
    "GeodesicRegressionLoss"
)
_COARSEST = 4
_LOSSES: dict[str, Any] = {name: getattr(losses, name) for name in _NAMES.split()}


def write_loss(loss: Loss) -> dict[str, Any]:
    """Its name and what it is made of, every float bit for bit."""
    if type(loss) is not _LOSSES.get(loss.name):
        raise ArgumentError(
            f"must be one of {', '.join(_LOSSES)}, which sites know by name; got {shown(loss)}.", argument="loss"
        )
    return {"name": loss.name, **{each.name: to_plain(getattr(loss, each.name), each.name) for each in fields(loss)}}  # type: ignore[arg-type]


def read_loss(data: Any) -> Loss:
    """What `write_loss` wrote; the loss checks its own numbers."""
    kind = _LOSSES[data["name"]]
    if any(isinstance(data[each.name], str | bool) for each in fields(kind)):
        raise RoundRefusedError(f"what {data['name']} is made of are numbers and points.")
    made: Loss = kind(**{each.name: from_plain(data[each.name], each.name) for each in fields(kind)})
    return made


@dataclass(frozen=True, eq=False)
class Descent:
    """How a study descends; all of it public. It starts at the centre of the domain of the study.

    `step_size`: one number, or one for each step. Other arguments as in `private_descent`.

    >>> import dpmanifolds as dpm
    >>> loss = dpm.losses.PCALoss(dpm.Grassmann(5, 2), radius=1.0)
    >>> dpm.Descent(loss, steps=10, step_size=1.0).clip_norm
    0.5
    """

    loss: Loss
    steps: int
    step_size: float | Sequence[float]
    clip_norm: float | None = None
    output: str = "last"
    retraction: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise ArgumentError(f"must be a Loss; got {shown(self.loss)}.", argument="loss")
        write_loss(self.loss)
        positive_integer("steps", self.steps)
        choice("output", self.output, tuple(each for each in OUTPUTS if each != "random"))
        sizes = step_sizes(self.step_size, steps=self.steps, sigma=1.0, dim=1)
        object.__setattr__(self, "step_size", tuple(map(float, sizes)))
        object.__setattr__(self, "clip_norm", float(choose_clip_norm(self.loss, self.clip_norm)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        plain = {name: getattr(self, name) for name in ("steps", "clip_norm", "output", "retraction")}
        return {"loss": write_loss(self.loss), "step_size": list(self.step_size), **plain}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Descent:
        """What `to_dict` wrote."""
        return cls(**{**data, "loss": read_loss(data["loss"])})


@dataclass(frozen=True, eq=False)
class GradientRule:
    """What a record adds to a step: the gradient of a loss at a public point, shortened to `clip_norm`."""

    loss: Loss
    at: Any
    clip_norm: float
    exponent: int
    """`clip_norm` is 2^exponent steps."""

    @property
    def noisy(self) -> int:
        """How many integers a record has."""
        return math.prod(self.loss.shape) if isinstance(self.loss, OuterLoss) else self.loss.manifold.dim

    @property
    def manifold(self) -> Manifold:
        """Where records live; that of their vectors, or of their responses, where they are pairs."""
        known = self.loss.record_manifold or getattr(self.loss, "response", None)
        filler = self.loss.filler
        return known or Euclidean(np.size(filler[0] if isinstance(filler, tuple) else filler))

    def total(self, points: Any, group_by: Any, *, may_be_empty: bool) -> tuple[ExactSum, int]:
        """The exact sum over the records of a site, and their number: each record by itself, in any company."""
        held = hold_records(self.loss, points, group_by=group_by, on_invalid="center", may_be_empty=may_be_empty)
        rule = contribution_at(self.loss, self.at, clip_norm=self.clip_norm, exponent=self.exponent, moving=True)
        return held.total(rule, None), held.count

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        numbers = {"clip_norm": self.clip_norm, "exponent": self.exponent}
        return {"kind": "gradient", "loss": write_loss(self.loss), "at": point_to_json(self.at), **numbers}

    @classmethod
    def from_dict(cls, data: Any) -> GradientRule:
        """What `to_dict` wrote, checked."""
        loss, at = read_loss(data["loss"]), point_from_json(data["at"])
        formed = loss.manifold.as_points(at, "at")
        if loss.manifold.batch_shape(formed) != () or not bool(loss.manifold.belongs(formed)):
            raise RoundRefusedError(f"a rule looks from what is no point of {loss.manifold!r}.")
        finest, coarsest = finest_exponent(loss.manifold.dim), _COARSEST
        if isinstance(loss, OuterLoss):
            # of two factors
            finest, coarsest = 2 * finest_factor_exponent(loss.shape[0]), 2 * _COARSEST
        exponent = positive_integer("exponent", data["exponent"], at_least=coarsest)
        if exponent > finest:
            raise RoundRefusedError(f"an exponent of {exponent} is too fine to be checked exactly; at most {finest}.")
        return cls(loss, at, positive_number("clip_norm", data["clip_norm"]), exponent)


@dataclass(frozen=True)
class SharedGradient(NoisyGradient):
    """A noisy gradient whose noise comes with the sum, in the shares that sites drew."""

    script: Script = field(kw_only=True)

    @cached_property
    def mu(self) -> float:
        """Of one step."""
        return self.plan.guarantee.as_gaussian().mu / math.sqrt(self.plan.steps)

    def total(self, w: Any) -> Any:
        return self.script.ask(GradientRule(self.loss, w, self.length, self.exponent))

    def private(self, w: Any, total: Any) -> np.ndarray:
        heard = total.hear(self.mu)
        scale = 1.0 if heard.rows is None else self.plan.n / max(1, heard.rows)
        return self.read(w, np.array([float(number) for number in heard.integers]) * scale)


def descend(way: Descent | None, script: Script, request: SiteRequest) -> Release:
    """The script of a descent: a question for each step. Without a `way` it is that of the Fréchet median."""
    domain = request.domain
    if way is None:
        assert isinstance(domain, Ball)
        steps, rule = median_schedule(domain, script.count, request.budget)
        sizes = rule.sizes(steps, 0.0, domain.manifold.dim)
        way = Descent(losses.FrechetMedianLoss(domain), steps, sizes, output="weighted-average")  # type: ignore[arg-type]
    assert way.clip_norm is not None
    region, start = start_domain(domain, domain.center)
    plan = plan_descent(
        n=script.count,
        clip_norm=way.clip_norm,
        budget=request.budget,
        steps=way.steps,
        unit=request.unit,
        adjacency=request.adjacency,
    )
    source = SharedGradient(way.loss, None, plan, None, script=script)  # type: ignore[arg-type]
    _ = source.exponent
    run = Run(region, np.asarray(way.step_size), way.output, way.retraction, None, source, None, False)
    point, details = run.go(Draws(way.steps, {"point": start, "chosen": start}))
    return release_descent(way.loss, plan, region, request.budget, point, details, reproducible=False)


def check_descent(way: Any, statistic: str, domain: Domain) -> None:
    """A descent goes with the statistic of that name, on the manifold of its loss."""
    if (way is not None) != (statistic == "descent"):
        raise ArgumentError("is for the statistic 'descent', which needs one.", argument="descent")
    if way is None:
        return
    if not isinstance(way, Descent):
        raise ArgumentError(f"must be a Descent; got {shown(way)}.", argument="descent")
    if way.loss.manifold != domain.manifold:
        raise ArgumentError(
            f"the loss is for parameters on {way.loss.manifold!r}, and the domain lies on {domain.manifold!r}."
        )
