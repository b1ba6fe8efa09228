"""Write docs/evidence-trust.md: `python examples/trust_evidence.py DATA KEEP [PART...] [--seeds N]`.

Models, judgings and figures are kept in the folder KEEP as they are made, so that a broken run resumes where it
stopped. Parts: `agreement`, `panel`, `drift`, `kin`, `surprising`, `deciding`; all of them when none is named.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import DOCS, Keep, Targets, do_all, past_campaigns, table

from probeval.data import Judgments, LabelTable, read_campaign, read_graded_labels, read_labels
from probeval.relevance import RelevanceDistribution, fit_hierarchical
from probeval.relevance.observers.agreement import GradePosterior, agreement
from probeval.relevance.observers.drift import drift
from probeval.relevance.observers.panel import panel
from probeval.relevance.observers.trust import examine
from probeval.relevance.surprise import LeftOut
from probeval.scores.trust import LEVEL, MARGIN
from probeval.selection import Judging
from probeval.simulation import HeldOut
from probeval.streams import Purpose, stream

DL19, DL20 = "trec-dl2019-passage", "trec-dl2020-passage"
TITLES = {DL19: "DL 2019", DL20: "DL 2020"}
METRIC = "DCG@10"
JUDGED = (50, 100, 200, 400)  # at which figures are taken
N = 200  # judgments for the panel, drift and kin
UNKNOWN = "my_llm"
LABELS = (("gpt4o_umbrela", False), ("llama32_umbrela", True), ("llama32_binary", False), ("gpt4o_binary", True))
ORDERS = ("gain", "uncertain", "random")
KIN = ("monot5_base", "monot5_large", "monot5_3b", "rank1_7b", "rank1_14b", "rank1_32b")
NOT_KIN = ("gpt4o_umbrela",)  # examined as if it were of a family of systems that it is not
WAYS = ("gain", "trust", "random")  # orders of judging, for kin
SLIPS = 10  # grades that are turned
LEAST = (0.5, 0.6, 0.7)  # agreement that is asked for


class Work:
    """Campaigns, models and judgings, each made once."""

    def __init__(self, data: Path, keep: Path, seeds: int = 3) -> None:
        self.data, self.kept, self.seeds = data, Keep(keep), seeds

    def model(self, name):
        """Return the model that saw neither the campaign nor any label of it."""

        def fit():
            tables = []
            for each in ["labels-dl2023"] + ["labels-dl2019-more"] * (name != DL19):
                labels, grades = read_graded_labels(self.data / f"{each}.tsv.gz")
                people = {source: {"kind": "person"} for source in labels.sources if source.startswith("person")}
                tables.append((labels.described(people), grades))
            return fit_hierarchical(past_campaigns(self.data, name), depth=10, labelled=tables)

        return self.kept(f"model-{name}", fit)

    def held(self, name):
        return self.kept(f"held-{name}", lambda: HeldOut.of(read_campaign(self.data / name), depth=10))

    def labels(self, name, more: str = ""):
        if more:
            return self.kept(f"labels-{name}-{more}", lambda: read_labels(self.data / f"labels-{name}-{more}.tsv.gz"))
        return self.kept(f"labels-{name}", lambda: read_campaign(self.data / name).labels)

    def kin(self, name):
        """Return BM25 and its re-rankings by the models that judge, with the judgments of the campaign."""
        return self.kept(f"kin-{name}", lambda: read_campaign(self.data / f"{name}-kin"))

    def judged(self, collection, scale, model, order: str, ends: Sequence[int], seed: int):
        """Judge a collection again in an order; return the state, and the pairs so far, at each of these numbers."""
        truth = collection.problem(depth=10, scale=scale).grades.codes
        policy, goal = ("uncertain" if order == "uncertain" else "gain"), ("trust" if order == "trust" else "ranking")
        judging = Judging.of(replace(collection, judgments=None), model, METRIC, policy=policy, goal=goal, scale=scale)
        judging = replace(judging, offered=truth >= 0, seed=seed)
        at_random = np.random.default_rng(seed).permutation(np.flatnonzero(truth >= 0)).tolist()
        state, picked, found = judging.begin(), [], {}
        while len(picked) < max(ends):
            n = min(10 if len(picked) < 50 else 25, min(e for e in ends if e > len(picked)) - len(picked))
            picked += at_random[len(picked) : len(picked) + n] if order == "random" else state.next(n).pairs.tolist()
            if order != "random" or len(picked) in ends:
                grades = scale.values[truth[picked]]
                state = state.after(Judgments.coded(judging.pool, np.array(picked), grades))
            if len(picked) in ends:
                found[len(picked)] = (state, np.array(picked))
        return found


def complete(problem) -> GradePosterior:
    """Return the grades of a problem by all of its judgments; unjudged pairs count as grade 0."""
    codes = np.maximum(problem.grades.codes, 0)
    given = Judgments.coded(problem.pool, np.arange(len(codes)), problem.scale.values[codes])
    even = np.full((len(codes), len(problem.scale)), 1 / len(problem.scale))
    known = RelevanceDistribution.of(problem.pool, problem.scale, even, judgments=given)
    return GradePosterior.of(known, np.random.default_rng(0))


def under(labels: LabelTable, source: str, *, unknown: bool) -> LabelTable:
    """Return one column, under its name or under one that no card has."""
    taken = labels.take([source])
    return LabelTable(taken.pool, (UNKNOWN,), taken.values) if unknown else taken


HEAD = """# Evidence: is my judge any good?

