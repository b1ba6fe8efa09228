"""``probeval compare``: which differences between systems are real, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer

from probeval.cli.completion import complete_metric, complete_model
from probeval.cli.options import (
    Depth,
    Format,
    Gain,
    GainName,
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
from probeval.cli.sources import collect, say_unjudged
from probeval.cli.studies import Sources
from probeval.data import Collection, Scale
from probeval.data.files import suffix
from probeval.errors import ProbevalError, did_you_mean
from probeval.metrics import Measured, Metric, measure
from probeval.scores.evaluate import as_metric
from probeval.streams import stream

if TYPE_CHECKING:
    from probeval.reliability import Observed, Pairwise, ScorePosterior

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


@dataclass(frozen=True)
class Request:
    """What is asked of every measure."""

    method: str
    correction: str | None
    bayes: bool
    level: float
    rope: float
    samples: int
    model: str | None
    draws: int
    against: str | None
    seed: int


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
    asked = Request(
        method.value if method else "t", correction and correction.value, bayes, level, rope, samples, model, draws,
        against, seed,
    )  # fmt: skip
    path = Path(source[0])
    if len(source) == 1 and suffix(path) and metric is None:
        from probeval.reliability import read_scores

        if model is not None or qrels is not None:
            raise ProbevalError("A table of scores stands by itself: --qrels and --model go with runs and --metric.")
        _compare(asked, read_scores(path), None, pd.DataFrame(), output_format, plot, talk)
        return
    if metric is None:
        both = " and --qrels FILE" if qrels is None else ""
        raise ProbevalError(f"Runs need --metric METRIC (nDCG@10){both}; a single table (.csv) is read as scores.")
    if qrels is None:
        raise ProbevalError(
            "Tests need judgments: give --qrels FILE. Without any, probeval evaluate ranks the systems and probeval "
            "report says how likely each is better."
        )
    one = as_metric(metric)
    named = None if scale is None else Scale.parse(scale)
    collection = collect(
        source, qrels=qrels, metadata=metadata, labels=labels, scale=named, order=order.value, talk=talk
    )
    found = _measured(collection, one, named, gain, depth, talk)
    systems = [found.systems[i] for i in np.argsort(-np.round(found.values.mean(axis=1), 12), kind="stable")]
    more = pd.DataFrame()
    if found.judged_pairs < found.pool and not bayes:
        more["when_judged"] = _by_rules(collection, found, systems, level)
    if model is not None:
        more["p_significant"] = _by_draws(asked, collection, found, systems, named, gain, depth, talk)
    more = pd.concat([more, _by_users(found, systems, mapping, level)], axis=1)
    _compare(asked, found, str(one), more, output_format, plot, talk)


def _measured(
    collection: Collection, metric: Metric, named: Scale | None, gain: GainName | None, depth: int | None, talk: Talk
) -> Measured:
    assert collection.judgments is not None
    scale = collection.judgments.scale(named)
    scale = scale if gain is None else scale.with_gain(gain.value)
    found = measure(collection.runs, collection.judgments, metric, scale=scale, depth=depth)
    say_unjudged(talk, collection, found.queries)
    if found.judged_pairs < found.pool:
        talk(f"{found.pool - found.judged_pairs:,} of {found.pool:,} pairs are not judged, and count as worth nothing.")
    return found


def _compare(
    asked: Request,
    scores: Observed | Measured,
    name: str | None,
    more: pd.DataFrame,
    output_format: OutputFormat,
    plot: Path | None,
    talk: Talk,
) -> None:
    from probeval.reliability import compare as compare_systems
    from probeval.reliability import compare_bayes

    rng = stream(asked.seed)
    result: Pairwise | ScorePosterior
    if asked.bayes:
        result = talk.warned(lambda: _checked(compare_bayes(scores, level=asked.level, rope=asked.rope, rng=rng)))
    else:
        result = talk.warned(
            lambda: compare_systems(
                scores, method=asked.method, correction=asked.correction, level=asked.level, rope=asked.rope,
                samples=asked.samples, rng=rng,
            )
        )  # fmt: skip
    pairs = pd.concat([result.to_frame(), more], axis=1)
    if asked.against is not None:
        if asked.against not in result.systems:
            hint = did_you_mean(asked.against, result.systems)
            raise ProbevalError(f"--against {asked.against}: no such system.{hint}")
        pairs = pairs[(pairs["a"] == asked.against) | (pairs["b"] == asked.against)]
    if plot is not None:
        _plot(result, plot, talk)
    if output_format is OutputFormat.json:
        document: dict[str, Any] = {**result.to_dict()}
        rows = pairs.assign(report=_reports(result)[pairs.index]) if not asked.bayes else pairs
        document["pairs"] = rows.to_dict(orient="records")
        write_json(document if name is None else {"metric": name, **document})
    elif output_format is OutputFormat.csv:
        write_csv(pairs)
    else:
        _say(result, talk)
        write_table(result.systems_frame(), title=name)
        write_table(_shown(result, pairs), title="\nPairs")


def _checked(posterior: ScorePosterior) -> ScorePosterior:
    """The posterior, its diagnostics looked at: they warn."""
    _ = posterior.diagnostics
    return posterior


def _reports(result: Pairwise | ScorePosterior) -> Any:
    from probeval.reliability import Pairwise

    return np.array(result.report(), dtype=object) if isinstance(result, Pairwise) else None


def _shown(result: Pairwise | ScorePosterior, pairs: pd.DataFrame) -> pd.DataFrame:
    """The columns that people read."""
    reports = _reports(result)
    if reports is None:
        return pairs
    left = pairs[["a", "b"]].assign(difference=reports[pairs.index])
    kept = ["adjusted", "verdict", "d", "won", "p_equal", "when_judged", "p_significant", "sat", "p_sat", "noticed"]
    return left.join(pairs[[c for c in kept if c in pairs.columns]])


def _say(result: Pairwise | ScorePosterior, talk: Talk) -> None:
    from probeval.reliability import COMPARISONS, CORRECTIONS, TESTS, Pairwise

    if not isinstance(result, Pairwise):
        found = result.diagnostics
        talk(
            f"Hierarchical model of {result.family} scores: R-hat {found.rhat:.3f}, bulk ESS {found.ess:.0f}, "
            f"{found.divergences:.2%} divergences."
        )
    else:
        what = COMPARISONS[result.method]
        correction = f"; {CORRECTIONS[result.correction]}" if result.method in TESTS else ", all pairs together"
        talk(f"{what[0].upper()}{what[1:]}{correction}.")
        n = int((result.decision != 0).sum())
        talk(f"{n:,} of {len(result.p):,} pairs differ significantly (alpha {result.alpha:g}).")
        if result.friedman is not None:
            overall = result.friedman
            talk(
                f"Friedman: chi-squared {overall.statistic:.2f}, p {overall.p:.2g}; mean ranks differ by more than "
                f"{overall.critical_difference(alpha=result.alpha):.2f} where systems do."
            )
    talk(f"{result.level:.0%} intervals are for the population of queries.")


def _by_rules(collection: Collection, found: Measured, systems: list[str], level: float) -> list[str]:
    """What the bounds of each difference decide: yes (significant when all is judged), no, or open."""
    from probeval.reliability import difference_bounds, pair_index, rules

    assert collection.judgments is not None
    at = [found.systems.index(s) for s in systems]
    if found.metric.is_linear:
        runs = collection.runs.top(found.metric.cutoff or collection.runs.depth).select(systems)
        codes = collection.codes_on(runs.pool, found.scale)
        asked = np.isin(runs.queries, found.queries)
        low, high = (end[:, asked] for end in difference_bounds(runs, codes, found.metric, found.scale))
    else:
        a, b = pair_index(len(at))
        least, most = found.lower[at], found.upper[at]
        low, high = least[a] - most[b], most[a] - least[b]
    decided = rules(low, high, alpha=1 - level)
    return [
        "open" if rule == 0 else "yes" if sign else "no" for sign, rule in zip(decided.sign, decided.rule, strict=True)
    ]


def _by_draws(
    asked: Request,
    collection: Collection,
    found: Measured,
    systems: list[str],
    named: Scale | None,
    gain: GainName | None,
    depth: int | None,
    talk: Talk,
) -> Any:
    """P(significant when all is judged) of each pair, from joint draws of the scores."""
    from probeval.relevance import choose_model
    from probeval.reliability import probability_significant
    from probeval.scores import score_collection

    choice = choose_model(asked.model, collection, scale=named)
    talk(f"Model {choice.name}: {choice.why} Scale {choice.scale} ({choice.scale_from}).")
    seen = choice.fitted_on(collection)
    if seen:
        talk(f"These judgments are those of {seen}, which {choice.name} was fitted on: it has seen the answers.")
    scale = choice.scale if gain is None else choice.scale.with_gain(gain.value)
    (scores,) = talk.warned(
        lambda: score_collection(
            choice.model, collection, [found.metric], depth=depth, scale=scale, seed=asked.seed,
            method="draws", per_query=True, n=asked.draws,
        )
    )  # fmt: skip
    at = [scores.systems.index(s) for s in systems]
    assert scores.joint.query_draws is not None
    better, worse = probability_significant([scores.joint.query_draws[:, at]], alpha=1 - asked.level)
    return better + worse


def _by_users(found: Measured, systems: list[str], mapping: str | None, level: float) -> pd.DataFrame:
    """What each pair means to users: the change in P(Sat), how sure it is, and who notices; nothing without a mapping.

    The published mapping of the measure, where there is one and all is judged, or one that is borrowed by its name.
    """
    from probeval.errors import SatisfactionError
    from probeval.satisfaction import Satisfaction, agreement_for, load_mapping, mapping_for

    if len(found.queries) < 2:
        return pd.DataFrame()
    try:
        mapped = mapping_for(found.metric, found.scale) if mapping is None else load_mapping(mapping)
        users = Satisfaction.of(found, mapped, agreement=agreement_for(found.metric, found.scale))
    except SatisfactionError:
        if mapping is not None:
            raise
        return pd.DataFrame()
    rows = []
    for a, b in combinations(systems, 2):
        seen = users.compare(a, b, level=level)
        noticed = {} if seen.noticed is None else {"noticed": seen.noticed.mean}
        rows.append({"sat": seen.sat.mean, "p_sat": seen.p_better, **noticed})
    return pd.DataFrame(rows)


def _plot(result: Pairwise | ScorePosterior, path: Path, talk: Talk) -> None:
    from probeval.plots import plot_critical, plot_tests
    from probeval.reliability import Pairwise

    pictures = {path: plot_tests(result)}
    if isinstance(result, Pairwise) and result.friedman is not None:
        pictures[path.with_name(f"{path.stem}-ranks{path.suffix}")] = plot_critical(result)
    write_pictures(pictures, talk)
