"""``probeval evaluate``: score and rank systems, with any number of judgments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd

from probeval.api.classical import judged_scores, note_left_out, required_judgments
from probeval.api.evaluate import EvaluationInputs, judged_systems
from probeval.api.evidence import as_scale
from probeval.cli.commands import Output, verb
from probeval.cli.options import Metrics, OutputFormat, PerQuery
from probeval.cli.output import Messages, check_picture, write, write_csv, write_json, write_pictures, write_table
from probeval.data import with_reference
from probeval.data.files import refuse_partitions
from probeval.errors import ProbevalError
from probeval.metrics import Metric
from probeval.records import About, is_given
from probeval.scores import Ranking
from probeval.scores.evaluate import as_metric
from probeval.scores.trust import MARGIN

if TYPE_CHECKING:
    from probeval.api import Evaluation
    from probeval.scores import TrustReport

__all__ = ["evaluate"]


@dataclass(frozen=True, kw_only=True)
class EvaluationOutput(Output):
    """What is shown of an evaluation."""

    bands: Annotated[
        float | None, About("With --model none: the loss if ranks are known up to bands.", metavar="RATIO")
    ] = None
    per_query: PerQuery = False
    trust: Annotated[bool, About("Show also how reliable each source of labels is, and whom it favours.")] = False
    margin: Annotated[float, About("With --trust: the shift of labels that counts as none.", metavar="SHARE")] = MARGIN
    plot: Annotated[
        Path | None,
        About("Plot the ranking by the first measure; FILE-pairs shows the pairs.", metavar="FILE"),
    ] = None


@verb("Rank systems, with few judgments or none.")
def evaluate(given: EvaluationInputs, metric: Metrics, show: EvaluationOutput) -> None:
    """Rank systems with no judgments, some, or all, and quantify the uncertainty of the ranking.

    With --model none: classical evaluation, with the bounds that unjudged documents leave.

    Example: probeval evaluate runs/ --metric nDCG@10
    """
    messages, output_format = show.messages, show.output_format
    check_picture(show.plot)
    metrics = [as_metric(text) for text in metric]
    if given.model == "none":
        _by_judgments(given, metrics, show)
        return
    if show.bands is not None:
        raise ProbevalError("--bands is for judged documents alone. Add --model none.")
    if len(metrics) > 1 and str(given.rope).startswith("users="):
        raise ProbevalError("--rope users=SHARE is a difference of one measure. Give one --metric, or a number.")
    first = messages.warned(given.run)
    evaluations = messages.warned(lambda: [first, *(first.by(one, depth=given.depth) for one in metrics[1:])])
    for evaluation in evaluations:
        for alike in messages.warned(evaluation.identical_systems):
            messages.say(
                f"{', '.join(alike)}: identical lists for {evaluation.scores.metric}, so their scores are equal."
            )
    if show.trust and output_format is OutputFormat.csv:
        raise ProbevalError("--trust prints several tables: use another format.")
    if show.plot is not None:
        _plot(first.ranking, show.plot, given.level, messages)
    report = messages.warned(lambda: first.trust(margin=show.margin, reporter=messages)) if show.trust else None
    _write(evaluations, show.per_query, output_format, report, messages)


def _write(
    evaluations: list[Evaluation],
    per_query: bool,
    output_format: OutputFormat,
    trust: TrustReport | None,
    messages: Messages,
) -> None:
    alone = len(evaluations) == 1
    if output_format is OutputFormat.json:
        for evaluation in evaluations:
            _say(evaluation, alone, messages)
        documents = [evaluation.to_dict(per_query=per_query) for evaluation in evaluations]
        if trust is not None:
            documents[0]["trust"] = trust.to_dict()
        write_json(documents[0] if alone else {"results": documents})
        return
    for i, evaluation in enumerate(evaluations):
        metric, frame = str(evaluation.scores.metric), evaluation.to_frame(per_query=per_query)
        if output_format is not OutputFormat.csv and i:
            messages.say("")
        _say(evaluation, alone, messages)
        if output_format is OutputFormat.csv:
            write_csv(frame if alone else frame.assign(metric=metric), header=i == 0)
        else:
            write_table(frame, output_format, title=metric)
    if trust is not None:
        for view in trust.tables():
            messages.say("")
            write_table(view.frame, output_format, title=view.title)
        for sentence in trust.sentences():
            messages.say(sentence)


def _say(evaluation: Evaluation, alone: bool, messages: Messages) -> None:
    """Print the headline, the ideal list and the ties."""
    headline, *others = evaluation.ranking.sentences(level=evaluation.level)
    messages.say(headline if alone else f"{evaluation.scores.metric}: {headline}")
    for sentence in others:
        messages.say(sentence)


def _plot(ranking: Ranking, path: Path, level: float, messages: Messages) -> None:
    from probeval.plots import plot_pairs, plot_ranking

    pairs = path.with_name(f"{path.stem}-pairs{path.suffix}")
    write_pictures({path: plot_ranking(ranking, level=level), pairs: plot_pairs(ranking)}, messages)


def _by_judgments(given: EvaluationInputs, metrics: list[Metric], show: EvaluationOutput) -> None:
    """Evaluation by the judgments alone, without a model."""
    for path in given.runs:
        refuse_partitions(path)
    for name, shown in (("plot", show.plot is not None), ("rope", is_given(given, "rope"))):
        if shown:
            raise ProbevalError(f"--{name} is for probabilities, and --model none has none. Name a model.")
    given.refuse("judgments")
    if given.outside:
        raise ProbevalError("--outside is for a model; with --model none only judged pairs count. Name a model.")
    if given.qrels is None:
        raise ProbevalError("Evaluation without a model needs judgments: give --qrels FILE.")
    if show.bands is not None:
        _bands(given, metrics, show.bands, show)
    else:
        _classical(given, metrics, show)


def _classical(given: EvaluationInputs, metrics: list[Metric], show: EvaluationOutput) -> None:
    """Classical evaluation, with the bounds that unjudged documents leave."""
    scale, messages, output_format = as_scale(given.scale), show.messages, show.output_format
    collection = with_reference(given.collection(given.runs, scale=scale, reporter=messages), given.reference)
    if given.systems == "judged":
        collection = judged_systems(collection, given.depth or metrics[0].cutoff or collection.runs.depth, messages)
    results = [
        judged_scores(collection, metric, scale=scale, gain=given.gain, depth=given.depth, aggregate=given.aggregate)
        for metric in metrics
    ]
    first = results[0]
    n, inferred = len(required_judgments(collection)), " (inferred)" if scale is None else ""
    messages.say(
        f"{len(first.systems)} systems, {len(first.queries)} queries, {n:,} judgments, scale {first.scale}{inferred}."
    )
    note_left_out(collection, first, messages)
    if output_format is OutputFormat.json:
        documents = [result.to_dict(per_query=show.per_query) for result in results]
        write_json(documents[0] if len(documents) == 1 else {"results": documents})
        return
    frames = [(result, result.to_frame(per_query=show.per_query)) for result in results]
    if output_format is OutputFormat.csv:
        write_csv(pd.concat([f.assign(metric=str(r.metric)) for r, f in frames]) if len(frames) > 1 else frames[0][1])
        return
    for i, (result, frame) in enumerate(frames):
        write_table(frame, output_format, title=("\n" if i else "") + str(result.metric))


def _bands(given: EvaluationInputs, metrics: list[Metric], ratio: float, show: EvaluationOutput) -> None:
    """What systems lose if documents are only placed in the right band of ranks."""
    from probeval.reliability import band_study

    if len(metrics) > 1:
        raise ProbevalError("--bands takes one --metric.")
    scale, messages = as_scale(given.scale), show.messages
    collection = with_reference(given.collection(given.runs, scale=scale, reporter=messages), given.reference)
    judgments = required_judgments(collection)
    grades = judgments.scale(scale)
    grades = grades if given.gain is None else grades.with_gain(given.gain)
    study = band_study(collection.runs, judgments, metrics[0], ratio, scale=grades, depth=given.depth)
    for sentence in study.sentences():
        messages.say(sentence)
    write(study.to_frame(), study.to_dict(), show.output_format, title=study.tables()[0].title)
