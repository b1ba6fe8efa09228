"""Votes without runs: many labels per pair become one distribution of its grade."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

from probeval.api.evidence import as_scale
from probeval.api.settings import GradeScale, Level, Work
from probeval.data.votes import as_votes
from probeval.records import About, task
from probeval.relevance.aggregation import Aggregation, aggregate_votes

__all__ = ["AggregationInputs", "aggregate"]


@dataclass(frozen=True, eq=False, repr=False)
class AggregationInputs(Work):
    """Aggregate several assessors' or crowd workers' votes on each pair.

    The model has one latent relevance per pair. Workers differ in how easily they give high grades and in how much
    their votes follow relevance; some are careless. Gold grades of some pairs calibrate the result to the expert.

    Votes are a path of a table (TSV, CSV, JSONL, parquet; gzipped or not) with columns for query, document, worker and
    label; a data frame with these; or judgments by several assessors. Labels below 0 are no grades. Gold grades are a
    path, or anything that :func:`~probeval.data.as_judgments` takes. The methods are those of
    :data:`probeval.relevance.aggregation.METHODS`.

    Examples
    --------
    >>> import pandas as pd, probeval
    >>> table = pd.DataFrame({"query": ["q"] * 6, "doc": list("ddddee"), "worker": list("abcdab"),
    ...                       "label": [1, 1, 1, 0, 0, 0]})
    >>> found = probeval.aggregate(table)
    >>> found.to_frame()["grade"].tolist(), found.reference
    ([1, 0], 'consensus')
    """

    votes: Annotated[
        Any,
        About(
            "A table of query, document, worker and label: TSV, CSV, JSONL, parquet; or of answers about pairs.",
            metavar="VOTES",
            argument=True,
            kind=Path,
        ),
    ]
    gold: Annotated[
        Any, About("An expert's grades of some pairs; default: the column gold.", metavar="FILE", kind=Path)
    ] = None
    _: KW_ONLY
    reference: Annotated[
        str | None,
        About("Whose grade is wanted: gold, consensus or an assessor; default: gold if there is any.", metavar="NAME"),
    ] = None
    method: Annotated[str, About("The method: model, majority, median or dawid-skene.")] = "model"
    scale: GradeScale = None
    level: Level = 0.9

    def run(self) -> Aggregation:
        """The grades."""
        found = aggregate_votes(
            as_votes(self.votes, self.gold),
            scale=as_scale(self.scale),
            reference=self.reference,
            method=self.method,
            level=self.level,
        )
        for note in found.notes:
            self.reporter.say(note)
        return found


aggregate = task(AggregationInputs, "aggregate")
