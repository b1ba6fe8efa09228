"""The result of :func:`probeval.gate`: a verdict for each measure and segment, and its exits for CI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from probeval.api.documents import GateCheckDocument, GateDocument, GateForecastDocument, GateVerdict
from probeval.api.evaluation import Evaluation
from probeval.display import Table
from probeval.errors import ScoreError
from probeval.results import Result
from probeval.scores import Comparison, Ranking
from probeval.scores.two_systems import on_new_queries
from probeval.text_tables import markdown_table

__all__ = ["EXIT_CODES", "Gate", "GateCheck", "GateRule"]

EXIT_CODES: dict[GateVerdict, int] = {"better": 0, "not worse": 0, "undecided": 3, "tied": 3, "worse": 4}
ORDER: tuple[GateVerdict, ...] = ("worse", "undecided", "tied", "not worse", "better")  # the first one decides


@dataclass(frozen=True)
class GateRule:
    """What the new system must show.

    Parameters
    ----------
    level
        The probability that a verdict needs.
    rope
        Differences up to this size do not matter.
    not_worse
        Whether a system passes that is not worse by more than the rope; otherwise it must be better by more.

    Examples
    --------
    >>> GateRule(not_worse=True, rope=0.01).demand
    'not worse by more than 0.01'
    """

    level: float = 0.95
    rope: float = 0.0
    not_worse: bool = False

    def __post_init__(self) -> None:
        if not 0.5 < self.level < 1:
            raise ScoreError(f"The level of a verdict is a probability between .5 and 1, got {self.level:g}.")

    @property
    def inside(self) -> float:
        """The probability of intervals: each end leaves out 1 - level, so one that excludes 0 is a verdict."""
        return 2 * self.level - 1

    @property
    def demand(self) -> str:
        """The demand in words."""
        by = f" by more than {self.rope:g}" if self.rope else ""
        return ("not worse" if self.not_worse else "better") + by

    def p_pass(self, comparison: Comparison) -> float:
        """The probability that a difference, new less baseline, is as demanded."""
        return 1.0 - comparison.p_worse if self.not_worse else comparison.p_better

    def verdict(self, comparison: Comparison) -> GateVerdict:
        """The verdict on a difference, new less baseline."""
        if comparison.p_worse >= self.level:
            return "worse"
        if self.p_pass(comparison) >= self.level:
            return "not worse" if self.not_worse else "better"
        return "tied" if not self.not_worse and comparison.p_equal >= self.level else "undecided"

    def confidence(self, ranking: Ranking) -> float:
        """The probability of the likeliest verdict, from a ranking of the new system and the baseline."""
        better, worse = float(ranking.p_better[0, 1]), float(ranking.p_better[1, 0])
        return max(worse, 1.0 - worse) if self.not_worse else max(better, worse, 1.0 - better - worse)


@dataclass(frozen=True, eq=False)
class GateCheck:
    """The new system against the baseline by one measure, on all queries or on a segment of them.

    Parameters
    ----------
    comparison
        The difference, new less baseline.
    rule
        What the new system must show.
    segment
        The segment, or None for all queries.
    queries, pool, judged
        The numbers of queries, of their pairs, and of judged ones.
    """

    comparison: Comparison
    rule: GateRule
    segment: str | None
    queries: int
    pool: int
    judged: int

    @property
    def verdict(self) -> GateVerdict:
        """The verdict at the level."""
        return self.rule.verdict(self.comparison)

    @property
    def metric(self) -> str:
        """The measure."""
        return str(self.comparison.difference.scores.metric)

    @property
    def name(self) -> str:
        """The measure, and the segment if there is one."""
        return self.metric if self.segment is None else f"{self.metric}, {self.segment}"

    @property
    def p_pass(self) -> float:
        """The probability that the new system is as demanded."""
        return self.rule.p_pass(self.comparison)

    @property
    def p_pass_new_queries(self) -> float:
        """The same on new queries of the same kind; NaN for a single query."""
        scores = self.comparison.difference.scores
        if scores.n_effective <= 1:
            return float("nan")
        a, b = self.comparison.a, self.comparison.b
        new = on_new_queries(scores)
        return float("nan") if new is None else self.rule.p_pass(new.compare(a, b, rope=self.comparison.rope))

    @property
    def reason(self) -> str:
        """The verdict and its numbers, in one sentence."""
        found, level, verdict = self.comparison, self.rule.level, self.verdict
        low, high = found.difference.interval(self.rule.inside)
        numbers = f"{self.name} {found.difference.mean():+.4f} [{low:+.4f}, {high:+.4f}]"
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
        return (
            f"Undecided whether {found.a} is {self.rule.demand} than {found.b}: {numbers}, {chance}, {level:g} needed."
        )

    def to_dict(self) -> GateCheckDocument:
        """The check as plain data for JSON."""
        scores = self.comparison.difference.scores
        low, high = self.comparison.difference.interval(self.rule.inside)
        return {
            "metric": self.metric,
            "segment": self.segment,
            "queries": self.queries,
            "pool": self.pool,
            "judged": self.judged,
            "new": scores[self.comparison.a].mean(),
            "baseline": scores[self.comparison.b].mean(),
            "difference": self.comparison.difference.mean(),
            "lower": low,
            "upper": high,
            "p_better": self.comparison.p_better,
            "p_equal": self.comparison.p_equal,
            "p_worse": self.comparison.p_worse,
            "p_pass": self.p_pass,
            "p_pass_new_queries": self.p_pass_new_queries,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Gate(Result):
    """The verdict on a new system against a baseline.

    Parameters
    ----------
    evaluations
        The two systems evaluated, once per measure, the new one first.
    checks
        The comparison by each measure on all queries. All must pass.
    segments
        The comparisons on segments of the queries; they are shown, and do not decide.
    rule
        What the new system must show.
    ahead
        The judgments that are likely to settle it, if undecided and asked for.

    Examples
    --------
    >>> import probeval
    >>> new, baseline = ({name: {"q1": {"d1": a, "d2": b}}} for name, a, b in (("new", 2, 1), ("old", 1, 2)))
    >>> result = probeval.gate(new, baseline, "nDCG@2", qrels={"q1": {"d1": 1, "d2": 0}}, scale="binary")
    >>> result.verdict, result.exit_code
    ('better', 0)
    """

    evaluations: tuple[Evaluation, ...]
    checks: tuple[GateCheck, ...]
    segments: tuple[GateCheck, ...]
    rule: GateRule
    ahead: GateForecastDocument | None = None

    @property
    def deciding(self) -> GateCheck:
        """The check that decides: the one that is furthest from passing."""
        return min(self.checks, key=lambda check: (ORDER.index(check.verdict), check.p_pass))

    @property
    def verdict(self) -> GateVerdict:
        """The verdict: worse if one measure says so, else undecided or tied if one is, else that all pass."""
        return self.deciding.verdict

    @property
    def exit_code(self) -> int:
        """The exit code of ``probeval gate``: 0 passed, 3 undecided or tied, 4 worse."""
        return EXIT_CODES[self.verdict]

    @property
    def passed(self) -> bool:
        """Whether the new system passes."""
        return self.exit_code == 0

    @property
    def reason(self) -> str:
        """The verdict and its numbers, in one line."""
        passing = sum(EXIT_CODES[check.verdict] == 0 for check in self.checks)
        of = "" if len(self.checks) == 1 else f"{passing} of {len(self.checks)} measures pass. "
        return of + self.deciding.reason

    @property
    def new(self) -> str:
        """The new system."""
        return self.deciding.comparison.a

    @property
    def baseline(self) -> str:
        """The baseline."""
        return self.deciding.comparison.b

    def pairs(self, n: int) -> pd.DataFrame:
        """The next ``n`` pairs to judge, in turn from each undecided measure: the columns of :class:`NextPair`.

        A quarter of them is drawn at random from both sides. No pair if no measure is undecided.
        """
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
        """One row per measure, then one per measure and segment: the keys of :class:`GateCheckDocument`."""
        return pd.DataFrame([check.to_dict() for check in (*self.checks, *self.segments)])

    def to_dict(self) -> GateDocument:
        """The gate as plain data, as ``probeval gate --format json`` prints it."""
        document: GateDocument = {
            "verdict": self.verdict,
            "passed": self.passed,
            "exit_code": self.exit_code,
            "reason": self.reason,
            "new": self.new,
            "baseline": self.baseline,
            "model": self.evaluations[0].choice.name,
            "level": self.rule.level,
            "rope": self.rule.rope,
            "not_worse": self.rule.not_worse,
            "target": self.evaluations[0].scores.target,
            "checks": [check.to_dict() for check in self.checks],
            "segments": [check.to_dict() for check in self.segments],
        }
        if self.ahead is not None:
            document["forecast"] = self.ahead
        return document

    def _headline(self) -> str:
        return f"{self.new} against {self.baseline}: {self.verdict}"

    def tables(self) -> tuple[Table, ...]:
        """One row per check; the number of judgments is in a sentence."""
        frame = self.to_frame().drop(columns=["pool", "judged", "p_pass", "p_pass_new_queries"])
        if self.segments:
            frame["segment"] = frame["segment"].fillna("all")
        else:
            frame = frame.drop(columns="segment")
        return (Table(frame, self._headline(), intervals=("difference", "lower", "upper")),)

    def sentences(self) -> list[str]:
        """Why; judgments; the ideal list; weights; new queries; segments that are worse; what would settle it."""
        check, scores = self.deciding, self.deciding.comparison.difference.scores
        whose = "these queries" if scores.target == "collection" else "new queries"
        wide = f"{100 * (2 * self.rule.level - 1):g}%"
        lines = [
            self.reason,
            f"{check.judged:,} of {check.pool:,} pairs judged; probabilities and {wide} intervals are for {whose}.",
        ]
        if scores.ideal is not None:
            lines.append(scores.ideal.sentence)
        if scores.query_weights is not None:
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
            f"Segment {segment.segment}: {segment.reason}" for segment in self.segments if segment.verdict == "worse"
        ]
        if self.ahead is not None:
            lines.append(_likely(self.ahead))
        return lines

    def markdown(self) -> str:
        """A summary in Markdown, fit for a comment on a pull request."""
        state = "passed" if self.passed else "not passed"
        columns = {
            "metric": "measure", "segment": "queries", "baseline": self.baseline, "new": self.new,
            "difference": "difference", "p_better": "P(better)", "p_equal": "P(tied)", "p_worse": "P(worse)",
            "verdict": "verdict",
        }  # fmt: skip
        rows = []
        for check in (*self.checks, *self.segments):
            row: dict[str, Any] = dict(check.to_dict())
            row["segment"] = f"{check.segment or 'all'} ({check.queries})"
            row["difference"] = f"{row['difference']:+.4f} [{row['lower']:+.4f}, {row['upper']:+.4f}]"
            rows.append([row[name] for name in columns])
        notes = [note for note in self.evaluations[0].notes if note]
        return "\n".join(
            [
                f"### Gate {state}: {self.verdict}",
                "",
                markdown_table(pd.DataFrame(rows, columns=list(columns.values()))),
                "",
                *(f"{_as_text(sentence)}\n" for sentence in self.sentences()),
                "<details><summary>How</summary>\n",
                f"The new system must be {self.rule.demand}, with a probability of at least {self.rule.level:g}. "
                f"Intervals are of {self.rule.inside:.0%}: {1 - self.rule.level:.2g} is beyond each end.\n",
                *(f"- {_as_text(note)}" for note in notes),
                "",
                "</details>",
                "",
            ]
        )

    def junit(self) -> str:
        """JUnit XML: one test case per measure and segment; worse is a failure, undecided and tied are skipped."""
        checks = (*self.checks, *self.segments)
        counts = {"failures": 4, "skipped": 3}
        totals = {name: str(sum(EXIT_CODES[c.verdict] == code for c in checks)) for name, code in counts.items()}
        about = {"name": "probeval gate", "tests": str(len(checks)), "errors": "0", **totals}
        root = ElementTree.Element("testsuites", about)
        suite = ElementTree.SubElement(root, "testsuite", about)
        for check in checks:
            case = ElementTree.SubElement(suite, "testcase", {"classname": "probeval.gate", "name": check.name})
            ending = {4: "failure", 3: "skipped"}.get(EXIT_CODES[check.verdict])
            if ending is None:
                ElementTree.SubElement(case, "system-out").text = check.reason
            else:
                ElementTree.SubElement(case, ending, {"message": check.reason})
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _likely(ahead: GateForecastDocument) -> str:
    """The forecast in a sentence."""
    if ahead["settled"] < 0.5:
        return (
            f"Judgments alone are unlikely to settle it: they did in {ahead['settled']:.0%} of the simulated truths. "
            "Consider more queries, --not-worse with a --rope, or a lower --level."
        )
    return (
        f"About {ahead['judgments']:,} more judgments are likely to settle it, an estimate (90% interval "
        f"{ahead['lower']:,} to {ahead['upper']:,})."
    )


def _as_text(text: str) -> str:
    """Names in Markdown as they are: without tags, formulas and code."""
    for mark, written in (("&", "&amp;"), ("<", "&lt;"), ("$", "\\$"), ("`", "\\`")):
        text = text.replace(mark, written)
    return text
