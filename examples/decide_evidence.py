"""Write docs/evidence-decide.md: `python examples/decide_evidence.py DATA KEEP [--only PART/OF]`.

Models and decisions are kept in the folder KEEP, so that a broken run resumes where it stopped. Two processes can share
it, and so can `examples/label_study.py`.
"""

import argparse
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from evidence import DOCS, Targets, do_all, table
from label_study import DL19, DL20, Study, renamed
from scipy.special import ndtr

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
SAMPLES = 500  # of queries, for standard errors
FOLDERS = {DL19: "DL 2019", DL20: "DL 2020", f"{DL19}-later": "DL 2019, later", f"{DL20}-later": "DL 2020, later"}
STRONG, MIDDLE, WEAK = "strong", "middling", "weak or none"
JUDGES = {  # from strong to weak
    "gpt4o_umbrela": STRONG,
    "qwen330b_query": STRONG,
    "llama32_umbrela": MIDDLE,
    "monot5_base": MIDDLE,
    "flant5_Thomas": MIDDLE,
    "llama32_nuggets_all": WEAK,
    "bm25score": WEAK,
}
LEAD = f"""# Evidence: decide between two systems

Written by `examples/decide_evidence.py`. Two runs, labels of a judge that the model does not know, and 0, 20 or 50
judgments: is what is stated of their difference right, and how narrow is it?

From Deep Learning 2019 and 2020, and from the newer systems on the same topics, {PAIRS} pairs of systems each are drawn
at random. Documents without a judgment are taken out of the lists, so that the truth is known. The model has seen
neither the campaign nor any of its labels. Each pair is decided without labels, and with those of one of
{len(JUDGES)} judges in turn, from large language models to the score of BM25, under a name that no card has. Judgments
are chosen by `gain` with the goal of that pair: 20, then 30 more. The measure is {METRIC}.

"""
NOTES = """
*stated*: the mean over pairs of P(better) of the system that the model prefers. *right*: the share of pairs in which it
is better by all judgments of the campaign. *error*: the standard error of right less stated over samples of queries,
which all pairs of a year share, or of independent decisions if that is larger. *z*: right less stated, in units of the
error. *held*: the share of 95% intervals that hold the difference, with ideal lists from the pool of the two runs, as
the interval has them; *held, all*: with those of all judgments of the campaign. *width* and *off*: half the width of
the interval, and the mean absolute error of the expected difference. *score*: the mean interval score, the less the
better. *decided*: the share of pairs with at least .95, and how many of these are right.

"""
TRIED = """
## Few systems

Intervals were too narrow where nothing was judged, and too wide on the scale of all judgments where the judge was good.
The first is due to the effects of systems. They were learned from campaigns of many systems, whose popularity tells how
good a document is; two systems do not show that, and differ by more than the effects allowed. With the
[factor for few systems](theory/hierarchical.md#few-systems), estimated with nothing judged on ten campaigns, the table
above came out; without it, on the same pairs and judges,

| labels | judged | held | held, all | width | off | score | score, all |
| --- | --- | --- | --- | --- | --- | --- | --- |
{before}

The second is due to the ideal list: relative to the pool of two runs, differences in nDCG are about a fifth larger than
by all judgments, and so are intervals. [`--pool` and `--outside`](evidence-ideal.md) take other documents into account.
"""


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

    @property
    def stated(self) -> float:
        return max(self.p_better, 1 - self.p_better)

    @property
    def right(self) -> bool:
        return (self.p_better >= 0.5) == (self.difference > 0)

    def score(self, truth: float) -> float:
        """Return the interval score (Gneiting and Raftery 2007): the width, and 40 times what a 95% interval misses."""
        missed = max(self.lower - truth, 0.0) + max(truth - self.upper, 0.0)
        return self.upper - self.lower + 2 / (1 - LEVEL) * missed

    def sampled(self, weights: Floats) -> Floats:
        """Return right less stated, and whether the interval holds, on samples of queries: shape (2, sample)."""
        mean = weights @ self.by_query
        sd = np.sqrt(np.maximum(np.einsum("sq,qr,sr->s", weights, self.covariance, weights), 1e-18))
        p = ndtr(mean / sd)
        right = (p >= 0.5) == (weights @ self.truth > 0)
        return np.array([right - np.maximum(p, 1 - p), np.abs(mean - weights @ self.near) <= 1.96 * sd])


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

    def decide(self, folder: str, judge: str, a: str, b: str, *, widened: bool = True) -> list[Decision]:
        """Return what is stated of a pair of systems with each number of judgments; without the factor for few, too."""

        def judge_pairs() -> list[Decision]:
            whole, name = self.campaign(folder), folder.removesuffix("-later")
            model = self.model(name)
            if not widened:
                model = replace(model, prior=replace(model.prior, few=0.0))
            labels = None if judge == "none" else renamed(self.columns(name)[judge])
            held = HeldOut.of(replace(whole, runs=whole.runs.select([a, b])), depth=10)
            judging = Judging.of(
                replace(held.collection, judgments=None, labels=labels), model, METRIC, goal=f"pair:{a},{b}",
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

        return self.kept(f"{'decide' if widened else 'narrow'}-{folder}-{judge}-{a}-{b}", judge_pairs)


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


def summary(decisions: list[Decision], samples: dict[str, Floats]) -> dict[str, float]:
    """Return what is stated against what is true, with standard errors over samples of queries."""
    stated, right = (np.array([getattr(d, name) for d in decisions], dtype=float) for name in ("stated", "right"))
    sampled = np.mean([d.sampled(samples[d.folder.removesuffix("-later")]) for d in decisions], axis=0)
    # What is right is no less uncertain than independent decisions of these probabilities would be.
    independent = float(np.sqrt(np.sum(stated * (1 - stated)))) / len(stated)
    error = max(float(sampled[0].std(ddof=1)), independent)
    sure = stated >= LEVEL
    return {
        "pairs": len(decisions),
        "stated": stated.mean(),
        "right": right.mean(),
        "error": error,
        "z": (right.mean() - stated.mean()) / error,
        "held": np.mean([d.lower <= d.near.mean() <= d.upper for d in decisions]),
        "held, all": np.mean([d.lower <= d.difference <= d.upper for d in decisions]),
        "width": np.mean([(d.upper - d.lower) / 2 for d in decisions]),
        "off": np.mean([abs(d.expected - d.near.mean()) for d in decisions]),
        "score": np.mean([d.score(float(d.near.mean())) for d in decisions]),
        "score, all": np.mean([d.score(d.difference) for d in decisions]),
        "decided": sure.mean(),
        "decided, right": right[sure].mean() if sure.any() else np.nan,
    }


def cells(work: Decisions) -> list[tuple[str, str, str, str]]:
    """Return folder, judge and systems of every decision."""
    judges, found = list(JUDGES), []
    for folder in FOLDERS:
        for i, pair in enumerate(work.pairs(folder)):
            found += [(folder, judge, *pair) for judge in (judges[i % len(judges)], "none")]
    return found


def grouped(decisions: list[Decision], samples: dict[str, Floats], **by: Any) -> pd.DataFrame:
    """Return the summary of each group of decisions: by functions of a decision."""
    groups: dict[tuple[Any, ...], list[Decision]] = {}
    for decision in decisions:
        groups.setdefault(tuple(of(decision) for of in by.values()), []).append(decision)
    return pd.DataFrame(
        [dict(zip(by, key, strict=True)) | summary(groups[key], samples) for key in sorted(groups, key=str)]
    )


def page(work: Decisions) -> str:
    """Return the page: targets, tables, and what it is without the factor for few systems."""
    made = [
        decision for of_pair in do_all([partial(work.decide, *cell) for cell in cells(work)]) for decision in of_pair
    ]
    samples = {
        name: stream(0, name, Purpose.SPLITS).multinomial(n, np.full(n, 1 / n), size=SAMPLES) / n
        for name in (DL19, DL20)
        for n in [len(next(d.truth for d in made if d.folder == name))]
    }
    labels = {"labels": lambda d: "none" if d.judge == "none" else "one judge", "judged": lambda d: d.judged}
    strength = {"judge": lambda d: JUDGES.get(d.judge, "no labels"), "judged": lambda d: d.judged}
    whole = grouped(made, samples, **labels)
    targets = Targets()
    targets.most("largest distance of stated and right in standard errors (|z|)", float(whole["z"].abs().max()), 2.0)
    for name in ("held", "held, all"):
        targets.least(f"95% intervals, {name}: the least", float(whole[name].min()), 0.93)
        targets.most(f"95% intervals, {name}: the most", float(whole[name].max()), 0.99)
    sure = [d for d in made if d.stated >= LEVEL]
    error = float(np.sqrt(LEVEL * (1 - LEVEL) / len(sure)))
    targets.least("verdicts at .95 that are right", float(np.mean([d.right for d in sure])), LEVEL - error)
    text = f"{targets}\n## By the number of judgments\n\n{table(whole)}{NOTES}"
    text += f"## By judge\n\n{table(grouped([d for d in made if d.judge != 'none'], samples, **strength))}\n"
    edges = (0.5, 0.7, 0.9, 0.98, 1.01)

    def bin_of(d: Decision) -> str:
        at = int(np.searchsorted(edges, d.stated, side="right")) - 1
        return f"{edges[at]:g} and {min(edges[at + 1], 1):g}"

    bins = grouped(made, samples, **{"stated between": bin_of})
    text += f"## By what is stated\n\n{table(bins[['stated between', 'pairs', 'stated', 'right', 'error', 'z']])}"
    narrow = do_all([partial(work.decide, *cell, widened=False) for cell in cells(work)])
    old = grouped([decision for of_pair in narrow for decision in of_pair], samples, **labels)
    rows = table(old[["labels", "judged", "held", "held, all", "width", "off", "score", "score, all"]])
    return text + TRIED.format(before="\n".join(rows.splitlines()[2:]))


def main(data: Path, keep: Path, only: str | None = None) -> None:
    work = Decisions(data, keep)
    if only is not None:
        part, of = map(int, only.split("/"))
        mine = cells(work)[part - 1 :: of]
        do_all([partial(work.decide, *cell, widened=widened) for cell in mine for widened in (True, False)])
        return
    (DOCS / "evidence-decide.md").write_text(LEAD + page(work), encoding="utf-8")


if __name__ == "__main__":
    given = argparse.ArgumentParser(description="Write docs/evidence-decide.md.")
    given.add_argument("data", type=Path, help="the folder of real campaigns")
    given.add_argument("keep", type=Path, help="the folder of finished work")
    given.add_argument("--only", metavar="PART/OF", help="make only a part of the decisions, such as 1/2")
    asked = given.parse_args()
    main(asked.data, asked.keep, asked.only)
