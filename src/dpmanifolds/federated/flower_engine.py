"""Plain answers through Flower: a client for each site, and a server that leads a study (flwr 1.41 or later).

The server sees each answer: studies have transport="plain", every site draws the whole noise, and the release claims no
more than that; a client refuses every other round. Flower carries the messages and finds the sites; the policy, the
ledger and the answers are those of `Site`. Clients that are gone are sites that are gone.

    app = client_app(lambda context: Site(name, records, policy, ledger=…, dataset=…))    # at each site
    app = server_app(study, lambda release: Path("release.json").write_text(release.to_json()))

Each message may be answered by a new `Site`, so that a ledger must remember what was answered: without one a site
refuses. Flower hands the code of apps to its clients: a site runs those alone that it has read, signed by whom it
trusts (`flower-supernode --trusted-entities`); in an app of the server's own making nothing here would be checked.

Flower's own secure aggregation, SecAgg+, is in `secagg_engine`, for sums that fit 31 bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dpmanifolds.errors import ArgumentError, RoundRefusedError
from dpmanifolds.federated.coordinator import Coordinator, Outcome
from dpmanifolds.federated.engines import answer_in_plain
from dpmanifolds.federated.round import Round
from dpmanifolds.federated.site import Answer, Site
from dpmanifolds.federated.study import Study

ANSWER_SECONDS = 600.0
_EVERY = 0.2


def without_reasons(answer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same, with errors that say nothing: Flower tells them to the server, and they may quote records."""

    def answer_or_refuse(message: Any, context: Any) -> Any:
        try:
            return answer(message, context)
        except Exception as problem:
            raise RoundRefusedError("no answer: the reason stands in the log of the site.") from problem

    return answer_or_refuse


def client_app(find_site: Callable[[Any], Site]) -> Any:
    """A Flower `ClientApp` that answers rounds with the site of its context.

    The server learns that there is no answer, and not why.
    """
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @without_reasons
    def answer(message: Any, context: Any) -> Any:
        asked = Round.from_json(message.content["round"]["json"])
        made = answer_in_plain(find_site(context), asked)
        return Message(RecordDict({"answer": ConfigRecord({"json": made.to_json()})}), reply_to=message)

    app.query()(answer)
    return app


def server_app(
    study: Study, finish: Callable[[Outcome], Any], *, keys: Any = None, timeout: float = ANSWER_SECONDS
) -> Any:
    """A Flower `ServerApp` that asks all rounds of a study, and calls `finish` with the release.

    A client that does not answer in time, or refuses, is a site that is gone.
    """
    if study.transport != "plain":
        raise ArgumentError("must have transport='plain': the server of Flower sees each answer.", argument="study")
    from flwr.serverapp import ServerApp

    app = ServerApp()

    def main(grid: Any, context: Any) -> None:
        coordinator = Coordinator(study, keys=keys)
        while coordinator.round is not None:
            coordinator.finish(_ask(grid, coordinator.round, timeout))
        made = coordinator.release
        assert made is not None
        finish(made)

    app.main()(main)
    return app


def _ask(grid: Any, asked: Round, timeout: float) -> list[Answer]:
    """The answers of all clients that give one."""
    from flwr.app import ConfigRecord, Message, RecordDict

    content = RecordDict({"round": ConfigRecord({"json": asked.to_json()})})
    nodes = find_nodes(grid, len(asked.sites), timeout)
    sent = [Message(content, dst_node_id=node, message_type="query") for node in nodes]
    given = []
    for reply in grid.send_and_receive(sent, timeout=timeout):
        if not reply.has_error():
            given.append(Answer.from_json(str(reply.content["answer"]["json"])))
    if not given:
        raise RoundRefusedError("no client answered.")
    return given


def find_nodes(grid: Any, wanted: int, timeout: float) -> list[int]:
    """The clients, once as many have come as there are sites, or those who came in time."""
    end = time.monotonic() + timeout
    while True:
        nodes = list(grid.get_node_ids())
        if len(nodes) >= wanted or time.monotonic() > end:
            return nodes
        time.sleep(_EVERY)
