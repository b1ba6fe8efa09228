"""Write docs/evidence-reuse.md: `python examples/reuse_evidence.py DATA KEEP [PART...]`.

Models, trajectories and finished cells are kept in the folder KEEP, so that a broken run resumes where it stopped; it
can be the folder of `judging_evidence.py`, whose models are used. Parts: `ranks`, `later`, `newcomers` and `teams`; all
when none is named. The page has the cells that are finished; of a part without any, its section stays as it is.
"""

import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import CAMPAIGNS, DOCS, Targets, table
from replays import SHARES, Replays
from scipy.special import ndtr

from probeval.data import Judgments, read_campaign
from probeval.metrics import measure, parse
from probeval.relevance.effects import system as quality
from probeval.selection import Judging, judge_later
from probeval.selection.reuse import NEWCOMER, newcomer_interval, team_names
from probeval.simulation import leave_teams_out, restrict
from probeval.streams import stream

PAGE = DOCS / "evidence-reuse.md"
PARTS = ("ranks", "later", "newcomers", "teams")
# The standard deviation of a later system's quality over that of the first systems, and what else was tried: errors of
# the newcomer times 1.33 in ranks as in its interval; its mean moved up by half the spread of the first systems' means.
WIDE = (1.0, 1.5, 2.0)
AFTER = {"1, errors times 1.33": (NEWCOMER, 0.0), "1, moved up": (1.0, 0.5)}
SAME = ("clef-ehealth2014", "clef-ehealth2018-irtask1", "trec-dl2019-passage", "trec-dl2020-passage")
TEAMS_OF, OF_TEAM = 6, 2  # teams that play newcomers in `ranks`, and systems of each
LEFT = 5  # teams of a campaign that play newcomers
REUSED = ("trec-dl2019-passage", "trec-dl2020-passage")
SEEDS, SHARE, METRIC, DEPTH = 3, 0.1, "DCG@10", 10
MORE = (20, 40, 80)  # of a later system's pairs, judged
Z = 1.959964
SLOW = ("trec8-adhoc", "trec-covid-round1", "trec-covid-round2")  # as newcomers
CLASSES = {"only it": (1, 1), "2 to 5 systems": (2, 5), "more": (6, 10**6)}  # by the systems that retrieved a document
# Campaign, measure, depth of the pool, and whether the model is fitted without each team too.
STUDIES = (
    ("trec-dl2019-passage", "DCG@10", 10, True),
    ("trec-dl2020-passage", "DCG@10", 10, True),
    ("clef-ehealth2018-irtask1", "DCG@10", 10, True),
    ("trec8-adhoc", "DCG@10", 10, True),
    ("trec8-adhoc", "DCG@10", 100, False),
    ("trec8-adhoc", "AP", 100, False),
)
TITLES = {
    "## Ranks of later systems": "ranks",
    "## Systems that arrive later": "later",
    "(same-campaign)=": "newcomers",
    "## Every team left out": "teams",
}
LEAD = """# Evidence: reuse

Written by `examples/reuse_evidence.py`, which does the same as `probeval reuse`. The models never saw the campaigns:
they are fitted on all others.

"""
RANKS = f"""## Ranks of later systems

How wide should the prior of a later system's quality be? 24 newer systems on the topics of Deep Learning 2019 and 2020
({METRIC}, a tenth judged by `gain` in batches of ten, {SEEDS} seeds) join alone. *sd*: the standard deviation of the
prior of a later system's quality, over that of the first systems. *covers*: the share of 95% intervals of the rank,
among the first systems, that contain the rank by the full judgments; *width* of these intervals; *rank error*: that of
the expected rank, *signed* with its sign; *P(better)*: its mean against the best of the first systems; *better*: how
often the later system was; *log score*: the mean logarithm of the probability of what was found, over all comparisons
of a later system with first ones, and *against the best*; *covers the score*: by the model's own interval, not widened;
*z*: the root mean square of errors of differences to the first systems, in standard deviations. Two rows change the
result of sd 1 after the fit: the errors of the newcomer widened as in its interval, and its mean moved up by half the
standard deviation of the first systems' means.

{quality.LATER:g} is chosen: it predicts better than 1 on both campaigns, and over them and the newcomers of the same
campaigns below it has the best mean log score (-.196; 1 has -.205, 2 has -.207). With 1 the newcomers of 2019 are drawn
towards the first systems. 2 suits them better still, but neither those of 2020 nor newcomers of the same campaign; a
mean that is moved up suits 2019 alone.
"""
SAMES = f"""Newcomers of the same campaign: systems of {TEAMS_OF} teams, drawn at random, join without their team, a
tenth judged at random. A wider prior does not help them.
"""
LATER = f"""## Systems that arrive later

24 newer systems on the topics of Deep Learning 2019 and 2020, in whose pools they had no part; {METRIC}. A tenth of the
first campaign's pool is judged by `gain` ({SEEDS} seeds); then each later system joins alone. Its score by the full
judgments, with unjudged documents as 0, is compared with the 95% interval. *covers*: the share of systems whose
interval contains it; *or the bounds*: contains some score that its unjudged documents allow; *z*: the error in standard
deviations, mean and spread over systems; *error*, *classical*: the mean size of the error of the expected score, and of
the classical score with the same judgments.
"""
CAUSE = """### The cause of the errors

The expected scores of a cell's later systems are too low together. The next table splits their mean error by how many
systems retrieved a document, the later one included. *z of first systems* is that of the mean score of the first
systems in the same cell. Errors are the truth less the expected score. Documents that only the newcomer
retrieved add little to it (unjudged ones are 0 in the truth); most of it is in documents that many of the first systems
retrieved too. Part of it is the error of the campaign's level, which the first systems
share. The rest is consistent with shrinkage: later systems are better than most of the first, and the model expects an
average system until judgments show otherwise.
"""
VARIANTS = """The same with other orders and arrivals: the first campaign judged at random instead of by `gain`, and
the later systems joining together. *by the model's own interval*: not widened. The intervals of newcomers are widened
by {wider:g}. That is the root mean square of the level's z at {share:.0%} judged by `gain` on the campaigns other than
these{found}: the model is too sure of the level, and a newcomer shares this error. It
was taken after the shortfall without it was seen on these cells, but not from them. Newcomers of the same campaign
([below](#same-campaign)) need 1.2 on average,
from .8 to 2.7 by campaign. With the wider prior of their quality, the later systems here would hardly need it.
"""
NEEDED = """### Judgments needed

*needed*: the judgments that would make a later system's interval as narrow as those of the first systems, median over
later systems and range. They are then really judged, with the grades of the full judgments (0 where there is none).
*promised* and *found*: the mean half-width of the intervals expected and obtained; *covers*: the share of intervals
that contain the score by the full judgments. *moves others*: the mean size of the change of the first systems' scores
when a later one joins.
"""
MOST = """With more of a later system's pairs judged, in the same order; *lowest cell* is the lowest share of a campaign
and seed:
"""
NEWCOMERS = f"""(same-campaign)=
### Newcomers of the same campaign

Are newcomers harder to predict than the first systems, or only those that are years newer? In each campaign up to
{LEFT} teams, drawn at random, play the newcomer (systems, where there are no teams): their runs are taken out, a
tenth of the pool of the others is judged at random, and each system of the team joins alone. *first systems* are the
others in the same fits. Over all campaigns the intervals of newcomers, not widened here, fail in 7% of cases and
those of the first systems in 4%; newcomers better than half of these are underestimated, as the later systems
above. With two teams (TAR), the
first systems are one team, and newcomers are not predicted well.
"""
TEAMS = """## Every team left out

The judgments that only one team contributed to the pool of the stated depth are taken away, and its systems are
evaluated as if they had come later; without teams, system by system. *accuracy* is
[reuse accuracy](theory/judging.md#reuse-study): the share of comparisons between a left-out system and those of other
teams that keep their order. Changes are mean sizes; *largest* is the largest of a system. In the last table changes
have their sign.
"""


