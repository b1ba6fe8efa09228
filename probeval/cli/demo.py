"""``probeval demo``: a synthetic campaign with labels by a machine, from no judgments to a decision and a report."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd

from probeval.api.settings import Seed
from probeval.arrays import Floats
from probeval.cli.commands import Output, verb
from probeval.cli.options import OutputFormat
from probeval.cli.output import Messages, echo, write_table
from probeval.data import Collection, Judgments, write_campaign, write_qrels
from probeval.metrics import Measured, measure
from probeval.records import About
from probeval.relevance import Hierarchical, SyntheticCampaign, SyntheticObserver, load_card
from probeval.results import UNSET, Result, UnsetType, key
from probeval.streams import stream

if TYPE_CHECKING:
    from probeval.relevance import Choice
    from probeval.relevance.observers.agreement import LabelAgreement
    from probeval.relevance.observers.trust import ObserverTrust
    from probeval.reports import Milestone, ReportResults
    from probeval.scores import Ranking, TrustReport, TwoSystems
    from probeval.scores.two_systems import DecidedPair
    from probeval.selection import Judging, JudgingState

__all__ = ["demo", "draw_campaign"]

METRIC = "nDCG@10"
CARD = "text-hierarchical"
QUERIES, DOCS = 50, 300
LABELLER = "llm"
BATCH = 20
LEVEL = 0.95
WIDTH = 100  # columns of a terminal
RANKING_COLUMNS = ["system", "rank", "mean", "lower", "upper", "p_best", "group"]
MILESTONE = ("judged", "confidence", "half_width", "decided", "right", "expected_tau", "tau")
LABEL_COLUMNS = ["source", "slope", "lower", "upper", "p_noise", "judged"]
AGREEMENT_COLUMNS = ["source", "judged", "correlation", "correlation_lower", "correlation_upper"]
NEXT = (
    ("Rank them, with labels if you have some (grades 0 to 3):", "evaluate RUNS/ --labels labels.tsv {options}"),
    ("Estimate the judgments that a target takes:", "plan RUNS/ {options}"),
    ("Judge on a page, alone or as a team:", "campaign create mine.db RUNS/ {options}"),
    ("", "judge mine.db --docs docs.jsonl"),
    ("", "report mine.db"),
    ("Decide between two systems:", "compare new.txt old.txt --qrels judged.txt {options}"),
)
DECIMALS = dict.fromkeys(
    [
        *RANKING_COLUMNS,
        *LABEL_COLUMNS,
        *AGREEMENT_COLUMNS,
        "expected_tau",
        "tau",
        "confidence",
        "difference",
        "p_better",
        "p_worse",
    ],
    3,
)
OPTIONS = f"--metric {METRIC} --scale graded:3"


def draw_campaign(rng: np.random.Generator) -> Collection:
    """Draw the campaign of the demo: effects as past campaigns showed them, and labels by a machine as real ones are.

    The machine is not on the card: its worth is drawn from those of others.
    """
    model = load_card(CARD).model
    assert isinstance(model, Hierarchical)
    labeller = SyntheticObserver.drawn(rng, model.prior, name=LABELLER, grades=2)
    return SyntheticCampaign(queries=QUERIES, docs=DOCS, prior=model.prior, observers={LABELLER: labeller}).draw(rng)


@verb("Rank, judge and report a synthetic campaign.")
def demo(
    folder: Annotated[Path, About("The output folder.")] = Path("probeval-demo"),
    judgments: Annotated[
        int,
        About("The number of pairs to judge automatically; 0 only writes the campaign.", least=0),
    ] = 60,
    seed: Seed = 0,
    *,
    output: Output,
) -> Story | None:
    """Rank a synthetic campaign by labels of a machine, judge a few pairs, examine the labels, decide, and report.

    Example: probeval demo
    """
    messages, show = output.messages, output.output_format is OutputFormat.table
    campaign = draw_campaign(stream(seed))
    write_campaign(campaign, folder)
    runs = campaign.runs
    _say(
        messages,
        f"A synthetic campaign is in {folder}/ (no real systems, queries or documents): {len(runs.systems)} systems, "
        f"{len(runs.queries)} queries, and a label for each of {len(runs.pool):,} pairs by {LABELLER!r}, a machine. "
        "Systems, queries and labels differ as in real campaigns.",
    )
    if judgments == 0:
        return None
    story = _tell(campaign, judgments, seed, show, messages)
    write_qrels(folder / "judged.txt", story.state.judgments)
    page = _report(story, folder, seed, messages)
    _what_next(messages, folder, page)
    return None if show else replace(story, report=str(page))  # the tables are shown as soon as they are computed


@dataclass(frozen=True, eq=False)
class KnownTruth:
    """What the judgments of all pairs say, which only a demo has.

    Parameters
    ----------
    campaign
        The campaign with its judgments.
    """

    campaign: Collection

    @cached_property
    def scores(self) -> Measured:
        """The score of each system on each query."""
        assert self.campaign.judgments is not None
        return measure(self.campaign.runs, self.campaign.judgments, METRIC)

    @property
    def means(self) -> Floats:
        """The score of each system, shape (system,)."""
        return np.asarray(self.scores.values.mean(axis=1))

    def tau(self, state: JudgingState) -> float:
        """Kendall's tau of a ranking with the true one."""
        from probeval.simulation import tau_and_accuracy

        return tau_and_accuracy(state.scores.mean, self.means)[0]

    def decided(self, state: JudgingState) -> tuple[int, int]:
        """The numbers of comparisons that a ranking decides, and of those decided right."""
        from probeval.scores import Verdict

        ahead = state.ranking.p_better
        decided = Verdict.of(state.ranking, level=LEVEL).decided & (ahead > ahead.T)
        return int(decided.sum()), int((decided & (self.means[:, None] > self.means)).sum())

    def worth(self, state: JudgingState) -> tuple[ObserverTrust, LabelAgreement]:
        """The worth of the labels, and their agreement with the grades, with all pairs judged."""
        from probeval.scores.trust import agreements, examined

        judgments = self.campaign.judgments
        assert judgments is not None
        everything = state.judging.estimate(judgments.on(state.judging.pool))
        (worth,), (agreed,) = examined(everything), agreements(everything)
        return worth, agreed

    def difference(self, decision: TwoSystems) -> float:
        """The score of the first of two systems minus that of the second."""
        systems = list(self.campaign.runs.systems)
        a, b = (systems.index(name) for name in (decision.here.a, decision.here.b))
        return float(self.means[a] - self.means[b])


