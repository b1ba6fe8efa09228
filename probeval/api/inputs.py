"""Inputs of every task: paths, frames, dicts or objects of other packages become one collection, and a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from probeval.arrays import Ints
from probeval.data import (
    Collection,
    Judgments,
    Magnitudes,
    PairAnswers,
    Runs,
    Scale,
    as_answers,
    as_judgments,
    as_magnitudes,
    as_runs,
    read_answers,
    read_graded_labels,
    read_judgments,
    read_labels,
    read_magnitudes,
    read_metadata,
    read_runs,
    read_teams,
)
from probeval.data.collection import teams_from_table
from probeval.data.evidence import LabelTable, Metadata, Vectors, labels_from_table, metadata_from_table
from probeval.data.files import find, run_files
from probeval.data.observers import as_observers
from probeval.data.pool import Pool
from probeval.data.scale import Gain
from probeval.data.texts import document_vectors
from probeval.errors import DataError, ModelError, ProbevalWarning
from probeval.metrics import AnyMetric
from probeval.relevance import Card, Choice, choose_model
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.hierarchical import Hierarchical, Inference
from probeval.scores.evaluate import as_metric
from probeval.scores.ideal import Ideal

__all__ = [
    "Note",
    "Progress",
    "are_paths",
    "as_collection",
    "as_scale",
    "collect_notes",
    "note_ideal",
    "note_outside",
    "note_texts",
    "read_labelled",
    "select_model",
    "silent",
    "teams_beside",
    "unanswered",
    "unjudged",
    "with_observers",
    "with_teams",
]

Note = Callable[[str], None]
Progress = Callable[[Sequence[Any]], Iterable[Any]]
GradedLabels = tuple[LabelTable, Judgments]


def silent(_: str) -> None:
    """Drop a note."""


def collect_notes(say: Note) -> tuple[list[str], Note]:
    """A list, and a function that adds a note to it and passes the note on."""
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        say(text)

    return notes, note


def as_collection(
    runs: Any,
    *,
    qrels: Any = None,
    metadata: Any = None,
    labels: Any = None,
    observers: Any = None,
    preferences: Any = None,
    magnitudes: Any = None,
    docs: Any = None,
    pool: Any = None,
    teams: Any = None,
    scale: Scale | None = None,
    order: str = "trec_eval",
    progress: Progress = iter,
) -> Collection:
    """One collection of runs with their judgments, metadata, labels and texts.

    Parameters
    ----------
    runs
        A :class:`~probeval.data.Collection`; a path, glob or folder of TREC runs, or several of them; or anything that
        :func:`~probeval.data.as_runs` takes: a data frame, ``{system: {query: {doc: score}}}``, ranx runs, runs of
        ir_measures by system.
    qrels
        Judgments: a path, or anything that :func:`~probeval.data.as_judgments` takes.
    metadata
        Groups of documents: a path or a data frame.
    labels
        Labels by machines or people: a path or a data frame, or several of them, with distinct columns.
    observers
        Who gave the labels: a path or a data frame with the columns name, kind, family and scale, or a mapping from
        names to mappings of these. What it lacks is inferred: see :func:`probeval.data.describe_observer`.
    preferences, magnitudes
        Answers of assessors about two documents side by side, and numbers for single documents: each a path, a data
        frame, or :class:`~probeval.data.PairAnswers` and :class:`~probeval.data.Magnitudes`.
    docs
        Texts of documents, for the effect of similar documents in the hierarchical model: a path, a data frame with the
        columns doc and text, or a mapping from ids to texts; or :class:`~probeval.data.Vectors` of documents.
    pool
        More runs, in any form that ``runs`` takes: they widen the pool and inform the model, but are not evaluated. A
        run with the name of an evaluated one counts once. A table of query and doc alone is one more run, in its order.
    teams
        The team of each system: a path or a data frame with the columns system (or run) and team, or a mapping; by
        default that of ``systems.tsv`` beside a folder of runs. A system that is not in it is a team of its own.
    scale
        The scale that grades must be on.
    order
        The order of a run, one of :data:`probeval.data.runs.ORDERS`.
    progress
        Wraps the run files while they are read.

    Examples
    --------
    >>> as_collection({"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}}, qrels={"q1": {"d1": 1}})
    <Collection: runs, 1 system, 1 query, depth 2, 2 pairs, 1 judgment>
    """
    collection = _runs(runs, order, progress)
    if pool is not None:
        collection = _widened(collection, _runs(pool, order, progress).runs)
    if teams is not None:
        collection = replace(collection, runs=with_teams(collection.runs, teams))
    given: dict[str, Any] = {
        "judgments": _judgments(qrels, scale),
        "metadata": _table(metadata, Metadata, read_metadata, metadata_from_table),
        "labels": _labels(labels),
        "answers": _table(preferences, PairAnswers, read_answers, as_answers),
        "magnitudes": _table(magnitudes, Magnitudes, read_magnitudes, as_magnitudes),
        "vectors": _vectors(docs, collection),
    }
    collection = replace(collection, **{name: value for name, value in given.items() if value is not None})
    _check_match(collection, qrels, labels)
    return with_observers([collection], observers)[0][0]


def _check_match(collection: Collection, qrels: Any, labels: Any) -> None:
    """Raise an error if no judgment, or no label, is of a pair that the runs retrieved."""
    for what, table, given in (("judgments", collection.judgments, qrels), ("labels", collection.labels, labels)):
        places = _places(table, collection)
        if table is None or not len(places) or (places >= 0).any():
            continue
        runs, other = collection.runs.pool, table.pool
        shared = sorted(set(runs.queries) & set(other.queries))
        if not shared:
            asked, known = _three(runs.queries), _three(other.queries)
            differ = f"no query in common: the runs answer {asked}, the {what} are for {known}"
        else:
            mine, theirs = (_three(_pairs_of(pool, shared)) for pool in (runs, other))
            differ = (
                "no document in common, for the queries that are in both: the runs retrieved (query and document) "
                f"{mine}, the {what} are of {theirs}"
            )
        files = [file for file in (given if isinstance(given, (list, tuple)) else [given]) if are_paths(file)]
        raise DataError(
            f"{differ}. The ids must be the same in both.", path=Path(files[0]) if len(files) == 1 else None
        )


def _places(table: Judgments | LabelTable | None, collection: Collection) -> Ints:
    """The position in the pool of the runs of each judged or labelled pair, -1 outside."""
    if table is None:
        return np.empty(0, dtype=np.int64)
    places = table.pool.within(collection.runs.pool)
    given = np.unique(table.pair) if isinstance(table, Judgments) else ~np.isnan(table.values).all(axis=1)
    return np.asarray(places[given])


def _pairs_of(pool: Pool, queries: Sequence[str]) -> Iterable[str]:
    """The pairs of some queries, as query and document."""
    return (" ".join(pool.label(int(pair))) for pair in np.flatnonzero(np.isin(pool.queries[pool.query], queries)))


def _three(ids: Iterable[str]) -> str:
    """Up to three ids."""
    shown = [repr(str(name)) for name in islice(ids, 4)]
    return ", ".join(shown[:3]) + (" and others" if len(shown) > 3 else "")


def note_outside(collection: Collection, say: Note) -> None:
    """Report the judged and labelled pairs that no run retrieved: they are not evaluated."""
    for what, table in (("judged", collection.judgments), ("labelled", collection.labels)):
        places = _places(table, collection)
        outside = int((places < 0).sum())
        if outside:
            say(f"{outside:,} of {len(places):,} {what} pairs are not counted: no run retrieved them.")


def with_observers(
    collections: Sequence[Collection], observers: Any, labelled: Sequence[GradedLabels] = ()
) -> tuple[list[Collection], list[GradedLabels]]:
    """Collections and graded labels with descriptions of those who gave the labels.

    Parameters
    ----------
    collections, labelled
        Collections, and labels beside grades.
    observers
        As in :func:`as_collection`; None leaves everything as it is. One without any label gives a warning.
    """
    if observers is None:
        return list(collections), list(labelled)
    given = as_observers(observers)
    tables = [c.labels for c in collections if c.labels is not None] + [table for table, _ in labelled]
    if not tables:
        raise DataError("observers describe labels, and there are none. Give labels too.")
    unheard = [name for name in given if not any(name in table.sources for table in tables)]
    if unheard:
        warnings.warn(f"Observers without labels: {', '.join(unheard)}.", ProbevalWarning, 2)
    return (
        [c if c.labels is None else replace(c, labels=c.labels.described(given)) for c in collections],
        [(table.described(given), judgments) for table, judgments in labelled],
    )


def read_labelled(paths: Any) -> list[GradedLabels]:
    """Labels beside grades from a file or several."""
    if paths is None:
        return []
    return [read_graded_labels(path) for path in ([paths] if isinstance(paths, (str, PathLike)) else paths)]


def are_paths(runs: Any) -> bool:
    """Whether runs are given as a path or several."""
    if isinstance(runs, (str, PathLike)):
        return True
    return isinstance(runs, Sequence) and bool(runs) and all(isinstance(run, (str, PathLike)) for run in runs)


def _runs(runs: Any, order: str, progress: Progress) -> Collection:
    if isinstance(runs, Collection):
        return runs
    if are_paths(runs):
        return _from_paths([runs] if isinstance(runs, (str, PathLike)) else list(runs), order, progress)
    return Collection("runs", as_runs(runs, order=order))


def _widened(collection: Collection, pool: Runs) -> Collection:
    """The collection with more runs in its pool; these must answer one of its queries."""
    if not set(collection.runs.queries) & set(pool.queries):
        raise DataError(
            f"no query in common: the runs answer {collection.runs.queries[0]!r} and others, the pool "
            f"{pool.queries[0]!r} and others."
        )
    return collection.pooled(pool)


def _from_paths(paths: Sequence[str | PathLike[str]], order: str, progress: Progress) -> Collection:
    """Runs from files; a ``systems.tsv`` beside a single folder of runs names the teams."""
    try:
        lists = read_runs(*paths, order=order, progress=progress)
    except DataError as error:
        first = run_files(paths)[0]
        if first in map(Path, paths) or error.path not in (None, first):  # one was read before it, or named
            raise
        raise DataError(f"{error} Is {first.parent} a folder of runs?") from None
    teams = teams_beside(paths)
    return Collection(
        name=Path(paths[0]).resolve().name if len(paths) == 1 else "runs",
        runs=lists if teams is None else lists.with_teams(read_teams(teams)),
    )


def teams_beside(paths: Sequence[str | PathLike[str]]) -> Path | None:
    """The ``systems.tsv`` in or beside a single folder of runs."""
    folder = Path(paths[0]) if len(paths) == 1 else None
    if folder is None or not folder.is_dir():
        return None
    return find(folder, "systems.tsv") or find(folder.resolve().parent, "systems.tsv")


def with_teams(runs: Runs, given: Any) -> Runs:
    """The runs with their teams; some of the systems must have one."""
    path = Path(given) if isinstance(given, (str, PathLike)) else None
    if path is not None:
        teams = read_teams(path)
    else:
        teams = teams_from_table(given) if isinstance(given, pd.DataFrame) else dict(given)
    if not set(runs.systems) & set(teams):
        raise DataError(
            f"no team of these systems: the runs are {_three(runs.systems)}, the teams are of {_three(teams)}. Name "
            "systems as the runs do.",
            path=path,
        )
    return runs.with_teams(teams)


def _judgments(qrels: Any, scale: Scale | None) -> Judgments | None:
    if qrels is None:
        return None
    return read_judgments(qrels, scale=scale) if isinstance(qrels, (str, PathLike)) else as_judgments(qrels)


def _table(given: Any, kind: type, read: Callable[[Any], Any], from_table: Callable[[pd.DataFrame], Any]) -> Any:
    """A table of evidence from a path, from a data frame, or as it is."""
    if given is None or isinstance(given, kind):
        return given
    return from_table(given) if isinstance(given, pd.DataFrame) else read(given)


def _labels(given: Any) -> LabelTable | None:
    """One table of labels, from one source or several."""
    sources = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
    tables = [_table(one, LabelTable, read_labels, labels_from_table) for one in sources]
    return tables[0].joined(tables[1:]) if len(tables) > 1 else tables[0] if tables else None


def _vectors(docs: Any, collection: Collection) -> Vectors | None:
    """Vectors of the documents that systems retrieved, as they are or from texts."""
    if docs is None or isinstance(docs, Vectors):
        return docs
    mapped = isinstance(docs, Mapping) and all(isinstance(text, str) for text in docs.values())
    if not (mapped or isinstance(docs, (str, PathLike, pd.DataFrame))):
        raise DataError(
            f"docs are a path, a data frame, a mapping from ids to texts, or Vectors; got {type(docs).__name__}."
        )
    return document_vectors(docs, collection.runs.pool.docs)


def note_texts(collection: Collection, docs: Any, *, depth: int, say: Note, model: Predicts | None = None) -> None:
    """Report how many documents of the pool have a text or a vector, and which model uses them."""
    if docs is None or collection.vectors is None:
        return
    known = set(collection.vectors.docs)
    pool = collection.runs.top(depth).pool
    what = "Texts" if issparse(collection.vectors.values) else "Vectors"
    use = "" if isinstance(model, Hierarchical) else " Only the hierarchical model uses them."
    say(f"{what} of {sum(doc in known for doc in pool.docs):,} of {len(pool.docs):,} documents.{use}")


def note_ideal(collection: Collection, metric: AnyMetric, scale: Scale, *, depth: int | None, say: Note) -> None:
    """Report which pairs the ideal list is taken from, for a measure that has one."""
    measure = as_metric(metric)
    runs = collection.runs.top(depth or measure.cutoff or collection.runs.depth)
    ideal = Ideal.of_pool(runs, measure, scale)
    if ideal is not None:
        say(f"{measure} is relative to an ideal list; {ideal}.")


def as_scale(scale: Scale | str | None) -> Scale | None:
    """The scale that a text names, such as ``graded:3``."""
    return Scale.parse(scale) if isinstance(scale, str) else scale


def select_model(
    collection: Collection,
    model: str | Card | Predicts | None = None,
    *,
    scale: Scale | str | None = None,
    gain: Gain | None = None,
    inference: Inference = "laplace",
    say: Note = silent,
) -> Choice:
    """The relevance model for a collection, with the scale and gain of its grades.

    Parameters
    ----------
    collection
        Runs, judgments and evidence.
    model
        A name (``uniform``, ``empirical``, ``independent``, ``hierarchical``, ``labels``, ``calibrated``, a card), a
        card, a fitted model, or None for the best available card.
    scale, gain
        The scale of the grades, inferred by default, and their gains: ``"linear"``, ``"exp"``, or one per grade, as
        in ``[0, 0.25, 0.5, 1]``.
    inference
        The inference of a hierarchical model: ``"laplace"`` or ``"nuts"``.
    say
        Receives the name of the model, the reason for it, and a warning where it was fitted on these judgments.
    """
    if model == "none":
        raise ModelError("This task needs a relevance model: uniform, empirical, independent, hierarchical or a card.")
    choice = choose_model(model, collection, scale=as_scale(scale), inference=inference)
    say(str(choice))
    warning = choice.warning(collection)
    if warning is not None:
        say(warning)
    return choice.with_gain(gain)


def unjudged(collection: Collection) -> set[str]:
    """The queries of the runs without a judgment."""
    judged = () if collection.judgments is None else collection.judgments.pool.queries
    return set(collection.runs.queries) - set(judged)


def unanswered(collection: Collection) -> set[str]:
    """The judged queries that no run answers."""
    judged = () if collection.judgments is None else collection.judgments.pool.queries
    return set(judged) - set(collection.runs.queries)
