"""``probeval plan``: the judgments that a target needs, and the cheapest mix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.plan import PlanInputs
from probeval.cli.commands import Output, verb
from probeval.cli.output import check_picture, write_pictures
from probeval.records import About

if TYPE_CHECKING:
    from probeval.simulation import Plan

__all__ = ["plan"]


@verb("Estimate the judgments that a target needs.")
def plan(
    given: PlanInputs,
    output: Output,
    price: Annotated[float, About("The cost of a judgment.")] = 1.0,
    seconds: Annotated[float, About("The seconds that a judgment takes.")] = 30.0,
    query_price: Annotated[float, About("The cost of a query.")] = 0.0,
    label_price: Annotated[float, About("The cost of a machine label.")] = 0.0,
    plot: Annotated[Path | None, About("Plot the expected trajectory of the first option.", metavar="FILE")] = None,
) -> Plan:
    """Estimate the judgments that a target needs, and the cheapest mix of queries, depth, assessors and labels.

    The forecast uses a pilot (--qrels with few judgments), or the runs alone with a model of past campaigns.

    Example: probeval plan runs/ --metric DCG@10 --qrels pilot.txt --target confidence=.95 --queries 25,50,100
    """
    from probeval.simulation import Prices  # slow to import

    check_picture(plot)
    prices = Prices(judgment=price, seconds=seconds, query=query_price, label=label_price)
    result = output.messages.warned(replace(given, prices=prices).run)
    if plot is not None:
        from probeval.plots import plot_forecast

        ahead, target = result.options[0].ahead, result.targets.get("confidence")
        write_pictures({plot: plot_forecast(ahead, target=target)}, output.messages)
    return result
