"""A study of pools on one campaign, and on several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd

from probeval.data.collection import Collection
from probeval.data.runs import ContradictionReport
from probeval.display import Record, Table
from probeval.schema import records
from probeval.studies.collections import CollectionStudy
from probeval.studies.multiplicity import Multiplicity, multiplicity
from probeval.studies.pools.cuts import Cut
from probeval.studies.pools.documents import (
    CampaignPoolDocument,
    CutDocument,
    PoolFacts,
    PoolRow,
    PoolStudyDocument,
    PoolTrend,
    TrendBar,
)
from probeval.studies.pools.outcomes import ASSUMPTIONS, PoolOptions, PoolOutcomes, residuals
from probeval.studies.pools.reference import ReferencePool, first_unjudged

__all__ = ["CampaignPool", "PoolDescription", "PoolStudy", "describe_pool"]

NAN = float("nan")


@dataclass(frozen=True, eq=False, repr=False)
class PoolDescription(Record):
    """A campaign, its cuts, and relevance by the number of systems that retrieved a document; no measure in it."""

    facts: PoolFacts
    cuts: tuple[CutDocument, ...]
    multiplicity: tuple[Multiplicity, ...]


def describe_pool(
    collection: Collection,
    pool: ReferencePool,
    cuts: Sequence[Cut],
    options: PoolOptions,
    contradictions: ContradictionReport | None = None,
) -> PoolDescription:
    """Describe the reference pool of a campaign and its cuts.

    Parameters
    ----------
    collection
        The campaign.
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
    wrong = {f"contradicting_{name}": NAN for name in ("docs", "lists", "systems")}
    if contradictions is not None:
        wrong = {f"contradicting_{name}": share for name, share in asdict(contradictions).items()}
    facts: PoolFacts = {
        "systems": len(collection.runs.systems),
        "counted": len(runs.systems),
        "deep": pool.deep,
        "teams": len(set(pool.teams)),
        "queries": queries,
        "depth": pool.depth,
        "judged": int(pool.judged.sum()),
        "relevant": _relevant(pool, pool.judged),
        "all_judged": int((every >= 0).sum()),
        "judged_per_query": float((every >= 0).sum() / queries),
        "relevant_per_query": float((every > 0).sum() / queries),
        "list_depth": runs.depth,
        "first_unjudged": float(first_unjudged(np.append(known >= 0, False)[runs.pairs]).mean()),
        "tied_docs": ties.docs,
        "tied_lists": ties.lists,
        "tied_systems": ties.systems,
        "first_tie": ties.first_rank,
        "contradicting_docs": wrong["contradicting_docs"],
        "contradicting_lists": wrong["contradicting_lists"],
        "contradicting_systems": wrong["contradicting_systems"],
    }
    depths = sorted({int(cut.value) for cut in cuts if cut.kind == "depth"} | {pool.depth})
    pooled = Collection(pool.campaign, runs, pool.judgments)
    return PoolDescription(
        facts,
        tuple(_described(pool, cut, options.persistence) for cut in cuts),
        tuple(multiplicity(pooled, depth=depth) for depth in depths),
    )


def _described(pool: ReferencePool, cut: Cut, persistence: float) -> CutDocument:
    lists = pool.lists(cut.kept)
    residual = residuals(lists, persistence)[cut.systems]
    top = lists.top(pool.depth)
    return {
        "cut": cut.name,
        "kind": cut.kind,
        "value": cut.value,
        "judged": int(cut.kept.sum()),
        "kept": float(cut.kept.sum() / max(pool.judged.sum(), 1)),
        "relevant": _relevant(pool, cut.kept),
        "first_unjudged": float(first_unjudged(lists.judged_docs)[cut.systems].mean()),
        "unjudged": float(top.unjudged[cut.systems].sum() / max(top.retrieved[cut.systems].sum(), 1)),
        "residual": float(residual.mean()),
        "largest_residual": float(residual.max()),
    }


def _relevant(pool: ReferencePool, kept: np.ndarray) -> float:
    """Return the share of judged pairs above the lowest grade."""
    return float((pool.codes[kept] > 0).mean()) if kept.any() else NAN


