"""``probeval plan``: the judgments that a target needs, and the cheapest mix."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probeval import api
from probeval.cli.options import (
    DocsFile,
    Format,
    Gain,
    Jobs,
    Labels,
    MappingName,
    MetadataFile,
    Metric,
    ModelName,
    ObserversFile,
    Order,
    OrderName,
    OutputFormat,
    Qrels,
    Quiet,
    Rope,
    RunPaths,
    ScaleName,
    Scheduler,
    Seed,
    parse_counts,
)
from probeval.cli.output import Talk, check_picture, write_csv, write_json, write_pictures, write_table

__all__ = ["plan"]

PILOT, PILOT_SHARE = 50, 0.03  # the minimum number of pairs in a pilot, and its share of a large pool


def plan(
    runs: RunPaths,
    metric: Metric,
    target: Annotated[
        str,
        typer.Option("--target", metavar="TARGETS", help="confidence= halfwidth= erho2= phi= power=; all must hold."),
    ] = "confidence=.95",
    qrels: Qrels = None,
    queries: Annotated[
        str | None, typer.Option("--queries", metavar="N,N,..", help="Numbers of queries; default: that of the runs.")
    ] = None,
    depths: Annotated[
        str | None, typer.Option("--depths", metavar="K,K,..", help="Depths of the pool; default: that of the metric.")
    ] = None,
    assessors: Annotated[
        str, typer.Option("--assessors", metavar="N,N,..", help="Numbers of assessors per pair.")
    ] = "1",
    disagreement: Annotated[
        float, typer.Option("--disagreement", help="The probability that an assessor's grade is wrong.")
    ] = 0.0,
    difference: Annotated[
        float, typer.Option("--difference", help="The difference between two systems, for power.")
    ] = 0.05,
    rope: Rope = "0",
    mapping: MappingName = None,
    price: Annotated[float, typer.Option("--price", help="The cost of a judgment.")] = 1.0,
    seconds: Annotated[float, typer.Option("--seconds", help="The seconds that a judgment takes.")] = 30.0,
    query_price: Annotated[float, typer.Option("--query-price", help="The cost of a query.")] = 0.0,
    label_price: Annotated[float, typer.Option("--label-price", help="The cost of a machine label.")] = 0.0,
    metadata: MetadataFile = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    docs: DocsFile = None,
    model: ModelName = None,
    scale: ScaleName = None,
    gain: Gain = None,
    order: Order = OrderName.trec_eval,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Plot the expected trajectory of the first option.")
    ] = None,
    output_format: Format = OutputFormat.table,
    jobs: Jobs = 2,
    scheduler: Scheduler = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Estimate the judgments that a target needs, and the cheapest mix of queries, depth, assessors and labels.

    The forecast uses a pilot (--qrels with few judgments), or the runs alone with a model of past campaigns.

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
            rope=rope,
            mapping=mapping,
            prices=Prices(judgment=price, seconds=seconds, query=query_price, label=label_price),
            metadata=metadata,
            labels=labels,
            observers=observers,
            docs=docs,
            model=model,
            scale=scale,
            gain=gain,
            order=order.value,
            jobs=jobs,
            scheduler=scheduler,
            seed=seed,
            progress=lambda trajectories: talk.track(trajectories, "Planning"),
            say=talk,
            expect=talk.estimate,
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
        talk("judgments, lower, upper: the total, with its 90% interval; a_query: per query; pool: pairs in the pool.")
        (options,) = result.views()
        write_table(options.frame, output_format, title=options.title, decimals=options.decimals)
    if qrels is None:
        pilot = max(PILOT, round(result.options[0].pool * PILOT_SHARE, -1))
        talk(
            f"Judge about {pilot:.0f} pairs at random (probeval next RUNS --policy random) and plan again with "
            "--qrels, for a narrower forecast."
        )
