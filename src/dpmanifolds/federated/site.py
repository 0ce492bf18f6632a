"""A site: records that stay where they are, a policy of its own, and answers that hold its share of the noise.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
>>> study = dpm.Study("mean", ball, dpm.GaussianDP(2.0), n=90, sites=["a", "b", "c"])
>>> strict = dpm.Site("a", np.zeros((30, 2)), policy=dpm.SitePolicy(most=dpm.GaussianDP(1.0)))
>>> strict.answer(dpm.Coordinator(study).round)
Traceback (most recent call last):
...
dpmanifolds.errors.RoundRefusedError: site 'a' refuses the round: it spends μ = 2, more than μ = 1. Nothing was drawn.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpmanifolds._points import taken
from dpmanifolds._validate import hide_records, shown
from dpmanifolds.errors import ArgumentError, DPManifoldsError, RoundRefusedError
from dpmanifolds.federated.gradients import GradientRule
from dpmanifolds.federated.policy import SitePolicy
from dpmanifolds.federated.round import WITHIN_CLASS, Part, Round
from dpmanifolds.federated.rules import Squares, records_live_on
from dpmanifolds.ledger.records import canonical
from dpmanifolds.ledger.runs import NewRun, PaidRun, find_run
from dpmanifolds.records.source import record_form
from dpmanifolds.releases.classes import read_classes
from dpmanifolds.releases.statistic import open_account
from dpmanifolds.sums.outer import sum_outer
from dpmanifolds.sums.permutation import draw_seed
from dpmanifolds.sums.total import ExactSum, RecordSums, read_records

_SCHEMA = 1
_SHORTEST_KEY = 16


@dataclass(frozen=True)
class Answer:
    """What leaves a site: residues of integers with noise, and nothing else that depends on records.

    >>> answer = Answer("a", "9f", (3, 1, 2))
    >>> signed = answer.sign(b"a key of sixteen bytes or more")
    >>> signed.is_signed(b"a key of sixteen bytes or more"), answer.is_signed(b"a key of sixteen bytes or more")
    (True, False)
    >>> Answer.from_json(signed.to_json()) == signed
    True
    """

    site: str
    round: str
    """The hash of the round."""
    residues: tuple[int, ...]
    receipt: str | None = None
    """The hash of the entry that paid for it in the ledger of the site."""
    reproducible: bool = False
    """Made with a seed: for tests and teaching."""
    signature: str = ""

    def _body(self) -> str:
        told = [self.site, self.round, list(map(str, self.residues)), self.receipt, self.reproducible]
        return canonical(told)

    def _mac(self, key: bytes) -> str:
        _check_key(key)
        return hmac.new(key, b"dpmanifolds answer " + self._body().encode(), hashlib.sha256).hexdigest()

    def sign(self, key: bytes) -> Answer:
        """With an HMAC-SHA256 under a key that site and coordinator share."""
        return replace(self, signature=self._mac(key))

    def is_signed(self, key: bytes) -> bool:
        """Whether it is what was signed under this key."""
        return hmac.compare_digest(self.signature.encode(errors="replace"), self._mac(key).encode())

    def to_json(self) -> str:
        """Residues as text, since they have more digits than the numbers of other languages."""
        told: dict[str, Any] = {
            "schema": _SCHEMA,
            "site": self.site,
            "round": self.round,
            "residues": list(map(str, self.residues)),
        }
        more = {"receipt": self.receipt, "reproducible": self.reproducible, "signature": self.signature}
        return json.dumps({**told, **more})

    @classmethod
    def from_json(cls, text: str | bytes) -> Answer:
        """What `to_json` wrote; anything else is refused."""
        try:
            data = json.loads(text)
            if data.pop("schema") != _SCHEMA:
                raise RoundRefusedError(f"this version reads answers of schema {_SCHEMA}.")
            residues = read_residues(data.pop("residues"))
            texts = (data["site"], data["round"], data["signature"])
            receipt_fits = isinstance(data["receipt"], str | None)
            if (
                not all(isinstance(each, str) for each in texts)
                or not receipt_fits
                or type(data["reproducible"]) is not bool
            ):
                raise TypeError("fields")
            return cls(residues=residues, **data)
        except DPManifoldsError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise RoundRefusedError(f"this is no answer as Answer.to_json writes it ({problem}).") from None


@dataclass
class Site:
    """Records that stay at one place, and answer rounds with their share of the noise.

    `points` in every form that can be read more than once; `labels` for class means, `group_by` to name a person for
    each record: a round for other units than records needs that, or a policy or a ledger that says its unit. What a
    round spends is entered in the account `dataset` of `ledger` before its noise is drawn. A round that was answered
    before is refused: its noise is never drawn a second time, and two secure sums with and without a site would show
    that site's answer. Without a ledger this object alone remembers that. With the transport "plain" the very same
    answer is given again, if this object still holds it. Records that are malformed count as the centre of the domain,
    inside of the promise. `key`: answers are signed with it. `rng`: for tests and teaching, without a ledger.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
    >>> asked = dpm.Coordinator(dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=90, sites=["a", "b", "c"])).round
    >>> site = dpm.Site("a", np.zeros((30, 2)))
    >>> answer = site.answer(asked)
    >>> len(answer.residues) == asked.length, answer.site
    (True, 'a')
    """

    name: str
    points: Any
    policy: SitePolicy = field(default_factory=SitePolicy)
    labels: Any = None
    group_by: Any = None
    ledger: Any = None
    dataset: str | None = None
    key: bytes | None = field(default=None, repr=False)
    rng: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ArgumentError(f"must be a text; got {shown(self.name)}.", argument="name")
        if self.key is not None:
            _check_key(self.key)
        self._account = open_account(self.ledger, self.dataset, self.rng)
        self._answers: dict[str, Answer] = {}
        self._drawn: dict[str, object] = {}

    def answer(self, asked: Round) -> Answer:
        """Check the round, sum, charge the ledger, draw the share of noise: in this order."""
        kept = self._check(asked)
        if kept is not None:
            return kept
        # who is in which block of a test: of one draw for all parts, which knows nothing of the records
        cut = draw_seed(self._account.rng) if asked.parts[0].block is not None else 0
        whole = [self._sum(asked, part, cut) for part in asked.parts]
        receipt = self._spend(asked)
        numbers = [number for integers, _ in whole for number in integers]
        noise = asked.shares.draw(self._account.rng)
        noisy = [number + share for number, share in zip(numbers, noise, strict=True)]
        told = [1, asked.tag, *([] if asked.counted else [rows for _, rows in whole])]
        residues = tuple(number % asked.modulus for number in (*noisy, *told))
        made = Answer(self.name, asked.hash, residues, receipt, self._account.reproducible)
        made = made if self.key is None else made.sign(self.key)
        self._answers[asked.hash] = made
        return made

    def _refuse(self, why: str) -> RoundRefusedError:
        return RoundRefusedError(f"site {self.name!r} refuses the round: {why}. Nothing was drawn.")

    def _check(self, asked: Round) -> Answer | None:
        """Refuse, or give the answer to a plain round that was given before."""
        if not isinstance(asked, Round):
            raise ArgumentError(f"must be a Round; got {shown(asked)}.", argument="asked")
        if self.name not in asked.sites:
            raise self._refuse("it is for others")
        why = self.policy.refusal(asked)
        if why:
            raise self._refuse(why)
        if not self._says_unit(asked.unit.removesuffix(WITHIN_CLASS)):
            raise self._refuse(f"it promises something for each {asked.unit}, of which nothing is known here")
        classes = [part.label for part in asked.parts if part.label is not None]
        if classes and (self.labels is None or self.group_by is not None):
            raise self._refuse("it is about classes, and this site has no labels, or names persons")
        kept = self._answers.get(asked.hash)
        if kept is not None and asked.transport != "plain":
            raise self._refuse("it was answered before, and a second sum of fewer sites would show an answer")
        if kept is None and self._find_run(asked) is not None:
            raise self._refuse("it was answered before; send that answer again")
        return kept

    def _says_unit(self, unit: str) -> bool:
        """Whether this site, and not only whoever asks, says what neighbours differ in."""
        return unit == "record" or any(each is not None for each in (self.group_by, self.policy.unit, self.ledger))

    def _run_name(self, asked: Round) -> str:
        return f"round {asked.hash} of {self.dataset}"

    def _find_run(self, asked: Round) -> PaidRun | None:
        """What the ledger knows of an answer to this round."""
        ledger = self._account.ledger
        return None if ledger is None else find_run(ledger.path, self._run_name(asked))

    @hide_records()
    def _records(self, asked: Round, part: Part, cut: int) -> RecordSums:
        """Those of the class and block of a part, or all."""
        manifold = records_live_on(part.rule)
        guess = max(1, asked.count // len(asked.sites)) if asked.counted else None
        points = self.points
        if part.label is not None:
            # each record takes its form by itself, before classes are told apart
            points = record_form(manifold, points, allow_empty=True)
            count = int(manifold.batch_shape(points)[0])
            labels = list(dict.fromkeys(each.label for each in asked.parts))
            numbers, _ = read_classes(self.labels, count, labels, private=True, lenient=True)
            rows = np.flatnonzero(numbers == labels.index(part.label))
            if part.block is not None:
                rows = _block_rows(asked, part, [int(np.sum(numbers == each)) for each in range(2)], rows, cut)
            points = taken(points, rows)
            # a site may have no record of some class
            guess = guess or max(1, count)
        records = read_records(manifold, points, group_by=self.group_by, guess=guess)
        records.source.refuse_single_use()
        return records

    def _sum(self, asked: Round, part: Part, cut: int) -> tuple[list[int], int]:
        """The exact integers of a part, its count last where that gets noise, and the number of records."""
        if isinstance(part.rule, GradientRule):
            total, rows = part.rule.total(self.points, self.group_by, may_be_empty=asked.counted)
            return list(total.integers), rows
        records = self._records(asked, part, cut)
        if isinstance(part.rule, Squares):
            total = sum_outer(records.source, part.rule, records.persons)
            return _triangle(total, part.rule.shape[0]), total.rows
        total = records.total(part.rule)
        return [*total.integers, *([asked.weight * total.rows] if asked.weight else [])], total.rows

    def _spend(self, asked: Round) -> str | None:
        """Enter the promise, and that its one draw is made: durably, once."""
        account = self._account
        if account.ledger is None:
            # of several threads one draws
            mine = object()
            if self._drawn.setdefault(asked.hash, mine) is not mine:
                raise self._refuse("it was answered before")
            return None
        told: dict[str, Any] = {
            "round": asked.hash,
            "study": asked.study,
            "site": self.name,
            "sites": list(asked.sites),
        }
        told |= {"tolerated": asked.tolerated, "transport": asked.transport}
        what = f"{asked.statistic} at several sites, round {asked.number}"
        new = NewRun(1, name=self._run_name(asked))
        receipt = account.ledger.spend(self.dataset, asked.guarantee, what=what, parameters=told, run=new)
        run = self._find_run(asked)
        assert run is not None
        run.take(0)
        found: str = receipt.hash
        return found


def _block_rows(asked: Round, part: Part, sizes: list[int], rows: np.ndarray, cut: int) -> np.ndarray:
    """The records of one block: all blocks of both classes are of one size at a site, whoever is left over is in none.

    Which records those are is drawn from `cut`; sizes are public.
    """
    labels = [each.label for each in asked.parts]
    names = list(dict.fromkeys(labels))
    size = min(found // labels.count(name) for found, name in zip(sizes, names, strict=True))
    order = np.random.default_rng([cut, names.index(part.label)]).permutation(rows)
    assert part.block is not None
    return np.sort(order[part.block * size : (part.block + 1) * size])


def _check_key(key: Any) -> None:
    if not isinstance(key, bytes) or len(key) < _SHORTEST_KEY:
        raise ArgumentError(f"must be {_SHORTEST_KEY} random bytes or more.", argument="key")


def read_residues(data: Any) -> tuple[int, ...]:
    """Whole numbers from the text that they were written in, and from nothing else.

    >>> read_residues(["3", "18446744073709551615"])
    (3, 18446744073709551615)
    """
    if not isinstance(data, list) or not all(isinstance(each, str) for each in data):
        raise RoundRefusedError("residues must be a list of texts.")
    if not all(each.isascii() and each.isdecimal() for each in data):
        raise RoundRefusedError("residues must be whole numbers, in digits alone.")
    return tuple(map(int, data))


def _triangle(total: ExactSum, width: int) -> list[int]:
    """The diagonal of a symmetric sum, then what is above it row by row."""
    whole = total.integers
    above = [whole[row * width + column] for row in range(width) for column in range(row + 1, width)]
    return [whole[row * (width + 1)] for row in range(width)] + above
