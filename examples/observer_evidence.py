"""Write docs/evidence-observers.md: `python examples/observer_evidence.py DATA KEEP [PART...] [--seeds N]`.

Models, predictions and trajectories are kept in the folder KEEP as they are made, so that a broken run resumes where it
stopped. Parts: `nothing`, `judging`, `ndcg`, `unfair`, `people`; all of them when none is named. `--sets` names the
sets of labels of `judging` and `ndcg`; with `--finished` they use the trajectories that there are.
"""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import DOCS, Keep, Targets, count_of, do_all, past_campaigns, short, table

from probeval import evaluate
from probeval.data import Judgments, LabelTable, read_campaign, read_graded_labels
from probeval.metrics import parse
from probeval.relevance import Empirical, fit_hierarchical
from probeval.relevance.models.labels import label_model
from probeval.relevance.observers.trust import examine
from probeval.scores import score_collection
from probeval.simulation import Contender, HeldOut, SimulationProtocol, label_baselines, measure_point, replay
from probeval.simulation.points import tau_and_accuracy
from probeval.streams import Purpose, stream

DL19, DL20 = "trec-dl2019-passage", "trec-dl2020-passage"
TITLES = {DL19: "DL 2019", DL20: "DL 2020"}
SETS = ("gpt4o_umbrela", "llama32_umbrela", "flant5_Thomas", "all")
METRICS = ("DCG@10", "nDCG@10")
UNKNOWN = "my_llm"
CERTAIN = "labels as judgments"
SHARES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
DRAWS = 1000  # of scores, and of truths for the null
PERMUTED = 10  # seeds of permuted columns, and of unfair labellers
TENTH = 0.1  # of the pool is judged when labellers are examined


UNFAIR = f"""
## A labeller that favours a team

Deep Learning 2019, gpt4o_umbrela, a tenth of the pool judged at random, {PERMUTED} seeds. Half of the labels of a
team's documents are raised by one grade, at most to the top. *named*: in how many seeds the trust report gives
P(biased) of at least .95 to the team.

"""
PEOPLE = """
## Several people

Deep Learning 2019, graded again by eight people, two of them for most pairs; none is the reference. The truth is the
scores by the grades of NIST, with which no person's grades are compared: intervals for the consensus of the eight need
not hold them.

"""
PERSONS = """
Each person: the mean grade, the slope on relevance in standard deviations per logit with its interval, the noise of a
single grade, and the share of the pool without a grade.

"""


