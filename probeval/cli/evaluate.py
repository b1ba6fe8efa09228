"""``probeval evaluate``: score and rank systems, with any number of judgments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.classical import judged_scores, note_left_out, required_judgments
from probeval.api.evaluate import EvaluationInputs, judged_systems
from probeval.api.evaluation import Evaluation, Evaluations
from probeval.api.evidence import as_scale
from probeval.cli.commands import Output, verb
from probeval.cli.options import Metrics, OutputFormat, PerQuery
from probeval.cli.output import Messages, check_picture, write_pictures
from probeval.data import with_reference
from probeval.data.files import refuse_partitions
from probeval.errors import ProbevalError
from probeval.metrics import Measured, Metric
from probeval.metrics.classical import Measurements
from probeval.records import About, is_given
from probeval.results import changed
from probeval.scores import Ranking
from probeval.scores.evaluate import as_metric
from probeval.scores.trust import MARGIN

if TYPE_CHECKING:
    from probeval.reliability.banding import BandStudy
    from probeval.reliability.tie_study import TieStudy

__all__ = ["evaluate"]


@dataclass(frozen=True, kw_only=True)
class EvaluationOutput(Output):
    """What is shown of an evaluation."""

    bands: Annotated[
        float | None, About("With --model none: the loss if ranks are known up to bands.", metavar="RATIO")
    ] = None
    ties: Annotated[bool, About("With --model none: the range of scores over all orders of tied documents.")] = False
    per_query: PerQuery = False
    trust: Annotated[bool, About("Show also how reliable each source of labels is, and whom it favours.")] = False
    margin: Annotated[float, About("With --trust: the shift of labels that counts as none.", metavar="SHARE")] = MARGIN
    earlier: Annotated[
        Path | None, About("With --trust: labels by an earlier version of the same labellers.", metavar="FILE")
    ] = None
    queries: Annotated[
        Path | None,
        About("With --trust and --docs: query texts, a table of query and text, or irds:ID.", metavar="FILE"),
    ] = None
    surprising: Annotated[
        int | None, About("Show also so many judgments that are the least expected, for review.", metavar="N", least=1)
    ] = None
    plot: Annotated[
        Path | None,
        About(
            "Plot the ranking by the first measure, FILE-pairs the pairs; with --ties ranges, with --bands p-values.",
            metavar="FILE",
        ),
    ] = None


@verb("Rank systems, with few judgments or none.")
def evaluate(
    given: EvaluationInputs, metric: Metrics, show: EvaluationOutput
) -> Evaluation | Evaluations | Measured | Measurements | BandStudy | TieStudy:
    """Rank systems with no judgments, some, or all, and quantify the uncertainty of the ranking.

    With --model none: classical evaluation, with the bounds that unjudged documents leave.

    Example: probeval evaluate runs/ --metric nDCG@10
    """
    messages = show.messages
    check_picture(show.plot)
    metrics = [as_metric(text) for text in metric]
    if given.model == "none":
        return _by_judgments(given, metrics, show)
    for name, asked in (("bands", show.bands is not None), ("ties", show.ties)):
        if asked:
            raise ProbevalError(f"--{name} is for judged documents alone. Add --model none.")
    if len(metrics) > 1 and str(given.rope).startswith("users="):
        raise ProbevalError("--rope users=SHARE is a difference of one measure. Give one --metric, or a number.")
    for name, asked in (("trust", show.trust), ("surprising", show.surprising is not None)):
        if asked and show.output_format is OutputFormat.csv:
            raise ProbevalError(f"--{name} prints several tables: use another format.")
    for name in ("earlier", "queries"):
        if getattr(show, name) is not None and not show.trust:
            raise ProbevalError(f"--{name} is for the report on labels. Add --trust.")
    first = messages.warned(given.run)
    others = messages.warned(lambda: [first.by(one, depth=given.depth) for one in metrics[1:]])
    for evaluation in (first, *others):
        for alike in messages.warned(evaluation.identical_systems):
            whose = f"identical lists for {evaluation.scores.metric}, so their scores are equal."
            messages.say(f"{', '.join(alike)}: {whose}")
    if show.plot is not None:
        _plot(first.ranking, show.plot, given.level, messages)
    if show.trust:
        report = messages.warned(
            lambda: first.trust(
                margin=show.margin, earlier=show.earlier, docs=given.docs, queries=show.queries, reporter=messages
            )
        )
        first = changed(first, trust_report=report)
    if show.surprising is not None:
        first = changed(first, surprises=messages.warned(lambda: first.surprising(show.surprising or 0)))
    found = tuple(changed(one, per_query=show.per_query) for one in (first, *others))
    return Evaluations(found) if others else found[0]


def _plot(ranking: Ranking, path: Path, level: float, messages: Messages) -> None:
    from probeval.plots import plot_pairs, plot_ranking

    pairs = path.with_name(f"{path.stem}-pairs{path.suffix}")
    write_pictures({path: plot_ranking(ranking, level=level), pairs: plot_pairs(ranking)}, messages)


def _by_judgments(
    given: EvaluationInputs, metrics: list[Metric], show: EvaluationOutput
) -> Measured | Measurements | BandStudy | TieStudy:
    """Evaluation by the judgments alone, without a model."""
    for path in given.runs:
        refuse_partitions(path)
    for name in ("trust", "surprising"):
        if getattr(show, name):
            raise ProbevalError(f"--{name} rests on a model of relevance. Name a model.")
    if show.ties and show.bands is not None:
        raise ProbevalError("--ties and --bands are two studies. Leave out one.")
    drawn = show.plot is not None and not show.ties and show.bands is None
    for name, shown in (("plot", drawn), ("rope", is_given(given, "rope"))):
        if shown:
            raise ProbevalError(f"--{name} is for probabilities, and --model none has none. Name a model.")
    given.refuse("judgments")
    if given.outside:
        raise ProbevalError("--outside is for a model; with --model none only judged pairs count. Name a model.")
    if given.qrels is None:
        raise ProbevalError("Evaluation without a model needs judgments: give --qrels FILE.")
    if show.ties or show.bands is not None:
        return _of_order(given, metrics, show)
    return _classical(given, metrics, show)


def _classical(given: EvaluationInputs, metrics: list[Metric], show: EvaluationOutput) -> Measured | Measurements:
    """Classical evaluation, with the bounds that unjudged documents leave."""
    scale, messages = as_scale(given.scale), show.messages
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
    found = tuple(changed(one, per_query=show.per_query) for one in results)
    return Measurements(found) if len(found) > 1 else found[0]


def _of_order(given: EvaluationInputs, metrics: list[Metric], show: EvaluationOutput) -> BandStudy | TieStudy:
    """What the order of documents leaves open: of tied ones, or of those in one band of ranks."""
    from probeval.reliability import band_study, tie_study

    if len(metrics) > 1:
        raise ProbevalError(f"--{'ties' if show.ties else 'bands'} takes one --metric.")
    scale = as_scale(given.scale)
    collection = with_reference(given.collection(given.runs, scale=scale, reporter=show.messages), given.reference)
    judgments = required_judgments(collection)
    grades = judgments.scale(scale)
    grades = grades if given.gain is None else grades.with_gain(given.gain)
    if show.bands is None:
        study = tie_study(collection.runs, judgments, metrics[0], scale=grades, depth=given.depth)
        if show.plot is not None:
            from probeval.plots import plot_ties

            write_pictures({show.plot: plot_ties(study)}, show.messages)
        return study
    bands = band_study(collection.runs, judgments, metrics[0], show.bands, scale=grades, depth=given.depth)
    if show.plot is not None:
        from probeval.plots import plot_p_values

        names = (f"{metrics[0]}", f"{metrics[0]} in bands of ratio {show.bands:g}")
        write_pictures({show.plot: plot_p_values(*bands.p_values, names=names)}, show.messages)
    return bands
