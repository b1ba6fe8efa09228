"""Measures, scales and tests compared on collections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated

from probeval.api.campaigns import CampaignFolders, as_campaigns
from probeval.api.classical import judged_scores
from probeval.api.evidence import as_scale
from probeval.api.settings import Jobs, Level, Samples, Scheduler, Seed, Work
from probeval.data import Collection, Scale
from probeval.errors import MetricError, ProbevalError, ReliabilityError, SatisfactionError, did_you_mean
from probeval.metrics import AnyMetric, Measured, Metric
from probeval.metrics.mapping import mapping_for
from probeval.records import About, task
from probeval.reliability import TESTS
from probeval.reporting import Reporter
from probeval.scores.evaluate import as_metric
from probeval.studies import ALPHAS, MetaCollection, MetaStudy, StudiedMeasure, study_measure
from probeval.studies.collections import over_collections
from probeval.studies.meta import SAMPLES, SPLITS, check_alphas

__all__ = ["MetaStudyInputs", "default_measures", "meta_study", "parse_levels"]

DEEPEST = 10
MAX_LEVELS = 1000  # of a range
# On two grades CG is P, and Q and GAP are AP (Urbano 2013, Table 5.2).
BINARY = ("P", "AP", "DCG", "nDCG", "RBP", "ERR")
GRADED = ("CG", "DCG", "nDCG", "Q", "RBP", "GAP", "ERR", "AP")
# With grades 0 to 100, gains of 2^grade - 1 would count only the highest, and most grades above 0 are not relevant.
FINE = {"ERR": 'ERR(gain="linear")', "AP": "AP(rel=40)"}


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
    if not (width > 0 and low <= high and (high - low) / width < MAX_LEVELS):
        raise wrong
    return [round(low + i * width, 12) for i in range(int((high - low) / width + 1e-9) + 1)]


@dataclass(frozen=True, eq=False, repr=False)
class MetaStudyInputs(Work):
    """Compare measures, scales of grades and significance tests on finished campaigns.

    Which measure tells most systems apart, which test contradicts itself least on other queries, which scores are most
    reliable, and which are nearest to users. Each scale is combined with each measure, and unjudged documents count as
    not relevant. By default, the measures are the usual ones for the scale (:func:`default_measures`), the scale is
    that of the judgments, and the levels are .01, .02, .., .1. The same seed gives the same result, for any number of
    processes.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=5, queries=20, depth=5)
    >>> found = probeval.meta_study(campaign, ["nDCG@5", "P@5"], tests=["t", "sign"], splits=20)
    >>> found
    <MetaStudy: 2 measures, 2 tests on synthetic>
    >>> found["synthetic"].tests_frame(0.05)["test"].tolist()
    ['t', 'sign']
    """

    campaigns: CampaignFolders
    metrics: Annotated[
        Sequence[AnyMetric] | None,
        About(
            "A measure such as nDCG@10. Default: the usual ones for the scale.",
            metavar="METRIC",
            option="--metric",
            kind=str,
            many=True,
        ),
    ] = None
    _: KW_ONLY
    scales: Annotated[
        Sequence[Scale | str] | None,
        About(
            "A scale to cut the grades to, such as fine:4 or binary:40. Default: as judged.",
            metavar="SCALE",
            option="--scale",
            kind=str,
            many=True,
        ),
    ] = None
    tests: Annotated[
        Sequence[str],
        About(
            "A test of the difference between two systems. Default: all.",
            option="--test",
            choices=tuple(TESTS),
            many=True,
        ),
    ] = tuple(TESTS)
    alphas: Annotated[
        Sequence[float],
        About(
            "Levels of significance: a list, or a range in steps of its lower end or of STEP.",
            metavar="A,A,..|A-B[:STEP]",
            option="--alpha",
            kind=str,
            parse=parse_levels,
            default=".01-.1",
        ),
    ] = ALPHAS
    splits: Annotated[int, About("The number of random halves of the queries.", least=1)] = SPLITS
    samples: Samples = SAMPLES
    level: Level = 0.95
    jobs: Jobs = 1
    scheduler: Scheduler = None
    seed: Seed = 0

    def run(self) -> MetaStudy:
        """The study."""
        levels, chosen = check_alphas(self.alphas), tuple(dict.fromkeys(self.tests))
        for test in chosen:
            if test not in TESTS:
                raise ReliabilityError(f"No test {test!r}: {', '.join(TESTS)}.{did_you_mean(test, TESTS)}")
        given = (chosen, self.metrics, self.scales)
        if any(one is not None and not one for one in given):
            raise ReliabilityError("A meta-evaluation needs at least one measure, one scale and one test.")
        found = as_campaigns(self.campaigns, reporter=self.reporter)

        def pieces(collection: Collection) -> list[partial[StudiedMeasure]]:
            """The work of a collection: one piece per measure and scale."""
            return [
                partial(
                    study_measure, scores, tests=chosen, alphas=levels, splits=self.splits, samples=self.samples,
                    level=self.level, seed=self.seed, campaign=collection.name, **_users(scores.metric, scores.scale),
                )
                for scores in _scored(collection, self.metrics, self.scales, self.reporter)
            ]  # fmt: skip

        studied = over_collections(found, pieces, jobs=self.jobs, scheduler=self.scheduler, reporter=self.reporter)
        for collection, measures in zip(found, studied, strict=True):
            _tell(collection.name, measures, self.reporter)
        return MetaStudy(
            campaigns=tuple(MetaCollection(c.name, tuple(m)) for c, m in zip(found, studied, strict=True)),
            alphas=levels, level=self.level, splits=self.splits, samples=self.samples, seed=self.seed,
        )  # fmt: skip


meta_study = task(MetaStudyInputs, "meta_study")


def default_measures(scale: Scale, depth: int) -> list[Metric]:
    """The usual measures for a scale, to a depth of at most 10.

    On grades 0 to 100 a document is relevant to AP from 40 on, and the gain of ERR is the grade.

    >>> default_measures(Scale.binary(), 100)
    [P@10, AP@10, DCG@10, nDCG@10, RBP(p=0.8)@10, ERR@10]
    >>> default_measures(Scale.parse("fine"), 5)
    [CG@5, DCG@5, nDCG@5, Q@5, RBP(p=0.8)@5, GAP@5, ERR(gain="linear")@5, AP(rel=40)@5]
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
    """The scores of a collection by every measure on every scale; says how many pairs are not judged."""
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
