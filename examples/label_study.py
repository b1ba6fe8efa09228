"""Write docs/evidence-labels.md: `python examples/label_study.py DATA KEEP [PART...] [--seeds N]`.

Finished cells are kept in the folder KEEP, so that a broken run resumes where it stopped. Parts: `random`, `gain`,
`pairs`, `broken`, `reversed`; all of them when none is named. `--columns`, `--names` and `--most` take fewer cells.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import DOCS, Keep, do_all, past_campaigns, table
from label_tables import INVERTED, labelled_tables, text_labels

from probeval.arrays import Floats, Ints
from probeval.data import Collection, Judgments, LabelTable, Runs, read_campaign
from probeval.data.evidence import read_label_table
from probeval.metrics import parse
from probeval.relevance import Empirical, Hierarchical, fit_hierarchical
from probeval.relevance.inference.laplace import LaplacePosterior
from probeval.relevance.models.labels import label_model
from probeval.scores import Scores, evaluate
from probeval.selection import Judging
from probeval.simulation import HeldOut, measure_point
from probeval.simulation.replay import SimulatedAssessor
from probeval.streams import Purpose, stream

DL19, DL20 = "trec-dl2019-passage", "trec-dl2020-passage"
TITLES = {DL19: "DL 2019", DL20: "DL 2020"}
FLAN = {DL19: "labels-dl2019-more", DL20: f"{DL20}/labels"}
COLUMNS = {  # by the table that they are in; those of the campaign, of texts and inverted ones are found below
    "{0}/labels": ("gpt4o_umbrela", "llama32_umbrela", "gpt4o_nuggets_weighted", "llama32_nuggets_all"),
    "labels-{0}-rerankers": ("gpt4o_umbrela", "rank1_7b", "monot5_base", "monot5_base_score"),
    "labels-{0}-needs": ("gptoss120b_query", "qwen330b_query"),
}
PROMPTS = f"labels-{DL20}-prompts"
TURNED = {DL19: ("gpt4o_umbrela", "llama32_umbrela"), DL20: ()}  # where there are no inverted prompts: made
MADE = ("llama32_binary_p10_inverted", "mistral_binary_p14_inverted")
TEXT_COLUMNS = ("svdcosine", "tfidfcosine", "bm25score", "textlength")
STRONG = ("gpt4o_umbrela", "gpt4o_umbrela again", "gptoss120b_query", "qwen330b_query")
UNKNOWN = "my_labels"
METRICS = ("DCG@10", "nDCG@10")
JUDGED = (0, 20, 50, 200)
BATCH = 10  # judgments between two choices by gain
NULL = 1000  # truths drawn from the model, for the p of calibration
LEAST_P = 1e-4
PAIRS, APART = 200, 0.05  # of systems, and the difference that labels alone should decide
BROKEN, QUERIES, MISSING = 10, 12, 0.1  # broken runs per campaign, their queries, and the share of missing labels
SEEDS = 10  # of judgments of reversed columns
AMONG = {"gpt4o": 30, "llama32": 100, "mistral": 100}  # judgments among labelled pairs


HEAD = """# Evidence: labels from worthless to strong

Written by `examples/label_study.py`, which is not on the runner of `make evidence` yet; six columns are on [with
labels](evidence/with-labels.md). Deep Learning 2019 and 2020 are left out of the fit in turn, with all tables of
their labels; the columns of the other one, of Deep Learning 2023 and of ANTIQUE are learned from. Columns go from
judges by large language models to cosines, BM25 and lengths, each under its own name and under one that no card has.
The log loss is the mean of -log P(true direction) over pairs of systems, with P at least .0001; *without* is that of
no labels. *coverage* is of 95% intervals of differences between systems.

What was tried for the biases of labellers towards systems, by the spread of their logarithm over 151 columns by
language models and re-rankers: in units of the labels .45, as multiples of the signal .68, of the noise of single
labels .60, of the residual of systems on queries .46, of the residual of pairs .51. Tied to the standard deviation of
the campaign's systems instead of the one that is expected, similarities made that larger, and the log loss with their
labels rose by .02 to .04. Slopes as means over all levels, queries among them, left columns that only see which
queries are easy with too much worth. Numbers of an unknown name were similarities with a probability of .5, .9 and
.95: the log loss with nothing judged, of the worst column, exceeded that of no labels by .62, .34 and .22, and with
two more similarities to learn from by .17. Judges and similarities can be told apart by the variances of their labels
since biases have a narrow prior. Both campaigns were looked at in these choices, so the figures are somewhat better
than they would be on a new one.