class Reuse:
    """Cells of results, each made once."""

    def __init__(self, data: Path, keep: Path) -> None:
        self.work = Replays(data, keep)

    def kept(self, name, make):
        """Return what ``make`` made, now or in an earlier run; None if it is not made and may not be."""
        return None if make is None and name not in self.work.kept else self.work.kept(name, make)

    def first(self, name, order, seed):
        """Return a campaign with a tenth of its pool judged in an order."""
        held = self.work.held(name)
        end, kept = {"late_batch": 1, "until": SHARE, "checkpoints": (0.0, SHARE)}, f"tenth-{name}-{order}-{seed}"
        judged = self.work.replay(kept, name, order, "DCG", seed=seed, **end).order
        return held, held.after(np.array(judged[: int(np.ceil(SHARE * len(held.pool)))]))

    def ranks(self, name, seed):
        """Return one row per later system and width of its prior."""
        held, part = self.first(name, "gain", seed)
        later = read_campaign(self.work.data / f"{name}-later")
        runs = part.runs.top(DEPTH)
        full = measure(runs.joined(later.runs.top(DEPTH)), later.judgments, METRIC, scale=held.scale, depth=DEPTH)
        truth = dict(zip(full.systems, full.values.sum(axis=1) / len(runs.queries), strict=True))
        rows = []
        for system in later.runs.systems:
            joined = replace(part, runs=runs.joined(later.runs.select((system,)).top(DEPTH)))
            rows += self._at_all_widths(name, joined, system, held.scale, truth, seed, AFTER)
        return rows

    def same(self, name):
        """Return such rows for systems of the campaign that join without their team."""
        held = self.work.held(name)
        runs = held.collection.runs.top(DEPTH)
        truth = dict(zip(runs.systems, held.truth(parse(METRIC)).mean(axis=1), strict=True))
        teams = np.array(team_names(runs), dtype=object)
        rows = []
        for team in stream(0, name).permutation(np.array(list(dict.fromkeys(teams)), dtype=object))[:TEAMS_OF]:
            others = [s for s, t in zip(runs.systems, teams, strict=True) if t != team]
            pool = runs.select(others).pool
            known = held.collection.judgments.on(pool)
            some = stream(0, name, str(team)).permutation(len(known))[: int(np.ceil(SHARE * len(pool)))]
            for system in [s for s, t in zip(runs.systems, teams, strict=True) if t == team][:OF_TEAM]:
                joined = replace(
                    held.collection, runs=runs.select([*others, system]), judgments=known.take(np.sort(some))
                )
                rows += self._at_all_widths(name, joined, system, held.scale, truth, 0, {})
        return rows

    def _at_all_widths(self, name, joined, system, scale, truth, seed, after):
        """Return the figures of a newcomer, which is the last of the systems, with each prior of its quality."""
        rows, chosen = [], quality.LATER
        for wide in WIDE:
            quality.LATER = wide
            model = replace(self.work.model(name, "hierarchical"), later=(system,))
            scores = Judging.of(joined, model, METRIC, scale=scale, depth=DEPTH, seed=seed).begin().scores
            true = np.array([truth[s] for s in scores.systems])
            variants = {f"{wide:g}": (1.0, 0.0), **(after if wide == 1 else {})}
            rows += [
                {"campaign": name, "seed": seed, "system": system, "sd": sd, **rank_figures(scores, true, *change)}
                for sd, change in variants.items()
            ]
        quality.LATER = chosen
        return rows

    def later(self, name, order, seed, *, together=False, judge=()):
        """Return one row per later system; after so many of the pairs that it needs are judged, or all ("needed")."""
        held, part = self.first(name, order, seed)
        later = read_campaign(self.work.data / f"{name}-later")
        runs, model = part.runs.top(DEPTH), self.work.model(name, "hierarchical")
        alone = Judging.of(part, model, METRIC, scale=held.scale, depth=DEPTH, seed=seed).begin().scores
        z_first = _z(alone.mean.mean(), held.truth(parse(METRIC)).mean(), np.sqrt(alone.covariance.mean()))
        groups = [later.runs.systems] if together else [(system,) for system in later.runs.systems]
        rows = []
        for group in groups:
            joined = replace(part, runs=runs.joined(later.runs.select(group).top(DEPTH)))
            now = replace(model, later=tuple(group))
            state = Judging.of(joined, now, METRIC, scale=held.scale, depth=DEPTH, seed=seed).begin()
            full = measure(joined.runs, later.judgments, METRIC, scale=held.scale)
            now = measure(joined.runs, part.judgments, METRIC, scale=held.scale)
            moved = np.abs(state.scores.mean[: len(runs.systems)] - alone.mean).mean()
            for system, found in zip(group, judge_later(state, runs.systems, group), strict=True):
                at = joined.runs.systems.index(system)
                row = {
                    "campaign": name,
                    "seed": seed,
                    "system": system,
                    "true": full.values[at].mean(),
                    "most": full.upper[at].mean(),
                    "classical": now.values[at].sum() / len(runs.queries),
                    "judged": float(now.judged[at]),
                    "mean": found.mean,
                    "sd": found.sd,
                    "lower": found.lower,
                    "upper": found.upper,
                    "needed": found.needed,
                    "target": found.target,
                    "z_first": z_first,
                    "moved": moved,
                    **_errors(state, at, later.judgments, held.scale),
                }
                for n in judge:
                    row |= self._judged(state, found, system, later.judgments, n)
                rows.append(row)
        return rows

    @staticmethod
    def _judged(state, found, system, full, n):
        """Return the interval of a later system once the pairs that it needs, or the first of its pairs, are judged."""
        pairs = found.pairs.head(found.needed if n == "needed" else n)
        grades = full.on(state.judging.pool).grades()
        at = state.judging.pool.locate(list(pairs["query"]), list(pairs["doc"]))
        old = state.judgments.on(state.judging.pool)
        after = state.after(
            Judgments.coded(
                state.judging.pool,
                np.concatenate([old.pair, at]),
                np.concatenate([old.grade, np.maximum(np.nan_to_num(grades[at]), 0.0)]),
            )
        )
        low, high = newcomer_interval(after.scores[system])
        promised = pairs["halfwidth"].iloc[-1] if len(pairs) else (found.upper - found.lower) / 2
        return {f"{n} promised": float(promised), f"{n} lower": low, f"{n} upper": high}

    def newcomers(self, name):
        """Return one row per system of some teams that join a campaign without them."""
        held, model = self.work.held(name), self.work.model(name, "hierarchical")
        runs, metric = held.collection.runs, f"DCG@{held.depth}"
        truth = dict(zip(runs.systems, held.truth(parse(metric)).mean(axis=1), strict=True))
        teams = np.array(team_names(runs), dtype=object)
        names = stream(0, name).permutation(np.array(list(dict.fromkeys(teams)), dtype=object))[:LEFT]
        rows = []
        for team in names:
            others = [s for s, t in zip(runs.systems, teams, strict=True) if t != team]
            pool = runs.select(others).top(held.depth).pool
            known = held.collection.judgments.on(pool)
            some = stream(0, name, str(team)).permutation(len(known))[: int(np.ceil(SHARE * len(pool)))]
            for system in (s for s, t in zip(runs.systems, teams, strict=True) if t == team):
                joined = replace(
                    held.collection, runs=runs.select([*others, system]), judgments=known.take(np.sort(some))
                )
                judging = Judging.of(joined, model, metric, scale=held.scale, depth=held.depth)
                scores = judging.begin().scores
                z = (np.array([truth[s] for s in scores.systems]) - scores.mean) / scores.standard_deviation
                rows.append(
                    {
                        "campaign": name,
                        "team": team,
                        "place": float(np.mean([truth[o] < truth[system] for o in others])),
                        "z": float(z[-1]),
                        "z_first": float(z[:-1].mean()),
                        "covered_first": float((np.abs(z[:-1]) < Z).mean()),
                    }
                )
        return rows

    def study(self, name, metric, depth, by_model):
        """Leave out every team of a campaign."""
        collection = replace(read_campaign(self.work.data / name), labels=None)
        judged = collection.judgments.pool
        queries = set(judged.queries[judged.query[collection.judgments.pair]])
        collection = restrict(collection, [q for q in collection.runs.queries if q in queries])
        scale, measured = collection.scale(), parse(metric)
        state = None
        if by_model:
            model = self.work.model(name, "hierarchical")
            state = Judging.of(collection, model, measured, scale=scale, depth=measured.cutoff or depth).begin()
        return leave_teams_out(
            collection, measured, scale=scale, depth=depth, state=state, model="hierarchical" if by_model else "none"
        )

    def stretch(self):
        """Return the root mean square of the level's z by `gain` on other campaigns, and how many there are."""
        wanted = [(n, s) for n in CAMPAIGNS if n not in REUSED for s in range(SEEDS)]
        made = [(n, s) for n, s in wanted if f"cell-{n}-gain-DCG-{s}" in self.work.kept]
        at = SHARES.index(SHARE)
        z = [self.work.judged_by("gain", n, "DCG", s).points[at].level_z for n, s in made]
        return (float(np.sqrt(np.mean(np.square(z)))) if z else float("nan")), len(z)