class Work:
    """Campaigns, models, predictions and trajectories, each made once."""

    def __init__(
        self, data: Path, keep: Path, seeds: int = 5, sets: tuple[str, ...] = SETS, *, finished: bool = False
    ) -> None:
        self.data, self.kept, self.seeds, self.sets, self.finished = data, Keep(keep), seeds, sets, finished

    def campaigns(self):
        return self.kept("campaigns", lambda: {n: read_campaign(self.data / n) for n in (DL19, DL20)})

    def tables(self):
        """Return labels beside grades by file; the columns person1 to person8 are of people."""

        def read():
            found = {}
            for name in ("labels-dl2019-more", "labels-dl2023"):
                labels, grades = read_graded_labels(self.data / f"{name}.tsv.gz")
                people = {source: {"kind": "person"} for source in labels.sources if source.startswith("person")}
                found[name] = (labels.described(people), grades)
            return found

        return self.kept("tables", read)

    def past(self, name):
        """Return all campaigns but one."""
        return past_campaigns(self.data, name)

    def model(self, name):
        """Return the model that saw neither the campaign nor any of its labels."""
        tables = ["labels-dl2023"] + ["labels-dl2019-more"] * (name != DL19)
        labelled = [self.tables()[t] for t in tables]
        return self.kept(f"model-{name}", lambda: fit_hierarchical(self.past(name), depth=10, labelled=labelled))

    def share(self, name):
        """Return the model of pairs without a label, for the baselines."""
        return self.kept(f"empirical-{name}", lambda: Empirical.fit(self.past(name), depth=10))

    def labels(self, name):
        """Return all machine labels of a campaign."""
        own = self.campaigns()[name].labels
        if name != DL19:
            return own
        more = self.tables()["labels-dl2019-more"][0]
        return own.joined([more.take([s for s in more.sources if not s.startswith("person")])])

    def held(self, name, labels):
        """Return the held-out campaign with a set of labels: one column, ``all``, a table, or None."""
        if isinstance(labels, str):
            labels = self.labels(name) if labels == "all" else self.labels(name).take([labels])
        held = self.kept(f"held-{name}", lambda: HeldOut.of(self.campaigns()[name], depth=10))
        return replace(held, collection=replace(held.collection, labels=labels))

    def nothing(self, name, labels, *, kind="hierarchical", label):
        """Return the figures of both measures with nothing judged."""

        def predict():
            held = self.held(name, labels)
            model = self.model(name)
            if kind == "labels":
                model = label_model("labels", held.collection.labels, self.share(name))
            metrics = [parse(metric) for metric in METRICS]
            unjudged = replace(held.collection, judgments=None)
            scored = score_collection(model, unjudged, metrics, depth=10, scale=held.scale, keys=(name,), n=DRAWS)
            points = {}
            for metric, scores in zip(metrics, scored, strict=True):
                truth = held.truth(metric)
                drawn = scores.joint.draws
                if drawn is None:
                    drawn = scores.sample(DRAWS, stream(0, name, Purpose.NULL))
                points[str(metric)] = measure_point(scores, truth.mean(axis=1), draws=drawn, query_truth=truth)
            return points

        return self.kept(f"nothing-{name}-{kind}-{label}", predict)

    def trajectory(self, name, contender, labels, seed, *, metric="DCG@10"):
        """Return one replay: of the model, or of a baseline with its column."""
        made = Contender.parse(contender)
        kind = made.relevance_model.partition(":")[0]
        protocol = SimulationProtocol.of(
            metric, policies=[made], batch=10, checkpoints=SHARES, until=SHARES[-1], stop="confidence=.95", draws=500
        )

        def run():
            held = self.held(name, labels)
            model = self.model(name)
            if kind != "hierarchical":
                model = label_model(made.relevance_model, held.collection.labels, self.share(name))
            return replay(held, model, protocol, policy=made.policy, name=made.model, method=made.method, seed=seed)

        return self.kept(trajectory_name(name, contender, labels, seed, metric), run)

    def has(self, name, contender, labels, seed, *, metric):
        """Whether a replay is finished."""
        return trajectory_name(name, contender, labels, seed, metric) in self.kept


def trajectory_name(name: str, contender: str, labels: str, seed: int, metric: str) -> str:
    return f"trajectory-{name}-{contender.replace(':', '-')}-{metric}-{labels}-{seed}"


def renamed(labels: LabelTable, values=None) -> LabelTable:
    """Return a column under a name that no card has, with other labels if they are given."""
    return LabelTable(labels.pool, (UNKNOWN,), labels.values if values is None else values)


def reversed_labels(labels: LabelTable) -> LabelTable:
    """Return the highest label less each label, under a name that no card has."""
    return renamed(labels, np.nanmax(labels.values) - labels.values)


def permuted(labels: LabelTable, pool, seed: int) -> LabelTable:
    """Return a column with the labels of a pool's pairs permuted."""
    values = labels.on(pool).values
    return LabelTable(pool, labels.sources, values[np.random.default_rng(seed).permutation(len(values))])


def trajectories(work: Work, metric: str) -> dict[tuple[str, str, str], list]:
    """Return the trajectories of a measure by campaign, set of labels and contender; one seed of all after another."""
    found: dict[tuple[str, str, str], list] = {}
    for seed in range(work.seeds):
        for name in TITLES:
            for labels in work.sets:
                baselines = label_baselines(metric, column=None if labels == "all" else labels)
                contenders = ("gain:hierarchical", "random:hierarchical", *baselines)
                if work.finished and not all(work.has(name, c, labels, seed, metric=metric) for c in contenders):
                    continue
                for contender in contenders:
                    made = work.trajectory(name, contender, labels, seed, metric=metric)
                    found.setdefault((name, labels, contender), []).append(made)
    return found


