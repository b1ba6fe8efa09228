"""Write docs/evidence-judging.md and its pictures: `python examples/judging_evidence.py DATA KEEP [PART...]`.

Models and trajectories are kept in the folder KEEP as they are made, so that a broken run resumes where it stopped. The
folder is for one version of the model: take a new one when the model changes. Two processes can share a folder. Parts:
`ranking`, `pictures`, `explore`, `scores`, `seeds`, `plan`; all of them when none is named. `--seeds N` limits the
seeds; `--finished` makes `ranking` and `pictures` from the trajectories that there are.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from evidence import CAMPAIGNS, DOCS, Targets, do_all, table
from replays import SHARES, Replays

from probeval.metrics import parse
from probeval.plots import plot_trajectories, save
from probeval.relevance import choose_model
from probeval.results import plain
from probeval.selection import POLICIES, Judging
from probeval.simulation import HeldOut, SimulatedAssessor, Simulation, SimulationProtocol, forecast, replay
from probeval.simulation.points import tau_and_accuracy
from probeval.simulation.trajectory import Trajectory, lasting

PICTURES = {
    "trec8-adhoc": "judging-trec8-adhoc.png",
    "trec-dl2019-passage": "judging-trec-dl2019-passage.png",
    "clef-ehealth2018-irtask1": "judging-clef-ehealth2018-irtask1.png",
}
TRIED = tuple(reversed(PICTURES))  # by `scores` and `plan`
MODEL = {"gain": "hierarchical", "random": "hierarchical", "mtc": "independent"}  # of each order
ORDERS = ("gain", "random")  # of the hierarchical model
SEEDS = {"DCG": 5, "nDCG": 2}
FAR = 0.3  # of the pool: the effort of an order that never arrives at tau .9
PILOT, PLANS = 0.03, 5
HEAD = """# Evidence: which pair next, and when to stop

Written by `examples/judging_evidence.py`, which does the same as `probeval simulate` and `probeval plan`. The judging
of each campaign is simulated with its own judgments. The models are fitted to all other campaigns of texts, and to two
more (`wikitables-keyword`, `acordar1`); the two rounds of TREC-COVID are left out together. The pool is the top ten of
the systems that are fully judged, or the top five where judging stopped there (TREC-COVID, Touche); the measures are
DCG and nDCG at that depth. Batches are of ten pairs until a tenth of the pool is judged, then of 1% of the pool, to
40%.

