"""The types of studies of pools as plain data."""

from __future__ import annotations

from typing import TypedDict

from probeval.studies.multiplicity import MultiplicityDocument

__all__ = ["CampaignPoolDocument", "CutDocument", "PoolFacts", "PoolRow", "PoolStudyDocument", "PoolTrend", "TrendBar"]


class PoolFacts(TypedDict):
    """A campaign, and the reference of its study.

    Parameters
    ----------
    systems, counted, deep
        The number of systems, of those that count, and whether these are the deeply judged ones alone.
    teams, queries
        The number of teams of the systems that count, and of queries.
    depth, judged, relevant
        The depth of the reference pool, its number of judged pairs, and the share of these that is relevant.
    all_judged
        The number of judged pairs of the campaign.
    judged_per_query, relevant_per_query
        Of the campaign, means over queries.
    list_depth, first_unjudged
        The length of the longest list, and the first rank without a judged document by all judgments of the campaign,
        mean over the lists of the systems that count; the end of a list counts as such a rank.
    tied_docs, tied_lists, tied_systems, first_tie
        The shares of documents, lists and systems of the campaign with tied scores, and the geometric mean rank of the
        first tie of a list; null without ties.
    contradicting_docs, contradicting_lists, contradicting_systems
        The shares whose submitted ranks contradict the scores; null if the ranks are not known.
    """

    systems: int
    counted: int
    deep: bool
    teams: int
    queries: int
    depth: int
    judged: int
    relevant: float
    all_judged: int
    judged_per_query: float
    relevant_per_query: float
    list_depth: int
    first_unjudged: float
    tied_docs: float
    tied_lists: float
    tied_systems: float
    first_tie: float
    contradicting_docs: float
    contradicting_lists: float
    contradicting_systems: float


class CutDocument(TypedDict):
    """Some of the judgments of the reference.

    Parameters
    ----------
    cut, kind, value
        Its name; ``depth``, ``share`` or ``team``; the depth or share, null for a team.
    judged, kept, relevant
        The number of judged pairs, their share of the reference's, and the share of them that is relevant.
    first_unjudged
        The first rank without a judged document, mean over lists.
    unjudged
        The share of the documents in the lists, to the depth of the reference, that is unjudged.
    residual, largest_residual
        The RBP residual of the lists: the mean and the largest.
    """

    cut: str
    kind: str
    value: float
    judged: int
    kept: float
    relevant: float
    first_unjudged: float
    unjudged: float
    residual: float
    largest_residual: float


class DecisionOutcome(TypedDict):
    """Decisions on pairs of systems against those by the reference."""

    pairs: int
    significant: int
    discrimination: float
    tp: int
    fp: int
    fn: int
    tn: int
    opposite: int
    concordance: float
    p_counts: float


class ScoreMovement(TypedDict):
    """Scores of lists against those by the reference."""

    rises: float
    stays: float
    falls: float
    change: float
    largest_change: float


class PoolRow(DecisionOutcome, ScoreMovement):
    """One measure, by one test, with some of the judgments.

    Parameters
    ----------
    metric, test
        The measure and the test of pairs of systems.
    lists, unjudged_as
        ``whole`` or ``condensed``, and what unjudged documents are taken for: ``not relevant`` or ``left out``.
    cut, kind, value
        The judgments that were kept.
    residual, largest_residual
        The RBP residual of the lists: the part of a score that rests on unjudged documents, mean and largest.
    pairs, significant, discrimination
        The number of pairs of systems tested, of those that differ significantly, and their share.
    tp, fp, fn, tn
        Pairs that differ in both, by these judgments alone, by the reference alone, and in neither. A pair with
        opposite winners counts as fp.
    opposite
        The number of pairs with opposite winners.
    concordance
        The share of pairs with the same decision.
    p_counts
        The p-value of a different number of significant pairs than by the reference, as if pairs were independent.
    tau
        Kendall's tau between the order of all systems and that by the reference.
    rises, stays, falls
        The shares of lists whose score rises, stays or falls once the remaining pairs of the reference are judged.
    change, largest_change
        The score by these judgments less that by the reference: the mean, and the largest in size.
    """

    metric: str
    test: str
    lists: str
    unjudged_as: str
    cut: str
    kind: str
    value: float
    residual: float
    largest_residual: float
    tau: float


class CutSequence(TypedDict):
    """A sequence of cuts, for one measure."""

    metric: str
    test: str
    lists: str
    kind: str


class PoolTrend(CutSequence):
    """How decisions and scores move from cut to cut, the reference left out.

    Parameters
    ----------
    metric, test, lists, kind, cuts
        The measure, the test, the lists, the kind of cuts, and their number.
    pairs
        The number of pairs of systems.
    straddling
        The share of pairs that are significant by some of these cuts and not by others.
    falling, rising
        The shares of pairs whose p falls, or rises, with every cut that keeps more judgments: tau is -1 or 1.
    straddling_falling, straddling_rising
        The share of straddling pairs among these.
    tau_difference, tau_ratio
        Kendall's tau between the residual of a list and the difference, or the ratio, of its score by the cut to its
        score by the reference.
    """

    cuts: int
    pairs: int
    straddling: float
    falling: float
    rising: float
    straddling_falling: float
    straddling_rising: float
    tau_difference: float
    tau_ratio: float


class TrendBar(CutSequence):
    """Pairs of systems whose p-values have the same trend.

    Parameters
    ----------
    metric, test, lists, kind
        The measure, the test, the lists and the kind of cuts.
    tau
        Kendall's tau between the cuts, the smallest first, and the p-values of a pair.
    significant, straddling, open
        The number of pairs that are significant by every cut, by some, by none.
    """

    tau: float
    significant: int
    straddling: int
    open: int


class CampaignPoolDocument(TypedDict):
    """The study of one campaign.

    Parameters
    ----------
    campaign, facts
        Its name, and the reference.
    cuts, rows, trends, bars
        One entry per cut; per measure, test, kind of lists and cut; per measure and kind of cuts; per value of tau.
    multiplicity
        Relevance by the number of systems that have a document in their top ranks, one entry per depth.
    """

    campaign: str
    facts: PoolFacts
    cuts: list[CutDocument]
    rows: list[PoolRow]
    trends: list[PoolTrend]
    bars: list[TrendBar]
    multiplicity: list[MultiplicityDocument]


class PoolStudyDocument(TypedDict):
    """A study of pools.

    Parameters
    ----------
    alpha, persistence
        The level of significance, and the persistence p of the RBP residual.
    campaigns
        One entry per campaign.
    """

    alpha: float
    persistence: float
    campaigns: list[CampaignPoolDocument]
