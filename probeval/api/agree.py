"""How far two sources agree: judgments, columns of labels, tables of scores or rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd

from probeval.api.classical import judged_scores
from probeval.api.evidence import JudgedRuns, Order, as_scale
from probeval.api.settings import Depth, Grading, Level, MeasureOfRuns, Seed, Work
from probeval.data import Judgments, LabelTable, as_judgments, as_labels, read_judgments, read_labels
from probeval.data.files import first_bytes, suffix
from probeval.data.irds import is_dataset
from probeval.data.tables import as_frame, column, ids, names_grades, numbers, read_table
from probeval.errors import DataError, ReliabilityError
from probeval.metrics import Measured
from probeval.records import About, task
from probeval.scores.evaluate import as_metric
from probeval.streams import stream
from probeval.studies.agreement import (
    SAMPLES,
    SourceAgreement,
    SystemScores,
    document_agreement,
    ranking_agreement,
)

if TYPE_CHECKING:
    from probeval.reliability import Observed

__all__ = ["AgreementInputs", "agree"]

KINDS = "qrels, a table of labels as FILE:COLUMN, a table of scores, or a ranking"


@dataclass(frozen=True, eq=False, repr=False)
class AgreementInputs(Work, Grading):
    """Find how far two sources agree: on the order of documents, on that of systems, on significant differences.

    A source is judgments, a column of labels, scores of systems on queries, or a ranking of systems. Judgments and
    labels order documents; with runs and a measure, also systems. The first source is the reference where there is one.

    Examples
    --------
    >>> import probeval
    >>> found = probeval.agree({"q": {"x": 1, "y": 0, "z": 0}}, {"q": {"x": 2, "y": 0, "z": 3}})
    >>> found.documents.by_query[0].confirmed
    0.5
    >>> probeval.agree(["bm25", "lm", "tfidf"], ["bm25", "tfidf", "lm"]).to_frame()["figure"].tolist()[:3]
    ['agree', 'disagree', 'tied']
    """

    a: Annotated[Any, About(f"The first source: {KINDS}.", metavar="A", argument=True, kind=str)]
    b: Annotated[Any, About("The second source, of the same kind.", metavar="B", argument=True, kind=str)]
    metric: MeasureOfRuns = None
    _: KW_ONLY
    runs: Annotated[
        Any,
        About(
            "Runs to score by both, with --metric: files, globs or a directory.", metavar="RUNS", kind=str, many=True
        ),
    ] = None
    order: Order = "trec_eval"
    depth: Depth = None
    top: Annotated[int, About("The number of best systems by the first that tau_top is about.", least=2)] = 10
    persistence: Annotated[float, About("The persistence of rank-biased overlap.", metavar="P")] = 0.9
    alpha: Annotated[
        float, About("The level of significance of differences between systems.", least=0.0001, most=0.5)
    ] = 0.05
    samples: Annotated[int, About("The number of samples of queries behind intervals.", least=10)] = SAMPLES
    level: Level = 0.95
    seed: Seed = 0

    def run(self) -> SourceAgreement:
        """The agreement."""
        (name_a, a), (name_b, b) = (_source(given, letter) for given, letter in ((self.a, "a"), (self.b, "b")))
        if isinstance(a, Judgments) != isinstance(b, Judgments):
            what = {True: "grades of documents", False: "scores of systems"}
            raise ReliabilityError(
                f"Two sources of one kind are compared, got {what[isinstance(a, Judgments)]} ({name_a}) and "
                f"{what[isinstance(b, Judgments)]} ({name_b}). Score the runs first: probeval evaluate .. --model none "
                "--per-query --format csv."
            )
        if (self.runs is None) != (self.metric is None):
            raise ReliabilityError("Runs are scored by a measure: give both --runs and --metric, or neither.")
        documents = None
        if isinstance(a, Judgments) and isinstance(b, Judgments):
            documents = document_agreement(
                a, b, level=self.level, samples=self.samples, rng=stream(self.seed, "documents")
            )
            scored = None if self.runs is None else (self._scores(a), self._scores(b))
        else:
            if self.runs is not None:
                raise ReliabilityError(
                    "--runs are scored by judgments or labels, and these are scores. Leave them out."
                )
            assert isinstance(a, SystemScores)
            assert isinstance(b, SystemScores)
            scored = (a, b)
        systems = None
        if scored is not None:
            systems = ranking_agreement(
                *scored, top=self.top, persistence=self.persistence, alpha=self.alpha,
                level=self.level, samples=self.samples, rng=stream(self.seed, "systems"),
            )  # fmt: skip
        return SourceAgreement(name_a, name_b, documents, systems, self.level, self.samples)

    def _scores(self, judgments: Judgments) -> SystemScores:
        """The scores of the runs by judgments."""
        assert self.metric is not None
        runs = JudgedRuns(self.runs, qrels=judgments, order=self.order).collection(reporter=self.reporter)
        return _measured(
            judged_scores(runs, as_metric(self.metric), scale=as_scale(self.scale), gain=self.gain, depth=self.depth)
        )


agree = task(AgreementInputs, "agree")


def _measured(found: Measured) -> SystemScores:
    return SystemScores(found.systems, tuple(map(str, found.queries)), found.values)


def _observed(scores: Observed) -> SystemScores:
    if scores.design.facets != ("system", "query") or scores.is_uncertain:
        raise ReliabilityError(f"Scores of systems on queries are compared, got {scores}.")
    return SystemScores(scores.labels["system"], scores.labels["query"], scores.values[0])


def _ranking(systems: list[str], scores: np.ndarray) -> SystemScores:
    twice = next((name for i, name in enumerate(systems) if name in systems[:i]), None)
    if twice is not None:
        raise DataError(f"the system {twice!r} stands twice in a ranking. Leave one out.")
    return SystemScores(tuple(systems), (), np.asarray(scores, dtype=float)[:, None])


def _listed(systems: list[str]) -> SystemScores:
    """A ranking from names, the best first."""
    return _ranking(systems, -np.arange(1.0, len(systems) + 1))


def _labelled(table: LabelTable, name: str, where: str) -> Judgments:
    """One column of labels as grades."""
    if name not in table.sources:
        got = ", ".join(table.sources)
        raise DataError(
            f"{where}: {f'no column of labels {name!r}' if name else 'several columns of labels'}, got {got}. "
            f"Name one, as {where}:{table.sources[0]}."
        )
    values = table.values[:, table.sources.index(name)]
    known = np.flatnonzero(~np.isnan(values))
    return Judgments.coded(table.pool, known, values[known])


def _source(given: Any, letter: str) -> tuple[str, Judgments | SystemScores]:
    """A source with its name, from a path, a frame or an object."""
    from probeval.reliability import Observed

    if isinstance(given, (str, PathLike)):
        return _from_path(str(given))
    if isinstance(given, Judgments):
        return letter, given
    if isinstance(given, LabelTable):
        return letter, _labelled(given, given.sources[0] if len(given.sources) == 1 else "", letter)
    if isinstance(given, Observed):
        return letter, _observed(given)
    if isinstance(given, Measured):
        return letter, _measured(given)
    table = as_frame(given)
    if table is not None:
        return letter, _from_table(table, letter, "", None)
    if isinstance(given, Mapping) and given and all(isinstance(v, (int, float)) for v in given.values()):
        return letter, _ranking(list(given), np.array(list(given.values()), dtype=float))
    if isinstance(given, (list, tuple)) and given and all(isinstance(v, str) for v in given):
        return letter, _listed(list(given))
    return letter, as_judgments(given)


def _from_path(text: str) -> tuple[str, Judgments | SystemScores]:
    """A source from a file; ``FILE:COLUMN`` names a column of labels."""
    dataset = is_dataset(Path(text))
    named, _, label = ("", "", "") if dataset else text.rpartition(":")
    if named and Path(named).is_file() and not Path(text).is_file():
        return label, _labelled(read_labels(named), label, named)
    path = Path(text)
    if dataset or not path.is_file():  # reading says what is wrong
        return text, read_judgments(text)
    if suffix(path):
        return path.name, _from_table(read_table(path), str(path), label, path)
    words = [line.split() for line in first_bytes(path).decode("utf-8", "replace").splitlines() if line.strip()]
    if words and all(len(line) == 1 for line in words):
        return path.name, _listed(ids(path.read_text(encoding="utf-8").split(), "system", path=path))
    return path.name, read_judgments(path)


def _from_table(table: pd.DataFrame, where: str, label: str, path: Path | None) -> Judgments | SystemScores:
    """Judgments, the only column of labels, scores or a ranking from a table, by its columns."""
    from probeval.reliability import observe, read_scores
    from probeval.reliability.observed import Observed

    query, doc, system, score = (
        column(table, name, path=path, required=False) for name in ("query", "doc", "system", "score")
    )
    if query is not None and doc is not None:
        if names_grades(str(name).strip().lower() for name in table.columns):
            return read_judgments(path) if path is not None else as_judgments(table)
        labels = read_labels(path) if path is not None else as_labels(table)
        return _labelled(labels, labels.sources[0] if len(labels.sources) == 1 else label, where)
    if score is None:
        score = next((table[c] for c in table.columns if str(c).strip().lower() in ("mean", "value")), None)
    if system is not None and query is None and score is not None:
        return _ranking(ids(system, "system", path=path), numbers(score, "score", path=path))
    if path is not None:
        return _observed(read_scores(path))
    return _observed(Observed.long(table, "s x q") if query is not None and score is not None else observe(table))