"""


class Study:
    """Campaigns left out, models, labels and cells, each made once."""

    def __init__(self, data: Path, keep: Path) -> None:
        self.data, self.kept = data, Keep(keep)

    def held(self, name: str) -> HeldOut:
        return self.kept(f"held-{name}", lambda: HeldOut.of(read_campaign(self.data / name), depth=10))

    def model(self, name: str) -> Hierarchical:
        def fit() -> Hierarchical:
            return fit_hierarchical(
                past_campaigns(self.data, name), depth=10, labelled=labelled_tables(self.data, without=name)
            )

        return self.kept(f"model-{name}", fit)

    def columns(self, name: str) -> dict[str, LabelTable]:
        """Return every column of a campaign as a table of its own, by its name in the study."""
        return self.kept(f"columns-{name}", lambda: dict(self._columns(name)))

    def _columns(self, name: str) -> Iterator[tuple[str, LabelTable]]:
        seen: set[str] = set()
        wanted = {k.format(name): v for k, v in COLUMNS.items()}
        wanted |= {FLAN[name]: (*wanted.get(FLAN[name], ()), "flant5_Thomas")}
        wanted |= {PROMPTS: MADE} if name == DL20 else {}
        for file, sources in wanted.items():
            read = read_label_table(self.data / f"{file}.tsv.gz")
            for source in sources:
                yield f"{source} again" if source in seen else source, read.take([source])
                seen.add(source)
        own = read_label_table(self.data / name / "labels.tsv.gz")
        for source in TURNED[name]:
            values = own.take([source]).values
            yield f"{source}{INVERTED}", LabelTable(own.pool, (f"{source}{INVERTED}",), np.nanmax(values) - values)
        texts = text_labels(self.data, name)
        for source in TEXT_COLUMNS:
            yield source, texts.take([source])

    def judged(self, name: str, labels: LabelTable | None, order: str, seed: int, most: int) -> Ints:
        """Return pairs in the order in which they are judged: at random, or by gain for the first measure."""
        held = self.held(name)
        if order == "random":
            return stream(seed, name, Purpose.PILOT).permutation(held.known)[:most]
        offered = np.zeros(len(held.pool), dtype=bool)
        offered[held.known] = True
        collection = replace(held.collection, judgments=None, labels=labels)
        judging = Judging.of(
            collection, self.model(name), parse(METRICS[0]), policy="gain", scale=held.scale, depth=10,
            offered=offered, draws=500, seed=seed,
        )  # fmt: skip
        assessor = SimulatedAssessor.of(held)
        state, pairs = judging.begin(), []
        while len(pairs) < most:
            pairs += state.next(BATCH).pairs.tolist()
            state = state.after(assessor.judge(held, pairs))
        return np.array(pairs)

    def cells(self, name: str, label: str, known: str, order: str, seed: int, most: int) -> list[dict]:
        """Return the figures of one column, at every number of judgments, for both measures."""

        def compute() -> list[dict]:
            held, model = self.held(name), self.model(name)
            labels = None if label == "none" else self.columns(name)[label]
            if labels is not None and known == "unknown":
                labels = renamed(labels)
            counts = [n for n in JUDGED if n <= most]
            order_of = self.judged(name, labels, order, seed, most) if most else np.empty(0, np.int64)
            given = replace(held.collection, judgments=None, labels=labels)
            problem = given.problem(depth=10, scale=held.scale)
            design, rows = model.design(problem), []
            for n in counts:
                now = problem.with_judgments(held.after(order_of[:n]).judgments)
                posterior = model.refit(now, design)
                predicted = model.distribution(now, posterior, stream(seed, name, Purpose.PREDICTION))
                turned = 0.0 if labels is None else p_reversed(posterior)
                for metric in METRICS:
                    scores = evaluate(problem.lists, predicted, metric, rng=stream(seed, Purpose.SCORES), n=1000)
                    rows.append(
                        {"campaign": TITLES[name], "column": label, "name": known, "order": order, "seed": seed}
                        | {"judged": n, "metric": metric, "reversed": turned}
                        | figures(scores, held.truth(parse(metric)))
                    )
            return rows

        return self.kept(f"cell-{name}-{label}-{known}-{order}-{most}-{seed}", compute)

    def qrels_tau(self, name: str, label: str, metric: str) -> float:
        """Return tau with the labels taken as judgments."""

        def compute() -> dict[str, float]:
            held = self.held(name)
            share = self.kept(f"share-{name}", lambda: Empirical.fit(past_campaigns(self.data, name), depth=10))
            labels = self.columns(name)[label]
            collection = replace(held.collection, judgments=None, labels=labels)
            predicted = label_model("labels", labels, share).predict(collection.problem(depth=10, scale=held.scale))
            return {
                m: figures(evaluate(collection.lists(10), predicted, m, n=1000), held.truth(parse(m)))["tau"]
                for m in METRICS
            }

        return self.kept(f"qrels-{name}-{label}", compute)[metric]


def renamed(labels: LabelTable) -> LabelTable:
    """Return a column under a name that no card has, of which nothing is said."""
    return LabelTable(labels.pool, (UNKNOWN,), labels.values)


def p_reversed(posterior: LaplacePosterior) -> float:
    """Return the probability that the labels are reversed."""
    return float(posterior.weights @ [setting.slopes[0] < 0 for setting in posterior.design.evidence.worth.settings])


def figures(scores: Scores, truth: Floats) -> dict[str, float]:
    """Return the accuracy and calibration of a ranking, with the log loss and the coverage of differences."""
    true = truth.mean(axis=1)
    drawn = scores.joint.draws
    if drawn is None:
        drawn = scores.sample(NULL, stream(0, Purpose.NULL))
    point = measure_point(scores, true, draws=drawn)
    ranking = scores.ranking()
    a, b = np.triu_indices(len(true), k=1)
    differs = np.abs(true[a] - true[b]) > 1e-9
    a, b = np.where(true[a] > true[b], a, b)[differs], np.where(true[a] > true[b], b, a)[differs]
    p = np.clip(ranking.p_higher[a, b], LEAST_P, 1.0)
    mean, sd = (m[a, b] for m in scores.difference_moments())
    return {
        "log loss": float(-np.log(p).mean()),
        "tau": point.tau,
        "stated": point.confidence,
        "right": point.accuracy,
        "p": point.calibration_p,
        "coverage": float(np.mean(np.abs(mean - (true[a] - true[b])) <= 1.96 * sd)),
    }


def judging(study: Study, args: argparse.Namespace, order: str) -> str:
    """Return the section of an order of judging: how many cells meet each target, and the cells of a measure."""
    cells = judged_cells(study, args, order)
    kept = ["campaign", "column", "name", "judged", "log loss", "log loss without", "tau", "tau as qrels", "stated"]
    shown = cells[cells.metric == METRICS[0]].groupby(["campaign", "column", "name", "judged"], sort=False)
    means = shown.mean(numeric_only=True).reset_index()[[*kept, "right", "p", "coverage", "reversed"]]
    how = "at random" if order == "random" else "by gain for the first measure"
    title = f"## Judged {how}\n\nSeeds: {args.seeds}. *worst* is the largest log loss above that of no labels. "
    targets = (
        "*loss met*: cells at most .01 above; *tau met*: of columns with a tau above .8 as judgments, those at most "
        ".01 below the better of that and no labels.\n\n"
    )
    return title + targets + table(judging_targets(cells)) + f"\n### Every column, {METRICS[0]}\n\n" + table(means)


def judged_cells(study: Study, args: argparse.Namespace, order: str) -> pd.DataFrame:
    """Return one row per cell, with those of no labels beside it."""
    pieces = []
    for seed in range(args.seeds):
        for name in TITLES:
            pieces.append(partial(study.cells, name, "none", "-", order, seed, args.most))
            for label in study.columns(name):
                if not args.columns or label in args.columns:
                    for known in args.names:
                        pieces.append(partial(study.cells, name, label, known, order, seed, args.most))
    cells = pd.DataFrame([row for rows in do_all(pieces) for row in rows])
    at = ["campaign", "order", "seed", "judged", "metric"]
    without = cells[cells.column == "none"].set_index(at)[["log loss", "tau"]].add_suffix(" without")
    cells = cells[cells.column != "none"].join(without, on=at)
    names = {title: name for name, title in TITLES.items()}
    cells["tau as qrels"] = [
        study.qrels_tau(names[c], label, m)
        for c, label, m in zip(cells.campaign, cells.column, cells.metric, strict=True)
    ]
    return cells


def judging_targets(cells: pd.DataFrame) -> pd.DataFrame:
    """Return how many cells meet each target, by measure, order and number of judgments."""
    cells = cells.assign(
        loss=cells["log loss"] - cells["log loss without"],
        short=np.maximum(cells["tau as qrels"], cells["tau without"]) - cells.tau,
        over=cells.stated - cells.right,
        strong=cells["tau as qrels"] > 0.8,
    )
    rows = []
    for (metric, order, judged), some in cells.groupby(["metric", "order", "judged"], sort=False):
        best = some[some.strong]
        rows.append(
            {
                "measure": metric, "order": order, "judged": judged, "cells": len(some),
                "log loss": some["log loss"].mean(), "without": some["log loss without"].mean(),
                "worst": some.loss.max(), "loss met": f"{(some.loss <= 0.01).sum()}/{len(some)}",
                "tau met": f"{(best.short <= 0.01).sum()}/{len(best)}", "tau short": best.short.mean(),
                "stated - right": some.over.mean(), "p >= .01": (some.p >= 0.01).mean(),
                "coverage": some.coverage.mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def pairs(study: Study, args: argparse.Namespace) -> str:
    """Return how often two systems are decided by labels alone, and whether the verdict is right."""

    def one(name: str, label: str) -> dict:
        held, model = study.held(name), study.model(name)
        true = held.truth(parse(METRICS[0])).mean(axis=1)
        rng = np.random.default_rng(0)
        chosen = [rng.choice(len(true), 2, replace=False) for _ in range(args.pairs)]
        found = []
        for a, b in chosen:
            runs = held.collection.runs.select([held.collection.runs.systems[i] for i in (a, b)])
            given = Collection(name=name, runs=runs, labels=study.columns(name)[label])
            predicted = model.predict(given.problem(depth=10, scale=held.scale), rng=np.random.default_rng(0))
            comparison = evaluate(given.lists(10), predicted, METRICS[0])
            mean, sd = (m[0, 1] for m in comparison.difference_moments())
            p = comparison.ranking().p_higher[0, 1]
            found.append((true[a] - true[b], mean, sd, max(p, 1 - p)))
        gap, mean, sd, p = np.array(found).T
        apart, sure = np.abs(gap) > APART, p >= 0.95
        right = np.sign(mean) == np.sign(gap)
        return {
            "campaign": TITLES[name], "column": label, "pairs": len(gap), "stated": p.mean(), "right": right.mean(),
            "apart": int(apart.sum()), "decided": (sure & apart).sum() / max(apart.sum(), 1),
            "right if decided": right[sure & apart].mean() if (sure & apart).any() else float("nan"),
            "coverage": np.mean(np.abs(mean - gap) <= 1.96 * sd),
        }  # fmt: skip

    wanted = args.columns or STRONG
    names = [(n, c) for n in TITLES for c in study.columns(n) if c in wanted]
    kept = [partial(study.kept, f"pairs-{n}-{c}-{args.pairs}", partial(one, n, c)) for n, c in names]
    about = f"*apart*: differ by more than {APART}; *decided*: of these, with a probability of at least .95.\n\n"
    return f"## Two systems by labels alone, {METRICS[0]}\n\n{about}" + table(pd.DataFrame(do_all(kept)))


def broken(study: Study, args: argparse.Namespace) -> str:
    """Return the sign of the difference of a run and itself with queries broken, by labels alone."""

    def one(name: str, seed: int) -> dict:
        held, model = study.held(name), study.model(name)
        rng = np.random.default_rng(seed)
        campaign = study.kept(f"campaign-{name}", lambda: read_campaign(study.data / name))
        systems = held.collection.runs.systems
        run = held.collection.runs.select([systems[rng.integers(len(systems))]])
        labels = study.columns(name)["gpt4o_umbrela"]
        values = np.where(rng.random(labels.values.shape) < MISSING, np.nan, labels.values)
        runs = with_broken(run, campaign.judgments, rng)
        given = Collection(name=name, runs=runs, labels=LabelTable(labels.pool, labels.sources, values))
        problem = given.problem(depth=10, scale=held.scale)
        posterior = model.refit(problem, model.design(problem))
        scores = evaluate(problem.lists, model.distribution(problem, posterior, np.random.default_rng(0)), METRICS[0])
        return {
            "campaign": TITLES[name], "seed": seed, "P(baseline higher)": scores.ranking().p_higher[0, 1],
            "P(reversed)": p_reversed(posterior), "right": scores.mean[0] > scores.mean[1],
        }  # fmt: skip

    pieces = [partial(study.kept, f"broken-{n}-{s}", partial(one, n, s)) for n in TITLES for s in range(BROKEN)]
    about = (
        f"A run against itself with {QUERIES} queries broken; {MISSING:.0%} of gpt4o_umbrela's labels are missing.\n\n"
    )
    return f"## Broken runs, nothing judged\n\n{about}" + table(pd.DataFrame(do_all(pieces)))


def with_broken(run: Runs, judgments: Judgments, rng: np.random.Generator) -> Runs:
    """Return a run, and a copy of it whose lists of some queries are other judged documents of the lowest grade."""
    whole = run.top(10).to_frame()[["query", "doc", "rank"]]
    worthless = judgments.to_frame().query("grade == 0")
    copy = whole.copy()
    for query in rng.choice(run.queries, QUERIES, replace=False):
        found = worthless[worthless["query"] == query].doc.to_numpy()
        found = np.setdiff1d(found, whole[whole["query"] == query].doc)
        at = copy["query"] == query
        copy = pd.concat([copy[~at], pd.DataFrame({"query": query, "doc": rng.permutation(found)[:10]})])
        copy.loc[copy["query"] == query, "rank"] = np.arange(1, (copy["query"] == query).sum() + 1)
    both = pd.concat([whole.assign(system="baseline"), copy.assign(system="broken")])
    return Runs.rows(both.system.tolist(), both["query"].tolist(), both.doc.tolist(), ranks=both["rank"].tolist())


def reversals(study: Study, args: argparse.Namespace) -> str:
    """Return P(reversed) of inverted prompts after judgments among their labelled pairs."""
    table_of = study.kept("inverted", lambda: inverted(study.data))

    def one(label: str, seed: int) -> dict:
        held, model = study.held(DL20), study.model(DL20)
        labels = table_of.take([label])
        known = held.known[~np.isnan(labels.on(held.pool).values[held.known, 0])]
        n = AMONG[label.partition("_")[0]]
        picked = stream(seed, label, Purpose.PILOT).permutation(known)[:n]
        problem = replace(held.after(picked), labels=labels).problem(depth=10, scale=held.scale)
        design = model.design(problem)
        posterior = model.refit(problem, design)
        before = p_reversed(model.refit(problem.with_judgments(None), design))
        return {"column": label, "judged": n, "seed": seed, "before": before, "after": p_reversed(posterior)}

    pieces = [
        partial(study.kept, f"reversed-{c}-{s}", partial(one, c, s)) for c in table_of.sources for s in range(SEEDS)
    ]
    found = pd.DataFrame(do_all(pieces)).groupby(["column", "judged"], sort=False)
    means = found[["before", "after"]].mean()
    means["found"] = [f"{(part.after > 0.5).sum()} of {len(part)}" for _, part in found]
    about = "P(reversed) before and after judgments among the labelled pairs; *found*: above .5.\n\n"
    return f"## Prompts that ask for 0 if relevant, DL 2020\n\n{about}" + table(means.reset_index())


def inverted(data: Path) -> LabelTable:
    labels = read_label_table(data / f"{PROMPTS}.tsv.gz")
    return labels.take([s for s in labels.sources if s.endswith(INVERTED)])


PARTS = {
    "random": partial(judging, order="random"),
    "gain": partial(judging, order="gain"),
    "pairs": pairs,
    "broken": broken,
    "reversed": reversals,
}


def main(args: argparse.Namespace) -> None:
    study = Study(args.data, args.keep)
    for part in args.parts or PARTS:
        (args.keep / f"{part}.md").write_text(PARTS[part](study, args), encoding="utf-8")
    made = [args.keep / f"{part}.md" for part in PARTS if (args.keep / f"{part}.md").exists()]
    page = HEAD + "\n".join(path.read_text(encoding="utf-8") for path in made)
    (DOCS / "evidence-labels.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write docs/evidence-labels.md.")
    parser.add_argument("data", type=Path, help="the folder of real campaigns")
    parser.add_argument("keep", type=Path, help="the folder of finished work")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--seeds", type=int, default=3, help="the number of seeds, %(default)s by default")
    parser.add_argument("--names", nargs="*", default=["known", "unknown"], help="known, unknown; both by default")
    parser.add_argument("--columns", nargs="*", default=[], help="columns of labels, all by default")
    parser.add_argument("--most", type=int, default=JUDGED[-1], help="judgments at most, %(default)s by default")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs of systems, %(default)s by default")
    given = parser.parse_args()
    if set(given.parts) - set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    main(given)
