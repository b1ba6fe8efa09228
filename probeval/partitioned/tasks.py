"""The work on one partition: what is read, added up and handed back. Nothing handed back grows with the pairs.

A partition is worked on in chunks of queries, so that memory does not depend on its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from probeval.arrays import Ids, Ints
from probeval.data.collection import Collection
from probeval.data.problem import Problem
from probeval.data.scale import UNJUDGED, Scale
from probeval.display import Record
from probeval.features.standards import Standards
from probeval.metrics import Metric
from probeval.partitioned.joining import some_queries
from probeval.partitioned.parts import QueryRange
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.inference.blocks import JudgedPairs
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.sampling import LaplaceDraws
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.observers.conditioning import CampaignPrior, LabelSums
from probeval.relevance.observers.measure import LabelledPart, LabelModel
from probeval.scores.draws import BlockScores, sum_draws
from probeval.scores.evaluate import cut_lists
from probeval.scores.moments import BlockMoments, sum_moments
from probeval.threads import one_thread

__all__ = ["PartModel", "PartScores", "PartSurvey", "ScorePlan", "add_labels", "added", "score", "score_part", "survey"]

CHUNK = 1024  # queries that are worked on at once


@dataclass(frozen=True, eq=False, repr=False)
class PartSurvey(Record):
    """What the first look at a partition gives.

    Parameters
    ----------
    queries
        The ids of its queries, shape (query,).
    pairs, labelled
        The number of pairs in the top ranks, and of those with a label by each source, shape (source,).
    kept
        The positions of the queries that are kept in memory, among those of the partition.
    collection
        These queries.
    """

    queries: Ids
    pairs: int
    labelled: Ints
    kept: Ints
    collection: Collection


def survey(part: QueryRange, depth: int, positions: Ints, judged: frozenset[str]) -> PartSurvey:
    """Return the first look at a part; queries at some positions of the campaign, or judged, are kept."""
    collection = part.read(depth)
    queries, start = collection.runs.queries, part.start
    keep = np.fromiter((query in judged for query in queries), dtype=bool, count=len(queries))
    here = positions[(positions >= start) & (positions < start + len(queries))] - start
    keep[here] = True
    kept = np.flatnonzero(keep)
    pool = collection.runs.top(depth).pool
    labels = collection.labels
    labelled = np.zeros(0, dtype=np.int64) if labels is None else (~np.isnan(labels.on(pool).values)).sum(axis=0)
    return PartSurvey(queries, len(pool), labelled, kept, some_queries(collection, kept))


@dataclass(frozen=True, eq=False, repr=False)
class PartModel(Record):
    """What a partition's queries are modelled with: the same for all.

    Parameters
    ----------
    model, depth, scale
        The model, the depth of the pool, and the grades.
    standards
        The constants of the campaign's design.
    labels
        The worth of labels; None without labels.
    sources
        The sources of labels that count.
    """

    model: Hierarchical
    depth: int
    scale: Scale
    standards: Standards
    labels: LabelModel | None
    sources: tuple[str, ...]

    def design(self, problem: Problem) -> ModelDesign:
        """Return the design of some queries before their labels are seen."""
        return self.model.unlabelled(problem, standards=self.standards)

    def labelled(self, problem: Problem, design: ModelDesign) -> LabelledPart:
        """Return the labels of some queries."""
        assert self.labels is not None
        assert problem.labels is not None
        return LabelledPart(self.labels, design, problem.labels.values)


def chunks(part: QueryRange, model: PartModel, skip: Ints) -> Iterator[Problem]:
    """Yield the queries of a part in chunks, without those to skip."""
    collection = part.read(model.depth, sources=model.sources)
    positions = part.start + np.arange(len(collection.runs.queries))
    whole = Problem.of(collection, depth=model.depth, scale=model.scale, positions=positions)
    wanted = np.flatnonzero(~np.isin(positions, skip))
    for first in range(0, len(wanted), CHUNK):
        yield whole.part(wanted[first : first + CHUNK])


def add_labels(part: QueryRange, model: PartModel) -> list[LabelSums]:
    """Return the information of a part's labels on the campaign's parameters, at each setting of their worth."""
    assert model.labels is not None
    out: list[LabelSums] = []
    with one_thread():
        for problem in chunks(part, model, np.empty(0, dtype=np.int64)):
            labelled = model.labelled(problem, model.design(problem))
            sums = [labelled.measured(setting, sums_only=True).sums for setting in model.labels.settings]
            out = [a + b for a, b in zip(out, sums, strict=True)] if out else sums
    return out


@dataclass(frozen=True, eq=False, repr=False)
class ScorePlan(Record):
    """How a partition's queries are scored.

    Parameters
    ----------
    draws
        The draws of the campaign's parameters, without any judged query.
    campaigns
        The prior of these parameters at each setting of the worth of labels; empty without labels.
    metric
        The measure.
    method, n, seed
        Moments, or draws with their number and seed.
    done
        The positions of the queries that are scored elsewhere.
    """

    draws: LaplaceDraws
    campaigns: tuple[CampaignPrior, ...]
    metric: Metric
    method: str
    n: int
    seed: int
    done: Ints


@dataclass(frozen=True, eq=False, repr=False)
class PartScores(Record):
    """The contribution of some queries, and their positions in the campaign, in rising order; None without any."""

    positions: Ints
    sums: BlockScores | BlockMoments | None


def score_part(part: QueryRange, model: PartModel, plan: ScorePlan) -> PartScores:
    """Return the contribution of a part's queries to the scores, from draws given labels; none is judged."""
    found, places = [], [np.empty(0, dtype=np.int64)]
    with one_thread():
        for problem in chunks(part, model, plan.done):
            found.append(score(problem, unjudged_relevance(problem, model, plan), plan))
            places.append(problem.positions)
    return PartScores(np.concatenate(places), added(found) if found else None)


