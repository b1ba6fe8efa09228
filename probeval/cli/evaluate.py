"""``probeval evaluate``: score systems on what is judged."""

from __future__ import annotations

from typing import Annotated

import pandas as pd
import typer

from probeval.cli.options import (
    Depth,
    Format,
    Gain,
    Metrics,
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
)
from probeval.cli.output import Talk, write_csv, write_json, write_table
from probeval.data import Collection, Judgments, Runs, Scale, read_judgments, read_runs
from probeval.data.collection import JUDGED
from probeval.errors import ProbevalError
from probeval.metrics import Measured, measure, parse

__all__ = ["evaluate"]


def evaluate(
    runs: RunPaths,
    metric: Metrics,
    qrels: Qrels = None,
    model: Annotated[
        str, typer.Option("--model", help="none: classical evaluation, the unjudged worth nothing.")
    ] = "none",
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    systems: SystemChoice = Systems.all,
    order: Order = OrderName.trec_eval,
    per_query: PerQuery = False,
    form: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Score systems by one or more measures, with the bounds that unjudged documents leave.

    Example: probeval evaluate runs/ --qrels qrels.txt --metric nDCG@10 --metric AP
    """
    talk = Talk(quiet=quiet)
    metrics = [parse(text) for text in metric]
    if model != "none":
        raise ProbevalError(f"No model {model!r}: this version knows 'none'.")
    if qrels is None:
        raise ProbevalError("Without a model there is nothing to go by but judgments: give --qrels FILE.")
    named = None if scale is None else Scale.parse(scale)
    judgments = read_judgments(qrels, scale=named)
    lists = read_runs(*runs, order=order.value, progress=talk.progress)
    grades = named or judgments.scale()
    grades = grades if gain is None else grades.with_gain(gain.value)
    results = []
    for one in metrics:
        chosen = (
            lists if systems is Systems.all else _judged(lists, judgments, depth or one.cutoff or lists.depth, talk)
        )
        results.append(measure(chosen, judgments, one, scale=grades, depth=depth))
    _say(talk, results[0], lists, judgments, inferred=named is None)
    if form is OutputFormat.json:
        documents = [result.document(per_query=per_query) for result in results]
        write_json(documents[0] if len(documents) == 1 else {"results": documents})
        return
    frames = [(result, result.frame() if per_query else result.table().reset_index()) for result in results]
    if form is OutputFormat.csv:
        write_csv(pd.concat([f.assign(metric=str(r.metric)) for r, f in frames]) if len(frames) > 1 else frames[0][1])
        return
    for i, (result, frame) in enumerate(frames):
        write_table(frame, title=("\n" if i else "") + str(result.metric))


def _judged(runs: Runs, judgments: Judgments, depth: int, talk: Talk) -> Runs:
    kept = Collection("", runs, judgments).judged_systems(depth).runs
    talk(f"{len(kept.systems)} of {len(runs.systems)} systems have more than {JUDGED:g} of their documents judged.")
    return kept


def _say(talk: Talk, result: Measured, runs: Runs, judgments: Judgments, *, inferred: bool) -> None:
    left_out = len(set(runs.queries) - set(result.queries))
    unanswered = len(set(judgments.pool.queries) - set(runs.queries))
    talk(
        f"{len(result.systems)} systems, {len(result.queries)} queries, {len(judgments):,} judgments, "
        f"scale {result.scale}{' (inferred)' if inferred else ''}."
    )
    if left_out:
        talk(f"{left_out} queries of the runs have no judgment and are left out.")
    if unanswered:
        talk(f"{unanswered} judged queries are answered by no run and are left out.")
