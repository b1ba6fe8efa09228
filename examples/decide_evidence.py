"""Write docs/evidence-decide.md: `python examples/decide_evidence.py DATA KEEP`.

Models and decisions are kept in the folder KEEP, so that a broken run resumes where it stopped; `examples/label_study.py`
can share it. Two processes can share it too.
"""

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from evidence import DOCS, Targets, do_all, table
from label_study import DL19, DL20, Study, renamed

from probeval.arrays import Floats
from probeval.data import Collection, Runs, read_campaign
from probeval.metrics import measure, parse
from probeval.scores import Scores, evaluate
from probeval.selection import Judging
from probeval.simulation import HeldOut, SimulatedAssessor
from probeval.streams import Purpose, stream

METRIC, LEVEL = "nDCG@10", 0.95
PAIRS = 50  # of systems, per folder
BUDGETS = (0, 20, 50)  # judgments: twenty, then thirty more
SAMPLES = 2000  # of queries, for standard errors
FOLDERS = {DL19: "DL 2019", DL20: "DL 2020", f"{DL19}-later": "DL 2019, later", f"{DL20}-later": "DL 2020, later"}
JUDGES = (  # from strong to weak
    "gpt4o_umbrela", "qwen330b_query", "llama32_umbrela", "monot5_base", "flant5_Thomas", "llama32_nuggets_all",
    "bm25score",
)  # fmt: skip


@dataclass(frozen=True)
class Decision:
    """The difference of two systems as stated, and the true one."""

    folder: str
    judge: str
    judged: int
    p_better: float
    expected: float
    lower: float
    upper: float
    by_query: Floats  # the expected difference on each query
    covariance: Floats  # of the differences on queries
    truth: Floats  # the true differences on queries
    near: Floats  # the same with ideal lists from the pool of the two

    @property
    def difference(self) -> float:
        return float(self.truth.mean())


class Decisions(Study):
    """Pairs of systems of campaigns, and what is stated of them."""

    def campaign(self, folder: str) -> Collection:
        """Return a campaign whose lists have judged documents only, so that the truth is known."""

        def read() -> Collection:
            campaign = read_campaign(self.data / folder)
            return replace(campaign, runs=judged_only(campaign), labels=None)

        return self.kept(f"judged-{folder}", read)

    def truth(self, folder: str) -> dict[str, Floats]:
        """Return the scores of each system on each query by all judgments."""

        def score() -> dict[str, Floats]:
            campaign = self.campaign(folder)
            found = measure(campaign.runs, campaign.judgments, METRIC)
            return dict(zip(found.systems, found.values, strict=True))

        return self.kept(f"truth-{folder}", score)

    def pairs(self, folder: str) -> list[tuple[str, str]]:
        """Return random pairs of systems with different scores."""
        truth = {system: values.mean() for system, values in self.truth(folder).items()}
        systems, rng = sorted(truth), stream(0, folder)
        found: list[tuple[str, str]] = []
        while len(found) < PAIRS:
            a, b = (systems[i] for i in rng.choice(len(systems), size=2, replace=False))
            if abs(truth[a] - truth[b]) > 0 and (a, b) not in found and (b, a) not in found:
                found.append((a, b))
        return found

    def decide(self, folder: str, judge: str, a: str, b: str) -> list[Decision]:
        """Return what is stated of a pair of systems with each number of judgments."""

        def judge_pairs() -> list[Decision]:
            whole, name = self.campaign(folder), folder.removesuffix("-later")
            labels = None if judge == "none" else renamed(self.columns(name)[judge])
            held = HeldOut.of(replace(whole, runs=whole.runs.select([a, b])), depth=10)
            judging = Judging.of(
                replace(held.collection, judgments=None, labels=labels), self.model(name), METRIC, goal=f"pair:{a},{b}",
                scale=held.scale, depth=10,
            )  # fmt: skip
            truth, assessor = self.truth(folder), SimulatedAssessor.of(held)
            near = held.truth(parse(METRIC))
            state, order, found = judging.begin(), [], []
            for budget in BUDGETS:
                if budget > len(order):
                    order += state.next(budget - len(order)).pairs.tolist()
                    state = state.after(assessor.judge(held, order))
                scores = evaluate(
                    judging.runs, state.prediction.relevance, METRIC, rng=stream(0, Purpose.SCORES), per_query=True
                )
                whom = {"folder": folder, "judge": judge, "judged": len(order)}
                found.append(
                    Decision(**whom, **stated(scores, a, b), truth=truth[a] - truth[b], near=near[0] - near[1])
                )
            return found

        return self.kept(f"decide-{folder}-{judge}-{a}-{b}", judge_pairs)


def judged_only(campaign: Collection) -> Runs:
    """Return the lists without documents that are not judged: those below them move up."""
    runs, judgments = campaign.runs, campaign.judgments
    assert judgments is not None
    judged = np.append(np.isin(runs.pool.within(judgments.pool), judgments.pair), False)
    system, query, rank = np.nonzero(judged[runs.pairs])
    pair = runs.pairs[system, query, rank]
    return Runs.coded(runs.systems, runs.pool, system, pair, -rank.astype(float))


def stated(scores: Scores, a: str, b: str) -> dict[str, Any]:
    """Return what scores with draws by query state of the difference of two systems."""
    difference = scores.compare(a, b)
    draws = scores.joint.query_draws
    assert draws is not None
    at = [scores.systems.index(system) for system in (a, b)]
    by_query = draws[:, at[0]] - draws[:, at[1]]
    return {
        "p_better": (difference.p_better + 1 - difference.p_worse) / 2,
        "expected": difference.mean, "lower": difference.lower, "upper": difference.upper,
        "by_query": by_query.mean(axis=0), "covariance": np.cov(by_query, rowvar=False).astype(np.float32),
    }  # fmt: skip