def rank_figures(scores, true, stretch: float, moved: float) -> dict:
    """Return the figures of the rank of the last system, its errors stretched and its mean moved."""
    mean, covariance = scores.mean.copy(), scores.covariance.copy()
    mean[-1] += moved * mean[:-1].std()
    covariance[-1] *= stretch
    covariance[:, -1] *= stretch
    draws = stream(0, "ranks").multivariate_normal(mean, covariance, size=1000, method="eigh")
    ranks = 1 + (draws[:, :-1] > draws[:, [-1]]).sum(axis=1)
    low, high = np.quantile(ranks, [0.025, 0.975], method="inverted_cdf")
    rank, expected = (1 + int((values[:-1] > values[-1] + 1e-9).sum()) for values in (true, mean))
    own = np.diag(covariance)
    sd = np.sqrt(np.maximum(own[-1] + own[:-1] - 2 * covariance[-1, :-1], 1e-12))
    p = np.clip(ndtr((mean[-1] - mean[:-1]) / sd), 0.001, 0.999)
    higher, best = true[-1] > true[:-1] + 1e-9, int(np.argmax(mean[:-1]))
    log = np.log(np.where(higher, p, 1 - p))
    return {
        "covers": low <= rank <= high,
        "width": high - low,
        "rank error": abs(expected - rank),
        "signed": expected - rank,
        "P(better)": p[best],
        "better": higher[best],
        "log score": log.mean(),
        "against the best": log[best],
        "square": ((true[-1] - true[:-1] - mean[-1] + mean[:-1]) ** 2 / sd**2).mean(),
        "covers the score": abs(true[-1] - mean[-1]) <= Z * np.sqrt(own[-1]),
    }


