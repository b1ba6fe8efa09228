"""``probeval compare``: which differences between systems are real, and how large they are."""

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
    Order,
    OrderName,
    OutputFormat,
    Qrels,
    Quiet,
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
    """How pairs are tested; the names of :data:`probeval.reliability.COMPARISONS`."""

    t = "t"
    wilcoxon = "wilcoxon"
    sign = "sign"
    bootstrap = "bootstrap"
    permutation = "permutation"
    tukey = "tukey"
    randomised_tukey = "randomised-tukey"


class CorrectionName(StrEnum):
    """How p-values are corrected; the names of :data:`probeval.reliability.CORRECTIONS`."""

    none = "none"
    holm = "holm"
    bh = "bh"


ComparisonMethod = Annotated[
    ComparisonName | None,
    typer.Option("--method", help="The test of each pair, or Tukey's of all together; t when not given."),
]
Correction = Annotated[
    CorrectionName | None, typer.Option("--correction", help="For the number of pairs; Holm's when not given.")
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
        bool, typer.Option("--bayes", help="A hierarchical model of the scores (PyMC) in place of tests.")
    ] = False,
    rope: Annotated[
        float,
        typer.Option(
            "--rope",
            min=0,
            metavar="X",
            help="The region of practical equivalence: differences up to this size count as none.",
        ),
    ] = 0.0,
    against: Annotated[
        str | None, typer.Option("--against", metavar="SYSTEM", help="Show only the pairs with this system.")
    ] = None,
    level: Level = 0.95,
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="How many resamples bootstrap, permutation and deals make.")
    ] = 100_000,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Add P(significant when all is judged), this model speaking for the unjudged.",
            autocompletion=complete_model,
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option("--draws", min=2, help="How many joint draws of the scores, with --model.")
    ] = 1000,
    mapping: MappingName = None,
    metadata: MetadataFile = None,
    labels: Labels = None,
    scale: ScaleName = None,
    gain: Gain = None,
    depth: Depth = None,
    order: Order = OrderName.trec_eval,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw all pairs, and beside it FILE-ranks, the critical differences."
        ),
    ] = None,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Test every pair of systems: is the difference real, and how large is it?

    Of each pair: the difference with its interval, its p-value corrected for the number of pairs, d (the difference
    over its spread between queries) and won (the share of queries on which the first is better). What is not judged
    counts as worth nothing; then when_judged says whether it will be significant once all is: yes, no or open.

    Example: probeval compare runs/ --qrels qrels.txt --metric nDCG@10 --rope .01
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    if bayes and (method or correction):
        raise ProbevalError("--bayes needs neither test nor correction: leave out --method and --correction.")
    if metric is None and is_score_table(source):
        if model is not None or qrels is not None:
            raise ProbevalError("A table of scores stands by itself: --qrels and --model go with runs and --metric.")
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
        for sentence in found.sentences():
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
