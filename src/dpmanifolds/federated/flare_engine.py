"""Plain answers through NVIDIA FLARE: a controller that leads a study, and an executor for each site (nvflare 2.9).

The server sees each answer: studies have transport="plain", every site draws the whole noise, and the release claims no
more than that. FLARE carries the messages and knows the clients; policy, ledger and answers are those of `Site`. A
client that fails or does not answer in time is a site that is gone.

    job.to_server(StudyController("study.json", "release.json"))
    job.to(MySiteExecutor(), "site-1")  # a SiteExecutor whose find_site gives the Site of its client

Executors may be made anew, so that a ledger must remember what was answered: without one a site refuses. They are
installed at the sites, which forbid code that comes with jobs ("byoc"): in it nothing here would be checked.

Its homomorphic encryption is not used: CKKS rounds, digits of exact sums under BFV, added up one by one, show more than
the sum, and all sites have the one key, so that the server and any of them would open each answer
(docs/proofs/federated.md, section 4).
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from pathlib import Path
from typing import Any

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply

from dpmanifolds.errors import ArgumentError, DPManifoldsError
from dpmanifolds.federated.coordinator import Coordinator
from dpmanifolds.federated.engines import answer_in_plain
from dpmanifolds.federated.round import Round
from dpmanifolds.federated.site import Answer, Site
from dpmanifolds.federated.study import Study
from dpmanifolds.releases import Release

_TASK, _ROUND, _ANSWER = "answer_round", "round", "answer"


class StudyController(Controller):  # type: ignore[misc]
    """Asks all rounds of the study in a file, and writes the release to another one."""

    def __init__(self, study: str, release: str, timeout: int = 600) -> None:
        super().__init__()
        self._study, self._release, self._timeout = study, release, timeout

    def start_controller(self, fl_ctx: Any) -> None:
        """Refuse, before anything is asked, a study whose answers nobody may see."""
        study = Study.from_json(Path(self._study).read_text(encoding="utf-8"))
        if study.transport != "plain":
            raise ArgumentError("must have transport='plain': the server of FLARE sees each answer.", argument="study")
        if study.classes:
            raise ArgumentError("must be of one release: class means are not written here.", argument="study")
        self._coordinator = Coordinator(study)

    def stop_controller(self, fl_ctx: Any) -> None:
        """Nothing is left to do."""

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        """Round by round; a study that fails ends the job with its reason."""
        try:
            while self._coordinator.round is not None:
                self._coordinator.finish(self._ask(self._coordinator.round, abort_signal, fl_ctx))
        except DPManifoldsError as refused:
            self.system_panic(str(refused), fl_ctx)
            return
        made = self._coordinator.release
        assert isinstance(made, Release)
        Path(self._release).write_text(made.to_json(), encoding="utf-8")

    def _ask(self, asked: Round, abort_signal: Any, fl_ctx: Any) -> list[Answer]:
        given: list[Answer] = []

        def keep(client_task: ClientTask, fl_ctx: Any) -> None:
            result = client_task.result
            if result is not None and result.get_return_code() == ReturnCode.OK:
                given.append(Answer.from_json(result[_ANSWER]))
            client_task.result = None

        data = Shareable()
        data[_ROUND] = asked.to_json()
        task = Task(_TASK, data, timeout=self._timeout, result_received_cb=keep)
        self.broadcast_and_wait(task, fl_ctx, min_responses=len(asked.sites), abort_signal=abort_signal)
        return given

    def process_result_of_unknown_task(self, *ignored: Any, **also: Any) -> None:
        """What comes too late is not looked at."""


class SiteExecutor(Executor):  # type: ignore[misc]
    """Answers rounds with the site of its client."""

    @abstractmethod
    def find_site(self, name: str) -> Site:
        """The site of the client of this name."""

    def execute(self, task_name: str, shareable: Any, fl_ctx: Any, abort_signal: Any) -> Any:
        """The answer, or a code that says that there is none; why is told to the site's own terminal alone.

        Not to a log of FLARE: clients send that to the server unless their resources forbid it, and the words of an
        error may quote records.
        """
        if task_name != _TASK:
            return make_reply(ReturnCode.TASK_UNKNOWN)
        try:
            site = self.find_site(fl_ctx.get_identity_name())
            answer = answer_in_plain(site, Round.from_json(shareable[_ROUND]))
        except Exception as refused:
            print(f"no answer: {refused}", file=sys.stderr)
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        reply = make_reply(ReturnCode.OK)
        reply[_ANSWER] = answer.to_json()
        return reply
