"""Plain answers through NVIDIA FLARE: the release is that of the same answers in one process, bit for bit."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.needs("nvflare")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["3"], "exact: 3 of 3 sites"), (["4", "1"], "exact: 3 of 4 sites"), (["4", "2"], "no release")],
    ids=["all", "one is gone", "too many are gone"],
)
def test_flare_carries_answers_bit_for_bit(arguments, said, tmp_path):
    pytest.importorskip("nvflare")
    command = [sys.executable, "-m", "tests.federated.flare_study", str(tmp_path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert said in done.stdout, done.stderr[-2000:]
