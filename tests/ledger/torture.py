"""What a ledger must survive: crowds, kill −9, a full disk, a read-only file, damaged pages.

Run as `python -m tests.ledger.torture`; prints one line per ordeal and exits with 1 if a data set was overspent or a
spend that was acknowledged is not in the file. Linux and macOS.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dpmanifolds.errors import BudgetExceededError, LedgerError
from dpmanifolds.ledger import Ledger, Receipt
from dpmanifolds.privacy import Guarantee, PureDP

SHARE = 2.0**-10
NAME = "survey"


@dataclass
class Score:
    """One line of the summary; `lost` and `overspent` must be 0."""

    ordeal: str
    tried: int = 0
    acknowledged: int = 0
    refused: int = 0
    failed: int = 0
    recorded: int = 0
    lost: int = 0
    overspent: int = 0

    @property
    def passed(self) -> bool:
        return self.lost == 0 and self.overspent == 0

    def judge(self, ledger: Ledger, receipts: list[Receipt], allowed: int) -> None:
        """Compare what the file holds with what it may hold, and with what the spenders were told."""
        held = {(entry.number, entry.hash) for entry in ledger.entries() if entry.kind == "spend"}
        ledger.verify()
        self.recorded += len(held)
        self.lost += sum((receipt.number, receipt.hash) not in held for receipt in receipts)
        self.overspent += max(0, len(held) - allowed)


def opened(path: Path, allowed: int) -> Ledger:
    """A ledger with a data set that pays for `allowed` shares exactly."""
    ledger = Ledger(path)
    ledger.open_dataset(NAME, PureDP(allowed * SHARE))
    return ledger


def spend(ledger: Ledger) -> Receipt:
    return ledger.spend(NAME, Guarantee.pure(SHARE), what="mean", parameters={"n": 1000})


def spend_until_told_otherwise(path: Path, allowed: int, count: int, pipe: int) -> None:
    """A process of the crowd: one line into the pipe for every spend it was told of, and for every refusal."""
    ledger = opened(path, allowed)
    for _ in range(count):
        try:
            receipt = spend(ledger)
            os.write(pipe, f"{receipt.number} {receipt.hash}\n".encode())
        except BudgetExceededError:
            os.write(pipe, b"refused\n")


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """Run `work` in a child that inherits everything; its process id and the end of the pipe to read."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        os.close(reading)
        work(writing)
        status = 0
    except LedgerError as error:
        os.write(writing, f"failed {error}\n".encode())
        status = 0
    finally:
        os._exit(status)


def reaped(child: int, reading: int, score: Score) -> list[Receipt]:
    """What the child was told, once it is dead."""
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().decode().splitlines()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status != 0:
        raise RuntimeError("a spender died of something else than was done to it")
    answers = [line.split() for line in lines]
    told = [answer for answer in answers if answer[0] not in ("refused", "failed")]
    score.refused += sum(answer[0] == "refused" for answer in answers)
    score.failed += sum(answer[0] == "failed" for answer in answers)
    score.acknowledged += len(told)
    score.tried += len(answers) + killed
    return [Receipt(NAME, "mean", int(number), "", digest) for number, digest in told]


def crowd(folder: Path, processes: int, spends: int) -> Score:
    """Processes that spend at once on a budget for nine tenths of what they ask."""
    score = Score(f"{processes} processes, {spends} spends")
    path, allowed, each = folder / "crowd.ledger", spends * 9 // 10, spends // processes
    children = [forked(partial(spend_until_told_otherwise, path, allowed, each)) for _ in range(processes)]
    receipts = [receipt for child in children for receipt in reaped(*child, score)]
    score.judge(Ledger(path), receipts, allowed)
    # with the budget exhausted and nobody killed, every share of it was handed out, and told of
    score.lost += allowed - len(receipts)
    return score


