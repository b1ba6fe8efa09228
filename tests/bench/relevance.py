"""Features and fits at the size of a large campaign, in seconds and gigabytes. Run by ``make bench``.

Every row states its target and whether it is met; a miss makes the exit status 1. Each task runs in a process of its
own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from probeval.data import Collection, LabelTable, Scale, read_campaign
from probeval.data.problem import Problem
from probeval.features import compute_features, judged_features
from probeval.relevance import OrdinalModel, SyntheticCampaign, TrainingData, choose_model
from probeval.scores import evaluate

PAIRS, LEVELS, TERMS = 100_000, 4, 10
DEPTH = 100
OUTPUTS = ["fSYS", "fTEAM", "OV", "aRANK", "bRANK", "rSUM", "rRF", "pRANK", "zSCORE", "fSYS@10"]
JUDGED = ["aSYS", "dSYS", "aDOC", "nDOC"]
UPDATES = 200
FAMILIES = {"large": 0.6, "small": 1.2}  # language models, and the noise of their labels in grades
PROMPTS = 10  # columns of labels by each
REFITS, BATCH = 7, 10

Row = tuple[str, float, float | None, str]  # what, measured, target (None: for information), unit


def main() -> int:
    """Measure, print, and say by the exit status whether every target is met."""
    if len(sys.argv) == 2:
        print(json.dumps([*TASKS[sys.argv[1]](), peak()]))
        return 0
    campaign()  # says so where there is none
    rows = [row for task in TASKS for row in measured(task)]
    print(f"{'':<66}{'measured':>10}{'target':>10}")
    for what, value, target, unit in rows:
        verdict = "" if target is None else "pass" if value <= target else "FAIL"
        wanted = "" if target is None else f"{target:g}{unit}"
        print(f"{what:<66}{value:>9.3g}{unit:<2}{wanted:>9}  {verdict}")
    return int(any(target is not None and value > target for _, value, target, _ in rows))


def measured(task: str) -> list[Row]:
    done = subprocess.run([sys.executable, __file__, task], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{task} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def peak() -> Row:
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return "  peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 2.0, "GB"


def campaign() -> Path:
    folder = os.environ.get("PROBEVAL_DATA")
    if not folder or not (Path(folder) / "trec8-adhoc").is_dir():
        sys.exit("PROBEVAL_DATA must name the folder of real campaigns: nothing was measured.")
    return Path(folder) / "trec8-adhoc"


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fitting() -> list[Row]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(PAIRS, TERMS))
    reach = x @ np.linspace(-1, 1, TERMS) + rng.logistic(size=PAIRS)
    level = (reach[:, None] + np.linspace(0, -3, LEVELS - 1) > 0).sum(axis=1)
    terms = tuple(f"label[{i}]" for i in range(TERMS))
    data = TrainingData(
        terms=terms,
        x=x,
        level=level,
        n_levels=np.full(PAIRS, LEVELS),
        relevance=level / (LEVELS - 1),
        campaign=np.zeros(PAIRS, dtype=np.int64),
        query=np.arange(PAIRS) % 500,
        campaigns=("drawn",),
        values={LEVELS: np.arange(LEVELS) / (LEVELS - 1)},
        dropped=0,
    )
    taken = seconds(lambda: OrdinalModel(terms).fit_data(data))
    return [(f"fit on {PAIRS:,} pairs, {LEVELS} grades, {TERMS} features", taken, 20.0, "s")]


def features() -> list[Row]:
    collection: Collection = read_campaign(campaign())
    n, s = len(collection.runs.top(DEPTH).pool), len(collection.runs.systems)
    outputs = seconds(lambda: compute_features(collection.problem(depth=DEPTH), OUTPUTS))
    everything = seconds(lambda: compute_features(collection.problem(depth=DEPTH), OUTPUTS + JUDGED))
    return [
        (f"features of outputs, {n:,} pairs, {s} systems", outputs, None, "s"),
        ("features of outputs and judgments", everything, 5.0, "s"),
    ]


def updating() -> list[Row]:
    collection = read_campaign(campaign())
    totals = judged_features(collection.problem(depth=DEPTH))
    taken = []
    for pair in np.random.default_rng(1).integers(len(totals.relevance), size=UPDATES):
        start = time.perf_counter()
        totals = totals.with_judgment(int(pair), 1.0)
        taken.append(time.perf_counter() - start)
    reading = seconds(lambda: [totals.system_mean(), totals.system_difference(), totals.query_mean()])
    return [
        ("judged features after one more judgment, median", 1e3 * statistics.median(taken), 5.0, "ms"),
        ("  slowest but one in a hundred", 1e3 * float(np.quantile(taken, 0.99)), None, "ms"),
        ("  reading aSYS, dSYS and aDOC of every pair", 1e3 * reading, None, "ms"),
    ]


def labelled(rng: np.random.Generator, families: dict[str, float], prompts: int, **sizes: int) -> Collection:
    """A synthetic campaign with labels: each prompt of a language model repeats half of its error; some skip pairs."""
    drawn = SyntheticCampaign(depth=10, scale=Scale.graded(3), **sizes).draw(rng)
    assert drawn.judgments is not None
    grades = drawn.judgments.on(drawn.runs.pool).grades()
    names, columns = [], []
    for family, noise in families.items():
        common = rng.normal(size=len(grades))
        for prompt in range(prompts):
            error = noise * (common + rng.normal(size=len(grades))) / np.sqrt(2)
            column = np.clip(np.round(grades + error), 0, 3)
            if prompt % 3 == 2:
                column[rng.random(len(column)) < 1 / 3] = np.nan
            names.append(f"{family}_{prompt}")
            columns.append(column)
    table = LabelTable(drawn.runs.pool, tuple(names), np.column_stack(columns))
    return replace(drawn, metadata=None, labels=table)


def observing() -> list[Row]:
    collection = labelled(np.random.default_rng(0), FAMILIES, PROMPTS, systems=51, queries=54, docs=500)
    judgments = collection.judgments
    assert judgments is not None
    model = choose_model("text-hierarchical", collection).model
    order = np.random.default_rng(1).permutation(len(judgments))

    def after(n: int) -> Problem:
        return problem.with_judgments(judgments.take(np.isin(np.arange(len(order)), order[:n])))

    start, busy = time.perf_counter(), time.process_time()
    problem = collection.problem(depth=10)
    design = model.design(problem)
    posterior = model.refit(after(BATCH), design)
    cold, cold_busy = time.perf_counter() - start, time.process_time() - busy
    warm = {}
    for judged in (BATCH, len(judgments) // 5):
        posterior = model.refit(after(judged), design)
        for n in range(judged + BATCH, judged + BATCH * (REFITS + 1), BATCH):
            some = after(n)
            start, busy = time.perf_counter(), time.process_time()
            posterior = model.refit(some, design, last=posterior)
            taken = time.perf_counter() - start, time.process_time() - busy
            warm.setdefault(judged, []).append(taken)
    early, late = (np.median(found, axis=0).tolist() for found in warm.values())
    pairs = len(design.pool) / len(design.pool.queries)
    return [
        (f"labels of {len(FAMILIES) * PROMPTS} observers, 54 queries x {pairs:.0f} pairs: cold fit", cold, 5.0, "s"),
        ("  processor time", cold_busy, None, "s"),
        (f"  refit after {BATCH} more judgments, median", early[0], 0.5, "s"),
        ("  processor time", early[1], None, "s"),
        ("  the same with a fifth of the pool judged", late[0], 0.5, "s"),
        ("  processor time", late[1], None, "s"),
    ]


def predicting() -> list[Row]:
    collection = labelled(np.random.default_rng(0), {"large": 0.6}, 1, systems=4, queries=10_000, docs=100)
    collection = replace(collection, judgments=None)
    model = choose_model("text-hierarchical", collection).model
    n = len(collection.runs.pool)

    def scores() -> object:
        predicted = model.predict(collection.problem(depth=10, scale=Scale.graded(3)))
        return evaluate(collection.runs.top(10), predicted, "DCG@10")

    busy = time.process_time()
    taken = seconds(scores)
    return [
        (f"scores from {n:,} labelled pairs of 10,000 queries", taken, 60.0, "s"),
        ("  processor time", time.process_time() - busy, None, "s"),
    ]


TASKS: dict[str, Callable[[], list[Row]]] = {
    "fitting": fitting,
    "features": features,
    "updating": updating,
    "observing": observing,
    "predicting": predicting,
}

if __name__ == "__main__":
    sys.exit(main())
