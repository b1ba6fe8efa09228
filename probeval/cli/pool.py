"""``probeval pool``: what campaigns would have found with fewer judgments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval import api
from probeval.api.pools import METRICS
from probeval.api.settings import GradeScale, Jobs, Scheduler, Seed
from probeval.cli.completion import complete_metric
from probeval.cli.options import CampaignFolders, Format, OutputFormat, Quiet, ReportFile
from probeval.cli.output import Talk, check_picture, write_page, write_pictures, write_result
from probeval.cli.studies import PairTestName
from probeval.records import parse_counts, parse_shares

if TYPE_CHECKING:
    from probeval.pools import PoolStudy

__all__ = ["pool"]


def pool(
    campaigns: CampaignFolders,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="METRIC",
            help="A measure; may be repeated. Default: AP, nDCG and RBP(p=0.98).",
            autocompletion=complete_metric,
        ),
    ] = None,
    depth: Annotated[
        str | None,
        typer.Option(
            "--depth",
            metavar="N,N,..",
            help="Depths of pools; the deepest is the reference. Default: as deep as judged, and parts of that.",
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option("--share", metavar="F,F,..", help="Random shares of the reference's judgments, such as .1,.5."),
    ] = None,
    leave_team_out: Annotated[
        bool, typer.Option("--leave-team-out", help="Leave out what one team alone contributed, each team in turn.")
    ] = False,
    all_systems: Annotated[
        bool, typer.Option("--all-systems", help="Count all systems, not only those that are deeply judged.")
    ] = False,
    condensed: Annotated[
        bool, typer.Option("--condensed", help="Score lists without their unjudged documents as well.")
    ] = False,
    test: Annotated[
        list[PairTestName] | None,
        typer.Option("--test", help="The test of each pair of systems; may be repeated. Default: t."),
    ] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", min=0.0001, max=0.9999, help="The level of significance of each pair.")
    ] = 0.05,
    persistence: Annotated[
        float, typer.Option("--persistence", min=0.01, max=0.9999, help="The persistence p of the RBP residual.")
    ] = 0.98,
    across_teams: Annotated[
        bool, typer.Option("--across-teams", help="Compare only systems of different teams.")
    ] = False,
    scale: GradeScale = None,
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="The number of resamples of bootstrap and permutation tests.")
    ] = 100_000,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Plot decisions by cut; FILE-trends and FILE-multiplicity show p-values and relevance.",
        ),
    ] = None,
    report: ReportFile = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Cut the judgments of finished campaigns, and compare tests and scores with those by the whole pool.

    The judgments that stay are those of a shallower pool (--depth), a random share (--share), or all but those that one
    team alone contributed (--leave-team-out); by default, those of several depths. A system is deeply judged if the top
    ranks of all its lists are judged. The RBP residual beside every test is what unjudged documents could add to a
    score.

    Example: probeval pool trec8 clef2018 --depth 1,2,5,10 --metric AP --report pools.html
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    result = talk.warned(
        lambda: api.pool_study(
            campaigns,
            metric or METRICS,
            depths=parse_counts("--depth", depth),
            shares=() if share is None else parse_shares("--share", share),
            leave_team_out=leave_team_out,
            every_system=all_systems,
            condensed=condensed,
            tests=[name.value for name in test or [PairTestName.t]],
            alpha=alpha,
            persistence=persistence,
            across_teams=across_teams,
            scale=scale,
            samples=samples,
            seed=seed,
            jobs=jobs,
            scheduler=scheduler,
            reporter=talk,
        )
    )
    if plot is not None:
        _plot(result, plot, talk)
    if report is not None:
        write_page(result, report, talk)
    write_result(result, output_format)
    for sentence in result.findings():
        talk.say(sentence)


def _plot(result: PoolStudy, path: Path, talk: Talk) -> None:
    from probeval.plots import plot_multiplicity, plot_pools, plot_trends

    beside = {name: path.with_name(f"{path.stem}-{name}{path.suffix}") for name in ("trends", "multiplicity")}
    pictures = {path: plot_pools(result), beside["multiplicity"]: plot_multiplicity(result)}
    if any(part.bars for part in result.campaigns):
        pictures[beside["trends"]] = plot_trends(result)
    write_pictures(pictures, talk)
