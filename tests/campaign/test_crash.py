"""kill -9 at any moment: every acknowledged judgment is there afterwards, nothing is doubled, the log is whole."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, Judged
from tests.attack.cases import check_some
from tests.campaign.conftest import on_both_databases
from tests.campaign.nursery import start_python
from tests.campaign.power_cuts import POWER_CUTS

WRITER = Path(__file__).with_name("writer.py").read_text()


def _killed(store: str, delay: float) -> list[str]:
    """What a writing process acknowledged before it was killed, so long after its first word."""
    writer = start_python(WRITER, store, "ann", 100_000)
    first = writer.stdout.readline()
    time.sleep(delay)
    writer.kill()
    rest, _ = writer.communicate()
    assert writer.returncode == -signal.SIGKILL
    # The last line may be cut: then it was not acknowledged.
    return [first.strip(), *(line.strip() for line in rest.splitlines(keepends=True) if line.endswith("\n"))]


def _kill_again_and_again(make: Callable[..., Campaign], store: str, times: int) -> int:
    """Kill a writer so often; how many judgments were acknowledged, each of which is there after every kill."""
    campaign = make()
    rng = np.random.default_rng(0)
    acknowledged: list[str] = []
    for _ in range(times):
        acknowledged += _killed(store, rng.uniform(0, 0.3))
        with Campaign.open(store) as after:
            log = after.log()
            tokens = [event.token for event in log if isinstance(event, Judged)]
            assert [event.number for event in log] == list(range(1, len(log) + 1))
            assert len(set(tokens)) == len(tokens)
            assert set(acknowledged) <= set(tokens)
            assert after.state.number == len(log)
    if "://" not in store:
        with sqlite3.connect(store) as file:
            assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert campaign.state.number == len(campaign.log())
    return len(acknowledged)


@on_both_databases
@pytest.mark.slow
def test_three_kills_lose_nothing(make: Callable[..., Campaign], store: str):
    assert _kill_again_and_again(make, store, 3) >= 3


@on_both_databases
@pytest.mark.validation
def test_twenty_kills_lose_nothing(make: Callable[..., Campaign], store: str):
    assert _kill_again_and_again(make, store, 20) >= 20


@pytest.mark.slow
def test_what_a_power_cut_leaves():
    """Twenty images of the 2,000 of make attack."""
    check_some(POWER_CUTS, 20)
