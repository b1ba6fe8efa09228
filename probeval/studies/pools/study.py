"""A study of pools on one collection, and on several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated

import numpy as np
import pandas as pd

from probeval.data.collection import Collection
from probeval.data.runs import ContradictionReport
from probeval.display import Record, Table
from probeval.results import frame, key
from probeval.studies.collections import CollectionStudy
from probeval.studies.multiplicity import Multiplicity, multiplicity
from probeval.studies.pools.cuts import Cut
from probeval.studies.pools.outcomes import (
    ASSUMPTIONS,
    PoolOptions,
    PoolOutcomes,
    PoolRow,
    PoolTrend,
    TrendBar,
    residuals,
)
from probeval.studies.pools.reference import ReferencePool, first_unjudged

__all__ = ["CollectionPool", "CutFacts", "PoolDescription", "PoolFacts", "PoolStudy", "describe_pool"]

NAN = float("nan")


@dataclass(frozen=True)
class PoolFacts:
    """A collection, and the reference of its study."""

    systems: Annotated[int, "The number of systems."]
    counted: Annotated[int, "The number of those that count."]
    deep: Annotated[bool, "Whether these are the deeply judged ones alone."]
    teams: Annotated[int, "The number of teams of the systems that count."]
    queries: Annotated[int, "The number of queries."]
    depth: Annotated[int, "The depth of the reference pool."]
    judged: Annotated[int, "Its number of judged pairs."]
    relevant: Annotated[float, "The share of these that is relevant."]
    all_judged: Annotated[int, "The number of judged pairs of the collection."]
    judged_per_query: Annotated[float, "Of the collection, the mean over queries."]
    relevant_per_query: Annotated[float, "The relevant pairs of the collection, the mean over queries."]
    list_depth: Annotated[int, "The length of the longest list."]
    first_unjudged: Annotated[
        float,
        "The first rank without a judged document by all judgments of the collection, mean over the lists of the "
        "systems that count; the end of a list counts as such a rank.",
    ]
    tied_docs: Annotated[float, "The share of documents of the collection with tied scores."]
    tied_lists: Annotated[float, "The share of lists with tied scores."]
    tied_systems: Annotated[float, "The share of systems with tied scores."]
    first_tie: Annotated[float, "The geometric mean rank of the first tie of a list; null without ties."]
    contradicting_docs: Annotated[
        float, "The share of documents whose submitted rank contradicts the score; null if the ranks are not known."
    ]
    contradicting_lists: Annotated[float, "The share of lists with such documents."]
    contradicting_systems: Annotated[float, "The share of systems with such documents."]


@dataclass(frozen=True)
class CutFacts:
    """Some of the judgments of the reference."""

    cut: Annotated[str, "Its name."]
    kind: Annotated[str, "``depth``, ``share`` or ``team``."]
    value: Annotated[float, "The depth or share; null for a team."]
    judged: Annotated[int, "The number of judged pairs."]
    kept: Annotated[float, "Their share of the reference's."]
    relevant: Annotated[float, "The share of them that is relevant."]
    first_unjudged: Annotated[float, "The first rank without a judged document, mean over lists."]
    unjudged: Annotated[float, "The share of the documents in the lists, to the depth of the reference, unjudged."]
    residual: Annotated[float, "The RBP residual of the lists, the mean."]
    largest_residual: Annotated[float, "The largest RBP residual."]


@dataclass(frozen=True, eq=False, repr=False)
class PoolDescription(Record):
    """A collection, its cuts, and relevance by the number of systems that retrieved a document; no measure in it."""

    facts: PoolFacts
    cuts: tuple[CutFacts, ...]
    multiplicity: tuple[Multiplicity, ...]


def describe_pool(
    collection: Collection,
    pool: ReferencePool,
    cuts: Sequence[Cut],
    options: PoolOptions,
    contradictions: ContradictionReport | None = None,
) -> PoolDescription:
    """Describe the reference pool of a collection and its cuts.

    Parameters
    ----------
    collection
        Runs and judgments.
    pool, cuts
        The reference, and some of its judgments at a time.
    options
        The persistence of the residual.
    contradictions
        How often submitted ranks contradict scores, if known.
    """
    runs = pool.runs
    known = pool.judgments.codes_on(runs.pool, pool.scale)
    every = pool.judgments.codes(pool.scale)
    ties, queries = collection.runs.ties(), len(runs.queries)
    wrong = {} if contradictions is None else asdict(contradictions)
    facts = PoolFacts(
        systems=len(collection.runs.systems),
        counted=len(runs.systems),
        deep=pool.deep,
        teams=len(set(pool.teams)),
        queries=queries,
        depth=pool.depth,
        judged=int(pool.judged.sum()),
        relevant=_relevant(pool, pool.judged),
        all_judged=int((every >= 0).sum()),
        judged_per_query=float((every >= 0).sum() / queries),
        relevant_per_query=float((every > 0).sum() / queries),
        list_depth=runs.depth,
        first_unjudged=float(first_unjudged(np.append(known >= 0, False)[runs.pairs]).mean()),
        tied_docs=ties.docs,
        tied_lists=ties.lists,
        tied_systems=ties.systems,
        first_tie=ties.first_rank,
        contradicting_docs=wrong.get("docs", NAN),
        contradicting_lists=wrong.get("lists", NAN),
        contradicting_systems=wrong.get("systems", NAN),
    )
    depths = sorted({int(cut.value) for cut in cuts if cut.kind == "depth"} | {pool.depth})
    pooled = Collection(pool.campaign, runs, pool.judgments)
    return PoolDescription(
        facts,
        tuple(_described(pool, cut, options.persistence) for cut in cuts),
        tuple(multiplicity(pooled, depth=depth) for depth in depths),
    )


def _described(pool: ReferencePool, cut: Cut, persistence: float) -> CutFacts:
    lists = pool.lists(cut.kept)
    residual = residuals(lists, persistence)[cut.systems]
    top = lists.top(pool.depth)
    return CutFacts(
        cut=cut.name,
        kind=cut.kind,
        value=cut.value,
        judged=int(cut.kept.sum()),
        kept=float(cut.kept.sum() / max(pool.judged.sum(), 1)),
        relevant=_relevant(pool, cut.kept),
        first_unjudged=float(first_unjudged(lists.judged_docs)[cut.systems].mean()),
        unjudged=float(top.unjudged[cut.systems].sum() / max(top.retrieved[cut.systems].sum(), 1)),
        residual=float(residual.mean()),
        largest_residual=float(residual.max()),
    )


def _relevant(pool: ReferencePool, kept: np.ndarray) -> float:
    """Return the share of judged pairs above the lowest grade."""
    return float((pool.codes[kept] > 0).mean()) if kept.any() else NAN


@dataclass(frozen=True, eq=False, repr=False)
class CollectionPool(Record):
    """A study of pools on one collection."""

    campaign: Annotated[str, "The name of the collection."]
    facts: Annotated[PoolFacts, "The collection and the reference."]
    cuts: Annotated[tuple[CutFacts, ...], "One entry per cut of the judgments."]
    rows: Annotated[tuple[PoolRow, ...], "One entry per measure, test, kind of lists and cut."]
    trends: Annotated[tuple[PoolTrend, ...], "One entry per measure and kind of cuts."]
    bars: Annotated[tuple[TrendBar, ...], "One entry per value of tau."]
    multiplicity: Annotated[
        tuple[Multiplicity, ...],
        "Relevance by the number of systems that have a document in their top ranks, one entry per depth.",
    ]

    @classmethod
    def of(cls, campaign: str, described: PoolDescription, outcomes: Sequence[PoolOutcomes]) -> CollectionPool:
        """Return the study from the description of a collection and the outcomes of each measure."""
        return cls(
            campaign,
            described.facts,
            described.cuts,
            tuple(row for one in outcomes for row in one.rows),
            tuple(trend for one in outcomes for trend in one.trends),
            tuple(bar for one in outcomes for bar in one.bars),
            described.multiplicity,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per measure, test, kind of lists and cut: the columns of :class:`PoolRow`."""
        return frame(self.rows, PoolRow)

    def cut_frame(self) -> pd.DataFrame:
        """One row per cut: the columns of :class:`CutFacts`."""
        return frame(self.cuts, CutFacts)

    def trend_frame(self) -> pd.DataFrame:
        """One row per measure and kind of cuts: the columns of :class:`PoolTrend`."""
        return frame(self.trends, PoolTrend)

    def multiplicity_frame(self) -> pd.DataFrame:
        """One row per depth and number of systems: depth, systems (such as 3-4), pairs, relevant, fitted."""
        tables = []
        for found in self.multiplicity:
            table = found.to_frame()
            names = [str(a) if a == b else f"{a}-{b}" for a, b in zip(table["least"], table["most"], strict=True)]
            table = table.drop(columns=["least", "most"]).assign(depth=found.depth, systems=names)
            tables.append(table[["depth", "systems", "pairs", "relevant", "fitted"]])
        return pd.concat(tables, ignore_index=True)


