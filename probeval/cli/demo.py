"""``probeval demo``: a synthetic campaign, from no judgments to a report."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
import pandas as pd
import typer

from probeval.cli.documents import DemoDocument, MilestoneDocument, TruthDocument
from probeval.cli.options import Format, OutputFormat, Quiet, Seed
from probeval.cli.output import Talk, write, write_table
from probeval.data import Collection, Judgments, write_campaign, write_qrels
from probeval.metrics import measure
from probeval.relevance import synthetic_campaign
from probeval.streams import stream

if TYPE_CHECKING:
    from probeval.relevance import Choice
    from probeval.reports import Milestone
    from probeval.selection import JudgingState

__all__ = ["demo"]

METRIC = "nDCG@10"
DOCS, EFFECTS = 200, {"team": 2.0, "system": 1.5}  # effects large enough to rank the systems with sixty judgments
BATCH = 10
STOP = 0.95
NEXT = """\
evaluate RUNS/ --metric nDCG@10 --scale graded:3                   # rank them, for grades 0 to 3
plan RUNS/ --metric nDCG@10 --scale graded:3                       # estimate the judgments needed
campaign create mine.db RUNS/ --metric nDCG@10 --scale graded:3    # start judging (--queries: query texts)
judge mine.db --docs docs.jsonl                                    # on a page, alone or as a team
report mine.db                                                     # write the report"""
SHOWN = ("judged", "confidence", "expected_tau", "half_width", "erho2", "phi")


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="The output folder.")] = Path("probeval-demo"),
    judgments: Annotated[
        int,
        typer.Option(
            "--judgments", min=0, help="The number of pairs to judge automatically; 0 only writes the campaign."
        ),
    ] = 60,
    output_format: Format = OutputFormat.table,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Rank a synthetic campaign with no judgments, judge a few important pairs, stop, and write a report.

    Example: probeval demo
    """
    talk = Talk(quiet=quiet)
    campaign = synthetic_campaign(stream(seed), docs=DOCS, sds=EFFECTS)
    write_campaign(campaign, folder)
    talk(
        f"A synthetic campaign (no real systems, queries or documents) is in {folder}/: {len(campaign.runs.systems)} "
        f"systems, {len(campaign.runs.queries)} queries, {len(campaign.runs.pool):,} pairs."
    )
    if judgments == 0:
        return
    story = _run(campaign, judgments, seed, output_format is OutputFormat.table, talk)
    assert story.state.judgments is not None
    write_qrels(folder / "judged.txt", story.state.judgments)
    page = _report(story, folder, seed, talk)
    if output_format is not OutputFormat.table:
        document = {**story.to_dict(), "report": str(page)}
        write(pd.DataFrame([asdict(mark) for mark in story.marks]), document, output_format)
    _what_next(talk, folder, page)


@dataclass(frozen=True, eq=False)
class Story:
    """The results of the demo: the campaign, the model, and the states before, during and after judging."""

    campaign: Collection
    choice: Choice
    before: JudgingState
    state: JudgingState
    marks: tuple[Milestone, ...]

    @property
    def truth(self) -> TruthDocument:
        """Results with all judgments: tau and agreement with the current ranking, and reliability."""
        from probeval.reliability import gstudy
        from probeval.selection import Verdict
        from probeval.simulation import tau_and_accuracy

        assert self.campaign.judgments is not None
        full = measure(self.campaign.runs, self.campaign.judgments, METRIC)
        tau, accuracy = tau_and_accuracy(self.state.scores.mean, full.values.mean(axis=1))
        study = gstudy(full, interval="none")
        ahead, true = self.state.ranking.p_better, full.values.mean(axis=1)
        decided = Verdict.of(self.state.ranking).decided & (ahead > ahead.T)
        right = decided & (true[:, None] > true)
        return {
            "tau": tau,
            "accuracy": accuracy,
            "erho2": study.coefficient("erho2").value,
            "phi": study.coefficient("phi").value,
            "decided": int(decided.sum()),
            "right": int(right.sum()),
        }

    def to_dict(self) -> DemoDocument:
        """As plain data for JSON."""
        return {
            "model": self.choice.name,
            "before": self.before.ranking.to_dict(),
            "milestones": [cast("MilestoneDocument", asdict(mark)) for mark in self.marks],
            "after": self.state.ranking.to_dict(),
            "truth": self.truth,
        }


def _run(campaign: Collection, n: int, seed: int, show: bool, talk: Talk) -> Story:
    """Rank, judge batch by batch, stop."""
    from probeval.relevance import choose_model
    from probeval.reports import milestone
    from probeval.selection import Judging, Stopping, Verdict

    assert campaign.judgments is not None
    blind, scale = replace(campaign, judgments=None), campaign.scale()
    choice = choose_model(None, blind, scale=scale)
    judging = Judging.of(blind, choice.model, METRIC, policy="gain", scale=scale, seed=seed)
    before = talk.warned(judging.begin)
    talk(f"\n1. Rank without judgments. Model {choice.name}: {choice.why}")
    if show:
        write_table(before.ranking.to_frame(), OutputFormat.table, title=f"{METRIC}, no judgments")
    talk(
        f"\n2. Judge up to {n} of the {len(judging.pool):,} pairs in the top 10s: "
        "the most informative ones for the ranking (policy gain).\n   An automatic assessor answers. "
        "confidence: the mean probability that two systems are in the right order; expected_tau: the rank\n   "
        "correlation with the true order; erho2, phi: the reliability of ranking and scores on other queries."
    )
    rule = Stopping.parse(f"confidence={STOP},budget={n}")
    marks = []
    for state in _states(before, campaign.judgments, n):
        marks.append(milestone(state))
        if show:
            _show(marks[-1], first=len(marks) == 1)
        check = rule.check(state)
        if check.reached:
            talk(f"\n3. Stop: {'; '.join(check.reasons)}.")
            break
    choice = choose_model(None, replace(blind, judgments=state.judgments), scale=scale)  # now with these judgments
    story = Story(campaign, choice, before, state, tuple(marks))
    if show:
        table = state.ranking.to_frame()
        write_table(table, OutputFormat.table, title=f"\n{METRIC}, {state.scores.judged} pairs judged")
    talk(f"   {Verdict.of(state.ranking)}")
    truth = story.truth
    talk(
        f"   All {len(campaign.judgments):,} judgments, held back until now: tau {truth['tau']:.3f} with this order, "
        f"where {marks[-1].expected_tau:.3f} was expected; erho2 {truth['erho2']:.3f}, phi {truth['phi']:.3f}.\n"
        f"   Of {truth['decided']} decided comparisons, {truth['right']} are right. A single campaign can deviate "
        "either way: the confidence holds on average\n   (examples/story.py has five campaigns)."
    )
    return story


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


def _show(mark: Milestone, *, first: bool) -> None:
    """Print a row of the table of milestones."""
    if first:
        typer.echo("  ".join(f"{name:>12}" for name in SHOWN))
    values = (getattr(mark, name) for name in SHOWN)
    typer.echo("  ".join(f"{v:>12}" if isinstance(v, int) else f"{v:>12.3f}" for v in values))


def _report(story: Story, folder: Path, seed: int, talk: Talk) -> Path:
    from probeval.reports import ReportResults, report_evaluation, write_report

    found = ReportResults(story.state, story.choice, story.marks, ordered=True)
    command = f"probeval demo --folder {folder} --judgments {story.state.scores.judged} --seed {seed}"
    page = talk.warned(
        lambda: report_evaluation(found, title="Demo: a synthetic campaign", command=command, made={"policy": "gain"})
    )
    return write_report(page, folder / "report.html")


def _what_next(talk: Talk, folder: Path, page: Path) -> None:
    talk(f"\n4. The report is in {page}: open it in a browser. The judgments are in {folder}/judged.txt.")
    talk("\nWith your own runs (TREC format, one file per system), and the judgments that you have, if any:")
    typed = Path(sys.argv[0])  # the path of the command, if its environment is not active
    command = typed if typed.stem == "probeval" and not shutil.which("probeval") else "probeval"
    for line in NEXT.splitlines():
        talk(f"  {command} {line}")
