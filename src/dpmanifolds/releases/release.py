"""What comes out of the front door: a value and everything that is promised about it.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.0)
>>> release = dpm.private_mean(dpm.SPD(2).random_point(200, rng=0), ball, dpm.PureDP(1.0), rng=1)
>>> dpm.Release.from_json(release.to_json()) == release
True
>>> release.spent
PureDP(epsilon=1.0)
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import numpy as np

from dpmanifolds._points import host, on_host
from dpmanifolds._validate import choice
from dpmanifolds._words import tell_percent
from dpmanifolds.descent.descent import DescentDetails
from dpmanifolds.domains import Ball, Domain, Ellipsoid
from dpmanifolds.errors import ArgumentError, NoiseExceedsDomainWarning
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity
from dpmanifolds.releases.population import SpreadNoise
from dpmanifolds.releases.sites import SitesPart
from dpmanifolds.releases.written import (
    WrittenAnswer,
    domain_from_json,
    domain_to_json,
    point_from_json,
    point_to_json,
    read_json,
)
from dpmanifolds.sums import Draw, ExpectedError, Mechanism
from dpmanifolds.sums.public import PublicPart

_SCHEMA = 3
_POINTS = ("mean", "extrinsic mean", "value", "median", "class mean", "cluster mean", "mean and spread")
_CENTERS = ("mean", "extrinsic mean", "median", "mean and spread")
_DIRECTIONS = ("second moment", "covariance", "counts", "squares", "contrast")
# a mean of records of the ball that lies so far out has hardly any records left that were not clipped
_EDGE = 0.85
_AT_THE_EDGE = (
    "the released point lies at the edge of the ball: most records probably lie outside of it and were clipped. Check "
    "the unit and the centre: validate looks at the records, the clipped share asks them privately"
)
_STANDS_IN = (
    " It stands in for the Fréchet mean, from which it differs where records spread unevenly; the 90 % include by how "
    "much at most, for records within half the injectivity radius."
)
_NUMERICS = {
    "rounded": "rounded: exactly rounded noise on a public lattice; the promise holds for the bits that are "
    "shown, given ideal random bits",
    "lattice": "lattice: integer noise of OpenDP; the promise holds for the bits that are shown, given ideal "
    "random bits",
    "idealized": "idealized: the promise holds for real numbers; floating-point draws may leak through "
    "low-order bits, and the time of a draw may depend on the records",
}


def this_version() -> str:
    """The version of the package, as an answer keeps it."""
    from dpmanifolds import __version__

    return __version__


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(WrittenAnswer):
    """A private answer. It holds no trace of the un-noised value, no count of clipped records and no seed.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.0)
    >>> release = dpm.private_mean(dpm.SPD(2).random_point(200, rng=0), ball, dpm.PureDP(1.0))
    >>> release.statistic, release.mechanism, release.numerics, release.n
    ('mean', 'wrapped-laplace', 'rounded', 200)
    >>> dpm.Release.from_json(release.to_json()) == release
    True
    """

    statistic: str
    """What was released: "mean", "median", "variance", "value", …"""
    value: Any
    """A point of the manifold (NumPy; of `private_descent` in the library of the records), or a number."""
    guarantee: Guarantee
    """What is promised, in full; of all `stages` together."""
    budget: Budget | None
    """What was asked for; None for a descent with a `sigma` of one's own."""
    mechanism: str
    theorem: str
    """Why the promise holds."""
    numerics: str
    """"rounded", "lattice" or "idealized"; see `numerics_statement`."""
    sensitivity: Sensitivity
    sigma: float
    """σ of the noise."""
    step: float | None
    """Of the lattice or grid of coordinates that the value lies on; None where it lies on none."""
    n: int | None
    """The public number of records (persons, where records were grouped); None where it played no part."""
    domain: Domain
    """The public promise that every record (or a user's own value) was clipped to."""
    expected_error: ExpectedError | None
    """None where it depends on the records."""
    reason: str
    """Why this mechanism."""
    reproducible: bool
    """Made with a seed: for tests and teaching, never for real records. A ledger refuses it."""
    coordinates: np.ndarray | None = None
    """The noisy coordinates at `base` (the noisy number) that `value` was made of, before any post-processing."""
    base: Any = None
    """The public point that records were looked at from, where that is not the centre of the domain."""
    stages: tuple[Release, ...] = ()
    """Earlier releases that this one was built on; the guarantee pays for them too."""
    descent: DescentDetails | None = None
    """Steps, batches and noise, where the value was descended to; `domain` is then where iterates were kept."""
    public: PublicPart | None = None
    """What a public sample contributed, where there was one."""
    spread: SpreadNoise | None = None
    """What noise is on a spread that was released with the mean, where one was: behind it in `coordinates`."""
    sites: SitesPart | None = None
    """Who took part, where the records were those of several sites."""
    version: str = field(default_factory=this_version)
    """Of the package that made it."""

    @property
    def manifold(self) -> Manifold:
        """Where the records live."""
        return self.domain.manifold

    @property
    def viewpoint(self) -> Any:
        """The public point whose tangent space the noisy coordinates are in (NumPy): `base`, or the centre."""
        return host(self.domain.center) if self.base is None else self.base

    @property
    def spent(self) -> Budget:
        """The guarantee, read as the kind of budget that was asked for; its μ where none was."""
        return self.guarantee.as_gaussian() if self.budget is None else self.budget.read(self.guarantee)

    @property
    def promise(self) -> str:
        """What was spent, in one line; what was asked for, where they differ by rounding alone; so little noise that no
        budget holds it promises nothing.
        """
        try:
            spent = self.spent
        except ArgumentError:
            return "no promise of use"
        asked = self.budget
        return repr(asked if asked is not None and np.allclose(astuple(spent), astuple(asked), 1e-12, 0.0) else spent)

    @property
    def clipping_statement(self) -> str:
        """What clipping did; how many records it touched is private."""
        if self.descent is not None:
            return (
                f"The gradient of every record was shortened to the public norm {self.descent.clip_norm:.4g}. How many "
                "were is private and not told."
            )
        if self.statistic == "extrinsic mean":
            return (
                "Every record was embedded in the flat space around the manifold, and shortened to the public body "
                "that holds the domain there. How many were is private and not told."
                + (_STANDS_IN if self.expected_error is not None and self.expected_error.target > 0 else "")
            )
        if self.expected_error is not None and self.expected_error.clipping > 0:
            body = f"a ball whose radius, {self.domain.radius:.4g}, was"
            if isinstance(self.domain, Ellipsoid):
                body = f"an ellipsoid whose axes, up to {self.domain.radius:.4g}, were"
            return (
                f"Every record was clipped onto {body} paid for. It moved "
                f"the mean of the records of the public ball by at most {self.expected_error.clipping:.4g} in 19 of 20 "
                "releases, which the 90 % include; of records outside of the public ball nothing is promised."
            )
        where = "domain"
        if isinstance(self.domain, Ball):
            where = f"within {self.domain.radius:.4g} of the public centre"
        elif isinstance(self.domain, Ellipsoid):
            where = f"an ellipsoid of {self.domain.axes.size} axes up to {self.domain.radius:.4g} at the public centre"
        return (
            f"Every record was clipped onto the public domain ({where}). How many were moved is private and not told. "
            "Errors are about the clipped records; what clipping moved is not in them."
        )

    @property
    def noise_warning(self) -> str:
        """That the noise is as large as the domain, where it is: a function of the expected error and of the domain.

        Numbers are no points of the domain, and single directions can stand out of noise that is longer in all.
        """
        error = self.expected_error
        points = not isinstance(self.value, float) and self.statistic not in _DIRECTIONS
        return NoiseExceedsDomainWarning.words if points and error is not None and error.exceeds(self.domain) else ""

    @property
    def edge_warning(self) -> str:
        """That the released point lies where only clipped records put a mean: a wrong unit or centre, most likely.

        A function of the release and of public facts, so it costs nothing: at least 0.85 of the radius from the centre
        after the expected error is taken off. It is told where the release is told, never by an error after spending.
        A radius that was paid for is as small as most records allow, and says nothing of this kind.
        """
        error, ball = self.expected_error, self.domain
        if self.statistic not in _CENTERS or error is None or error.clipping > 0 or not isinstance(ball, Ball):
            return ""
        far = float(ball.manifold.dist(host(ball.center), host(self.value)))
        return _AT_THE_EDGE if far - error.mean >= _EDGE * ball.radius else ""

    @property
    def error_statement(self) -> str:
        """The expected error as a distance, in percent, and in the units of the records where the manifold has some."""
        error = self.expected_error
        if error is None:
            return "it depends on the records, and is not stated"
        if self.statistic == "clipped share":
            share = f". The average is {tell_percent(error.mean)}{self.counted}"
        elif isinstance(self.value, float):
            share = f". The average is {tell_percent(error.mean / abs(self.value))} of the value" if self.value else ""
        elif self.statistic in _POINTS:
            share = f". The average is {error.relate(self.domain, host(self.value))}"
        else:
            share = ""
        return f"{error}{share}"

    @property
    def counted(self) -> str:
        """Of how many of what is protected, with a blank before: " of 60 persons"; empty where n played no part."""
        if self.n is None:
            return ""
        return f" of {self.n} {self.guarantee.unit.partition(' within ')[0]}{'s' if self.n != 1 else ''}"

    @property
    def numerics_statement(self) -> str:
        """What floating point leaves of the promise."""
        return _NUMERICS[self.numerics]

    @property
    def advisories(self) -> tuple[str, ...]:
        """What is known to be wrong with such releases of its version, its stages included (docs/security.md)."""
        from dpmanifolds.ledger.advisories import advisories_for

        own = map(str, advisories_for(self.version, self.statistic, mechanism=self.mechanism, budget=self.budget))
        return tuple(dict.fromkeys([*own, *(text for stage in self.stages for text in stage.advisories)]))

    def summary(self) -> str:
        """One page in plain language."""
        from dpmanifolds.releases.summary import summarize_release

        return summarize_release(self)

    def __repr__(self) -> str:
        error = "" if self.expected_error is None else f", error {self.expected_error.mean:.3g} on average"
        seeded = ", reproducible (not for real records)" if self.reproducible else ""
        seeded += ", at the edge of the ball" if self.edge_warning else ""
        return (
            f"Release({self.statistic} on {self.manifold!r}, {self.promise}, {self.mechanism} ({self.numerics}), "
            f"n={self.n}{error}{seeded})"
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """Everything, every float bit for bit."""
        return json.dumps(self._as_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    def _as_dict(self) -> dict[str, Any]:
        value = self.value
        error = {} if self.expected_error is None else asdict(self.expected_error)
        return {
            "schema": _SCHEMA,
            "version": self.version,
            "statistic": self.statistic,
            "value": {"number": value} if isinstance(value, float) else {"point": point_to_json(on_host(value))},
            "coordinates": None if self.coordinates is None else self.coordinates.tolist(),
            "base": None if self.base is None else point_to_json(self.base),
            "guarantee": json.loads(self.guarantee.to_json()),
            "budget": None if self.budget is None else self.budget.to_dict(),
            "mechanism": self.mechanism,
            "theorem": self.theorem,
            "numerics": self.numerics,
            "sensitivity": asdict(self.sensitivity),
            "sigma": self.sigma,
            "step": self.step,
            "n": self.n,
            "domain": domain_to_json(self.domain),
            # infinity is no JSON number
            "expected_error": {key: None if entry == math.inf else entry for key, entry in error.items()},
            "reason": self.reason,
            "reproducible": self.reproducible,
            "stages": [stage._as_dict() for stage in self.stages],
            "descent": None if self.descent is None else asdict(self.descent),
            "public": None if self.public is None else asdict(self.public),
            "spread": None if self.spread is None else asdict(self.spread),
            "sites": None if self.sites is None else self.sites.to_dict(),
        }

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that `to_json` wrote; anything else is refused."""
        with read_json(cls, text) as data:
            release = cls._from_dict(data)
            # what cannot be written again, or told, was never written
            release.to_json()
            release.summary()
        return release

    @classmethod
    def _from_dict(cls, data: Any) -> Release:
        if data["schema"] not in (1, 2, _SCHEMA):
            raise ArgumentError(f"this version reads releases of schema 1 to {_SCHEMA}; got {data['schema']!r}.")
        if data["schema"] < _SCHEMA:
            # schemas 1 and 2 called sigma "scale"
            data = {**data, "sigma": data["scale"]}
        error: dict[str, Any] = {
            key: math.inf if entry is None else bool(entry) if key == "simulated" else float(entry)
            for key, entry in data["expected_error"].items()
        }
        value = data["value"]
        given = {key: data[key] for key in ("statistic", "mechanism", "theorem", "numerics", "reason", "version")}
        if not all(isinstance(entry, str) for entry in given.values()):
            raise TypeError("text fields")
        choice("numerics", given["numerics"], tuple(_NUMERICS))
        return cls(
            **given,
            value=float(value["number"]) if "number" in value else point_from_json(value["point"]),
            coordinates=None if data["coordinates"] is None else np.asarray(data["coordinates"], dtype=np.float64),
            base=None if data.get("base") is None else point_from_json(data["base"]),
            guarantee=Guarantee.from_json(json.dumps(data["guarantee"])),
            budget=None if data["budget"] is None else Budget.from_dict(data["budget"]),
            sensitivity=Sensitivity(**data["sensitivity"]),
            sigma=float(data["sigma"]),
            step=None if data["step"] is None else float(data["step"]),
            n=data["n"] if data["n"] is None else int(data["n"]),
            domain=domain_from_json(data["domain"]),
            expected_error=ExpectedError(**error) if error else None,
            reproducible=bool(data["reproducible"]),
            stages=tuple(cls._from_dict(stage) for stage in data["stages"]),
            descent=None if data.get("descent") is None else DescentDetails(**data["descent"]),
            public=None if data.get("public") is None else PublicPart(**data["public"]),
            spread=None if data.get("spread") is None else SpreadNoise(**data["spread"]),
            sites=None if data.get("sites") is None else SitesPart.from_dict(data["sites"]),
        )


def release_of(
    mechanism: Mechanism,
    drawn: Draw,
    *,
    statistic: str,
    budget: Budget,
    n: int | None,
    reason: str,
    reproducible: bool,
    domain: Domain | None = None,
    base: Any = None,
) -> Release:
    """What one mechanism let out, on its own; `domain` where the value lives elsewhere than the records.

    `base` is where records were looked from, unless from the centre.
    """
    return Release(
        statistic=statistic,
        value=drawn.point,
        coordinates=drawn.coordinates,
        base=base,
        guarantee=mechanism.guarantee,
        budget=budget,
        mechanism=mechanism.name,
        theorem=mechanism.theorem,
        numerics=mechanism.numerics,
        sensitivity=mechanism.sensitivity,
        sigma=mechanism.sigma,
        step=mechanism.step,
        n=n,
        domain=domain or mechanism.facts.domain,
        expected_error=mechanism.expected_error,
        reason=reason,
        reproducible=reproducible,
    )