TESTED = (
    "unjudged_as",
    "cut",
    "pairs",
    "discrimination",
    "concordance",
    "tp",
    "fp",
    "fn",
    "tn",
    "opposite",
    "p_counts",
)
MOVED = ("cut", "tau", "rises", "stays", "falls", "change", "largest_change")
WITHOUT_TEAM = ("cut", "pairs", "discrimination", "concordance", "opposite", "tau", "change", "largest_change")
TRENDS = (
    *("kind", "cuts", "pairs", "straddling", "falling", "rising", "straddling_falling", "straddling_rising"),
    *("tau_difference", "tau_ratio"),
)
RESIDUAL = ("residual", "largest_residual")
FACTS = (
    *("systems", "counted", "teams", "queries", "depth", "judged", "relevant", "first_unjudged"),
    *("tied_docs", "first_tie", "contradicting_docs"),
)
DECIMALS = dict.fromkeys(
    [
        *(
            "discrimination",
            "concordance",
            "p_counts",
            "tau",
            "rises",
            "stays",
            "falls",
            "residual",
            "largest_residual",
        ),
        *("kept", "relevant", "unjudged", "straddling", "falling", "rising", "straddling_falling", "straddling_rising"),
        *("tau_difference", "tau_ratio"),
        *(f"{what}_{unit}" for what in ("tied", "contradicting") for unit in ("docs", "lists", "systems")),
    ],
    3,
) | dict.fromkeys(["first_unjudged", "first_tie", "judged_per_query", "relevant_per_query"], 1)