def _z(estimated, true, sd):
    return float((true - estimated) / sd)


def _errors(state, system, full, scale):
    """Return the error of a system's score by the number of systems that retrieved its documents."""
    context = state.context
    codes = full.codes_on(state.judging.pool, scale)
    true = np.where(codes >= 0, context.gains[np.maximum(codes, 0)], 0.0)
    error = context.weights[:, system] * (true - context.gain_moments[0])
    counts = np.asarray(context.retrieved.sum(axis=0)).ravel()
    return {name: float(error[(counts >= low) & (counts <= high)].sum()) for name, (low, high) in CLASSES.items()}


def figures(rows: pd.DataFrame, stretch: float = 1.0) -> dict:
    """Return the figures of some later systems, with their intervals stretched."""
    z = (rows["true"] - rows["mean"]) / (rows["sd"] * stretch)
    half = (rows["upper"] - rows["lower"]) / 2 * stretch
    low, high = rows["mean"] - half, rows["mean"] + half
    return {
        "systems": len(rows),
        "covers": float(((low <= rows["true"]) & (rows["true"] <= high)).mean()),
        "or the bounds": float(((low <= rows["most"]) & (rows["true"] <= high)).mean()),
        "z": float(z.mean()),
        "spread of z": float(z.std(ddof=0)),
        "error": float((rows["true"] - rows["mean"]).abs().mean()),
        "half-width": float(half.mean()),
        "classical": float((rows["true"] - rows["classical"]).abs().mean()),
        "z of first systems": float(rows["z_first"].mean()),
    }


