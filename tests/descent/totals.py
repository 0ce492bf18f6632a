"""Exact sums of clipped gradients, as the tests look at them."""

from __future__ import annotations

import numpy as np

from dpmanifolds.descent.losses.loss import OuterLoss
from dpmanifolds.descent.noisy_step import contribution_at, exponent_for
from dpmanifolds.descent.records import hold_records
from dpmanifolds.sums.outer import factor_tiles
from dpmanifolds.sums.total import integers_of


def total_of(loss, w, records, clip_norm=None, *, group_by=None, chosen=None, moving=None):
    """Σ of what records or persons add, in units of the gradients; ambient for outer products."""
    clip_norm = loss.bound if clip_norm is None else clip_norm
    held = hold_records(loss, records, group_by=group_by, on_invalid="raise" if loss.filler is None else "center")
    loss = loss.for_records(held.reference)
    exponent = exponent_for(loss, 10**6, 1.0, "gaussian")
    moving = group_by is not None if moving is None else moving
    pull = contribution_at(loss, w, clip_norm=clip_norm, exponent=exponent, moving=moving)
    return np.array(held.total(pull, chosen).integers, dtype=float) * clip_norm / 2.0**exponent


def coordinates_of(loss, w, total):
    """The total as coordinates of the tangent space."""
    return loss.coordinates(w, total.reshape(loss.shape)) if isinstance(loss, OuterLoss) else total


def integers_at(loss, w, records, clip_norm=1.0, *, moving=False, exponent=None):
    """What each record adds, a column of integers, as Python numbers."""
    held = hold_records(loss, records, on_invalid="raise" if loss.filler is None else "center")
    loss = loss.for_records(held.reference)
    exponent = exponent_for(loss, 10**6, 1.0, "gaussian") if exponent is None else exponent
    pull = contribution_at(loss, w, clip_norm=clip_norm, exponent=exponent, moving=moving)
    if isinstance(loss, OuterLoss):
        parts = held.source.reduce(lambda _, __, block: list(factor_tiles(pull, block, None)), lambda a, b: a + b)
        return np.concatenate([np.concatenate(part[:2], axis=1) for part in parts]).T.astype(int).astype(object)
    parts = held.source.reduce(lambda _, __, block: [integers_of(pull, block)[0]], lambda a, b: a + b)
    return np.concatenate(parts, axis=1).astype(object)
