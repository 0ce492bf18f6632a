"""Plain answers through NVIDIA FLARE: the release is that of the same answers in one process, bit for bit."""

from __future__ import annotations

import logging

import pytest

from dpmanifolds import Coordinator
from tests.federated.parties import simulate, study


@pytest.mark.needs("nvflare")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["3"], "exact: 3 of 3 sites"), (["4", "1"], "exact: 3 of 4 sites"), (["4", "2"], "no release")],
    ids=["all", "one is gone", "too many are gone"],
)
def test_flare_carries_answers_bit_for_bit(arguments, said, tmp_path):
    pytest.importorskip("nvflare")
    done = simulate("flare_study", tmp_path, *arguments)
    assert said in done.stdout, done.stderr[-2000:]


@pytest.mark.needs("nvflare")
def test_why_a_site_does_not_answer_stands_in_no_log_that_flare_would_send(caplog, capsys):
    """Clients of FLARE send their logs to the server by default, and the words of an error may quote records."""
    pytest.importorskip("nvflare")
    from nvflare.apis.fl_constant import ReturnCode
    from nvflare.apis.fl_context import FLContext
    from nvflare.apis.shareable import Shareable

    from dpmanifolds.federated.flare_engine import SiteExecutor

    class Failing(SiteExecutor):
        def find_site(self, name):
            return float("86420 years")

    asked = Shareable()
    asked["round"] = Coordinator(study(transport="plain")).round.to_json()
    with caplog.at_level(logging.DEBUG):
        reply = Failing().execute("answer_round", asked, FLContext(), None)
    assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
    assert "86420" not in caplog.text + repr(dict(reply))
    assert "86420 years" in capsys.readouterr().err
