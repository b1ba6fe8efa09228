"""The campaign's parameters from all partitions: sums over the labels of all queries, judgments of the judged ones.

The queries in memory, the *kept* ones, are the judged ones and the sample that gives the constants of the design. They
determine everything but the information of all labels on the campaign's parameters, which partitions add up. See
docs/theory/partitions.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from probeval.arrays import Ids, Ints, objects
from probeval.data.collection import Collection
from probeval.data.judgments import Judgments
from probeval.data.problem import Problem
from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import ModelError
from probeval.features import feature_names, needs
from probeval.features.standards import sample_positions
from probeval.parallel import Run
from probeval.partitioned.joining import joined
from probeval.partitioned.parts import QueryRange
from probeval.partitioned.tasks import PartModel, PartSurvey, add_labels, survey
from probeval.relevance.inference.design import ModelDesign, standards_of
from probeval.relevance.inference.laplace import LaplacePosterior
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.observers.conditioning import CampaignPrior, LabelSums
from probeval.relevance.observers.family import distinguishes
from probeval.relevance.observers.measure import LabelModel
from probeval.reporting import Reporter
from probeval.threads import in_order, one_thread

__all__ = ["PartitionedFit", "Surveyed", "fit_parts", "followed", "look"]


@dataclass(frozen=True, eq=False, repr=False)
class Surveyed(Record):
    """A campaign in partitions after the first look at each.

    Parameters
    ----------
    parts, systems, depth, longest
        The parts, the systems to evaluate, the depth of the pool, and the length of the longest list.
    queries
        The ids of all queries, shape (query,).
    pairs, labelled
        The number of pairs, and of those with a label by each source, shape (source,).
    kept
        The positions of the queries in memory: judged ones, and a sample, shape (kept,).
    sample
        Those of the sample among them, as positions in ``collection``.
    collection
        The queries in memory, with all judgments.
    """

    parts: tuple[QueryRange, ...]
    systems: tuple[str, ...]
    depth: int
    longest: int
    queries: Ids
    pairs: int
    labelled: Ints
    kept: Ints
    sample: Ints
    collection: Collection


def look(
    parts: tuple[QueryRange, ...],
    judgments: Judgments | None,
    *,
    n_queries: int,
    depth: int,
    longest: int,
    run: Run[Any],
    reporter: Reporter,
) -> Surveyed:
    """Take the first look at every part, and keep the queries of the sample and the judged ones."""
    sample = sample_positions(n_queries)
    judged = frozenset[str]()
    if judgments is not None:
        judged = frozenset(judgments.pool.queries[np.unique(judgments.pool.query[judgments.pair])].tolist())
    work = [partial(survey, part, depth, sample, judged) for part in parts]
    found: list[PartSurvey] = list(followed(run(work), len(work), reporter, "Queries"))
    kept = np.concatenate([one.kept + part.start for one, part in zip(found, parts, strict=True)])
    collection = joined([part.collection for part in found], judgments)
    return Surveyed(
        parts=parts,
        systems=collection.runs.systems if collection.ranked is None else collection.ranked,
        depth=depth,
        longest=longest,
        queries=np.concatenate([objects([]), *(part.queries for part in found)]),
        pairs=sum(part.pairs for part in found),
        labelled=np.sum([part.labelled for part in found], axis=0),
        kept=kept,
        sample=np.searchsorted(kept, sample),
        collection=collection,
    )


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedFit(Record):
    """The model of a campaign in partitions given its labels and judgments.

    Parameters
    ----------
    surveyed, problem
        The campaign, and its kept queries.
    model
        What any query is modelled with.
    campaigns
        The prior of the campaign's parameters at each setting of the worth of labels; empty without labels.
    design
        The kept queries, given labels.
    posterior
        The posterior given their judgments.
    """

    surveyed: Surveyed
    problem: Problem
    model: PartModel
    campaigns: tuple[CampaignPrior, ...]
    design: ModelDesign
    posterior: LaplacePosterior


def fit_parts(
    surveyed: Surveyed, model: Predicts, *, scale: Scale, run: Run[Any], reporter: Reporter, worth_factor: float = 1.0
) -> PartitionedFit:
    """Fit the hierarchical model to a campaign in partitions.

    Parameters
    ----------
    surveyed, model, scale
        The campaign, the model and the grades.
    run, reporter
        Does work on parts in parallel; receives progress.
    worth_factor
        As in :func:`probeval.relevance.observers.measure.with_labels`.
    """
    known = check_model(model)
    depth = surveyed.depth
    problem = Problem.of(surveyed.collection, depth=depth, scale=scale, positions=surveyed.kept)
    prior = known.prior.with_stated()
    some = problem.part(surveyed.sample)
    with one_thread():
        standards = standards_of(prior, some)
        common = PartModel(known, depth, scale, standards, None, () if some.labels is None else some.labels.sources)
        sample, design = common.design(some), common.design(problem)
        if some.labels is not None and distinguishes(some.labels):
            worth = LabelModel.of(sample, known.prior.observers, some.labels, worth_factor=worth_factor)
            common = replace(common, labels=worth)
    campaigns: tuple[CampaignPrior, ...] = ()
    if common.labels is not None:
        work = [partial(add_labels, part, common) for part in surveyed.parts]
        sums: list[LabelSums] = []
        for found in followed(run(work), len(work), reporter, "Labels"):
            sums = [a + b for a, b in zip(sums, found, strict=True)] if sums else found
        with one_thread():
            part, whole = common.labelled(some, sample), common.labelled(problem, design)
            settings = common.labels.settings
            campaigns = tuple(in_order(lambda pair: part.campaign(*pair), list(zip(settings, sums, strict=True))))
            pairs = list(zip(settings, campaigns, strict=True))
            design = whole.given(tuple(in_order(lambda p: whole.measured(p[0]).prior(p[1], p[0].weight), pairs)))
    return PartitionedFit(surveyed, problem, common, campaigns, design, known.refit(problem, design))


def check_model(model: Predicts) -> Hierarchical:
    """Return the model if it can be fitted in parts."""
    if not isinstance(model, Hierarchical) or "judgments" in needs(feature_names(model.terms)):
        raise ModelError(
            "A campaign in partitions is evaluated by the hierarchical model. Leave --model out, or evaluate the runs "
            "without partitions."
        )
    if model.inference != "laplace":
        raise ModelError(
            "A campaign in partitions is fitted by inference 'laplace': a sampler needs all pairs at once."
        )
    return model


def followed(results: Iterator[Any], n: int, reporter: Reporter, title: str) -> Iterator[Any]:
    """Yield results while their number is followed."""
    for _ in reporter.track(range(n), title):
        yield next(results)
