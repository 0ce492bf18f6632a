"""A study: what is to be released of the records of several sites, and the rounds that lead there.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.SPD(2, "log-euclidean"), np.eye(2), radius=2.0)
>>> X = dpm.SPD(2).random_point(900, rng=0)
>>> study = dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=900, sites=["a", "b", "c"], tolerated=1)
>>> sites = [dpm.Site(name, part, rng=7) for name, part in zip("abc", np.split(X, 3))]
>>> release = dpm.run_study(study, sites)
>>> release.value.shape, release.sites.transport, release.guarantee.fits(dpm.GaussianDP(1.0))
((2, 2), 'secure-sum', True)

Shares are Gaussian, so that all parts of a budget are parts of one μ. A study is planned for the noise that will be in
the sum if all sites answer, √(k/(k − t)) times the noise of one place, or √k times where each answer is seen by
itself; what is claimed is the promise of k − t shares (docs/proofs/federated.md).
"""

from __future__ import annotations

import json
import math
import secrets
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

from dpmanifolds._validate import choice, positive_integer, shown
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, DPManifoldsError, ScaleOutOfRangeError
from dpmanifolds.federated.block_test import check_blocks
from dpmanifolds.federated.gradients import Descent, check_descent, descend
from dpmanifolds.federated.round import LABELLED, RULES, TRANSPORTS, WITHIN_CLASS, Part, Round, is_name
from dpmanifolds.federated.script import (
    AskNextError,
    Heard,
    Script,
    SiteRequest,
    share_covariance,
    share_tangent_moment,
)
from dpmanifolds.privacy import Budget, GaussianDP, affordable_mu
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.privacy.guarantee import ADJACENCIES
from dpmanifolds.releases import Release
from dpmanifolds.releases.covariance import check_ball, plan_covariance, release_covariance
from dpmanifolds.releases.mean import release_mean
from dpmanifolds.releases.refine import refined_mean
from dpmanifolds.releases.refine_plan import decide_rounds
from dpmanifolds.releases.second_moment import plan_tangent_moment, release_tangent_moment
from dpmanifolds.releases.statistic import Account, check_domain
from dpmanifolds.releases.variance import release_variance
from dpmanifolds.releases.written import domain_from_json, domain_to_json
from dpmanifolds.sums.shares import calibrate_shares

_SCHEMA = 1
# room for the claims of several rounds, each of which is rounded upwards
_HAIR = 1 - 2.0**-40
_BITS, _SURE = (64, 96, 128, 192), 1e-12


