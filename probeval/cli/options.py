"""Options that several verbs share, each with one name, one meaning and one help text."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from probeval.cli.completion import (
    complete_metric,
    complete_model,
    complete_policy,
    complete_scale,
    complete_stop,
    complete_tool,
)
from probeval.errors import ProbevalError
from probeval.selection import EXPLORE_SIDES, GOALS, POLICIES, RULES, Stopping, read_corrections

__all__ = [
    "CampaignFolders",
    "Checkpoints",
    "Depth",
    "DocsFile",
    "Errors",
    "Explore",
    "Family",
    "Format",
    "Gain",
    "GoalName",
    "Inference",
    "InferenceName",
    "Jobs",
    "Labels",
    "LabelsFrom",
    "Level",
    "MappingName",
    "MetadataFile",
    "Method",
    "Metric",
    "Metrics",
    "ModelName",
    "ObserversFile",
    "Order",
    "OrderName",
    "OutFolder",
    "OutputFormat",
    "Outside",
    "PartJobs",
    "PerQuery",
    "PolicyName",
    "PoolPaths",
    "Qrels",
    "QueriesFile",
    "Quiet",
    "Reference",
    "ReportFile",
    "Rope",
    "RunPaths",
    "RunPathsOrPartitions",
    "ScaleName",
    "Scheduler",
    "Seed",
    "Stay",
    "Stop",
    "SystemChoice",
    "Systems",
    "Target",
    "TargetName",
    "TeamsFile",
    "ToolName",
    "Topics",
    "TopicsName",
    "parse_counts",
    "parse_shares",
    "parse_stop",
]


class OutputFormat(StrEnum):
    """The format of output on stdout."""

    table = "table"
    csv = "csv"
    json = "json"
    markdown = "markdown"
    latex = "latex"


class Systems(StrEnum):
    """The systems to evaluate."""

    all = "all"
    judged = "judged"


class TopicsName(StrEnum):
    """How topics are given to assessors."""

    free = "free"
    in_turn = "in-turn"
    owned = "owned"


class OrderName(StrEnum):
    """Orders of a run; the names of :data:`probeval.data.runs.ORDERS`."""

    trec_eval = "trec_eval"
    score = "score"
    rank = "rank"
    file = "file"


class TargetName(StrEnum):
    """The target of scores."""

    collection = "collection"
    population = "population"


class MethodName(StrEnum):
    """Methods for distributions; the names of :data:`probeval.scores.METHODS`."""

    moments = "moments"
    draws = "draws"
    exact = "exact"
    taylor = "taylor"
    ppi = "ppi"


class InferenceName(StrEnum):
    """Inference methods of the hierarchical model."""

    laplace = "laplace"
    nuts = "nuts"


class FamilyName(StrEnum):
    """The family of distributions for probabilities and intervals."""

    normal = "normal"
    t = "t"
    empirical = "empirical"


PoolPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--pool",
        metavar="PATH",
        help="More runs, or a table of query and doc, that widen the pool but are not evaluated; may be repeated.",
    ),
]
Outside = Annotated[
    bool,
    typer.Option(
        "--outside", help="Estimate also the relevant documents outside the pool, for nDCG, AP, recall and their like."
    ),
]
CampaignFolders = Annotated[list[Path], typer.Argument(metavar="CAMPAIGN...", help="Folders with runs/ and qrels.txt.")]
RunPaths = Annotated[
    list[str], typer.Argument(metavar="RUNS...", help="TREC run files (plain or gz), globs, or a directory.")
]
RunPathsOrPartitions = Annotated[
    list[str],
    typer.Argument(
        metavar="RUNS...",
        help="TREC run files (plain or gz), globs, a directory, or a campaign in partitions.",
    ),
]
Qrels = Annotated[
    Path | None,
    typer.Option(
        "--qrels", metavar="FILE", help="Judgments: TREC qrels or prels, a table, the export of a tool, or irds:ID."
    ),
]
Metrics = Annotated[
    list[str],
    typer.Option(
        "--metric",
        metavar="METRIC",
        help="A measure such as nDCG@10; may be repeated.",
        autocompletion=complete_metric,
    ),
]
Metric = Annotated[
    str,
    typer.Option("--metric", metavar="METRIC", help="A measure such as nDCG@10.", autocompletion=complete_metric),
]


def _listed(names: Iterable[str]) -> str:
    """Names in a sentence: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _explored() -> str:
    """The default share of exploration, by policy."""
    sides = f"{EXPLORE_SIDES:g}".lstrip("0")
    shares = [
        f"{p.explores:g}".lstrip("0") + f" for {name} ({sides}, from both sides, to compare two)"
        for name, p in POLICIES.items()
        if p.explores
    ]
    return f"{', '.join(shares)} and 0 for others" if shares else "0"