"""


class Cell(NamedTuple):
    """One replay of a campaign."""

    campaign: str
    order: str
    measure: str
    seed: int

    @property
    def name(self) -> str:
        return f"cell-{'-'.join(map(str, self))}"


class Work(Replays):
    """Campaigns, models and trajectories, each made once."""

    def __init__(self, asked: argparse.Namespace) -> None:
        super().__init__(asked.data, asked.keep)
        self.finished = asked.finished
        self.campaigns = [name for name in CAMPAIGNS if name in asked.campaigns]
        self.seeds = {measure: min(n, asked.seeds) for measure, n in SEEDS.items() if measure in asked.measures}

    def cells(self) -> list[Cell]:
        """Return the replays of `ranking`: seed by seed, the quickest campaigns first. Seeds change nothing for MTC."""
        return [
            Cell(name, order, measure, seed)
            for seed in range(max(self.seeds.values()))
            for measure, n in self.seeds.items()
            for name in self.campaigns
            for order in MODEL
            if seed < (1 if order == "mtc" else n)
        ]

    def finished_cells(self) -> dict[Cell, Trajectory]:
        """Return all replays; with `--finished` those that there are, of campaigns with a replay in each order."""
        cells = self.cells()
        if self.finished:
            ready = {cell for cell in cells if cell.name in self.kept}
            cells = [c for c in cells if c in ready and all(c._replace(order=o, seed=0) in ready for o in MODEL)]
        if not cells:
            sys.exit("No campaign has a finished trajectory in each order yet.")
        return dict(zip(cells, do_all([partial(self.cell, cell) for cell in cells]), strict=True))

    def cell(self, cell: Cell) -> Trajectory:
        explore = 0.0 if cell.order == "mtc" else None
        return self.replay(
            cell.name, cell.campaign, cell.order, cell.measure, kind=MODEL[cell.order], seed=cell.seed, explore=explore
        )

    def trajectory(self, part, name, policy, kind, *, seed=0, **settings):
        """Return a replay of another part of the page, DCG."""
        kept = "-".join([part, name, policy, kind, str(seed)])
        return self.replay(kept, name, policy, "DCG", kind=kind, seed=seed, **settings)


def ranking(work: Work) -> str:
    """Return the figures that must hold, and the tables behind them."""
    found = work.finished_cells()
    points = pd.DataFrame(
        [
            {**cell._asdict(), "share": share, **plain(point)}
            for cell, run in found.items()
            for share, point in zip(SHARES, run.points, strict=True)
        ]
    )
    ends = pd.DataFrame([{**cell._asdict(), **end_of(run)} for cell, run in found.items()])
    targets = Targets()
    sections = [
        collapse(points, targets),
        calibration(points, targets),
        stops(ends, targets),
        effort(ends, targets),
        nothing(work, points, targets),
    ]
    planned = len(work.cells())
    state = "" if len(found) == planned else f" {len(found)} of {planned} simulations are finished."
    top = (
        "## Targets\n\nThe sections below explain each figure, and their tables give the "
        f"number of seeds (goal: {SEEDS['DCG']} for DCG, {SEEDS['nDCG']} for nDCG).{state} {targets}"
    )
    return "\n".join([top, *sections])


def end_of(run: Trajectory) -> dict:
    """Return where a trajectory would stop, and the judgments to tau .9, at most 30% of the pool."""
    stop, most = run.stop, FAR * run.setup.pool
    to_tau = run.judgments_to_tau90
    arrived = to_tau is not None and to_tau <= most
    return {
        "pool": run.setup.pool,
        "reached": float(stop is not None),
        "judgments": np.nan if stop is None else float(stop.judged),
        "accuracy": np.nan if stop is None else stop.accuracy,
        "arrived": float(arrived),
        "to tau .9": float(to_tau) if arrived else most,
    }


def by_campaign(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table by measure, if it has one, and campaign, in the order of the cells."""
    plain = frame.reset_index()
    plain["campaign"] = pd.Categorical(plain["campaign"], CAMPAIGNS)
    keys = [key for key in ("measure", "campaign") if key in plain]
    return plain.sort_values(keys, ignore_index=True)


def seeds_of(frame: pd.DataFrame) -> pd.Series:
    """Return the number of seeds by campaign and measure, the fewest of both orders."""
    mine = frame[frame["order"].isin(ORDERS)]
    return mine.groupby(["campaign", "measure", "order"])["seed"].nunique().groupby(["campaign", "measure"]).min()


