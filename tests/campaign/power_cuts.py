"""Power cuts: what a disk may hold of a store and its log when the power goes out in the midst of a step.

A store with a write-ahead log writes each step to the log and waits for the disk; later it copies the log into the
file, waits, and begins the log anew. Before each wait, the disk may have written any of the new sectors, in any order,
and the file may have any length in between. So an image is the store after a step, and some of the sectors of the next
one: of the log, or, once the whole log is there, of the file.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from probeval.campaign import Campaign, Event, Store, check_store
from probeval.data import Scale
from probeval.relevance import synthetic_campaign
from tests.attack.cases import Attack, Attempt, Tally, in_memory

SECTOR = 512
STEPS = 90


@dataclass(frozen=True)
class Moment:
    """The bytes of a store and its log after a step was acknowledged, and the number of events then."""

    file: bytes
    log: bytes
    events: int


def record(folder: Path) -> tuple[list[Moment], list[Event]]:
    """The moments of a campaign in use, and its events."""
    given = synthetic_campaign(seed=3, systems=3, queries=4, depth=5, docs=10)
    place, moments = folder / "store.db", list[Moment]()
    with Campaign.create(
        place, replace(given, judgments=None), metric="nDCG@5", scale=Scale.graded(2), model="uniform"
    ) as campaign:

        def look() -> None:
            # By another process: closing a file here would give up the locks that SQLite has on it.
            subprocess.run(["cp", place, f"{place}-wal", folder / "seen"], check=True)
            file, log = ((folder / "seen" / name).read_bytes() for name in (place.name, f"{place.name}-wal"))
            moments.append(Moment(file, log, len(campaign.log())))

        (folder / "seen").mkdir()
        steps: list[Callable[[], object]] = [
            lambda: campaign.answer_and_next("ann", campaign.next("ann")[0].question, grade=1),
            lambda: campaign.answer("bob", campaign.pool.label(len(moments) % len(campaign.pool)), grade=2),
            lambda: campaign.comment("bob", *campaign.pool.label(0), "so " * 700),
            campaign.refresh,
            lambda: campaign.withdraw("bob"),
            lambda: _copy_log(place),
        ]
        look()
        for i in range(STEPS):
            step = steps[i % len(steps)]
            if step is not steps[-1] or i % 4 == 3:  # the log grows over several rounds before it is copied
                step()
            look()
        return moments, campaign.log()


def _copy_log(place: Path) -> None:
    with closing(sqlite3.connect(place)) as other:
        other.execute("PRAGMA wal_checkpoint(PASSIVE)")


def torn(before: bytes, after: bytes, rng: random.Random) -> bytes:
    """A file of which a disk has written some of the new sectors, or all, and some length in between."""
    if rng.random() < 0.2:
        return after
    size = len(after) if rng.random() < 0.5 else rng.randint(*sorted((len(before), len(after))))
    image = bytearray(before[:size].ljust(size, b"\0"))
    places = [at for at in range(0, size, SECTOR) if before[at : at + SECTOR] != after[at : at + SECTOR]]
    share = rng.random()
    first = rng.randint(0, len(places))
    written = places[:first] if rng.random() < 0.4 else [at for at in places if rng.random() < share]
    for at in written:
        image[at : at + SECTOR] = after[at : min(at + SECTOR, size)]
    return bytes(image[:size])


@contextmanager
def power_cuts(number: int) -> Iterator[Attempt]:
    """Attempts to open what is left after a power cut each."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as place:
        moments, events = record(Path(place))
    steps = [(a, b) for a, b in pairwise(moments) if a.log != b.log]
    copies = [(a, b) for a, b in pairwise(moments) if a.file != b.file]

    def attempt(rng: random.Random, folder: Path, tally: Tally) -> None:
        copying = rng.random() < 0.4
        before, after = rng.choice(copies if copying else steps)
        store = folder / "store.db"
        store.write_bytes(torn(before.file, after.file, rng) if copying else before.file)
        Path(f"{store}-wal").write_bytes(after.log if copying else torn(before.log, after.log, rng))
        try:
            with closing(Store(store)) as opened:
                faults = check_store(opened).faults
            assert faults == (), faults
            with Campaign.open(store) as campaign:
                found = campaign.log()
                assert found == events[: len(found)]
                assert len(found) in ({after.events} if copying else {before.events, after.events})
                campaign.answer("zoe", campaign.pool.label(0), grade=1)
            tally["in the midst of copying the log" if copying else "in the midst of a step"] += 1
            tally["with the step that was under way"] += len(found) > before.events
        finally:
            for file in folder.glob("store.db*"):
                file.unlink()

    yield attempt


POWER_CUTS = Attack(
    "images",
    2_000,
    power_cuts,
    "the power goes out while a store is written: any new sectors of its log or its file, in any order, any length",
    "every acknowledged event is there, and no step by half",
)