@dataclass(frozen=True)
class TrueResults:
    """Results with all judgments of the campaign."""

    tau_runs: Annotated[float, "Kendall's tau of the true ranking with that by the runs alone."]
    tau_before: Annotated[float, "With that by runs and labels."]
    tau: Annotated[float, "With that after judging."]
    erho2: Annotated[float, "The relative reliability of the true scores."]
    phi: Annotated[float, "Their absolute reliability."]
    decided: Annotated[int, "The number of decided comparisons."]
    right: Annotated[int, "The number of those that are right."]
    slope: Annotated[float, "The worth of the labels: their slope."]
    correlation: Annotated[float, "Their correlation with the grades."]
    difference: Annotated[float, "The difference of the two systems of the decision."]
    verdict: Annotated[str, "The right verdict on them."]


@dataclass(frozen=True, eq=False, repr=False)
class Story(Result):
    """The results of the demo: rankings before and after judging, the worth of labels, a decision, and the truth.

    Parameters
    ----------
    campaign
        The campaign with all judgments.
    unlabelled, labelled
        The states with no judgments: by the runs alone, and with labels.
    found
        The results after judging.
    """

    campaign: KnownTruth
    unlabelled: JudgingState
    labelled: JudgingState
    found: ReportResults
    report: Annotated[str | UnsetType, "The path of the report."] = UNSET

    @property
    def state(self) -> JudgingState:
        """The state after judging."""
        return self.found.state

    @property
    def labels(self) -> TrustReport:
        """The trust report."""
        assert self.found.trust is not None
        return self.found.trust

    @cached_property
    def two(self) -> TwoSystems:
        """The first system of the first ranking against the one in its middle, taken to be in use."""
        from probeval.scores import decide, without_labels

        new, used = _two(self.labelled)
        now = self.state.estimate
        return decide(now, new, used, level=LEVEL, unlabelled=without_labels(now))

    @key
    def model(self) -> str:
        """The model."""
        return self.found.choice.name

    @key
    def before(self) -> Ranking:
        """The ranking with labels and no judgments."""
        return self.labelled.ranking

    @key
    def milestones(self) -> tuple[Milestone, ...]:
        """Results after each batch of judgments."""
        return self.found.milestones

    @key
    def after(self) -> Ranking:
        """The ranking after judging."""
        return self.state.ranking

    @key
    def trust(self) -> TrustReport:
        """What the labels are worth."""
        return self.labels

    @key
    def decision(self) -> DecidedPair:
        """The decision between two systems."""
        return self.two.pair

    @key
    def truth(self) -> TrueResults:
        """The truth beside these results."""
        from probeval.reliability import gstudy

        known, study = self.campaign, gstudy(self.campaign.scores, interval="none")
        decided, right = known.decided(self.state)
        (worth, agreed), difference = known.worth(self.state), known.difference(self.two)
        return TrueResults(
            tau_runs=known.tau(self.unlabelled),
            tau_before=known.tau(self.labelled),
            tau=known.tau(self.state),
            erho2=study.coefficient("erho2").value,
            phi=study.coefficient("phi").value,
            decided=decided,
            right=right,
            slope=worth.slope,
            correlation=agreed.correlation,
            difference=difference,
            verdict="better" if difference > 0 else "worse",
        )

    def _headline(self) -> str:
        return f"{METRIC}, from {self.milestones[0].judged} to {self.milestones[-1].judged} judgments"


