"""The model keeps up with people: at one judgment per second, on a real campaign, with the workers of a server."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, Refresher
from probeval.campaign.state import concerns_models
from probeval.data import read_campaign

SYSTEMS, JUDGMENTS = 50, 200
MOST_BEHIND, MOST_SECONDS = 20, 15.0  # judgments, or on a busy machine seconds of the processor


def seconds_of(refresher: Refresher) -> float:
    """The processor time of the process that makes snapshots."""
    processes = getattr(refresher._snapshots._executor, "_processes", None) or {}
    ticks = 0
    for process in list(processes):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.validation
def test_the_model_is_never_far_behind_at_a_judgment_per_second(data: Path, memory: Path):
    whole = replace(read_campaign(data / "trec-dl2020-passage"), labels=None)
    runs = whole.runs.select(whole.runs.systems[:SYSTEMS])
    assert whole.judgments is not None
    given = whole.judgments
    grade_of = dict(zip(map(given.pool.label, range(len(given.pool))), given.grades(), strict=True))
    collection = replace(whole, runs=runs, judgments=None)
    store = memory / "dl.db"
    behind, spent, waited, forecasts = [0], [0.0], [0.0], set[int]()
    with (
        Campaign.create(
            store, collection, metric="nDCG@10", scale=whole.scale(), stopping="confidence=.97"
        ) as campaign,
        Refresher(campaign) as refresher,
    ):
        while campaign.snapshot is None:
            time.sleep(0.2)
        done = threading.Event()

        def judge() -> None:
            for _ in range(JUDGMENTS):
                began = time.monotonic()
                (task,) = campaign.next("ann")
                campaign.answer("ann", task.question, grade=max(0.0, grade_of.get((task.query, task.doc), 0.0)))
                time.sleep(max(0.0, 1 - (time.monotonic() - began)))
            done.set()

        threading.Thread(target=judge, daemon=True).start()
        used: dict[int, float] = {}  # by judgment: the processor time when it was first seen
        while not done.wait(0.2):
            snapshot, now = campaign.snapshot, seconds_of(refresher)
            assert snapshot is not None
            if snapshot.forecast is not None:
                forecasts.add(snapshot.forecast.judged)
            missing = [event for event in campaign.log(snapshot.number) if concerns_models(event)]
            for event in missing:
                used.setdefault(event.number, now)
            if missing:
                behind.append(len(missing))
                spent.append(now - used[missing[0].number])
                waited.append(time.time() - missing[0].time)
    print(
        f"at most {max(behind)} judgments, {max(spent):.1f} s of the processor and {max(waited):.1f} s behind, "
        f"{np.mean(behind):.1f} judgments in the mean; forecasts at {sorted(forecasts)} judged"
    )
    assert max(behind) <= MOST_BEHIND or max(spent) <= MOST_SECONDS
