"""Write docs/evidence-audit.md: `python examples/audit_evidence.py DATA KEEP [PART...]`.

Finished cells are kept in the folder KEEP, so that a broken run resumes where it stopped. Parts: `right`, `sizes`,
`learning`, `real`, `draws`; all of them when none is named. The page has the cells that are finished.
"""

import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import DOCS, Keep, table

from probeval.data import Judgments, Scale, read_campaign
from probeval.relevance import RelevanceDistribution, SyntheticCampaign, choose_model, synthetic_campaign
from probeval.selection import Judging, audit, foresee
from probeval.selection.batch import UNIFORM
from probeval.simulation import HeldOut
from probeval.simulation.replay import SimulatedAssessor
from probeval.streams import stream

PAGE = DOCS / "evidence-audit.md"
PARTS = ("right", "sizes", "learning", "real", "draws")
CASES = {
    "right": "the model is right",
    "high": "its gains are .1 of the scale too high",
    "low": "its gains are .1 of the scale too low",
    "reversed": "popularity is reversed",
}
SIZES = {"700": (10, 20), "1,400": (20, 30), "2,500": (30, 50)}  # systems and queries
USUAL = "2,500"
CAMPAIGNS, FEWER = 200, 50
LEARNING = 100
SHARE, BATCH, DEPTH, METRIC = 0.2, 10, 10, "DCG@10"
SCALE = Scale.graded(3)
REAL = ("trec-dl2019-passage", "trec-dl2020-passage")
SEEDS = 2


LEAD = f"""Written by `examples/audit_evidence.py`. The [audit](theory/judging.md#audit) compares the model with
the pairs that exploration drew. Campaigns are judged by `gain` to a fifth of the pool, in batches of {BATCH}, with a
tenth of the judgments for exploration; measure {METRIC}, grades 0 to 3.
"""
SECTIONS = {
    "right": (
        "A model that does not learn",
        f"""Synthetic campaigns of about {USUAL} pairs (30 systems, 50 queries, depth 10). The probabilities of grades
are those of the shipped model after a tenth of the pool was judged at random; grades are drawn anew from them, so the
model is right. It is made wrong in three ways and stays so. *alarm by 20%*: the share of campaigns with an alarm before
20% of the pool was judged; *judgments then*: the median number of judgments at the alarm; *by draws alone*: the same if
only pairs drawn at random were bet on. In the second table errors are absolute errors of the level; *interval holds* is
the share of campaigns whose interval contains the true level, *of systems* the share of systems.
""",
    ),
    "sizes": ("By the size of the pool", "The same with other numbers of systems and queries.\n"),
    "learning": (
        "A model that learns",
        """Grades of all pairs are one joint draw from the shipped model, which is then fitted after every batch (12
systems, 30 queries).
""",
    ),
    "real": (
        "Finished campaigns",
        "With the shipped model, whose card was fitted on Deep Learning 2019 and other campaigns.\n",
    ),
}
DISTRIBUTION = f"""Deep Learning 2019, judged by `gain`: the standard deviation of the estimate of the level from one
draw, by the probability of pairs. The predicted standard deviation helps a little, but depends on the model;
exploration uses the weight with {UNIFORM:g} uniform.
"""


class Work:
    """Cells of results, each made once."""

    def __init__(self, data: Path, keep: Path) -> None:
        self.data, self.keep = data, Keep(keep)

    def kept(self, name, make):
        """Return what ``make`` made, now or in an earlier run; None if it is not made and may not be."""
        return None if make is None and name not in self.keep else self.keep(name, make)


@dataclass(frozen=True, eq=False)
class Fixed:
    """A model with these probabilities of every pair, whatever is judged."""

    probability: np.ndarray

    def predict(self, problem, *, rng=None):
        """Return P(grade) of every pair; judged pairs are certain."""
        return RelevanceDistribution.of(problem.pool, problem.scale, self.probability, judgments=problem.grades)

    def check(self):
        """Return no problems."""
        return []


def judge(judging, grades):
    """Judge a fifth of the pool, and return the audit of all judged pairs, and of those drawn at random."""
    state, chosen, judged = judging.begin(), [], []
    most = int(SHARE * len(judging.pool))
    while len(judged) < most:
        batch = state.next(min(BATCH, most - len(judged)))
        chosen += zip(batch.pairs.tolist(), foresee(state, batch), strict=True)
        judged += batch.pairs.tolist()
        state = state.after(Judgments.coded(judging.pool, np.array(judged), grades[judged]))
    drawn = [(pair, pick) for pair, pick in chosen if pick.probability is not None]
    return audit(state, chosen), audit(state, drawn)


