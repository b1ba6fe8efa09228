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
from evidence import DOCS, do_all, table
from label_study import DL19, DL20, TITLES, Study

from probeval.data import LabelTable
from probeval.selection import AnswerPrices, Judging
from probeval.simulation import Mix, SimulationProtocol, Trajectory, forecast_mix, replay
from probeval.simulation.forecast import first_passage
from probeval.streams import Purpose, stream

COLUMNS = ("noise", "flant5_Thomas", "llama32_umbrela", "monot5_base", "rank1_7b", "gpt4o_umbrela")
MACHINE = "machine"  # a name that no card has
PRICES = (0.01, 0.1)
BLOCKS = 0.1  # labels alone are bought in the blocks of this price, and counted at both
BASELINES = ("people", "labels", "square-root")
UNTIL = 0.3  # of the pool; no cell of the rule came near
SLACK, FACTOR = 20.0, 1.1  # what the rule may cost more than the best baseline
LEAST = 0.93  # accuracy at the stop
STOP = 0.95

HEAD = f"""# Evidence: people and machines at their prices

Written by `examples/price_evidence.py`. Deep Learning 2019 and 2020 are left out of the fit in turn, with all tables
of their labels, and judged again by DCG@10 in requests of ten judgments, or of labels that cost as much. A column of
labels plays the machine under a name that no card has: grades by GPT-4o and Llama 3.2, by re-rankers, by a small model,
and those of GPT-4o in random order (*noise*). A judgment costs 1, a label .01 or .1.

*gain* is [the rule](theory/judging.md#prices); *people* and *labels* are these alone; *square-root* is the rule of
two-phase sampling, replayed at .1. Labels alone were replayed once, as they hardly depend on the seed. Costs are those
from which Kendall's tau stays at .9 for the price of 100 more judgments, and those at which confidence reaches .95. A
dash is a baseline that did not get there, or was not replayed; without labels or people alone there is no verdict. The
means are over the seeds with which *gain* was replayed. The limit is {FACTOR:g} of the best baseline plus {SLACK:g}.
One or two seeds tell little: people alone stop on DL 2020 at 240, 200 and 270, and on DL 2019 at 290, 350 and 300.

"""
TRIED = """## Tried before

- Without the test on labels given, each request was valued by its formula alone. Labels by GPT-4o at .1 were bought
  too long: on DL 2020 the stop came at 350 (200 judgments and 1,500 labels) with people alone at 240, and tau .9 at
  90; with the test at 250 and 50. On DL 2019 the stop came at 310, and at 300 with it; tau .9 at 190, and at 160.
- What labels bring falls as they add up: on DL 2020, labels by GPT-4o brought 1.34, .58, .41 and .17 of what the
  formula promised for the first, second, third and fourth 250, as their errors are alike on many pairs; judgments
  brought 1.23, .79, 2.06 and .84. On DL 2019, labels by Llama 3.2 brought .45, 1.93, 2.04 and .61: their worth was
  first thought too low.
- By the square-root rule, with GPT-4o at .1 on DL 2019 and requests of twenty, tau .9 came at 760 and the stop at 820
  (680 judgments and 1,400 labels): random pairs cost most.
- Ten judgments of labelled pairs show what labels are worth, and lower tau for a while where few pairs are judged: on
  DL 2019 from .898 to .841 after the first 100 labels. Judgments by people alone do so too (.817 to .724).
"""


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

    def planned(self, name: str, price: float) -> Mix:
        """Return what a plan says before any label or judgment, of a machine never seen."""

        def forecast() -> Mix:
            held = self.study.held(name)
            judging = Judging.of(
                replace(held.collection, judgments=None, labels=None), self.study.model(name), "DCG@10",
                scale=held.scale, depth=10, explore=0.0,
            )  # fmt: skip
            prices = AnswerPrices(1.0, {MACHINE: price})
            return forecast_mix(judging.begin(), prices, target=STOP, alone=np.nan, rng=stream(0, name))

        return self.kept(f"price-mix-{name}-{price:g}", forecast)

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
            "until it holds": first_passage(
                np.array([step.cost for step in made.steps]), np.array([step.confidence for step in made.steps]) - STOP,
                100, np.nan,
            ),
            "accuracy": np.nan if stop is None else stop.accuracy,
            "judgments": np.nan if stop is None else stop.judged, "labels": np.nan if stop is None else stop.labels,
        }  # fmt: skip


