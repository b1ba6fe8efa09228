"""Measures, scales and tests compared on campaigns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from probeval.api.campaigns import Campaigns, as_campaigns
from probeval.api.classical import judged_scores
from probeval.api.evidence import as_scale
from probeval.campaign_studies import over_campaigns
from probeval.data import Collection, Scale
from probeval.errors import MetricError, ReliabilityError, SatisfactionError, did_you_mean
from probeval.metrics import AnyMetric, Measured, Metric
from probeval.metrics.mapping import mapping_for
from probeval.reporting import SILENT, Reporter
from probeval.scores.evaluate import as_metric

if TYPE_CHECKING:
    from probeval.reliability import MetaStudy, StudiedMeasure

__all__ = ["default_measures", "meta_study"]

DEEPEST = 10
# On two grades CG is P, and Q and GAP are AP (Urbano 2013, Table 5.2).
BINARY = ("P", "AP", "DCG", "nDCG", "RBP", "ERR")
GRADED = ("CG", "DCG", "nDCG", "Q", "RBP", "GAP", "ERR", "AP")
# With grades 0 to 100, gains of 2^grade - 1 would count only the highest, and most grades above 0 are not relevant.
FINE = {"ERR": 'ERR(gain="linear")', "AP": "AP(rel=40)"}


def meta_study(
    campaigns: Campaigns,
    metrics: Sequence[AnyMetric] | None = None,
    *,
    scales: Sequence[Scale | str] | None = None,
    tests: Sequence[str] | None = None,
    alphas: Sequence[float] | None = None,
    splits: int | None = None,
    samples: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    jobs: int = 1,
    scheduler: str | None = None,
    reporter: Reporter = SILENT,
) -> MetaStudy:
    """Compare measures, scales of grades and significance tests on finished campaigns.

    Which measure tells most systems apart, which test contradicts itself least on other queries, which scores are most
    reliable, and which are nearest to users.

    Parameters
    ----------
    campaigns
        Folders with ``runs/`` and ``qrels.txt``, or collections with judgments; or a single one.
    metrics
        The measures; by default the usual ones for the scale (:func:`default_measures`). Unjudged documents count as
        not relevant.
    scales
        The scales, each combined with each measure: those of :meth:`probeval.Scale.parse`, such as ``"fine:4"`` or
        ``"binary:40"``; by default that of the judgments.
    tests
        Names of :data:`~probeval.reliability.TESTS`; all five by default.
    alphas
        Levels of significance, in rising order; .01, .02, .., .1 by default.
    splits, samples
        The number of random halves of the queries (100 by default), and of resamples of bootstrap and permutation
        (10,000).
    level
        The probability of the intervals of E rho^2 and Phi.
    seed
        The random seed; the same seed gives the same result, for any number of processes.
    jobs, scheduler
        The number of processes, or the address of a Dask scheduler.
    reporter
        Receives progress and remarks.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(np.random.default_rng(1), systems=5, queries=20, depth=5)
    >>> found = probeval.meta_study(campaign, ["nDCG@5", "P@5"], tests=["t", "sign"], splits=20)
    >>> found
    <MetaStudy: 2 measures, 2 tests on synthetic>
    >>> found["synthetic"].tests_frame(0.05)["test"].tolist()
    ['t', 'sign']
    """
    from probeval.reliability import ALPHAS, TESTS, MetaCampaign, MetaStudy
    from probeval.reliability.meta import SAMPLES, SPLITS, check_alphas

    levels = check_alphas(ALPHAS if alphas is None else alphas)
    chosen = tuple(dict.fromkeys(TESTS if tests is None else tests))
    for test in chosen:
        if test not in TESTS:
            raise ReliabilityError(f"No test {test!r}: {', '.join(TESTS)}.{did_you_mean(test, TESTS)}")
    if not chosen or (metrics is not None and not metrics) or (scales is not None and not scales):
        raise ReliabilityError("A meta-evaluation needs at least one measure, one scale and one test.")
    splits, samples = SPLITS if splits is None else splits, SAMPLES if samples is None else samples
    found = as_campaigns(campaigns)

    def pieces(collection: Collection) -> list[partial[StudiedMeasure]]:
        """The work of a campaign: one piece per measure and scale."""
        from probeval.reliability import study_measure

        return [
            partial(
                study_measure, scores, tests=chosen, alphas=levels, splits=splits, samples=samples, level=level,
                seed=seed, campaign=collection.name, **_users(scores.metric, scores.scale),
            )
            for scores in _scored(collection, metrics, scales, reporter)
        ]  # fmt: skip

    studied = over_campaigns(found, pieces, jobs=jobs, scheduler=scheduler, reporter=reporter)
    for collection, measures in zip(found, studied, strict=True):
        _tell(collection.name, measures, reporter)
    return MetaStudy(
        campaigns=tuple(MetaCampaign(c.name, tuple(m)) for c, m in zip(found, studied, strict=True)),
        alphas=levels, level=level, splits=splits, samples=samples, seed=seed,
    )  # fmt: skip


def default_measures(scale: Scale, depth: int) -> list[Metric]:
    """The usual measures for a scale, to a depth of at most 10.

    On grades 0 to 100 a document is relevant to AP from 40 on, and the gain of ERR is the grade.

    >>> default_measures(Scale.binary(), 100)
    [P@10, AP@10, DCG@10, nDCG@10, RBP@10, ERR@10]
    >>> default_measures(Scale.parse("fine"), 5)
    [CG@5, DCG@5, nDCG@5, Q@5, RBP@5, GAP@5, ERR(gain="linear")@5, AP(rel=40)@5]
    """
    names = BINARY if len(scale) == 2 else GRADED
    changed = FINE if str(scale) == "fine" else {}
    return [as_metric(f"{changed.get(name, name)}@{min(depth, DEEPEST)}") for name in names]


def _scored(
    collection: Collection,
    metrics: Sequence[AnyMetric] | None,
    scales: Sequence[Scale | str] | None,
    reporter: Reporter,
) -> list[Measured]:
    """The scores of a campaign by every measure on every scale; says how many pairs are not judged."""
    found = []
    named = [collection.scale()] if scales is None else [collection.scale(as_scale(scale)) for scale in scales]
    for scale in dict.fromkeys(named):
        given = default_measures(scale, collection.runs.depth) if metrics is None else [as_metric(m) for m in metrics]
        for metric in dict.fromkeys(given):
            try:
                found.append(judged_scores(collection, metric, scale=scale))
            except MetricError as error:
                raise MetricError(f"{collection.name}: {error}") from None
    most = max(found, key=lambda scores: scores.pool - scores.judged_pairs)
    if most.judged_pairs < most.pool:
        reporter.say(
            f"{collection.name}: {most.pool - most.judged_pairs:,} of {most.pool:,} pairs are not judged: they count "
            "as not relevant."
        )
    return found


def _tell(campaign: str, measures: Sequence[StudiedMeasure], reporter: Reporter) -> None:
    """Say each note once, with the measures that it is about if it is not about all."""
    for note in dict.fromkeys(note for measure in measures for note in measure.notes):
        about = [m for m in measures if note in m.notes]
        named = "" if len(about) == len(measures) else f", {', '.join(f'{m.metric} on {m.scale}' for m in about)}"
        reporter.say(f"{campaign}{named}: {note}")


def _users(metric: Metric, scale: Scale) -> dict[str, float]:
    """What is published about the users of a measure; NaN if nothing is."""
    from probeval.satisfaction import agreement_for

    agreement = agreement_for(metric, scale)
    try:
        satisfied = mapping_for(metric, scale).distance_from_score
    except SatisfactionError:
        satisfied = math.nan
    return {
        "preference_distance": math.nan if agreement is None else agreement.distance_from_ideal,
        "satisfaction_distance": satisfied,
    }
