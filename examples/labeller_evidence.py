"""Write docs/evidence-labellers.md: `python examples/labeller_evidence.py DATA KEEP`.

Every finished cell is kept in the folder KEEP, so that a broken run resumes where it stopped.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import DOCS, Keep, past_campaigns, short, table
from label_tables import labelled_tables

import probeval
from probeval.data import read_campaign
from probeval.relevance import fit_hierarchical
from probeval.selection import choose_for_labeller

PAGE = DOCS / "evidence-labellers.md"
CAMPAIGNS = {"trec-dl2019-passage": "DL 2019", "trec-dl2020-passage": "DL 2020"}
COLUMNS = ("gpt4o_umbrela", "llama32_umbrela")
NAME = "judge"  # under which no model has met the columns
SIZES, SEEDS, METRIC, SCALE = (100, 250, 500, 1000), 5, "nDCG@10", "graded:3"
HEAD = """# Evidence: which pairs to label

Written by `examples/labeller_evidence.py`. A language model labels some pairs of TREC Deep Learning 2019 and 2020; nothing is judged by
people. The model of relevance was fitted to other campaigns and other tables of labels, and the labeller has a name that it has never
met. Pairs are chosen at random (means over {seeds} seeds), by their best rank, as for people (`probeval next`), or by
[what labels tell](theory/judging.md#labellers) (`probeval next --labeller`). The measure is nDCG@10; tau is Kendall's, of the ranking
with these labels and the one by all human judgments.

"""


def ranked(collection, model, labels):
    """The evaluation with some labels."""
    return probeval.evaluate(replace(collection, judgments=None, labels=labels), METRIC, model=model, scale=SCALE)


def tau(evaluation, truth):
    x, n = evaluation.scores.mean, len(truth)
    signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(truth, truth))
    return float(signs.sum() / (n * (n - 1)))


def some(full, pool, pairs):
    """The labels of these pairs alone."""
    rows = np.full(len(pool), -1)
    rows[pairs] = pool.within(full.pool)[pairs]
    return replace(full.rearranged(pool, rows), descriptions={NAME: full.observers[0]})


def cell(data, kept, campaign, column):
    """One row per number of labels: tau by each choice of pairs."""
    model = kept(
        "model",
        lambda: fit_hierarchical(
            past_campaigns(data, campaign), depth=10, labelled=labelled_tables(data, without=campaign)
        ),
    )
    collection = read_campaign(data / campaign).judged_systems(10)
    truth = probeval.evaluate(collection, METRIC, model="uniform", scale=SCALE).scores.mean
    found = collection.labels.take([column])
    full = replace(found, sources=(NAME,), descriptions={})
    pool = collection.runs.top(10).pool
    none = ranked(collection, model, None)
    state = none.judging(explore=0.0)
    rank, rows = np.argsort(state.context.best_rank, kind="stable"), []
    orders = [np.random.default_rng(seed).permutation(len(pool)) for seed in range(SEEDS)]
    for n in (*SIZES, len(pool)):
        choices = {
            "random": [order[:n] for order in orders[: 1 if n == len(pool) else SEEDS]],
            "rank": [rank[:n]],
            "people": [state.next(n).pairs] if n < len(pool) else [rank],
            "labeller": [choose_for_labeller(state, NAME, n).pairs] if n < len(pool) else [rank],
        }
        row = {"campaign": CAMPAIGNS[campaign], "labeller": column, "labels": n}
        for name, sets in choices.items():
            row[name] = np.mean([tau(ranked(collection, model, some(full, pool, pairs)), truth) for pairs in sets])
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return [{"campaign": CAMPAIGNS[campaign], "labeller": column, "labels": 0, "rank": tau(none, truth)}, *rows]


def main(data, keep):
    rows = []
    for campaign in CAMPAIGNS:
        kept = Keep(keep / campaign)
        for column in COLUMNS:
            rows += kept(column, lambda: cell(data, kept, campaign, column))  # noqa: B023 - called at once
    frame = pd.DataFrame(rows)
    names = {"random": "at random", "rank": "by rank", "people": "as for people", "labeller": "for the labeller"}
    frame = frame.rename(columns=names)[["campaign", "labeller", "labels", *names.values()]]
    means = frame[frame["labels"].isin(SIZES)].groupby("labels")[list(names.values())].mean().reset_index()
    parts = [HEAD.format(seeds=SEEDS), table(frame.map(lambda v: short(v, 3) if isinstance(v, float) else v))]
    parts += ["\n\nMeans over campaigns and labellers:\n\n", table(means.map(lambda v: short(v, 3)))]
    PAGE.write_text("".join(parts).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/labeller_evidence.py DATA KEEP")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
