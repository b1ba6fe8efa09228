"""The work on one partition: what is read, added up and handed back. Nothing handed back grows with the pairs.

A partition is worked on in chunks of queries, so that memory does not depend on its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from probeval.arrays import Ids, Ints
from probeval.data.collection import Collection
from probeval.data.partitions import Partitions
from probeval.data.scale import UNJUDGED, Scale
from probeval.display import Brief
from probeval.features.standards import Standards
from probeval.metrics import Metric
from probeval.partitioned.joining import some_queries
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.inference.blocks import Problem
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
class PartSurvey(Brief):
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


def survey(parts: Partitions, i: int, depth: int, positions: Ints, judged: frozenset[str]) -> PartSurvey:
    """Return the first look at a partition; queries at some positions of the campaign, or judged, are kept."""
    collection = parts.read(i, depth)
    queries, start = collection.runs.queries, int(parts.starts[i])
    keep = np.fromiter((query in judged for query in queries), dtype=bool, count=len(queries))
    here = positions[(positions >= start) & (positions < start + len(queries))] - start
    keep[here] = True
    kept = np.flatnonzero(keep)
    pool = collection.runs.top(depth).pool
    labels = collection.labels
    labelled = np.zeros(0, dtype=np.int64) if labels is None else (~np.isnan(labels.on(pool))).sum(axis=0)
    return PartSurvey(queries, len(pool), labelled, kept, some_queries(collection, kept))


@dataclass(frozen=True, eq=False, repr=False)
class PartModel(Brief):
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

    def design(self, collection: Collection, positions: Ints) -> ModelDesign:
        """Return the design of some queries before their labels are seen."""
        return self.model.unlabelled(
            collection, depth=self.depth, scale=self.scale, standards=self.standards, positions=positions
        )

    def labelled(self, collection: Collection, design: ModelDesign) -> LabelledPart:
        """Return the labels of some queries."""
        assert self.labels is not None
        assert collection.labels is not None
        return LabelledPart(self.labels, design, collection.labels.on(design.pool))


def chunks(parts: Partitions, i: int, model: PartModel, skip: Ints) -> Iterator[tuple[Collection, Ints]]:
    """Yield the queries of a partition in chunks, with their positions in the campaign, without those to skip."""
    collection = parts.read(i, model.depth, sources=model.sources)
    start, n = int(parts.starts[i]), len(collection.runs.queries)
    positions = np.setdiff1d(np.arange(start, start + n), skip)
    for first in range(0, len(positions), CHUNK):
        mine = positions[first : first + CHUNK]
        yield some_queries(collection, mine - start), mine


def add_labels(parts: Partitions, i: int, model: PartModel) -> list[LabelSums]:
    """Return the information of a partition's labels on the campaign's parameters, at each setting of their worth."""
    assert model.labels is not None
    out: list[LabelSums] = []
    with one_thread():
        for collection, positions in chunks(parts, i, model, np.empty(0, dtype=np.int64)):
            part = model.labelled(collection, model.design(collection, positions))
            sums = [part.measured(setting, sums_only=True).sums for setting in model.labels.settings]
            out = [a + b for a, b in zip(out, sums, strict=True)] if out else sums
    return out


@dataclass(frozen=True, eq=False, repr=False)
class ScorePlan(Brief):
    """How a partition's queries are scored.

    Parameters
    ----------
    draws
        The draws of the campaign's parameters, without any judged query.
    campaigns
        The prior of these parameters at each setting of the worth of labels; empty without labels.
    metric, depth
        The measure, and the depth of the pool.
    method, n, seed
        Moments, or draws with their number and seed.
    done
        The positions of the queries that are scored elsewhere.
    """

    draws: LaplaceDraws
    campaigns: tuple[CampaignPrior, ...]
    metric: Metric
    depth: int
    method: str
    n: int
    seed: int
    done: Ints


@dataclass(frozen=True, eq=False, repr=False)
class PartScores(Brief):
    """The contribution of some queries, and their positions in the campaign, in rising order; None without any."""

    positions: Ints
    sums: BlockScores | BlockMoments | None


def score_part(parts: Partitions, i: int, model: PartModel, plan: ScorePlan) -> PartScores:
    """Return the contribution of a partition's queries to the scores, from draws given labels; none is judged."""
    found, places = [], [np.empty(0, dtype=np.int64)]
    with one_thread():
        for collection, positions in chunks(parts, i, model, plan.done):
            relevance = unjudged_relevance(collection, positions, model, plan)
            found.append(score(collection, relevance, plan, positions))
            places.append(positions)
    return PartScores(np.concatenate(places), added(found) if found else None)


def unjudged_relevance(
    collection: Collection, positions: Ints, model: PartModel, plan: ScorePlan
) -> RelevanceDistribution:
    """Return the distribution of relevance of queries without judgments."""
    design = model.design(collection, positions)
    problems = [Problem(design, np.full(len(design.pool), UNJUDGED))] * len(plan.draws.modes)
    if model.labels is not None:
        part = model.labelled(collection, design)
        design = part.reference
        none = np.full(len(design.pool), UNJUDGED)
        blank = replace(design, measured=())
        for k, (setting, campaign, mine) in enumerate(
            zip(model.labels.settings, plan.campaigns, plan.draws.parts, strict=True)
        ):
            # A setting without draws is as good as any other.
            if mine.start < mine.stop:
                problems[k] = Problem(blank, none, part.measured(setting).prior(campaign, setting.weight))
        first = next(p for p in problems if p.measured is not None)
        problems = [p if p.measured is not None else first for p in problems]
    return RelevanceDistribution.of(design.pool, design.scale, replace(plan.draws, problems=problems))


def score(
    collection: Collection, relevance: RelevanceDistribution, plan: ScorePlan, positions: Ints
) -> BlockScores | BlockMoments:
    """Return the contribution of some queries to the scores."""
    runs, weights = collection.runs.top(plan.depth), np.ones(len(positions))
    if plan.metric.cutoff is not None and plan.metric.cutoff < runs.depth:
        runs = cut_lists(runs, plan.metric.cutoff)
    if plan.method == "moments":
        return sum_moments(runs, relevance, plan.metric, query_weights=weights)
    return sum_draws(runs, relevance, plan.metric, plan.n, plan.seed, positions, query_weights=weights)


def added(parts: list[BlockScores | BlockMoments]) -> BlockScores | BlockMoments:
    """Return the contributions of several parts, of one kind, as one."""
    if isinstance(parts[0], BlockMoments):
        return BlockMoments.added([part for part in parts if isinstance(part, BlockMoments)])
    return BlockScores.added([part for part in parts if isinstance(part, BlockScores)])
