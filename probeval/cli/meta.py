"""``probeval meta``: measures, scales and tests compared on campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from probeval import api
from probeval.api.campaigns import as_campaigns
from probeval.api.settings import Jobs, Level, Scheduler, Seed
from probeval.cli.options import CampaignFolders, Format, OutputFormat, Quiet, ReportFile
from probeval.cli.output import Talk, check_picture, write_page, write_pictures, write_result
from probeval.cli.studies import PairTestName
from probeval.errors import ProbevalError
from probeval.records import About

__all__ = ["meta", "parse_levels"]

MOST_LEVELS = 1000  # of a range


def meta(
    campaigns: CampaignFolders,
    metric: Annotated[
        list[str] | None,
        About(
            "A measure such as nDCG@10. Default: the usual ones for the scale.", metavar="METRIC", kind=str, many=True
        ),
    ] = None,
    scale: Annotated[
        list[str] | None,
        About(
            "A scale to cut the grades to, such as fine:4 or binary:40. Default: as judged.",
            metavar="SCALE",
            kind=str,
            many=True,
        ),
    ] = None,
    test: Annotated[
        list[PairTestName] | None,
        About("A test of the difference between two systems. Default: all.", kind=PairTestName, many=True),
    ] = None,
    alpha: Annotated[
        str,
        About(
            "Levels of significance: a list, or a range in steps of its lower end or of STEP.",
            metavar="A,A,..|A-B[:STEP]",
        ),
    ] = ".01-.1",
    splits: Annotated[int, About("The number of random halves of the queries.", least=1)] = 100,
    samples: Annotated[int, About("The number of resamples of bootstrap and permutation tests.", least=1)] = 10_000,
    level: Level = 0.95,
    jobs: Jobs = 2,
    scheduler: Scheduler = None,
    plot: Annotated[
        Path | None,
        About("Plot tests by alpha, and the reliability of measures.", metavar="FILE"),
    ] = None,
    report: ReportFile = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Compare measures, scales and significance tests on finished campaigns.

    For each measure and scale: how many pairs of systems tests tell apart, how often a result on half of the queries
    is contradicted by the other half, the reliability of differences (erho2) and of scores (phi), and the distance to
    users where it is published. For each test: the same shares, its exactness (conflicts beside alpha) and
    its agreement with itself.

    Example: probeval meta campaigns/* --metric nDCG@10 --metric AP@10 --test t --test wilcoxon --report meta.html
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    alphas = parse_levels("--alpha", alpha)
    found = talk.warned(
        lambda: api.meta_study(
            as_campaigns(campaigns, reporter=talk),
            metric,
            scales=scale,
            tests=[name.value for name in test] if test else None,
            alphas=alphas,
            splits=splits,
            samples=samples,
            level=level,
            seed=seed,
            jobs=jobs,
            scheduler=scheduler,
            reporter=talk,
        )
    )
    if plot is not None:
        from probeval.plots import plot_meta

        write_pictures({plot: plot_meta(found)}, talk)
    if report is not None:
        write_page(found, report, talk)
    write_result(found, output_format)
    for sentence in found.sentences():
        talk.say(sentence)


def parse_levels(option: str, text: str) -> list[float]:
    """The levels in an option such as ``--alpha``: a list, or a range ``A-B`` or ``A-B:STEP``, in steps of A or STEP.

    >>> parse_levels("--alpha", ".01,.05"), parse_levels("--alpha", ".02-.1:.04")
    ([0.01, 0.05], [0.02, 0.06, 0.1])
    """
    wrong = ProbevalError(f"{option} takes numbers such as .01,.05 or a range such as .01-.1:.01, got {text!r}.")
    ends, _, step = text.partition(":")
    try:
        if "-" not in text:
            return [float(part) for part in text.split(",")]
        low, high = map(float, ends.split("-"))
        width = float(step or low)
    except ValueError:
        raise wrong from None
    if not (width > 0 and low <= high and (high - low) / width < MOST_LEVELS):
        raise wrong
    return [round(low + i * width, 12) for i in range(int((high - low) / width + 1e-9) + 1)]
