"""``probeval validate``: check calibration on held-out campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.campaigns import CampaignFolders, as_campaigns
from probeval.api.evidence import Observers, with_observers
from probeval.api.settings import Checkpoints, Depth, Jobs, Scheduler, Seed, Work
from probeval.cli.commands import Output, verb
from probeval.cli.output import check_picture, write_pictures
from probeval.records import About

if TYPE_CHECKING:
    from probeval.simulation import Validation

__all__ = ["validate"]

CHECKPOINTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ValidationInputs(Work):
    """The campaigns and the models of a validation."""

    campaigns: CampaignFolders
    metrics: Annotated[
        Sequence[str] | None,
        About("A measure. Default: DCG and nDCG.", metavar="METRIC", option="--metric", kind=str, many=True),
    ] = None
    models: Annotated[
        Sequence[str],
        About(
            "uniform, empirical, independent, hierarchical, a card (its name or path) or a model of your own. "
            "Default: independent and hierarchical.",
            metavar="NAME",
            option="--model",
            kind=str,
            many=True,
        ),
    ] = ("independent", "hierarchical")
    observers: Observers = None
    depth: Depth = None
    seeds: Annotated[int, About("The number of random orders of judging.", least=1)] = 5
    checkpoints: Checkpoints = CHECKPOINTS
    draws: Annotated[
        int, About("The number of draws of scores, and of outcomes under a calibrated model.", least=2)
    ] = 1000
    jobs: Jobs = 1
    scheduler: Scheduler = None
    seed: Seed = 0

    def run(self) -> Validation:
        """The validation."""
        from probeval.simulation import validate as validate_models  # slow to import

        read = as_campaigns(self.campaigns, reporter=self.reporter)
        collections, _ = with_observers(read, self.observers)
        return validate_models(
            collections,
            metrics=self.metrics,
            models=list(dict.fromkeys(self.models)),
            depth=self.depth,
            checkpoints=self.checkpoints,
            seeds=self.seeds,
            seed=self.seed,
            draws=self.draws,
            n_jobs=self.jobs,
            scheduler=self.scheduler,
            reporter=self.reporter,
        )


@verb("Check calibration on held-out campaigns.")
def validate(
    given: ValidationInputs,
    output: Output,
    plot: Annotated[
        Path | None,
        About("Plot accuracy against confidence; FILE-checkpoints shows calibration by share judged.", metavar="FILE"),
    ] = None,
) -> Validation:
    """Hold out each campaign, judge part of it, and compare the models' confidence with the full judgments.

    Models are fitted on the other campaigns; a card is taken as it is, and one campaign is enough.

    Only systems with more than .99 of their retrieved documents judged are included. A campaign without any is used for
    fitting only.

    Example: probeval validate campaigns/* --metric nDCG@10 --plot reliability.png
    """
    check_picture(plot)
    result = output.messages.warned(given.run)
    if plot is not None:
        from probeval.plots import plot_checkpoints, plot_reliability  # slow to import

        beside = plot.with_name(f"{plot.stem}-checkpoints{plot.suffix}")
        write_pictures({plot: plot_reliability(result), beside: plot_checkpoints(result)}, output.messages)
    return result