COLUMNS = {
    "tau": "tau",
    "tau_top15": "top 15",
    "confidence": "confidence",
    "accuracy": "accuracy",
    "calibration_p": "p",
    "centred_coverage": "centred",
    "centred_coverage_null05": "5% point",
    "level_z": "level z",
    "mae": "mean error",
}
TAU = {  # with nothing judged, DCG@10, at least
    (DL19, "gpt4o_umbrela"): 0.89,
    (DL20, "gpt4o_umbrela"): 0.92,
    (DL19, "llama32_umbrela"): 0.82,
    (DL20, "llama32_umbrela"): 0.80,
    (DL19, "flant5_Thomas"): 0.82,
    (DL20, "flant5_Thomas"): 0.75,
}
MEAN_ERROR = {"gpt4o_umbrela": 0.05, "llama32_umbrela": 0.09, "flant5_Thomas": 0.09, "all": 0.09}
STOP = {"gpt4o_umbrela": 0.03, "llama32_umbrela": 0.12}  # the share judged at the stop, at most
HEAD = """# Evidence: what labels are worth

Written by `examples/observer_evidence.py`. Deep Learning 2019 and 2020 are held out in turn. The model is fitted to the
other one and to four older text campaigns. It never sees a label of the held-out campaign with its grade: what labels
are worth is learned from the other campaign and from tables of labels without runs. The pool is the top ten of the
systems that are fully judged. [What calibrated means](theory/calibration.md) explains the columns: *p* is the
probability of so large a calibration error for a perfect model, *centred* the share of 95% intervals of scores less
their mean that hold the truth, *5% point* its 5% quantile for a perfect model, *level z* the error of the mean score in
standard deviations. *labels as judgments* takes every label as the grade.

The form of the model was chosen after experiments on both campaigns, so the figures are somewhat better than they would
be on a new one. Where the posterior is wide in a direction that many systems share, the 5% point is low, and being
above it is weak evidence.

"""


def figures(point) -> dict:
    """Return the figures of a point under the names of the page."""
    return {name: getattr(point, field) for field, name in COLUMNS.items()}


def mean_figures(points) -> dict:
    return pd.DataFrame([figures(point) for point in points]).mean().to_dict()


