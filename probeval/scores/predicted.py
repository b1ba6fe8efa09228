"""Predict and evaluate a collection: one prediction for all measures of the same depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from probeval.data.collection import Collection
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.metrics import Metric
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.models.base import Predicts
from probeval.scores.evaluate import evaluate
from probeval.scores.scores import Scores
from probeval.streams import Purpose, stream

__all__ = ["score_collection"]


def score_collection(
    model: Predicts,
    collection: Collection,
    metrics: Sequence[Metric],
    *,
    depth: int | None = None,
    scale: Scale | None = None,
    seed: int = 0,
    keys: Sequence[int | str] = (),
    **options: Any,
) -> list[Scores]:
    """Return the scores of a collection's systems by several measures.

    Parameters
    ----------
    model, collection
        The model of relevance, and the collection.
    metrics
        The measures. Those of one depth share one prediction.
    depth, scale
        The pool depth (by default each measure's cutoff, else the whole runs), and the scale of the grades.
    seed, keys
        The random seed, and keys that distinguish this collection from others with the same seed.
    options
        Options of :func:`probeval.scores.evaluate`: ``method``, ``target``, ``family``, ``n``, ``per_query``.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.metrics import parse
    >>> from probeval.relevance import FallbackModel, Uniform
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> score_collection(FallbackModel([Uniform()]), campaign, [parse("DCG@5"), parse("nDCG@5")])
    [<Scores: DCG@5 of 4 systems on 3 queries, moments>, <Scores: nDCG@5 of 4 systems on 3 queries, draws>]
    """
    predicted: dict[int, tuple[Runs, RelevanceDistribution]] = {}
    out = []
    for metric in metrics:
        at = (metric.cutoff or collection.runs.depth) if depth is None else depth
        if at not in predicted:
            problem = collection.problem(depth=at, scale=scale)
            predicted[at] = problem.lists, model.predict(problem, rng=stream(seed, *keys, Purpose.PREDICTION))
        rng = stream(seed, *keys, Purpose.SCORES)
        out.append(evaluate(*predicted[at], metric, rng=rng, **options))
    return out
