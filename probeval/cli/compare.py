"""``probeval compare``: which of two systems is better, by a model or by tests, for every pair."""

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
    DocsFile,
    Format,
    Gain,
    Labels,
    Level,
    MagnitudesFile,
    MappingName,
    MetadataFile,
    ObserversFile,
    Order,
    OrderName,
    OutputFormat,
    Outside,
    PartJobs,
    PoolPaths,
    PreferencesFile,
    Qrels,
    Quiet,
    Rope,
    ScaleName,
    Scheduler,
    Seed,
)
from probeval.cli.output import Talk, check_picture, write_csv, write_json, write_pictures, write_table
from probeval.cli.studies import Sources
from probeval.data.files import is_partitioned
from probeval.errors import ProbevalError

if TYPE_CHECKING:
    from probeval.api.model_comparisons import ModelComparisons
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


class AlternativeName(StrEnum):
    """Alternatives of tests; the names of :data:`probeval.reliability.ALTERNATIVES`."""

    two_sided = "two-sided"
    greater = "greater"
    less = "less"


ComparisonMethod = Annotated[
    ComparisonName | None,
    typer.Option("--method", help="Test each pair, or all by Tukey's test; default: t, if all is judged."),
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
    alternative: Annotated[
        AlternativeName,
        typer.Option("--alternative", help="One-tailed: are systems better, or worse, than --against or --target."),
    ] = AlternativeName.two_sided,
    target: Annotated[
        float | None,
        typer.Option("--target", metavar="SCORE", help="Test the mean of each system against this score."),
    ] = None,
    noninferior: Annotated[
        float | None,
        typer.Option(
            "--noninferior",
            metavar="SHARE",
            min=0,
            help="Test whether systems lose less than this share of the score of --against.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="The model that predicts unjudged pairs; none: tests in which they count as not relevant.",
            autocompletion=complete_model,
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option("--draws", min=2, help="The number of joint draws by a model; with --bayes, of each chain.")
    ] = 1000,
    target_accept: Annotated[
        float | None,
        typer.Option("--target-accept", metavar="RATE", help="With --bayes: the sampler's target acceptance rate."),
    ] = None,
    mapping: MappingName = None,
    new_query: Annotated[
        bool, typer.Option("--new-query", help="Predict also the score and the satisfaction of users on one new query.")
    ] = False,
    metadata: MetadataFile = None,
    labels: Labels = None,
    observers: ObserversFile = None,
    preferences: PreferencesFile = None,
    magnitudes: MagnitudesFile = None,
    docs: DocsFile = None,
    pool: PoolPaths = None,
    outside: Outside = False,
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
    jobs: PartJobs = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Compare every pair of systems: which is better, by how much, and how sure that is.

    With unjudged documents, a relevance model gives the probability that a system is better, on these queries and on
    new ones, what labels contributed, and the pairs to judge next if it is open. With complete judgments or a table of
    scores, or with --method: tests, corrected for multiple comparisons, with effect sizes; unjudged documents count as
    not relevant. A campaign in partitions is compared by a model.

    Example: probeval compare new.txt old.txt --qrels qrels.txt --labels labels.tsv --metric nDCG@10 --rope .01
    """
    talk = Talk(quiet=quiet)
    check_picture(plot)
    if target_accept is not None and not bayes:
        raise ProbevalError("--target-accept is for the sampler of --bayes. Leave it out, or add --bayes.")
    by_tests = method or correction or alternative != "two-sided" or target is not None or noninferior is not None
    if metric is None and is_score_table(source):
        if model is not None or qrels is not None:
            raise ProbevalError("--qrels and --model apply to runs with --metric, not to a table of scores.")
    elif metric is None:
        raise ProbevalError("Runs need --metric METRIC (nDCG@10); a single table (.csv) is read as scores.")
    elif qrels is None and (by_tests or bayes or model == "none") and not any(map(is_partitioned, source)):
        raise ProbevalError(
            "Tests need judgments: give --qrels FILE. Without any, leave out --method, --correction, --alternative, "
            "--target, --noninferior, --bayes and --model none: a relevance model gives the probability that each "
            "system is better."
        )
    found = talk.warned(
        lambda: api.compare(
            source,
            metric,
            qrels=qrels,
            method=method and method.value,
            correction=correction and correction.value,
            bayes=bayes,
            rope=rope,
            against=against,
            level=level,
            samples=samples,
            alternative=alternative.value,
            target=target,
            noninferior=noninferior,
            model=model,
            draws=draws,
            target_accept=target_accept,
            mapping=mapping,
            new_query=new_query,
            metadata=metadata,
            labels=labels,
            observers=observers,
            preferences=preferences,
            magnitudes=magnitudes,
            docs=docs,
            pool=pool,
            outside=outside,
            scale=scale,
            gain=gain,
            depth=depth,
            order=order.value,
            seed=seed,
            jobs=jobs,
            scheduler=scheduler,
            progress=talk.progress,
            follow=talk.track,
            say=talk,
            expect=talk.expect,
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
        for i, view in enumerate(found.views()):
            write_table(view.frame, output_format, title="\n" * (i > 0) + (view.title or "") or None)


def _plot(result: ModelComparisons | Pairwise | ScorePosterior, path: Path, talk: Talk) -> None:
    from probeval.api.model_comparisons import ModelComparisons
    from probeval.plots import plot_critical, plot_pairs, plot_tests
    from probeval.reliability import Pairwise

    if isinstance(result, ModelComparisons):
        write_pictures({path: plot_pairs(result.ranking)}, talk)
        return
    pictures = {path: plot_tests(result)}
    if isinstance(result, Pairwise) and result.friedman is not None:
        pictures[path.with_name(f"{path.stem}-ranks{path.suffix}")] = plot_critical(result)
    write_pictures(pictures, talk)