def nothing(work: Work) -> str:
    page = (
        "## Nothing judged\n\nEvery figure is of one prediction; permuted columns are means of ten seeds. Another seed "
        "of the posterior draws moves tau by about .01. The two measures may be apart in either direction.\n"
    )
    targets, rows = Targets(), {metric: [] for metric in METRICS}
    taus: dict[tuple[str, str, str], dict[str, float]] = {}
    for name, title in TITLES.items():
        pool = work.held(name, None).pool
        single = {labels: work.labels(name).take([labels]) for labels in SETS[:-1]}
        made = {("none", "the model"): [work.nothing(name, None, label="none")]}
        for labels in SETS:
            made[labels, "the model"] = [work.nothing(name, labels, label=labels)]
            made[labels, CERTAIN] = [work.nothing(name, labels, kind="labels", label=labels)]
            if labels == "all":
                continue
            column = single[labels]
            made[labels, f"named {UNKNOWN}"] = [work.nothing(name, renamed(column), label=f"{labels}-renamed")]
            turned = reversed_labels(column)
            made[labels, f"reversed, named {UNKNOWN}"] = [work.nothing(name, turned, label=f"{labels}-reversed")]
            made[labels, "permuted"] = [
                work.nothing(name, permuted(column, pool, seed), label=f"{labels}-permuted-{seed}")
                for seed in range(PERMUTED)
            ]
        for (labels, how), points in made.items():
            for metric in METRICS:
                found = mean_figures([p[metric] for p in points])
                if how == CERTAIN:  # nothing is stated of their errors
                    found |= dict.fromkeys(set(found) - {"tau", "top 15", "accuracy", "mean error"}, float("nan"))
                rows[metric].append({"campaign": title, "labels": labels, "as": how} | found)
                taus.setdefault((name, labels, how), {})[metric] = found["tau"]
                if how == "the model" and labels != "none" and metric == METRICS[0]:
                    targets.most(f"mean error, {title}, {labels}", found["mean error"], MEAN_ERROR[labels])
    first, second = METRICS
    for (name, labels), target in TAU.items():
        title, tau = TITLES[name], taus[name, labels, "the model"]
        targets.least(f"tau, {title}, {labels}", tau[first], target)
        targets.most(f"tau, {title}, {labels}: {second} from {first}", abs(tau[second] - tau[first]), 0.02)
        for how, other, within in (
            (f"named {UNKNOWN}", tau, 0.03),
            (f"reversed, named {UNKNOWN}", tau, 0.03),
            ("permuted", taus[name, "none", "the model"], 0.01),
        ):
            against = "no labels" if how == "permuted" else "the labels"
            for metric in METRICS:
                apart = abs(taus[name, labels, how][metric] - other[metric])
                targets.most(f"tau, {metric}, {title}, {labels}, {how}: from {against}", apart, within)
    six, raw = (np.mean([taus[n, s, how][first] for n, s in TAU]) for how in ("the model", CERTAIN))
    targets.least("mean tau of the six", six, raw - 0.01)
    for name, title in TITLES.items():
        best = max(taus[name, labels, "the model"][first] for labels in SETS[:-1])
        targets.least(f"tau, {title}, all columns", taus[name, "all", "the model"][first], best - 0.03)
    page += f"\n{targets}"
    for metric in METRICS:
        page += f"\n### {metric}, nothing judged\n\n" + table(pd.DataFrame(rows[metric]))
    return page


def judging(work: Work) -> str:
    return judged_part(work, "DCG@10")


def ndcg(work: Work) -> str:
    return judged_part(work, "nDCG@10")


