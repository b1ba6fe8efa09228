"""Time and memory of a campaign grow no faster than its judgments and its assessors."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest

from probeval.campaign import Campaign
from tests.campaign import shared_pairs
from tests.campaign.shared_pairs import PATHS, make_store

MOST = 12  # times as much for ten times as many pairs; their square would be 100 times
MEGABYTES = 1000  # with 50,000 pairs


def cost(path: str, file: Path) -> tuple[float, float]:
    """The seconds and the megabytes of a process of its own."""
    done = subprocess.run(
        [sys.executable, shared_pairs.__file__, path, file], capture_output=True, text=True, check=True
    )
    seconds, megabytes = json.loads(done.stdout)
    print(f"{path:<10}{file.stem:<14}{seconds:8.1f} s{megabytes:8.0f} MB")
    return seconds, megabytes


@pytest.mark.validation
def test_growth_with_shared_pairs(memory: Path):
    files = [memory / f"{n}.db" for n in (1_000, 10_000, 50_000)]
    for file in files:
        make_store(file, int(file.stem))
    for path in PATHS:
        costs = [cost(path, file) for file in files]
        for before, after in pairwise(costs):
            assert after[0] < MOST * before[0], path
            assert after[1] < MOST * before[1], path
        assert costs[-1][1] < MEGABYTES, path


@pytest.mark.validation
def test_growth_with_assessors(memory: Path):
    """The same judgments, by more and more people."""
    files = [memory / f"{n}.db" for n in (10, 100, 1000)]
    for file in files:
        make_store(file, 10_000, assessors=int(file.stem))
    for path in ("start", "status", "export"):
        for before, after in pairwise([cost(path, file) for file in files]):
            assert after[0] < MOST / 2 * before[0], path
            assert after[1] < MOST / 2 * before[1], path


@pytest.mark.validation
def test_a_start_with_a_hundred_thousand_events_by_twenty_assessors(memory: Path):
    make_store(memory / "25000.db", 25_000, assessors=20)
    seconds, megabytes = cost("start", memory / "25000.db")
    assert seconds < 10
    assert megabytes < MEGABYTES


@pytest.mark.slow
def test_memory_is_not_the_square_of_shared_pairs(memory: Path):
    """The paths that take least time; ``make validate`` has them all, with more pairs."""
    sizes, peaks = (200, 2000), dict[str, list[int]]()
    for n in sizes:
        make_store(memory / f"{n}.db", n)
        with Campaign.open(memory / f"{n}.db") as campaign:
            for path in ("status", "export", "audit"):
                tracemalloc.start()
                PATHS[path](campaign)
                peaks.setdefault(path, []).append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
    for path, (few, many) in peaks.items():
        assert many < MOST * few, path
