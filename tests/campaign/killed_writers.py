"""Processes that are killed while they write or copy a store."""

from __future__ import annotations

import random
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from probeval.campaign import Campaign, Event, Judged, Store, check_store, copy_store
from probeval.data import Scale
from probeval.relevance import synthetic_campaign
from tests.attack.cases import Attack, Attempt, Tally, in_memory
from tests.campaign.nursery import start_python

WRITER = Path(__file__).with_name("writer.py").read_text()
COPY = "import sys; from probeval.campaign import copy_store; print('now', flush=True); copy_store(*sys.argv[1:])"


def killed_writer(store: str, delay: float) -> list[str]:
    """What a writing process acknowledged before it was killed, so long after its first word."""
    writer = start_python(WRITER, store, "ann", 100_000)
    first = writer.stdout.readline()
    time.sleep(delay)
    writer.kill()
    rest, _ = writer.communicate()
    assert writer.returncode == -signal.SIGKILL
    # The last line may be cut: then it was not acknowledged.
    return [first.strip(), *(line.strip() for line in rest.splitlines(keepends=True) if line.endswith("\n"))]


def check_acknowledged(store: str, acknowledged: list[str]) -> list[Event]:
    """Check that these judgments are in a log, once, and that it has no gaps; its events."""
    with Campaign.open(store) as after:
        log = after.log()
        tokens = [event.token for event in log if isinstance(event, Judged)]
        assert [event.number for event in log] == list(range(1, len(log) + 1))
        assert len(set(tokens)) == len(tokens)
        assert set(acknowledged) <= set(tokens)
        assert after.state.number == len(log)
    return log


@contextmanager
def killed_copies(number: int) -> Iterator[Attempt]:
    """Attempts to kill a backup while people judge, its restoration, and a writer of the restored store.

    A copy is there, and whole, or it is not there; what the restored store acknowledged is in it.
    """
    given = synthetic_campaign(seed=3, systems=4, queries=6, depth=6, docs=12)
    with tempfile.TemporaryDirectory(dir=in_memory()) as place:
        source = Path(place) / "store.db"
        with Campaign.create(
            source, replace(given, judgments=None), metric="nDCG@5", scale=Scale.graded(2), model="uniform"
        ) as campaign:
            for i in range(300):
                campaign.answer("bob", campaign.pool.label(i % len(campaign.pool)), grade=i % 3, token=f"bob-{i}")
            writer = start_python(WRITER, source, "eve", 1_000)
            began = time.monotonic()
            copy_store(source, Path(place) / "whole.db")
            whole_copy = time.monotonic() - began

            def copied(old: Path, new: Path, rng: random.Random, tally: Tally) -> None:
                copier = start_python(COPY, old, new)
                assert copier.stdout.readline() == "now\n"
                time.sleep(rng.uniform(0, 1.3 * whole_copy))
                copier.kill()
                copier.communicate()
                if not new.exists():
                    tally["copies killed before their end"] += 1
                    copy_store(old, new)
                with closing(Store(new)) as whole:
                    assert check_store(whole).faults == ()

            def attempt(rng: random.Random, folder: Path, tally: Tally) -> None:
                backup, restored = folder / "backup.db", folder / "restored.db"
                try:
                    copied(source, backup, rng, tally)
                    copied(backup, restored, rng, tally)
                    with Campaign.open(restored) as again:
                        events = again.log()
                    assert events == campaign.log()[: len(events)]
                    acknowledged = killed_writer(str(restored), rng.uniform(0, 0.2))
                    tally["judgments acknowledged by restored stores"] += len(acknowledged)
                    assert check_acknowledged(str(restored), acknowledged)[: len(events)] == events
                    with closing(Store(restored)) as whole:
                        assert check_store(whole).faults == ()
                finally:
                    for file in folder.glob("*.db*"):
                        file.unlink()

            try:
                yield attempt
            finally:
                writer.kill()
                writer.communicate()


COPIES = Attack(
    "backups",
    200,
    killed_copies,
    "`kill -9` of a backup while people judge, of its restoration, and of a writer of the restored store",
    "a copy is whole or not there, and every judgment that was acknowledged is there, once",
)
