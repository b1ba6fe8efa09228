"""``probeval simulate``: compare policies on a judged collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.simulate import SimulationInputs
from probeval.cli.commands import Output, verb
from probeval.cli.output import check_picture, write_pictures
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
) -> Simulation:
    """Compare policies on a finished campaign: its judgments are the assessor's answers and the truth.

    Example: probeval simulate runs/ --qrels qrels.txt --metric DCG@10 --policy gain --policy random --batch 10
    """
    messages = output.messages
    check_picture(plot)
    if given.qrels is None:
        raise ProbevalError("A simulation needs full judgments: give --qrels FILE.")
    result = messages.warned(given.run)
    if plot is not None:
        from probeval.plots import plot_trajectories  # slow to import

        write_pictures({plot: plot_trajectories(result)}, messages)
    if learn_errors is not None:
        from probeval.selection.errors import add_corrections
        from probeval.simulation import learn_errors as learn

        for one in add_corrections(learn(result.trajectories), learn_errors):
            messages.say(
                f"{learn_errors}: {one.metric} by {one.model}, {len(one.collections)} campaigns; the error is .05 at a "
                f"stated sd of {one.sd_for(0.05):.4f}."
            )
    return result
