"""Options that several verbs share, each with one name, one meaning and one help text."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from probeval.cli.completion import complete_metric, complete_model, complete_policy, complete_scale, complete_stop
from probeval.errors import ProbevalError
from probeval.selection import GOALS, POLICIES, RULES

__all__ = [
    "Checkpoints",
    "Depth",
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
    "Order",
    "OrderName",
    "OutputFormat",
    "PerQuery",
    "PolicyName",
    "Qrels",
    "Quiet",
    "RunPaths",
    "ScaleName",
    "Seed",
    "Stop",
    "SystemChoice",
    "Systems",
    "Target",
    "TargetName",
    "parse_counts",
    "parse_shares",
]


class OutputFormat(StrEnum):
    """How data are written to stdout."""

    table = "table"
    csv = "csv"
    json = "json"


class Systems(StrEnum):
    """Which systems take part."""

    all = "all"
    judged = "judged"


class GainName(StrEnum):
    """What a grade is worth."""

    linear = "linear"
    exp = "exp"


class OrderName(StrEnum):
    """How a run is ordered; the names of :data:`probeval.data.runs.ORDERS`."""

    trec_eval = "trec_eval"
    score = "score"
    rank = "rank"
    file = "file"


class TargetName(StrEnum):
    """What the scores are scores of."""

    collection = "collection"
    population = "population"


class MethodName(StrEnum):
    """How distributions are computed; the names of :data:`probeval.scores.METHODS`."""

    moments = "moments"
    draws = "draws"
    exact = "exact"
    taylor = "taylor"


class InferenceName(StrEnum):
    """How the posterior of the hierarchical model is computed."""

    laplace = "laplace"
    nuts = "nuts"


class FamilyName(StrEnum):
    """The shape that probabilities and intervals take."""

    normal = "normal"
    t = "t"
    empirical = "empirical"


RunPaths = Annotated[
    list[str], typer.Argument(metavar="RUNS...", help="TREC run files (plain or gz), globs, or a directory.")
]
Qrels = Annotated[
    Path | None, typer.Option("--qrels", metavar="FILE", help="Judgments: TREC qrels or prels, or a table.")
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
    """Names as a sentence has them: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _explored() -> str:
    """The share of exploration of each policy that explores."""
    shares = [f"{p.explores:g}".lstrip("0") + f" for {name}" for name, p in POLICIES.items() if p.explores]
    return f"{', '.join(shares)} and 0 for others" if shares else "0"


PolicyName = Annotated[
    str,
    typer.Option(
        "--policy", metavar="NAME", help=f"How to choose: {', '.join(POLICIES)}.", autocompletion=complete_policy
    ),
]
GoalName = Annotated[
    str,
    typer.Option("--goal", metavar="GOAL", help=f"What it is for: {_listed(GOALS)}."),
]
Stop = Annotated[
    str,
    typer.Option(
        "--stop",
        metavar="RULES",
        help=f"{' '.join(f'{name}=' for name in RULES)}; a comma is or, a plus is and.",
        autocompletion=complete_stop,
    ),
]
Explore = Annotated[
    float | None,
    typer.Option("--explore", help=f"The share of judgments at random; {_explored()} when not given."),
]
Checkpoints = Annotated[
    str, typer.Option("--checkpoints", metavar="F,F,..", help="Shares of the pool that are judged, rising.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="How many processes share the work.")]
MetadataFile = Annotated[
    Path | None, typer.Option("--metadata", metavar="FILE", help="A table of documents and their groups.")
]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", metavar="FILE", help="A table of labels by machines: query, doc, one column each."),
]
LabelsFrom = Annotated[
    Path | None,
    typer.Option(
        "--labels-from", metavar="FILE", help="Labels beside a column of grades, to learn what labels are worth."
    ),
]
MappingName = Annotated[
    str | None,
    typer.Option(
        "--mapping",
        metavar="NAME",
        help="Borrow this published mapping to users' satisfaction, such as DCGl@5/broad; "
        "the measure's own when not given.",
    ),
]
ScaleName = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="SCALE",
        help="binary, graded:M (grades 0..M) or fine (0..100); inferred when not given.",
        autocompletion=complete_scale,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="none, uniform, empirical, independent, a model that ships, or a card's path; else the best that fits.",
        autocompletion=complete_model,
    ),
]
Level = Annotated[float, typer.Option("--level", min=0.01, max=0.9999, help="The probability that intervals hold.")]
Target = Annotated[
    TargetName, typer.Option("--target", help="Scores on these queries, or on the population they are drawn from.")
]
Method = Annotated[
    MethodName | None, typer.Option("--method", help="moments for linear measures and draws for others when not given.")
]
Inference = Annotated[
    InferenceName,
    typer.Option(
        "--inference",
        help="How the hierarchical model is computed: laplace, in seconds; nuts, by sampling, in minutes.",
    ),
]
Family = Annotated[
    FamilyName | None,
    typer.Option("--family", help="empirical for draws on these queries, else normal, when not given."),
]
Gain = Annotated[GainName | None, typer.Option("--gain", help="What a grade is worth: itself, or 2^grade - 1.")]
Depth = Annotated[
    int | None,
    typer.Option("--depth", min=1, help="How many ranks to look at: the metric's cutoff, else the whole run."),
]
SystemChoice = Annotated[
    Systems,
    typer.Option("--systems", help="judged: only systems with more than .99 of their retrieved documents judged."),
]
Order = Annotated[OrderName, typer.Option("--order", help="How ties in a run are broken.")]
PerQuery = Annotated[bool, typer.Option("--per-query", help="Add the score of every system on every query.")]
Format = Annotated[OutputFormat, typer.Option("--format", help="How data are written to stdout.")]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same bytes.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing on stderr but errors.")]


def parse_shares(text: str) -> list[float]:
    """The shares that ``--checkpoints`` names."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ProbevalError(f"--checkpoints takes numbers with commas between them, got {text!r}.") from None


def parse_counts(option: str, text: str | None) -> list[int] | None:
    """The numbers that an option such as ``--queries`` names, None where it is not given."""
    if text is None:
        return None
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise ProbevalError(f"{option} takes whole numbers from 1 with commas between them, got {text!r}.")
    return counts
