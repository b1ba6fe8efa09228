"""File formats of runs, judgments and labels: one object per format, in one list.

:func:`probeval.read_runs`, :func:`probeval.read_judgments`, :func:`probeval.data.read_labels` and the import and export
of campaigns go through the list, and so does :func:`write_tasks`, which hands pairs to the tools of some formats.
Formats from elsewhere are added by :func:`register_format`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from probeval.data.answers import PairAnswers, read_answers
from probeval.data.evidence import LabelTable, read_label_table
from probeval.data.exchange import read_mteb, read_opensearch, read_ragelo, read_umbrela
from probeval.data.files import PREDICTIONS, TABLES, first_bytes, stem, suffix, write_bytes
from probeval.data.irds import is_dataset, read_dataset_judgments
from probeval.data.judgments import Judgments
from probeval.data.label_studio import label_studio_tasks, read_label_studio
from probeval.data.quepid import quepid_book, quepid_tasks, read_quepid
from probeval.data.rank_eval import rank_eval_request, read_rank_eval_ratings, read_rank_eval_runs
from probeval.data.runs import Runs
from probeval.data.scale import Scale
from probeval.data.tables import (
    ABOUT_OBSERVER,
    column_names,
    judgments_from_table,
    names_grades,
    read_table,
    runs_from_table,
)
from probeval.data.tasks import OpenPair, WriteOptions
from probeval.data.trec import qrels_text, read_qrels, read_trec_runs
from probeval.display import Record
from probeval.errors import DataError, did_you_mean
from probeval.reporting import SILENT, Reporter

__all__ = [
    "FORMATS",
    "FileFormat",
    "ReadOptions",
    "find_format",
    "format_named",
    "formats_of",
    "register_format",
    "task_formats",
    "write_tasks",
]

T = TypeVar("T", Runs, Judgments, LabelTable, PairAnswers)


@dataclass(frozen=True, repr=False)
class ReadOptions(Record):
    """Options of readers; each format uses those that it needs.

    Parameters
    ----------
    order
        How a list is ordered, one of :data:`probeval.data.runs.ORDERS`.
    reporter
        Receives progress and remarks.
    scale
        The scale of the grades, where it is known; a grade that it lacks is refused after reading at the latest.
    queries, docs
        Texts by id, for files that name queries or documents by their text.
    """

    order: str = "trec_eval"
    reporter: Reporter = SILENT
    scale: Scale | None = None
    queries: Mapping[str, str] | None = None
    docs: Mapping[str, str] | None = None


@dataclass(frozen=True, repr=False)
class FileFormat(Record, Generic[T]):
    """A file format: what it holds, how it is recognised, how it is read and written.

    A file is of this format where its name ends in one of ``suffixes`` and ``matches`` is true of it. A format with
    neither is used only where it is named.

    Parameters
    ----------
    name, summary
        What it is called, and what is in a file, in one line.
    holds
        :class:`Runs`, :class:`Judgments`, :class:`LabelTable` or :class:`PairAnswers`.
    read
        From a file and :class:`ReadOptions` to what it holds.
    read_all
        The same for several files at once, for runs; None where each call reads one file.
    suffixes
        Ends of file names in lower case, ``.gz`` aside.
    matches
        Whether the content is in this format (:func:`probeval.data.files.first_bytes` has its beginning).
    write
        From what it holds and :class:`WriteOptions` to the text of a file; None where the format is only read.
    needs
        The options without which ``write`` raises an error.
    tasks
        From pairs to judge and :class:`WriteOptions` to the files that the tool takes, by name; None if it takes none.

    Examples
    --------
    >>> def read_arrows(path, options):
    ...     rows = [line.replace("->", " ").split() for line in path.read_text().splitlines()]
    ...     return Judgments.rows(*zip(*[(query, doc, float(grade)) for query, doc, grade in rows]))
    >>> arrows = FileFormat("arrows", "query -> doc -> grade", Judgments, read_arrows, suffixes=(".arrows",))
    >>> arrows.recognises(Path("mine.arrows.gz")), arrows.recognises(Path("qrels.txt"))
    (True, False)
    """

    name: str
    summary: str
    holds: type[T]
    read: Callable[[Path, ReadOptions], T]
    read_all: Callable[[Sequence[Path], ReadOptions], T] | None = None
    suffixes: tuple[str, ...] = ()
    matches: Callable[[Path], bool] | None = None
    write: Callable[[T, WriteOptions], str] | None = None
    needs: tuple[str, ...] = ()
    tasks: Callable[[Sequence[OpenPair], WriteOptions], Mapping[str, str]] | None = None

    def recognises(self, path: Path) -> bool:
        """Whether a file is in this format."""
        if self.suffixes and not path.name.removesuffix(".gz").lower().endswith(self.suffixes):
            return False
        return bool(self.suffixes) if self.matches is None else self.matches(path)


def _is_no_table(path: Path) -> bool:
    return not suffix(path)


def _is_graded_table(path: Path) -> bool:
    return names_grades(column_names(path))


def _is_answers(path: Path) -> bool:
    return {"left", "right"} <= set(column_names(path))


def _is_quepid(path: Path) -> bool:
    """The export of a book as JSON, or as CSV with one column per rater; a case with ratings is a table."""
    if not suffix(path):
        return True
    names = column_names(path)
    return names[:2] == ["query", "docid"] and not names_grades(names)


def _is_umbrela(path: Path) -> bool:
    return {"judgment", "prediction"} <= set(column_names(path))


def _is_ragelo(path: Path) -> bool:
    """A CSV file of evaluations, or JSON lines that are evaluations or hold one under the name of its kind."""
    names = set(column_names(path))
    return {"did", "answer"} <= names or (suffix(path) == ".jsonl" and "retrieval" in names)


def _is_opensearch(path: Path) -> bool:
    start = first_bytes(path)
    return b'"judgmentRatings"' in start or (start.lstrip().startswith(b"[") and b'"docId"' in start)


def _is_label_studio(path: Path) -> bool:
    return first_bytes(path).lstrip().startswith(b"[")


def _is_rank_eval_request(path: Path) -> bool:
    return b'"requests"' in first_bytes(path)


def _is_rank_eval_response(path: Path) -> bool:
    start = first_bytes(path).lstrip()
    return start.startswith(b"{") and any(key in start for key in (b'"details"', b'"rank_eval"', b'"requests"'))


# A file is asked of the last format first: formats from outside come before those here, and TREC comes last.
FORMATS: list[FileFormat[Any]] = [
    FileFormat(
        "trec",
        "TREC runs: query Q0 doc rank score tag, one file per system",
        Runs,
        lambda path, options: read_trec_runs([path], order=options.order, reporter=options.reporter),
        read_all=lambda files, options: read_trec_runs(files, order=options.order, reporter=options.reporter),
        matches=_is_no_table,
    ),
    FileFormat(
        "table",
        "CSV, TSV, JSONL or parquet with query and doc, and system, score or rank: runs",
        Runs,
        lambda path, options: runs_from_table(
            read_table(path, triples=True), system=stem(path), path=path, order=options.order
        ),
        suffixes=TABLES,
    ),
    FileFormat(
        "mteb",
        "predictions of MTEB or BEIR as JSON, one file per model: runs",
        Runs,
        lambda path, options: read_mteb(path, order=options.order),
        read_all=lambda files, options: read_mteb(*files, order=options.order),
        suffixes=(PREDICTIONS,),
    ),
    FileFormat(
        "rank-eval",
        "responses of rank_eval (OpenSearch, Elasticsearch) as JSON, one file per system: runs",
        Runs,
        lambda path, _: read_rank_eval_runs(path),
        read_all=lambda files, _: read_rank_eval_runs(*files),
        suffixes=(".json",),
        matches=_is_rank_eval_response,
    ),
    FileFormat(
        "qrels",
        "TREC qrels or prels: judgments",
        Judgments,
        lambda path, options: read_qrels(path, scale=options.scale),
        matches=_is_no_table,
        write=lambda judgments, _: qrels_text(judgments),
    ),
    FileFormat(
        "table",
        "CSV, TSV, JSONL or parquet with query, doc and grade: judgments",
        Judgments,
        lambda path, options: judgments_from_table(read_table(path), path=path, scale=options.scale),
        suffixes=TABLES,
        matches=_is_graded_table,
    ),
    FileFormat(
        "quepid",
        "a Quepid book or case: judgments, or labels where a rater is a machine",
        Judgments,
        lambda path, options: read_quepid(path, queries=options.queries),
        suffixes=(".json", ".csv"),
        matches=_is_quepid,
        write=quepid_book,
        tasks=quepid_tasks,
    ),
    FileFormat(
        "label-studio",
        "annotations exported from Label Studio as JSON or JSON_MIN: judgments",
        Judgments,
        lambda path, _: read_label_studio(path),
        suffixes=(".json",),
        matches=_is_label_studio,
        tasks=label_studio_tasks,
    ),
    FileFormat(
        "rank-eval",
        "the ratings of a rank_eval request (OpenSearch, Elasticsearch) as JSON: judgments",
        Judgments,
        lambda path, _: read_rank_eval_ratings(path),
        suffixes=(".json",),
        matches=_is_rank_eval_request,
        write=rank_eval_request,
        needs=("index",),
    ),
    FileFormat(
        "umbrela",
        "UMBRELA's answers as JSON lines: labels",
        LabelTable,
        lambda path, options: read_umbrela(path, queries=options.queries, docs=options.docs),
        suffixes=(".jsonl",),
        matches=_is_umbrela,
    ),
    FileFormat(
        "ragelo",
        "evaluations of documents by RAGElo as CSV or JSON lines: labels",
        LabelTable,
        lambda path, _: read_ragelo(path),
        suffixes=(".csv", ".jsonl"),
        matches=_is_ragelo,
    ),
    FileFormat(
        "opensearch",
        "a judgment list of OpenSearch (judgmentRatings) as JSON: labels",
        LabelTable,
        lambda path, options: read_opensearch(path, queries=options.queries),
        suffixes=(".json",),
        matches=_is_opensearch,
    ),
    FileFormat(
        "labels",
        "a table with query, doc and one column of numbers per observer, or one per grade for probabilities: labels",
        LabelTable,
        lambda path, _: read_label_table(path),
        suffixes=(".csv", ".tsv"),
        matches=lambda path: first_bytes(path).startswith(ABOUT_OBSERVER),  # other tables of labels are named as such
    ),
    FileFormat(
        "answers",
        "a table with query, left and right, and choice, relevant or numbers: answers about two documents",
        PairAnswers,
        lambda path, _: read_answers(path),
        suffixes=TABLES,
        matches=_is_answers,
    ),
    FileFormat(
        "irds",
        "irds:ID, the id of a dataset of ir_datasets in place of a file: judgments",
        Judgments,
        lambda path, _: read_dataset_judgments(path),
        matches=is_dataset,
    ),
]
OWN = tuple(FORMATS)


def register_format(file_format: FileFormat[T]) -> FileFormat[T]:
    """Add a format from outside the package: files in it are then read wherever files of its kind are.

    It is asked before the others whether a file is in it. A format from outside that has this name is replaced; the
    name of a format of the package is refused. ``FORMATS.remove(file_format)`` takes it out again.
    """
    others = [known for known in FORMATS if known.name == file_format.name and _alike(known, file_format)]
    if any(known in OWN for known in others):
        raise DataError(f"{file_format.name!r} is a format of probeval. Give yours another name.")
    if file_format.holds not in (Runs, Judgments, LabelTable, PairAnswers):
        raise DataError(
            f"the format {file_format.name!r} must hold Runs, Judgments, LabelTable or PairAnswers, "
            f"got {file_format.holds!r}."
        )
    for known in others:
        FORMATS.remove(known)
    FORMATS.append(file_format)
    return file_format


def _alike(one: FileFormat[Any], other: FileFormat[Any]) -> bool:
    """Whether both are of runs or neither is: judgments and labels are imported by the same names."""
    return (one.holds is Runs) == (other.holds is Runs)


def formats_of(*holds: type[Runs | Judgments | LabelTable | PairAnswers]) -> dict[str, FileFormat[Any]]:
    """The formats that hold one of these, by name.

    >>> list(formats_of(Judgments, LabelTable))[:3]
    ['qrels', 'table', 'quepid']
    """
    return {known.name: known for known in FORMATS if known.holds in holds}


def format_named(name: str, holds: type[T]) -> FileFormat[T]:
    """The format of this name that holds runs, judgments or labels."""
    known = formats_of(holds)
    if name not in known:
        raise DataError(f"No format {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
    return cast("FileFormat[T]", known[name])


def find_format(path: Path, *holds: type[Runs | Judgments | LabelTable | PairAnswers]) -> FileFormat[Any] | None:
    """The format that a file is in, the latest registered first; None where none recognises it."""
    known = reversed(formats_of(*holds).values())
    return next((each for each in known if each.recognises(path)), None)


def task_formats() -> dict[str, FileFormat[Any]]:
    """The formats of tools that take pairs to judge, by name.

    >>> list(task_formats())
    ['quepid', 'label-studio']
    """
    return {name: known for name, known in formats_of(Judgments).items() if known.tasks is not None}


def write_tasks(folder: Path, tool: str, pairs: Sequence[OpenPair], options: WriteOptions) -> list[Path]:
    """Write pairs to judge as the files that a tool takes; return their paths.

    Parameters
    ----------
    folder
        Where the files are written; files of the same names are replaced.
    tool
        The name of one of :func:`task_formats`.
    pairs
        The pairs, in the order of judging.
    options
        Texts, the scale and the name of the campaign.
    """
    known = task_formats()
    if tool not in known:
        raise DataError(f"No tool {tool!r}: {', '.join(known)}.{did_you_mean(tool, known)}")
    if not pairs:
        raise DataError(f"there is no pair to judge, and nothing to write for {tool}.")
    tasks = known[tool].tasks
    assert tasks is not None
    files = {folder / name: text for name, text in tasks(pairs, options).items()}
    for path, text in files.items():
        write_bytes(path, text.encode())
    return list(files)
