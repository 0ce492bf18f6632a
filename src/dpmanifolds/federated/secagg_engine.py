"""Sums by Flower's SecAgg+, in rounds whose sums fit 31 bits: a demonstrator, against a server that only looks on.

    app = secagg_client_app(lambda context: Site(name, records, policy, ledger=…, dataset=…))    # at each site
    app = secagg_server_app(study, lambda release: Path("release.json").write_text(release.to_json()))

Flower adds short numbers. An answer that is cut into digits would show carries, which no promise covers
(docs/proofs/federated.md, section 4); an answer that is one number below 2³¹ does not: with `modulus_range` 2³¹,
`quantization_range` 2³¹ − 1 and a `clipping_range` of half of that, a whole number is quantised to itself, nothing is
left for the stochastic rounding to decide, and what the server unmasks is the sum modulo 2³¹. Studies have
modulus=SECAGG_MODULUS: the lattice of their sums is coarser then, and squares or counts do not fit.

**What it is not.** Its masks come from a Mersenne Twister whose seeds have 32 bits, and answers hold numbers that are
known: whoever tries all seeds undoes them. Its keys are not authenticated: a server that plays clients sees each
answer, with one share of the noise. MPyC (`mpyc_engine`) has neither weakness. A client that is gone when the round is
set up, or before it has shared its keys, ends the round: nothing was drawn. After that up to t may be gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpmanifolds.errors import ArgumentError, RoundRefusedError
from dpmanifolds.federated.coordinator import Coordinator, Outcome
from dpmanifolds.federated.engines import SummedAnswers, answer_over_line
from dpmanifolds.federated.flower_engine import ANSWER_SECONDS, find_nodes, without_reasons
from dpmanifolds.federated.round import Round
from dpmanifolds.federated.site import Site
from dpmanifolds.federated.study import Study

SECAGG_MODULUS = 2**31
"""The largest that SecAgg+ carries whole numbers below exactly: it quantises to signed integers of 32 bits."""
ENGINE = "SecAgg+ of Flower (demonstrator)"
_RANGE = SECAGG_MODULUS - 1
_SETTINGS: dict[str, Any] = {"clipping_range": _RANGE / 2, "mod_range": SECAGG_MODULUS, "target_range": _RANGE}
_WEIGHT = 1.0


def _check_round(asked: Round) -> None:
    """A round of a secure sum of such numbers; colluding sites must not have enough shares of both kinds of secrets."""
    if asked.transport != "secure-sum" or asked.modulus != SECAGG_MODULUS:
        raise RoundRefusedError("SecAgg+ is for secure sums with modulus=SECAGG_MODULUS.")
    if 2 * asked.tolerated >= len(asked.sites):
        raise RoundRefusedError("SecAgg+ keeps answers from fewer than half of the sites: tolerate fewer.")


def secagg_client_app(find_site: Callable[[Any], Site]) -> Any:
    """A Flower `ClientApp` that answers rounds under SecAgg+ with the site of its context.

    It looks at what the server set up before anything is drawn: another modulus, a threshold below k − t, or a message
    that would not be masked, is refused. The server learns that there is no answer, and not why.
    """
    from flwr.app import Message
    from flwr.app.message_type import MessageType
    from flwr.client.mod import secaggplus_mod
    from flwr.clientapp import ClientApp
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters
    from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, RECORD_KEY_STATE, Key
    from flwr.compat.common import recorddict_compat as compat

    app = ClientApp(mods=[secaggplus_mod])

    @without_reasons
    def answer(message: Any, context: Any) -> Any:
        import numpy as np

        # "train.default" comes here, too, past the masks
        if message.metadata.message_type != MessageType.TRAIN:
            raise RoundRefusedError("SecAgg+ masks answers to messages of another type: this one would be seen.")
        asked = Round.from_json(compat.recorddict_to_fitins(message.content, keep_input=True).config["round"])
        _check_round(asked)
        told = context.state.config_records[RECORD_KEY_STATE]
        wanted = {**_SETTINGS, "max_weight": _WEIGHT, "share_num": told["sample_num"]}
        if any(told[name] != value for name, value in wanted.items()) or told["threshold"] < asked.shares.needed:
            raise RoundRefusedError("the server set SecAgg+ up in another way than this round needs.")
        if 1 + len(message.content.config_records[RECORD_KEY_CONFIGS][Key.SOURCE_LIST]) < told["sample_num"]:
            raise RoundRefusedError("a client has shared no keys: SecAgg+ will be halted, and nothing is drawn for it.")
        made = answer_over_line(find_site(context), asked)
        parameters = ndarrays_to_parameters([np.array(made.residues, dtype=np.float64) - _RANGE / 2])
        metrics = {"site": made.site, "reproducible": made.reproducible}
        reply = FitRes(Status(Code.OK, ""), parameters, num_examples=1, metrics=metrics)
        return Message(compat.fitres_to_recorddict(reply, keep_input=False), reply_to=message)

    app.train()(answer)
    return app


class _Sum:
    """What Flower calls a strategy: asks one round of all nodes, and keeps the sum."""

    def __init__(self, asked: Round, proxies: list[Any]) -> None:
        self.asked, self.proxies = asked, proxies
        self.summed: SummedAnswers | None = None

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> list[Any]:
        """The round, for everyone."""
        from flwr.common import FitIns

        return [(proxy, FitIns(parameters, {"round": self.asked.to_json()})) for proxy in self.proxies]

    def aggregate_fit(self, server_round: int, results: list[Any], failures: Any) -> tuple[None, dict[str, Any]]:
        """The residues that Flower's average stands for: each is a whole number, up to the rounding of doubles."""
        from flwr.common import parameters_to_ndarrays

        count = len(results)
        (average,) = parameters_to_ndarrays(results[0][1].parameters)
        # Flower divides by the sum of the weights, which went through the same modulus
        ratio = _RANGE / (count * _RANGE % SECAGG_MODULUS)
        residues = tuple(round(number / ratio + count * _RANGE / 2) % SECAGG_MODULUS for number in average.tolist())
        names = tuple(str(found.metrics["site"]) for _, found in results)
        seeded = any(bool(found.metrics["reproducible"]) for _, found in results)
        self.summed = SummedAnswers(residues, names, ENGINE, seeded)
        return None, {}


