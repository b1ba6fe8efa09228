"""Votes without runs: many labels per pair become one distribution of its grade."""

from __future__ import annotations

from typing import Any

from probeval.api.evidence import as_scale
from probeval.data import Scale
from probeval.data.votes import as_votes
from probeval.relevance.aggregation import Aggregation, aggregate_votes
from probeval.reporting import SILENT, Reporter

__all__ = ["aggregate"]


def aggregate(
    votes: Any,
    gold: Any = None,
    *,
    scale: Scale | str | None = None,
    reference: str | None = None,
    method: str = "model",
    level: float = 0.9,
    reporter: Reporter = SILENT,
) -> Aggregation:
    """Aggregate several assessors' or crowd workers' votes on each pair.

    The model has one latent relevance per pair. Workers differ in how easily they give high grades and in how much
    their votes follow relevance; some are careless. Gold grades of some pairs calibrate the result to the expert.

    Parameters
    ----------
    votes
        A path of a table (TSV, CSV, JSONL, parquet; gzipped or not) with columns for query, document, worker and
        label; a data frame with these; or judgments by several assessors. Labels below 0 are no grades.
    gold
        The expert's grades of some pairs: a path, or anything that :func:`~probeval.data.as_judgments` takes. By
        default, the column ``gold`` of the votes, if there is one.
    scale
        The scale of the grades; inferred by default.
    reference
        Whose grade is wanted: ``"gold"`` (the default if there are gold grades), ``"consensus"``, or the name of an
        assessor among the voters.
    method
        One of :data:`probeval.relevance.aggregation.METHODS`: ``"model"``, ``"majority"``, ``"median"`` or
        ``"dawid-skene"``.
    level
        The level of the intervals of workers.
    reporter
        Receives progress and remarks.

    Examples
    --------
    >>> import pandas as pd, probeval
    >>> table = pd.DataFrame({"query": ["q"] * 6, "doc": list("ddddee"), "worker": list("abcdab"),
    ...                       "label": [1, 1, 1, 0, 0, 0]})
    >>> found = probeval.aggregate(table)
    >>> found.to_frame()["grade"].tolist(), found.reference
    ([1, 0], 'consensus')
    """
    found = aggregate_votes(
        as_votes(votes, gold), scale=as_scale(scale), reference=reference, method=method, level=level
    )
    for note in found.notes:
        reporter.say(note)
    return found
