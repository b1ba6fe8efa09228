"""``probeval evaluate``: score and rank systems, with any number of judgments."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd
import typer

from probeval import api
from probeval.api.classical import judged_scores, note_left_out, required_judgments
from probeval.api.evaluate import judged_systems
from probeval.api.inputs import as_collection, as_scale
from probeval.cli.options import (
    Depth,
    DocsFile,
    Family,
    Format,
    Gain,
    Inference,
    InferenceName,
    Labels,
    Level,
    MagnitudesFile,
    MappingName,
    MetadataFile,
    Method,
    Metrics,
    ModelName,
    ObserversFile,
    Order,
    OrderName,
    OutputFormat,
    Outside,
    PartJobs,
    PerQuery,
    PoolPaths,
    PreferencesFile,
    Qrels,
    Quiet,
    Reference,
    Rope,
    RunPathsOrPartitions,
    ScaleName,
    Scheduler,
    Seed,
    SystemChoice,
    Systems,
    Target,
    TargetName,
    TeamsFile,
)
from probeval.cli.output import Talk, check_picture, write_csv, write_json, write_pictures, write_table
from probeval.data.files import refuse_partitions
from probeval.errors import ProbevalError
from probeval.metrics import Metric
from probeval.scores import Ranking
from probeval.scores.evaluate import as_metric
from probeval.selection.trust import MARGIN

if TYPE_CHECKING:
    from probeval.api import Evaluation
    from probeval.selection import TrustReport

__all__ = ["evaluate"]


class AggregateName(StrEnum):
    """Means over queries; the names of :data:`probeval.metrics.AGGREGATES`."""

    mean = "mean"
    gm = "gm"
    gm_eps = "gm-eps"
    gm_trec = "gm-trec"


def evaluate(
    runs: RunPathsOrPartitions,
    metric: Metrics,
    qrels: Qrels = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    preferences: PreferencesFile = None,
    magnitudes: MagnitudesFile = None,
    docs: DocsFile = None,
    pool: PoolPaths = None,
    teams: TeamsFile = None,
    outside: Outside = False,
    reference: Reference = None,
    model: ModelName = None,
    inference: Inference = InferenceName.laplace,
    level: Level = 0.95,
    rope: Rope = "0",
    mapping: MappingName = None,
    target: Target = TargetName.collection,
    method: Method = None,
    family: Family = None,
    draws: Annotated[
        int, typer.Option("--draws", min=2, help="The number of joint draws, if the method uses draws.")
    ] = 1000,
    aggregate: Annotated[
        AggregateName,
        typer.Option("--aggregate", help="The mean over queries: arithmetic or geometric."),
    ] = AggregateName.mean,
    bands: Annotated[
        float | None,
        typer.Option("--bands", metavar="RATIO", help="With --model none: the loss if ranks are known up to bands."),
    ] = None,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    systems: SystemChoice = Systems.all,
    order: Order = OrderName.trec_eval,
    per_query: PerQuery = False,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Show also how reliable each source of labels is, and whom it favours."),
    ] = False,
    margin: Annotated[
        float,
        typer.Option("--margin", metavar="SHARE", help="With --trust: the shift of labels that counts as none."),
    ] = MARGIN,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Plot the ranking by the first measure; FILE-pairs shows the pairs."
        ),
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    jobs: PartJobs = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Rank systems with no judgments, some, or all, and quantify the uncertainty of the ranking.

    With --model none: classical evaluation, with the bounds that unjudged documents leave.

    Example: probeval evaluate runs/ --metric nDCG@10
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    metrics = [as_metric(text) for text in metric]
    if model == "none":
        for path in runs:
            refuse_partitions(path)
        if plot is not None:
            raise ProbevalError("--plot shows probabilities, and --model none has none. Name a model.")
        if rope != "0":
            raise ProbevalError("--rope is for probabilities, and --model none has none. Name a model.")
        if pool is not None or outside:
            raise ProbevalError("--pool and --outside are for a model; with --model none only judged pairs count.")
        if preferences is not None or magnitudes is not None:
            raise ProbevalError("--preferences and --magnitudes are for a model; with --model none only grades count.")
        if teams is not None:
            raise ProbevalError("--teams is for a model; with --model none systems have no teams. Name a model.")
        if bands is not None:
            _bands(runs, metrics, bands, qrels, scale, gain, depth, order, output_format, talk)
            return
        _classical(runs, metrics, aggregate, qrels, scale, gain, depth, systems, order, per_query, output_format, talk)
        return
    if bands is not None:
        raise ProbevalError("--bands is for judged documents alone. Add --model none.")
    if len(metrics) > 1 and rope.startswith("users="):
        raise ProbevalError("--rope users=SHARE is a difference of one measure. Give one --metric, or a number.")
    first = talk.warned(
        lambda: api.evaluate(
            runs,
            metrics[0],
            qrels=qrels,
            metadata=metadata,
            labels=labels,
            observers=observers,
            preferences=preferences,
            magnitudes=magnitudes,
            docs=docs,
            pool=pool,
            teams=teams,
            outside=outside,
            reference=reference,
            model=model,
            inference=inference.value,
            scale=scale,
            gain=gain,
            depth=depth,
            systems=systems.value,
            target=target.value,
            method=method and method.value,
            family=family and family.value,
            draws=draws,
            aggregate=aggregate.value,
            level=level,
            rope=rope,
            mapping=mapping,
            order=order.value,
            seed=seed,
            jobs=jobs,
            scheduler=scheduler,
            progress=talk.progress,
            follow=talk.track,
            say=talk,
            expect=talk.expect,
        )
    )
    evaluations = talk.warned(lambda: [first, *(first.by(one, depth=depth) for one in metrics[1:])])
    for evaluation in evaluations:
        for alike in talk.warned(evaluation.identical_systems):
            systems_ = ", ".join(alike)
            talk(f"{systems_}: identical lists for {evaluation.scores.metric}, so their scores are equal.")
    if trust and output_format is OutputFormat.csv:
        raise ProbevalError("--trust prints several tables: use another format.")
    if plot is not None:
        _plot(first.ranking, plot, level, talk)
    report = None
    if trust:
        report = talk.warned(lambda: first.trust(margin=margin, progress=lambda work: talk.track(work, "Alternatives")))
    _write(evaluations, per_query, output_format, report, talk)


def _write(
    evaluations: list[Evaluation], per_query: bool, output_format: OutputFormat, trust: TrustReport | None, talk: Talk
) -> None:
    alone = len(evaluations) == 1
    if output_format is OutputFormat.json:
        for evaluation in evaluations:
            _say(evaluation, alone, talk)
        documents = [evaluation.to_dict(per_query=per_query) for evaluation in evaluations]
        if trust is not None:
            documents[0]["trust"] = trust.to_dict()
        write_json(documents[0] if alone else {"results": documents})
        return
    for i, evaluation in enumerate(evaluations):
        metric, frame = str(evaluation.scores.metric), evaluation.to_frame(per_query=per_query)
        if output_format is not OutputFormat.csv and i:
            talk("")
        _say(evaluation, alone, talk)
        if output_format is OutputFormat.csv:
            write_csv(frame if alone else frame.assign(metric=metric), header=i == 0)
        else:
            write_table(frame, output_format, title=metric)
    if trust is not None:
        for view in trust.views():
            talk("")
            write_table(view.frame, output_format, title=view.title)
        for sentence in trust.sentences():
            talk(sentence)


def _say(evaluation: Evaluation, alone: bool, talk: Talk) -> None:
    """Print the headline, the ideal list and the ties."""
    headline, *others = evaluation.ranking.sentences(level=evaluation.level)
    talk(headline if alone else f"{evaluation.scores.metric}: {headline}")
    for sentence in others:
        talk(sentence)


def _plot(ranking: Ranking, path: Path, level: float, talk: Talk) -> None:
    from probeval.plots import plot_pairs, plot_ranking

    pairs = path.with_name(f"{path.stem}-pairs{path.suffix}")
    write_pictures({path: plot_ranking(ranking, level=level), pairs: plot_pairs(ranking)}, talk)


def _classical(
    runs: list[str],
    metrics: list[Metric],
    aggregate: AggregateName,
    qrels: Path | None,
    scale: str | None,
    gain: str | None,
    depth: int | None,
    systems: Systems,
    order: OrderName,
    per_query: bool,
    output_format: OutputFormat,
    talk: Talk,
) -> None:
    """Classical evaluation by the judgments alone, with the bounds that unjudged documents leave."""
    if qrels is None:
        raise ProbevalError("Evaluation without a model needs judgments: give --qrels FILE.")
    collection = as_collection(runs, qrels=qrels, scale=as_scale(scale), order=order.value, progress=talk.progress)
    if systems is Systems.judged:
        collection = judged_systems(collection, depth or metrics[0].cutoff or collection.runs.depth, talk)
    results = [
        judged_scores(collection, metric, scale=as_scale(scale), gain=gain, depth=depth, aggregate=aggregate.value)
        for metric in metrics
    ]
    first = results[0]
    n, inferred = len(required_judgments(collection)), " (inferred)" if scale is None else ""
    talk(f"{len(first.systems)} systems, {len(first.queries)} queries, {n:,} judgments, scale {first.scale}{inferred}.")
    note_left_out(collection, first, talk)
    if output_format is OutputFormat.json:
        documents = [result.to_dict(per_query=per_query) for result in results]
        write_json(documents[0] if len(documents) == 1 else {"results": documents})
        return
    frames = [(result, result.to_frame(per_query=per_query)) for result in results]
    if output_format is OutputFormat.csv:
        write_csv(pd.concat([f.assign(metric=str(r.metric)) for r, f in frames]) if len(frames) > 1 else frames[0][1])
        return
    for i, (result, frame) in enumerate(frames):
        write_table(frame, output_format, title=("\n" if i else "") + str(result.metric))


def _bands(
    runs: list[str],
    metrics: list[Metric],
    ratio: float,
    qrels: Path | None,
    scale: str | None,
    gain: str | None,
    depth: int | None,
    order: OrderName,
    output_format: OutputFormat,
    talk: Talk,
) -> None:
    """What systems lose if documents are only placed in the right band of ranks."""
    from probeval.reliability import band_study

    if qrels is None:
        raise ProbevalError("Bands are compared by judgments: give --qrels FILE.")
    if len(metrics) > 1:
        raise ProbevalError("--bands takes one --metric.")
    collection = as_collection(runs, qrels=qrels, scale=as_scale(scale), order=order.value, progress=talk.progress)
    judgments = required_judgments(collection)
    grades = judgments.scale(as_scale(scale))
    grades = grades if gain is None else grades.with_gain(gain)
    study = band_study(collection.runs, judgments, metrics[0], ratio, scale=grades, depth=depth)
    for sentence in study.sentences():
        talk(sentence)
    if output_format is OutputFormat.json:
        write_json(study.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(study.to_frame())
    else:
        write_table(study.to_frame(), output_format, title=study.views()[0].title)