@dataclass(frozen=True, eq=False)
class Study:
    """A statistic of the records of several sites, within a budget; everything in it is public.

    - `statistic`: "mean", "median", "variance", "class means", "covariance" (of vectors), "second moment", "tangent
      PCA" (the second moment of tangent coordinates at a mean, which is the last stage), "descent" (how is told by
      `descent`; its start is the centre of the domain), "two-sample test" of two `classes` in `blocks` at a `level`.
    - `n`: the public number of records at all sites together, or of each of `classes`; or, with
      adjacency="add-remove-one", `n_guess`, a guess of it.
    - `sites`: their names; `tolerated`: t, how many may be gone or side with the coordinator, together. The noise is
      √(k/(k − t)) times that of one trusted place.
    - `transport`: "secure-sum", where an engine adds the answers up and the coordinator sees the sum alone, or "plain",
      where he sees each answer: every site then draws the whole noise.
    - `steps`, `refine`: as in `private_mean`; each step, and each paid radius, is a round.
    - `secret_labels`: whether the class of a record is protected, too.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.5)
    >>> study = dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=300, sites=["a", "b", "c"], name="pilot")
    >>> dpm.Study.from_json(study.to_json()) == study
    True
    """

    statistic: str
    domain: Domain
    budget: Budget
    _: KW_ONLY
    sites: Sequence[str]
    n: int | Sequence[int] | None = None
    tolerated: int = 0
    transport: str = "secure-sum"
    steps: int | str = "auto"
    refine: int | str = 0
    classes: Sequence[str | int] = ()
    secret_labels: bool = False
    adjacency: str = "replace-one"
    n_guess: int | None = None
    descent: Descent | None = None
    blocks: int | Sequence[int] = 5
    level: float = 0.05
    unit: str = "record"
    modulus: int | None = None
    """None: the least of 2⁶⁴, 2⁹⁶, … that hardly ever misreads a sum."""
    name: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        choice("statistic", self.statistic, tuple(RULES))
        choice("transport", self.transport, TRANSPORTS)
        choice("adjacency", self.adjacency, ADJACENCIES)
        check_domain(self.domain)
        checked_budget(self.budget)
        for name in ("sites", "classes"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Sequence) or len(set(given)) < len(given):
                raise ArgumentError(f"must be a list of different names; got {shown(given)}.", argument=name)
            object.__setattr__(self, name, tuple(given))
        if not all(map(is_name, self.sites)) or not self.sites:
            raise ArgumentError(
                "must name each site: short, in composed letters that show (NFKC), without spaces around.",
                argument="sites",
            )
        for name in ("name", "unit"):
            if not is_name(getattr(self, name)):
                raise ArgumentError("must be a short text, in composed letters that show.", argument=name)
        if positive_integer("tolerated", self.tolerated, at_least=0) >= len(self.sites):
            raise ArgumentError(f"must be below the number of sites, {len(self.sites)}.", argument="tolerated")
        self._check_classes()
        self._check_counts()
        affordable_mu(self.budget)

    def _check_classes(self) -> None:
        if bool(self.classes) != (self.statistic in LABELLED):
            raise ArgumentError("are for class means and tests, which need a list of them.", argument="classes")
        if self.statistic == "two-sample test":
            self._check_test()
        check_descent(self.descent, self.statistic, self.domain)
        if not all(type(label) in (str, int) for label in self.classes):
            raise ArgumentError("must be texts or whole numbers.", argument="classes")
        if self.secret_labels and not self.classes:
            raise ArgumentError("is for class means.", argument="secret_labels")
        if self.refine != 0 and self.statistic != "mean":
            raise ArgumentError("is for means.", argument="refine")
        if self.statistic not in ("mean", "descent") and not isinstance(self.domain, Ball):
            raise ArgumentError("must be a Ball, but for means and descents.", argument="domain")
        if self.statistic in ("covariance", "second moment"):
            assert isinstance(self.domain, Ball)
            check_ball(self.domain)

    def _check_test(self) -> None:
        if len(self.classes) != 2 or self.secret_labels:
            raise ArgumentError("of a test are two, and public.", argument="classes")
        object.__setattr__(self, "blocks", check_blocks(self.blocks, self.level))
        # one look from the centre, whose coordinates are compared
        object.__setattr__(self, "steps", 1)

    def _check_counts(self) -> None:
        added = self.adjacency == "add-remove-one"
        if (self.n_guess is None) == added or (self.n is None) != added:
            raise ArgumentError("give n with adjacency='replace-one', and n_guess with 'add-remove-one'.", argument="n")
        if added and self.statistic == "tangent PCA":
            raise ArgumentError("tangent PCA is for adjacency='replace-one'.", argument="adjacency")
        if added and self.classes and not self.secret_labels:
            raise ArgumentError("adjacency='add-remove-one' protects class counts: pass secret_labels=True.")
        told = self.n_guess if added else self.n
        several = bool(self.classes) and not self.secret_labels
        if several:
            if not isinstance(told, Sequence) or len(told) != len(self.classes):
                raise ArgumentError("must have the number of records of each class.", argument="n")
            object.__setattr__(self, "n", tuple(positive_integer("n", number) for number in told))
            if self.statistic == "two-sample test" and not min(self.counts):
                raise ArgumentError("has fewer records than blocks.", argument="n")
        else:
            positive_integer("n_guess" if added else "n", told)

    @property
    def counts(self) -> tuple[int, ...]:
        """The public number of records, or the guess of it, of each part."""
        if isinstance(self.blocks, tuple):
            assert isinstance(self.n, tuple)
            return (min(map(int.__floordiv__, self.n, self.blocks)),) * sum(self.blocks)
        if isinstance(self.n, tuple):
            return self.n
        whole, parts = self.n_guess or self.n, max(1, len(self.classes))
        assert isinstance(whole, int)
        return (max(1, whole // parts),) * parts

    @property
    def _is_cut(self) -> bool:
        """Whether it is a test, whose parts are blocks."""
        return isinstance(self.blocks, tuple)

    @property
    def places(self) -> list[tuple[str | int | None, int | None]]:
        """Class and block of each part; None for all records."""
        if isinstance(self.blocks, tuple):
            return [
                (label, block) for label, most in zip(self.classes, self.blocks, strict=True) for block in range(most)
            ]
        return [(label, None) for label in self.classes or (None,)]

    @property
    def excess(self) -> float:
        """How many times the noise of one trusted place is in the sum if all sites answer."""
        whole = len(self.sites)
        return math.sqrt(whole if self.transport == "plain" else whole / (whole - self.tolerated))

    @cached_property
    def _request(self) -> SiteRequest:
        """As one place would ask: planned for the noise that will be there."""
        unit = self.unit + WITHIN_CLASS if self.classes and not self.secret_labels else self.unit
        request = SiteRequest(
            domain=self.domain,
            budget=GaussianDP(affordable_mu(self.budget) * _HAIR / self.excess),
            mechanism="wrapped-gaussian",
            numerics="rounded",
            steps=self.steps,
            adjacency=self.adjacency,
            guess=self.n_guess,
            on_invalid="center",
            unit=unit,
            account=Account(None, None, None),
            count=min(self.counts),
            labelled=self.secret_labels,
            bits=None if self.modulus is None else self.modulus.bit_length() - 1,
        )
        if self.classes and self.steps == "auto":
            # all classes go the same number of steps, so that one round serves all
            return replace(request, steps=len(request.plan(min(self.counts)).mechanisms))
        return request

    def ask(self, before: Sequence[tuple[Heard, ...]], last: str = "") -> Round | list[Release]:
        """The next round after these sums, by part, came back; or, if none is missing, the release of each part.

        `last` is the hash of the round before. The releases are told as of one place, with noise as planned.
        """
        asked, made = list[tuple[AskNextError, Any, int]](), list[Release]()
        for number, (place, count) in enumerate(zip(self.places, self.counts, strict=True)):
            guess = None if self.n_guess is None else count
            script = Script([heard[number] for heard in before], count, guess)
            with warnings.catch_warnings():
                # told once; of a block of a test the noise is no matter of its own
                warnings.simplefilter("ignore" if before or self._is_cut else "default")
                try:
                    made.append(self._run(script, replace(self._request, count=count, guess=guess)))
                except AskNextError as question:
                    asked.append((question, place, count))
        return self._round(asked, len(before) + 1, last) if asked else made

    def rehearse(self) -> Round:
        """The first round, after going through all of them with sums of zero where the modulus was given.

        Whether a later sum fits it is told before any site has paid.
        """
        first = asked = self.ask(())
        assert isinstance(first, Round)
        before: list[tuple[Heard, ...]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while self.modulus is not None and isinstance(asked, Round):
                rows = [None if asked.counted else count for count in self.counts]
                noisy = [part.body.noisy + (asked.weight > 0) for part in asked.parts]
                before.append(tuple(Heard([0] * many, each) for many, each in zip(noisy, rows, strict=True)))
                asked = self.ask(before)
        return first

    def _run(self, script: Script, request: SiteRequest) -> Release:
        records = script.records()
        if self.statistic == "variance":
            return release_variance(request, records)
        if self.statistic in ("median", "descent"):
            return descend(self.descent, script, request)
        if self.statistic == "tangent PCA":
            way = share_tangent_moment(plan_tangent_moment(request, script.count), request)
            found = release_tangent_moment(request, records, script.count, way, self.domain.radius)
            stages = (*found.mean.stages, replace(found.mean, stages=()))
            return replace(found.moment, guarantee=found.guarantee, stages=stages)
        if self.statistic in ("covariance", "second moment"):
            assert isinstance(self.domain, Ball)
            about = "mean" if self.statistic == "covariance" else "origin"
            labels = {"adjacency": self.adjacency, "unit": request.unit}
            plan = plan_covariance(self.domain, script.count, request.budget, about=about, persons=True, **labels)
            return release_covariance(request, records, share_covariance(plan, request), script.count, about)
        rounds = self.refine
        if rounds == "auto":
            rounds = decide_rounds(request, records)
        rounds = positive_integer("refine", rounds, at_least=0)
        return refined_mean(request, records, rounds) if rounds else release_mean(request, records)

    def _round(self, asked: list[tuple[AskNextError, Any, int]], number: int, last: str) -> Round:
        """The shares any k − t of which keep this part of the promise, on a modulus that holds the sum."""
        question = asked[0][0]
        facts: dict[str, Any] = {
            "study": self.name,
            "number": number,
            "statistic": self.statistic,
            "parts": tuple(Part(each.rule, *place) for each, place, _ in asked),
            "count": sum(count for _, _, count in asked),
            "weight": question.weight,
            "secret_labels": self.secret_labels,
            "adjacency": self.adjacency,
            "unit": self._request.unit,
            "sites": self.sites,
            "tolerated": self.tolerated,
            "transport": self.transport,
            "before": last,
        }
        # a round of much noise tells how far a record moves its sum, and how many numbers get shares
        wide = Round(**facts, sigma=2.0**60, claim=1e300, modulus=1 << _BITS[0])
        claim = question.mu * self.excess
        shares = calibrate_shares(
            moved=wide.moved,
            mu=claim,
            parties=wide.shares.parties,
            tolerated=wide.shares.tolerated,
            dim=wide.shares.dim,
            halved=wide.shares.halved,
        )
        moduli = [1 << bits for bits in _BITS] if self.modulus is None else [self.modulus]
        for modulus in moduli:
            made = Round(**facts, sigma=shares.sigma, claim=claim, modulus=modulus)
            if made.overflow <= _SURE:
                return made
        raise ScaleOutOfRangeError(f"a modulus of {modulus.bit_length()} bits does not hold such a sum and its noise.")

    def to_json(self, *, indent: int | None = None) -> str:
        """Everything."""
        plain = (
            "statistic",
            "tolerated",
            "transport",
            "steps",
            "refine",
            "secret_labels",
            "adjacency",
            "n_guess",
            "level",
        )
        data = {name: getattr(self, name) for name in (*plain, "unit", "name")}
        data |= {"sites": list(self.sites), "classes": list(self.classes), "schema": _SCHEMA}
        data["blocks"] = list(self.blocks) if isinstance(self.blocks, tuple) else self.blocks
        data["descent"] = None if self.descent is None else self.descent.to_dict()
        data["n"] = list(self.n) if isinstance(self.n, tuple) else self.n
        data["modulus"] = None if self.modulus is None else str(self.modulus)
        data |= {"domain": domain_to_json(self.domain), "budget": self.budget.to_dict()}
        return json.dumps(data, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Study:
        """The study that `to_json` wrote."""
        try:
            data = json.loads(text)
            if data.pop("schema") != _SCHEMA:
                raise ArgumentError(f"this version reads studies of schema {_SCHEMA}.")
            modulus = data.pop("modulus")
            domain, budget = domain_from_json(data.pop("domain")), Budget.from_dict(data.pop("budget"))
            if data["descent"] is not None:
                data["descent"] = Descent.from_dict(data["descent"])
            return cls(**data, domain=domain, budget=budget, modulus=None if modulus is None else int(modulus))
        except DPManifoldsError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise ArgumentError(f"this is no study as Study.to_json writes it ({problem}).") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Study) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())
