"""``probeval evaluate``: score and rank systems, with whatever judgments there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from probeval.cli.options import (
    Depth,
    Family,
    Format,
    Gain,
    Inference,
    InferenceName,
    Labels,
    Level,
    MetadataFile,
    Method,
    Metrics,
    ModelName,
    Order,
    OrderName,
    OutputFormat,
    PerQuery,
    Qrels,
    Quiet,
    RunPaths,
    ScaleName,
    Seed,
    SystemChoice,
    Systems,
    Target,
    TargetName,
)
from probeval.cli.output import Talk, check_picture, write_csv, write_json, write_pictures, write_table
from probeval.cli.sources import collect, say_unanswered, say_unjudged
from probeval.data import Collection, Scale
from probeval.data.collection import JUDGED
from probeval.errors import ProbevalError
from probeval.metrics import Measured, Metric, measure
from probeval.relevance import choose_model
from probeval.scores import Ranking, score_collection
from probeval.scores.evaluate import as_metric
from probeval.streams import Purpose, stream
from probeval.ties import TIE

__all__ = ["evaluate"]


def evaluate(
    runs: RunPaths,
    metric: Metrics,
    qrels: Qrels = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    model: ModelName = None,
    inference: Inference = InferenceName.laplace,
    level: Level = 0.95,
    target: Target = TargetName.collection,
    method: Method = None,
    family: Family = None,
    draws: Annotated[int, typer.Option("--draws", min=2, help="How many joint draws, where draws are made.")] = 1000,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    systems: SystemChoice = Systems.all,
    order: Order = OrderName.trec_eval,
    per_query: PerQuery = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the ranking by the first measure, and beside it FILE-pairs."),
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Rank systems and say how sure the ranking is: with no judgments, with some, or with all.

    With --model none: classical evaluation, with the bounds that unjudged documents leave.

    Example: probeval evaluate runs/ --metric nDCG@10
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    metrics = [as_metric(text) for text in metric]
    named = None if scale is None else Scale.parse(scale)
    collection = collect(runs, qrels=qrels, metadata=metadata, labels=labels, scale=named, order=order.value, talk=talk)
    if systems is Systems.judged:
        collection = _judged(collection, depth or metrics[0].cutoff or collection.runs.depth, talk)
    if model == "none":
        _classical(collection, metrics, named, gain and gain.value, depth, per_query, output_format, talk, plot)
        return
    _refuse_strangers(collection)
    choice = choose_model(model, collection, scale=named, inference=inference.value)
    talk(f"Model {choice.name}: {choice.why} Scale {choice.scale} ({choice.scale_from}).")
    seen = choice.fitted_on(collection)
    if seen:
        talk(f"These judgments are those of {seen}, which {choice.name} was fitted on: it has seen the answers.")
    _say_open(talk, collection)
    grades = choice.scale if gain is None else choice.scale.with_gain(gain.value)
    scored = talk.warned(
        lambda: score_collection(
            choice.model,
            collection,
            metrics,
            depth=depth,
            scale=grades,
            seed=seed,
            method=method and method.value,
            target=target.value,
            family=family and family.value,
            n=draws,
        )
    )
    rankings = [scores.ranking(rng=stream(seed, Purpose.RANKING)) for scores in scored]
    for ranking in rankings:
        _say_alike(talk, collection, depth or ranking.scores.metric.cutoff or collection.runs.depth, ranking)
    if plot is not None:
        _plot(rankings[0], plot, level, talk)
    _write_rankings(rankings, choice.name, level, per_query, output_format, talk)


def _write_rankings(
    rankings: list[Ranking], model: str, level: float, per_query: bool, output_format: OutputFormat, talk: Talk
) -> None:
    if output_format is OutputFormat.json:
        documents = []
        for ranking in rankings:
            _say_known(talk, ranking, level, alone=len(rankings) == 1)
            document = ranking.to_dict(level=level, per_query=per_query)
            documents.append({"metric": document["metric"], "model": model, **document})
        write_json(documents[0] if len(documents) == 1 else {"results": documents})
        return
    for i, ranking in enumerate(rankings):
        scores = ranking.scores
        frame = scores.to_frame(per_query=True) if per_query else ranking.to_frame(level=level)
        if output_format is OutputFormat.table and i:
            talk("")
        _say_known(talk, ranking, level, alone=len(rankings) == 1)
        if output_format is OutputFormat.csv:
            write_csv(frame.assign(metric=str(scores.metric)) if len(rankings) > 1 else frame, header=i == 0)
        else:
            write_table(frame, title=str(scores.metric))


def _say_known(talk: Talk, ranking: Ranking, level: float, *, alone: bool) -> None:
    """What is judged, what the intervals are of, and how sure the order is."""
    scores = ranking.scores
    sure = f"mean confidence {ranking.confidence:.3f}, expected tau {ranking.expected_tau:.3f}"
    talk(
        f"{'' if alone else f'{scores.metric}: '}{scores.judged:,} of {scores.pool:,} pairs judged; "
        f"{level:.0%} intervals for "
        f"{'these queries' if scores.target == 'collection' else 'the population of queries'}; "
        f"{sure if len(scores.systems) > 1 else 'one system, and nothing to compare it with'}."
    )


def _say_alike(talk: Talk, collection: Collection, depth: int, ranking: Ranking) -> None:
    """Which systems retrieved the same documents and are for certain level by this measure."""
    scores = ranking.scores
    top = collection.runs.pairs[:, :, : min(depth, scores.metric.cutoff or depth)]
    mean, sd = scores.difference_moments()
    groups: dict[bytes, list[int]] = {}
    for system, docs in enumerate(np.sort(top, axis=2)):
        groups.setdefault(docs.tobytes(), []).append(system)
    for group in groups.values():
        alike = [s for s in group if sd[group[0], s] == 0 and abs(mean[group[0], s]) <= TIE]
        if len(alike) > 1:
            names = ", ".join(scores.systems[s] for s in alike)
            talk(f"The lists of {names} are the same to {scores.metric}: these systems cannot differ.")


def _plot(ranking: Ranking, path: Path, level: float, talk: Talk) -> None:
    from probeval.plots import plot_pairs, plot_ranking

    pairs = path.with_name(f"{path.stem}-pairs{path.suffix}")
    write_pictures({path: plot_ranking(ranking, level=level), pairs: plot_pairs(ranking)}, talk)


def _classical(
    collection: Collection,
    metrics: list[Metric],
    named: Scale | None,
    gain: str | None,
    depth: int | None,
    per_query: bool,
    output_format: OutputFormat,
    talk: Talk,
    plot: Path | None,
) -> None:
    judgments = collection.judgments
    if judgments is None:
        raise ProbevalError("Without a model there is nothing to go by but judgments: give --qrels FILE.")
    if plot is not None:
        raise ProbevalError("--plot draws probabilities, and --model none has none. Name a model.")
    grades = judgments.scale(named)
    grades = grades if gain is None else grades.with_gain(gain)
    results = [measure(collection.runs, judgments, one, scale=grades, depth=depth) for one in metrics]
    _say(talk, results[0], collection, inferred=named is None)
    if output_format is OutputFormat.json:
        documents = [result.to_dict(per_query=per_query) for result in results]
        write_json(documents[0] if len(documents) == 1 else {"results": documents})
        return
    frames = [(result, result.to_frame(per_query=per_query)) for result in results]
    if output_format is OutputFormat.csv:
        write_csv(pd.concat([f.assign(metric=str(r.metric)) for r, f in frames]) if len(frames) > 1 else frames[0][1])
        return
    for i, (result, frame) in enumerate(frames):
        write_table(frame, title=("\n" if i else "") + str(result.metric))


def _judged(collection: Collection, depth: int, talk: Talk) -> Collection:
    kept = collection.judged_systems(depth)
    n, all_ = len(kept.runs.systems), len(collection.runs.systems)
    talk(f"{n} of {all_} systems have more than {JUDGED:g} of their documents judged.")
    return replace(kept, name=collection.name)


def _say(talk: Talk, result: Measured, collection: Collection, *, inferred: bool) -> None:
    assert collection.judgments is not None
    talk(
        f"{len(result.systems)} systems, {len(result.queries)} queries, {len(collection.judgments):,} judgments, "
        f"scale {result.scale}{' (inferred)' if inferred else ''}."
    )
    say_unjudged(talk, collection, result.queries)


def _refuse_strangers(collection: Collection) -> None:
    """Judgments of other queries than those of the runs are a mistake."""
    if collection.judgments is None or not len(collection.judgments):
        return
    asked, judged = collection.runs.queries, collection.judgments.pool.queries
    if not set(asked) & set(judged):
        raise ProbevalError(
            f"no query in common: the runs answer {asked[0]!r} and others, the judgments {judged[0]!r} and others."
        )


def _say_open(talk: Talk, collection: Collection) -> None:
    """Queries on one side alone, where a model speaks for the unjudged."""
    if collection.judgments is None:
        return
    unjudged = set(collection.runs.queries) - set(collection.judgments.pool.queries)
    if unjudged:
        talk(f"{len(unjudged)} queries of the runs have no judgment: the model alone speaks for them.")
    say_unanswered(talk, collection)