def kills(folder: Path, rounds: int, rng: random.Random, *, at_once: int = 3, per_file: int = 20) -> Score:
    """Crowds of which one after the other is killed at a random instant, from the making of the file on."""
    score = Score(f"kill -9, {rounds} times")
    for number in range(0, rounds, per_file):
        path, receipts = folder / f"kills-{number}.ledger", []
        allowed = rng.choice((60, 300, 100_000))
        work = partial(spend_until_told_otherwise, path, allowed, 10_000)
        children: list[tuple[int, int]] = []
        deaths = min(per_file, rounds - number)
        for _ in range(deaths):
            while len(children) < at_once:
                children.append(forked(work))
            time.sleep(rng.uniform(0.0, 0.06))
            victim = children.pop(rng.randrange(len(children)))
            os.kill(victim[0], signal.SIGKILL)
            receipts += reaped(*victim, score)
        for child in children:
            os.kill(child[0], signal.SIGKILL)
            receipts += reaped(*child, score)
        if path.exists() and path.stat().st_size:
            ledger = opened(path, allowed)
            before = score.recorded
            score.judge(ledger, receipts, allowed)
            # a killed spender leaves at most one spend that it was not told of
            unexplained = score.recorded - before - len(receipts) - deaths - len(children)
            score.overspent += max(0, unexplained)
            with contextlib.suppress(BudgetExceededError):
                spend(ledger)
        else:
            score.lost += len(receipts)
    return score


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[bool]:
    """A file system of its own at `folder`, where the machine permits; says whether it did."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    mounted = (
        shutil.which("mount") is not None
        and not subprocess.run(["mount", *options], check=False, capture_output=True).returncode
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def full_disk(folder: Path) -> Score:
    """Spend until the disk (or the limit on the size of files) ends."""
    allowed = 100_000
    with small_disk(folder / "small", 64) as mounted:
        score = Score("disk full (tmpfs of 64 KiB)" if mounted else "disk full (limit on the file size)")
        path = folder / "small" / "full.ledger"
        ballast = folder / "small" / "ballast"
        ballast.write_bytes(bytes(16 * 1024))

        def work(pipe: int) -> None:
            if not mounted:
                import resource

                resource.setrlimit(resource.RLIMIT_FSIZE, (48 * 1024, 48 * 1024))
            spend_until_told_otherwise(path, allowed, 10_000, pipe)

        receipts = reaped(*forked(work), score)
        ballast.unlink()
        score.judge(Ledger(path), receipts, allowed)
        score.overspent += max(0, score.recorded - len(receipts))
        # with space again, it goes on where it stood
        spend(Ledger(path))
        score.lost += score.failed != 1
    return score


def read_only(folder: Path) -> Score:
    """A file that may be read but not written, by somebody who is not root."""
    score = Score("read-only file and folder")
    place = folder / "read-only"
    place.mkdir()
    path = place / "read-only.ledger"
    receipts = [spend(opened(path, 10))]
    path.chmod(0o444)
    place.chmod(0o555)

    def work(pipe: int) -> None:
        if os.geteuid() == 0:
            os.setuid(65534)
        if Ledger(path).remaining(NAME) != PureDP(9 * SHARE):
            raise RuntimeError("a read-only ledger cannot be read")
        os.write(pipe, b"failed\n" if _fails(Ledger(path)) else b"0 spent-nothing\n")

    receipts += reaped(*forked(work), score)
    place.chmod(0o755)
    path.chmod(0o644)
    score.judge(Ledger(path), receipts, 1)
    return score


def _fails(ledger: Ledger) -> bool:
    try:
        spend(ledger)
    except LedgerError:
        return True
    return False


def damaged(page: bytes, old: bytes, rng: random.Random) -> bytes:
    """One page zeroed, overwritten, taken from an older state of the file, cut short, or with a few flipped bits."""
    way = rng.randrange(5)
    if way == 0:
        return bytes(len(page))
    if way == 1:
        return rng.randbytes(len(page))
    if way == 2:
        return old
    if way == 3:
        start = rng.randrange(len(page))
        return page[:start] + bytes(len(page) - start)
    changed = bytearray(page)
    for _ in range(rng.randint(1, 4)):
        # the first bytes of a page say how many entries it holds: hit them as often as all others together
        where = rng.randrange(16) if rng.random() < 0.5 else rng.randrange(len(page))
        changed[where] ^= 1 << rng.randrange(8)
    return bytes(changed)


def pages(folder: Path, trials: int, rng: random.Random, *, spent: int = 40, allowed: int = 50) -> Score:
    """Damage one page of a ledger that has `allowed − spent` shares left, and spend on."""
    score = Score(f"one damaged page, {trials} times")
    source = folder / "sound.ledger"
    ledger = opened(source, allowed)
    states = [source.read_bytes()]
    for _ in range(spent):
        spend(ledger)
        states.append(source.read_bytes())
    sound = states[-1]
    size = int.from_bytes(sound[16:18], "big")
    path = folder / "damaged.ledger"
    for _ in range(trials):
        start = rng.randrange(len(sound) // size) * size
        stale = rng.choice(states)[start : start + size].ljust(size, b"\0")
        hit = damaged(sound[start : start + size], stale, rng)
        path.write_bytes(sound[:start] + hit + sound[start + size :])
        taken = 0
        for _ in range(allowed - spent + 1):
            score.tried += 1
            try:
                spend(Ledger(path))
                taken += 1
            except BudgetExceededError:
                score.refused += 1
            except LedgerError:
                score.failed += 1
                break
        score.acknowledged += taken
        score.recorded += taken
        score.overspent += max(0, spent + taken - allowed)
        Path(f"{path}-journal").unlink(missing_ok=True)
    return score


def cuts(folder: Path, trials: int, rng: random.Random) -> Score:
    """The end of the file is lost."""
    score = Score(f"file cut short, {trials} times")
    source, path = folder / "long.ledger", folder / "cut.ledger"
    ledger = opened(source, 50)
    for _ in range(50):
        spend(ledger)
    sound = source.read_bytes()
    for _ in range(trials):
        path.write_bytes(sound[: rng.randrange(1, len(sound))])
        score.tried += 1
        try:
            spend(Ledger(path))
            score.overspent += 1
        except BudgetExceededError:
            score.refused += 1
        except LedgerError:
            score.failed += 1
        Path(f"{path}-journal").unlink(missing_ok=True)
    return score


def main(arguments: list[str] | None = None) -> int:
    """Run all ordeals and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--spends", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--folder", default=None, help="where to put the files; the system's temporary folder")
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args(arguments)
    rng = random.Random(given.seed)
    folder = Path(tempfile.mkdtemp(prefix="torture-", dir=given.folder))
    folder.chmod(0o755)
    try:
        scores = [
            crowd(folder, given.processes, given.spends),
            kills(folder, given.kills, rng),
            full_disk(folder),
            read_only(folder),
            pages(folder, given.pages, rng),
            cuts(folder, max(given.pages // 10, 1), rng),
        ]
    finally:
        shutil.rmtree(folder)
    columns = ("tried", "acknowledged", "refused", "failed", "recorded", "lost", "overspent")
    print(f"{'ordeal':32}" + "".join(f"{column:>14}" for column in columns))
    for score in scores:
        print(f"{score.ordeal:32}" + "".join(f"{getattr(score, column):>14,}" for column in columns))
    return 0 if all(score.passed for score in scores) else 1


if __name__ == "__main__":
    sys.exit(main())
