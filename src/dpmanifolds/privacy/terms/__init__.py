"""The closed list of named parametric terms that a guarantee is made of: numbers and names, never a callable.

>>> from dpmanifolds.privacy.terms import GaussianTerm, term_from_dict
>>> term_from_dict(GaussianTerm(mu=0.5).to_dict()) == GaussianTerm(mu=0.5)
True

A term bounds δ(ε) from above by `profile`, in both directions between neighbours; where they exist it also states a
pure ε (`pure_epsilon`), a μ (`gaussian_mu`), a ρ (`zcdp_rho`) and D_α (`renyi`). `count` copies of it are meant.
"""

from __future__ import annotations

from typing import Any

from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy.terms.base import Term
from dpmanifolds.privacy.terms.batches import SubsampledGaussianTerm, SubsampledLaplaceTerm, TruncatedGaussianTerm
from dpmanifolds.privacy.terms.lattice import DiscreteGaussianTerm, DiscreteLaplaceTerm
from dpmanifolds.privacy.terms.named import ApproxTerm, GaussianTerm, ProfileTerm, PureTerm, ZcdpTerm
from dpmanifolds.privacy.terms.noises import L2LaplaceTerm, LaplaceTerm, RiemannianGaussianTerm

__all__ = [
    "ApproxTerm",
    "DiscreteGaussianTerm",
    "DiscreteLaplaceTerm",
    "GaussianTerm",
    "L2LaplaceTerm",
    "LaplaceTerm",
    "ProfileTerm",
    "PureTerm",
    "RiemannianGaussianTerm",
    "SubsampledGaussianTerm",
    "SubsampledLaplaceTerm",
    "Term",
    "TruncatedGaussianTerm",
    "ZcdpTerm",
    "term_from_dict",
]

_KINDS: dict[str, type[Term]] = {
    family.kind: family
    for family in (
        PureTerm,
        ApproxTerm,
        GaussianTerm,
        ZcdpTerm,
        LaplaceTerm,
        L2LaplaceTerm,
        DiscreteGaussianTerm,
        DiscreteLaplaceTerm,
        RiemannianGaussianTerm,
        SubsampledGaussianTerm,
        SubsampledLaplaceTerm,
        TruncatedGaussianTerm,
        ProfileTerm,
    )
}


def term_from_dict(data: Any) -> Term:
    """The term that `to_dict` described, checked as if a user had typed it."""
    if not isinstance(data, dict) or data.get("kind") not in _KINDS:
        raise ArgumentError(f"a term needs a kind out of {', '.join(_KINDS)}; got {data!r}.")
    fields = {name: value for name, value in data.items() if name != "kind"}
    try:
        return _KINDS[data["kind"]](**fields)
    except TypeError:
        raise ArgumentError(f"a term of kind {data['kind']!r} has other fields than {sorted(fields)}.") from None
