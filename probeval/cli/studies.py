"""Options and inputs that studies share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from probeval.api.evidence import as_collection, as_scale
from probeval.api.studies import is_score_table
from probeval.cli.output import Talk
from probeval.data import Scale
from probeval.errors import ProbevalError
from probeval.scores.evaluate import as_metric

__all__ = ["study_sources"]


class StudyMethod(StrEnum):
    """Estimators of components; the names of :data:`probeval.reliability.METHODS`."""

    anova = "anova"
    reml = "reml"
    bayes = "bayes"


class PairTestName(StrEnum):
    """Tests of pairs; the names of :data:`probeval.reliability.TESTS`."""

    t = "t"
    wilcoxon = "wilcoxon"
    sign = "sign"
    bootstrap = "bootstrap"
    permutation = "permutation"


class IntervalName(StrEnum):
    """Sources of intervals; the names of :data:`probeval.reliability.INTERVALS`."""

    analytic = "analytic"
    bootstrap = "bootstrap"
    draws = "draws"
    posterior = "posterior"
    none = "none"


Sources = Annotated[
    list[str],
    typer.Argument(metavar="SCORES|RUNS...", help="One table of scores (csv, tsv, jsonl, parquet), or runs."),
]
StudyMetrics = Annotated[
    list[str] | None,
    typer.Option("--metric", metavar="METRIC", help="A measure such as nDCG@10, for runs; may be repeated."),
]
StudyModel = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="The model for unjudged documents: none (not relevant), a name or the path of a card.",
    ),
]
DesignText = Annotated[
    str,
    typer.Option("--design", metavar="DESIGN", help="s x q, s x (h:q), s x q x h, or columns: stemmer x model x q."),
]
Components = Annotated[
    str | None,
    typer.Option(
        "--components", metavar="PATTERN", help="The pattern that splits system names, such as stop_stemmer_model."
    ),
]
StudyMethodOption = Annotated[
    StudyMethod, typer.Option("--method", help="Analysis of variance, restricted maximum likelihood, or PyMC.")
]
Interval = Annotated[
    IntervalName | None,
    typer.Option("--interval", help="The source of intervals; default: the best applicable."),
]
Drop = Annotated[
    float, typer.Option("--drop", min=0, max=0.99, help="The share of systems to leave out, the worst first.")
]
JointDraws = Annotated[
    int, typer.Option("--draws", min=2, help="The number of joint draws of scores, or of bootstrap samples.")
]


def study_sources(
    source: Sequence[str],
    metrics: Sequence[str],
    *,
    qrels: Path | None,
    metadata: Path | None,
    labels: Sequence[Path] | None,
    observers: Path | None,
    scale: Scale | str | None,
    order: str,
    model: str,
    talk: Talk,
) -> Iterator[tuple[str | None, Any]]:
    """Yield measures and inputs: None and a table of scores, or each measure and the runs, which are read once."""
    if not metrics:
        if not is_score_table(source):
            raise ProbevalError("Runs need a measure (--metric nDCG@10); a single table (.csv) is read as scores.")
        yield None, source[0]
        return
    names = [str(as_metric(text)) for text in metrics]
    collection = talk.warned(
        lambda: as_collection(
            source, qrels=qrels, metadata=metadata, labels=labels, observers=observers, scale=as_scale(scale),
            order=order, reporter=talk,
        )
    )  # fmt: skip
    if model == "none" and collection.judgments is None:
        raise ProbevalError("Runs need judgments (--qrels FILE), or a model that works without them (--model NAME).")
    for name in names:
        yield name, collection
