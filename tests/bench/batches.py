"""One large batch for the comparison of two systems: its sides, and what 200 judgments of it make of the answer.

The sets are generated: two systems, 2,000 or 10,000 queries, top 10, grades 0-3. Each set has its own overlap of the
lists (about 24,000 to 31,000 pairs with 2,000 queries) and its own difference between the systems. A judge labels every
pair: one with errors alone, and one that also favours the documents that only the worse system has. Nothing is judged
at first. ``next -n 200 --goal pair:`` chooses a batch, its pairs get their true grades, and the model is fitted again.
Every set is computed in a process of its own; ``--before`` names the folder of an earlier tree, computed in the same
run. The columns are means over sets:

- side: the share of the side with more pairs, among the pairs that count for one system more than for the other; most:
  that of the worst set;
- first, error: the absolute error of the estimated difference before and after the 200 judgments;
- true: the size of the true difference;
- P first, P wrong: the probability that the worse system is better, before and after; rose: the sets in which it rose;
- audit: the error of the difference by the pairs drawn at random alone;
- choice: processor seconds of the choice, the first fit included.

    python tests/bench/batches.py
    python tests/bench/batches.py --before ../probeval-ddff23d
    python tests/bench/batches.py --queries 2000 --explore 0 .1 .25 .4    # the share of pairs drawn at random
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

import probeval
from probeval.data import Collection, Judgments, LabelTable, Pool, Runs
from probeval.metrics import measure
from probeval.selection import Judging, foresee
from probeval.selection.audit import unbiased

CANDIDATES, DEPTH = 30, 10
CUTS = np.array([0.4, 1.2, 2.0])  # of the latent relevance, between grades
METRIC, BATCH = "DCG@10", 200
JUDGES = {"unbiased": 0.0, "biased": 0.3}  # what a judge adds to the relevance of the documents of the worse system
COLUMNS = ("side", "most", "first", "error", "true", "P first", "P wrong", "rose", "audit", "choice")


def generated(seed: int, queries: int, *, bias: float) -> Collection:
    """A set: runs of the systems ``worse`` and ``better``, the grade of every pair, and the labels of a judge."""
    rng = np.random.default_rng([seed, queries])
    gap, apart = rng.uniform(0.05, 0.2), rng.uniform(0.3, 0.9)
    relevance = rng.normal(size=(queries, CANDIDATES))
    score = np.array([1.0, 1.0 + gap])[:, None, None] * relevance + 0.6 * rng.normal(size=relevance.shape)
    score += apart * rng.normal(size=score.shape)
    best = np.argsort(-score, axis=-1)[..., :DEPTH]
    system, query, _ = np.indices(best.shape)
    found, place = np.unique((query * CANDIDATES + best).ravel(), return_inverse=True)
    names = np.array([f"q{i:05d}" for i in range(queries)], dtype=object)
    docs = np.array([f"d{i:06d}" for i in found], dtype=object)
    pool = Pool(names, docs, found // CANDIDATES, np.arange(len(found)))
    runs = Runs.coded(
        ("worse", "better"), pool, system.ravel(), place, np.take_along_axis(score, best, axis=-1).ravel()
    )
    has = np.zeros((2, len(pool)))
    has[system.ravel(), place] = 1.0
    latent = (relevance + 0.5 * rng.normal(size=(queries, 1))).ravel()[found]
    grade = np.searchsorted(CUTS, latent + 0.5 * rng.normal(size=len(pool)))
    label = np.searchsorted(CUTS, latent + 0.6 * rng.normal(size=len(pool)) + bias * (has[0] - has[1]))
    judgments = Judgments.coded(pool, np.arange(len(pool)), grade.astype(float))
    return Collection("batches", runs, judgments, labels=LabelTable(pool, ("judge",), label[:, None].astype(float)))


def judged(seed: int, queries: int, bias: float, explore: float | None) -> dict[str, float]:
    """The figures of a set."""
    full = generated(seed, queries, bias=bias)
    scores = measure(full.runs, full.judgments, METRIC).values.mean(axis=1)
    true = float(scores[0] - scores[1])
    start = time.process_time()
    found = probeval.evaluate(replace(full, judgments=None), METRIC, scale="graded:3", seed=seed).next(
        BATCH, goal="pair:worse,better", explore=explore
    )
    found.to_frame()
    seconds = time.process_time() - start
    state = found.state
    batch = state.next(BATCH)
    judging: Judging = state.judging
    weights = state.context.level_weights.toarray()
    side = np.sign(weights[0] - weights[1])[batch.pairs]
    grades = full.judgments.on(judging.pool).grades()
    after = state.after(Judgments.coded(judging.pool, batch.pairs, grades[batch.pairs]))
    then, now = (one.scores.compare("worse", "better") for one in (state, after))
    drawn = [
        (int(p), pick)
        for p, pick in zip(batch.pairs, foresee(state, batch), strict=True)
        if pick.probability is not None
    ]
    z = unbiased(drawn, grades, state.context.level_weights) if drawn else np.full((1, 2), np.nan)
    larger = max((side > 0).sum(), (side < 0).sum()) / (side != 0).sum()
    return {
        "side": larger,
        "first": abs(then.difference.mean() - true),
        "error": abs(now.difference.mean() - true),
        "true": abs(true),
        "P first": then.p_better,
        "P wrong": now.p_better,
        "rose": float(now.p_better > then.p_better),
        "audit": abs(float(z.mean(axis=0) @ [1, -1]) - true),
        "choice": seconds,
    }


def main() -> None:
    """Print a row per number of queries, judge, tree and share of draws."""
    if sys.argv[1:2] == ["set"]:
        print(json.dumps(judged(*json.loads(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description="One large batch for the comparison of two systems.")
    parser.add_argument("--queries", type=int, nargs="+", default=[2000, 10_000])
    parser.add_argument("--sets", type=int, default=8, help="the number of sets, %(default)s")
    parser.add_argument("--before", metavar="FOLDER", help="an earlier tree, computed too")
    parser.add_argument("--explore", type=float, nargs="+", help="shares of pairs drawn at random; default: the tree's")
    asked = parser.parse_args()
    trees = {"before": asked.before} if asked.before else {}
    trees["now"] = str(Path(__file__).parents[2])
    print(f"{'queries':>8} {'judge':<9}{'tree':<7}{'explore':>8}" + "".join(f"{name:>9}" for name in COLUMNS))
    for queries, (judge, bias), (tree, folder), explore in product(
        asked.queries, JUDGES.items(), trees.items(), asked.explore or [None]
    ):
        sets = pd.DataFrame([in_process(folder, seed, queries, bias, explore) for seed in range(asked.sets)])
        row = {**sets.mean(), "most": sets["side"].max(), "rose": sets["rose"].sum()}
        share = "default" if explore is None else f"{explore:g}"
        figures = "".join(f"{row[name]:>9.{0 if name == 'rose' else 4}f}" for name in COLUMNS)
        print(f"{queries:>8,} {judge:<9}{tree:<7}{share:>8}{figures}", flush=True)


def in_process(folder: str, *cell: float | None) -> dict[str, float]:
    """The figures of a set by a tree, in a process of its own."""
    command = [sys.executable, __file__, "set", json.dumps(cell)]
    environment = {**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"set {cell} failed:\n{done.stderr}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
