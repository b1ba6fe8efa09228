"""Aggregate real crowd votes and compare with the expert's grades: the tables of docs/evidence-observers.md.

Usage: python examples/crowd_evidence.py DATA [SEEDS]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from probeval.data import Judgments, Votes, read_votes
from probeval.relevance import Aggregation, aggregate_votes

FILE = "crowd-trec-rf10/trec-rf10-data.txt.gz"
KNOWN = 0.1  # the share of gold grades that the methods are told
EDGES = np.linspace(0, 1, 11)  # of the bins of the calibration error
CASES = {
    "majority": ("majority", False),
    "median": ("median", False),
    "Dawid-Skene": ("dawid-skene", False),
    "Dawid-Skene, a tenth of the gold known": ("dawid-skene", True),
    "model, consensus": ("model", False),
    "model, a tenth of the gold known": ("model", True),
}


def main(folder: str, seeds: int = 10) -> None:
    """Print the page."""
    votes = read_votes(Path(folder) / FILE)
    print("\n".join(_page(votes, seeds)))


def split(votes: Votes, seed: int) -> tuple[Votes, Judgments]:
    """The votes with a random tenth of the gold grades, and the other gold grades."""
    assert votes.gold is not None
    order = np.random.default_rng(seed).permutation(len(votes.gold))
    n = round(KNOWN * len(order))
    return replace(votes, gold=votes.gold.take(order[:n])), votes.gold.take(order[n:])


def measured(found: Aggregation, gold: Judgments) -> dict[str, float]:
    """Accuracy, stated probability and calibration error on three levels and on two, against gold grades."""
    truth = found.scale.codes(gold.grade)
    probability, grade = found.probability[gold.pair], found.grade[gold.pair]
    relevant = probability[:, 1:].sum(axis=1)
    chosen = grade > 0 if found.method == "median" else relevant > 0.5
    stated = np.take_along_axis(probability, grade[:, None].astype(np.int64), axis=1)[:, 0]
    right, right2 = grade == truth, chosen == (truth > 0)
    stated2 = np.where(chosen, relevant, 1 - relevant)
    return {
        "accuracy": float(right.mean()),
        "stated": float(stated.mean()),
        "calibration error": calibration_error(stated, right),
        "accuracy, 2 levels": float(right2.mean()),
        "stated, 2 levels": float(stated2.mean()),
        "calibration error, 2 levels": calibration_error(stated2, right2),
    }


def calibration_error(stated: np.ndarray, right: np.ndarray) -> float:
    """The mean over ten bins of the distance between the stated probability and the share of right grades."""
    bins = np.digitize(stated, EDGES[1:-1])
    apart = np.bincount(bins, stated - right, minlength=len(EDGES) - 1)
    return float(np.abs(apart).sum() / len(stated))


def figures(votes: Votes, seeds: int) -> dict[str, pd.DataFrame]:
    """The figures of every case, one row per seed."""
    found: dict[str, list[dict[str, float]]] = {case: [] for case in CASES}
    untold = {
        case: aggregate_votes(votes, method=method, reference="consensus")
        for case, (method, told) in CASES.items()
        if not told
    }
    for seed in range(seeds):
        known, gold = split(votes, seed)
        for case, (method, told) in CASES.items():
            result = aggregate_votes(known, method=method) if told else untold[case]
            found[case].append(measured(result, gold))
    return {case: pd.DataFrame(rows) for case, rows in found.items()}


def _page(votes: Votes, seeds: int) -> Iterator[str]:
    assert votes.gold is not None
    given = votes.judgments
    tables = figures(votes, seeds)
    columns = list(next(iter(tables.values())).columns)
    yield f"{votes.no_grade + votes.repeated + len(given):,} labels of {len(given.pool):,} pairs by"
    yield f"{np.unique(given.assessor).size:,} workers; {np.unique(votes.gold.pair).size:,} gold grades;"
    yield f"means over {seeds} random tenths of known gold, on the other gold grades."
    yield ""
    yield f"| method | {' | '.join(columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for case, table in tables.items():
        yield f"| {case} | {' | '.join(f'{table[c].mean():.3f}' for c in columns)} |"
    yield ""
    best, told = (list(tables)[i] for i in (-1, 3))
    for column in ("accuracy", "accuracy, 2 levels"):
        gap = tables[best][column] - tables[told][column]
        yield (
            f"- {best} minus {told}, {column}: {gap.mean():+.3f} "
            f"(over seeds {gap.min():+.3f} to {gap.max():+.3f}; better on {(gap > 0).sum()} of {seeds})."
        )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