def by_order(ends: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the means over seeds by campaign and measure, for each order."""
    return {
        order: ends[ends["order"] == order].groupby(["campaign", "measure"]).mean(numeric_only=True) for order in MODEL
    }


def of_row(row) -> str:
    return f"{row['measure']}, {row['campaign']}"


def collapse(points: pd.DataFrame, targets: Targets) -> str:
    mine = points[points["order"].isin(ORDERS) & points["share"].isin(SHARES[:3])]
    tau = mine.pivot_table(index=["campaign", "measure"], columns=["order", "share"], values="tau")
    rows, change = {"seeds": seeds_of(points)}, {}
    for order in ORDERS:
        for share in SHARES[1:3]:
            rows[f"{order}, {share:.0%}"] = tau[order, share]
            change[f"{order}, {share:.0%}"] = tau[order, share] - tau[order, 0.0]
    change = pd.DataFrame(change)
    start = tau["gain", 0.0].rename("nothing judged")
    shown = by_campaign(pd.concat([start, pd.DataFrame(rows)], axis=1).assign(fall=(-change.min(axis=1)).clip(lower=0)))
    for measure, part in change.groupby("measure"):
        means = part.mean()
        targets.least(
            f"tau at 1% and 2% judged less tau with nothing judged, {measure}, mean over campaigns "
            f"(lowest: {means.idxmin()})",
            float(means.min()),
            0.0,
        )
    low = shown.loc[shown["fall"].idxmax()]
    targets.most(f"largest fall of tau on a campaign ({of_row(low)})", float(low["fall"]), 0.15)
    return (
        "## The first judgments\n\nKendall's tau with the true order, mean over seeds, with nothing judged and with 1% "
        "and 2% of the pool judged by `gain` and in random order. *fall* is the largest loss from the start.\n\n"
        + table(shown)
    )


def calibration(points: pd.DataFrame, targets: Targets) -> str:
    mine = points[points["order"].isin(ORDERS)]
    start = mine["share"] == 0
    # With nothing judged, replays differ in their random draws only.
    first = mine[start].drop_duplicates(["campaign", "measure"])
    cells = pd.concat([first, mine[~start]])
    within = {order: pd.concat([first, mine[~start & (mine["order"] == order)]]) for order in ORDERS}
    targets.least("share of cells with p of at least .01", share_of(cells["calibration_p"] >= 0.01), 0.97)
    targets.most("share of cells with p below .05", share_of(cells["calibration_p"] < 0.05), 0.08)
    targets.most("mean excess", float(cells["calibration_excess"].mean()), 0.01)
    centred = float(cells["centred_coverage"].mean())
    targets.least("mean centred coverage", centred, 0.92)
    targets.most("mean centred coverage", centred, 0.97)
    grouped = cells.groupby("campaign").apply(calibrated, include_groups=False)
    shown = by_campaign(grouped.join(level_by(within)))
    over = shown["centred"] - shown["5% point"]
    worst = shown.loc[over.idxmin(), "campaign"]
    targets.least(f"centred coverage less the 5% point of its null, lowest campaign ({worst})", float(over.min()), 0.0)
    for order, part in within.items():
        targets.least(f"share of cells with level z within 2.6, {order}", share_of(part["level_z"].abs() <= 2.6), 0.95)
    for at in SHARES[-3:]:
        part = mine[mine["share"] == at]
        targets.least(f"coverage of absolute scores at {at:.0%} judged", float(part["coverage"].mean()), 0.90)
    by_share = cells.assign(order=cells["order"].where(cells["share"] > 0, "-"))
    by_share = by_share.groupby(["share", "order"]).apply(calibrated, include_groups=False).reset_index()
    by_share["z within 2.6"] = [
        share_of(cells[(cells["share"] == s) & ((cells["order"] == o) | (o == "-"))]["level_z"].abs() <= 2.6)
        for s, o in zip(by_share["share"], by_share["order"], strict=True)
    ]
    return (
        "## Calibration\n\nA cell is one checkpoint of one replay by `gain` or in random order, DCG and nDCG together; "
        "with nothing judged there is one per campaign and measure. [What calibrated means](theory/calibration.md) "
        "explains the columns: *p* is the probability of so large a calibration error for a perfect model, *excess* "
        "the error beyond that of a perfect model, *centred* the coverage of 95% intervals of scores less their mean "
        "over systems, *5% point* the mean over cells of its 5% quantile for a perfect model (cells of a campaign "
        "share its truth, but not all of their errors: being above it is weak evidence), *z* the error of the mean "
        "score in standard deviations, *coverage* that of the 95% intervals of scores.\n\n"
        + table(shown)
        + "\nBy the share judged:\n\n"
        + table(by_share.rename(columns={"share": "judged"}))
    )


def calibrated(cells: pd.DataFrame) -> pd.Series:
    """Return the calibration of some cells."""
    return pd.Series(
        {
            "cells": str(len(cells)),
            "p >= .01": share_of(cells["calibration_p"] >= 0.01),
            "p < .05": share_of(cells["calibration_p"] < 0.05),
            "excess": cells["calibration_excess"].mean(),
            "centred": cells["centred_coverage"].mean(),
            "5% point": cells["centred_coverage_null05"].mean(),
            "coverage": cells["coverage"].mean(),
        }
    )


def level_by(within: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the share of levels within 2.6 standard deviations by campaign and order."""
    return pd.DataFrame(
        {
            f"z within 2.6, {order}": (part["level_z"].abs() <= 2.6).groupby(part["campaign"]).mean()
            for order, part in within.items()
        }
    )


def share_of(flags: pd.Series) -> float:
    return float(flags.mean())


def stops(ends: pd.DataFrame, targets: Targets) -> str:
    shown = {"seeds": seeds_of(ends), "pool": ends.groupby(["campaign", "measure"])["pool"].first()}
    for order, part in by_order(ends).items():
        shown |= {f"{order}, {what}": part[what] for what in ("reached", "judgments", "accuracy")}
    shown = by_campaign(pd.DataFrame(shown))
    for order in ORDERS:
        accuracy = shown[f"{order}, accuracy"].dropna()
        if accuracy.empty:
            continue
        worst = shown.loc[accuracy.idxmin()]
        targets.least(
            f"accuracy at the stop, {order}, lowest campaign ({of_row(worst)})", worst[f"{order}, accuracy"], 0.92
        )
        reached = shown[f"{order}, reached"].mean()
        targets.least(
            f"accuracy at the stop, {order}, mean over campaigns (reached in {reached:.0%})", accuracy.mean(), 0.95
        )
    return (
        "## The stop\n\nWhere mean confidence first reaches .95 within 40% of the pool: the share of seeds that reach "
        "it, and for these the mean number of judgments and the mean accuracy. `mtc` has the 2012 weights, independent "
        "pairs and one seed.\n\n" + table(shown)
    )


def effort(ends: pd.DataFrame, targets: Targets) -> str:
    means = by_order(ends)
    number, arrived = ({o: part[what] for o, part in means.items()} for what in ("to tau .9", "arrived"))
    pool = ends.groupby(["campaign", "measure"])["pool"].first()
    shown = by_campaign(
        pd.DataFrame(
            {"seeds": seeds_of(ends), "30% of the pool": pool * FAR}
            | number
            | {f"{order} arrived": column for order, column in arrived.items()}
            | {"to mtc": number["gain"] / number["mtc"], "to random": number["gain"] / number["random"]}
        )
    )
    for measure, part in shown.groupby("measure"):
        targets.most(f"judgments to tau .9, {measure}: median ratio to mtc", float(part["to mtc"].median()), 0.5)
        either = part[(part["gain arrived"] > 0) | (part["mtc arrived"] > 0)]["to mtc"].dropna()
        if len(either):
            worst = shown.loc[either.idxmax(), "campaign"]
            targets.most(
                f"judgments to tau .9, {measure}: largest ratio to mtc where either arrives ({worst})",
                float(either.max()),
                0.8,
            )
        targets.most(f"judgments to tau .9, {measure}: median ratio to random", float(part["to random"].median()), 0.6)
    return (
        "## Effort\n\nThe number of judgments from which tau stays at .9 or more for another hundred, mean over seeds; "
        "30% of the pool where it does not within that, and the share of seeds in which it does. The ratios are of "
        "`gain` to `mtc` (2012 weights, independent pairs, one seed) and to random order with the same model.\n\n"
        + table(shown)
    )


def log_popularity(held: HeldOut) -> np.ndarray:
    """Return the score of each system by the logs of how many systems retrieved its documents, discounted by rank."""
    runs = held.collection.runs.top(held.depth)
    worth = np.log(np.bincount(runs.pairs[runs.retrieved], minlength=len(runs.pool)))
    return (np.append(worth, 0.0)[runs.pairs] @ parse("DCG").rank_weights(runs.depth)).mean(axis=1)


def nothing(work: Work, points: pd.DataFrame, targets: Targets) -> str:
    first = points[points["order"].isin(ORDERS) & (points["share"] == 0)]
    shown = by_campaign(first.groupby(["campaign", "measure"])[["tau", "confidence", "accuracy"]].mean())
    popular = []
    for row in shown.itertuples():
        held = work.held(row.campaign)
        truth = held.truth(parse(f"{row.measure}@{held.depth}")).mean(axis=1)
        popular.append(tau_and_accuracy(log_popularity(held), truth)[0])
    shown.insert(3, "log popularity", popular)
    shown.insert(4, "above it", shown["tau"] - shown["log popularity"])
    for measure, part in shown.groupby("measure"):
        targets.least(
            f"tau with nothing judged above log popularity's, {measure}, mean over campaigns",
            float(part["above it"].mean()),
            0.03,
        )
    return (
        "## Nothing judged\n\nTau with nothing judged and no labels. *log popularity* ranks systems by the sum over "
        "their documents of the discount of the rank times the log of the number of systems that retrieved the "
        "document.\n\n" + table(shown)
    )


def pictures(work: Work) -> str:
    found = work.finished_cells()
    page = ""
    for name, picture in PICTURES.items():
        mine = {order: [] for order in ("gain", "mtc", "random")}
        for cell, run in found.items():
            if (cell.campaign, cell.measure) == (name, "DCG"):
                mine[cell.order].append(run)
        if all(mine.values()):
            shown = Simulation((mine["gain"][0], *mine["mtc"], *mine["random"]))
            save(plot_trajectories(shown), DOCS / "_static" / picture, dpi=60)
            page += f"\n![{name}](_static/{picture})\n"
    return page and f"## Along the judging\n\nDCG by `gain`, `mtc` and in random order.\n{page}"


def explore(work: Work) -> str:
    name, rows = "trec-dl2019-passage", []
    for explored in (0.0, 0.1, 0.2):
        for seed in range(2):
            if explored == POLICIES["gain"].explores:
                run = work.cell(Cell(name, "gain", "DCG", seed))
            else:
                run = work.trajectory(f"explore{explored}", name, "gain", "hierarchical", seed=seed, explore=explored)
            rows.append({"explore": str(explored), **end_of(run)})
    shown = pd.DataFrame(rows).groupby("explore")[["to tau .9", "judgments", "accuracy"]].mean().reset_index()
    return (
        "## Does exploration help?\n\nDL 2019, DCG, means over two seeds: judgments to tau .9, and judgments and "
        "accuracy at the stop. Single trajectories vary by a hundred judgments or more.\n\n" + table(shown)
    )


def scores(work: Work) -> str:
    settings = {"goal": "scores", "stop": "halfwidth=.05", "batch": 20, "checkpoints": (), "draws": 300, "until": 0.6}
    rows = []
    for name in TRIED:
        for policy, kind in (("variance", "independent"), ("variance", "hierarchical"), ("gain", "hierarchical")):
            run = work.trajectory("scores", name, policy, kind, **settings)
            rows.append({"campaign": name, "measure": run.setup.metric, "policy": f"{policy}, {kind}", **absolute(run)})
    held, model = mirex(work), "mirex-jud-fine-published"
    chosen = choose_model(model, replace(held.collection, judgments=None), scale=held.scale).model
    for metric in ("CG@5", "nDCG@5"):
        protocol = SimulationProtocol.of(metric, **settings)
        run = work.kept(
            f"scores-mirex2011-{metric}", partial(replay, held, chosen, protocol, policy="variance", name=model)
        )
        rows.append({"campaign": "mirex2011", "measure": metric, "policy": f"variance, {model}", **absolute(run)})
    note = (
        "Every 95% half-width at most .05, in batches of twenty. Published for MIREX 2011 Fine, with corrected "
        "thresholds: CG@5 after 539 judgments with a mean error of .017."
    )
    return f"## Absolute scores to a half-width of .05\n\n{note}\n\n" + table(pd.DataFrame(rows))


def mirex(work: Work) -> HeldOut:
    return work.held("mirex2011", depth=5)


def absolute(run: Trajectory) -> dict:
    """Return the figures of absolute scores at the stop."""
    stop, point = run.end, run.at_stop
    if point is None:
        return {"stop": f"> {stop.judged}", "share": None, "mean error": None, "coverage": None}
    return {"stop": stop.judged, "share": stop.fraction, "mean error": point.mae, "coverage": point.coverage}


def seeds(work: Work) -> str:
    held, rows = mirex(work), []
    unjudged = replace(held.collection, judgments=None)
    for policy, model, refresh in (
        ("mtc", "uniform", 1),
        ("mtc-thesis", "uniform", 20),
        ("mtc-thesis", "mirex-jud-fine-published", 20),
        ("mtc-thesis", "mirex-jud-fine", 20),
    ):
        chosen = choose_model(model, unjudged, scale=held.scale).model
        protocol = SimulationProtocol.of("CG@5", refresh=refresh, explore=0.0)
        run = work.kept(f"seeds-{policy}-{model}", partial(replay, held, chosen, protocol, policy=policy, name=model))
        rows.append(
            {
                "policy": policy,
                "model": model,
                "at .90": run.reaches(0.9),
                "at .95": run.reaches(0.95),
                "accuracy there": run.end.accuracy,
                "tau there": run.end.tau,
                "all significant right": run.significant,
            }
        )
    published = (
        "Published: .90 and .95 at 1,304 and 2,234 judgments for the uniform prior, all significant comparisons right "
        "at 1,611; .95 at 123 judgments, accuracy .935, tau .869 for fitted models."
    )
    shown = pd.DataFrame(rows, dtype=object)
    return f"## MIREX 2011, as published\n\nCG@5, Fine, one judgment at a time. {published}\n\n" + table(shown)


def plans(work: Work) -> str:
    rows = []
    for name in TRIED:
        held, model = work.held(name), work.model(name, "hierarchical")
        n = int(np.ceil(PILOT * len(held.pool)))
        for seed in range(PLANS):
            # Past the target, so that it can be seen to hold.
            run = work.trajectory(
                "pilot", name, "gain", "hierarchical", seed=seed, pilot=PILOT, checkpoints=(), stop="confidence=.96",
                until=0.6,
            )  # fmt: skip
            first = lasting([replace(s, tau=s.confidence) for s in run.steps], 0.95, 100)

            def ahead(held=held, model=model, judged=run.order[:n], seed=seed):
                pilot = SimulatedAssessor.of(held).judge(held, judged)
                offered = np.isin(np.arange(len(held.pool)), held.known)
                judging = Judging.of(
                    replace(held.collection, judgments=pilot), model, "DCG@10", scale=held.scale, depth=10,
                    offered=offered, explore=0.0, seed=seed,
                )  # fmt: skip
                return forecast(judging.begin()).needed(0.95)

            said = work.kept(f"plan-{name}-{seed}", ahead)
            right = next((s.accuracy for s in run.steps if s.judged == first), float("nan"))
            true = np.nan if first is None else float(first)
            rows.append({"campaign": name, "seed": seed, "true": true, **said, "accuracy": right})
    frame = pd.DataFrame(rows)
    error = (frame["judgments"] - frame["true"]).abs() / frame["true"]
    inside = (frame["lower"] <= frame["true"]) & (frame["true"] <= frame["upper"])
    shown = frame.assign(error=error, inside=inside.astype(float)).groupby("campaign", sort=False)
    means = shown[["true", "judgments", "lower", "upper", "error", "inside", "accuracy"]].median()
    means["inside"] = shown["inside"].mean()
    text = (
        f"Median relative error {error.median():.3f}; the 90% interval contains the truth in {int(inside.sum())} of "
        f"{len(frame)} runs."
    )
    return (
        "## Plans from a pilot of 3% of the pool\n\nNumber of judgments, pilot included, until mean confidence reaches "
        f".95 and stays there for a hundred judgments; medians over {PLANS} pilots.\n\n"
        + table(means.reset_index())
        + f"\n{text}\n"
    )


PARTS = {
    "ranking": ranking,
    "pictures": pictures,
    "explore": explore,
    "scores": scores,
    "seeds": seeds,
    "plan": plans,
}
FROM_CELLS = ("ranking", "pictures")


def main(asked: argparse.Namespace) -> None:
    work = Work(asked)

    def write(part):
        (asked.keep / f"{part}.md").write_text(PARTS[part](work), encoding="utf-8")

    do_all([partial(write, part) for part in asked.parts or (FROM_CELLS if asked.finished else PARTS)])
    paths = [asked.keep / f"{part}.md" for part in PARTS]
    made = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
    page = HEAD + "\n".join(text for text in made if text)
    (DOCS / "evidence-judging.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write docs/evidence-judging.md.")
    parser.add_argument("data", type=Path, help="the folder of real campaigns")
    parser.add_argument("keep", type=Path, help="the folder of finished work")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--seeds", type=int, default=max(SEEDS.values()), help="the most seeds, %(default)s by default")
    parser.add_argument(
        "--campaigns",
        nargs="+",
        default=tuple(CAMPAIGNS),
        choices=CAMPAIGNS,
        help="campaigns to simulate, all by default",
    )
    parser.add_argument("--measures", nargs="+", choices=SEEDS, default=list(SEEDS), help="both by default")
    parser.add_argument("--finished", action="store_true", help="make ranking and pictures from what is finished")
    given = parser.parse_args()
    if set(given.parts) - set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    main(given)
