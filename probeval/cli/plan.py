"""``probeval plan``: the judgments that a target needs, and the cheapest mix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from probeval.api.plan import PlanInputs
from probeval.cli.commands import Output, verb
from probeval.cli.options import OutputFormat
from probeval.cli.output import check_picture, write_csv, write_json, write_pictures, write_table
from probeval.records import About

__all__ = ["plan"]

PILOT, PILOT_SHARE = 50, 0.03  # the minimum number of pairs in a pilot, and its share of a large pool


@verb("Estimate the judgments that a target needs.")
def plan(
    given: PlanInputs,
    output: Output,
    price: Annotated[float, About("The cost of a judgment.")] = 1.0,
    seconds: Annotated[float, About("The seconds that a judgment takes.")] = 30.0,
    query_price: Annotated[float, About("The cost of a query.")] = 0.0,
    label_price: Annotated[float, About("The cost of a machine label.")] = 0.0,
    plot: Annotated[Path | None, About("Plot the expected trajectory of the first option.", metavar="FILE")] = None,
) -> None:
    """Estimate the judgments that a target needs, and the cheapest mix of queries, depth, assessors and labels.

    The forecast uses a pilot (--qrels with few judgments), or the runs alone with a model of past campaigns.

    Example: probeval plan runs/ --metric DCG@10 --qrels pilot.txt --target confidence=.95 --queries 25,50,100
    """
    from probeval.simulation import Prices  # slow to import

    messages, output_format = output.messages, output.output_format
    check_picture(plot)
    prices = Prices(judgment=price, seconds=seconds, query=query_price, label=label_price)
    result = messages.warned(replace(given, prices=prices).run)
    for sentence in result.sentences():
        messages.say(sentence)
    if plot is not None:
        from probeval.plots import plot_forecast

        write_pictures(
            {plot: plot_forecast(result.options[0].ahead, target=result.targets.get("confidence"))}, messages
        )
    if output_format is OutputFormat.json:
        write_json(result.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(result.to_frame())
    else:
        messages.say(
            "judgments, lower, upper: the total, with its 90% interval; a_query: per query; pool: pairs in the pool."
        )
        (options,) = result.tables()
        write_table(options.frame, output_format, title=options.title, decimals=options.decimals)
    if given.qrels is None:
        pilot = max(PILOT, round(result.options[0].pool * PILOT_SHARE, -1))
        messages.say(
            f"Judge about {pilot:.0f} pairs at random (probeval next RUNS --policy random) and plan again with "
            "--qrels, for a narrower forecast."
        )
