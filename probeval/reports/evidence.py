"""Pages of evidence, one per question of a user: the answer, the table, the picture, and what failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from probeval.data.files import write_bytes
from probeval.plots.canvas import save
from probeval.plots.evidence import plot_along, plot_by_campaign
from probeval.simulation.budgets import BUDGET_FIGURES, compare_at_budgets
from probeval.studies.evidence import EvidenceCells
from probeval.text_tables import markdown_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EvidencePage", "evidence_pages", "stale_pages", "write_pages"]

EARLY, LATER = 0.1, 0.2  # judged shares that pages show
SURE = 0.05  # a calibration p below it is a failure
STATED = 0.05  # so is an accuracy at the stop whose p is below it
COVERED = 0.9  # of 95% intervals
GOOD = 0.3  # tau with nothing judged
NONE = "no labels"
AREAS = ("tau", "tau_top15", "mae", "calibration_error")  # figures compared over whole curves
NAMED = 3  # modules that a page names
DPI = 80


@dataclass(frozen=True)
class EvidencePage:
    """A page in Markdown, and its pictures by the names of their files."""

    name: str
    text: str
    pictures: Mapping[str, Callable[[], Axes]] = field(default_factory=dict)


@dataclass(frozen=True)
class Frames:
    """Finished cells as tables: one row per checkpoint, and one per cell."""

    points: pd.DataFrame
    ends: pd.DataFrame

    @classmethod
    def of(cls, cells: EvidenceCells) -> Frames:
        """Build from the cells of the study of judging."""
        points, ends = [], []
        for one in cells.finished:
            cell, figures = one.cell, one.figures
            at = {
                "campaign": cell.collection,
                "measure": cell.measure,
                "family": cell.measure.partition("@")[0],
                "policy": cell.policy,
                "labels": short_label(cell.labels),
                "seed": cell.seed,
                "systems": figures["systems"],
                "pool": figures["pool"],
            }
            table = pd.DataFrame(figures["points"]).astype(float)
            points.append(table.assign(share=figures["checkpoints"], **at))
            ends.append(at | figures["stop"] | {"to tau .9": figures["judgments_to_tau90"]})
        columns = ["campaign", "measure", "family", "policy", "labels", "seed", "systems", "pool"]
        return cls(
            pd.concat(points, ignore_index=True) if points else pd.DataFrame(columns=[*columns, "share"]),
            pd.DataFrame(ends) if ends else pd.DataFrame(columns=[*columns, "reached", "to tau .9"]),
        )


def _where(table: pd.DataFrame, values: Mapping[str, Any]) -> pd.DataFrame:
    for column, value in values.items():
        table = table[table[column].isin(value) if isinstance(value, (list, tuple)) else table[column] == value]
    return table


def short_label(labels: str) -> str:
    """Return the name of a column of labels for people.

    >>> short_label("trec/labels:gpt4o"), short_label("shuffled:trec/labels:gpt4o"), short_label("")
    ('gpt4o', 'gpt4o, shuffled', 'no labels')
    """
    if not labels:
        return NONE
    column = labels.rpartition(":")[2]
    return f"{column}, shuffled" if labels.startswith("shuffled:") else column


def evidence_pages(cells: EvidenceCells) -> tuple[EvidencePage, ...]:
    """Return the pages of which some cells are finished."""
    judging = cells.of("judging")
    plain = judging.some(lambda cell: not cell.labels)
    labelled = {cell.collection for cell in judging.cells if cell.labels}
    with_labels = judging.some(
        lambda cell: bool(cell.labels) or (cell.collection in labelled and cell.policy == "gain")
    )
    frames = Frames.of(plain)
    made = []
    if plain.finished:
        made += [page(plain, frames) for page in (before_judging, to_the_stop, absolute_scores, cost)]
    if any(one.cell.labels for one in with_labels.finished):
        made.append(labels_page(with_labels, Frames.of(with_labels)))
    return tuple(made)


def write_pages(cells: EvidenceCells, folder: Path) -> list[Path]:
    """Write the pages and their pictures; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in evidence_pages(cells):
        for name, draw in page.pictures.items():
            save(draw(), folder / name, dpi=DPI)
        written.append(folder / f"{page.name}.md")
        write_bytes(written[-1], page.text.encode())
    return written