Topics = Annotated[
    TopicsName,
    typer.Option(
        "--topics",
        help="How topics are given to assessors: free (all to all), in-turn (each to one assessor at a time) or owned.",
    ),
]
Stay = Annotated[
    float,
    typer.Option("--stay", metavar="NUMBER", help="The price of switching to another topic, in judgments; 0 for none."),
]
PolicyName = Annotated[
    str,
    typer.Option(
        "--policy", metavar="NAME", help=f"The selection policy: {', '.join(POLICIES)}.", autocompletion=complete_policy
    ),
]
GoalName = Annotated[
    str,
    typer.Option("--goal", metavar="GOAL", help=f"The goal of judging: {_listed(GOALS)}."),
]
Stop = Annotated[
    str,
    typer.Option(
        "--stop",
        metavar="RULES",
        help=f"{' '.join(f'{name}=' for name in RULES)}; comma means or, plus means and.",
        autocompletion=complete_stop,
    ),
]
Explore = Annotated[
    float | None,
    typer.Option("--explore", help=f"The share of random judgments; default: {_explored()}."),
]
Checkpoints = Annotated[
    str, typer.Option("--checkpoints", metavar="F,F,..", help="Shares of the pool to judge, in ascending order.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="The number of processes.")]
PartJobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="For a campaign in partitions: the number of processes; default: one per core."),
]
Scheduler = Annotated[
    str | None, typer.Option("--scheduler", metavar="ADDRESS", help="A Dask scheduler that distributes the work.")
]
MetadataFile = Annotated[
    Path | None, typer.Option("--metadata", metavar="FILE", help="A table of documents and their groups.")
]
DocsFile = Annotated[
    Path | None,
    typer.Option(
        "--docs",
        metavar="FILE",
        help="Document texts, a table of doc and text (or vector), or irds:ID: similar documents are judged alike.",
    ),
]
QueriesFile = Annotated[
    Path | None, typer.Option("--queries", metavar="FILE", help="Query texts: a table of query and text, or irds:ID.")
]
ToolName = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="TOOL",
        help="Write the pairs for a judging tool too: label-studio or quepid. Needs --out.",
        autocompletion=complete_tool,
    ),
]
OutFolder = Annotated[
    Path | None, typer.Option("--out", metavar="FOLDER", help="Where --for writes the files of the tool.")
]
TeamsFile = Annotated[
    Path | None,
    typer.Option(
        "--teams",
        metavar="FILE",
        help="A table of system (or run) and team; default: systems.tsv beside the folder of runs.",
    ),
]
Labels = Annotated[
    list[Path] | None,
    typer.Option(
        "--labels", metavar="FILE", help="A table of labels: query, doc, one column per observer; may be repeated."
    ),
]
LabelsFrom = Annotated[
    list[Path] | None,
    typer.Option(
        "--labels-from",
        metavar="FILE",
        help="Labels with a column of grades, to fit the model of labels; may be repeated.",
    ),
]
ObserversFile = Annotated[
    Path | None,
    typer.Option(
        "--observers", metavar="FILE", help="A table of those who gave the labels: name, kind, family, scale."
    ),
]
PreferencesFile = Annotated[
    Path | None,
    typer.Option(
        "--preferences",
        metavar="FILE",
        help="Answers about two documents: query, left, right, choice, relevant, assessor.",
    ),
]
MagnitudesFile = Annotated[
    Path | None,
    typer.Option(
        "--magnitudes", metavar="FILE", help="Numbers for documents: query, doc, number, kind, unit, assessor."
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        "--reference",
        metavar="NAME",
        help="The assessor whose grades count, or consensus; the grades of others are then labels.",
    ),
]
MappingName = Annotated[
    str | None,
    typer.Option(
        "--mapping",
        metavar="NAME|FILE",
        help="A mapping to user satisfaction: DCGl@5/broad, or a file of your users; default: that of the measure.",
    ),
]
Rope = Annotated[
    str,
    typer.Option(
        "--rope",
        metavar="D|users=SHARE",
        help="Differences up to this size count as ties: a number, or the difference that a share of users notice.",
    ),
]
ScaleName = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="SCALE",
        help="binary, binary:G (relevant from G on), graded:M (grades 0..M), fine (0..100), fine:N (cut into N levels) "
        "or real (any numbers from 0); inferred by default.",
        autocompletion=complete_scale,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="none, uniform, empirical, independent, labels[:COLUMN], calibrated[:COLUMN], a built-in model, one of "
        "your own or a card's path; default: the best applicable.",
        autocompletion=complete_model,
    ),
]
ReportFile = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a report as one HTML file, too.")
]
Level = Annotated[float, typer.Option("--level", min=0.01, max=0.9999, help="The probability level of intervals.")]
Target = Annotated[TargetName, typer.Option("--target", help="Scores on these queries, or on their population.")]
Method = Annotated[
    MethodName | None,
    typer.Option("--method", help="The computation of scores; default: moments for linear measures, draws for others."),
]
Inference = Annotated[
    InferenceName,
    typer.Option(
        "--inference",
        help="The inference of the hierarchical model: laplace (seconds) or nuts (sampling, minutes).",
    ),
]
Family = Annotated[
    FamilyName | None,
    typer.Option(
        "--family", help="The family of distributions; default: empirical for draws on these queries, otherwise normal."
    ),
]
Gain = Annotated[
    str | None,
    typer.Option(
        "--gains",
        metavar="linear|exp|G,G,..",
        help="The gains of grades: linear (the grade), exp (2^grade - 1), or one per grade, as in 0,.25,.5,1.",
    ),
]
Depth = Annotated[
    int | None,
    typer.Option("--depth", min=1, help="The number of ranks; default: the metric's cutoff, or the whole run."),
]
SystemChoice = Annotated[
    Systems,
    typer.Option("--systems", help="judged: only systems with more than .99 of their retrieved documents judged."),
]
Order = Annotated[OrderName, typer.Option("--order", help="The order of documents in a run.")]
PerQuery = Annotated[bool, typer.Option("--per-query", help="Add the score of every system on every query.")]
Format = Annotated[OutputFormat, typer.Option("--format", help="The output format; latex needs the package booktabs.")]
Seed = Annotated[int, typer.Option("--seed", help="The random seed; the same seed gives the same output.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only errors on stderr.")]


Errors = Annotated[
    Path | None,
    typer.Option("--errors", metavar="FILE", help="Corrections for --stop error=, written by simulate --learn-errors."),
]


def parse_stop(text: str, errors: Path | None) -> Stopping:
    """The rules of ``--stop``, with the corrections of ``--errors``."""
    stop = Stopping.parse(text)
    return stop if errors is None else stop.with_corrections(read_corrections(errors))


def parse_shares(option: str, text: str) -> list[float]:
    """The shares in an option such as ``--checkpoints``."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ProbevalError(f"{option} takes comma-separated numbers, got {text!r}.") from None


def parse_counts(option: str, text: str | None) -> list[int] | None:
    """The numbers in an option such as ``--queries``; None if it is not given."""
    if text is None:
        return None
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise ProbevalError(f"{option} takes comma-separated positive integers, got {text!r}.")
    return counts