def work(costs: Costs, seeds: int) -> Iterator[partial]:
    """Return the replays, seed by seed."""
    for name in (DL19, DL20):
        for price in PRICES:
            yield partial(costs.planned, name, price)
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
                yield partial(costs.replay, name, column, BLOCKS, "square-root", seed)


def found_cells(costs: Costs, seeds: int) -> pd.DataFrame:
    """Return one row per campaign, column, price, rule and seed that was made."""
    rows = [
        figures
        for name in (DL19, DL20) for column in COLUMNS for price in PRICES
        for allocation in ("gain", *BASELINES) for seed in range(seeds)
        if (figures := costs.figures(name, column, price, allocation, seed)) is not None
    ]  # fmt: skip
    return pd.DataFrame(rows)


def verdicts(found: pd.DataFrame, figure: str) -> pd.DataFrame:
    """Return one row per campaign, column and price: the mean cost by each rule, and whether ours keeps its limit.

    The means are over the seeds with which our rule was replayed. There is no verdict without people and labels alone.
    """
    keys = ["campaign", "column", "price"]
    ours = found.loc[found["allocation"] == "gain", [*keys, "seed"]]
    wide = found.merge(ours).pivot_table(index=keys, columns="allocation", values=figure, sort=False)
    wide = wide.reindex(columns=["gain", *BASELINES])
    limit = FACTOR * wide[list(BASELINES)].min(axis=1) + SLACK
    kept = (wide["gain"] <= limit).map({True: "yes", False: "no"})
    kept = kept.where(wide[["people", "labels"]].notna().all(axis=1), "not all replayed")
    return wide.replace(np.inf, np.nan).assign(limit=limit, kept=kept).reset_index()


def plans(costs: Costs, found: pd.DataFrame) -> pd.DataFrame:
    """Return one row per campaign, column and price: the cost by a plan beforehand, and the cost that it took."""
    ours = found[found["allocation"] == "gain"].groupby(["campaign", "column", "price"], sort=False)
    took = ours["until it holds"].mean().reset_index()
    names = {title: name for name, title in TITLES.items()}
    rows = []
    for row in took.itertuples(index=False):
        name = names[row.campaign]
        if f"price-mix-{name}-{row.price:g}" in costs.kept and not np.isnan(row[-1]):
            mix = costs.planned(name, row.price)
            inside = "yes" if mix.lower <= row[-1] <= mix.upper else "no"
            rows.append((row.campaign, row.column, row.price, mix.cost, mix.lower, mix.upper, row[-1], inside))
    columns = ["campaign", "column", "price", "planned", "lower", "upper", "took", "inside"]
    return pd.DataFrame(rows, columns=columns)


def _kept(cells: pd.DataFrame) -> str:
    kept, missed = (int((cells["kept"] == word).sum()) for word in ("yes", "no"))
    return f"{kept} of {kept + missed} cells keep the limit."


def _planned(planned: pd.DataFrame) -> str:
    return f"""
## What a plan says beforehand

The cost until confidence has held .95 for 100 more, by `forecast_mix` with nothing judged or labelled, for a machine
never seen: one forecast per campaign and price, whatever the column.

{table(planned)}
{int((planned["inside"] == "yes").sum())} of {len(planned)} are inside the interval.

"""


def page(costs: Costs, seeds: int) -> str:
    """Return the page."""
    found = found_cells(costs, seeds)
    ours = found[found["allocation"] == "gain"].groupby(["campaign", "column", "price"], sort=False)
    stops = ours[["judgments", "labels", "accuracy"]].mean().assign(seeds=ours.size()).reset_index()
    planned = plans(costs, found)
    low = int((stops["accuracy"] < LEAST).sum())
    tau, stop = (verdicts(found, figure) for figure in ("to tau .9", "to the stop"))
    seeded = int(stops["seeds"].max())
    return (
        HEAD
        + f"""{len(stops)} of {2 * len(COLUMNS) * len(PRICES)} cells were replayed with *gain*, {seeded} seeds or fewer.

## To tau .9

{table(tau)}
{_kept(tau)}

## To the stop at .95

{table(stop)}
{_kept(stop)}

## At the stop

Accuracy is below {LEAST:g} in {low} of {len(stops)} cells.

{table(stops)}
"""
        + (_planned(planned) if len(planned) else "")
        + TRIED
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("keep", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the page of what was replayed so far")
    given = parser.parse_args()
    made = Costs(given.data, given.keep)
    if not given.write:
        do_all(list(work(made, given.seeds)))
    (DOCS / "evidence-prices.md").write_text(page(made, given.seeds))