@dataclass(frozen=True, eq=False, repr=False)
class PoolStudy(CollectionStudy[CollectionPool]):
    """A study of pools: the decisions and scores of collections by fewer judgments than they have."""

    campaigns: Annotated[tuple[CollectionPool, ...], "One entry per collection."]
    options: PoolOptions = field(default_factory=PoolOptions)
    notes: tuple[str, ...] = ()  # remarks on the collections

    def _headline(self) -> str:
        metrics = dict.fromkeys(row.metric for part in self.campaigns for row in part.rows)
        cuts = sum(len(part.cuts) for part in self.campaigns)
        return f"{', '.join(metrics)} by {cuts} sets of judgments, {', '.join(self.names)}"

    @key
    def alpha(self) -> float:
        """The level of significance."""
        return self.options.alpha

    @key
    def persistence(self) -> float:
        """The persistence p of the RBP residual."""
        return self.options.persistence

    def facts_frame(self) -> pd.DataFrame:
        """One row per collection: the columns of :class:`PoolFacts`."""
        return self.side_by_side(lambda part: frame([part.facts], PoolFacts))

    def cut_frame(self) -> pd.DataFrame:
        """One row per collection and cut."""
        return self.side_by_side(CollectionPool.cut_frame)

    def trend_frame(self) -> pd.DataFrame:
        """One row per collection, measure and kind of cuts."""
        return self.side_by_side(CollectionPool.trend_frame)

    def multiplicity_frame(self) -> pd.DataFrame:
        """One row per collection, depth and number of systems."""
        return self.side_by_side(CollectionPool.multiplicity_frame)

    def tables(self) -> tuple[Table, ...]:
        """Those of :meth:`named_tables`."""
        return tuple(self.named_tables().values())

    def named_tables(self) -> dict[str, Table]:
        """The tables by name: facts, tests, scores, teams, cuts, trends, multiplicity; without those that are empty."""
        rows, trends = self.to_frame(), self.trend_frame()
        names = self._named(rows)
        teams, first = rows["kind"] == "team", rows["test"] == self.options.tests[0]
        without_test = [name for name in names if name != "test"]
        shown = {
            "facts": (self.facts_frame()[["campaign", *FACTS]], "Campaigns, and the reference"),
            "tests": (rows.loc[~teams, [*names, *TESTED, *RESIDUAL]], "Tests of all pairs of systems"),
            "scores": (rows.loc[~teams & first, [*without_test, *MOVED]], "Scores by fewer judgments"),
            "teams": (rows.loc[teams, [*names, *WITHOUT_TEAM, *RESIDUAL]], "Without the judgments of one team"),
            "cuts": (self.cut_frame().drop(columns=["kind", "value"]), "Judgments"),
            "trends": (trends[[*names, *TRENDS]], "Trends from cut to cut"),
            "multiplicity": (
                self._by_systems(),
                "Share of relevant documents, by the number of systems that have them",
            ),
        }
        return {
            name: Table(table, title, DECIMALS | {c: 3 for c in table.columns if c.startswith("depth ")})
            for name, (table, title) in shown.items()
            if len(table)
        }

    def _named(self, rows: pd.DataFrame) -> list[str]:
        """The columns that name a row, without those that have one value."""
        varied = [name for name in ("test", "lists") if len(set(rows[name])) > 1]
        return ["campaign", "metric", *varied]

    def _by_systems(self) -> pd.DataFrame:
        """One row per collection and number of systems: the share of relevant documents at each depth."""
        table = self.multiplicity_frame().dropna(subset=["relevant"])
        wide = table.pivot_table("relevant", ["campaign", "systems"], "depth", sort=False)
        wide = wide[sorted(wide.columns)]
        return wide.set_axis([f"depth {depth}" for depth in wide.columns], axis=1).reset_index()

    def sentences(self) -> tuple[str, ...]:
        """What the figures mean, then remarks on the collections."""
        return (*self.findings(), *self.notes)

    def findings(self) -> tuple[str, ...]:
        """The reference of each collection, what rows assume, and what the residual is."""
        kinds = [kind for kind in ASSUMPTIONS if kind == "whole" or self.options.condensed]
        assumed = "; ".join(f"{kind} lists: unjudged documents are {ASSUMPTIONS[kind]}" for kind in kinds)
        pairs = "systems of one team are not compared" if self.options.across_teams else "all pairs of systems"
        return (
            *(self._reference(part) for part in self.campaigns),
            f"{assumed[0].upper()}{assumed[1:]}. They could add the residual to a score: RBP "
            f"(p={self.options.persistence:g}), mean and largest over lists, ranks past the end of a list included.",
            f"Tests at {self.options.alpha:g} without a correction for many pairs; {pairs}.",
        )

    @staticmethod
    def _reference(part: CollectionPool) -> str:
        facts = part.facts
        which = f"{facts.counted} of {facts.systems} systems, not all deeply judged"
        if facts.deep:
            which = f"the {facts.counted} deeply judged systems of {facts.systems}"
        return (
            f"{part.campaign}: the reference is {facts.judged:,} of {facts.all_judged:,} judgments, the pool of the "
            f"top {facts.depth} of {which}."
        )