def result(reports, true):
    """Return the figures of one campaign."""
    every, drawn = reports
    draws = None if drawn.alarm is None else drawn.alarm
    rows = every.to_frame()
    seen = rows["lower"].notna()
    inside = (rows["lower"] <= true) & (true <= rows["upper"])
    return {
        "alarm": every.alarm,
        "draws": every.draws,
        "judged": every.judged,
        "alarm_of_draws": draws,
        "covered": bool(every.lower <= true.mean() <= every.upper),
        "error": every.sample - float(true.mean()),
        "width": (every.upper - every.lower) / 2,
        "model_error": every.model - float(true.mean()),
        "systems": [int(inside[seen].sum()), int(seen.sum())],
        "system_width": float((rows["upper"] - rows["lower"]).mean() / 2),
    }


def campaign(size, seed):
    """Return runs, and the probabilities of the shipped model after a tenth of the pool was judged at random."""
    systems, queries = SIZES[size]
    made = SyntheticCampaign(systems=systems, queries=queries, depth=DEPTH, scale=SCALE).draw(
        np.random.default_rng([seed, queries])
    )
    pool, judgments = made.runs.pool, made.judgments
    some = np.random.default_rng(seed).permutation(len(pool))[: len(pool) // 10]
    blind = replace(made, judgments=None)
    model = choose_model("text-hierarchical", blind, scale=SCALE).model
    known = replace(made, judgments=judgments.take(np.sort(some)))
    relevance = model.predict(known.problem(depth=DEPTH, scale=SCALE), rng=stream(seed))
    return blind, relevance.probability.mean(axis=0)


def wrong(case, probability, popularity):
    """Return the probabilities of a model that is wrong in this way."""
    gain = probability @ SCALE.gains / SCALE.gains.max()
    if case == "right":
        return probability
    if case == "reversed":
        order = np.argsort(popularity, kind="stable")
        out = np.empty_like(probability)
        out[order] = probability[order[::-1]]
        return out
    grade, room = (-1, 1 - gain) if case == "high" else (0, gain)
    share = np.minimum(0.1 / np.maximum(room, 1e-9), 1.0)[:, None]
    out = (1 - share) * probability
    out[:, grade] += share[:, 0]
    return out


def one(size, seed):
    """Judge one synthetic campaign with the right model and with each wrong one."""
    blind, probability = campaign(size, seed)
    codes = (stream(seed, "grades").random((len(probability), 1)) > probability.cumsum(axis=1)[:, :-1]).sum(axis=1)
    popularity = np.bincount(blind.runs.pairs[blind.runs.retrieved], minlength=len(probability))
    out = {}
    for case in CASES:
        model = Fixed(wrong(case, probability, popularity))
        judging = Judging.of(blind, model, METRIC, scale=SCALE, depth=DEPTH, seed=seed)
        true = judging.begin().context.level_weights @ judging.metric.gains(SCALE)[codes]
        out[case] = result(judge(judging, SCALE.values[codes]), true)
    return out


def learns(seed):
    """Judge a campaign whose grades are drawn from the shipped model, by that model, fitted after every batch."""
    made = synthetic_campaign(seed=seed, systems=12, queries=30, depth=DEPTH, scale=SCALE)
    blind = replace(made, judgments=None)
    model = choose_model("text-hierarchical", blind, scale=SCALE).model
    judging = Judging.of(blind, model, METRIC, scale=SCALE, depth=DEPTH, seed=seed)
    relevance = judging.begin().prediction.relevance
    codes = relevance.sample(1, stream(seed, "grades"), start=int(stream(seed).integers(relevance.n_draws)))[0]
    true = judging.begin().context.level_weights @ judging.metric.gains(SCALE)[codes]
    return result(judge(judging, SCALE.values[codes]), true)


def real(data, name, policy, seed):
    """Judge a finished campaign with the shipped model."""
    held = HeldOut.of(read_campaign(data / name), depth=DEPTH, systems="judged")
    blind = replace(held.collection, judgments=None)
    offered = np.zeros(len(held.pool), dtype=bool)
    offered[held.known] = True
    model = choose_model("text-hierarchical", blind, scale=held.scale).model
    judging = Judging.of(blind, model, METRIC, policy=policy, scale=held.scale, depth=DEPTH, offered=offered, seed=seed)
    return result(judge(judging, SimulatedAssessor.of(held).grades), held.truth(judging.metric).mean(axis=1))


def draws(data):
    """Return the standard deviation of the level's estimate from one draw, by the distribution of draws."""
    held = HeldOut.of(read_campaign(data / REAL[0]), depth=DEPTH, systems="judged")
    blind = replace(held.collection, judgments=None)
    model = choose_model("text-hierarchical", blind, scale=held.scale).model
    judging = Judging.of(blind, model, METRIC, scale=held.scale, depth=DEPTH, seed=0)
    grades = SimulatedAssessor.of(held).grades
    state, judged, rows = judging.begin(), [], []
    for target in (0.0, 0.04, 0.1, 0.2):
        while len(judged) < target * len(held.pool):
            judged += state.next(25).pairs.tolist()
            state = state.after(Judgments.coded(judging.pool, np.array(judged), grades[judged]))
        context, open_ = state.context, state.open
        weight = context.level_weights.mean(axis=0)[open_]
        error = weight * (context.gains[held.codes] - context.gain_moments[0])[open_]
        query = held.pool.query[open_]
        sd = np.sqrt(context.gain_variance[open_])
        by_query = 1 / np.bincount(query)[query]
        within = weight / np.bincount(query, weight)[query]
        shapes = {
            "uniform": np.ones(len(weight)),
            "uniform over queries": by_query,
            "weight": weight,
            "weight within queries": within,
            "weight times predicted sd": weight * sd,
        }
        row = {"judged": len(judged)}
        for name, shape in shapes.items():
            for uniform in (0.2, 0.5) if name.startswith("weight") else (0.0,):
                p = uniform / len(weight) + (1 - uniform) * shape / shape.sum()
                label = name if not uniform else f"{name}, {uniform:g} uniform"
                row[label] = float(np.sqrt((error**2 / p).sum() - error.sum() ** 2))
        rows.append(row)
    return rows


def figures(name, cells):
    """Return one row of a table over campaigns."""
    n = len(cells)
    raised = [c["alarm"] for c in cells if c["alarm"] is not None]
    by_draws = [c["alarm_of_draws"] for c in cells if c["alarm_of_draws"] is not None]
    return {
        "campaigns": name,
        "n": n,
        "alarm by 20%": f"{len(raised) / n:.3f}",
        "judgments then": f"{np.median(raised):.0f}" if raised else "-",
        "alarm by draws alone": f"{len(by_draws) / n:.3f}",
        "draws then": f"{np.median(by_draws):.0f}" if by_draws else "-",
        "draws in all": f"{np.mean([c['draws'] for c in cells]):.0f}",
    }


def levels(name, cells):
    """Return one row on the level and the systems by the sample."""
    inside, seen = np.sum([c["systems"] for c in cells], axis=0)
    return {
        "campaigns": name,
        "error of the model": f"{np.mean([abs(c['model_error']) for c in cells]):.3f}",
        "bias of the sample": f"{np.mean([c['error'] for c in cells]):+.3f}",
        "error of the sample": f"{np.mean([abs(c['error']) for c in cells]):.3f}",
        "half-width": f"{np.mean([c['width'] for c in cells]):.3f}",
        "interval holds": f"{np.mean([c['covered'] for c in cells]):.3f}",
        "of systems": f"{inside / max(seen, 1):.3f}",
        "their half-width": f"{np.nanmean([c['system_width'] for c in cells]):.3f}",
    }


def made(work, parts):
    """Return the finished cells of every part, making those of the named ones."""

    def cells(part, name, make, n):
        go = part in parts
        found = [work.kept(f"{name}-{seed}", (lambda s=seed: make(s)) if go else None) for seed in range(n)]
        return [cell for cell in found if cell is not None]

    found = {"right": {}, "sizes": {}, "learning": {}, "real": {}}
    for size in SIZES:
        part, n = ("right", CAMPAIGNS) if size == USUAL else ("sizes", FEWER)
        both = cells(part, size.replace(",", ""), lambda s, z=size: one(z, s), n)
        for case, text in CASES.items():
            found[part][text if size == USUAL else f"{size} pairs: {text}"] = [cell[case] for cell in both]
    found["learning"]["1,000 pairs: the model is right"] = cells("learning", "learning", learns, LEARNING)
    for name in REAL:
        for policy in ("gain", "random"):
            label = f"{name}, {policy}"
            make = lambda s, n=name, p=policy: real(work.data, n, p, s)  # noqa: E731
            found["real"][label] = cells("real", f"{name}-{policy}", make, SEEDS)
    found["draws"] = work.kept("draws", (lambda: draws(work.data)) if "draws" in parts else None)
    return found


def page(found):
    """Return the text of the page."""
    text = ["# Evidence: the audit\n", LEAD]
    for key, (title, words) in SECTIONS.items():
        rows = {name: cells for name, cells in found[key].items() if cells}
        if rows:
            text += [f"## {title}\n", words, table(pd.DataFrame([figures(n, c) for n, c in rows.items()]))]
            text += ["Levels and systems at 20%:\n", table(pd.DataFrame([levels(n, c) for n, c in rows.items()]))]
    if found["draws"]:
        columns = found["draws"]
        rows = [
            {"draws": name, **{f"{c['judged']:,} judged": f"{c[name]:.3f}" for c in columns}}
            for name in columns[0]
            if name != "judged"
        ]
        text += [
            "## The distribution of draws\n",
            DISTRIBUTION,
            table(pd.DataFrame(rows)),
        ]
    return "\n".join(text)


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit("usage: python examples/audit_evidence.py DATA KEEP [PART...]")
    data, keep, *parts = sys.argv[1:]
    warnings.simplefilter("ignore")
    work = Work(Path(data), Path(keep))
    PAGE.write_text(page(made(work, parts or PARTS)))


if __name__ == "__main__":
    main()
