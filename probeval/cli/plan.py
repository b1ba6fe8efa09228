"""``probeval plan``: what it takes to reach a target, and the cheapest way there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probeval import api
from probeval.cli.options import (
    Format,
    Gain,
    Jobs,
    Labels,
    MetadataFile,
    Metric,
    ModelName,
    Order,
    OrderName,
    OutputFormat,
    Qrels,
    Quiet,
    RunPaths,
    ScaleName,
    Seed,
    parse_counts,
)
from probeval.cli.output import Talk, check_picture, write_csv, write_json, write_pictures, write_table

__all__ = ["plan"]

PILOT, PILOT_SHARE = 50, 0.03  # the least number of pairs of a pilot, and its share of a large pool


def plan(
    runs: RunPaths,
    metric: Metric,
    target: Annotated[
        str,
        typer.Option(
            "--target", metavar="TARGETS", help="confidence= halfwidth= erho2= phi= power=; all of them must hold."
        ),
    ] = "confidence=.95",
    qrels: Qrels = None,
    queries: Annotated[
        str | None, typer.Option("--queries", metavar="N,N,..", help="Numbers of queries; that of the runs by default.")
    ] = None,
    depths: Annotated[
        str | None, typer.Option("--depths", metavar="K,K,..", help="Depths of the pool; the metric's by default.")
    ] = None,
    assessors: Annotated[
        str, typer.Option("--assessors", metavar="N,N,..", help="How many people judge each pair.")
    ] = "1",
    disagreement: Annotated[
        float, typer.Option("--disagreement", help="The probability that an assessor is off the mark.")
    ] = 0.0,
    difference: Annotated[
        float, typer.Option("--difference", help="The difference between two systems whose power is asked for.")
    ] = 0.05,
    price: Annotated[float, typer.Option("--price", help="What a judgment costs.")] = 1.0,
    seconds: Annotated[float, typer.Option("--seconds", help="How long a judgment takes.")] = 30.0,
    query_price: Annotated[float, typer.Option("--query-price", help="What a query costs.")] = 0.0,
    label_price: Annotated[float, typer.Option("--label-price", help="What a machine's label of a pair costs.")] = 0.0,
    metadata: MetadataFile = None,
    labels: Labels = None,
    model: ModelName = None,
    scale: ScaleName = None,
    gain: Gain = None,
    order: Order = OrderName.trec_eval,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the expected trajectory of the first option.")
    ] = None,
    output_format: Format = OutputFormat.table,
    jobs: Jobs = 2,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Say how many judgments a target takes, and which mix of queries, depth, assessors and labels is the cheapest.

    From a pilot (--qrels with few judgments), or from runs alone, by what past campaigns taught the model.

    Example: probeval plan runs/ --metric DCG@10 --qrels pilot.txt --target confidence=.95 --queries 25,50,100
    """
    from probeval.simulation import Prices  # slow to import

    talk = Talk(quiet=quiet)
    check_picture(plot)
    result = talk.warned(
        lambda: api.plan(
            runs,
            metric,
            target,
            qrels=qrels,
            queries=parse_counts("--queries", queries),
            depths=parse_counts("--depths", depths),
            assessors=parse_counts("--assessors", assessors) or [1],
            disagreement=disagreement,
            difference=difference,
            prices=Prices(judgment=price, seconds=seconds, query=query_price, label=label_price),
            metadata=metadata,
            labels=labels,
            model=model,
            scale=scale,
            gain=gain and gain.value,
            order=order.value,
            jobs=jobs,
            seed=seed,
            progress=lambda trajectories: talk.track(trajectories, "Planning (a few minutes)"),
            say=talk,
        )
    )
    for sentence in result.sentences():
        talk(sentence)
    if plot is not None:
        from probeval.plots import plot_forecast

        write_pictures({plot: plot_forecast(result.options[0].ahead, target=result.targets.get("confidence"))}, talk)
    if output_format is OutputFormat.json:
        write_json(result.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(result.to_frame())
    else:
        talk(
            "judgments, lower, upper: in all, with their 90% interval; a_query: for each query; pool: pairs there are."
        )
        (options,) = result.views()
        write_table(options.frame, title=options.title, decimals=options.decimals)
    if qrels is None:
        pilot = max(PILOT, round(result.options[0].pool * PILOT_SHARE, -1))
        talk(
            f"Judge about {pilot:.0f} pairs at random (probeval next RUNS --policy random) and plan again with "
            "--qrels: the forecast narrows."
        )
