"""A round: one sum that several sites are asked for, written down so that each of them can judge it by itself.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.SPD(2, "log-euclidean"), np.eye(2), radius=1.0)
>>> study = dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=500, sites=["a", "b", "c"], tolerated=1)
>>> asked = dpm.Coordinator(study).round
>>> dpm.Round.from_json(asked.to_json()) == asked, asked.guarantee.as_gaussian().mu <= 1.0
(True, True)

What one record moves the sum by, and what is promised for it, is worked out from the rules and from the number of
sites, tolerated ones and scale of the shares (docs/proofs/federated.md). A round may state any numbers: one that claims
less than it would spend cannot be made, nor read from JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from dpmanifolds._validate import choice, positive_integer, positive_number, shown
from dpmanifolds.descent.losses import FrechetMedianLoss
from dpmanifolds.errors import RoundRefusedError
from dpmanifolds.federated.gradients import GradientRule
from dpmanifolds.federated.rules import Body, Rule, Squares, body_of, read_rule, write_rule
from dpmanifolds.ledger.records import canonical
from dpmanifolds.privacy import Guarantee
from dpmanifolds.privacy.guarantee import ADJACENCIES
from dpmanifolds.releases.written import read_json
from dpmanifolds.sums.contribution import DistanceContribution, TangentContribution
from dpmanifolds.sums.counts import DistanceBins
from dpmanifolds.sums.joint_moment import JointContribution
from dpmanifolds.sums.mechanism import root_up
from dpmanifolds.sums.moments import TangentSquareContribution
from dpmanifolds.sums.shares import NoiseShares

TRANSPORTS = ("secure-sum", "plain")
"""How answers travel: so that the coordinator sees their sum alone, or so that he sees each of them."""
RULES: dict[str, tuple[type, ...]] = {
    "mean": (TangentContribution, DistanceBins),
    "variance": (TangentContribution, DistanceBins, DistanceContribution),
    "class means": (TangentContribution,),
    "covariance": (TangentContribution, DistanceBins, JointContribution),
    "second moment": (TangentContribution, DistanceBins, JointContribution),
    "tangent PCA": (TangentContribution, TangentSquareContribution),
    "median": (GradientRule,),
    "descent": (GradientRule,),
    "two-sample test": (TangentContribution,),
}
"""What each statistic sums."""
LABELLED = ("class means", "two-sample test")
"""What is asked for by class."""
WITHIN_CLASS = " within class"
_SCHEMA = 1
_FEWEST_BITS, _MOST_BITS = 31, 256
_TAG_BITS = 31
_MOST_SITES = 10_000
_LONGEST_NAME = 200
# printable, as Unicode has it, and yet seen by nobody: joiners, fillers, variation selectors, a blank of Braille
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]")


class Part(NamedTuple):
    """One of several sums that a round asks for together."""

    rule: Rule
    label: str | int | None = None
    """Of the class whose records are summed; None for all."""
    block: int | None = None
    """Of the class, where its records are cut at random into blocks of one size; None: all of them."""

    @property
    def body(self) -> Body:
        """Where one record's integers lie."""
        return body_of(self.rule)


def noise_shares(parties: int, tolerated: int, transport: str, sigma: float, dim: int, halved: int) -> NoiseShares:
    """What each site draws. Where each answer is seen by itself, one share alone keeps the promise: t = k − 1."""
    return NoiseShares(parties, parties - 1 if transport == "plain" else tolerated, sigma, dim, halved)