def secagg_server_app(study: Study, finish: Callable[[Outcome], Any], *, timeout: float = ANSWER_SECONDS) -> Any:
    """A Flower `ServerApp` that asks all rounds of a study under SecAgg+, and calls `finish` with the release."""
    coordinator = Coordinator(study)
    if coordinator.round is None or study.modulus != SECAGG_MODULUS:
        raise ArgumentError("must have modulus=SECAGG_MODULUS, and transport='secure-sum'.", argument="study")
    _check_round(coordinator.round)
    from flwr.serverapp import ServerApp

    app = ServerApp()

    def main(grid: Any, context: Any) -> None:
        while coordinator.round is not None:
            coordinator.finish(_sum_round(grid, context, coordinator.round, timeout))
        assert coordinator.release is not None
        finish(coordinator.release)

    app.main()(main)
    return app


def _sum_round(grid: Any, context: Any, asked: Round, timeout: float) -> SummedAnswers:
    """One round: set up, keys, masked answers, unmasking; no sum where Flower halts."""
    from flwr.app import ArrayRecord, ConfigRecord
    from flwr.server import LegacyContext
    from flwr.server.compat.grid_client_proxy import GridClientProxy
    from flwr.server.workflow import SecAggPlusWorkflow
    from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key

    nodes, needed = find_nodes(grid, len(asked.sites), timeout), asked.shares.needed
    if len(nodes) < needed:
        raise RoundRefusedError(f"{len(nodes)} clients are here, and the promise needs the answers of {needed}.")
    strategy = _Sum(asked, [GridClientProxy(node, grid, context.run_id) for node in nodes])
    held = LegacyContext(context, strategy=strategy)
    held.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: asked.number})
    held.state.array_records[MAIN_PARAMS_RECORD] = ArrayRecord([])
    workflow = SecAggPlusWorkflow(
        num_shares=1.0,
        reconstruction_threshold=needed / len(nodes),
        max_weight=_WEIGHT,
        clipping_range=_SETTINGS["clipping_range"],
        quantization_range=_RANGE,
        modulus_range=SECAGG_MODULUS,
        timeout=timeout,
    )
    workflow(grid, held)
    if strategy.summed is None:
        raise RoundRefusedError("SecAgg+ was halted: there is no sum, and what was spent stays in the ledgers.")
    return strategy.summed
