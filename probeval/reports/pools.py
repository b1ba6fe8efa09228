"""Reports of studies of pools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from probeval.display import Table
from probeval.plots import plot_multiplicity, plot_pools, plot_trends
from probeval.reports.page import Page, Prose, Section
from probeval.reports.pictures import draw
from probeval.reports.studies import report_study, study_page
from probeval.studies.pools import CollectionPool, PoolRow, PoolStudy
from probeval.text_tables import DECIMALS, cell_text

__all__ = ["report_pools"]

CAPTIONS = {
    "facts": "Counted: the systems of the study. Depth, judged, relevant: of the reference. "
    "First unjudged: the mean rank of the first document without a judgment, by all judgments of the campaign; the end "
    "of a stored list counts as one. Tied docs: the share of documents with the score of another one in their list, "
    "and the geometric mean rank of the first of them. Contradicting docs: the share whose submitted rank and score "
    "disagree; a dash if the ranks are not known.",
    "tests": "Discrimination: the share of pairs of systems that differ significantly. Concordance: the share with the "
    "same decision as by the reference. Residual: what unjudged documents could add to the RBP of a list, mean and "
    "largest.",
    "decisions": "tp, fp, fn, tn: pairs significant in both, here alone, by the reference alone, in neither; a pair "
    "with opposite winners is a false positive. p counts: of an equal number of significant pairs, as if pairs were "
    "independent.",
    "scores": "Tau: with the order of all systems by the reference. Rises, stays, falls: the share of lists whose "
    "score does so once the remaining pairs are judged. Change: score minus that by the reference, mean and largest.",
    "teams": "Without the judgments that one team alone contributed: its systems against those of other teams. "
    "Change: of the scores of its systems.",
    "cuts": "Kept: the share of the reference's judgments. Unjudged: the share of documents to the reference's depth.",
    "trends": "Straddling: the share of pairs that are significant by some cuts and not by others. Falling, rising: p "
    "falls, or rises, with every cut that keeps more. Tau difference and tau ratio: between the residual of a list and "
    "how its score moves.",
    "multiplicity": "The share of judged documents that is relevant, by the number of systems that have them in their "
    "top ranks. Unjudged documents do not count.",
}

CUT = re.compile(r"^(depth|share) ")  # names of cuts stay on one line
COUNTS = ("tp", "fp", "fn", "tn", "opposite", "p_counts")


def report_pools(study: PoolStudy, *, command: str = "") -> Page:
    """Return the report of a study of pools."""
    options = study.options
    facts = {
        "measures": ", ".join(dict.fromkeys(row.metric for part in study.campaigns for row in part.rows)),
        "tests": f"{', '.join(options.tests)} at {options.alpha:g}, without a correction for many pairs",
        "pairs": "of systems of two teams" if options.across_teams else "all pairs of systems",
        "residual": f"RBP with p = {options.persistence:g}",
        "seed": str(options.seed),
    }
    return study_page(
        "Pools compared" if len(study.campaigns) > 1 else f"Pools of {study.names[0]}",
        " ".join(_lead(study)),
        tuple(_sections(study)),
        figures=tuple(_figures(study)),
        paragraph=_paragraph(study),
        facts=facts,
        command=command,
    )


report_study.register(PoolStudy, report_pools)


def _least(part: CollectionPool) -> PoolRow:
    """Return the row with the fewest judgments, of the first measure; the teams left out apart."""
    rows = [row for row in part.rows if row.lists == "whole" and row.metric == part.rows[0].metric]
    counts = {cut.cut: cut.judged for cut in part.cuts}
    sequences = [row for row in rows if row.kind != "team" and row.decisions.concordance < 1] or rows
    return min(sequences, key=lambda row: counts[row.cut])


def _kept(part: CollectionPool, row: PoolRow) -> float:
    return next(cut.kept for cut in part.cuts if cut.cut == row.cut)


def _lead(study: PoolStudy) -> Iterator[str]:
    """Yield the main result of each campaign."""
    for part in study.campaigns:
        row = _least(part)
        yield (
            f"{part.campaign}: by {row.cut}, {_kept(part, row):.1%} of the judgments, {row.decisions.concordance:.1%} "
            f"of {row.decisions.pairs:,} tests on {row.metric} have the outcome of the reference; unjudged documents "
            f"could add {row.residual:.2f} to a score (RBP residual)."
        )


def _figures(study: PoolStudy) -> Iterator[tuple[str, str, str]]:
    for part in study.campaigns:
        row = _least(part)
        yield (
            f"concordance, {row.cut}",
            f"{row.decisions.concordance:.1%}",
            f"{part.campaign}, {row.metric}, {_kept(part, row):.1%} of the judgments",
        )
        yield (
            "RBP residual",
            f"{row.residual:.2f}",
            f"{part.campaign}, {row.cut}; largest {row.largest_residual:.2f}",
        )


def _table(view: Table, caption: str) -> Table:
    """Return a table with the decimals of a view, and spaces in its names where lines may break."""
    shown = {}
    for name in view.frame.columns:
        column, decimals = view.frame[name], view.decimals.get(str(name), DECIMALS)
        text = [CUT.sub("\\1\N{NO-BREAK SPACE}", cell_text(value, decimals)) for value in column]
        shown[str(name).replace("_", " ")] = text
    return Table(pd.DataFrame(shown), caption)


def _facts(study: PoolStudy, view: Table) -> Table:
    """Return one row per fact, and one column per campaign."""
    rows = [
        (str(name).replace("_", " "), *(cell_text(value, view.decimals.get(str(name), DECIMALS)) for value in column))
        for name, column in study.facts_frame().drop(columns=["campaign", "deep"]).items()
    ]
    return Table(pd.DataFrame(rows, columns=["what", *study.names], dtype=object), CAPTIONS["facts"])


def _by_campaign(study: PoolStudy, view: Table, caption: str, leave: Sequence[str] = ()) -> Iterator[Table]:
    """Yield one table per campaign, without the columns that are empty for it."""
    for name in study.names:
        frame = view.frame[view.frame["campaign"] == name].drop(columns=["campaign", *leave])
        last = [c for c in frame.columns if c == "unjudged_as"]  # figures first: a phone shows few columns
        frame = frame[[*(c for c in frame.columns if c not in last), *last]]
        if len(frame):
            yield _table(replace(view, frame=frame.dropna(axis=1, how="all")), f"{name}. {caption}".strip())
            caption = ""  # the columns of the others mean the same


def _sections(study: PoolStudy) -> Iterator[Section]:
    tables = study.named_tables()
    several = "one panel per campaign; " if len(study.campaigns) > 1 else ""
    names = ", ".join(study.names)

    def of_each(key: str, caption: str, leave: Sequence[str] = ()) -> Iterator[Table]:
        return _by_campaign(study, tables[key], CAPTIONS[caption], leave)

    yield Section("campaigns", "Campaigns", (*map(Prose, study.findings()), _facts(study, tables["facts"])))
    decisions = draw(
        plot_pools(study),
        key="pools",
        alt=f"concordance, discrimination and residual by cut for {names}",
        caption=f"Decisions by fewer judgments, {several}the last point is the reference. The share of significant "
        "pairs can be flat while the pairs themselves change.",
    )
    yield Section("tests", "Tests", (decisions, *of_each("tests", "tests", ("pairs", *COUNTS))))
    outcomes = of_each("tests", "decisions", ("discrimination", "concordance", "residual", "largest_residual"))
    yield Section("decisions", "Decisions, counted", tuple(outcomes))
    yield Section("scores", "Scores", tuple(of_each("scores", "scores")))
    if "teams" in tables:
        yield Section("teams", "Teams left out", tuple(of_each("teams", "teams")))
    yield Section("judgments", "Judgments", (_table(tables["cuts"], CAPTIONS["cuts"]),))
    if "trends" in tables:
        trends = draw(
            plot_trends(study),
            key="trends",
            alt=f"pairs of systems by the trend of their p-values for {names}",
            caption=f"Pairs of systems by the trend of p with more judgments, {several}-1: every cut that keeps more "
            "separates the two more clearly.",
        )
        yield Section("trends", "Trends", (trends, _table(tables["trends"], CAPTIONS["trends"])))
    multiplicity = draw(
        plot_multiplicity(study),
        key="multiplicity",
        alt=f"share of relevant documents by the number of systems for {names}",
        caption=f"The more systems have a document in their top ranks, the likelier it is relevant; {several}one line "
        "per depth.",
    )
    shares = of_each("multiplicity", "multiplicity")
    yield Section("multiplicity", "Relevance by the number of systems", (multiplicity, *shares))


def _paragraph(study: PoolStudy) -> str:
    """Return a paragraph for a paper."""
    test = study.options.tests[0]
    parts = []
    for part in study.campaigns:
        row, facts = _least(part), part.facts
        deep = "deeply judged systems" if facts.deep else "systems"
        parts.append(
            f"On {part.campaign} ({facts.counted} {deep} of {facts.systems}, {facts.queries} queries, pool of "
            f"depth {facts.depth} with {facts.judged:,} judgments), {row.cut} kept {_kept(part, row):.1%} of "
            f"the judgments; {row.decisions.discrimination:.1%} of {row.decisions.pairs:,} pairs differed "
            f"significantly by {row.metric} ({test} test, {study.options.alpha:g}), and "
            f"{row.decisions.concordance:.1%} had the outcome of the reference. The mean RBP residual "
            f"(p = {study.options.persistence:g}) was {row.residual:.3f}, the "
            f"largest {row.largest_residual:.3f}."
        )
    start = "We compared systems by parts of the judgments; unjudged documents count as not relevant."
    return " ".join([start, *parts])