def stale_pages(cells: EvidenceCells, folder: Path) -> tuple[str, ...]:
    """Return the pages that are not what the cells give now, each with the reason."""
    found = []
    for page in evidence_pages(cells):
        path = folder / f"{page.name}.md"
        if not path.exists():
            found.append(f"{path}: it is not written yet.")
        elif path.read_text(encoding="utf-8") != page.text:
            found.append(f"{path}: the cells or the mathematics have changed since it was written.")
    old = len(cells.finished) - cells.of_now
    if old:
        found.append(f"{old} of {len(cells.finished)} finished cells are of earlier mathematics or settings.")
    return tuple(found)


def number(value: float) -> str:
    """Return a share or a correlation for prose.

    >>> number(0.5), number(-0.25), number(1.0)
    ('.50', '-.25', '1.00')
    """
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 0.995 else f"{value:.2f}"


def _head(title: str, cells: EvidenceCells) -> str:
    done, now = len(cells.finished), cells.of_now
    made = sorted({one.made.version for one in cells.finished})
    prints = sorted({one.made.mathematics for one in cells.finished})
    state = {done: "all of them", 0: "none of them"}.get(now, f"{now} of them")
    since = ""
    if cells.changed and now < done:
        few = len(cells.changed) <= NAMED
        what = ", ".join(cells.changed) if few else f"{len(cells.changed)} modules, which `make evidence-check` names"
        since = f" (changed since: {what})"
    campaigns = len({one.cell.collection for one in cells.finished})
    all_campaigns = len({cell.collection for cell in cells.cells})
    return (
        f"# {title}\n\n"
        f"*{done} of {len(cells.cells)} replays are finished ({campaigns} of {all_campaigns} campaigns), {state} with "
        f"the mathematics of now{since}. Made by `make evidence`, probeval {', '.join(made)}, mathematics "
        f"{', '.join(prints)}.*\n\n"
    )


