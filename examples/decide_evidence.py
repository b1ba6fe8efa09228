"""Write docs/evidence-decide.md: `python examples/decide_evidence.py DATA KEEP`.

Models and decisions are kept in the folder KEEP, so that a broken run resumes where it stopped;
`examples/observer_evidence.py` can share it. Two processes can share it too.
"""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from evidence import DOCS, Targets, do_all, table
from observer_evidence import DL20, TITLES, Work, renamed

from probeval.metrics import measure
from probeval.selection import Judging
from probeval.simulation import HeldOut, SimulatedAssessor
from probeval.streams import stream

METRIC, LABELS, LEVEL = "nDCG@10", "gpt4o_umbrela", 0.95
PAIRS, BUDGET, BATCH = 30, 50, 10
LEAD = f"""# Evidence: decide between two systems

Written by `examples/decide_evidence.py`. Is the stated P(better) right, when only two runs are given?

From each campaign {PAIRS} pairs of systems are drawn at random. Only the two runs are given, and the model has seen
neither the campaign nor its labels. The truth is the sign of the difference in {METRIC} by all judgments of the
campaign. Labels are those of {LABELS} under a name that no card has. Judgments are chosen by `gain` with the goal of
that pair, {BATCH} at a time.

"""
NOTES = f"""
*stated*: the mean over pairs of P(better) of the system that the model prefers. *right*: the share of pairs in which it
is better. *noise*: the standard error of *right* if the stated probabilities were true. *z*: right less stated, in
units of the noise; between -2 and 2 is within it, below that too much is stated, above it too little. *decided*: the
share of pairs with at least {LEVEL}, and how many of these are right. *off*: the mean absolute error of the expected
difference.

"""


class Decision(NamedTuple):
    """The difference of two systems as stated, and the true one."""

    a: str
    b: str
    judged: int
    p_better: float
    expected: float
    difference: float

    @property
    def stated(self) -> float:
        return max(self.p_better, 1 - self.p_better)

    @property
    def right(self) -> bool:
        return (self.p_better >= 0.5) == (self.difference > 0)


class Decisions(Work):
    """Pairs of systems of two campaigns, and what is stated of them."""

    def truth(self, name: str) -> dict[str, float]:
        """Return the score of each system by all judgments."""
        campaign = self.campaigns()[name]
        found = measure(campaign.runs, campaign.judgments, METRIC)
        return dict(zip(found.systems, found.values.mean(axis=1), strict=True))

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """Return random pairs of systems with different scores."""
        truth, systems = self.truth(name), self.held(name, None).collection.runs.systems
        rng, found = stream(0, name), []
        while len(found) < PAIRS:
            a, b = (systems[i] for i in rng.choice(len(systems), size=2, replace=False))
            if abs(truth[a] - truth[b]) > 0 and (a, b) not in found and (b, a) not in found:
                found.append((a, b))
        return found

    def decide(self, name: str, labels: bool, a: str, b: str) -> tuple[Decision, Decision]:
        """Return what is stated of a pair of systems, with nothing judged and with the budget."""

        def judge():
            whole = self.held(name, LABELS if labels else None).collection
            table = renamed(whole.labels) if labels else None
            two = replace(whole, runs=whole.runs.select([a, b]), labels=table)
            held = HeldOut.of(two, depth=10)
            judging = Judging.of(
                replace(held.collection, judgments=None), self.model(name), METRIC, goal=f"pair:{a},{b}",
                scale=held.scale, depth=10, offered=np.isin(np.arange(len(held.codes)), held.known),
            )  # fmt: skip
            truth, assessor = self.truth(name), SimulatedAssessor.of(held)
            order: list[int] = []
            state, found = judging.begin(), []
            while True:
                if len(order) in (0, BUDGET):
                    stated = state.scores.compare(a, b)
                    expected = stated.difference.mean()
                    p = (stated.p_better + 1 - stated.p_worse) / 2
                    found.append(Decision(a, b, len(order), p, expected, truth[a] - truth[b]))
                if len(order) >= BUDGET:
                    return tuple(found)
                order += state.next(BATCH).pairs.tolist()
                state = state.after(assessor.judge(held, order))

        return self.kept(f"decide-{name}-{'labels' if labels else 'none'}-{a}-{b}", judge)