@dataclass(frozen=True, eq=False, kw_only=True)
class Round:
    """What every site is asked for: all of it public, and all that a site needs to check what it would spend.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
    >>> study = dpm.Study("mean", ball, dpm.GaussianDP(0.5), n=90, sites=["a", "b", "c"])
    >>> asked = dpm.Coordinator(study).round
    >>> asked.number, asked.moved == 2 * 2**29, len(asked.hash)
    (1, True, 64)
    """

    study: str
    """The name of the study that it belongs to, new for each study."""
    number: int
    """From 1 on."""
    statistic: str
    parts: tuple[Part, ...]
    count: int
    """The public number of records at all sites, or the public guess of it."""
    weight: int
    """c₀: what a record adds to the count of its part, which gets noise too; 0 where numbers of records are public."""
    secret_labels: bool
    """Whether the class of a record is protected."""
    adjacency: str
    unit: str
    sites: tuple[str, ...]
    tolerated: int
    """t: how many sites may be gone or tell their shares to whoever looks, together."""
    transport: str
    sigma: float
    """σ of each site's share, in steps."""
    modulus: int
    """Answers are residues of it."""
    claim: float
    """The μ that it says it spends."""
    before: str
    """The hash of the round before it; empty for the first."""

    def __post_init__(self) -> None:
        choice("adjacency", self.adjacency, ADJACENCIES)
        choice("transport", self.transport, TRANSPORTS)
        positive_number("claim", self.claim)
        for name, least in (("number", 1), ("count", 1), ("weight", 0), ("tolerated", 0)):
            positive_integer(name, getattr(self, name), at_least=least)
        if not all(map(is_name, (self.study, self.statistic, self.unit))):
            raise RoundRefusedError("study, statistic and unit of a round must be short texts, in letters that show.")
        numbers = (self.number, self.count, self.weight, self.tolerated, self.sigma, self.claim)
        if type(self.secret_labels) is not bool or any(isinstance(each, bool) for each in numbers):
            raise RoundRefusedError("numbers of a round must be numbers, and whether labels are secret true or false.")
        if not isinstance(self.before, str) or not re.fullmatch("(?:[0-9a-f]{64})?", self.before):
            raise RoundRefusedError("the round before must be told by its hash.")
        if not 1 <= len(set(self.sites)) == len(self.sites) <= _MOST_SITES or not all(map(is_name, self.sites)):
            raise RoundRefusedError("sites of a round must be different names, in letters that show.")
        if self.tolerated >= len(self.sites):
            raise RoundRefusedError(f"of {len(self.sites)} sites at least one must be left; t = {self.tolerated}.")
        if type(self.modulus) is not int or not _FEWEST_BITS < self.modulus.bit_length() <= _MOST_BITS:
            raise RoundRefusedError(f"a modulus has {_FEWEST_BITS} to {_MOST_BITS} bits.")
        self._check_parts()
        if not self.mu <= self.claim:
            raise RoundRefusedError(f"the round claims to spend μ = {self.claim:g}, and spends {self.mu:g}.")

    def _check_parts(self) -> None:
        labels, places = [part.label for part in self.parts], [(part.label, part.block) for part in self.parts]
        if any(type(each) not in (str, int, type(None)) for place in places for each in place):
            # true would be the class 1
            raise RoundRefusedError("classes of a round must be texts or whole numbers, and blocks whole numbers.")
        if not self.parts or len(set(places)) < len(places) or (None in labels and len(labels) > 1):
            raise RoundRefusedError("the parts of a round must be of different classes.")
        blocks: dict[str | int | None, set[int | None]] = {}
        for label, block in places:
            blocks.setdefault(label, set()).add(block)
        cut = self.statistic == "two-sample test"
        if any(found != (set(range(len(found))) if cut else {None}) for found in blocks.values()):
            raise RoundRefusedError("blocks are for tests, numbered from 0 in each class.")
        if cut and (len(blocks) != 2 or self.counted):
            raise RoundRefusedError("a test is of two classes whose numbers of records are public.")
        if None not in labels and not self.secret_labels and not self.unit.endswith(WITHIN_CLASS):
            # class counts are told: a record that changes its class is not protected, and no promise may say so
            raise RoundRefusedError(f"where classes are public the unit must end in {WITHIN_CLASS!r}.")
        alone = [part.rule for part in self.parts if isinstance(part.rule, Squares | GradientRule)]
        if alone and (len(labels) > 1 or self.weight):
            # squares count by a constant coordinate, gradients not at all
            raise RoundRefusedError("squares and gradients are summed in a round of their own, with no count beside.")
        # policies go by the name of the statistic
        kinds = RULES.get(self.statistic, ())
        if not all(isinstance(part.rule, kinds) for part in self.parts) or (None in labels) == (
            self.statistic in LABELLED
        ):
            raise RoundRefusedError(f"such sums are not asked for {shown(self.statistic)}.")
        losses = {type(rule.loss) for rule in alone if isinstance(rule, GradientRule)}
        if self.statistic == "median" and losses != {FrechetMedianLoss}:
            raise RoundRefusedError("gradients of another loss are not asked for a median.")

    @property
    def counted(self) -> bool:
        """Whether numbers of records are protected: then no site tells its own."""
        return self.secret_labels or self.adjacency == "add-remove-one"

    @cached_property
    def moved(self) -> int:
        """How far one record moves the sum in ℓ2, in steps, rounded up (docs/proofs/federated.md, section 1)."""
        alone = max(part.body.alone for part in self.parts) + self.weight**2
        if self.adjacency == "add-remove-one":
            return root_up(alone)
        apart = max(part.body.apart for part in self.parts)
        return root_up(max(apart, 2 * alone) if self.secret_labels else apart)

    @cached_property
    def shares(self) -> NoiseShares:
        """What each site draws."""
        bodies = [part.body for part in self.parts]
        dim = sum(body.noisy + (self.weight > 0) for body in bodies)
        halved = sum(body.halved for body in bodies)
        return noise_shares(len(self.sites), self.tolerated, self.transport, self.sigma, dim, halved)

    @cached_property
    def mu(self) -> float:
        """What is spent of the records of a site, if at least k − t sites add their shares and tell nobody."""
        return self.shares.mu(self.moved)

    @property
    def guarantee(self) -> Guarantee:
        """The same as a promise: what a site enters into its ledger."""
        return Guarantee.gaussian(self.mu, adjacency=self.adjacency, unit=self.unit)

    @property
    def tag(self) -> int:
        """A number that stands for the round: every answer holds it."""
        return int(self.hash[:16], 16) >> (64 - _TAG_BITS)

    @property
    def length(self) -> int:
        """How many residues an answer has: noisy ones, then 1, the tag, and numbers of records that are public."""
        return self.shares.dim + 2 + (0 if self.counted else len(self.parts))

    @cached_property
    def overflow(self) -> float:
        """A bound on the chance that the sum is misread modulo the modulus."""
        largest = self.count * max(*(part.body.largest for part in self.parts), self.weight)
        return self.shares.overflow_probability(self.modulus.bit_length() - 1, largest)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of its canonical JSON."""
        return hashlib.sha256(canonical(self._as_dict()).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Round) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        sites = f"{len(self.sites)} sites, t={self.tolerated}, {self.transport}"
        return f"Round({self.number} of {self.study!r}: {self.statistic}, μ={self.mu:.4g}, {sites}, {self.hash[:12]})"

    def _as_dict(self) -> dict[str, Any]:
        names = (
            "study number statistic count weight secret_labels adjacency unit tolerated transport sigma claim before"
        )
        return {
            "schema": _SCHEMA,
            **{name: getattr(self, name) for name in names.split()},
            "before": self.before,
            "sites": list(self.sites),
            "parts": [{**part._asdict(), "rule": write_rule(part.rule)} for part in self.parts],
            # of more digits than the numbers of other languages hold
            "modulus": str(self.modulus),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Everything, every float bit for bit; the hash comes along for the reader."""
        return json.dumps({**self._as_dict(), "hash": self.hash}, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Round:
        """The round that `to_json` wrote; anything else, or a hash of something else, is refused."""
        with read_json(cls, text, _SCHEMA, refused=RoundRefusedError) as data:
            told = data.pop("hash")
            parts = tuple(Part(read_rule(part["rule"]), part["label"], part["block"]) for part in data.pop("parts"))
            number = data.pop("modulus")
            modulus = int(number) if isinstance(number, str) and number.isdecimal() else -1
            if not isinstance(data["sites"], list):
                raise TypeError("sites")
            made = cls(**{**data, "parts": parts, "sites": tuple(data["sites"]), "modulus": modulus})
            if made.hash != told:
                raise RoundRefusedError("the round was altered on its way: its hash is another one.")
        return made


def is_name(name: Any) -> bool:
    """Whether one can tell it from others by reading it: short, no space around it, and nothing that does not show.

    Letters are composed, in their plain form (NFKC). Those of different alphabets may look alike all the same: whoever
    knows the sites by name lets a program compare (`SitePolicy.sites`).

    >>> is_name("Zürich 2"), is_name("Zu\u0308rich 2"), is_name("north\ufe0f"), is_name("")
    (True, False, False, False)
    """
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or name != name.strip():
        return False
    return name.isprintable() and not _UNSEEN.search(name) and unicodedata.is_normalized("NFKC", name)
