"""How answers become a sum: what an engine hands to the coordinator, and the engine of a simulation.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
>>> study = dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=90, sites=["a", "b", "c"])
>>> run_study(study, [dpm.Site(name, np.zeros((30, 2)), rng=0) for name in "abc"]).sites.engine
'one process'

An engine of a secure sum gets one answer from each site and gives their sum to the coordinator, and nothing else to
anyone. What it assumes for that is its own: `mpyc_engine` an honest majority of the sites. `sum_in_process` assumes
that this process is trusted: it is for tests, for teaching, and for planning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmanifolds.errors import RoundRefusedError
from dpmanifolds.federated.round import Round
from dpmanifolds.federated.site import Answer, Site, read_residues

if TYPE_CHECKING:
    from dpmanifolds.federated.coordinator import Outcome
    from dpmanifolds.federated.study import Study


@dataclass(frozen=True)
class SummedAnswers:
    """The sum of the answers to a round, and who is in it.

    >>> from dpmanifolds.federated import SummedAnswers
    >>> SummedAnswers((5, 2, 8), ("a", "b"), "mpyc").names
    ('a', 'b')
    """

    residues: tuple[int, ...]
    names: tuple[str, ...]
    engine: str
    reproducible: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values; residues as text, since they have more digits than the numbers of other languages."""
        told = {"residues": list(map(str, self.residues)), "names": list(self.names), "engine": self.engine}
        return {**told, "reproducible": self.reproducible}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SummedAnswers:
        """What `to_dict` wrote; anything else is refused."""
        residues, names = read_residues(data["residues"]), data["names"]
        texts = [data["engine"], *names] if isinstance(names, list) else [None]
        if not all(isinstance(each, str) for each in texts) or type(data["reproducible"]) is not bool:
            raise RoundRefusedError("a sum tells the names of its sites and of its engine, and whether it had a seed.")
        return cls(residues, tuple(names), data["engine"], data["reproducible"])


Engine = Callable[[Round, Sequence[Site]], SummedAnswers]


def add_residues(asked: Round, answers: Iterable[Answer]) -> tuple[int, ...]:
    """The sum modulo the modulus of the round."""
    given = [answer.residues for answer in answers]
    if not given:
        return (0,) * asked.length
    return tuple(sum(column) % asked.modulus for column in zip(*given, strict=True))


def sum_in_process(asked: Round, sites: Sequence[Site]) -> SummedAnswers:
    """All sites in one process, which sees each answer: a simulation of what an engine does.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.federated import sum_in_process
    >>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
    >>> coordinator = dpm.Coordinator(dpm.Study("mean", ball, dpm.GaussianDP(1.0), n=60, sites=["a", "b"]))
    >>> sites = [dpm.Site(name, np.zeros((30, 2)), rng=0) for name in "ab"]
    >>> coordinator.finish(sum_in_process(coordinator.round, sites)).n
    60
    """
    answers = [site.answer(asked) for site in sites]
    names, seeded = tuple(answer.site for answer in answers), any(answer.reproducible for answer in answers)
    return SummedAnswers(add_residues(asked, answers), names, "one process", seeded)


def answer_over_line(site: Site, asked: Round) -> Answer:
    """The answer of a site to whoever may send the same round as often as he likes: a ledger must remember it.

    The site of a message may be made anew for each message, and then remembers nothing itself. A site with a seed is
    for tests.
    """
    if site.ledger is None and site.rng is None:
        raise RoundRefusedError(
            f"site {site.name!r} refuses the round: it has no ledger, and would draw other noise for the same round "
            "whenever that is sent. Nothing was drawn."
        )
    return site.answer(asked)


def answer_in_plain(site: Site, asked: Round) -> Answer:
    """The same where whoever asks sees the answer: a round of a secure sum is refused there.

    Its answer holds one share of the noise alone, whatever the policy of the site allows.
    """
    if asked.transport != "plain":
        raise RoundRefusedError(
            f"site {site.name!r} refuses the round: its answer is for a secure sum, and here it would be seen by "
            "itself. Nothing was drawn."
        )
    return answer_over_line(site, asked)


def run_study(study: Study, sites: Sequence[Site], engine: Engine = sum_in_process) -> Outcome:
    """All rounds of a study, with sites that this process can ask.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.federated import run_study
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=1.0)
    >>> study = dpm.Study("variance", ball, dpm.GaussianDP(1.0), n=200, sites=["a", "b"])
    >>> parts = np.split(dpm.SPD(2).random_point(200, rng=0), 2)
    >>> release = run_study(study, [dpm.Site(name, part, rng=1) for name, part in zip("ab", parts)])
    >>> release.statistic, 0.0 <= release.value <= 1.0
    ('variance', True)
    """
    from dpmanifolds.federated.coordinator import Coordinator

    coordinator = Coordinator(study)
    while coordinator.round is not None:
        asked = coordinator.round
        if asked.transport == "plain":
            coordinator.finish([site.answer(asked) for site in sites])
        else:
            coordinator.finish(engine(asked, sites))
    made = coordinator.release
    if made is None:
        raise RoundRefusedError("the study has no release.")
    return made