def summary(decisions: list[Decision]) -> dict[str, float]:
    """Return the stated probability against the share of right decisions, with its noise."""
    stated = np.array([d.stated for d in decisions])
    right = np.array([d.right for d in decisions])
    noise = float(np.sqrt(np.sum(stated * (1 - stated))) / len(stated))
    sure = stated >= LEVEL
    return {
        "pairs": len(decisions),
        "stated": float(stated.mean()),
        "right": float(right.mean()),
        "noise": noise,
        "z": float((right.mean() - stated.mean()) / noise) if noise else 0.0,
        "decided": float(sure.mean()),
        "decided, right": float(right[sure].mean()) if sure.any() else float("nan"),
        "off": float(np.mean([abs(d.expected - d.difference) for d in decisions])),
    }


def decisions(work: Decisions) -> str:
    cells = [(n, labels, *pair) for n in (DL20, *(t for t in TITLES if t != DL20)) for labels in (False, True)
             for pair in work.pairs(n)]  # fmt: skip
    found = do_all([partial(work.decide, *cell) for cell in cells])
    groups: dict[tuple[str, str, int], list[Decision]] = {}
    for (name, labels, *_), both in zip(cells, found, strict=True):
        for decision in both:
            key = (TITLES[name], "one LLM" if labels else "none", decision.judged)
            groups.setdefault(key, []).append(decision)
    rows, everything = [], []
    for (title, labels, judged), group in groups.items():
        rows.append({"campaign": title, "labels": labels, "judged": judged, **summary(group)})
        everything += group
    frame = pd.DataFrame(rows)
    targets = Targets()
    targets.most("largest overstatement in units of its noise (-z)", float((-frame["z"]).max()), 2.0)
    targets.most("largest distance of stated and right in units of its noise (|z|)", float(frame["z"].abs().max()), 2.0)
    targets.most("stated less right, all decisions", summary(everything)["stated"] - summary(everything)["right"], 0.03)
    return f"{targets}\n{table(frame)}{NOTES}{beyond(frame)}{bins(everything)}"


def beyond(frame: pd.DataFrame) -> str:
    """Return a paragraph on the rows that differ by more than their noise."""
    rows = frame[frame["z"].abs() > 2].itertuples()
    found = [f"{r.campaign}, labels {r.labels}, {r.judged} judged: too {'little' if r.z > 0 else 'much'}" for r in rows]
    return f"Stated is, beyond the noise: {'; '.join(found)}.\n\n" if found else ""


def bins(decisions: list[Decision]) -> str:
    """Return the table of all decisions by what is stated."""
    stated = np.array([d.stated for d in decisions])
    edges = [(0.5, 0.7), (0.7, 0.9), (0.9, 0.98), (0.98, 1.01)]
    rows = []
    for low, high in edges:
        inside = [d for d, s in zip(decisions, stated, strict=True) if low <= s < high]
        if inside:
            part = summary(inside)
            rows.append({"stated between": f"{low:g} and {min(high, 1):g}"}
                        | {k: part[k] for k in ("pairs", "stated", "right", "noise", "z")})  # fmt: skip
    return (
        "All decisions together, by the stated probability; a pair of systems counts once for each row above that it "
        "is in.\n\n" + table(pd.DataFrame(rows))
    )


def main(data: Path, keep: Path) -> None:
    text = decisions(Decisions(data, keep))
    (DOCS / "evidence-decide.md").write_text(LEAD + text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/decide_evidence.py DATA KEEP")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
