"""What the studies of reliability share: their options, and the scores that a command names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval.cli.options import GainName
from probeval.cli.output import Talk
from probeval.cli.sources import collect
from probeval.data import Collection, Scale
from probeval.data.files import suffix
from probeval.errors import ProbevalError
from probeval.metrics import Metric, measure
from probeval.scores.evaluate import as_metric
from probeval.streams import stream

if TYPE_CHECKING:
    from probeval.reliability import Design, GStudy, Observed

__all__ = ["Source", "Studied", "studied"]


class StudyMethod(StrEnum):
    """How components are estimated; the names of :data:`probeval.reliability.METHODS`."""

    anova = "anova"
    reml = "reml"
    bayes = "bayes"


class IntervalName(StrEnum):
    """Where intervals come from; the names of :data:`probeval.reliability.INTERVALS`."""

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
        help="What speaks for the unjudged: none (worth nothing), a model's name or a card's path.",
    ),
]
DesignText = Annotated[
    str,
    typer.Option("--design", metavar="DESIGN", help="s x q, s x (h:q), s x q x h, or columns: stemmer x model x q."),
]
Components = Annotated[
    str | None,
    typer.Option("--components", metavar="PATTERN", help="Split names of systems: stop_stemmer_model, for example."),
]
StudyMethodOption = Annotated[
    StudyMethod, typer.Option("--method", help="Analysis of variance, restricted maximum likelihood, or PyMC.")
]
Interval = Annotated[
    IntervalName | None,
    typer.Option("--interval", help="Where intervals come from: the best that applies when not given."),
]
Drop = Annotated[float, typer.Option("--drop", min=0, max=0.99, help="The share of worst systems to leave out.")]
JointDraws = Annotated[
    int, typer.Option("--draws", min=2, help="How many joint draws of uncertain scores, and sets of a bootstrap.")
]


@dataclass(frozen=True)
class Source:
    """What a command named."""

    paths: Sequence[str]
    metrics: Sequence[str]
    qrels: Path | None
    metadata: Path | None
    labels: Path | None
    model: str
    scale: str | None
    gain: GainName | None
    depth: int | None
    order: str
    design: str
    components: str | None
    method: StudyMethod
    interval: IntervalName | None
    drop: float
    draws: int
    seed: int


@dataclass(frozen=True)
class Studied:
    """A G-study, the measure that its scores are of, and the pairs that systems retrieved for a query."""

    name: str | None
    study: GStudy
    pool: float | None


def studied(source: Source, talk: Talk) -> Iterator[Studied]:
    """The G-study of a table of scores, or of runs by each measure."""
    from probeval.reliability import gstudy

    for name, scores, pool in _scores(source, talk):
        whole = scores if source.components is None else scores.split_systems(source.components)
        run = partial(
            gstudy, whole, method=source.method.value, interval=source.interval and source.interval.value,
            drop=source.drop, n=source.draws, rng=stream(source.seed),
        )  # fmt: skip
        yield Studied(name, talk.warned(run), pool)


def _scores(source: Source, talk: Talk) -> Iterator[tuple[str | None, Observed, float | None]]:
    """The scores of a table, or of runs by each measure with the pairs that were retrieved for a query."""
    from probeval.reliability import Design, read_scores

    design = Design.parse(source.design)
    is_table = len(source.paths) == 1 and bool(suffix(Path(source.paths[0])))
    if is_table and not source.metrics:
        yield None, read_scores(source.paths[0], design), None
        return
    if not source.metrics:
        raise ProbevalError("Runs need a measure (--metric nDCG@10); a single table (.csv) is read as scores.")
    metrics = [as_metric(text) for text in source.metrics]
    named = None if source.scale is None else Scale.parse(source.scale)
    collection = collect(
        source.paths, qrels=source.qrels, metadata=source.metadata, labels=source.labels, scale=named,
        order=source.order, talk=talk,
    )  # fmt: skip
    route = _judged if source.model == "none" else _modelled
    for metric in metrics:
        yield str(metric), *route(source, collection, metric, design, named, talk)


def _judged(
    source: Source, collection: Collection, metric: Metric, design: Design, named: Scale | None, talk: Talk
) -> tuple[Observed, float]:
    """Scores by the judgments alone; each assessor's own where the design has assessors."""
    from probeval.reliability import observe, observe_assessors

    if collection.judgments is None:
        raise ProbevalError("Runs need judgments (--qrels FILE), or a model that speaks without them (--model NAME).")
    scale = collection.judgments.scale(named)
    scale = scale if source.gain is None else scale.with_gain(source.gain.value)
    found = measure(collection.runs, collection.judgments, metric, scale=scale, depth=source.depth)
    if found.judged_pairs < found.pool:
        talk(
            f"{metric}: {found.pool - found.judged_pairs:,} of {found.pool:,} pairs are not judged and worth nothing. "
            "--model NAME lets a model speak for them."
        )
    pool = found.pool / len(found.queries)
    if "assessor" not in design.conditions:
        return observe(found), pool
    runs = collection.runs if source.depth is None else collection.runs.top(source.depth)
    return observe_assessors(runs, collection.judgments, metric, design, scale=scale), pool


def _modelled(
    source: Source, collection: Collection, metric: Metric, design: Design, named: Scale | None, talk: Talk
) -> tuple[Observed, float]:
    """Joint draws of the scores, with a model for what is not judged."""
    from probeval.relevance import choose_model
    from probeval.reliability import observe
    from probeval.scores import score_collection

    if "assessor" in design.conditions:
        raise ProbevalError("A model speaks of relevance, not of assessors: use --model none, or --design 's x q'.")
    choice = choose_model(source.model, collection, scale=named)
    talk(f"Model {choice.name}: {choice.why} Scale {choice.scale} ({choice.scale_from}).")
    seen = choice.fitted_on(collection)
    if seen:
        talk(f"These judgments are those of {seen}, which {choice.name} was fitted on: it has seen the answers.")
    scale = choice.scale if source.gain is None else choice.scale.with_gain(source.gain.value)
    (scores,) = talk.warned(
        lambda: score_collection(
            choice.model, collection, [metric], depth=source.depth, scale=scale, seed=source.seed,
            method="draws", per_query=True, n=source.draws,
        )
    )  # fmt: skip
    talk(f"{metric}: {scores.judged:,} of {scores.pool:,} pairs judged, {source.draws:,} joint draws.")
    return observe(scores), scores.pool / len(scores.queries)
