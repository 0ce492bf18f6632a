"""The private mean: tangent steps of exact sums, or, by name, noise around the Fréchet mean itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpmanifolds._validate import auto_or_integer, choice
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget
from dpmanifolds.releases.axes import check_basis, mean_by_axes
from dpmanifolds.releases.public_sample import read_sample
from dpmanifolds.releases.refine import refined_mean
from dpmanifolds.releases.refine_plan import decide_rounds
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, check_request, domain_first, warn_of_noise
from dpmanifolds.sums import MECHANISMS, NUMERICS, TANGENT
from dpmanifolds.sums.steps import is_wide
from dpmanifolds.sums.total import RecordSums

_KINDS = ("frechet", "extrinsic")


@domain_first
def private_mean(
    points: Any,
    domain: Domain,
    budget: Budget,
    *,
    kind: str = "frechet",
    mechanism: str = "auto",
    numerics: str = "safe",
    steps: int | str = "auto",
    refine: int | str = "auto",
    basis: Any = None,
    public_sample: Any = None,
    group_by: Any = None,
    adjacency: str = "replace-one",
    n_guess: int | None = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """The mean of `points` (n, *point_shape), clipped to the public `domain`, within `budget`.

    Each record becomes integers on its own (log at the public centre, shortened to the radius); their sum is exact, and
    noise is added once. So the promise holds down to the last bit, for every manifold and every arithmetic. Where the
    metric is flat that is the mean of the clipped records; elsewhere it is one step towards the Fréchet mean, and
    further `steps` go on from the point that was released, each with its share of the budget: "auto" takes as many as
    public facts suggest. In a ball so large that the Fréchet mean need not be unique, what is released is the point
    that the steps reach.

    `points` may also be a memory map, a Zarr array, a Dask array, a list of blocks, or a function that returns a fresh
    iterator over blocks: they are read and summed block by block. An iterator that can be read only once will do for
    one step.

    - `mechanism`, `numerics`: the noise with the smallest expected error is taken unless one is named, from public
      facts alone. "riemannian-laplace", "riemannian-gaussian" and "k-norm-gradient" (with numerics="idealized") draw
      around the Fréchet mean on the curved space, promised for real numbers; "direct" adds noise to the Fréchet mean,
      with a bound on all rounding charged. They hold all records in memory.
    - `kind="extrinsic"` releases another mean: the point nearest to the mean of records in the flat space around the
      manifold (vectors of a sphere, projectors of subspaces, rotation matrices, xx* of shapes), by one sum, on Sphere,
      Grassmann, SpecialOrthogonal and PlanarShapes. No ball is needed: `WholeSpace(manifold, point)` is a domain too.
      On wide domains it errs less than the Fréchet mean, from which it differs where records spread unevenly. There
      "frechet" takes it too, as a stand-in, unless steps or refine are named: where public facts predict that it is
      closer all the same. The told error then includes how far both means may be apart (`ExpectedError.target`).
    - `refine`: rounds that spend part of the budget on a smaller ball first, for public balls that are far too large.
      "auto" is one round (5 % of the budget, 4 % of a pure one) where public facts say that it hardly costs anything if
      the ball fits: from n = 160/μ, or 1,800/ε for a pure budget, on. 0 is one shot in the public ball. "axes" pays for
      the axes of an ellipsoid too (18 % of the budget in all), in the directions of the tangent coordinates at the
      centre or of a public orthonormal `basis` (dim, dim) of them: much better where records vary far more in some of
      these directions than in others, up to 9 % worse than a paid radius where they do not (16 % with a pure budget).
    - `public_sample`: points (m, *point_shape) that are public and like the records: an atlas, a published study,
      people who consented. Centre and axes of an ellipsoid are made of it (and of n and the budget, before a record is
      read), noise takes that shape, and what it would drown stays at the sample's mean. Where the ball alone, with the
      radius that would be paid for without a sample, is expected to do better it is taken. The promise does not depend
      on the sample; `Release.public` says what it gave.
    - `group_by`: a person's name for each record; a person with several records counts as one (n is then the number
      of persons).
    - `adjacency="add-remove-one"` protects the number of records too: it is paid for from the same budget, `n_guess`, a
      public guess of it, takes its place in all that is planned and told, and the release does not know it.
    - `on_invalid="raise"` tells that some record is malformed (outside of the promise); "center" takes the centre for
      such records, inside of it.
    - `ledger`, `dataset`: charge this account before anything is drawn.
    - `rng`: a seed, for tests and teaching; the release is marked, and a ledger refuses it.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.5)
    >>> X = ball.clip(dpm.Sphere(2).random_point(1000, rng=0))
    >>> release = dpm.private_mean(X, ball, dpm.PureDP(1.0))
    >>> release.value.shape, release.mechanism, release.numerics
    ((3,), 'wrapped-laplace', 'rounded')
    """
    by_sums = choice("mechanism", mechanism, ("auto", "direct", *MECHANISMS)) in TANGENT
    by_sums = choice("numerics", numerics, NUMERICS) != "idealized" and by_sums
    extrinsic = choice("kind", kind, _KINDS) == "extrinsic"
    request = check_request(
        domain,
        budget,
        shaped=not extrinsic,
        mechanism=mechanism if by_sums else "auto",
        numerics=numerics,
        steps=steps,
        kinds=NUMERICS,
        group_by=group_by,
        adjacency=adjacency,
        n_guess=n_guess,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    by_axes = isinstance(refine, str) and refine == "axes"
    refine = "axes" if by_axes else auto_or_integer("refine", refine, at_least=0)
    rounds = 0 if isinstance(refine, str) else refine
    if basis is not None and not by_axes:
        raise ArgumentError("is for refine='axes': the directions of its axes.", argument="basis")
    if public_sample is not None and (rounds or by_axes or extrinsic or not by_sums):
        raise ArgumentError("is for Fréchet means by sums, and takes the place of refine.", argument="public_sample")
    public = None if public_sample is None else read_sample(request, public_sample)
    if extrinsic:
        if not by_sums or rounds or by_axes or request.steps not in ("auto", 1):
            raise ArgumentError(
                "an extrinsic mean is one sum: leave steps and refine out, and the mechanism to 'auto' or take a "
                "wrapped one, with numerics 'safe'.",
                argument="kind",
            )
        from dpmanifolds.releases.extrinsic import release_extrinsic_mean

        return release_extrinsic_mean(request, points, group_by)
    if not by_sums:
        if request.guess is not None or rounds or by_axes or request.steps != "auto":
            raise ArgumentError(
                "steps, refine and adjacency='add-remove-one' are for means by sums: leave the mechanism to 'auto' or "
                f"take a wrapped one, with numerics 'safe'; got {mechanism!r} with {numerics!r}."
            )
        from dpmanifolds.releases.frechet import private_frechet_mean

        return private_frechet_mean(request, points, group_by, mechanism)
    directions = check_basis(request, basis) if by_axes else None
    records = request.read(points, group_by, once=not rounds and not by_axes)
    if by_axes:
        return mean_by_axes(request, records, directions)
    if refine == "auto":
        rounds = decide_rounds(request, records)
    release = None if public is None else public.release(request, records, rounds)
    if release is not None:
        return release
    if refine == "auto" and is_wide(request.domain):
        from dpmanifolds.releases.extrinsic import find_extrinsic_mean, release_stand_in

        stand_in = find_extrinsic_mean(request, request.guess or records.known_count, rounds)
        if stand_in is not None:
            return release_stand_in(request, records, stand_in)
    return refined_mean(request, records, rounds) if rounds else release_mean(request, records)


def release_mean(request: Request, records: RecordSums) -> Release:
    """Plan, look, charge, draw."""
    one = request.steps == 1 or (request.steps == "auto" and request.domain.manifold.is_flat)
    # only the one pass that there is can tell how many records there are
    untold = request.guess is None and records.known_count is None and (one or records.source.is_single_use)
    n = 1 if untold else request.count_of(records)
    plan = request.plan(n, once=untold or records.source.is_single_use)
    walk = request.walk()
    first = walk.first_look(records, plan)
    if untold:
        n, seen = first.total.rows, plan.laws[-1]
        plan = request.plan(n, once=True)
        # noise is so many lattice steps, whatever n is
        assert plan.laws[-1].exponent == seen.exponent
    law = plan.last
    warn_of_noise(request.domain, plan.expected_error)
    request.spend("mean", plan.guarantee, n, mechanism=law.name, numerics=law.numerics, domain=request.domain)
    *stages, last = request.release_steps(walk, plan, walk.take(records, plan, first=first))
    return replace(last, guarantee=plan.guarantee, stages=tuple(stages))