def after(rows: pd.DataFrame, n) -> tuple[pd.Series, pd.Series]:
    """Return whether each interval contains the score once pairs are judged, and its half-width."""
    low, high = rows[f"{n} lower"], rows[f"{n} upper"]
    return (low <= rows["true"] + 1e-9) & (rows["true"] <= high + 1e-9), (high - low) / 2


def rank_table(rows: pd.DataFrame, by: str) -> str:
    """Return the mean figures for each campaign and prior."""
    found = []
    for (name, sd), part in rows.groupby(["campaign", "sd"], sort=False):
        mean = part.drop(columns=["campaign", "sd", "system", "seed"]).astype(float).mean()
        square = mean.pop("square")
        found.append({by: name, "sd": sd, "systems": len(part), **mean, "z": float(np.sqrt(square))})
    return table(pd.DataFrame(found))


def ranks_section(reuse: Reuse, go: bool) -> str:
    cells = [
        reuse.kept(f"ranks-{name}-{seed}", (lambda n=name, s=seed: reuse.ranks(n, s)) if go else None)
        for name in REUSED
        for seed in range(SEEDS)
    ]
    same = [reuse.kept(f"same-{name}", (lambda n=name: reuse.same(n)) if go else None) for name in SAME]
    later, others = (pd.DataFrame([row for cell in found if cell for row in cell]) for found in (cells, same))
    if later.empty:
        return ""
    tables = [RANKS, rank_table(later, "later systems of")]
    return "\n".join([*tables, *([SAMES, rank_table(others, "newcomers of")] if len(others) else [])])


