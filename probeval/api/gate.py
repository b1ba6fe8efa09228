"""Whether a new system may replace a baseline: a verdict at a level, for CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from probeval.api.evaluate import EvaluationInputs
from probeval.api.evaluation import Evaluation
from probeval.api.evidence import Beside, as_collection
from probeval.api.settings import MEASURE, Clusters, Distribution, Work
from probeval.arrays import Bools, Floats
from probeval.characters import xml_text
from probeval.data import Collection, Runs, as_clusters, as_query_weights, as_segments
from probeval.display import Table
from probeval.errors import DataError, SatisfactionError, ScoreError
from probeval.metrics import AnyMetric
from probeval.records import About, part, task
from probeval.reporting import Reporter
from probeval.results import FLAT, HIDDEN, UNSET, Result, UnsetType, frame, key
from probeval.scores import Comparison, Ranking
from probeval.scores.decision import PairDecision, Verdicts
from probeval.scores.evaluate import as_metric
from probeval.scores.ideal import retrieved_pairs
from probeval.scores.trust import Trustworthy, trustworthy
from probeval.scores.two_systems import on_new_queries
from probeval.streams import Purpose, stream
from probeval.text_tables import markdown_table, markdown_text

__all__ = ["EXIT_CODES", "Gate", "GateCheck", "GateForecast", "GateInputs", "GateRule", "gate"]

PATHS = 4  # simulated truths of a forecast: an estimate in seconds
LASTS = 20  # judgments for which a forecast verdict must hold
GateVerdict = Literal["better", "not worse", "worse", "tied", "undecided"]
EXIT_CODES: dict[GateVerdict, int] = {"better": 0, "not worse": 0, "undecided": 3, "tied": 3, "worse": 4}
GATE_WORDS: dict[bool, dict[Verdicts, GateVerdict]] = {  # the verdict of a decision, by whether not worse is enough
    False: {"better": "better", "equal": "tied", "worse": "worse", "undecided": "undecided"},
    True: {"better": "not worse", "worse": "worse", "undecided": "undecided"},
}
SegmentFails = Literal["none", "worse"]
Correction = Literal["bonferroni", "none"]
ORDER: tuple[GateVerdict, ...] = ("worse", "undecided", "tied", "not worse", "better")  # the first one decides


@dataclass(frozen=True)
class GateRule:
    """What the new system must show.

    Examples
    --------
    >>> GateRule(not_worse=True, rope=0.01).demand
    'not worse by more than 0.01'
    """

    level: Annotated[float, "The probability that a verdict needs, and that of intervals."] = 0.95
    rope: Annotated[float, "The largest difference that does not matter."] = 0.0
    not_worse: Annotated[
        bool, "Whether a system passes that is not worse by more than the rope; otherwise it must be better by more."
    ] = False
    segment_fails: Annotated[SegmentFails, "Whether a segment that is worse fails the gate: worse or none."] = "none"
    correction: Annotated[Correction, "The correction of verdicts of worse for their number."] = "bonferroni"
    n_checks: Annotated[int, "The number of checks of which one that is worse fails the gate."] = 1

    def __post_init__(self) -> None:
        if not 0.5 < self.level < 1:
            raise ScoreError(f"The level of a verdict is a probability between .5 and 1, got {self.level:g}.")

    @property
    def level_worse(self) -> float:
        """The probability that a verdict of worse needs: the errors of all checks together are then within 1 - level.

        >>> round(GateRule(n_checks=5).level_worse, 4)
        0.99
        """
        return 1 - (1 - self.level) / (self.n_checks if self.correction == "bonferroni" else 1)

    @property
    def demand(self) -> str:
        """The demand in words."""
        by = f" by more than {self.rope:g}" if self.rope else ""
        return ("not worse" if self.not_worse else "better") + by

    def p_pass(self, comparison: Comparison) -> float:
        """The probability that a difference, new minus baseline, is as demanded."""
        return 1.0 - comparison.p_worse if self.not_worse else comparison.p_better

    def verdict(self, comparison: Comparison) -> GateVerdict:
        """The verdict on a difference, new minus baseline; a tie passes only if the demand is not worse."""
        worse = comparison.p_worse
        if self.not_worse:  # two verdicts: a difference within the rope is on the side of those that are better
            found = PairDecision(1.0 - worse, worse, 0.0, self.level).verdict
        else:
            found = comparison.verdict(level=self.level)
        verdict = GATE_WORDS[self.not_worse][found]
        return "undecided" if verdict == "worse" and worse < self.level_worse else verdict

    @property
    def sentence(self) -> str | None:
        """How verdicts are corrected, if there is more than one check."""
        if self.n_checks == 1:
            return None
        if self.correction == "none":
            return f"Each of {self.n_checks} checks is at {self.level:g}, without a correction for their number."
        return (
            f"One of {self.n_checks} checks that is worse fails the gate, so worse needs a probability of "
            f"{self.level_worse:.4g} (Bonferroni). All measures must pass, which needs no correction."
        )

    def confidence(self, ranking: Ranking) -> float:
        """The probability of the likeliest verdict, from a ranking of the new system and the baseline."""
        better, worse = float(ranking.p_better[0, 1]), float(ranking.p_better[1, 0])
        return max(worse, 1.0 - worse) if self.not_worse else max(better, worse, 1.0 - better - worse)


@dataclass(frozen=True, eq=False)
class GateCheck:
    """The new system against the baseline by one measure, on all queries or on a segment of them."""

    comparison: Annotated[Comparison, HIDDEN]
    rule: Annotated[GateRule, HIDDEN]
    metric: Annotated[str, "The measure."]
    segment: Annotated[str | None, "The segment; null for all queries."]
    queries: Annotated[int, "The number of queries."]
    pool: Annotated[int, "The number of pairs of these queries."]
    judged: Annotated[int, "The number of judged ones."]

    @key
    def new(self) -> float:
        """The expected score of the new system."""
        return self.comparison.difference.scores[self.comparison.a].mean()

    @key
    def baseline(self) -> float:
        """The expected score of the baseline."""
        return self.comparison.difference.scores[self.comparison.b].mean()

    @key
    def difference(self) -> float:
        """The expected difference, new minus baseline."""
        return self.comparison.difference.mean()

    @key
    def lower(self) -> float:
        """The lower end of the interval of the difference, which holds it with the probability of the level."""
        return self.comparison.difference.interval(self.rule.level)[0]

    @key
    def upper(self) -> float:
        """The upper end."""
        return self.comparison.difference.interval(self.rule.level)[1]

    @key
    def p_better(self) -> float:
        """The probability that the new system is better by more than the rope."""
        return self.comparison.p_better

    @key
    def p_equal(self) -> float:
        """The probability that the two differ by no more than the rope."""
        return self.comparison.p_equal

    @key
    def p_worse(self) -> float:
        """The probability that the new system is worse by more than the rope."""
        return self.comparison.p_worse

    @key
    def p_pass(self) -> float:
        """The probability that the new system is as demanded."""
        return self.rule.p_pass(self.comparison)

    @key
    def p_pass_new_queries(self) -> float:
        """The same on new queries of the same kind; null for a single query."""
        scores = self.comparison.difference.scores
        if scores.n_effective <= 1:
            return float("nan")
        a, b = self.comparison.a, self.comparison.b
        new = on_new_queries(scores)
        return float("nan") if new is None else self.rule.p_pass(new.compare(a, b, rope=self.comparison.rope))

    @key
    def verdict(self) -> GateVerdict:
        """The verdict at the level."""
        return self.rule.verdict(self.comparison)

    @property
    def name(self) -> str:
        """The measure, and the segment if there is one."""
        return self.metric if self.segment is None else f"{self.metric}, {self.segment}"

    @property
    def reason(self) -> str:
        """The verdict and its numbers, in one sentence."""
        found, level, verdict = self.comparison, self.rule.level, self.verdict
        numbers = f"{self.name} {self.difference:+.4f} [{self.lower:+.4f}, {self.upper:+.4f}]"
        by = f" by more than {found.rope:g}" if found.rope else ""
        if verdict == "better":
            return f"{found.a} is better than {found.b}{by}: {numbers}, P(better) {found.p_better:.3f}."
        if verdict == "not worse":
            return f"{found.a} is not worse than {found.b}{by}: {numbers}, P(not worse) {self.p_pass:.3f}."
        if verdict == "worse":
            return f"{found.a} is worse than {found.b}{by}: {numbers}, P(worse) {found.p_worse:.3f}."
        if verdict == "tied":
            return (
                f"{found.a} and {found.b} are tied{f' within {found.rope:g}' if found.rope else ''}: {numbers}, "
                f"P(tied) {found.p_equal:.3f}. With --not-worse a tie passes."
            )
        chance = (
            f"P(not worse) {self.p_pass:.3f}"
            if self.rule.not_worse
            else f"P(better) {found.p_better:.3f}, P(worse) {found.p_worse:.3f}"
        )
        high = self.rule.level_worse
        needed = f"{level:g} needed" if high == level else f"{level:g} needed, {high:.4g} for worse"
        return f"Undecided whether {found.a} is {self.rule.demand} than {found.b}: {numbers}, {chance}, {needed}."


@dataclass(frozen=True)
class GateForecast:
    """The judgments that are likely to settle an undecided gate."""

    judgments: Annotated[int, "The number of further judgments."]
    lower: Annotated[int, "The lower end of its 90% interval."]
    upper: int
    settled: Annotated[float, "The share of simulated truths in which judgments settle it."]

    def __str__(self) -> str:
        if self.settled < 0.5:
            return (
                f"Judgments alone are unlikely to settle it: they did in {self.settled:.0%} of the simulated truths. "
                "Consider more queries, --not-worse with a --rope, or a lower --level."
            )
        return (
            f"About {self.judgments:,} more judgments are likely to settle it, an estimate (90% interval "
            f"{self.lower:,} to {self.upper:,})."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Gate(Result):
    """The verdict on a new system against a baseline.

    Examples
    --------
    >>> import probeval
    >>> new, baseline = ({name: {"q1": {"d1": a, "d2": b}}} for name, a, b in (("new", 2, 1), ("old", 1, 2)))
    >>> result = probeval.gate(new, baseline, "nDCG@2", qrels={"q1": {"d1": 1, "d2": 0}}, scale="binary")
    >>> result.verdict, result.exit_code
    ('better', 0)
    """

    evaluations: tuple[Evaluation, ...]  # the two systems, once per measure, the new one first
    checks: Annotated[tuple[GateCheck, ...], "One entry per measure on all queries; all must pass."]
    segments: Annotated[
        tuple[GateCheck, ...],
        "One entry per measure and segment; they decide if a segment that is worse fails the gate.",
    ]
    rule: Annotated[GateRule, FLAT]
    forecast: Annotated[
        GateForecast | UnsetType, "The judgments that are likely to settle it, if undecided and asked for."
    ] = UNSET
    trust: Annotated[
        tuple[Trustworthy, ...] | UnsetType, "Whether each source of labels may be used, if that is asked for."
    ] = UNSET

    @property
    def refused(self) -> tuple[Trustworthy, ...]:
        """The sources of labels that may not be used: nothing is decided with them."""
        return () if self.trust is UNSET else tuple(one for one in self.trust if not one.trusted)

    @property
    def deciding(self) -> GateCheck:
        """The check that decides: the one that is furthest from passing."""
        failing = [s for s in self.segments if self.rule.segment_fails == "worse" and s.verdict == "worse"]
        return min([*self.checks, *failing], key=lambda check: (ORDER.index(check.verdict), check.p_pass))

    @key
    def verdict(self) -> GateVerdict:
        """The verdict: undecided if labels are refused; else the worst of the checks."""
        return "undecided" if self.refused else self.deciding.verdict

    @key
    def passed(self) -> bool:
        """Whether the new system passes."""
        return self.exit_code == 0

    @key
    def exit_code(self) -> int:
        """The exit code of ``probeval gate``: 0 passed, 3 undecided or tied, 4 worse."""
        return EXIT_CODES[self.verdict]

    @key
    def reason(self) -> str:
        """The verdict and its numbers, in one line."""
        if self.refused:
            return f"Undecided, as labels are refused. {'. '.join(one.reason for one in self.refused)}."
        passing = sum(EXIT_CODES[check.verdict] == 0 for check in self.checks)
        of = "" if len(self.checks) == 1 else f"{passing} of {len(self.checks)} measures pass. "
        return of + self.deciding.reason

    @key
    def new(self) -> str:
        """The new system."""
        return self.deciding.comparison.a

    @key
    def baseline(self) -> str:
        """The baseline."""
        return self.deciding.comparison.b

    @key
    def model(self) -> str:
        """The relevance model."""
        return self.evaluations[0].choice.name

    @key
    def target(self) -> str:
        """Whether scores are on these queries or on their population."""
        return self.evaluations[0].scores.target

    def pairs(self, n: int) -> pd.DataFrame:
        """The next ``n`` pairs to judge, in turn from each undecided measure: the columns of :class:`NextPair`.

        A quarter of them is drawn at random from both sides. No pair if no measure is undecided. If labels are refused,
        the pairs are those that tell whether they may be used.
        """
        if self.refused:
            return self.evaluations[0].next(n, goal=f"trust:{self.refused[0].least:g}").to_frame()
        undecided = [
            evaluation.next(n).to_frame()
            for evaluation, check in zip(self.evaluations, self.checks, strict=True)
            if check.verdict == "undecided"
        ]
        if not undecided:
            return self.evaluations[0].next(0).to_frame()
        in_turn = pd.concat(undecided).sort_index(kind="stable")
        return in_turn.drop_duplicates(["query", "doc"]).head(n).reset_index(drop=True)

    def to_frame(self) -> pd.DataFrame:
        """One row per measure, then one per measure and segment."""
        return frame((*self.checks, *self.segments), GateCheck)

    def _headline(self) -> str:
        return f"{self.new} against {self.baseline}: {self.verdict}"

    def tables(self) -> tuple[Table, ...]:
        """One row per check; the number of judgments is in a sentence."""
        shown = self.to_frame().drop(columns=["pool", "judged", "p_pass", "p_pass_new_queries"])
        if self.segments:
            shown["segment"] = shown["segment"].fillna("all")
        else:
            shown = shown.drop(columns="segment")
        title = f"{self._headline()}{self.deciding.comparison.difference.scores.caveat}"
        return (Table(shown, title, intervals=("difference", "lower", "upper")),)

    def sentences(self) -> list[str]:
        """Why; judgments; the ideal list; weights; new queries; segments that are worse; what would settle it."""
        check, scores = self.deciding, self.deciding.comparison.difference.scores
        whose = "these queries" if scores.target == "collection" else "new queries"
        wide = f"{100 * self.rule.level:g}%"
        lines = [
            self.reason,
            f"{check.judged:,} of {check.pool:,} pairs judged; probabilities and {wide} intervals are for {whose}"
            f"{scores.caveat}.",
        ]
        if scores.ideal is not None:
            lines.append(scores.ideal.sentence)
        if scores.clusters is not None:
            lines.append(
                f"{check.queries} queries are in {len(np.unique(scores.clusters))} clusters; new queries are of others."
            )
        elif scores.query_weights is not None:
            lines.append(
                f"By their weights, {check.queries} queries count as much as {scores.n_effective:.1f} equal ones."
            )
        if whose == "these queries" and scores.n_effective > 1:
            what = "not worse" if self.rule.not_worse else "better"
            lines.append(f"On new queries of the same kind, P({what}) is {check.p_pass_new_queries:.3f}.")
        if whose == "these queries" and check.judged == check.pool and not self.rule.rope:
            lines.append(
                "Every pair is judged, so that the difference on these queries is certain, however small. Give --rope, "
                "or --target population."
            )
        lines += [
            f"Segment {segment.segment}: {segment.reason}"
            for segment in self.segments
            if segment.verdict == "worse" and segment is not check
        ]
        if self.trust is not UNSET and not self.refused:
            lines += [f"Labels may be used: {one.reason}." for one in self.trust]
        if self.rule.sentence is not None:
            lines.append(self.rule.sentence)
        if self.forecast is not UNSET:
            lines.append(str(self.forecast))
        return lines

    def markdown(self) -> str:
        """A summary in Markdown, fit for a comment on a pull request."""
        state = "passed" if self.passed else "not passed"
        columns = {
            "metric": "measure", "segment": "queries", "baseline": self.baseline, "new": self.new,
            "difference": "difference", "p_better": "P(better)", "p_equal": "P(tied)", "p_worse": "P(worse)",
            "verdict": "verdict",
        }  # fmt: skip
        checks = (*self.checks, *self.segments)
        table = self.to_frame().assign(
            segment=[f"{check.segment or 'all'} ({check.queries})" for check in checks],
            difference=[f"{check.difference:+.4f} [{check.lower:+.4f}, {check.upper:+.4f}]" for check in checks],
        )
        notes = [note for note in self.evaluations[0].notes if note]
        return "\n".join(
            [
                f"### Gate {state}: {self.verdict}",
                "",
                markdown_table(table[list(columns)].rename(columns=columns)),
                "",
                *(f"{markdown_text(sentence)}\n" for sentence in self.sentences()),
                "<details><summary>How</summary>\n",
                f"The new system must be {self.rule.demand}, with a probability of at least {self.rule.level:g}. "
                "Intervals have the same probability; a verdict is about one side, so that the interval of a better "
                "system can include 0.\n",
                *(f"- {markdown_text(note)}" for note in notes),
                "",
                "</details>",
                "",
            ]
        )

    def junit(self) -> str:
        """JUnit XML: one test case per measure, segment and source of labels to be trusted.

        Worse is a failure; undecided, tied and refused are skipped.
        """
        checks = (*self.checks, *self.segments)
        labels = () if self.trust is UNSET else self.trust
        skipped = sum(EXIT_CODES[c.verdict] == 3 for c in checks) + len(self.refused)
        totals = {"failures": str(sum(EXIT_CODES[c.verdict] == 4 for c in checks)), "skipped": str(skipped)}
        about = {"name": "probeval gate", "tests": str(len(checks) + len(labels)), "errors": "0", **totals}
        root = ElementTree.Element("testsuites", about)
        suite = ElementTree.SubElement(root, "testsuite", about)
        for check in checks:
            case = ElementTree.SubElement(suite, "testcase", {"classname": "probeval.gate", "name": check.name})
            ending = {4: "failure", 3: "skipped"}.get(EXIT_CODES[check.verdict])
            if ending is None:
                ElementTree.SubElement(case, "system-out").text = check.reason
            else:
                ElementTree.SubElement(case, ending, {"message": check.reason})
        for one in labels:
            case = ElementTree.SubElement(
                suite, "testcase", {"classname": "probeval.gate", "name": f"labels {one.source}"}
            )
            if one.trusted:
                ElementTree.SubElement(case, "system-out").text = one.reason
            else:
                ElementTree.SubElement(case, "skipped", {"message": one.reason})
        for element in root.iter():  # XML has no place for control characters
            element.text = element.text and xml_text(element.text)
            element.attrib.update({name: xml_text(value) for name, value in element.attrib.items()})
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


@dataclass(frozen=True, eq=False, repr=False)
class GateInputs(Work, Distribution, Beside):
    """Decide whether a new system is better than a baseline, or not worse, at a level, with few judgments or none.

    With several measures all must pass. The verdict on all queries decides; segments are shown, and with
    ``segment_fails="worse"`` one that is worse fails the gate.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=4, queries=20, depth=5)
    >>> runs, judgments = campaign.runs, campaign.judgments
    >>> new, old = (runs.select([runs.systems[i]]) for i in (0, 3))
    >>> print(probeval.gate(new, old, "nDCG@5", qrels=judgments, not_worse=True, rope=0.02).reason)
    system-01 is not worse than system-04 by more than 0.02: nDCG@5 ...
    """

    new: Annotated[Any, About("The run of the new system.", metavar="NEW", argument=True, kind=str)]
    baseline: Annotated[Any, About("The run of the baseline.", metavar="BASELINE", argument=True, kind=str)]
    metric: Annotated[AnyMetric | Sequence[AnyMetric], replace(MEASURE, many=True)]
    _: KW_ONLY
    level: Annotated[
        float, About("The probability that a verdict needs, and that of intervals.", least=0.51, most=0.9999)
    ] = 0.95
    not_worse: Annotated[bool, About("Pass a system that is not worse by more than the rope.")] = False
    query_weights: Annotated[
        Any, About("A table of queries and weights, such as their traffic.", metavar="FILE", kind=Path)
    ] = None
    segments: Annotated[
        Any, About("A table of queries and segments; each gets a verdict.", metavar="FILE", kind=Path)
    ] = None
    trust: Annotated[
        float | None,
        About(
            "Refuse labels unless their agreement with people (kappa) is surely this high, and they favour neither "
            "system.",
            metavar="KAPPA",
            least=-0.99,
            most=0.99,
        ),
    ] = None
    segment_fails: Annotated[
        str, About("Fail the gate if a segment is worse, or show segments only.", choices=get_args(SegmentFails))
    ] = "none"
    correction: Annotated[
        str,
        About(
            "The correction of verdicts of worse for the number of measures and segments.", choices=get_args(Correction)
        ),
    ] = "bonferroni"
    clusters: Clusters = None
    forecast: Annotated[
        bool, About("Whether to estimate how many judgments would settle an undecided gate.", option="")
    ] = False

    def run(self) -> Gate:
        """The verdict."""
        given = [self.metric] if isinstance(self.metric, AnyMetric) else self.metric
        measures = [as_metric(one) for one in given]
        if not measures:
            raise DataError("no measure was named. Give at least one, such as nDCG@10.")
        if len(measures) > 1 and str(self.rope).strip().startswith("users="):
            raise SatisfactionError("rope users=SHARE is a difference of one measure. Give one measure, or a number.")
        GateRule(level=self.level)  # before any work
        collection = _both(self.new, self.baseline, self.order, self.reporter)
        queries = [str(query) for query in collection.runs.queries]
        of_queries = None if self.query_weights is None else as_query_weights(self.query_weights, queries)
        parts = {} if self.segments is None else as_segments(self.segments, queries)
        first = part(self, EvaluationInputs, runs=collection, metric=measures[0]).run()
        fails = cast("SegmentFails", self.segment_fails)
        if fails == "worse" and not parts:
            raise DataError("segments can fail the gate, and there are none. Give --segments (segments=) too.")
        rule = GateRule(
            self.level,
            first.estimate.estimation.rope,
            self.not_worse,
            segment_fails=fails,
            correction=cast("Correction", self.correction),
            n_checks=len(measures) * (1 + (len(parts) if fails == "worse" else 0)),
        )
        grouped = None if self.clusters is None else as_clusters(self.clusters, queries)
        first = first.clustered(grouped)
        plain = [first, *(first.by(one, depth=self.depth) for one in measures[1:])]
        evaluations = tuple(_weighted(one, of_queries) for one in plain)
        checks = tuple(_check(one, rule, None, np.ones(len(queries), dtype=bool)) for one in evaluations)
        base = np.ones(len(queries)) if of_queries is None else of_queries
        alone = rule if fails == "worse" else replace(rule, n_checks=1)
        shown = tuple(
            _check(_weighted(one, base * mask), alone, name, mask)
            for one in plain
            for name, mask in parts.items()
            if (base * mask).any()
        )
        trusted = UNSET if self.trust is None else trustworthy(first.estimate, self.trust, level=self.level)
        found = Gate(evaluations, checks, shown, rule, trust=trusted)
        if parts and not np.any(list(parts.values()), axis=0).all():
            missing = int((~np.any(list(parts.values()), axis=0)).sum())
            self.reporter.say(f"{missing} of {len(queries)} queries are in no segment.")
        if not self.forecast or found.verdict != "undecided" or found.refused:
            return found
        return replace(found, forecast=_forecast(found, self.seed))


def _both(new: Any, baseline: Any, order: str, reporter: Reporter) -> Collection:
    """The two runs on one pool, under names that differ."""
    runs = [_one(given, what, order, reporter) for given, what in ((new, "NEW"), (baseline, "BASELINE"))]
    a, b = runs
    names = (a.systems[0], b.systems[0])
    if names[0] == names[1]:
        names = (f"{names[0]}-new", f"{names[1]}-baseline")
    for name, own, other in ((names[0], a, b), (names[1], b, a)):
        missing = set(other.queries) - set(own.queries)
        if missing == set(other.queries):
            raise DataError(f"{names[0]} and {names[1]} have no query in common: {a.queries[0]!r}, {b.queries[0]!r}.")
        if missing:
            reporter.say(f"{name} has no documents for {len(missing)} queries, on which it scores 0.")
    first, second = (replace(run, systems=(name,)) for run, name in zip(runs, names, strict=True))
    return Collection("gate", first.on(a.pool.union(b.pool)).joined(second))


def _one(given: Any, what: str, order: str, reporter: Reporter) -> Runs:
    found = as_collection(given, order=order, reporter=reporter).runs
    if len(found.systems) != 1:
        where = f" ({given})" if isinstance(given, (str, Path)) else ""
        raise DataError(f"{what}{where} must be one run, got {len(found.systems)} systems.")
    return found


def _weighted(evaluation: Evaluation, weights: Floats | None) -> Evaluation:
    """The evaluation with weights of the queries."""
    if weights is None:
        return evaluation
    estimate = evaluation.estimate
    weighted = replace(estimate, estimation=replace(estimate.estimation, query_weights=weights))
    return replace(evaluation, estimate=weighted)


def _check(evaluation: Evaluation, rule: GateRule, segment: str | None, queries: Bools) -> GateCheck:
    """The comparison of the two systems on some of the queries."""
    estimate = evaluation.estimate
    relevance = estimate.prediction.relevance
    mine = queries[relevance.pool.query] & retrieved_pairs(estimate.estimation.runs)
    return GateCheck(
        evaluation.compare(*evaluation.scores.systems),
        rule,
        str(evaluation.scores.metric),
        segment,
        queries=int(queries.sum()),
        pool=int(mine.sum()),
        judged=int((relevance.certain & mine).sum()),
    )


def _forecast(found: Gate, seed: int) -> GateForecast:
    """The further judgments that the slowest of the undecided measures is likely to need."""
    from probeval.simulation import forecast as forecast_judging

    slowest: GateForecast | None = None
    for evaluation, check in zip(found.evaluations, found.checks, strict=True):
        if check.verdict != "undecided":
            continue
        state = evaluation.next(1).state
        ahead = forecast_judging(
            state,
            target=found.rule.level,
            paths=PATHS,
            lasts=LASTS,
            confidence=found.rule.confidence,
            rng=stream(seed, Purpose.FORECAST),
        )
        needed = ahead.needed(found.rule.level, lasts=LASTS)
        start = state.scores.judged
        judgments, low, high = (max(round(needed[name] - start), 1) for name in ("judgments", "lower", "upper"))
        settled = float((ahead.confidence[:, -1] >= found.rule.level).mean())
        one = GateForecast(judgments, low, high, settled)
        if slowest is None or (one.settled, -one.judgments) < (slowest.settled, -slowest.judgments):
            slowest = one
    assert slowest is not None  # the gate is undecided
    return slowest


gate = task(GateInputs, "gate")
