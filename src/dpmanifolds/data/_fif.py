"""Covariance matrices from MNE's files (mne, an extra): -cov.fif holds one, -epo.fif one per epoch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds.data._files import check_size, decoding, need
from dpmanifolds.errors import ArgumentError

_COVARIANCE, _EPOCHS = "cov.fif", "epo.fif"


def read_fif(path: Path, picks: str | Sequence[str] | None, limit: int) -> np.ndarray:
    """Covariances (n, k, k) in the unit of the file (V², T²): the one of a -cov.fif, or one per epoch of an -epo.fif.

    `picks`: names of channels in the order wanted; for epochs also a type such as "eeg". All channels without it, those
    marked bad included, as whom they are bad for is private. The covariance of an epoch of T samples is XXᵀ/T, the mean
    of each channel taken off.
    """
    with _opened(path, limit) as file:
        names = _picked(path, file, picks)
        if _is_covariance(path):
            matrix = np.asarray(file.data, dtype=np.float64)
            matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
            places = [file.ch_names.index(name) for name in names]
            return matrix[None][:, places][:, :, places]
        check_size(8 * len(file) * len(names) * len(file.times), limit)
        data = file.get_data(picks=names, verbose="error")
        data = data - data.mean(axis=2, keepdims=True)
        return np.asarray(data @ data.swapaxes(1, 2) / data.shape[2])


def fif_channels(path: Path, picks: str | Sequence[str] | None, limit: int) -> list[str]:
    """The names of the channels that `picks` stands for in this file."""
    with _opened(path, limit) as file:
        return _picked(path, file, picks)


def _is_covariance(path: Path) -> bool:
    return path.name.lower().endswith(_COVARIANCE)


@contextmanager
def _opened(path: Path, limit: int) -> Iterator[Any]:
    mne = need("mne", "mne", "FIF")
    if not path.name.lower().endswith((_COVARIANCE, _EPOCHS)):
        raise ArgumentError(
            f"the name of a .fif file must end in -cov.fif (a covariance) or -epo.fif (epochs); got {path.name!r}. "
            "Recordings must be cut into epochs first."
        )
    check_size(path.stat().st_size, limit)
    with decoding(path, "covariances or epochs of MNE"), warnings.catch_warnings():
        # names that MNE would spell otherwise, and the like
        warnings.simplefilter("ignore")
        if _is_covariance(path):
            yield mne.read_cov(path, verbose="error")
        else:
            yield mne.read_epochs(path, proj=False, preload=False, verbose="error")


def _picked(path: Path, file: Any, picks: str | Sequence[str] | None) -> list[str]:
    names = list(file.ch_names)
    if picks is None:
        return names
    if isinstance(picks, str):
        if _is_covariance(path):
            raise ArgumentError(
                f"must be a list of names, as a covariance file knows no types of channels; got {picks!r}.",
                argument="picks",
            )
        types = file.get_channel_types()
        if picks not in types:
            listed = ", ".join(map(repr, sorted(set(types))))
            raise ArgumentError(
                f"must list names of channels, or be a type, one of {listed}; got {picks!r}.", argument="picks"
            )
        return [name for name, kind in zip(names, types, strict=True) if kind == picks]
    wanted = list(picks)
    if not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(names):
        raise ArgumentError(
            "must name channels that every file has, each once, and at least one is not there. Take the channels "
            "that all recordings share.",
            argument="picks",
        )
    return wanted
