"""Plain answers through Flower: the release is that of the same answers in one process, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dpmanifolds import ArgumentError
from dpmanifolds.federated.flower_engine import server_app
from tests.federated.parties import study


def test_a_server_that_sees_each_answer_takes_no_study_of_sums():
    with pytest.raises(ArgumentError, match="sees each answer"):
        server_app(study(), print)


@pytest.mark.needs("flwr")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["4"], "exact: 4 of 4"), (["6", "3"], "exact: 4 of 6"), (["4", "1"], "refused")],
    ids=["all", "some are gone", "too many are gone"],
)
def test_flower_carries_answers_bit_for_bit(arguments, said):
    pytest.importorskip("flwr")
    command = [sys.executable, "-m", "tests.federated.flower_study", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, env={**os.environ})
    assert said in done.stdout, done.stderr[-2000:]