def _two(before: JudgingState) -> tuple[str, str]:
    """Return the systems of the decision: the first of a ranking, and the one in its middle."""
    order = before.ranking.order
    return order[0], order[len(order) // 2]


def _tell(campaign: Collection, n: int, seed: int, show: bool, messages: Messages) -> Story:
    """Rank, judge batch by batch, examine the labels, decide."""
    from probeval.relevance import choose_model
    from probeval.reports import ReportResults

    truth, scale = KnownTruth(campaign), campaign.scale()
    blind = replace(campaign, judgments=None)
    choice = choose_model(None, blind, scale=scale)
    before, unlabelled = (
        messages.warned(_judging(replace(blind, labels=labels), choice, seed).begin) for labels in (blind.labels, None)
    )
    _rank(truth, before, unlabelled, show, messages)
    state, marks = _judge(truth, before, n, show, messages)
    choice = choose_model(None, state.collection, scale=scale)  # the reason for the model, now with judgments
    story = Story(truth, unlabelled, before, ReportResults(state, choice, tuple(marks), ordered=True))
    _examine(story, show, messages)
    _decide(story, show, messages)
    return story


def _judging(collection: Collection, choice: Choice, seed: int) -> Judging:
    from probeval.selection import Judging

    return Judging.of(collection, choice.model, METRIC, policy="gain", scale=choice.scale, seed=seed)


def _rank(truth: KnownTruth, before: JudgingState, unlabelled: JudgingState, show: bool, messages: Messages) -> None:
    """Show the ranking with no judgments, and what runs and labels contribute to it."""
    _head(messages, "1. Rank with nothing judged.")
    _say(
        messages,
        f"By the runs and the labels of a machine of unknown worth, the model {CARD} already tells systems apart.",
    )
    if show:
        write_table(
            before.ranking.to_frame()[RANKING_COLUMNS],
            OutputFormat.table,
            title=f"\n{METRIC}, nothing judged",
            decimals=DECIMALS,
        )
        taus = [
            {"evidence": name, "expected_tau": state.ranking.expected_tau, "tau": truth.tau(state)}
            for name, state in (("runs", unlabelled), ("runs and labels", before))
        ]
        write_table(
            pd.DataFrame(taus), OutputFormat.table, title="\nKendall's tau with the true order", decimals=DECIMALS
        )
    _say(messages, "expected_tau is what the model states; tau is found with all judgments, which only a demo has.")


def _judge(
    truth: KnownTruth, before: JudgingState, n: int, show: bool, messages: Messages
) -> tuple[JudgingState, list[Milestone]]:
    """Judge until a target is met, and show each milestone."""
    from probeval.reports import milestone
    from probeval.selection import Stopping

    _head(messages, "2. Judge a few pairs.")
    _say(
        messages,
        f"Up to {n} of {len(before.judging.pool):,} pairs in the top 10s are judged, those that tell most about the "
        "ranking; a simulated assessor answers.",
    )
    rule, marks = Stopping.parse(f"confidence={LEVEL},budget={n}"), []
    assert truth.campaign.judgments is not None
    for state in _states(before, truth.campaign.judgments, n):
        marks.append(milestone(state))
        if show:
            decided, right = truth.decided(state)
            _show({**asdict(marks[-1]), "decided": decided, "right": right, "tau": truth.tau(state)}, len(marks) == 1)
        check = rule.check(state)
        if check.reached:
            break
    systems = len(state.scores.systems)
    _say(
        messages,
        f"Stop: {'; '.join(check.reasons)}. confidence: the mean probability that two systems are in the right order; "
        f"half_width: of the intervals; decided: of {systems * (systems - 1) // 2} comparisons, those with probability "
        f"{LEVEL}; right: of these, those that are true.",
    )
    return state, marks


def _states(state: JudgingState, answers: Judgments, n: int) -> Iterator[JudgingState]:
    """The states of judging, batch by batch, until ``n`` pairs or all are judged."""
    pool = state.judging.pool
    grades, judged = answers.on(pool).grades(), list[int]()
    yield state
    while len(judged) < min(n, len(pool)):
        judged += state.next(min(BATCH, n - len(judged))).pairs.tolist()
        at = np.array(judged, dtype=np.int64)
        state = state.after(Judgments.coded(pool, at, grades[at]))
        yield state


def _show(row: Mapping[str, float], first: bool) -> None:
    """Print a row of the table of milestones, as soon as it is computed."""
    widths = {name: max(len(name), len("0.000")) for name in MILESTONE}
    if first:
        echo("\n" + "  ".join(name.rjust(width) for name, width in widths.items()))
    cells = {name: str(row[name]) if isinstance(row[name], int) else f"{row[name]:.3f}" for name in MILESTONE}
    echo("  ".join(cells[name].rjust(width) for name, width in widths.items()))


def _examine(story: Story, show: bool, messages: Messages) -> None:
    """Show what the labels are worth, and whether that is true."""
    _head(messages, "3. Examine the labels.")
    _say(
        messages,
        "The trust report estimates what they are worth from the judgments, and what the ranking owes to them.",
    )
    trust, known = messages.warned(lambda: story.labels), story.truth
    if show:
        write_table(trust.to_frame()[LABEL_COLUMNS], OutputFormat.table, title="\nSource of labels", decimals=DECIMALS)
        if trust.agreements:
            write_table(
                trust.agreement()[AGREEMENT_COLUMNS],
                OutputFormat.table,
                title="\nAgreement with the grades",
                decimals=DECIMALS,
            )
        write_table(
            trust.rankings(),
            OutputFormat.table,
            title="\nThe ranking, were labels worth something else",
            decimals=DECIMALS,
        )
    (found,) = trust.observers
    inside = "inside" if found.slope_lower <= known.slope <= found.slope_upper else "outside"
    slope = (
        f"slope: standard deviations of the labels per logit of relevance, 0 for noise. By all judgments it is "
        f"{known.slope:.3f}, {inside} the interval."
    )
    _say(messages, " ".join((slope, *_agreements(story), trust.sentences()[0])))


def _agreements(story: Story) -> Iterator[str]:
    """Whether the agreement of the labels with the grades is the true one, if enough pairs are judged to state it."""
    known = story.truth.correlation
    for agreed in story.labels.agreements:
        covered = agreed.correlation_lower <= known <= agreed.correlation_upper
        yield (
            "The correlation with the grades is estimated for all labelled pairs, as the judged ones are harder than "
            f"most. By all judgments it is {known:.3f}, {'inside' if covered else 'outside'} the interval."
        )


def _decide(story: Story, show: bool, messages: Messages) -> None:
    """Show the decision between two systems, and whether it is right."""
    decision, known = story.two, story.truth
    here = decision.here
    _head(messages, "4. Decide between two systems.")
    _say(messages, f"May {here.a}, the first in step 1, replace {here.b}, from its middle, which we take to be in use?")
    if show:
        write_table(
            decision.to_frame(), OutputFormat.table, title=f"\n{METRIC}, {here.a} minus {here.b}", decimals=DECIMALS
        )
    outcome = "undecided" if decision.is_undecided else "right" if decision.verdict == known.verdict else "wrong"
    _say(
        messages,
        f"{decision.on_these} By all judgments it is {known.difference:+.4f}: the decision is {outcome}.",
    )


def _report(story: Story, folder: Path, seed: int, messages: Messages) -> Path:
    from probeval.reports import report_evaluation, write_report
    from probeval.reports.two import difference

    command = f"probeval demo --folder {folder} --judgments {story.state.scores.judged} --seed {seed}"
    page = messages.warned(
        lambda: report_evaluation(
            story.found,
            title="Demo: a synthetic campaign",
            command=command,
            more=(difference(story.two, title="A decision between two systems"),),
            made={"policy": "gain"},
        )
    )
    return write_report(page, folder / "report.html")


def _what_next(messages: Messages, folder: Path, page: Path) -> None:
    _head(messages, "5. Read the report.")
    _say(messages, f"Open {page} in a browser. The judgments are in {folder}/judged.txt.")
    _head(messages, "With your own runs (TREC format, one file per system)")
    typed = Path(sys.argv[0])  # the path of the command, if its environment is not active
    command = typed if typed.stem == "probeval" and not shutil.which("probeval") else "probeval"
    for what, line in NEXT:
        if what:
            messages.say(what)
        messages.say(f"  {command} {line.format(options=OPTIONS)}")


def _head(messages: Messages, text: str) -> None:
    """Print the heading of a step, bold on a terminal."""
    messages.say("\n" + text, bold=True)


def _say(messages: Messages, text: str) -> None:
    """Print a paragraph, in lines that fit a terminal."""
    messages.say(textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False))
