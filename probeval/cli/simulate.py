"""``probeval simulate``: compare policies on a finished campaign."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.simulate import SimulationInputs
from probeval.cli.commands import Output, verb
from probeval.cli.options import OutputFormat
from probeval.cli.output import Messages, check_picture, write_csv, write_json, write_pictures, write_table
from probeval.errors import ProbevalError
from probeval.records import About

if TYPE_CHECKING:
    from probeval.simulation import Simulation

__all__ = ["simulate"]


@verb("Compare policies on a finished campaign.")
def simulate(
    given: SimulationInputs,
    output: Output,
    learn_errors: Annotated[Path | None, About("Add the true errors of scores to this file.", metavar="FILE")] = None,
    plot: Annotated[
        Path | None, About("Plot accuracy, tau, calibration and error against judgments.", metavar="FILE")
    ] = None,
) -> None:
    """Compare policies on a finished campaign: its judgments are the assessor's answers and the truth.

    Example: probeval simulate runs/ --qrels qrels.txt --metric DCG@10 --policy gain --policy random --batch 10
    """
    messages, output_format = output.messages, output.output_format
    check_picture(plot)
    if given.qrels is None:
        raise ProbevalError("A simulation needs full judgments: give --qrels FILE.")
    result = messages.warned(given.run)
    if plot is not None:
        _plot(result, plot, messages)
    if learn_errors is not None:
        from probeval.selection.errors import add_corrections
        from probeval.simulation import learn_errors as learn

        for one in add_corrections(learn(result.trajectories), learn_errors):
            messages.say(
                f"{learn_errors}: {one.metric} by {one.model}, {len(one.campaigns)} campaigns; the error is .05 at a "
                f"stated sd of {one.sd_for(0.05):.4f}."
            )
    if output_format is OutputFormat.json:
        write_json(result.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(result.to_frame())
    else:
        along, stops, *over_seeds = result.tables()
        write_table(along.frame, output_format, title=along.title)
        write_table(stops.frame, output_format, title=f"\nAt the stop ({given.stop or 'none'}), or at the end")
        if given.rules is not None:
            settings = result.trajectories[0].rule_settings
            title = (
                f"\nSignificant differences by the rules ({settings}), against the {given.test} test of all judgments"
            )
            write_table(result.rule_decisions(), output_format, title=title)
        for view in over_seeds:
            write_table(view.frame, output_format, title=f"\n{view.title}", decimals=view.decimals)


def _plot(result: Simulation, path: Path, messages: Messages) -> None:
    from probeval.plots import plot_trajectories

    write_pictures({path: plot_trajectories(result)}, messages)
