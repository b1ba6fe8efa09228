"""Judgments from the file of one tool to that of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from probeval.api.evidence import as_scale
from probeval.arrays import Floats
from probeval.data import Judgments, Scale, WriteOptions, as_judgments, read_judgments
from probeval.data.files import read_bytes
from probeval.data.formats import formats_of
from probeval.data.payloads import parsed_json
from probeval.data.texts import as_text_mapping
from probeval.errors import DataError, MetricError, did_you_mean
from probeval.metrics import Metric
from probeval.scores.evaluate import as_metric

__all__ = ["convert", "rank_eval_metric"]

PathName = str | PathLike[str]
EQUAL = 'nDCG@k, DCG(gain="exp",norm="none")@k, P@k, R@k, RR@k and ERR@k'


def convert(
    judgments: Any,
    to: str = "qrels",
    *,
    file_format: str | None = None,
    rule: str | None = None,
    scale: Scale | str | None = None,
    queries: Any = None,
    docs: Any = None,
    name: str = "probeval",
    index: str | None = None,
    search: Mapping[str, Any] | PathName | None = None,
    metric: Metric | str | None = None,
) -> str:
    """Judgments as the text of a file of another tool.

    Parameters
    ----------
    judgments
        A file in any format of judgments, or :class:`~probeval.Judgments`.
    to
        The format: ``qrels``, ``quepid`` (a book as JSON), ``rank-eval`` (a request), or one of your own with a writer.
    file_format
        The format of the file; by default detected.
    rule
        One grade per pair, by a rule of :data:`probeval.data.judgments.RULES`, as trec_eval needs it; by default the
        grades of all assessors.
    scale
        The scale of the grades; a grade that it lacks is refused. One into which they are cut (``fine:4``) gives the
        grades to write.
    queries, docs
        Texts: a path, a data frame, or a mapping from ids to texts. Queries are needed if either tool names queries by
        their text.
    name
        The name of the book.
    index, search, metric
        Of a ``rank_eval`` request: the index of the documents; the search, as a mapping or a JSON file, with
        ``{{query_string}}`` in the place of the query's text, or a whole request whose ratings are replaced; and the
        measure (``nDCG@10``).

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
    known = {name: f for name, f in formats_of(Judgments).items() if f.write is not None}
    if to not in known:
        raise DataError(f"No format {to!r} to write: {', '.join(known)}.{did_you_mean(to, known)}")
    write, grades, texts = known[to].write, as_scale(scale), as_text_mapping(queries, "query")
    assert write is not None
    if isinstance(judgments, (str, PathLike)):
        judgments = read_judgments(judgments, scale=grades, file_format=file_format, queries=texts)
    judgments = as_judgments(judgments, scale=grades)
    if rule is not None:
        judgments = _one_per_pair(judgments, rule)
    grades = judgments.scale(grades)
    if grades.cuts:
        judgments = replace(judgments, grade=_cut(judgments.grade, grades))
        grades = Scale.graded(len(grades) - 1)
    options = WriteOptions(
        queries=texts,
        docs=as_text_mapping(docs, "doc"),
        scale=grades,
        name=name,
        index=index,
        search=_search(search),
        metric=None if metric is None else rank_eval_metric(metric, grades),
    )
    return write(judgments, options)


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
