"""Write docs/evidence-prices.md: `python examples/price_evidence.py DATA KEEP [--seeds N]`.

Finished replays are kept in the folder KEEP, so that a broken run resumes where it stopped; several processes may share
it. Models are those of label_study.py: a campaign is left out with all tables of its labels.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import do_all
from label_study import DL19, DL20, TITLES, Study

from probeval.data import LabelTable
from probeval.simulation import SimulationProtocol, Trajectory, replay
from probeval.streams import Purpose, stream

COLUMNS = ("noise", "flant5_Thomas", "llama32_umbrela", "monot5_base", "rank1_7b", "gpt4o_umbrela")
MACHINE = "machine"  # a name that no card has
PRICES = (0.01, 0.1)
BLOCKS = 0.1  # labels alone are bought in the blocks of this price, and counted at both
BASELINES = ("people", "labels", "square-root")
UNTIL = 0.3  # of the pool; no cell of the rule came near
SLACK, FACTOR = 20.0, 1.1  # what the rule may cost more than the best baseline
LEAST = 0.93  # accuracy at the stop


class Costs:
    """Replays of two campaigns with machines from worthless to strong."""

    def __init__(self, data: Path, keep: Path) -> None:
        self.study = Study(data, keep)
        self.kept = self.study.kept

    def labels(self, name: str, column: str) -> LabelTable:
        """Return a column as that of an unknown machine; noise is the strong one in random order."""
        table = self.study.columns(name)["gpt4o_umbrela" if column == "noise" else column]
        values = table.values
        if column == "noise":
            values = stream(0, name, Purpose.ORDER).permutation(values)
        return LabelTable(table.pool, (MACHINE,), values)

    def replay(self, name: str, column: str, price: float, allocation: str, seed: int) -> Trajectory:
        """Return one replay, by DCG@10 to the stop at .95 and to tau .9."""
        held = self.study.held(name)
        protocol = SimulationProtocol.of(
            "DCG@10", prices={MACHINE: price}, batch=10, draws=500, checkpoints=(), until=UNTIL
        )

        def judge() -> Trajectory:
            labels = self.labels(name, "gpt4o_umbrela" if allocation == "people" else column)
            campaign = replace(held, collection=replace(held.collection, labels=labels))
            return replay(
                campaign, self.study.model(name), protocol,
                policy="gain", name="hierarchical", allocation=allocation, seed=seed,
            )  # fmt: skip

        column, price = ("any", 1.0) if allocation == "people" else (column, price)
        return self.kept(f"price-{name}-{column}-{price:g}-{allocation}-{seed}", judge)

    def figures(self, name: str, column: str, price: float, allocation: str, seed: int) -> dict | None:
        """Return the costs of a replay; None if it was not made."""
        at = BLOCKS if allocation == "labels" else price
        seed = 0 if allocation == "labels" else seed
        key = f"price-{name}-{column}-{at:g}-{allocation}-{seed}"
        key = f"price-{name}-any-1-people-{seed}" if allocation == "people" else key
        if key not in self.kept:
            return None
        made = self.replay(name, column, at, allocation, seed)
        factor = price / at if allocation == "labels" else 1.0
        to_tau, stop = made.cost_to_tau90, made.stop
        return {
            "campaign": TITLES[name], "column": column, "price": price, "allocation": allocation, "seed": seed,
            "to tau .9": np.inf if to_tau is None else to_tau * factor,
            "to the stop": np.inf if stop is None else stop.cost * factor,
            "accuracy": np.nan if stop is None else stop.accuracy,
            "judgments": np.nan if stop is None else stop.judged, "labels": np.nan if stop is None else stop.labels,
        }  # fmt: skip


def work(costs: Costs, seeds: int) -> Iterator[partial]:
    """Return the replays, seed by seed."""
    for seed in range(seeds):
        for name in (DL19, DL20):
            yield partial(costs.replay, name, "", 1.0, "people", seed)
        for column in COLUMNS[::-1]:
            for name in (DL19, DL20):
                for price in PRICES:
                    yield partial(costs.replay, name, column, price, "gain", seed)
                if not seed:
                    yield partial(costs.replay, name, column, BLOCKS, "labels", 0)
        for column in COLUMNS[::-1]:
            for name in (DL19, DL20):
                for price in PRICES[::-1]:
                    yield partial(costs.replay, name, column, price, "square-root", seed)


def cells(costs: Costs, seeds: int) -> pd.DataFrame:
    """Return one row per campaign, column, price and rule, with means over the seeds that were made."""
    rows = [
        figures
        for name in (DL19, DL20) for column in COLUMNS for price in PRICES
        for allocation in ("gain", *BASELINES) for seed in range(seeds)
        if (figures := costs.figures(name, column, price, allocation, seed)) is not None
    ]  # fmt: skip
    keys = ["campaign", "column", "price", "allocation"]
    grouped = pd.DataFrame(rows).groupby(keys, sort=False)
    return grouped.mean().assign(seeds=grouped["seed"].nunique()).drop(columns="seed").reset_index()


def verdicts(found: pd.DataFrame, figure: str) -> pd.DataFrame:
    """Return one row per campaign, column and price: the cost by each rule, and whether the rule keeps its limit."""
    wide = found.pivot_table(index=["campaign", "column", "price"], columns="allocation", values=figure, sort=False)
    best = wide[[name for name in BASELINES if name in wide]].min(axis=1)
    limit = FACTOR * best + SLACK
    return wide.assign(limit=limit, kept=wide["gain"] <= limit).reset_index()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("keep", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    made = Costs(given.data, given.keep)
    do_all(list(work(made, given.seeds)))
    for figure in ("to tau .9", "to the stop"):
        print(verdicts(cells(made, given.seeds), figure).to_string())