def later_section(reuse: Reuse, go: bool) -> str:
    def cells(key, **options):
        order = options.pop("order", "gain")
        found = [
            reuse.kept(
                f"later-{key}-{name}-{seed}",
                (lambda n=name, s=seed: reuse.later(n, order, s, **options)) if go else None,
            )
            for name in REUSED
            for seed in range(SEEDS)
        ]
        return pd.DataFrame([row for cell in found if cell for row in cell])

    main = cells("alone", judge=("needed",))
    if main.empty:
        return ""
    others = {
        "random, each alone": cells("random", order="random"),
        "`gain`, together": cells("together", together=True),
    }
    targets = Targets()
    whole = figures(main)
    targets.least("share of later systems whose 95% interval contains the score", whole["covers"], 0.90)
    targets.least("share that contains it, or a score within the bounds", whole["or the bounds"], 0.90)
    by_cell = [
        {"campaign": name, "seed": str(seed), **figures(part)}
        for (name, seed), part in main.groupby(["campaign", "seed"])
    ]
    cause = [
        {
            "campaign": name,
            "seed": str(seed),
            **{f"{c}": float(part[c].mean()) for c in CLASSES},
            "z of later systems": figures(part)["z"],
            "z of first systems": float(part["z_first"].mean()),
        }
        for (name, seed), part in main.groupby(["campaign", "seed"])
    ]
    factor, n = reuse.stretch()
    variants = [{"first campaign and arrival": "`gain`, each alone", **whole}]
    variants += [{"first campaign and arrival": key, **figures(part)} for key, part in others.items() if len(part)]
    variants += [
        {"first campaign and arrival": f"{key}, by the model's own interval", **figures(part, 1 / NEWCOMER)}
        for key, part in {"`gain`, each alone": main, **others}.items()
        if len(part)
    ]
    needed = []
    for (name, seed), part in main.groupby(["campaign", "seed"]):
        covers, found = after(part, "needed")
        needed.append(
            {
                "campaign": name,
                "seed": str(seed),
                "judged": float(part["judged"].mean()),
                "half-width": float(((part["upper"] - part["lower"]) / 2).mean()),
                "needed": f"{part['needed'].median():.0f} ({part['needed'].min():.0f} to {part['needed'].max():.0f})",
                "promised": float(part["needed promised"].mean()),
                "found": float(found.mean()),
                "covers": float(covers.mean()),
                "moves others": float(part["moved"].mean()),
            }
        )
    ratio = after(main, "needed")[1] / main["needed promised"]
    targets.most("half-width found over that promised, mean", float(ratio.mean()), 1.1)
    more = cells("more", judge=MORE)
    further = [
        {
            "judged": str(n),
            "promised": float(more[f"{n} promised"].mean()),
            "found": float(after(more, n)[1].mean()),
            "covers": float(after(more, n)[0].mean()),
            "lowest cell": float(after(more, n)[0].groupby([more["campaign"], more["seed"]]).mean().min()),
        }
        for n in MORE
        if len(more)
    ]
    return "\n".join(
        [
            LATER,
            str(targets),
            table(pd.DataFrame(by_cell)),
            CAUSE,
            table(pd.DataFrame(cause)),
            VARIANTS.format(wider=NEWCOMER, share=SHARE, found=f" ({factor:.2f}, over {n} trajectories)" if n else ""),
            table(pd.DataFrame(variants)),
            NEEDED,
            table(pd.DataFrame(needed)),
            *([MOST, table(pd.DataFrame(further))] if further else []),
        ]
    )


