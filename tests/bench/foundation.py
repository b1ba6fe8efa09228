"""Reading, scoring, drawing and importing against peers, as ratios measured in one run. Run by ``make bench``.

Every row states its target and whether it is met; a miss makes the exit status 1. Peers read the same files and their
scores must agree with ours, or nothing is compared.
"""

from __future__ import annotations

import gzip
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ir_measures
import numpy as np
import pytrec_eval

from probeval.data import Judgments, Runs, Scale, read_judgments, read_runs
from probeval.data.scale import count_at_least
from probeval.metrics import Lists, measure, parse
from probeval.metrics.lists import gather

REPETITIONS = 7
IMPORTS = 11
DRAWS = 1000
NAMES = {"AP": "map", "nDCG@10": "ndcg_cut_10", "P@10": "P_10", "RR": "recip_rank"}
METRICS = [parse(name) for name in NAMES]
Scores = dict[str, float]  # the sum over runs and topics by measure, to compare


def main() -> int:
    """Measure, print, and say by the exit status whether every target is met."""
    if len(sys.argv) == 2 and sys.argv[1] == "memory":
        return memory()
    folder = campaigns()
    rows = [*against_peers(folder / "trec8-adhoc"), drawing(folder / "trec-dl2019-passage"), peak(), importing()]
    print(f"{'':<58}{'measured':>10}{'target':>10}")
    for what, value, target, unit in rows:
        verdict = "" if target is None else "pass" if value <= target else "FAIL"
        wanted = "" if target is None else f"{target:g}{unit}"
        print(f"{what:<58}{value:>9.3g}{unit:<1}{wanted:>10}  {verdict}")
    return int(any(target is not None and value > target for _, value, target, _ in rows))


Row = tuple[str, float, float | None, str]  # what, measured, target (None: for information), unit


def campaigns() -> Path:
    folder = os.environ.get("PROBEVAL_DATA")
    if not folder or not (Path(folder) / "trec8-adhoc").is_dir():
        sys.exit("PROBEVAL_DATA must name the folder of real campaigns: nothing was measured.")
    return Path(folder)


# ---- three ways from files to scores ----


def totals(values: dict[str, float]) -> Scores:
    return {name: float(total) for name, total in values.items()}


def ours(folder: Path) -> Scores:
    return scored(read_runs(folder / "runs"), read_judgments(folder / "qrels.txt.gz"))


def scored(runs: Runs, judgments: Judgments) -> Scores:
    lists, _ = Lists.judged(runs, judgments, judgments.scale())
    return totals({str(metric): metric.scores(lists).sum() for metric in METRICS})


def by_pytrec_eval(folder: Path) -> Scores:
    with gzip.open(folder / "qrels.txt.gz", "rt") as lines:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(lines), set(NAMES.values()))
    return evaluated(evaluator, (run_of(path) for path in files(folder)))


def run_of(path: Path) -> dict[str, dict[str, float]]:
    with gzip.open(path, "rt") as lines:
        return pytrec_eval.parse_run(lines)


def evaluated(evaluator: pytrec_eval.RelevanceEvaluator, runs) -> Scores:
    found = dict.fromkeys(NAMES, 0.0)
    for run in runs:
        for scores in evaluator.evaluate(run).values():
            for name, theirs in NAMES.items():
                found[name] += scores[theirs]
    return found


def by_ir_measures(folder: Path) -> Scores:
    with gzip.open(folder / "qrels.txt.gz", "rt") as lines:
        measures = [ir_measures.parse_measure(name) for name in NAMES]
        evaluator = ir_measures.evaluator(measures, list(ir_measures.read_trec_qrels(lines)))
    found = dict.fromkeys(NAMES, 0.0)
    for path in files(folder):
        with gzip.open(path, "rt") as lines:
            for score in evaluator.iter_calc(ir_measures.read_trec_run(lines)):
                found[str(score.measure)] += score.value
    return found


def files(folder: Path) -> list[Path]:
    return sorted((folder / "runs").iterdir())


