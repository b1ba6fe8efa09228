"""``probeval compare``: test the differences between systems, with effect sizes."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from probeval import api
from probeval.api.studies import is_score_table
from probeval.cli.completion import complete_metric, complete_model
from probeval.cli.options import (
    Depth,
    Format,
    Gain,
    Labels,
    Level,
    MappingName,
    MetadataFile,
    ObserversFile,
    Order,
    OrderName,
    OutputFormat,
    Qrels,
    Quiet,
    Rope,
    ScaleName,
    Seed,
)
from probeval.cli.output import Talk, check_picture, write_csv, write_json, write_pictures, write_table
from probeval.cli.studies import Sources
from probeval.errors import ProbevalError

if TYPE_CHECKING:
    from probeval.reliability import Pairwise, ScorePosterior

__all__ = ["compare"]


class ComparisonName(StrEnum):
    """Tests of pairs; the names of :data:`probeval.reliability.COMPARISONS`."""

    t = "t"
    wilcoxon = "wilcoxon"
    sign = "sign"
    bootstrap = "bootstrap"
    permutation = "permutation"
    tukey = "tukey"
    randomised_tukey = "randomised-tukey"


class CorrectionName(StrEnum):
    """Corrections of p-values; the names of :data:`probeval.reliability.CORRECTIONS`."""

    none = "none"
    holm = "holm"
    bh = "bh"


ComparisonMethod = Annotated[
    ComparisonName | None,
    typer.Option("--method", help="The test of each pair, or Tukey's test of all pairs; default: t."),
]
Correction = Annotated[
    CorrectionName | None,
    typer.Option("--correction", help="The correction for multiple comparisons; default: Holm's."),
]


def compare(
    source: Sources,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="METRIC",
            help="A measure such as nDCG@10, for runs.",
            autocompletion=complete_metric,
        ),
    ] = None,
    qrels: Qrels = None,
    method: ComparisonMethod = None,
    correction: Correction = None,
    bayes: Annotated[
        bool, typer.Option("--bayes", help="Use a hierarchical model of the scores (PyMC) instead of tests.")
    ] = False,
    rope: Rope = "0",
    against: Annotated[
        str | None, typer.Option("--against", metavar="SYSTEM", help="Show only the pairs with this system.")
    ] = None,
    level: Level = 0.95,
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="The number of resamples of bootstrap and randomisation tests.")
    ] = 100_000,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Add P(significant once all is judged); this model predicts unjudged pairs.",
            autocompletion=complete_model,
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option("--draws", min=2, help="The number of joint draws of the scores, with --model.")
    ] = 1000,
    mapping: MappingName = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    order: Order = OrderName.trec_eval,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Plot all pairs; FILE-ranks shows the critical differences."),
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Test every pair of systems: the significance and the size of the difference.

    For each pair: the difference with its interval, the p-value corrected for multiple comparisons, d (the difference
    divided by its standard deviation between queries) and won (the share of queries on which the first system is
    better). Unjudged documents count as not relevant; if there are any, when_judged shows whether the difference will
    be significant once all is judged: yes, no or open.

    Example: probeval compare runs/ --qrels qrels.txt --metric nDCG@10 --rope .01
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    if bayes and (method or correction):
        raise ProbevalError("--bayes takes no test and no correction: leave out --method and --correction.")
    if metric is None and is_score_table(source):
        if model is not None or qrels is not None:
            raise ProbevalError("--qrels and --model apply to runs with --metric, not to a table of scores.")
    elif metric is None:
        both = " and --qrels FILE" if qrels is None else ""
        raise ProbevalError(f"Runs need --metric METRIC (nDCG@10){both}; a single table (.csv) is read as scores.")
    elif qrels is None:
        raise ProbevalError(
            "Tests need judgments: give --qrels FILE. Without any, probeval evaluate ranks the systems and probeval "
            "report gives the probability that each is better."
        )
    found = talk.warned(
        lambda: api.compare(
            source,
            metric,
            qrels=qrels,
            method=method.value if method else "t",
            correction=correction and correction.value,
            bayes=bayes,
            rope=rope,
            against=against,
            level=level,
            samples=samples,
            model=model,
            draws=draws,
            mapping=mapping,
            metadata=metadata,
            labels=labels,
            observers=observers,
            scale=scale,
            gain=gain and gain.value,
            depth=depth,
            order=order.value,
            seed=seed,
            progress=talk.progress,
            say=talk,
        )
    )
    if plot is not None:
        _plot(found.result, plot, talk)
    if output_format is OutputFormat.json:
        write_json(found.to_dict())
    elif output_format is OutputFormat.csv:
        write_csv(found.to_frame())
    else:
        for sentence in found.outcome():
            talk(sentence)
        write_table(found.systems_frame(), title=found.metric)
        write_table(found.readable(), title="\nPairs")


def _plot(result: Pairwise | ScorePosterior, path: Path, talk: Talk) -> None:
    from probeval.plots import plot_critical, plot_tests
    from probeval.reliability import Pairwise

    pictures = {path: plot_tests(result)}
    if isinstance(result, Pairwise) and result.friedman is not None:
        pictures[path.with_name(f"{path.stem}-ranks{path.suffix}")] = plot_critical(result)
    write_pictures(pictures, talk)
