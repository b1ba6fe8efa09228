"""The evidence of every task: paths, frames, dicts or objects of other packages become one collection, and a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Self

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
    as_labels,
    as_magnitudes,
    as_runs,
    read_answers,
    read_graded_labels,
    read_magnitudes,
    read_metadata,
    read_runs,
    read_teams,
    with_reference,
)
from probeval.data.collection import are_paths, teams_from_table
from probeval.data.evidence import LabelTable, Metadata, Vectors, metadata_from_table
from probeval.data.files import find, run_files
from probeval.data.observers import as_observers
from probeval.data.pool import Pool
from probeval.data.runs import ORDERS
from probeval.data.scale import Gain
from probeval.data.suspicions import suspicious_ids, suspicious_judgments, suspicious_labels
from probeval.data.tables import as_frame
from probeval.data.texts import document_vectors
from probeval.display import Record
from probeval.errors import DataError, ModelError, ProbevalWarning
from probeval.metrics import AnyMetric
from probeval.records import About, is_given, task
from probeval.relevance import Card, Choice, choose_model
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.hierarchical import Hierarchical, Inference
from probeval.reporting import SILENT, Reporter, TimeEstimate
from probeval.scores.evaluate import as_metric
from probeval.scores.ideal import Ideal

__all__ = [
    "IN_PARTITIONS",
    "REFUSED",
    "Beside",
    "Docs",
    "Evidence",
    "Groups",
    "JudgedRuns",
    "Labels",
    "Numbers",
    "Observers",
    "Order",
    "PoolRuns",
    "Preferences",
    "Qrels",
    "Reference",
    "Remarks",
    "RunPaths",
    "ScoresOrRuns",
    "Teams",
    "as_collection",
    "as_scale",
    "note_ideal",
    "note_outside",
    "note_texts",
    "read_labelled",
    "select_model",
    "teams_beside",
    "unanswered",
    "unjudged",
    "with_observers",
    "with_teams",
]

GradedLabels = tuple[LabelTable, Judgments]

IN_PARTITIONS = (
    "does not go with a campaign in partitions, which holds its runs and labels itself. Leave it out, or evaluate the "
    "runs without partitions."
)
OF_TESTS = "is for a comparison by a model, and tests have none. Leave out one."
OF_JUDGMENTS = "is for a model; with the model none only judged pairs count. Name a model."
OF_SIMULATION = "is not for a simulation, "
# What a task cannot use of the evidence, with the reason. All else is used by every task.
REFUSED: Mapping[str, Mapping[str, str]] = {
    "partitions": dict.fromkeys(
        ("labels", "observers", "preferences", "magnitudes", "metadata", "docs", "pool", "teams", "reference", "order"),
        IN_PARTITIONS,
    ),
    "tests": {"pool": OF_TESTS},
    "judgments": dict.fromkeys(
        ("labels", "observers", "preferences", "magnitudes", "metadata", "docs", "pool", "teams"), OF_JUDGMENTS
    ),
    "simulation": {
        "preferences": OF_SIMULATION + "whose assessors give grades alone. Leave it out.",
        "magnitudes": OF_SIMULATION + "whose assessors give grades alone. Leave it out.",
        "pool": OF_SIMULATION + "which judges the pool of its own runs. Name these runs among the others.",
    },
    "stored": dict.fromkeys(
        ("qrels", "labels", "observers", "preferences", "magnitudes", "metadata", "docs", "pool", "teams", "reference"),
        "is for runs with --metric; a campaign, an evaluation and a simulation have their own. Leave it out.",
    ),
    "reuse": {
        "pool": "is not for later systems, whose pool is that of the campaign. Name these runs among its runs.",
    },
    "campaign": {
        "preferences": "is not for a new campaign: import answers with probeval campaign import.",
        "magnitudes": "is not for a new campaign: import answers with probeval campaign import.",
        "pool": "is not for a campaign, which ranks all of its runs. Name these runs among the others.",
        "reference": "is not for a campaign, which counts grades by its own rule (--rule). Leave it out.",
    },
}


Qrels = Annotated[
    Any, About("Judgments: TREC qrels or prels, a table, the export of a tool, or irds:ID.", metavar="FILE", kind=Path)
]
Labels = Annotated[
    Any, About("A table of labels: query, doc, one column per observer.", metavar="FILE", kind=Path, many=True)
]
Observers = Annotated[
    Any, About("A table of those who gave the labels: name, kind, family, scale.", metavar="FILE", kind=Path)
]
Preferences = Annotated[
    Any,
    About("Answers about two documents: query, left, right, choice, relevant, assessor.", metavar="FILE", kind=Path),
]
Numbers = Annotated[
    Any, About("Numbers for documents: query, doc, number, kind, unit, assessor.", metavar="FILE", kind=Path)
]
Groups = Annotated[Any, About("A table of documents and their groups.", metavar="FILE", kind=Path)]
Docs = Annotated[
    Any,
    About(
        "Document texts, a table of doc and text (or vector), or irds:ID: similar documents are judged alike.",
        metavar="FILE",
        kind=Path,
    ),
]
PoolRuns = Annotated[
    Any,
    About(
        "More runs, or a table of query and doc, that widen the pool but are not evaluated.",
        metavar="PATH",
        kind=str,
        many=True,
    ),
]
Teams = Annotated[
    Any,
    About(
        "A table of system (or run) and team; default: systems.tsv beside the folder of runs.",
        metavar="FILE",
        kind=Path,
    ),
]
Reference = Annotated[
    str | None,
    About("The assessor whose grades count, or consensus; the grades of others are then labels.", metavar="NAME"),
]
Order = Annotated[str, About("The order of documents in a run.", choices=tuple(ORDERS))]
RunPaths = Annotated[
    Any,
    About(
        "TREC run files (plain or gz), globs, or a directory.", metavar="RUNS...", argument=True, kind=str, many=True
    ),
]
ScoresOrRuns = Annotated[
    Any,
    About(
        "One table of scores (csv, tsv, jsonl, parquet), or runs.",
        metavar="SCORES|RUNS...",
        argument=True,
        kind=str,
        many=True,
    ),
]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Beside(Record):
    """The evidence beside the runs."""

    qrels: Qrels = None
    labels: Labels = None
    observers: Observers = None
    preferences: Preferences = None
    magnitudes: Numbers = None
    metadata: Groups = None
    docs: Docs = None
    pool: PoolRuns = None
    teams: Teams = None
    reference: Reference = None
    order: Order = "trec_eval"

    def refuse(self, task: str) -> None:
        """Raise an error if a piece of evidence is given that the task cannot use."""
        for name, reason in REFUSED[task].items():
            if is_given(self, name):
                raise DataError(f"--{name} {reason}")

    def collection(self, runs: Any, *, scale: Scale | None = None, reporter: Reporter = SILENT) -> Collection:
        """Return the runs with this evidence; the scale is that which grades must be on."""
        collection = _runs(runs, self.order, reporter)
        if self.pool is not None:
            collection = _widened(collection, _runs(self.pool, self.order, reporter).runs)
        if self.teams is not None:
            collection = replace(collection, runs=with_teams(collection.runs, self.teams))
        no_labels = isinstance(self.labels, (list, tuple)) and not self.labels
        given: dict[str, Any] = {
            "judgments": None if self.qrels is None else as_judgments(self.qrels, scale=scale),
            "metadata": _table(self.metadata, Metadata, read_metadata, metadata_from_table),
            "labels": None if self.labels is None or no_labels else as_labels(self.labels),
            "answers": _table(self.preferences, PairAnswers, read_answers, as_answers),
            "magnitudes": _table(self.magnitudes, Magnitudes, read_magnitudes, as_magnitudes),
            "vectors": _vectors(self.docs, collection),
        }
        collection = replace(collection, **{name: value for name, value in given.items() if value is not None})
        _check_match(collection, self.qrels, self.labels)
        for line in _suspicious(collection, self):
            reporter.say(line)
        return with_observers([collection], self.observers)[0][0]


@dataclass(frozen=True, eq=False, repr=False)
class Evidence(Beside):
    """Runs, and all that is known of the relevance of their documents.

    Every task takes it in place of runs, or its fields as keywords. Each is a path, several paths, a data frame, a
    dict, or an object of another package; they are read when a task needs them.

    Examples
    --------
    >>> import probeval
    >>> evidence = probeval.Evidence({"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}}, qrels={"q1": {"d1": 1}})
    >>> probeval.evaluate(evidence, "P@2", scale="binary")
    <Evaluation: P@2 of 1 systems on 1 queries, 1 of 2 pairs judged, confidence 1.000>
    """

    runs: RunPaths

    def read_as(self, collection: Collection) -> Self:
        """The same with its evidence already read, but for the reference."""
        names = {field.name for field in fields(Beside)} - {"order", "reference"}
        given: dict[str, Any] = dict.fromkeys(names)
        return replace(self, runs=collection, **given)

    def __post_init__(self) -> None:
        inner = self.runs
        if isinstance(inner, Evidence):  # given in place of runs; keywords beside it come first
            for name in (field.name for field in fields(Evidence)):
                if name == "runs" or not is_given(self, name):
                    object.__setattr__(self, name, getattr(inner, name))


@dataclass(frozen=True, eq=False, repr=False)
class JudgedRuns(Record):
    """Runs and judgments alone, for what needs no model."""

    runs: RunPaths
    _: KW_ONLY
    qrels: Qrels = None
    order: Order = "trec_eval"

    def collection(self, *, scale: Scale | None = None, reporter: Reporter = SILENT) -> Collection:
        """Return the runs with their judgments; the scale is that which grades must be on."""
        return Evidence(self.runs, qrels=self.qrels, order=self.order).collection(
            self.runs, scale=scale, reporter=reporter
        )


@dataclass(frozen=True, eq=False, repr=False)
class CollectionInputs(Evidence):
    """Return one collection of runs with their judgments, metadata, labels and texts.

    Examples
    --------
    >>> as_collection({"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}}, qrels={"q1": {"d1": 1}})
    <Collection: runs, 1 system, 1 query, depth 2, 2 pairs, 1 judgment>
    """

    _: KW_ONLY
    scale: Annotated[Scale | str | None, About("The scale that grades must be on.")] = None
    reporter: Annotated[Reporter, About("Receives progress and remarks.", option="")] = SILENT

    def run(self) -> Collection:
        """The collection."""
        collection = self.collection(self.runs, scale=as_scale(self.scale), reporter=self.reporter)
        return with_reference(collection, self.reference)


class Remarks(Reporter):
    """Keeps the remarks that another reporter receives, for the notes of a result."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.notes: list[str] = []

    def track(self, work: Sequence[Any], title: str) -> Iterable[Any]:
        """Return the items of some work, as the other reporter does."""
        return self.reporter.track(work, title)

    def beside(self, text: str) -> None:
        """Pass on what stands beside the progress."""
        self.reporter.beside(text)

    def say(self, text: str) -> None:
        """Keep a remark, and pass it on."""
        self.notes.append(text)
        self.reporter.say(text)

    def expect(self, estimate: TimeEstimate) -> None:
        """Pass an estimate on."""
        self.reporter.expect(estimate)


def _check_match(collection: Collection, qrels: Any, labels: Any) -> None:
    """Raise an error if no judgment, or no label, is of a pair that the runs retrieved."""
    places_of = _places(collection)
    for what, table, given in (("judgments", collection.judgments, qrels), ("labels", collection.labels, labels)):
        places = places_of[what]
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


def _suspicious(collection: Collection, given: Beside) -> Iterator[str]:
    """What looks wrong about judgments and labels that were given beside the runs."""
    runs, judgments, labels = collection.runs.pool, collection.judgments, collection.labels
    if given.qrels is not None and judgments is not None:
        yield from suspicious_judgments(judgments)
        yield from suspicious_ids("judgments", judgments.pool, runs)
    if given.labels is not None and labels is not None:
        yield from suspicious_labels(labels)
        yield from suspicious_ids("labels", labels.pool, runs)


def _places(collection: Collection) -> dict[str, Ints]:
    """The position in the pool of the runs of each judged and each labelled pair, -1 outside."""
    judgments, labels = collection.judgments, collection.labels
    judged, labelled = collection.judged_places, collection.labelled_places
    return {
        "judgments": judged if judgments is None else judged[np.unique(judgments.pair)],
        "labels": labelled if labels is None else labelled[~np.isnan(labels.values).all(axis=1)],
    }


def _pairs_of(pool: Pool, queries: Sequence[str]) -> Iterable[str]:
    """The pairs of some queries, as query and document."""
    return (" ".join(pool.label(int(pair))) for pair in np.flatnonzero(np.isin(pool.queries[pool.query], queries)))


def _three(ids: Iterable[str]) -> str:
    """Up to three ids."""
    shown = [repr(str(name)) for name in islice(ids, 4)]
    return ", ".join(shown[:3]) + (" and others" if len(shown) > 3 else "")


def note_outside(collection: Collection, reporter: Reporter) -> None:
    """Report the judged and labelled pairs that no run retrieved: they are not evaluated."""
    for what, places in zip(("judged", "labelled"), _places(collection).values(), strict=True):
        outside = int((places < 0).sum())
        if outside:
            reporter.say(f"{outside:,} of {len(places):,} {what} pairs are not counted: no run retrieved them.")


def with_observers(
    collections: Sequence[Collection], observers: Any, labelled: Sequence[GradedLabels] = ()
) -> tuple[list[Collection], list[GradedLabels]]:
    """Collections and graded labels with descriptions of those who gave the labels.

    Parameters
    ----------
    collections, labelled
        Collections, and labels beside grades.
    observers
        As in :class:`Evidence`; None leaves everything as it is. One without any label gives a warning.
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


def _runs(runs: Any, order: str, reporter: Reporter) -> Collection:
    if isinstance(runs, Collection):
        return runs
    if are_paths(runs):
        return _from_paths([runs] if isinstance(runs, (str, PathLike)) else list(runs), order, reporter)
    return Collection("runs", as_runs(runs, order=order, reporter=reporter))


def _widened(collection: Collection, pool: Runs) -> Collection:
    """The collection with more runs in its pool; these must answer one of its queries."""
    if not set(collection.runs.queries) & set(pool.queries):
        raise DataError(
            f"no query in common: the runs answer {collection.runs.queries[0]!r} and others, the pool "
            f"{pool.queries[0]!r} and others."
        )
    return collection.pooled(pool)


def _from_paths(paths: Sequence[str | PathLike[str]], order: str, reporter: Reporter) -> Collection:
    """Runs from files; a ``systems.tsv`` beside a single folder of runs names the teams."""
    try:
        lists = read_runs(*paths, order=order, reporter=reporter)
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
        frame = as_frame(given)
        teams = dict(given) if frame is None else teams_from_table(frame)
    if not set(runs.systems) & set(teams):
        raise DataError(
            f"no team of these systems: the runs are {_three(runs.systems)}, the teams are of {_three(teams)}. Name "
            "systems as the runs do.",
            path=path,
        )
    return runs.with_teams(teams)


def _table(given: Any, kind: type, read: Callable[[Any], Any], from_table: Callable[[pd.DataFrame], Any]) -> Any:
    """A table of evidence from a path, from a data frame, or as it is."""
    if given is None or isinstance(given, kind):
        return given
    frame = as_frame(given)
    return read(given) if frame is None else from_table(frame)


def _vectors(docs: Any, collection: Collection) -> Vectors | None:
    """Vectors of the documents that systems retrieved, as they are or from texts."""
    if docs is None or isinstance(docs, Vectors):
        return docs
    mapped = isinstance(docs, Mapping) and all(isinstance(text, str) for text in docs.values())
    frame = as_frame(docs)
    docs = docs if frame is None else frame
    if not (mapped or isinstance(docs, (str, PathLike, pd.DataFrame))):
        raise DataError(
            f"docs are a path, a data frame, a mapping from ids to texts, or Vectors; got {type(docs).__name__}."
        )
    return document_vectors(docs, collection.runs.pool.docs)


def note_texts(
    collection: Collection, docs: Any, *, depth: int, reporter: Reporter, model: Predicts | None = None
) -> None:
    """Report how many documents of the pool have a text or a vector, and which model uses them."""
    if docs is None or collection.vectors is None:
        return
    known = set(collection.vectors.docs)
    pool = collection.runs.top(depth).pool
    what = "Texts" if issparse(collection.vectors.values) else "Vectors"
    use = "" if isinstance(model, Hierarchical) else " Only the hierarchical model uses them."
    reporter.say(f"{what} of {sum(doc in known for doc in pool.docs):,} of {len(pool.docs):,} documents.{use}")


def note_ideal(
    collection: Collection, metric: AnyMetric, scale: Scale, *, depth: int | None, reporter: Reporter
) -> None:
    """Report which pairs the ideal list is taken from, for a measure that has one."""
    measure = as_metric(metric)
    runs = collection.runs.top(depth or measure.cutoff or collection.runs.depth)
    ideal = Ideal.of_pool(runs, measure, scale)
    if ideal is not None:
        reporter.say(f"{measure} is relative to an ideal list; {ideal}.")


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
    reporter: Reporter = SILENT,
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
    reporter
        Receives the name of the model, the reason for it, and a warning where it was fitted on these judgments.
    """
    if model == "none":
        raise ModelError("This task needs a relevance model: uniform, empirical, independent, hierarchical or a card.")
    choice = choose_model(model, collection, scale=as_scale(scale), inference=inference)
    reporter.say(str(choice))
    warning = choice.warning(collection)
    if warning is not None:
        reporter.say(warning)
    return choice.with_gain(gain)


def unjudged(collection: Collection) -> set[str]:
    """The queries of the runs without a judgment."""
    judged = () if collection.judgments is None else collection.judgments.pool.queries
    return set(collection.runs.queries) - set(judged)


def unanswered(collection: Collection) -> set[str]:
    """The judged queries that no run answers."""
    judged = () if collection.judgments is None else collection.judgments.pool.queries
    return set(judged) - set(collection.runs.queries)


as_collection = task(CollectionInputs, "as_collection")