def judged_part(work: Work, metric: str) -> str:
    """Return the section of a measure: targets, stops, and figures at all checkpoints."""
    found = trajectories(work, metric)
    page = (
        f"## With judgments, {metric}\n\nIn batches of ten, pairs chosen by `gain` or at random; figures are means "
        "over seeds, and each table says how many. Baselines: `labels` takes labels as judgments, "
        "`calibrated` calibrates them on the judged pairs, `lara` judges the most uncertain label first"
        + (", `ppi` is PPI++ for each system.\n" if metric == METRICS[0] else ".\n")
    )
    targets, detail, stops = Targets(), "", []
    falls, behind, lost, cells = [], [], [], {}
    for name, title in TITLES.items():
        for labels in work.sets:
            mine = {c: runs for (n, s, c), runs in found.items() if (n, s) == (name, labels)}
            if not mine:
                continue
            seeds = len(mine["gain:hierarchical"])
            taus = {c: np.mean([[p.tau for p in run.points] for run in runs], axis=0) for c, runs in mine.items()}
            gain = taus["gain:hierarchical"]
            best = np.max([tau for c, tau in taus.items() if "hierarchical" not in c], axis=0)
            chance = taus["random:hierarchical"]
            falls.append((gain[0] - gain.min(), title, labels, SHARES[int(gain.argmin())]))
            behind.append(((best - gain).max(), title, labels, SHARES[int((best - gain).argmax())]))
            lost.append(
                {
                    "campaign": title,
                    "labels": labels,
                    "seeds": seeds,
                    "below its start, gain": float(falls[-1][0]),
                    "below the best baseline, gain": float(behind[-1][0]),
                    "below its start, random": float(chance[0] - chance.min()),
                }
            )
            rows = []
            for contender in ("gain:hierarchical", "random:hierarchical"):
                order = contender.partition(":")[0]
                for at, share in enumerate(SHARES):
                    points = [run.points[at] for run in mine[contender]]
                    rows.append({"order": order, "judged": short(share)} | mean_figures(points))
                    for seed, point in enumerate(points):  # with nothing judged both orders are the same
                        cells[name, labels, order if at else "", seed, at] = point
                stops += [stop_row(title, labels, run) for run in mine[contender]]
            shown = [
                {"contender": c} | dict(zip(map(short, SHARES), tau.tolist(), strict=True)) for c, tau in taus.items()
            ]
            detail += f"\n### {title}, {labels}, {metric}\n\n{count_of(seeds, 'seed')}.\n\n" + table(pd.DataFrame(rows))
            detail += "\nKendall's tau by the share judged:\n\n" + table(pd.DataFrame(shown))
    stopped = pd.DataFrame(stops)
    for labels, most in STOP.items():
        for title in TITLES.values():
            these = stopped[
                (stopped["labels"] == labels) & (stopped["campaign"] == title) & (stopped["order"] == "gain")
            ]
            if len(these):
                targets.most(f"judged at the stop, {title}, {labels}", float(these["judged"].mean()), most)
                targets.least(f"accuracy at the stop, {title}, {labels}", float(these["accuracy"].mean()), 0.93)
    for what, worst, most in (("below its start", max(falls), 0.02), ("below the best baseline", max(behind), 0.015)):
        value, title, labels, share = worst
        targets.most(f"largest fall of tau {what} (gain; {title}, {labels}, {short(share)} judged)", float(value), most)
    points = list(cells.values())
    targets.least("share of cells with p of at least .01", share_of([p.calibration_p >= 0.01 for p in points]), 0.95)
    targets.least("mean centred coverage", float(np.mean([p.centred_coverage for p in points])), 0.85)
    above = share_of([p.centred_coverage >= p.centred_coverage_null05 for p in points])
    targets.least("share of cells with centred coverage above the 5% point", above, 0.9)
    targets.least("share of cells with a level z within 2.6", share_of([abs(p.level_z) <= 2.6 for p in points]), 0.95)
    page += f"\nA cell is one checkpoint of one seed, {len(points)} in all. {targets}"
    page += "\nThe largest fall of tau at any checkpoint:\n\n" + table(pd.DataFrame(lost))
    page += f"\n### Stops, {metric}\n\nThe first batch with a mean confidence of .95; `-` if there is none.\n\n"
    return page + table(stopped) + detail


def stop_row(title: str, labels: str, run) -> dict:
    """Return where a trajectory stopped, or would at the end."""
    stop = run.end
    return {
        "campaign": title,
        "labels": labels,
        "order": run.policy,
        "seed": run.seed,
        "stopped": "yes" if stop.reached else "-",
        "judged": stop.fraction,
        "accuracy": stop.accuracy,
        "tau": stop.tau,
    }


def share_of(flags: list[bool]) -> float:
    return float(np.mean(flags))


def unfair(work: Work) -> str:
    """Return the section on a labeller that favours one team, and on an honest one."""
    held = work.held(DL19, "gpt4o_umbrela")
    model, runs = work.model(DL19), held.collection.runs.top(10)
    problem = held.collection.problem(depth=10, scale=held.scale)
    design, known = model.unlabelled(problem), problem.grades.codes

    def examined(labels, seed):
        picked = np.random.default_rng(seed).permutation(np.flatnonzero(known >= 0))[: round(TENTH * len(known))]
        given = replace(held.after(picked), labels=labels).problem(depth=10, scale=held.scale)
        rng = stream(seed, DL19, Purpose.TRUST)
        return examine(design, model.prior.observers, given, margin=0.1, rng=rng)[0].biases

    honest = held.collection.labels
    rows = []
    has = {team: np.unique(runs.pairs[[t == team for t in runs.teams]]) for team in dict.fromkeys(runs.teams)}
    has = {team: pairs[pairs >= 0] for team, pairs in has.items()}
    teams = [team for team, pairs in has.items() if len(pairs) >= 0.295 * len(known)]
    for team in (None, *teams):
        found, inside, shifts = [], [], []
        for seed in range(PERMUTED):
            labels, truth = honest, 0.0
            if team is not None:
                at = design.pool.within(honest.pool)[has[team]]
                at = at[at >= 0]
                raised = honest.values.copy()
                raised[at, 0] = np.minimum(raised[at, 0] + (np.random.default_rng(100 + seed).random(len(at)) < 0.5), 3)
                labels, truth = replace(honest, values=raised), float(np.nanmean((raised - honest.values)[at, 0]))
            biases = work.kept(f"unfair-{team}-{seed}", lambda labels=labels, seed=seed: examined(labels, seed))
            found.append(biases)
            mine = [b for b in biases if b.name == team]
            inside += [b.lower <= truth <= b.upper for b in mine]
            shifts += [b.mean for b in mine]
        others = [any(b.verdict == "biased" and b.name != team for b in biases) for biases in found]
        rows.append(
            {
                "favoured": team or "no team",
                "its share of the pool": np.nan if team is None else len(has[team]) / len(known),
                "named": sum(b.verdict == "biased" for biases in found for b in biases if b.name == team),
                "others named": sum(others),
                "mean shift found": float(np.mean(shifts)) if shifts else np.nan,
                "intervals with the truth": sum(inside),
            }
        )
    return UNFAIR + table(pd.DataFrame(rows))