def _how() -> str:
    return (
        "Each campaign is held out in turn, and judged again with its own judgments as the answers. The models are "
        "fitted to the other campaigns. Figures are means over seeds; a policy on a campaign has as many seeds as the "
        "table says.\n\n"
    )


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _groups(table: pd.DataFrame, keys: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield the groups of a table, in their order."""
    for key, part in table.groupby(keys, sort=False):
        yield (key if isinstance(key, tuple) else (key,)), part


def _seeds(table: pd.DataFrame, keys: list[str]) -> pd.Series:
    return table.groupby(keys, sort=False)["seed"].nunique().rename("seeds")


def _failed(lines: Sequence[str], nothing: str) -> str:
    body = "".join(f"- {line}\n" for line in lines) or f"{nothing}\n"
    return f"\n## What failed\n\n{body}"


def _table(frame: pd.DataFrame, decimals: Mapping[str, int] | None = None) -> str:
    return markdown_table(frame, decimals={str(column): 3 for column in frame} | dict(decimals or {})) + "\n"


def before_judging(cells: EvidenceCells, frames: Frames) -> EvidencePage:
    """With nothing judged."""
    start = frames.points[(frames.points["share"] == 0) & frames.points["policy"].isin(["gain", "random"])]
    start = start.drop_duplicates(["campaign", "measure", "seed"])
    keys = ["campaign", "measure", "family", "systems"]
    figures = ["tau", "tau_top15", "confidence", "accuracy", "calibration_p", "coverage"]
    means = start.groupby(keys, sort=False)[figures].mean().reset_index()
    sentences = []
    for (family,), part in _groups(means, ["family"]):
        rows = sorted(_records(part), key=lambda row: row["tau"])
        sentences.append(
            f"By {family}, the ranking before any judgment has a tau of {number(part['tau'].mean())} with the final "
            f"one on average over {len(rows)} campaigns, from {number(rows[0]['tau'])} ({rows[0]['campaign']}) to "
            f"{number(rows[-1]['tau'])} ({rows[-1]['campaign']}); {number(part['accuracy'].mean())} of the pairs of "
            f"systems are in the right order, and the stated confidence is {number(part['confidence'].mean())}."
        )
    failed = [
        f"{row['campaign']}, {row['measure']}: a stated confidence of {number(row['confidence'])} where "
        f"{number(row['accuracy'])} are right (p = {row['calibration_p']:.3f})."
        for row in _records(means)
        if row["calibration_p"] < SURE
    ]
    failed += [
        f"{row['campaign']}, {row['measure']}: tau is {number(row['tau'])}. The runs alone say little here."
        for row in _records(means)
        if row["tau"] < GOOD
    ]
    failed += [
        f"{row['campaign']}, {row['measure']}: among the 15 best systems tau is {number(row['tau_top15'])}. Which "
        "of the good ones is best cannot be told."
        for row in _records(means)
        if row["tau_top15"] < 0 <= row["tau"]
    ]
    shown = means.drop(columns="family").rename(columns={"tau_top15": "tau, best 15", "calibration_p": "p"})
    text = (
        _head("Before judging: how good is the ranking?", cells)
        + "\n".join(sentences)
        + "\n\nHold it against what you need: below, where it goes wrong. "
        + "[Rank before judging](../how-to/rank-before-judging.md) shows how.\n\n"
        + _how()
        + "![Stated confidence and accuracy, nothing judged](before-judging.png)\n\n"
        + _table(shown)
        + "\n*tau* is Kendall's, with the ranking by all judgments; *confidence* is the mean stated probability that "
        "two "
        "systems are in the right order, *accuracy* the share that is; *p* is the probability of so large a difference "
        "between them for a model whose confidence is right; *coverage* is that of 95% intervals of scores.\n"
        + _failed(failed, "Confidence fits accuracy on every campaign, and no tau is below .3.")
    )
    drawn = means.assign(campaign=means["campaign"] + ", " + means["measure"])
    names = {"confidence": "stated confidence", "accuracy": "accuracy"}
    return EvidencePage(
        "before-judging",
        text,
        {"before-judging.png": lambda: plot_by_campaign(drawn, names, label="pairs of systems")},
    )


def to_the_stop(cells: EvidenceCells, frames: Frames) -> EvidencePage:
    """Where the stopping rule holds."""
    ends = frames.ends.assign(reached=frames.ends["reached"].astype(float))
    ends["share"] = ends["judged"] / ends["pool"]
    got = ends[ends["reached"] > 0]
    keys = ["campaign", "measure", "policy"]
    means = pd.concat(
        [
            _seeds(ends, keys),
            ends.groupby(keys, sort=False)[["pool", "reached"]].mean(),
            got.groupby(keys, sort=False)[["judged", "share", "accuracy", "tau"]].mean(),
        ],
        axis=1,
    ).reset_index()
    sentences = []
    for (policy,), part in _groups(ends, ["policy"]):
        there = part[part["reached"] > 0]
        if len(there):
            sentences.append(
                f"`{policy}` stops in {len(there)} of {len(part)} replays, after {there['share'].mean():.0%} of the "
                f"pool "
                f"({there['judged'].mean():,.0f} judgments) on average; {number(there['accuracy'].mean())} of the "
                f"pairs "
                f"of systems are then in the right order, and tau is {number(there['tau'].mean())}."
            )
        else:
            sentences.append(f"`{policy}` never stops in {len(part)} replays.")
    over = got[got["accuracy_p"].astype(float) < STATED]
    worst = [
        f"{campaign}, {measure}, `{policy}`: {number(part['accuracy'].mean())} are right at the stop, fewer than a "
        f"confidence of .95 allows (in {len(part)} of {_count(ends, campaign, measure, policy)} seeds)."
        for (campaign, measure, policy), part in _groups(over, keys)
        if ":independent" not in policy
    ]
    for (policy,), part in _groups(ends[ends["reached"] == 0], ["policy"]):
        places = [
            f"{campaign} ({measure}, {number(same['confidence'].mean())})"
            for (campaign, measure), same in _groups(part, keys[:2])
        ]
        worst.append(
            f"`{policy}` did not stop in {len(part)} replays (and the confidence at the end): {', '.join(places)}."
        )
    text = (
        _head("To the stop: how many judgments, and is the ranking then right?", cells)
        + "\n".join(sentences)
        + "\n\nThe rule is a mean confidence of .95 over pairs of systems, within the share of the pool that the "
        "replays "
        "take. Policies with `:independent` take pairs as independent: their confidence is not calibrated. "
        "[Judge what matters](../how-to/judge-next.md) and [simulate](../how-to/simulate.md) show how.\n\n"
        + _how()
        + "![Tau along the judging](to-the-stop.png)\n\n"
        + _table(means.rename(columns={"judged": "judgments", "reached": "stopped"}), {"judgments": 0, "pool": 0})
        + "\n*stopped* is the share of seeds that stop; the figures right of it are means over these.\n"
        + _failed(worst, "Every replay stopped, and the ranking was as right as stated.")
    )
    return EvidencePage(
        "to-the-stop",
        text,
        {
            "to-the-stop.png": lambda: plot_along(
                frames.points, "tau", by="policy", label="tau with the final ranking", target=0.9
            )
        },
    )


def _count(ends: pd.DataFrame, campaign: str, measure: str, policy: str) -> int:
    return len(_where(ends, {"campaign": campaign, "measure": measure, "policy": policy}))


def absolute_scores(cells: EvidenceCells, frames: Frames) -> EvidencePage:
    """Errors and intervals of scores."""
    mine = frames.points[~frames.points["policy"].str.contains(":")]
    keys = ["campaign", "measure", "policy"]
    wanted = mine[mine["share"].isin([0.0, EARLY, LATER])]
    columns: dict[str, pd.Series] = {}
    for figure, name in (("mae", "error"), ("coverage", "coverage")):
        for (share,), part in _groups(wanted.sort_values("share", kind="stable"), ["share"]):
            columns[f"{name}, {share:.0%}"] = part.groupby(keys, sort=False)[figure].mean()
    shown = pd.DataFrame(columns).reindex(wanted.set_index(keys).index.unique())
    sentences = []
    for (policy,), part in _groups(mine[mine["share"] == EARLY], ["policy"]):
        sentences.append(
            f"With {EARLY:.0%} of the pool judged by `{policy}`, the mean error of a score is "
            f"{number(part['mae'].mean())} "
            f"and the 95% intervals hold {number(part['coverage'].mean())} of the true scores, on average over "
            f"{part['campaign'].nunique()} campaigns."
        )
    later = mine[mine["share"] >= EARLY].groupby([*keys, "share"], sort=False)[["coverage", "level_z"]].mean()
    failed = [
        f"{row['campaign']}, {row['measure']}, `{row['policy']}`, {row['share']:.0%} judged: intervals hold "
        f"{number(row['coverage'])} of the scores (their mean is {row['level_z']:+.1f} standard deviations off)."
        for row in _records(later.reset_index())
        if row["coverage"] < COVERED
    ]
    text = (
        _head("Absolute scores: how close, and do the intervals hold?", cells)
        + "\n".join(sentences)
        + "\n\nScores are harder than rankings: all systems can be too high together. Judging in random order "
        "estimates their level well; a policy that looks for differences does not try to.\n\n"
        + _how()
        + "![Coverage along the judging](absolute-scores.png)\n\n"
        + _table(shown.reset_index())
        + "\n*error* is the mean absolute error of the scores, *coverage* the share of systems whose 95% interval "
        "holds the true score, at the judged share.\n"
        + _failed(failed, "Intervals hold at least .9 of the scores everywhere from 10% on.")
    )  # fmt: skip
    return EvidencePage(
        "absolute-scores",
        text,
        {
            "absolute-scores.png": lambda: plot_along(
                mine, "coverage", by="policy", label="coverage of 95% intervals of scores", target=0.95
            )
        },
    )


def cost(cells: EvidenceCells, frames: Frames) -> EvidencePage:
    """Judgments to a good ranking, and policies over whole curves."""
    ends = frames.ends.copy()
    most = frames.points.groupby(["campaign", "measure", "policy", "seed"])["judged"].max().rename("most").reset_index()
    ends = ends.merge(most, on=["campaign", "measure", "policy", "seed"])
    ends["arrived"] = ends["to tau .9"].notna().astype(float)
    ends["judgments"] = ends["to tau .9"].astype(float).fillna(ends["most"])
    ends["share"] = ends["judgments"] / ends["pool"]
    keys = ["campaign", "measure"]
    wide = ends.pivot_table(index=keys, columns="policy", values="judgments", sort=False)
    arrived = ends.pivot_table(index=keys, columns="policy", values="arrived", sort=False)
    shown = wide.round().map(lambda x: "-" if np.isnan(x) else f"{x:,.0f}")
    for policy in wide.columns:
        late = arrived[policy].reindex(wide.index) < 1
        shown.loc[late & wide[policy].notna(), policy] = "at least " + shown[policy]
    shown.insert(0, "pool", ends.groupby(keys, sort=False)["pool"].first().reindex(wide.index))
    shown = shown.reset_index()
    sentences, failed = [], []
    if "gain" in wide:
        for other in wide.columns.drop("gain"):
            both = wide[["gain", other]].dropna()
            if len(both):
                ratio = both["gain"] / both[other]
                sentences.append(
                    f"To a ranking that stays at a tau of .9, `gain` takes {number(float(ratio.median()))} times the "
                    f"judgments of `{other}` (median over {len(both)} campaigns and measures; where a replay ends "
                    f"before, "
                    "its end counts)."
                )
                failed += [
                    f"{row['campaign']}, {row['measure']}: `gain` takes {row['ratio']:.2f} times those of `{other}`."
                    for row in _records(ratio[ratio > 1].rename("ratio").reset_index())
                ]
    curves = frames.points.assign(budget=frames.points["share"])
    areas, first = [], cells.finished[0].cell.policy
    for (family,), part in _groups(curves, ["family"]):
        for row in compare_at_budgets(part[["campaign", "policy", "seed", "budget", *BUDGET_FIGURES]]):
            if row.budget is None and row.difference is not None and row.policy == first and row.figure in AREAS:
                found = {name: getattr(row, name) for name in ("policy", "other", "figure", "collections")}
                limits = {name: getattr(row, name) for name in ("difference", "lower", "upper", "verdict")}
                areas.append({"measure": family, **found, **limits})
    if areas:
        compared = "## Policies over the whole curve\n\n" + (
            "The difference of the mean height of the curve over the judged share, with 95% intervals over campaigns. "
            "More of tau and accuracy is better, less of an error.\n\n" + _table(pd.DataFrame(areas))
        )
    else:
        compared = ""
    policies = {str(policy): str(policy) for policy in wide.columns}
    drawn = ends.pivot_table(index=keys, columns="policy", values="share", sort=False).reset_index()
    drawn["campaign"] = drawn["campaign"] + ", " + drawn["measure"]
    text = (
        _head("Cost: how many judgments does a good ranking take?", cells)
        + "\n".join(sentences or ["One policy only is finished: there is nothing to compare yet."])
        + "\n\n[Plan a budget](../how-to/plan-a-budget.md) estimates the number for your campaign, in hours too.\n\n"
        + _how()
        + "![Judgments to tau .9](cost.png)\n\n"
        + _table(shown)
        + "\nThe number of judgments from which tau stays at .9 for another hundred.\n\n"
        + compared
        + _failed(failed, "Nowhere does `gain` take more judgments." if sentences else "Nothing is compared yet.")
    )
    label = "judged share of the pool at tau .9, or at the end"
    return EvidencePage("cost", text, {"cost.png": lambda: plot_by_campaign(drawn, policies, label=label)})


def labels_page(cells: EvidenceCells, frames: Frames) -> EvidencePage:
    """With labels by machines."""
    keys = ["campaign", "measure", "labels"]
    least = min(max(one.figures["checkpoints"]) for one in cells.finished)  # no labels may be judged further
    points = frames.points[frames.points["share"] <= least + 1e-9]
    ends = frames.ends.assign(share=frames.ends["judged"] / frames.ends["pool"])
    ends["stopped"] = (ends["reached"].astype(bool) & (ends["share"] <= least + 1e-9)).astype(float)
    tau = points.pivot_table(index=keys, columns="share", values="tau", sort=False)
    tau.columns = [f"tau, {share:.0%}" for share in tau.columns]
    kept = [c for c in tau.columns if c in ("tau, 0%", "tau, 1%", "tau, 5%", "tau, 20%")]
    stops = ends[ends["stopped"] > 0].groupby(keys, sort=False)[["judged", "accuracy"]].mean()
    stated = points[points["share"] == 0].groupby(keys, sort=False)[["confidence", "accuracy"]].mean()
    stated.columns = ["confidence, 0%", "accuracy, 0%"]
    found = pd.concat(
        [
            _seeds(ends, keys),
            tau[kept],
            stated,
            ends.groupby(keys, sort=False)["stopped"].mean(),
            stops.rename(columns={"judged": "judgments", "accuracy": "accuracy at the stop"}),
        ],
        axis=1,
    ).reset_index()
    order = list(
        dict.fromkeys([NONE, *sorted(found["labels"], key=lambda v: -found[found["labels"] == v]["tau, 0%"].mean())])
    )
    found["labels"] = pd.Categorical(found["labels"], order)
    found = found.sort_values(["campaign", "measure", "labels"], ignore_index=True)
    found["labels"] = found["labels"].astype(str)
    without = found[found["labels"] == NONE].set_index(["campaign", "measure"])
    sentences, failed = [], []
    for labels in order[1:]:
        part = found[found["labels"] == labels]
        base = without.reindex(pd.MultiIndex.from_frame(part[["campaign", "measure"]]))
        gained = (part["tau, 0%"].to_numpy() - base["tau, 0%"].to_numpy()).astype(float)
        if np.isfinite(gained).any():
            sentences.append(
                f"- {labels}: tau before judging is {number(float(part['tau, 0%'].mean()))}, "
                f"{np.nanmean(gained):+.2f} to no labels ({len(part)} campaigns and measures)."
            )
    for row in found.to_dict("records"):
        at = f"{row['campaign']}, {row['measure']}, {row['labels']}"
        if row["labels"] == NONE or (row["campaign"], row["measure"]) not in without.index:
            continue
        base_row = without.loc[row["campaign"], row["measure"]]
        for column in kept:
            if row[column] < base_row[column] - 0.02:
                failed.append(
                    f"{at}: {column.replace(',', ' with')} judged is {number(row[column])}, below "
                    f"{number(base_row[column])} without."
                )
        if row["judgments"] > 1.1 * base_row["judgments"] + 20:
            failed.append(
                f"{at}: {row['judgments']:.0f} judgments to the stop, more than {base_row['judgments']:.0f} without."
            )
        if row["accuracy at the stop"] < 0.93:
            failed.append(f"{at}: {number(row['accuracy at the stop'])} are right at the stop for a confidence of .95.")
    text = (
        _head("With labels: what are labels by machines worth, and do bad ones harm?", cells)
        + "Columns from strong to worthless, each alone, judged by `gain`. *shuffled*: the labels of a column, dealt "
        "to the pairs at random.\n\n"
        + "\n".join(sentences)
        + "\n\n[Labels](../how-to/llm-labels.md) shows how. Every column that was tried, known and under an unknown "
        "name, "
        "reversed and broken ones are in [labels from worthless to strong](../evidence-labels.md), which is made by a "
        "script of its own.\n\n"
        + _how()
        + "![Tau along the judging, by labels](with-labels.png)\n\n"
        + _table(found, {"judgments": 0})
        + "\n*tau* at the judged share; *confidence* and *accuracy* of pairs of systems with nothing judged; "
        "*stopped* is "
        f"the share of seeds with a mean confidence of .95 within {least:.0%} of the pool, and the figures right of "
        f"it are "
        "means over these.\n"
        + _failed(failed, "No column made a ranking worse, or took clearly more judgments than none.")
    )
    return EvidencePage(
        "with-labels",
        text,
        {
            "with-labels.png": lambda: plot_along(
                points, "tau", by="labels", label="tau with the final ranking", target=0.9
            )
        },
    )
