"""A store in which every pair was judged by two assessors, and what its owner's commands take.

Run as a script, this is one such command in a process of its own, ``shared_pairs.py PATH STORE``: it prints the
seconds of the processor and the peak of memory, in megabytes, that the process took.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from probeval.campaign import Campaign, Judged
from probeval.campaign.checking import check_store
from probeval.campaign.events import Leased
from probeval.campaign.exchange import formats_for
from probeval.data import Collection, Scale, as_runs
from probeval.reports import render, report_campaign
from probeval.selection import Pick
from probeval.web.board import Board

PER_QUERY, DRAWN = 100, 10  # pairs, and those of them that were drawn at random
SYSTEMS, DEPTH = 4, 50


def make_store(file: Path, n: int, *, assessors: int = 2) -> None:
    """Write the log of a campaign with ``n`` pairs that two of its assessors judged, in one transaction."""
    rng = np.random.default_rng(1)
    queries = [f"q{i}" for i in range(n // PER_QUERY)]
    # The lists of two systems have all documents of a query, each a half; the other lists have some of both halves.
    halves = np.arange(PER_QUERY).reshape(2, DEPTH)
    rows = []
    for query in queries:
        lists = [*halves, *(rng.permutation(PER_QUERY)[:DEPTH] for _ in range(SYSTEMS - 2))]
        rows += [
            (f"s{s}", query, f"d{doc}", float(DEPTH - rank))
            for s, docs in enumerate(lists)
            for rank, doc in enumerate(docs)
        ]
    runs = as_runs(pd.DataFrame(rows, columns=["system", "query", "doc", "score"]))
    collection = Collection(name="shared", runs=runs)
    grades = rng.integers(0, 4, size=n)
    again = np.where(rng.random(n) < 0.7, grades, rng.integers(0, 4, size=n))
    with Campaign.create(
        file, collection, metric=f"nDCG@{DEPTH}", scale=Scale.graded(3), model="uniform", overlap=1.0, clock=lambda: 0.0
    ) as campaign:
        number, events = campaign.state.number, list[Leased | Judged]()
        for pair in range(n):
            query, doc = campaign.pool.label(pair)
            pick = Pick(predicted=1.0, variance=1.0, centre=1.0, known=pair, fitted=pair)
            if pair % PER_QUERY < DRAWN:
                pick = Pick(**{**vars(pick), "probability": 1 / n, "open": 0.5, "scores": (0.5,) * SYSTEMS})
            first = pair % assessors
            second = (first + 1 + pair // assessors % (assessors - 1)) % assessors
            for who, grade in ((first, grades), (second, again)):
                at = {"by": f"a{who}", "time": float(number), "query": query, "documents": (doc,)}
                events.append(Leased(**at, number=number + 1, until=number + 600.0, pick=pick))
                events.append(Judged(**at, number=number + 2, grade=float(grade[pair]), seconds=9.0))
                number += 2
        store, key = campaign._log.store, campaign._log.key
        with store._writing() as connection:
            store._add_events(connection, key, events, store._last(connection, key)[1])


def start(campaign: Campaign) -> None:
    """What a server computes before it answers."""
    with Board(campaign, tell=print):
        pass


PATHS: dict[str, Callable[[Campaign], object]] = {
    "start": start,
    "snapshot": lambda campaign: campaign.refresh(),  # by the server's other process
    "status": lambda campaign: campaign.status().to_dict(),
    "export": lambda campaign: [campaign.export(each.name) for each in formats_for(campaign.setup.kinds)],
    "audit": lambda campaign: campaign.audit(),
    "report": lambda campaign: render(report_campaign(campaign)),
    "check": lambda campaign: check_store(campaign._log.store),
}


def peak() -> float:
    """The peak of this process's memory, in megabytes. ``ru_maxrss`` would begin with that of the parent."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def main(path: str, file: str) -> None:
    with Campaign.open(file) as campaign:
        PATHS[path](campaign)
    print(json.dumps([time.process_time(), peak()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