def newcomers_section(reuse: Reuse, go: bool) -> str:
    found = [
        reuse.kept(f"newcomers-{name}", (lambda n=name: reuse.newcomers(n)) if go else None)
        for name in CAMPAIGNS
        if name not in SLOW
    ]
    rows = pd.DataFrame([row for cell in found if cell for row in cell])
    if rows.empty:
        return ""
    groups = [(name, part) for name, part in rows.groupby("campaign", sort=False)]
    groups += [("all", rows), ("all, better than half of the first", rows[rows["place"] > 0.5])]
    figures = [
        {
            "newcomers of": name,
            "teams": part["team"].nunique() if name in CAMPAIGNS else "",
            "systems": len(part),
            "covers": float((part["z"].abs() < Z).mean()),
            "z": float(part["z"].mean()),
            "root mean square of z": float(np.sqrt((part["z"] ** 2).mean())),
            "first systems: covers": float(part["covered_first"].mean()),
            "first systems: z": float(part["z_first"].mean()),
        }
        for name, part in groups
    ]
    return "\n".join([NEWCOMERS, table(pd.DataFrame(figures))])


def teams_section(reuse: Reuse, go: bool) -> str:
    rows, largest = [], None
    for name, metric, depth, by_model in STUDIES:
        key = f"teams-{name}-{metric.replace('@', '')}-{depth}"
        make = (lambda n=name, m=metric, d=depth, b=by_model: reuse.study(n, m, d, b)) if go else None
        study = reuse.kept(key, make)
        if study is None:
            continue
        for route in study.routes:
            part = [system for system in study.systems if system.route == route.route]
            teams = [team for team in study.teams if team.route == route.route]
            rows.append(
                {
                    "campaign": name,
                    "measure": metric,
                    "depth": str(depth),
                    "teams": len(teams),
                    "systems": len(part),
                    "pairs of one team": f"{sum(team.pairs for team in teams):,} of {study.judged:,}",
                    "route": route.route,
                    "accuracy": route.accuracy,
                    "score change": route.change,
                    "largest": max(abs(system.change) for system in part),
                    "rank change": route.rank_change,
                    "largest rank": max(system.rank_change for system in part),
                    "tau": route.tau,
                    "coverage": route.coverage,
                }
            )
        if (name, by_model) == ("trec8-adhoc", True):
            largest = study
    if not rows:
        return ""
    text = [TEAMS, table(pd.DataFrame(rows))]
    if largest is not None:
        text += [
            "The ten teams of TREC-8 that the classical route changes most, by both routes:\n",
            table(worst_teams(largest)),
        ]
    return "\n".join(text)


def worst_teams(study) -> pd.DataFrame:
    """Return the teams with the largest changes, both routes side by side."""
    teams = study.to_frame()
    classical, model = (teams[teams["route"] == r].set_index("team") for r in ("classical", "model"))
    first = classical["largest_change"].abs().sort_values(ascending=False, kind="stable").head(10).index
    out = classical.loc[first, ["systems", "pairs", "judged"]].reset_index()
    for route, part in (("classical", classical), ("model", model)):
        for column in ("change", "largest_change", "rank_change", "largest_rank_change", "tau", "accuracy"):
            out[f"{route}: {column.replace('_', ' ')}"] = part.loc[first, column].to_numpy()
    out["coverage"] = model.loc[first, "coverage"].to_numpy()
    return out


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit("usage: python examples/reuse_evidence.py DATA KEEP [PART...]")
    data, keep, *parts = sys.argv[1:]
    if set(parts) - set(PARTS):
        sys.exit(f"the parts are {', '.join(PARTS)}")
    warnings.simplefilter("ignore")
    reuse, asked = Reuse(Path(data), Path(keep)), parts or PARTS
    old = dict(zip(TITLES, _sections(PAGE.read_text()), strict=True)) if PAGE.exists() else {}
    made = {
        title: section(reuse, part in asked)
        for (title, part), section in zip(
            TITLES.items(), (ranks_section, later_section, newcomers_section, teams_section), strict=True
        )
    }
    PAGE.write_text(LEAD + "\n".join(filter(None, (text or old.get(title, "") for title, text in made.items()))))


def _sections(page: str) -> list[str]:
    """Return the sections of the page, in the order of their titles; empty for one that is not there."""
    starts = [page.find(title) for title in TITLES]
    ends = [min((s for s in starts if s > at), default=len(page)) for at in starts]
    return [page[at:end].rstrip("\n") + "\n" if at >= 0 else "" for at, end in zip(starts, ends, strict=True)]


if __name__ == "__main__":
    main()