def unjudged_relevance(problem: Problem, model: PartModel, plan: ScorePlan) -> RelevanceDistribution:
    """Return the distribution of relevance of queries without judgments."""
    design = model.design(problem)
    problems = [JudgedPairs(design, np.full(len(design.pool), UNJUDGED))] * len(plan.draws.modes)
    if model.labels is not None:
        part = model.labelled(problem, design)
        design = part.reference
        none = np.full(len(design.pool), UNJUDGED)
        blank = replace(design, measured=())
        for k, (setting, campaign, mine) in enumerate(
            zip(model.labels.settings, plan.campaigns, plan.draws.parts, strict=True)
        ):
            # A setting without draws is as good as any other.
            if mine.start < mine.stop:
                problems[k] = JudgedPairs(blank, none, part.measured(setting).prior(campaign, setting.weight))
        first = next(p for p in problems if p.measured is not None)
        problems = [p if p.measured is not None else first for p in problems]
    return RelevanceDistribution.of(design.pool, design.scale, replace(plan.draws, problems=problems))


def score(problem: Problem, relevance: RelevanceDistribution, plan: ScorePlan) -> BlockScores | BlockMoments:
    """Return the contribution of some queries to the scores."""
    runs, weights = problem.lists, np.ones(len(problem.positions))
    if plan.metric.cutoff is not None and plan.metric.cutoff < runs.depth:
        runs = cut_lists(runs, plan.metric.cutoff)
    if plan.method == "moments":
        return sum_moments(runs, relevance, plan.metric, query_weights=weights)
    return sum_draws(runs, relevance, plan.metric, plan.n, plan.seed, problem.positions, query_weights=weights)


def added(parts: list[BlockScores | BlockMoments]) -> BlockScores | BlockMoments:
    """Return the contributions of several parts, of one kind, as one."""
    if isinstance(parts[0], BlockMoments):
        return BlockMoments.added([part for part in parts if isinstance(part, BlockMoments)])
    return BlockScores.added([part for part in parts if isinstance(part, BlockScores)])
