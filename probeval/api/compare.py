"""Every pair of systems compared: by a relevance model on few judgments, by tests on complete ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from probeval.api.classical import judged_scores, note_left_out
from probeval.api.comparisons import (
    Comparisons,
    FurtherTests,
    ModelComparisons,
    NewQuerySystem,
    PairwiseComparisons,
    PosteriorComparisons,
    SystemComparisons,
    expect_new_query,
    satisfaction_with,
)
from probeval.api.evaluate import EvaluationInputs
from probeval.api.evaluation import Evaluation
from probeval.api.evidence import Evidence, Remarks, ScoresOrRuns, as_scale, note_outside, note_texts, select_model
from probeval.api.settings import Clusters, Estimating, Level, MeasureOfRuns, WorkOnParts
from probeval.api.studies import is_score_table
from probeval.api.users import agreement_of, as_rope
from probeval.arrays import Floats
from probeval.data import Collection, Scale, as_clusters, with_reference
from probeval.data.partitions import as_partitions
from probeval.data.problem import Grades
from probeval.errors import DataError, ReliabilityError, SatisfactionError, did_you_mean
from probeval.metrics import AnyMetric, Measured, Metric
from probeval.records import About, part, task
from probeval.relevance import Card
from probeval.relevance.models.base import Predicts
from probeval.reliability import (
    TESTS,
    Observed,
    Pairwise,
    ScorePosterior,
    TargetTests,
    adjust,
    compare_bayes,
    compare_with_target,
    difference_bounds,
    differences,
    noninferiority_test,
    observe,
    pair_index,
    probability_significant,
    read_scores,
    rules,
)
from probeval.reliability import compare as compare_pairwise
from probeval.reliability.posterior import DRAWS as BAYES_DRAWS
from probeval.reliability.significance import as_scores
from probeval.reports.milestones import draw_queries
from probeval.results import UNSET, UnsetType, rows
from probeval.satisfaction import mapping_for
from probeval.scores import score_collection
from probeval.scores.evaluate import as_metric
from probeval.streams import stream

if TYPE_CHECKING:
    from probeval.satisfaction import Agreement, Noticed, Satisfaction

__all__ = ["ComparisonInputs", "SystemComparisons", "compare"]

DRAWS = 1000  # joint draws of scores by a model


@dataclass(frozen=True)
class ComparisonTests:
    """What is tested, and how.

    Parameters
    ----------
    method, correction, samples
        The test of pairs, the correction for multiple comparisons, and the number of resamples.
    alternative, against
        The alternative, and the baseline of one-tailed tests and of non-inferiority.
    target
        A score to test means against.
    margin
        The share of the baseline's score that a system may lose and still not be inferior.
    level, rope, seed
        The probability of intervals, the difference up to which systems count as equal, and the random seed.
    """

    method: str | None
    correction: str | None
    samples: int
    alternative: str
    against: str | None
    target: float | None
    margin: float | None
    level: float
    rope: float
    seed: int

    @property
    def asked(self) -> bool:
        """Whether tests are asked for, rather than a model."""
        named = (self.method, self.correction, self.target, self.margin)
        return self.alternative != "two-sided" or any(value is not None for value in named)

    def check(self, *, bayes: bool) -> None:
        """Raise an error if tests are asked for besides the Bayesian model, or a baseline is needed and not given."""
        if bayes and self.asked:
            raise ReliabilityError(
                "The hierarchical model of scores (--bayes, bayes=) replaces tests: leave out --method, --correction, "
                "--alternative, --target and --noninferior."
            )
        if self.margin is not None and self.against is None:
            raise ReliabilityError("Non-inferiority is relative to a baseline: name it with --against (against=).")
        if self.alternative != "two-sided" and self.against is None and self.target is None:
            raise ReliabilityError(
                f"A one-tailed test ({self.alternative}) is against a baseline or a target: give --against SYSTEM or "
                "--target SCORE (against=, target=)."
            )

    def pairs(self, scores: Observed | Measured) -> Pairwise:
        """Return the tests of all pairs; one-tailed against the baseline, if there is one."""
        return compare_pairwise(
            scores,
            method=self.method or "t",
            correction=self.correction,
            level=self.level,
            rope=self.rope,
            alternative="two-sided" if self.against is None else self.alternative,
            against=self.against,
            samples=self.samples,
            rng=stream(self.seed),
        )

    def means(self, scores: Observed | Measured) -> TargetTests | None:
        """Return the tests of means against the target; None without one."""
        if self.target is None:
            return None
        return compare_with_target(
            scores,
            self.target,
            method=self.method if self.method in TESTS else "t",
            alternative=self.alternative,
            correction=self.correction or "holm",
            level=self.level,
            samples=self.samples,
            rng=stream(self.seed),
        )

    def noninferior(self, scores: Observed | Measured, systems: Sequence[str]) -> dict[str, list[Any]]:
        """Return p_noninferior and noninferior of each pair, NaN and None for pairs without the baseline."""
        if self.margin is None:
            return {}
        values, names, _ = as_scores(scores)
        pairs = list(combinations(systems, 2))
        with_baseline = np.array([self.against in pair for pair in pairs], dtype=bool)
        others = [b if a == self.against else a for a, b in pairs if self.against in (a, b)]
        p = np.full(len(pairs), np.nan)
        if others:
            kept, baseline = [names.index(other) for other in others], values[names.index(str(self.against))]
            method = self.method if self.method in TESTS else "t"
            _, p[with_baseline] = noninferiority_test(
                values[kept], baseline, margin=self.margin, method=method, samples=self.samples, rng=stream(self.seed)
            )
        p = adjust(p, self.correction or "holm")
        words = ["yes" if value < 1 - self.level else "undecided" for value in p]
        shown = [word if tested else None for word, tested in zip(words, with_baseline, strict=True)]
        return {"p_noninferior": p.tolist(), "noninferior": shown}


def _check_system(against: str | None, systems: Sequence[str]) -> None:
    """Raise an error if the baseline is not one of the systems."""
    if against is not None and against not in systems:
        raise ReliabilityError(f"No system {against!r} to compare with.{did_you_mean(against, systems)}")


def _significant_by_bounds(collection: Collection, found: Measured, systems: Sequence[str], level: float) -> list[str]:
    """Whether each difference will be significant once all is judged, by its bounds: yes, no, or undecided."""
    at = [found.systems.index(s) for s in systems]
    if found.metric.is_linear:
        runs = collection.runs.top(found.metric.cutoff or collection.runs.depth).select(systems)
        codes = Grades.of(collection.judgments, runs.pool, found.scale).codes
        asked = np.isin(runs.queries, found.queries)
        low, high = (end[:, asked] for end in difference_bounds(runs, codes, found.metric, found.scale))
    else:
        a, b = pair_index(len(at))
        least, most = found.lower[at], found.upper[at]
        low, high = least[a] - most[b], most[a] - least[b]
    decided = rules(low, high, alpha=1 - level)
    return [
        "undecided" if rule == 0 else "yes" if sign else "no"
        for sign, rule in zip(decided.sign, decided.rule, strict=True)
    ]


def _significant_by_draws(
    draws: Floats | None, drawn: Sequence[str], systems: Sequence[str], level: float
) -> list[float]:
    """P(significant once all is judged) of each pair, from joint draws of shape (draw, system, query)."""
    if draws is None:
        raise ReliabilityError("P(significant) needs joint draws by query.")
    better, worse = probability_significant([draws[:, [drawn.index(s) for s in systems]]], alpha=1 - level)
    found: list[float] = (better + worse).tolist()
    return found


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonInputs(WorkOnParts, Estimating, Evidence):
    """Compare every pair of systems: which is better, by how much, and how sure that is.

    If a retrieved document within the depth of the measure is not judged, a relevance model predicts it: the result is
    the probability that each system is better, on these queries and on new ones. Complete judgments and tables of
    scores are tested. A method, a correction, ``bayes`` or the model ``"none"`` asks for tests on incomplete judgments
    too; unjudged documents then count as not relevant. With a method of tests, a model adds P(significant once all is
    judged).

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=3, queries=20, depth=5)
    >>> probeval.compare(campaign, "DCG@5").to_frame()[["a", "b"]].to_numpy().tolist()
    [['system-03', 'system-02'], ['system-03', 'system-01'], ['system-02', 'system-01']]
    >>> few = campaign.judgments.take(np.arange(40))
    >>> probeval.compare(campaign.runs, "DCG@5", qrels=few, against="system-01").to_frame()["verdict"].tolist()
    ['undecided', 'undecided']
    """

    runs: ScoresOrRuns
    metric: MeasureOfRuns = None
    _: KW_ONLY
    method: Annotated[
        str | None,
        About(
            "Test each pair, or all by Tukey's test; default: t, if all is judged.",
            choices=("t", "wilcoxon", "sign", "bootstrap", "permutation", "tukey", "randomised-tukey"),
        ),
    ] = None
    correction: Annotated[
        str | None,
        About("The correction for multiple comparisons; default: Holm's.", choices=("none", "holm", "bh")),
    ] = None
    bayes: Annotated[bool, About("Use a hierarchical model of the scores (PyMC) instead of tests.")] = False
    against: Annotated[str | None, About("Show only the pairs with this system.", metavar="SYSTEM")] = None
    level: Level = 0.95
    samples: Annotated[int, About("The number of resamples of bootstrap and randomisation tests.", least=1)] = 100_000
    alternative: Annotated[
        str,
        About(
            "One-tailed: are systems better, or worse, than --against or --target.",
            choices=("two-sided", "greater", "less"),
        ),
    ] = "two-sided"
    target: Annotated[float | None, About("Test the mean of each system against this score.", metavar="SCORE")] = None
    noninferior: Annotated[
        float | None,
        About("Test whether systems lose less than this share of the score of --against.", metavar="SHARE", least=0),
    ] = None
    model: Annotated[
        str | Card | Predicts | None,
        About(
            "The model that predicts unjudged pairs; none: tests in which they count as not relevant.",
            metavar="NAME",
            kind=str,
        ),
    ] = None
    draws: Annotated[
        int | None,
        About("The number of joint draws by a model (1,000), or with --bayes of each chain (2,000).", least=2),
    ] = None  # type: ignore[assignment]  # the default depends on what is drawn
    target_accept: Annotated[
        float | None, About("With --bayes: the sampler's target acceptance rate.", metavar="RATE")
    ] = None
    clusters: Clusters = None
    new_query: Annotated[bool, About("Predict also the score and the satisfaction of users on one new query.")] = False

    @property
    def by_tests(self) -> bool:
        """Whether tests are asked for, rather than a model."""
        return self._tests.asked or self.bayes or self.model == "none"

    @property
    def _tests(self) -> ComparisonTests:
        return part(self, ComparisonTests, margin=self.noninferior, rope=0.0)

    def run(self) -> Comparisons:
        """The comparisons."""
        if self.target_accept is not None and not self.bayes:
            raise ReliabilityError("target_accept is for the sampler of bayes. Leave it out, or ask for bayes.")
        remarks = Remarks(self.reporter)
        tests = self._tests
        tests.check(bayes=self.bayes)
        if self.metric is None:
            if not is_score_table(self.runs):
                raise ReliabilityError("Runs need a measure, such as nDCG@10; a single table (.csv) is read as scores.")
            return self._of_scores(tests, remarks)
        if as_partitions(self.runs) is not None:
            if self.by_tests:
                raise ReliabilityError(
                    "Tests need the scores of all queries, and a campaign in partitions is compared by a model. Name "
                    "the runs that it was made from, or no test."
                )
            return self._by_model(self.runs, remarks)
        if self.by_tests:
            self.refuse("tests")
            if self.outside:
                raise ReliabilityError("outside is for a comparison by a model, and tests have none. Leave out one.")
        scale, measure = as_scale(self.scale), as_metric(self.metric)
        collection = self.collection(self.runs, scale=scale, reporter=self.reporter)
        known = with_reference(collection, self.reference)
        wider = self.pool is not None or bool(self.outside)
        complete = not wider and self.model is None and _is_complete(known, measure, scale, self.depth)
        if not self.by_tests and not complete:
            return self._by_model(collection, remarks)
        if self.jobs is not None or self.scheduler is not None:
            remarks.say("Tests are computed in one process.")
        return self._by_tests(known, measure, tests, remarks)

    def _by_model(self, runs: Any, remarks: Remarks) -> Comparisons:
        """By a relevance model, with the effect on users and the prediction for a new query."""
        in_parts = as_partitions(runs) is not None
        evidence = part(self if in_parts else self.read_as(runs), Evidence)
        scoring = {f.name: getattr(self, f.name) for f in fields(Estimating)} | {"draws": self.draws or DRAWS}
        assert self.metric is not None
        evaluation = EvaluationInputs(
            evidence, self.metric, **scoring, level=self.level, jobs=self.jobs, scheduler=self.scheduler,
            reporter=remarks,
        ).run()  # fmt: skip
        if not in_parts:
            depth, model = evaluation.estimate.estimation.depth, evaluation.choice.model
            note_texts(runs, self.docs, depth=depth, model=model, reporter=remarks)
        if self.clusters is not None:
            if in_parts:
                raise DataError("clusters need all queries in memory: give the runs without partitions.")
            queries = [str(query) for query in evaluation.scores.queries]
            evaluation = evaluation.clustered(as_clusters(self.clusters, queries))
        _check_system(self.against, evaluation.scores.systems)
        return _by_model(evaluation, self, tuple(remarks.notes))

    def _of_scores(self, tests: ComparisonTests, remarks: Remarks) -> Comparisons:
        """By tests of a table of scores."""
        source = self.runs[0] if isinstance(self.runs, (list, tuple)) else self.runs
        rope = as_rope(self.rope, mapping=self.mapping, reporter=remarks)
        agreement = agreement_of(None, None, self.mapping)
        return self._tested(read_scores(source), replace(tests, rope=rope), remarks, agreement, {})

    def _by_tests(
        self, collection: Collection, metric: Metric, tests: ComparisonTests, remarks: Remarks
    ) -> Comparisons:
        """By tests of the scores of runs."""
        scale, level, more = as_scale(self.scale), self.level, dict[str, list[Any]]()
        found = judged_scores(collection, metric, scale=scale, gain=self.gain, depth=self.depth)
        rope = as_rope(self.rope, found.metric, found.scale, mapping=self.mapping, reporter=remarks)
        note_left_out(collection, found, remarks)
        note_outside(collection, remarks)
        if self.model in (None, "none"):
            unused = {
                "Labels": collection.labels,
                "Answers about documents": collection.has_answers or None,
                "Groups of documents": self.metadata,
                "Texts of documents": self.docs,
                "Teams": self.teams,
            }
            for what in (name for name, given in unused.items() if given is not None):
                remarks.say(f"{what} are not used: tests need grades.")
        if found.judged_pairs < found.pool:
            remarks.say(f"{found.pool - found.judged_pairs:,} of {found.pool:,} pairs are not judged: they count as 0.")
        systems = [found.systems[i] for i in np.argsort(-np.round(found.values.mean(axis=1), 12), kind="stable")]
        if found.judged_pairs < found.pool and not self.bayes:
            more["when_judged"] = _significant_by_bounds(collection, found, systems, level)
        if self.model not in (None, "none"):
            choice = select_model(collection, self.model, scale=scale, gain=self.gain, reporter=remarks)
            (drawn,) = score_collection(
                choice.model, collection, [found.metric], depth=self.depth, scale=choice.scale, seed=self.seed,
                method="draws", per_query=True, n=self.draws or DRAWS,
            )  # fmt: skip
            more["p_significant"] = _significant_by_draws(drawn.joint.query_draws, drawn.systems, systems, level)
        users = satisfaction_with(found, found.metric, found.scale, self.mapping)
        effects: tuple[Noticed, ...] = ()
        if users is not None:
            effects = tuple(users.compare(a, b, level=level) for a, b in combinations(systems, 2))
        agreement = agreement_of(found.metric, found.scale, self.mapping)
        return self._tested(found, replace(tests, rope=rope), remarks, agreement, more, users, effects)

    def _tested(
        self,
        scores: Observed | Measured,
        tests: ComparisonTests,
        remarks: Remarks,
        agreement: Agreement | None,
        more: dict[str, list[Any]],
        users: Satisfaction | None = None,
        effects: tuple[Noticed, ...] = (),
    ) -> Comparisons:
        """The tests of scores, with what users notice of the differences."""
        if self.clusters is not None:
            scores = observe(scores).clustered(self.clusters)
            remarks.say("The queries of a cluster count as one, with their mean.")
        values, names, _ = as_scores(scores)
        _check_system(self.against, names)
        result: Pairwise | ScorePosterior
        if self.bayes:
            result = compare_bayes(
                scores, level=self.level, rope=tests.rope, draws=self.draws or BAYES_DRAWS,
                target_accept=self.target_accept, rng=stream(self.seed),
            )  # fmt: skip
            _ = result.diagnostics  # warns where sampling did not converge
        else:
            result = tests.pairs(scores)
        columns = tests.noninferior(scores, result.systems) | more
        pairs = len(result.systems) * (len(result.systems) - 1) // 2
        common: dict[str, Any] = {
            "metric": UNSET if self.metric is None else str(as_metric(self.metric)),
            "new_query": UNSET,
            "against": self.against,
            "notes": tuple(remarks.notes),
            "agreement": agreement,
            "effects": effects,
            "more": rows(FurtherTests, **columns) if columns else (FurtherTests(),) * pairs,
        }
        if self.new_query:
            ordered = values[[names.index(system) for system in result.systems]]
            unit = bool(np.nanmin(ordered) >= 0 and np.nanmax(ordered) <= 1)
            free = (0.0, 1.0) if unit else (-np.inf, np.inf)
            limits = scores.metric.limits if isinstance(scores, Measured) else free
            common["new_query"] = expect_new_query(
                result.systems, ordered, users=users, level=self.level, limits=limits
            )
        if isinstance(result, ScorePosterior):
            return part(result, PosteriorComparisons, **common)
        margin = UNSET if self.noninferior is None else self.noninferior
        noticed = UNSET if agreement is None else agreement.noticed_share(differences(values, *pair_index(len(values))))
        means = tests.means(scores)
        return part(result, PairwiseComparisons, **common, means=means, margin=margin, noticed_share=noticed)


def _by_model(evaluation: Evaluation, given: ComparisonInputs, notes: tuple[str, ...]) -> ModelComparisons:
    """The comparisons by a model, with their effect on users and the prediction for a new query."""
    metric, scale, level = evaluation.scores.metric, evaluation.choice.scale, evaluation.level
    effects: tuple[Noticed, ...] = ()
    ahead: tuple[NewQuerySystem, ...] | UnsetType = UNSET
    if given.new_query or given.mapping is not None or _is_mapped(metric, scale):
        systems = evaluation.ranking.order
        drawn = draw_queries(evaluation.estimate.with_all_pairs)
        users = satisfaction_with(drawn, metric, scale, given.mapping)
        if users is not None:
            pairs = [pair for pair in combinations(systems, 2) if given.against is None or given.against in pair]
            effects = tuple(users.compare(a, b, level=level) for a, b in pairs)
        if given.new_query:
            values = drawn.joint.query_draws
            assert values is not None
            at = [drawn.systems.index(system) for system in systems]
            ahead = expect_new_query(systems, values[:, at], users=users, level=level, limits=metric.limits)
    return ModelComparisons(
        evaluation,
        metric=str(metric),
        new_query=ahead,
        against=given.against,
        notes=notes,
        agreement=agreement_of(metric, scale, given.mapping),
        effects=effects,
    )


def _is_mapped(metric: Metric, scale: Scale) -> bool:
    """Whether a mapping to satisfaction is published for the measure on this scale."""
    try:
        mapping_for(metric, scale)
    except SatisfactionError:
        return False
    return True


def _is_complete(collection: Collection, metric: AnyMetric, scale: Scale | None, depth: int | None) -> bool:
    """Whether every document that the measure counts is judged, on the queries with judgments."""
    if collection.judgments is None or not len(collection.judgments):
        return False
    found = judged_scores(collection, as_metric(metric), scale=scale, depth=depth)
    return found.judged_pairs == found.pool


compare = task(ComparisonInputs, "compare")