@dataclass(frozen=True, eq=False, repr=False)
class CampaignPool(Record):
    """A study of pools on one campaign.

    Parameters
    ----------
    campaign
        Its name.
    facts
        The campaign and the reference.
    cuts
        One entry per cut of the judgments.
    rows, trends, bars
        One entry per measure, test, kind of lists and cut; per measure and kind of cuts; per value of tau.
    multiplicity
        Relevance by the number of systems that have a document in their top ranks, for each depth.
    """

    campaign: str
    facts: PoolFacts
    cuts: tuple[CutDocument, ...]
    rows: tuple[PoolRow, ...]
    trends: tuple[PoolTrend, ...]
    bars: tuple[TrendBar, ...]
    multiplicity: tuple[Multiplicity, ...]

    @classmethod
    def of(cls, campaign: str, described: PoolDescription, outcomes: Sequence[PoolOutcomes]) -> CampaignPool:
        """Return the study from the description of a campaign and the outcomes of each measure."""
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
        return pd.DataFrame(list(self.rows))

    def cut_frame(self) -> pd.DataFrame:
        """One row per cut: the columns of :class:`CutDocument`."""
        return pd.DataFrame(list(self.cuts))

    def trend_frame(self) -> pd.DataFrame:
        """One row per measure and kind of cuts: the columns of :class:`PoolTrend`."""
        return pd.DataFrame(list(self.trends), columns=list(PoolTrend.__annotations__))

    def multiplicity_frame(self) -> pd.DataFrame:
        """One row per depth and number of systems: depth, systems (such as 3-4), pairs, relevant, fitted."""
        tables = []
        for found in self.multiplicity:
            table = found.to_frame()
            names = [str(a) if a == b else f"{a}-{b}" for a, b in zip(table["least"], table["most"], strict=True)]
            table = table.drop(columns=["least", "most"]).assign(depth=found.depth, systems=names)
            tables.append(table[["depth", "systems", "pairs", "relevant", "fitted"]])
        return pd.concat(tables, ignore_index=True)

    def to_dict(self) -> CampaignPoolDocument:
        """The study as plain data for JSON."""
        return {
            "campaign": self.campaign,
            "facts": self.facts,
            "cuts": records(self.cut_frame(), CutDocument),
            "rows": list(self.rows),
            "trends": list(self.trends),
            "bars": list(self.bars),
            "multiplicity": [found.to_dict() for found in self.multiplicity],
        }


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
class PoolStudy(CollectionStudy[CampaignPool]):
    """A study of pools: the decisions and scores of campaigns by fewer judgments than they have.

    Parameters
    ----------
    campaigns
        The results of each campaign.
    options
        How systems were compared.
    notes
        Remarks on the campaigns.
    """

    options: PoolOptions = field(default_factory=PoolOptions)
    notes: tuple[str, ...] = ()

    def _headline(self) -> str:
        metrics = dict.fromkeys(row["metric"] for part in self.campaigns for row in part.rows)
        cuts = sum(len(part.cuts) for part in self.campaigns)
        return f"{', '.join(metrics)} by {cuts} sets of judgments, {', '.join(self.names)}"

    def to_dict(self) -> PoolStudyDocument:
        """The study as plain data for JSON."""
        return {
            "alpha": self.options.alpha,
            "persistence": self.options.persistence,
            "campaigns": [part.to_dict() for part in self.campaigns],
        }

    def facts_frame(self) -> pd.DataFrame:
        """One row per campaign: the columns of :class:`PoolFacts`."""
        return self.side_by_side(lambda part: pd.DataFrame([part.facts]))

    def cut_frame(self) -> pd.DataFrame:
        """One row per campaign and cut."""
        return self.side_by_side(CampaignPool.cut_frame)

    def trend_frame(self) -> pd.DataFrame:
        """One row per campaign, measure and kind of cuts."""
        return self.side_by_side(CampaignPool.trend_frame)

    def multiplicity_frame(self) -> pd.DataFrame:
        """One row per campaign, depth and number of systems."""
        return self.side_by_side(CampaignPool.multiplicity_frame)

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
            name: Table(frame, title, DECIMALS | {c: 3 for c in frame.columns if c.startswith("depth ")})
            for name, (frame, title) in shown.items()
            if len(frame)
        }

    def _named(self, rows: pd.DataFrame) -> list[str]:
        """The columns that name a row, without those that have one value."""
        varied = [name for name in ("test", "lists") if len(set(rows[name])) > 1]
        return ["campaign", "metric", *varied]

    def _by_systems(self) -> pd.DataFrame:
        """One row per campaign and number of systems: the share of relevant documents at each depth."""
        table = self.multiplicity_frame().dropna(subset=["relevant"])
        wide = table.pivot_table("relevant", ["campaign", "systems"], "depth", sort=False)
        wide = wide[sorted(wide.columns)]
        return wide.set_axis([f"depth {depth}" for depth in wide.columns], axis=1).reset_index()

    def sentences(self) -> tuple[str, ...]:
        """What the figures mean, then remarks on the campaigns."""
        return (*self.findings(), *self.notes)

    def findings(self) -> tuple[str, ...]:
        """The reference of each campaign, what rows assume, and what the residual is."""
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
    def _reference(part: CampaignPool) -> str:
        facts = part.facts
        which = f"{facts['counted']} of {facts['systems']} systems, not all deeply judged"
        if facts["deep"]:
            which = f"the {facts['counted']} deeply judged systems of {facts['systems']}"
        return (
            f"{part.campaign}: the reference is {facts['judged']:,} of {facts['all_judged']:,} judgments, the pool of "
            f"the top {facts['depth']} of {which}."
        )
