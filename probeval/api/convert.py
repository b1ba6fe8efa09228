"""Judgments from the file of one tool to that of another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from probeval.api.evidence import as_scale
from probeval.api.settings import GradeScale, QueryTexts
from probeval.arrays import Floats
from probeval.data import Judgments, Scale, WriteOptions, as_judgments, read_judgments
from probeval.data.files import read_bytes
from probeval.data.formats import formats_of
from probeval.data.judgments import RULES
from probeval.data.payloads import parsed_json
from probeval.data.texts import as_text_mapping
from probeval.display import Record
from probeval.errors import DataError, MetricError, did_you_mean
from probeval.metrics import Metric
from probeval.records import About, task
from probeval.scores.evaluate import as_metric

__all__ = ["Conversion", "ConversionInputs", "check_written", "convert", "rank_eval_metric", "writers"]

PathName = str | PathLike[str]
EQUAL = 'nDCG@k, DCG(gain="exp",norm="none")@k, P@k, R@k, RR@k and ERR@k'


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Conversion(Record):
    """How judgments are read, and what another tool is told."""

    file_format: Annotated[
        str | None,
        About(
            "The format of the file: qrels, table, quepid, label-studio or rank-eval; by default detected.",
            metavar="FORMAT",
            option="--as",
        ),
    ] = None
    rule: Annotated[
        str | None, About(f"One grade per pair, as trec_eval needs it: {', '.join(RULES)}.", metavar="RULE")
    ] = None
    queries: QueryTexts = None
    docs: Annotated[Any, About("Document texts, for a book: a table of doc and text.", metavar="FILE", kind=Path)] = (
        None
    )
    scale: GradeScale = None
    name: Annotated[str, About("The name of the book.", metavar="NAME")] = "probeval"
    index: Annotated[str | None, About("rank-eval: the index of the documents.", metavar="NAME")] = None
    search: Annotated[
        Mapping[str, Any] | PathName | None,
        About(
            "rank-eval: a search as JSON with {{query_string}}, or a request whose ratings are replaced.",
            metavar="FILE",
            kind=Path,
        ),
    ] = None
    metric: Annotated[
        Metric | str | None,
        About("rank-eval: the measure; default: that of --search, or nDCG@10.", metavar="METRIC", kind=str),
    ] = None

    def read(self, judgments: Any) -> Judgments:
        """The judgments of a file, or of an object."""
        scale = as_scale(self.scale)
        if isinstance(judgments, (str, PathLike)):
            texts = as_text_mapping(self.queries, "query")
            judgments = read_judgments(judgments, scale=scale, file_format=self.file_format, queries=texts)
        return as_judgments(judgments, scale=scale)

    def text(self, judgments: Judgments, to: str) -> str:
        """The judgments as the text of a file in this format."""
        write = writers()[to]
        if self.rule is not None:
            judgments = _one_per_pair(judgments, self.rule)
        grades = judgments.scale(as_scale(self.scale))
        if grades.cuts:
            judgments = replace(judgments, grade=_cut(judgments.grade, grades))
            grades = Scale.graded(len(grades) - 1)
        options = WriteOptions(
            queries=as_text_mapping(self.queries, "query"),
            docs=as_text_mapping(self.docs, "doc"),
            scale=grades,
            name=self.name,
            index=self.index,
            search=_search(self.search),
            metric=None if self.metric is None else rank_eval_metric(self.metric, grades),
        )
        return write(judgments, options)


@dataclass(frozen=True, eq=False, repr=False)
class ConversionInputs(Conversion):
    """Judgments as the text of a file of another tool.

    The formats are ``qrels``, ``quepid`` (a book as JSON), ``rank-eval`` (a request), and those of your own with a
    writer. Without a rule, the grades of all assessors are written. A grade that the scale lacks is refused; one into
    which grades are cut (``fine:4``) gives the grades to write. Texts are a path, a data frame, or a mapping from ids
    to texts; those of queries are needed if either tool names queries by their text. A search is a mapping or a JSON
    file, with ``{{query_string}}`` in the place of the query's text.

    Examples
    --------
    >>> import probeval
    >>> judged = probeval.Judgments.rows(["q1", "q1"], ["007", "7"], [2, 0], assessors=["ann", "bob"])
    >>> print(probeval.convert(judged), end="")
    q1 ann 007 2
    q1 bob 7 0
    >>> print(probeval.convert(judged, rule="median"), end="")
    q1 0 007 2
    q1 0 7 0
    """

    judgments: Annotated[Any, About("A file in any format of judgments, or :class:`~probeval.Judgments`.")]
    to: Annotated[str, About("The format to write.")] = "qrels"

    def run(self) -> str:
        """The text."""
        check_written(self.to, writers())
        return self.text(self.read(self.judgments), self.to)


convert = task(ConversionInputs, "convert")


def writers() -> dict[str, Callable[[Judgments, WriteOptions], str]]:
    """The functions that write judgments, by format."""
    return {name: known.write for name, known in formats_of(Judgments).items() if known.write is not None}


def check_written(to: str, known: Collection[str]) -> None:
    """Raise an error unless a format is one of those that are written."""
    if to not in known:
        raise DataError(f"No format {to!r} to write: {', '.join(known)}.{did_you_mean(to, known)}")


def _cut(grade: Floats, scale: Scale) -> Floats:
    """Grades on the scale into which they are cut; those below 0 stay."""
    return np.where(grade < 0, grade, scale.codes(grade))


def _one_per_pair(judgments: Judgments, rule: str) -> Judgments:
    grades, pool = judgments.grades(rule), judgments.pool
    known = np.flatnonzero(~np.isnan(grades))
    queries, docs = pool.queries[pool.query[known]].tolist(), pool.docs[pool.doc[known]].tolist()
    return Judgments.rows(queries, docs, grades[known])


def _search(given: Mapping[str, Any] | PathName | None) -> Mapping[str, Any] | None:
    if given is None or isinstance(given, Mapping):
        return given
    path = Path(given)
    search = parsed_json(path, read_bytes(path))
    if not isinstance(search, dict):
        raise DataError(f"a search is a JSON object, got {type(search).__name__}.", path=path)
    return search


def rank_eval_metric(metric: Metric | str, scale: Scale) -> dict[str, Any]:
    """A measure as the metric of a ``rank_eval`` request, whose DCG has the gain 2^grade - 1.

    Examples
    --------
    >>> from probeval.data import Scale
    >>> rank_eval_metric("nDCG@5", Scale.graded(3))
    {'dcg': {'k': 5, 'normalize': True}}
    """
    given = as_metric(metric)
    k = given.cutoff
    if k is None:
        raise MetricError(f"rank_eval needs a cutoff: {given}@10.")
    parameters = dict(given.parameters)
    exponential = (
        parameters.get("gain") in (None, "exp")
        and parameters.get("discount") in (None, "log2")
        and parameters.get("base") in (None, 2)
    )
    if given.name in ("nDCG", "DCG") and exponential and parameters["norm"] in ("ideal", "none"):
        return {"dcg": {"k": k, "normalize": parameters["norm"] == "ideal"}}
    if given.name == "ERR" and exponential and parameters["norm"] is None:
        return {"expected_reciprocal_rank": {"maximum_relevance": parameters["max"] or int(scale.grades[-1]), "k": k}}
    names = {"P": "precision", "R": "recall", "RR": "mean_reciprocal_rank"}
    if given.name not in names:
        raise MetricError(f"rank_eval has no {given}: {EQUAL} are the same there.")
    return {names[given.name]: {"k": k, "relevant_rating_threshold": parameters["rel"]}}
