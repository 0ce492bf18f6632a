"""The coordinator: asks rounds, adds up what comes back, and makes the release that the transport supports.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> from dpmanifolds.federated import sum_in_process
>>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=1.0)
>>> X = ball.clip(dpm.Sphere(2).random_point(600, rng=0))
>>> study = dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=600, sites=["a", "b", "c"], steps=2)
>>> sites = [dpm.Site(name, part, rng=7) for name, part in zip("abc", np.split(X, 3))]
>>> coordinator = dpm.Coordinator(study)
>>> while coordinator.round is not None:
...     release = coordinator.finish(sum_in_process(coordinator.round, sites))
>>> len(release.sites.rounds), len(release.stages), release.n
(2, 1, 600)

He holds the study, and for each round a sum and the names of those who are in it; nothing else is kept or written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from dpmanifolds._validate import shown
from dpmanifolds.errors import ArgumentError, DPManifoldsError, RoundRefusedError
from dpmanifolds.federated.block_test import SitesDecision, rank_blocks
from dpmanifolds.federated.engines import SummedAnswers, add_residues
from dpmanifolds.federated.round import Round
from dpmanifolds.federated.script import Heard
from dpmanifolds.federated.site import Answer
from dpmanifolds.federated.study import Study
from dpmanifolds.privacy import GaussianDP, Guarantee, compose
from dpmanifolds.releases import ClassMeans, Release
from dpmanifolds.releases.sites import SitesPart
from dpmanifolds.sums.shares import center_residues

_SCHEMA = 1
_THEOREM = "B1 and Gaussian noise in shares (docs/proofs/shares.md, federated.md)"
_MOST_RECORDS = 1 << 40
Outcome: TypeAlias = Release | ClassMeans | SitesDecision
"""What a study ends with."""


@dataclass(frozen=True)
class FinishedRound:
    """A round and the sum that came back."""

    asked: Round
    summed: SummedAnswers

    @property
    def names(self) -> tuple[str, ...]:
        """Who is in the sum."""
        return self.summed.names

    @cached_property
    def heard(self) -> tuple[Heard, ...]:
        """The noisy integers of each part, read from the residues."""
        asked, numbers = self.asked, list(self.summed.residues)
        rows: list[int | None] = [None] * len(asked.parts)
        if not asked.counted:
            rows = [*numbers[-len(rows) :]]
        found, first = [], 0
        for part, told in zip(asked.parts, rows, strict=True):
            last = first + part.body.noisy + (asked.weight > 0)
            found.append(Heard(center_residues(numbers[first:last], asked.modulus), told))
            first = last
        return tuple(found)

    @property
    def excess(self) -> float:
        """Noise in the sum over what is planned, for these sites and their records: below 1 where some are gone."""
        return float((len(self.names) / len(self.asked.sites)) ** 0.5)


class Coordinator:
    """Leads a study through its rounds, and makes the release.

    `round` is the round to be answered now, None once all are; `finish` takes the answers to it, or their sum. Fewer
    than k − t answers are refused: no release is made, and what sites have spent stays spent. `keys` holds the key
    that each site signs with: an answer that is not signed with it is refused.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
    >>> study = dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=90, sites=["a", "b", "c"], transport="plain")
    >>> coordinator = dpm.Coordinator(study)
    >>> coordinator.finish([dpm.Site("a", np.zeros((30, 2)), rng=0).answer(coordinator.round)])
    Traceback (most recent call last):
    ...
    dpmanifolds.errors.RoundRefusedError: 1 of 3 sites answered, and the promise needs 3: no release is made. What was
    spent stays in the ledgers of the sites; ask a new study, or one that tolerates more.
    """

    def __init__(self, study: Study, *, keys: Mapping[str, bytes] | None = None) -> None:
        if not isinstance(study, Study):
            raise ArgumentError(f"must be a Study; got {shown(study)}.", argument="study")
        self.study = study
        self.finished: tuple[FinishedRound, ...] = ()
        self._keys = keys
        self._next: Round | list[Release] = study.rehearse()

    @property
    def round(self) -> Round | None:
        """What sites are asked now; None where nothing is left to ask."""
        return self._next if isinstance(self._next, Round) else None

    @property
    def release(self) -> Outcome | None:
        """What was made of all rounds; None before the last."""
        return None if isinstance(self._next, Round) else self._made(self._next)

    def finish(self, answers: Iterable[Answer] | SummedAnswers) -> Outcome | None:
        """End the round with the sum that an engine made, or, where they travel plainly, with the answers.

        It gives the release, if the round was the last one. The sum tells how many answers it holds, and whether all of
        them are answers to this round.
        """
        asked = self._asked()
        if isinstance(answers, SummedAnswers):
            return self._finish(asked, answers)
        if asked.transport != "plain":
            raise RoundRefusedError(
                "this round promises that the coordinator sees the sum of the answers alone: hand over what the engine "
                "of the secure sum gave. Answers that he sees one by one need transport='plain'."
            )
        given = list(answers)
        for answer in given:
            self._check(asked, answer)
        names, seeded = tuple(answer.site for answer in given), any(answer.reproducible for answer in given)
        if len(set(names)) < len(names):
            raise RoundRefusedError("two answers come from the same site: each is in the sum once.")
        return self._finish(asked, SummedAnswers(add_residues(asked, given), names, "none", seeded))

    def _finish(self, asked: Round, summed: SummedAnswers) -> Outcome | None:
        numbers, who = [int(residue) for residue in summed.residues], summed.names
        if len(numbers) != asked.length or not all(0 <= number < asked.modulus for number in numbers):
            raise RoundRefusedError(f"a sum of this round has {asked.length} residues modulo {asked.modulus}.")
        if len(set(who)) < len(who) or not set(who) <= set(asked.sites):
            raise RoundRefusedError("the sum holds sites that this round did not ask.")
        first = asked.shares.dim
        count, tags = numbers[first], numbers[first + 1]
        if count != len(who) or tags != count * asked.tag % asked.modulus:
            raise RoundRefusedError(
                f"the sum is not that of {len(who)} answers to this round: an answer is missing, foreign or altered."
            )
        needed = len(asked.sites) - asked.tolerated
        if count < needed:
            raise RoundRefusedError(
                f"{count} of {len(asked.sites)} sites answered, and the promise needs {needed}: no release is made. "
                "What was spent stays in the ledgers of the sites; ask a new study, or one that tolerates more."
            )
        if not asked.counted and not all(0 <= rows <= _MOST_RECORDS for rows in numbers[first + 2 :]):
            raise RoundRefusedError("the sum tells no number of records: an answer was altered.")
        self._take(FinishedRound(asked, summed))
        return self.release

    def _asked(self) -> Round:
        if self.round is None:
            raise RoundRefusedError("all rounds of this study are finished: the release is made.")
        return self.round

    def _check(self, asked: Round, answer: Answer) -> None:
        if not isinstance(answer, Answer):
            raise ArgumentError(f"must be Answers; got {shown(answer)}.", argument="answers")
        if answer.site not in asked.sites:
            raise RoundRefusedError("an answer comes from a site that was not asked.")
        if answer.round != asked.hash:
            raise RoundRefusedError(f"the answer of {answer.site!r} is to another round.")
        if self._keys is not None and not (answer.site in self._keys and answer.is_signed(self._keys[answer.site])):
            raise RoundRefusedError(f"the answer of {answer.site!r} is not signed with the key of that site.")
        residues = answer.residues
        if len(residues) != asked.length or not all(0 <= each < asked.modulus for each in residues):
            raise RoundRefusedError(f"the answer of {answer.site!r} was cut or altered on its way.")
        first = asked.shares.dim
        if residues[first : first + 2] != (1, asked.tag):
            raise RoundRefusedError(f"the answer of {answer.site!r} was altered on its way.")

    def _take(self, done: FinishedRound) -> None:
        finished = (*self.finished, done)
        self._next = self.study.ask([each.heard for each in finished], done.asked.hash)
        self.finished = finished

    def _made(self, releases: list[Release]) -> Outcome:
        """As planned, with the promise of the rounds, the noise that is in the sums, and who may learn what."""
        promise = compose(*(done.asked.guarantee for done in self.finished))
        part = self._sites_part(promise)
        if self.study.statistic == "two-sample test":
            return self._decided(releases, promise, part)
        made = [self._told(release, number, promise, part) for number, release in enumerate(releases)]
        if not self.study.classes:
            return made[0]
        classes = [replace(release, statistic="class mean") for release in made]
        return ClassMeans(
            tuple(self.study.classes), tuple(classes), promise, self.study.budget, self.study.secret_labels
        )

    def _decided(self, releases: list[Release], promise: Guarantee, part: SitesPart) -> SitesDecision:
        """The noisy sums of blocks, ranked: post-processing."""
        study, told = self.study, [self._told(release, n, promise, part) for n, release in enumerate(releases)]
        assert isinstance(study.blocks, tuple)
        first, second = study.blocks
        means = np.stack([np.asarray(release.coordinates) for release in told])
        pvalue = rank_blocks(means, first)
        rows = told[0].n or 0
        return SitesDecision(
            rejected=pvalue <= study.level,
            pvalue=pvalue,
            level=study.level,
            classes=tuple(study.classes),
            blocks=(first, second),
            sizes=(first * rows, second * rows),
            difference=tuple(map(float, np.mean(means[:first], axis=0) - np.mean(means[first:], axis=0))),
            sigma=told[0].sigma * math.sqrt(1 / first + 1 / second),
            guarantee=promise,
            budget=study.budget,
            domain=study.domain,
            sites=part,
            reproducible=told[0].reproducible,
        )

    def _told(self, release: Release, number: int, promise: Guarantee, part: SitesPart) -> Release:
        if release.descent is not None:
            # one entry for all steps, with the noise of those that have most
            ratio = max(self._noise_ratio(done, number) for done in self.finished)
            details = replace(release.descent, sigma=ratio * release.descent.sigma)
            told: dict[str, Any] = {
                "guarantee": promise,
                "budget": self.study.budget,
                "theorem": _THEOREM,
                "sites": part,
            }
            told |= {"n": self.finished[-1].heard[number].rows, "reproducible": self._reproducible}
            return replace(release, sigma=ratio * release.sigma, descent=details, **told)
        stages = []
        for stage, done in zip((*release.stages, replace(release, stages=())), self.finished, strict=True):
            ratio = self._noise_ratio(done, number)
            error = stage.expected_error
            if error is not None:
                names = ("mean", "radius_90", "mean_at_edge")
                error = replace(error, **{name: ratio * getattr(error, name) for name in names})
            stages.append(
                replace(
                    stage,
                    guarantee=done.asked.guarantee,
                    budget=GaussianDP(done.asked.claim),
                    theorem=_THEOREM,
                    sigma=ratio * stage.sigma,
                    expected_error=error,
                    n=done.heard[number].rows,
                    reproducible=self._reproducible,
                )
            )
        *before, last = stages
        return replace(last, guarantee=promise, budget=self.study.budget, stages=tuple(before), sites=part)

    @property
    def _reproducible(self) -> bool:
        return any(done.summed.reproducible for done in self.finished)

    def _noise_ratio(self, done: FinishedRound, number: int) -> float:
        """Noise on a mean of a part over what is planned: by the sites that are gone, and by their records."""
        rows = done.heard[number].rows
        return done.excess * (1.0 if rows is None else self.study.counts[number] / max(1, rows))

    def _sites_part(self, promise: Guarantee) -> SitesPart:
        """What each who looks may learn (docs/proofs/federated.md, section 2)."""
        rounds, study = [done.asked for done in self.finished], self.study
        labels = {"adjacency": promise.adjacency, "unit": promise.unit}
        seen = [
            Guarantee.gaussian(done.asked.shares.mu(done.asked.moved, len(done.names)), **labels)
            for done in self.finished
        ]
        outside, claim = compose(*seen).as_gaussian().mu, promise.as_gaussian().mu
        plain, whole = study.transport == "plain", len(study.sites)
        gone = max(whole - len(done.names) for done in self.finished)
        etas = [asked.shares.log10_eta() for asked in rounds]
        return SitesPart(
            names=tuple(study.sites),
            tolerated=study.tolerated,
            transport=study.transport,
            engine=self.finished[-1].summed.engine,
            rounds=tuple(asked.hash for asked in rounds),
            answered=tuple(done.names for done in self.finished),
            outside=min(outside, claim),
            coordinator=claim if plain else min(outside, claim),
            coalition=claim,
            colluding=whole - 1 if plain else study.tolerated - gone,
            overflow=min(1.0, sum(asked.overflow for asked in rounds)),
            log10_eta=max(etas) if max(etas) > float("-inf") else None,
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """The study and the sums so far: all that the coordinator knows."""
        finished = [{"round": done.asked.hash, **done.summed.to_dict()} for done in self.finished]
        return json.dumps(
            {"schema": _SCHEMA, "study": json.loads(self.study.to_json()), "finished": finished}, indent=indent
        )

    @classmethod
    def from_json(cls, text: str | bytes, *, keys: Mapping[str, bytes] | None = None) -> Coordinator:
        """The coordinator that `to_json` wrote, ready for the next round: the rounds before are gone through again."""
        try:
            data = json.loads(text)
            if data["schema"] != _SCHEMA:
                raise ArgumentError(f"this version reads coordinators of schema {_SCHEMA}.")
            made = cls(Study.from_json(json.dumps(data["study"])), keys=keys)
            for done in data["finished"]:
                if made._asked().hash != done["round"]:
                    raise RoundRefusedError("a round that is told as finished is not the one that the study asks.")
                made.finish(SummedAnswers.from_dict(done))
        except DPManifoldsError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise ArgumentError(f"this is no coordinator as Coordinator.to_json writes it ({problem}).") from None
        return made

    def __repr__(self) -> str:
        return f"Coordinator({self.study.statistic}, {len(self.finished)} rounds finished, now {self.round!r})"