Written by `examples/trust_evidence.py`. Deep Learning 2019 and 2020 are held out in turn: the model is fitted to the
other one and to older text campaigns, and never sees a label of the held-out campaign with its grade. The pool is the
top ten of the systems that are fully judged, so that every figure is known from all judgments. Pairs are judged again,
by the default selection (`gain`), by their doubt alone (`uncertain`), for the labels (`trust`, half of them at random),
and at random. [The trust report](theory/observers.md#trust) has the formulas.

"""


def agreement_part(work: Work) -> str:
    """Return the section on kappa, correlation and equal labels, by few and chosen judgments."""
    rows = []
    for name in TITLES:
        held = work.held(name)
        for source, unknown in LABELS:
            labels = under(work.labels(name), source, unknown=unknown)
            collection = replace(held.collection, labels=labels)
            problem = collection.problem(depth=10, scale=held.scale)
            given, observer, top = problem.labels.values[:, 0], problem.labels.observers[0], held.scale.values[-1]
            truth = agreement(complete(problem), given, observer, top, seed=[0])
            codes = problem.grades.codes
            for order in ORDERS:
                for seed in range(work.seeds):

                    def made(collection=collection, held=held, name=name, order=order, seed=seed):
                        found = work.judged(collection, held.scale, work.model(name), order, JUDGED, seed)
                        rng = np.random.default_rng(0)
                        return {
                            n: (GradePosterior.of(state.prediction.relevance, rng), pairs)
                            for n, (state, pairs) in found.items()
                        }

                    for n, (posterior, pairs) in work.kept(f"agreement-{name}-{source}-{order}-{seed}", made).items():
                        found = agreement(posterior, given, observer, top, seed=[seed])
                        both = pairs[~np.isnan(given[pairs])]
                        bare = float(np.corrcoef(given[both], codes[both])[0, 1])
                        for what in ("kappa", "correlation", "equal"):
                            if getattr(found, what) is not None:
                                true, value = getattr(truth, what), getattr(found, what)
                                low, high = (getattr(found, f"{what}_{end}") for end in ("lower", "upper"))
                                off = bare - true if what == "correlation" else np.nan
                                rows.append((order, n, what, value - true, low <= true <= high, (high - low) / 2, off))
                        for cell, full in zip(found.confusion, truth.confusion, strict=True):
                            inside = cell.lower <= full.pairs <= cell.upper
                            half = (cell.upper - cell.lower) / 2
                            rows.append((order, n, "confusion", cell.pairs - full.pairs, inside, half, np.nan))
    columns = ["order", "judged", "figure", "error", "coverage", "half-width", "bare"]
    found = pd.DataFrame(rows, columns=columns)
    by = found.groupby(["figure", "order", "judged"], sort=False)
    means = by.agg({"error": lambda e: np.abs(e).mean(), "coverage": "mean", "half-width": "mean", "bare": "mean"})
    means.insert(1, "bias", by["error"].mean())
    targets = Targets()
    for what in ("kappa", "correlation", "equal", "confusion"):
        targets.least(f"coverage of 95% intervals, {what}", found[found.figure == what].coverage.mean(), 0.9)
    chosen = found[(found.figure == "correlation") & (found.order != "random")]
    targets.most("mean error of the correlation, chosen pairs", chosen.error.abs().mean(), chosen.bare.abs().mean() / 3)
    return (
        "## Agreement with the grades\n\nFour columns of labels on both campaigns, three orders of judging, "
        f"{work.seeds} seeds. *bias*, *error*: the mean and the mean size of estimate minus truth; *bare*: the mean "
        "error of the correlation on the judged pairs alone. For confusion, a figure is a number of pairs with one "
        f"label and one grade.\n\n{targets}\n" + table(means.reset_index())
    )


def panel_part(work: Work) -> str:
    """Return the section on the effective number of judges among the 20 `-needs` columns."""
    rows, targets = [], Targets()
    for name, title in TITLES.items():
        held = work.held(name)
        collection = replace(held.collection, labels=work.labels(name, "needs"))
        problem = collection.problem(depth=10, scale=held.scale)
        labels = problem.labels
        full = panel(complete(problem), labels.values, labels.observers, seed=[0])
        low, high = over_queries(problem, work.seeds)
        rows.append((title, "all judged", 0, full.error_correlation, full.effective, low, high))
        for order in ("gain", "random"):
            for seed in range(work.seeds):

                def made(collection=collection, held=held, name=name, order=order, seed=seed, labels=labels):
                    found = work.judged(collection, held.scale, work.model(name), order, [N], seed)
                    posterior = GradePosterior.of(found[N][0].prediction.relevance, np.random.default_rng(0))
                    return panel(posterior, labels.values, labels.observers, seed=[seed])

                one = work.kept(f"panel-{name}-{order}-{seed}", made)
                rows.append((title, order, seed, one.error_correlation, one.effective, one.lower, one.upper))
                targets.most(f"error, {title}, {order}, seed {seed}", abs(one.effective - full.effective), 0.25)
    columns = ["campaign", "judged by", "seed", "error correlation", "effective", "lower", "upper"]
    return (
        "\n## How many judges twenty columns are\n\nThe 20 columns of four open models with five descriptions of each "
        f"need. With {N} judged pairs the interval is for these pairs; with all judged it is over queries "
        "(a bootstrap).\n\n"
        f"{targets}\n" + table(pd.DataFrame(rows, columns=columns))
    )


def over_queries(problem, seeds: int, n: int = 200) -> tuple[float, float]:
    """Return a bootstrap interval of the effective number over queries, by plain residuals within grades."""
    values, codes = problem.labels.values, np.maximum(problem.grades.codes, 0)
    whole = ~np.isnan(values).any(axis=1)
    values, codes, query = values[whole], codes[whole], problem.pool.query[whole]
    rng, found = np.random.default_rng(seeds), []
    for _ in range(n):
        drawn = rng.choice(np.unique(query), len(np.unique(query)))
        rows = np.concatenate([np.flatnonzero(query == q) for q in drawn])
        left = values[rows].copy()
        for code in np.unique(codes[rows]):
            left[codes[rows] == code] -= left[codes[rows] == code].mean(axis=0)
        rho = np.corrcoef(left.T)
        found.append(len(rho) ** 2 / rho.sum())
    low, high = np.quantile(found, [0.025, 0.975]).tolist()
    return low, high


def drift_part(work: Work) -> str:
    """Return the section on two runs of gpt4o_umbrela."""
    rows = []
    for name, title in TITLES.items():
        held = work.held(name)
        collection = replace(held.collection, labels=work.labels(name).take(["gpt4o_umbrela"]))
        problem = collection.problem(depth=10, scale=held.scale)
        later = work.labels(name, "rerankers").take(["gpt4o_umbrela"]).on(problem.pool)
        now, before = later.values[:, 0], problem.labels.values[:, 0]
        of, top = (later.observers[0], problem.labels.observers[0]), float(held.scale.values[-1])
        cases = [("all judged", 0, complete(problem))]
        for order in ("gain", "random"):
            for seed in range(work.seeds):

                def made(collection=collection, held=held, name=name, order=order, seed=seed):
                    found = work.judged(collection, held.scale, work.model(name), order, [N], seed)
                    return GradePosterior.of(found[N][0].prediction.relevance, np.random.default_rng(0))

                cases.append((order, seed, work.kept(f"drift-{name}-{order}-{seed}", made)))
        for order, seed, posterior in cases:
            one = drift(posterior, problem.lists, now, before, of, top, [seed])
            changed = (one.pairs, one.up, one.down, one.kappa, one.shift, one.lower, one.upper)
            rows.append(
                (title, order, seed, *changed, one.agreement, one.agreement_lower, one.agreement_upper, one.verdict)
            )
    columns = "campaign,judged by,seed,pairs,higher,lower,kappa,shift,from,to,agreement,least,most,verdict"
    return (
        f"\n## Two runs of one judge\n\n`gpt4o_umbrela` and its later run on the same pairs, with all judged, and with "
        f"{N} judged. *higher*, *lower*: the shares of labels that changed; *kappa*: of the two runs; *shift*: the "
        "mean change, with its interval over queries; *agreement*: the change of kappa with the grades.\n\n"
        + table(pd.DataFrame(rows, columns=columns.split(",")))
    )


def kin_part(work: Work) -> str:
    """Return the section on judges that favour their kin."""
    rows = []
    for name, title in TITLES.items():
        campaign, model = work.kin(name), work.model(name)
        scale = campaign.scale()
        for source in (*KIN, *(f"{one} as {kin}" for one in NOT_KIN for kin in ("monot5", "rank1"))):
            column, _, family = source.partition(" as ")
            labels = work.labels(name, "rerankers").take([column])
            if family:
                labels = labels.described({column: {"family": family}})
            collection = replace(campaign, labels=labels)
            cases = [("all", 0)] + [(order, seed) for order in WAYS for seed in range(work.seeds)]
            for order, seed in cases:

                def made(collection=collection, order=order, seed=seed, model=model, scale=scale):
                    problem = collection.problem(depth=10, scale=scale)
                    if order != "all":
                        picked = work.judged(collection, scale, model, order, [N], seed)[N][1]
                        grades = scale.values[problem.grades.codes[picked]]
                        problem = problem.with_judgments(Judgments.coded(problem.pool, picked, grades))
                    rng = stream(seed, Purpose.TRUST)
                    design, priors = model.unlabelled(problem), model.prior.observers
                    return examine(design, priors, problem, margin=MARGIN, rng=rng)[0].kin

                one = work.kept(f"kin-{name}-{source}-{order}-{seed}", made)
                rows.append((title, source, order, seed, one.mean, one.lower, one.upper, one.p_favours, one.verdict))
    columns = ["campaign", "labels", "judged by", "seed", "shift", "lower", "upper", "P(favours)", "verdict"]
    found = pd.DataFrame(rows, columns=columns)
    all_judged = found[found["judged by"] == "all"].set_index(["campaign", "labels"])
    whole, says = all_judged["shift"], all_judged["verdict"]
    some = found[found["judged by"] != "all"].copy()
    some["by all"] = [whole[row.campaign, row.labels] for row in some.itertuples()]
    some["inside"] = (some.lower <= some["by all"]) & (some["by all"] <= some.upper)
    of_kin = ~some.labels.str.contains(" as ")
    nothing = np.array([says[row.campaign, row.labels] != "favours" for row in some.itertuples()])
    targets = Targets()
    for order in WAYS:
        mine = some[(some["judged by"] == order) & of_kin]
        targets.least(f"found with {N} judgments, {order}", float((mine.verdict == "favours").mean()), 0.9)
        targets.least(f"intervals with the shift by all judgments, {order}", float(mine.inside.mean()), 0.9)
        other = some[(some["judged by"] == order) & nothing]
        targets.most(f"found where all judgments find none, {order}", float((other.verdict == "favours").mean()), 0.05)
    by = some.groupby(["campaign", "labels", "judged by"], sort=False)
    shown = by.agg(
        {
            "by all": "first", "shift": "mean", "lower": "mean", "upper": "mean", "P(favours)": "min",
            "verdict": lambda v: f"{(v == 'favours').sum()} of {len(v)}", "inside": "mean",
        }
    )  # fmt: skip
    return (
        "\n## Judges that favour their kin\n\nBM25 and its re-rankings by monoT5, Rank1 and RankLlama, with labels by "
        f"these very models; {N} judged pairs, {work.seeds} seeds. *by all*: the shift with all judgments; *shift*, "
        "*lower*, *upper*: means over seeds; *P(favours)*: the least of the seeds; *verdict*: how many say that kin is "
        "favoured; *inside*: the share of intervals with the shift by all. gpt4o_umbrela is examined as if these "
        f"systems were its kin, too.\n\n{targets}\n" + table(shown.reset_index()) + "\nSeed by seed:\n\n" + table(found)
    )


def surprising_part(work: Work) -> str:
    """Return the section on surprising grades: their tail probabilities, and slips among them."""
    rows, tails = [], []
    for name, title in TITLES.items():
        held = work.held(name)
        collection = replace(held.collection, labels=work.labels(name).take(["gpt4o_umbrela"]))
        problem = collection.problem(depth=10, scale=held.scale)
        codes, top = problem.grades.codes, len(held.scale) - 1
        for n in (200, 400):
            for seed in range(work.seeds):

                def made(collection=collection, held=held, name=name, n=n, seed=seed, codes=codes, top=top):
                    rng = np.random.default_rng(seed)
                    picked = rng.permutation(np.flatnonzero(codes >= 0))[:n]
                    ends = picked[(codes[picked] == 0) | (codes[picked] == top)]
                    slips = rng.choice(ends, SLIPS, replace=False)
                    out = []
                    for turned in (np.empty(0, dtype=int), slips):
                        given = np.where(np.isin(picked, turned), top - codes[picked], codes[picked])
                        judgments = Judgments.coded(collection.runs.top(10).pool, picked, held.scale.values[given])
                        now = replace(collection, judgments=judgments).problem(depth=10, scale=held.scale)
                        out.append(LeftOut.of(work.model(name).predict(now, rng=stream(seed, Purpose.PREDICTION))))
                    return (*out, slips)

                right, wrong, slips = work.kept(f"surprising-{name}-{n}-{seed}", made)
                found = np.minimum(*right.tails)
                tails += [(t, int((found <= t).sum()), right.expected_below(t)) for t in (0.01, 0.05, 0.2)]
                order = wrong.pairs[np.argsort(np.minimum(*wrong.tails), kind="stable")]
                rows.append((title, n, seed, *(int(np.isin(order[:k], slips).sum()) for k in (5, 10, 20, 40))))
    found = pd.DataFrame(rows, columns=["campaign", "judged", "seed", "5", "10", "20", "40"])
    stated = pd.DataFrame(tails, columns=["tail", "judgments", "expected"]).groupby("tail").sum().reset_index()
    return (
        "\n## Surprising grades\n\nJudgments at random, labels by gpt4o_umbrela. How many judgments have so small a "
        "tail probability, and how many the model expects, were it right:\n\n"
        + table(stated)
        + f"\nThen {SLIPS} grades at the ends of the scale are turned to the other end. How many of them are among the "
        "5, 10, 20 and 40 most surprising grades (those that were surprising before are among these too):\n\n"
        + table(found)
    )


def deciding_part(work: Work) -> str:
    """Return the section on the pairs that decide whether labels may be used."""
    rows = []
    ends = (30, 50, 75, 100, 150, 200)
    for name in TITLES:
        held = work.held(name)
        for source in ("gpt4o_umbrela", "llama32_umbrela"):
            collection = replace(held.collection, labels=under(work.labels(name), source, unknown=True))
            problem = collection.problem(depth=10, scale=held.scale)
            given, observer = problem.labels.values[:, 0], problem.labels.observers[0]
            top = float(held.scale.values[-1])
            truth = agreement(complete(problem), given, observer, top, seed=[0]).kappa
            for order in ("trust", "gain", "random"):
                for seed in range(work.seeds):

                    def made(collection=collection, held=held, name=name, order=order, seed=seed):
                        found = work.judged(collection, held.scale, work.model(name), order, ends, seed)
                        rng = np.random.default_rng(0)
                        return {n: GradePosterior.of(s.prediction.relevance, rng) for n, (s, _) in found.items()}

                    for n, posterior in work.kept(f"deciding-{name}-{source}-{order}-{seed}", made).items():
                        one = agreement(posterior, given, observer, top, seed=[seed])
                        for least in LEAST:
                            p = one.probability_of(least)
                            decided = max(p, 1 - p) >= LEVEL
                            right = (p > 0.5) == (truth >= least)
                            width = one.kappa_upper - one.kappa_lower
                            rows.append((order, n, abs(one.kappa - truth), width, decided, right))
    found = pd.DataFrame(rows, columns=["pairs by", "judged", "error", "width", "decided", "right"])
    by = found.groupby(["pairs by", "judged"], sort=False)
    shown = by.agg({"error": "mean", "width": "mean", "decided": "mean"})
    shown["right if decided"] = found[found.decided].groupby(["pairs by", "judged"], sort=False)["right"].mean()
    return (
        f"\n## The pairs that decide\n\nLabels of two judges under an unknown name, seeds: {work.seeds}. Kappa of at "
        f"least {', '.join(f'{least:g}' for least in LEAST)} is asked for with a probability of {LEVEL:g}. *decided*: "
        "the share of these questions that have an answer, yes or no; *right if decided*: the share of right ones.\n\n"
        + table(shown.reset_index())
    )


PARTS = {
    "agreement": agreement_part,
    "panel": panel_part,
    "drift": drift_part,
    "kin": kin_part,
    "surprising": surprising_part,
    "deciding": deciding_part,
}


def main(asked: argparse.Namespace) -> None:
    work = Work(asked.data, asked.keep, asked.seeds)

    def write(part):
        (asked.keep / f"{part}.md").write_text(PARTS[part](work), encoding="utf-8")

    do_all([partial(write, part) for part in asked.parts or PARTS])
    made = [asked.keep / f"{part}.md" for part in PARTS if (asked.keep / f"{part}.md").exists()]
    page = HEAD + "\n".join(path.read_text(encoding="utf-8") for path in made)
    (DOCS / "evidence-trust.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write docs/evidence-trust.md.")
    parser.add_argument("data", type=Path, help="the folder of real campaigns")
    parser.add_argument("keep", type=Path, help="the folder of finished work")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--seeds", type=int, default=3, help="the number of seeds, %(default)s by default")
    given = parser.parse_args()
    if set(given.parts) - set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    main(given)
