"""Secure sums by MPyC: Shamir's sharing among the sites themselves; fewer than half of them learn nothing but the sum.

At each site, with the round and the answer that never leaves it (extra `dpmanifolds[federated]`):

    python -m dpmanifolds.federated.mpyc_engine round.json answer.json sum.json -P a.org:4242 -P b.org:4242 … -I 0

Parties come in any order, the same one everywhere; `-I` is one's own number in it. The other options of MPyC hold here,
too: between sites use `--ssl`, without which messages are neither encrypted nor signed. Every party gets the sum, and
one of them hands it to the coordinator.

The answers are residues modulo the prime 2⁸⁹ − 1 (`MPYC_MODULUS`, in the study) and are added in the field of that
order: what is opened is the residue of the sum, and nothing that is not a function of it (docs/proofs/federated.md,
section 4). MPyC trusts a majority of the parties to follow the protocol and to keep their shares to themselves; sites
that only listen together learn no answer of another while they are less than half: a round that tolerates more of them
is refused, and so are fewer parties than the promise needs. An answer is in one sum (`answer.json.used`). MPyC does
not go on without a party that it has started with: sites that are gone before may be left out, up to t of them; one
that is lost in between ends the round, and what was spent stays spent.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpmanifolds.errors import ArgumentError, NotAvailableError, RoundRefusedError
from dpmanifolds.federated.engines import SummedAnswers
from dpmanifolds.federated.round import Round
from dpmanifolds.federated.site import Answer, Site

MPYC_MODULUS = 2**89 - 1
"""A prime: the order of the field in which answers are added."""
_SECONDS = 120.0


def write_sum(asked: Round, summed: SummedAnswers) -> str:
    """A sum in JSON, as `read_sum` takes it."""
    return json.dumps({"round": asked.hash, **summed.to_dict()})


def read_sum(text: str | bytes, asked: Round) -> SummedAnswers:
    """A sum of answers to this round; anything else is refused.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
    >>> asked = dpm.Coordinator(dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=60, sites=["a", "b"])).round
    >>> read_sum(write_sum(asked, SummedAnswers((1, 2), ("a", "b"), "mpyc")), asked).names
    ('a', 'b')
    """
    try:
        data = json.loads(text)
        if data["round"] != asked.hash:
            raise RoundRefusedError("the sum is to another round.")
        return SummedAnswers.from_dict(data)
    except RoundRefusedError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
        raise RoundRefusedError(f"this is no sum as an engine writes it ({problem}).") from None


def _check_parties(asked: Round, parties: int, threshold: int) -> None:
    """Refuse a sum of fewer answers than the promise needs, and more colluding sites than sharing keeps secrets from.

    Sharing must keep them from as many as it can: the option -T of MPyC could lower that, to nobody.

    Where one share alone keeps the promise, answers may be known.
    """
    if asked.modulus != MPYC_MODULUS:
        raise ArgumentError("MPyC adds modulo 2^89 − 1: make the study with modulus=MPYC_MODULUS.", argument="modulus")
    if threshold < (parties - 1) // 2:
        raise RoundRefusedError(
            f"MPyC was started with a threshold of {threshold}: {threshold + 1} of {parties} parties would see each "
            "answer. Leave out its option -T."
        )
    needed = asked.shares.needed
    if parties < needed:
        raise RoundRefusedError(f"{parties} parties are here, and the promise needs the answers of {needed}.")
    if needed > 1 and parties - needed > threshold:
        raise RoundRefusedError(
            f"the round tolerates {parties - needed} of {parties} parties, and any {threshold + 1} together would see "
            "each answer: MPyC keeps answers from fewer than half. Ask a study that tolerates fewer sites."
        )


def _check(asked: Round, answer: Answer) -> None:
    if answer.round != asked.hash or len(answer.residues) != asked.length or answer.site not in asked.sites:
        raise RoundRefusedError("the answer is not one to this round.")


async def sum_answers(
    asked: Round, answer: Answer, runtime: Any, use: Callable[[], None] = lambda: None
) -> SummedAnswers:
    """The sum over all parties of an MPyC runtime, each of which calls this with the answer of its own site.

    `use` is called before anything of the answer leaves: it raises where the answer was in a sum before.
    """
    _check(asked, answer)
    field = runtime.SecFld(modulus=MPYC_MODULUS)
    async with runtime:
        told = await runtime.transfer((answer.site, answer.round, answer.reproducible))
        names = {each[0] for each in told}
        if {each[1] for each in told} != {asked.hash} or len(names) < len(told) or not names <= set(asked.sites):
            raise RoundRefusedError("the parties are not different sites with answers to the same round.")
        _check_parties(asked, len(told), runtime.threshold)
        use()
        shared = runtime.input([field(residue) for residue in answer.residues])
        total = shared[0]
        for each in shared[1:]:
            total = runtime.vector_add(total, each)
        opened = await runtime.output(total)
    residues = tuple(int(number) % MPYC_MODULUS for number in opened)
    return SummedAnswers(residues, tuple(each[0] for each in told), "mpyc", any(each[2] for each in told))


def sum_by_mpyc(asked: Round, sites: Sequence[Site], *, timeout: float = _SECONDS) -> SummedAnswers:
    """The sum by MPyC, each site in a process of its own on this machine: for trials, and for `run_study`.

    This process sees each answer, as it asks the sites itself; between machines use the program of this module.
    """
    _check_parties(asked, len(sites), (len(sites) - 1) // 2)
    answers = [site.answer(asked) for site in sites]
    for answer in answers:
        _check(asked, answer)
    parties = [option for port in free_ports(len(answers)) for option in ("-P", f"127.0.0.1:{port}")]
    with tempfile.TemporaryDirectory() as name:
        folder, running = Path(name), list[subprocess.Popen[bytes]]()
        (folder / "round.json").write_text(asked.to_json())
        try:
            for number, answer in enumerate(answers):
                (folder / f"{number}.json").write_text(answer.to_json())
                files = [str(folder / each) for each in ("round.json", f"{number}.json", f"sum-{number}.json")]
                command = [sys.executable, "-m", __name__, *files, *parties, "-I", str(number), "--no-log"]
                running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
            codes = [process.wait(timeout) for process in running]
        except subprocess.TimeoutExpired:
            codes = [1]
        finally:
            for process in running:
                process.kill()
                process.wait()
        if any(codes):
            raise RoundRefusedError("a party of the secure sum was lost: there is no sum, and what was spent stays.")
        sums = {read_sum((folder / f"sum-{number}.json").read_text(), asked) for number in range(len(answers))}
    if len(sums) > 1:
        raise RoundRefusedError("the parties of the secure sum do not agree on it.")
    return sums.pop()


def use_once(answer: Path) -> None:
    """Leave a note beside an answer, once: two sums, with and without some site, would show that site's answer."""
    try:
        answer.with_name(answer.name + ".used").open("x").close()
    except FileExistsError:
        raise RoundRefusedError(
            "this answer was in a sum before, and no second one is made: ask a new study."
        ) from None


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def main() -> None:
    """One party: the round, the answer and where the sum goes, then MPyC's own options."""
    try:
        from mpyc.runtime import mpc
    except ModuleNotFoundError:
        raise NotAvailableError("MPyC is not installed: pip install 'dpmanifolds[federated]'.") from None
    asked, answer, out = sys.argv[1:4]
    round_, mine = Round.from_json(Path(asked).read_text()), Answer.from_json(Path(answer).read_text())
    summed = mpc.run(asyncio.wait_for(sum_answers(round_, mine, mpc, lambda: use_once(Path(answer))), _SECONDS))
    Path(out).write_text(write_sum(round_, summed))


if __name__ == "__main__":
    main()
