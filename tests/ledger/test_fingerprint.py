"""Keyed fingerprints: equal for equal data, different for everything else, useless without the key."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpmanifolds.errors import ArgumentError, SharedRecordsWarning
from dpmanifolds.ledger import Ledger, keyed_fingerprint
from dpmanifolds.privacy import Guarantee, PureDP

KEY = bytes(range(32))


def test_layout_and_byte_order_do_not_count():
    X = np.arange(12.0).reshape(3, 4)
    expected = keyed_fingerprint(X, KEY)
    assert keyed_fingerprint(np.asfortranarray(X), KEY) == expected
    assert keyed_fingerprint(X.astype(">f8"), KEY) == expected
    assert len(expected) == 64


def test_values_shape_dtype_blocks_and_key_count():
    X = np.arange(4.0)
    variants = [X, X + 1e-16, X + 1, X.reshape(2, 2), X.astype(np.float32), [X], [X, X], [X[:2], X[2:]], X.tobytes()]
    prints = [keyed_fingerprint(variant, KEY) for variant in variants]
    assert prints[0] == prints[5]
    assert len(set(prints)) == len(variants) - 1
    assert keyed_fingerprint(X, KEY) != keyed_fingerprint(X, KEY[::-1])


def test_a_number_and_a_vector_of_one_number_differ():
    assert keyed_fingerprint(np.array(1.0), KEY) != keyed_fingerprint(np.array([1.0]), KEY)


@pytest.mark.parametrize("key", [b"", b"short", bytes(65), "a text of some length"])
def test_a_short_or_long_key_is_refused(key):
    with pytest.raises(ArgumentError, match="random bytes"):
        keyed_fingerprint(b"data", key)


@pytest.mark.parametrize(
    "data", ["text", 3.0, np.array([object()]), ["text"]], ids=["text", "number", "objects", "list"]
)
def test_what_has_no_bytes_is_refused(data):
    with pytest.raises(ArgumentError, match="data must be"):
        keyed_fingerprint(data, KEY)


def test_the_same_records_under_several_names_warn_at_opening_and_at_every_charge(tmp_path):
    ledger = Ledger(tmp_path / "privacy.ledger")
    same = keyed_fingerprint(np.arange(3.0), KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ledger.open_dataset("survey", PureDP(1.0), fingerprint=same)
        ledger.open_dataset("survey", PureDP(1.0), fingerprint=same)
        ledger.spend("survey", Guarantee.pure(0.125), what="mean")
        ledger.open_dataset("other", PureDP(1.0), fingerprint=keyed_fingerprint(np.arange(4.0), KEY))
        ledger.open_dataset("unknown", PureDP(1.0))
        ledger.open_dataset("unknown too", PureDP(1.0))
    for name in ("Survey", "survey ", "s\u0443rvey", "survey\u200b"):
        with pytest.warns(SharedRecordsWarning, match="'survey'"):
            ledger.open_dataset(name, PureDP(1.0), fingerprint=same)
        with pytest.warns(SharedRecordsWarning, match="same records under several names"):
            ledger.spend(name, Guarantee.pure(0.125), what="mean")
    with pytest.warns(SharedRecordsWarning, match="'Survey'"):
        ledger.reserve("survey", [Guarantee.pure(0.125)], what="mean")


def test_a_warning_that_is_an_error_leaves_nothing(tmp_path):
    ledger = Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("survey", PureDP(1.0), fingerprint="one")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SharedRecordsWarning):
            ledger.open_dataset("Survey", PureDP(1.0), fingerprint="one")
    assert [dataset.name for dataset in ledger.datasets()] == ["survey"]
