"""Reliability: variance components of scores, and the reliability of collections of other sizes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from probeval.api.classical import judged_scores, required_judgments
from probeval.api.evidence import as_collection, as_scale, select_model
from probeval.data import Collection, Scale
from probeval.data.files import suffix
from probeval.data.scale import Gain
from probeval.errors import ModelError, ProbevalWarning, ReliabilityError
from probeval.metrics import AnyMetric, Metric
from probeval.relevance import Card
from probeval.relevance.models.base import Predicts
from probeval.reporting import SILENT, Reporter
from probeval.scores import score_collection
from probeval.scores.evaluate import as_metric
from probeval.streams import stream

if TYPE_CHECKING:
    from probeval.reliability import Design, DStudy, GStudy, Observed

__all__ = ["StudyScores", "dstudy", "gstudy", "is_score_table", "study_scores"]


@dataclass(frozen=True, eq=False)
class StudyScores:
    """Scores for a study of reliability.

    Parameters
    ----------
    scores
        Over the facets of the design.
    pool
        The number of retrieved pairs per query; None for a table of scores.
    """

    scores: Observed
    pool: float | None = None


def gstudy(
    source: Any,
    metric: AnyMetric | None = None,
    *,
    method: str = "anova",
    interval: str | None = None,
    drop: float = 0.0,
    draws: int = 1000,
    seed: int = 0,
    **options: Any,
) -> GStudy:
    """Variance components of scores, and the reliability of mean scores (E rho^2 and Phi).

    Parameters
    ----------
    source, metric, options
        A table of scores, or runs with judgments and a measure: see :func:`study_scores`.
    method, interval, drop
        As in :func:`probeval.reliability.gstudy`.
    draws
        The number of joint draws of uncertain scores, and of samples of a bootstrap.
    seed
        The random seed; the same seed gives the same result.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(np.random.default_rng(1), systems=4, queries=20, depth=5)
    >>> sorted(probeval.gstudy(campaign, "nDCG@5").components)
    ['query', 'residual', 'system']
    """
    from probeval.reliability import gstudy as decompose

    given = study_scores(source, metric, draws=draws, seed=seed, **options)
    return decompose(given.scores, method=method, interval=interval, drop=drop, n=draws, rng=stream(seed))


def dstudy(
    source: Any,
    metric: AnyMetric | None = None,
    *,
    queries: Sequence[int] | None = None,
    assessors: Sequence[int] | None = None,
    targets: Sequence[tuple[str, float]] = (("erho2", 0.95), ("phi", 0.95)),
    level: float = 0.95,
    method: str = "anova",
    interval: str | None = None,
    drop: float = 0.0,
    draws: int = 1000,
    seed: int = 0,
    **options: Any,
) -> DStudy:
    """The reliability of other numbers of queries and assessors, and the queries that targets take.

    Parameters
    ----------
    source, metric, method, interval, drop, draws, seed, options
        As in :func:`probeval.gstudy`; or a G-study, without the rest.
    queries, assessors, targets, level
        As in :func:`probeval.reliability.dstudy`.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(np.random.default_rng(1), systems=4, queries=20, depth=5)
    >>> probeval.dstudy(campaign, "nDCG@5", queries=[20, 40]).to_frame()["query"].tolist()
    [20, 40]
    """
    from probeval.reliability import GStudy
    from probeval.reliability import dstudy as project
    from probeval.reliability import gstudy as decompose
    from probeval.reliability.dstudy import QUERIES

    sizes, pool = QUERIES if queries is None else queries, None
    if isinstance(source, GStudy):
        study = source
    else:
        given = study_scores(source, metric, draws=draws, seed=seed, **options)
        study = decompose(given.scores, method=method, interval=interval, drop=drop, n=draws, rng=stream(seed))
        pool = given.pool
    return project(study, queries=sizes, assessors=assessors, targets=targets, pool=pool, level=level)


def study_scores(
    source: Any,
    metric: AnyMetric | None = None,
    *,
    qrels: Any = None,
    metadata: Any = None,
    labels: Any = None,
    observers: Any = None,
    model: str | Card | Predicts = "none",
    design: str = "s x q",
    components: str | None = None,
    scale: Scale | str | None = None,
    gain: Gain | None = None,
    depth: int | None = None,
    order: str = "trec_eval",
    draws: int = 1000,
    seed: int = 0,
    reporter: Reporter = SILENT,
) -> StudyScores:
    """Scores for a study of reliability: from a table, by the judgments alone, or as joint draws by a model.

    Parameters
    ----------
    source
        A table of scores (a path or a data frame), without a measure; or runs, as in :func:`probeval.as_collection`.
    metric, scale, gain, depth
        The measure, the grades and their gains, and how many ranks count.
    qrels, metadata, labels, observers, order
        As in :func:`probeval.as_collection`.
    model
        ``"none"``: unjudged documents count as not relevant. Else the relevance model for them.
    design, components
        The facets, such as ``s x q``; and a pattern that splits system names into components.
    draws, seed, reporter
        As in :func:`probeval.evaluate`.
    """
    from probeval.reliability import Design, Observed, observe, read_scores

    facets = Design.parse(design)
    if metric is None:
        if isinstance(source, pd.DataFrame):
            given = StudyScores(observe(source) if design == "s x q" else Observed.long(source, facets))
        elif is_score_table(source):
            given = StudyScores(read_scores(source[0] if isinstance(source, (list, tuple)) else source, facets))
        else:
            raise ReliabilityError("Runs need a measure, such as nDCG@10; a single table (.csv) is read as scores.")
    else:
        collection = as_collection(
            source, qrels=qrels, metadata=metadata, labels=labels, observers=observers, scale=as_scale(scale),
            order=order, reporter=reporter,
        )  # fmt: skip
        measure_ = as_metric(metric)
        if model == "none":
            given = _judged(collection, measure_, facets, as_scale(scale), gain, depth)
        else:
            given = _modelled(collection, measure_, facets, model, scale, gain, depth, draws, seed, reporter)
    return given if components is None else StudyScores(given.scores.split_systems(components), given.pool)


def is_score_table(source: Any) -> bool:
    """Whether a source is one file with a table of scores, by its name, rather than runs."""
    if isinstance(source, (list, tuple)):
        return len(source) == 1 and is_score_table(source[0])
    return isinstance(source, (str, PathLike)) and bool(suffix(Path(source)))


def _judged(
    collection: Collection,
    metric: Metric,
    design: Design,
    scale: Scale | None,
    gain: Gain | None,
    depth: int | None,
) -> StudyScores:
    """Scores by the judgments alone; each assessor's own where the design has assessors."""
    from probeval.reliability import observe, observe_assessors

    found = judged_scores(collection, metric, scale=scale, gain=gain, depth=depth)
    if found.judged_pairs < found.pool:
        warnings.warn(
            f"{metric}: {found.pool - found.judged_pairs:,} of {found.pool:,} pairs are not judged: they count as 0. "
            "A relevance model would estimate them.",
            ProbevalWarning,
            stacklevel=4,
        )
    pool = found.pool / len(found.queries)
    if "assessor" not in design.conditions:
        return StudyScores(observe(found), pool)
    runs = collection.runs if depth is None else collection.runs.top(depth)
    return StudyScores(observe_assessors(runs, required_judgments(collection), metric, design, scale=found.scale), pool)


def _modelled(
    collection: Collection,
    metric: Metric,
    design: Design,
    model: str | Card | Predicts,
    scale: Scale | str | None,
    gain: Gain | None,
    depth: int | None,
    draws: int,
    seed: int,
    reporter: Reporter,
) -> StudyScores:
    """Joint draws of the scores, with a model for unjudged documents."""
    from probeval.reliability import observe

    if "assessor" in design.conditions:
        raise ModelError("A model predicts relevance, not assessors: use the design 's x q', or no model.")
    choice = select_model(collection, model, scale=scale, gain=gain, reporter=reporter)
    (scores,) = score_collection(
        choice.model, collection, [metric], depth=depth, scale=choice.scale, seed=seed, method="draws",
        per_query=True, n=draws,
    )  # fmt: skip
    reporter.say(f"{metric}: {scores.judged:,} of {scores.pool:,} pairs judged, {draws:,} joint draws.")
    return StudyScores(observe(scores), scores.pool / len(scores.queries))
