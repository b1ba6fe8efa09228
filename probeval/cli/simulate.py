"""``probeval simulate``: compare policies on a finished campaign."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval import api
from probeval.cli.completion import complete_policy
from probeval.cli.options import (
    Checkpoints,
    Depth,
    DocsFile,
    Errors,
    Explore,
    Family,
    Format,
    Gain,
    GoalName,
    Jobs,
    Labels,
    LabelsFrom,
    MappingName,
    MetadataFile,
    Method,
    Metric,
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
    Stay,
    Stop,
    SystemChoice,
    Systems,
    Topics,
    TopicsName,
    parse_shares,
    parse_stop,
)
from probeval.cli.output import Talk, check_picture, write_csv, write_json, write_pictures, write_table
from probeval.errors import ProbevalError
from probeval.selection import POLICIES

if TYPE_CHECKING:
    from probeval.simulation import Simulation

__all__ = ["simulate"]


class SignificanceTest(StrEnum):
    """Tests of true differences; the names of :data:`probeval.reliability.SIGNIFICANCE`."""

    t = "t"
    wilcoxon = "wilcoxon"
    sign = "sign"
    tukey = "tukey"
    friedman = "friedman"


def simulate(
    runs: RunPaths,
    metric: Metric,
    qrels: Qrels = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY[:MODEL[:COLUMN]]",
            help=f"A policy ({', '.join(POLICIES)}) and its model, with a column where it uses labels; "
            "may be repeated. Default: gain.",
            autocompletion=complete_policy,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The model of policies without one.")
    ] = None,
    fit: Annotated[
        list[Path] | None,
        typer.Option("--fit", metavar="CAMPAIGN", help="A campaign to refit the models on; may be repeated."),
    ] = None,
    labels_from: LabelsFrom = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    docs: DocsFile = None,
    goal: GoalName = "ranking",
    stop: Stop = "confidence=.95",
    rope: Rope = "0",
    mapping: MappingName = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="The number of judgments per batch.")] = 1,
    checkpoints: Checkpoints = "0,.01,.02,.05,.1,.2",
    until: Annotated[float, typer.Option("--until", help="The share of the pool at the end of a trajectory.")] = 1.0,
    explore: Explore = None,
    refresh: Annotated[
        int | None,
        typer.Option(
            "--refresh", min=1, help="The number of judgments between updates of the model; default: the batch size."
        ),
    ] = None,
    pilot: Annotated[
        float, typer.Option("--pilot", help="The share of the pool to judge at random before the policy starts.")
    ] = 0.0,
    noise: Annotated[float, typer.Option("--noise", help="The probability that the assessor's grade is wrong.")] = 0.0,
    assessors: Annotated[
        int, typer.Option("--assessors", min=1, help="The number of assessors, who judge in parallel.")
    ] = 1,
    topics: Topics = TopicsName.free,
    stay: Stay = 0.0,
    method: Method = None,
    family: Family = None,
    draws: Annotated[
        int, typer.Option("--draws", min=2, help="The number of joint draws, if the method uses draws.")
    ] = 1000,
    test: Annotated[
        SignificanceTest, typer.Option("--test", help='The test behind "significant" true differences.')
    ] = SignificanceTest.t,
    rules: Annotated[
        str | None,
        typer.Option(
            "--rules",
            metavar="gate=.95,sd=.248",
            help="Show which differences the rules for incomplete judgments take as significant, and how rightly: the "
            "least confidence (gate), the threshold or the sd behind it. Default: gate=.95, sd from the campaign.",
        ),
    ] = None,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    systems: SystemChoice = Systems.judged,
    order: Order = OrderName.trec_eval,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="The number of seeds, starting at --seed.")] = 1,
    jobs: Jobs = 2,
    scheduler: Scheduler = None,
    errors: Errors = None,
    learn_errors: Annotated[
        Path | None,
        typer.Option("--learn-errors", metavar="FILE", help="Add the true errors of scores to this file."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Plot accuracy, tau, calibration and error against judgments."),
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Compare policies on a finished campaign: its judgments are the assessor's answers and the truth.

    Example: probeval simulate runs/ --qrels qrels.txt --metric DCG@10 --policy gain --policy random --batch 10
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    if qrels is None:
        raise ProbevalError("A simulation needs full judgments: give --qrels FILE.")
    result = talk.warned(
        lambda: api.simulate(
            runs,
            metric,
            policy or ["gain"],
            qrels=qrels,
            metadata=metadata,
            labels=labels,
            observers=observers,
            docs=docs,
            order=order.value,
            fit=fit or (),
            labels_from=labels_from,
            jobs=jobs,
            scheduler=scheduler,
            progress=lambda work: talk.track(work, "Simulating"),
            say=talk,
            model=model,
            depth=depth,
            scale=scale,
            systems=systems.value,
            gain=gain,
            goal=goal,
            stop=parse_stop(stop, errors),
            rope=rope,
            mapping=mapping,
            batch=batch,
            checkpoints=parse_shares("--checkpoints", checkpoints),
            until=until,
            explore=explore,
            refresh=refresh,
            pilot=pilot,
            noise=noise,
            assessors=assessors,
            topics=topics.value,
            stay=stay,
            method=method and method.value,
            family=family and family.value,
            draws=draws,
            test=test.value,
            rules=rules or "",
            seeds=seeds,
            seed=seed,
        )
    )
    if plot is not None:
        _plot(result, plot, talk)
    if learn_errors is not None:
        from probeval.selection.errors import add_corrections
        from probeval.simulation import learn_errors as learn

        for one in add_corrections(learn(result.trajectories), learn_errors):
            talk(
                f"{learn_errors}: {one.metric} by {one.model}, {len(one.campaigns)} campaigns; the error is .05 at a "
                f"stated sd of {one.sd_for(0.05):.4f}."
            )
    if output_format is OutputFormat.json:
        write_json(result.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(result.to_frame())
    else:
        along, stops, *over_seeds = result.views()
        write_table(along.frame, output_format, title=along.title)
        write_table(stops.frame, output_format, title=f"\nAt the stop ({stop or 'none'}), or at the end")
        if rules is not None:
            settings = result.trajectories[0].rule_settings
            title = (
                f"\nSignificant differences by the rules ({settings}), against the {test.value} test of all judgments"
            )
            write_table(result.rule_decisions(), output_format, title=title)
        for view in over_seeds:
            write_table(view.frame, output_format, title=f"\n{view.title}", decimals=view.decimals)


def _plot(result: Simulation, path: Path, talk: Talk) -> None:
    from probeval.plots import plot_trajectories

    write_pictures({path: plot_trajectories(result)}, talk)