def people(work: Work) -> str:
    """Return the section on eight people, none of whom is the reference."""
    labels, _ = work.tables()["labels-dl2019-more"]
    labels = labels.take([s for s in labels.sources if s.startswith("person")])
    pair, who = np.nonzero(~np.isnan(labels.values))
    votes = Judgments.coded(labels.pool, pair, labels.values[pair, who], assessors=[labels.sources[i] for i in who])
    held = work.held(DL19, None)
    truth = held.truth(parse("DCG@10")).mean(axis=1)
    collection = replace(held.collection, judgments=votes)
    certain = Judgments.coded(votes.pool, np.arange(len(votes.pool)), votes.grades("median"))
    cases = {
        "agreed grades certain": (collection, None),
        "consensus": (collection, "consensus"),
        "medians as certain": (replace(collection, judgments=certain), None),
    }
    rows, trust = [], None
    for case, (given, reference) in cases.items():
        found = evaluate(given, "DCG@10", model=work.model(DL19), scale=held.scale, reference=reference)
        scores = found.scores
        low, high = np.array([scores[s].interval(0.95) for s in scores.systems]).T
        rows.append(
            {
                "grades": case,
                "certain pairs": scores.judged,
                "tau": tau_and_accuracy(scores.mean, truth)[0],
                "mean error": float(np.abs(scores.mean - truth).mean()),
                "mean width": float((high - low).mean()),
                "intervals with the scores by NIST": float(np.mean((low <= truth) & (truth <= high))),
            }
        )
        trust = found.trust().to_frame() if case == "consensus" else trust
    persons = trust[["source", "mean", "slope", "lower", "upper", "noise", "missing"]].sort_values("source")
    return PEOPLE + table(pd.DataFrame(rows)) + PERSONS + table(persons)


PARTS = {"nothing": nothing, "judging": judging, "ndcg": ndcg, "unfair": unfair, "people": people}


def main(asked: argparse.Namespace) -> None:
    work = Work(asked.data, asked.keep, asked.seeds, tuple(asked.sets), finished=asked.finished)

    def write(part):
        (asked.keep / f"{part}.md").write_text(PARTS[part](work), encoding="utf-8")

    do_all([partial(write, part) for part in asked.parts or PARTS])
    made = [asked.keep / f"{part}.md" for part in PARTS if (asked.keep / f"{part}.md").exists()]
    page = HEAD + "\n".join(path.read_text(encoding="utf-8") for path in made)
    (DOCS / "evidence-observers.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write docs/evidence-observers.md.")
    parser.add_argument("data", type=Path, help="the folder of real campaigns")
    parser.add_argument("keep", type=Path, help="the folder of finished work")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--seeds", type=int, default=5, help="the number of seeds, %(default)s by default")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, help="sets of labels, all by default")
    parser.add_argument("--finished", action="store_true", help="use finished trajectories only")
    given = parser.parse_args()
    if set(given.parts) - set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    main(given)