def agree(*found: Scores) -> None:
    for name in NAMES:
        if np.ptp([scores[name] for scores in found]) > 1e-6:
            sys.exit(f"{name} differs between tools: {[scores[name] for scores in found]}. Nothing can be compared.")


# ---- the rows ----


def medians(ways: list[Callable[[], Scores]], repetitions: int = REPETITIONS) -> list[float]:
    """Seconds of each way: the median over repetitions that take turns, so that a busy machine hits all alike."""
    agree(*(way() for way in ways))  # and warm up
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(repetitions):
        for way, taken in zip(ways, times, strict=True):
            start = time.perf_counter()
            way()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def against_peers(folder: Path) -> list[Row]:
    n = len(files(folder))
    us, pytrec, irm = medians([lambda: ours(folder), lambda: by_pytrec_eval(folder), lambda: by_ir_measures(folder)])
    runs, judgments = read_runs(folder / "runs"), read_judgments(folder / "qrels.txt.gz")
    loaded = [run_of(path) for path in files(folder)]
    with gzip.open(folder / "qrels.txt.gz", "rt") as lines:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(lines), set(NAMES.values()))
    alone, theirs = medians([lambda: scored(runs, judgments), lambda: evaluated(evaluator, loaded)])
    with_bounds = medians([lambda: bounded(runs, judgments)], repetitions=3)[0]
    return [
        (f"read {n} gzipped runs and score {', '.join(NAMES)}", us, None, "s"),
        ("  over ir_measures", us / irm, 0.75, ""),
        ("  over pytrec_eval", us / pytrec, 1.0, ""),
        ("scoring alone", alone, None, "s"),
        ("  over pytrec_eval's evaluate", alone / theirs, 0.5, ""),
        ("scoring with bounds from the unjudged", with_bounds, None, "s"),
    ]


def bounded(runs: Runs, judgments: Judgments) -> Scores:
    return totals({str(m): measure(runs, judgments, m, depth=runs.depth).values.sum() for m in METRICS})


def top_of(folder: Path, depth: int) -> tuple[Runs, Scale]:
    return read_runs(folder / "runs", depth=depth), read_judgments(folder / "qrels.txt.gz").scale()


def draw(runs: Runs, scale: Scale) -> np.ndarray:
    """nDCG@10 of every system and query under many draws of the pool's grades, shape (draw, system, query)."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, len(scale), (DRAWS, len(runs.pool)), dtype=np.int16)
    offered = count_at_least(codes, runs.pool.query, len(runs.queries), len(scale))
    return parse("nDCG@10").scores(Lists(scale, gather(codes, runs.pairs), offered))


def drawing(folder: Path) -> Row:
    runs, scale = top_of(folder, 10)
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        _, systems, queries = draw(runs, scale).shape
        taken.append(time.perf_counter() - start)
    return (
        f"{DRAWS} draws of grades, {systems} systems x {queries} queries, nDCG@10",
        statistics.median(taken),
        5.0,
        "s",
    )


def memory() -> int:
    """Do all of the work once and print the peak resident size in MB."""
    import resource

    folder = campaigns()
    ours(folder / "trec8-adhoc")
    draw(*top_of(folder / "trec-dl2019-passage", 10))
    unit = 2**20 if sys.platform == "darwin" else 2**10
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
    return 0


def peak() -> Row:
    found = subprocess.run([sys.executable, __file__, "memory"], check=True, capture_output=True, text=True)
    return "peak memory of the reading, scoring and drawing above", float(found.stdout), 1024.0, "M"


def importing() -> Row:
    names = ("probeval", "numpy, pandas")
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(IMPORTS):
        for name in names:
            code = f"import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"
            found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
            taken[name].append(float(found.stdout))
    us, them = (statistics.median(taken[name]) for name in names)
    return "import probeval over import numpy, pandas", us / them, 1.3, ""


if __name__ == "__main__":
    sys.exit(main())
