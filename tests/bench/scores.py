"""Moments and joint draws of a large campaign, in seconds and megabytes. Run by ``make bench``.

Every row states its target and whether it is met; a miss makes the exit status 1. Each row runs in its own process, so
that its peak memory is its own too (reading the runs and predicting relevance included).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from probeval.data import Scale, read_campaign
from probeval.relevance import FallbackModel, load_card
from probeval.scores import evaluate

# What to compute: measure, draws (0 for moments), depth; the most seconds and megabytes.
ROWS = {
    "moments of DCG@10": ("DCG@10", 0, 10, 2.0, None),
    "1,000 joint draws of nDCG@10": ("nDCG@10", 1000, 10, 15.0, 2048.0),
    "moments of DCG@100": ("DCG@100", 0, 100, 10.0, None),
    "1,000 joint draws of AP": ("AP", 1000, 100, None, 2048.0),
}


def main() -> int:
    """Measure, print, and say by the exit status whether every target is met."""
    folder = os.environ.get("PROBEVAL_DATA")
    if not folder or not (Path(folder) / "trec8-adhoc").is_dir():
        sys.exit("PROBEVAL_DATA must name the folder of real campaigns: nothing was measured.")
    if len(sys.argv) == 2:
        print(json.dumps(measured(Path(folder) / "trec8-adhoc", *ROWS[sys.argv[1]][:3])))
        return 0
    print(f"{'trec8-adhoc, nothing judged':<40}{'pairs':>9}{'seconds':>9}{'most':>7}{'megabytes':>11}{'most':>7}")
    missed = False
    for what, (_, _, _, most_seconds, most_memory) in ROWS.items():
        done = subprocess.run([sys.executable, __file__, what], check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        limits = ((found["seconds"], most_seconds), (found["megabytes"], most_memory))
        fails = any(limit is not None and value > limit for value, limit in limits)
        missed |= fails
        shown = [f"{limit:g}" if limit is not None else "" for _, limit in limits]
        print(
            f"{what:<40}{found['pairs']:>9,}{found['seconds']:>9.2f}{shown[0]:>7}{found['megabytes']:>11.0f}{shown[1]:>7}"
            f"  {'FAIL' if fails else 'pass'}"
        )
    return int(missed)


def measured(folder: Path, metric: str, draws: int, depth: int) -> dict[str, float]:
    """Seconds of the scores alone, the peak resident size of it all, and the size of the pool."""
    campaign = replace(read_campaign(folder), judgments=None)
    relevance = FallbackModel(load_card("text-out").models).predict(campaign.problem(depth=depth, scale=Scale.binary()))
    runs = campaign.runs.top(depth)
    start = time.perf_counter()
    if draws:
        scores = evaluate(runs, relevance, metric, method="draws", n=draws, rng=np.random.default_rng(0))
    else:
        scores = evaluate(runs, relevance, metric, method="moments")
    seconds = time.perf_counter() - start
    assert len(scores.systems) == len(runs.systems)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return {"seconds": seconds, "megabytes": size, "pairs": len(relevance.pool)}


if __name__ == "__main__":
    sys.exit(main())
