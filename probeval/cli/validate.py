"""``probeval validate``: check calibration on held-out campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from probeval.api.evidence import Observers, with_observers
from probeval.api.settings import Depth, Jobs, Scheduler, Seed
from probeval.cli.options import CampaignFolders, Checkpoints, Format, OutputFormat, Quiet
from probeval.cli.output import Talk, check_picture, write_pictures, write_result
from probeval.data import read_campaign
from probeval.records import About, parse_shares

if TYPE_CHECKING:
    from probeval.simulation import Validation

__all__ = ["validate"]

MODELS = ("independent", "hierarchical")
CHECKPOINTS = "0,.01,.02,.05,.1,.2,.4"


def validate(
    campaigns: CampaignFolders,
    metric: Annotated[
        list[str] | None,
        About("A measure. Default: DCG and nDCG.", metavar="METRIC", kind=str, many=True),
    ] = None,
    model: Annotated[
        list[str] | None,
        About(
            "uniform, empirical, independent, hierarchical or a model of your own. "
            "Default: independent and hierarchical.",
            metavar="NAME",
            kind=str,
            many=True,
        ),
    ] = None,
    observers: Observers = None,
    depth: Depth = None,
    seeds: Annotated[int, About("The number of random orders of judging.", least=1)] = 5,
    checkpoints: Checkpoints = CHECKPOINTS,
    draws: Annotated[
        int,
        About("The number of draws of scores, and of outcomes under a calibrated model.", least=2),
    ] = 1000,
    jobs: Jobs = 2,
    scheduler: Scheduler = None,
    plot: Annotated[
        Path | None,
        About("Plot accuracy against confidence; FILE-checkpoints shows calibration by share judged.", metavar="FILE"),
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Hold out each campaign, judge part of it, and compare the models' confidence with the full judgments.

    Only systems with more than .99 of their retrieved documents judged are included. A campaign without any is used for
    fitting only.

    Example: probeval validate campaigns/* --metric nDCG@10 --plot reliability.png
    """
    from probeval.simulation import validate as validate_models  # slow to import

    talk = Talk(quiet=quiet)
    check_picture(plot)
    shares = parse_shares("--checkpoints", checkpoints)
    collections, _ = talk.warned(
        lambda: with_observers([read_campaign(path, reporter=talk) for path in campaigns], observers)
    )
    result = talk.warned(
        lambda: validate_models(
            collections,
            metrics=metric,
            models=list(dict.fromkeys(model or MODELS)),
            depth=depth,
            checkpoints=shares,
            seeds=seeds,
            seed=seed,
            draws=draws,
            n_jobs=jobs,
            scheduler=scheduler,
            reporter=talk,
        )
    )
    if plot is not None:
        _plot(result, plot, talk)
    write_result(result, output_format)


def _plot(result: Validation, path: Path, talk: Talk) -> None:
    from probeval.plots import plot_checkpoints, plot_reliability

    beside = path.with_name(f"{path.stem}-checkpoints{path.suffix}")
    write_pictures({path: plot_reliability(result), beside: plot_checkpoints(result)}, talk)
