"""Campaigns drawn from the model with answers: the truth behind them, and fits to the answers alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import expit

from probeval.arrays import Floats
from probeval.data import Collection, Judgments, Magnitudes, PairAnswers, Scale, as_answers, as_magnitudes
from probeval.data.pool import QueryBlock
from probeval.metrics import measure, parse
from probeval.relevance import SyntheticCampaign, load_card
from probeval.relevance.answers.priors import relevance_before
from probeval.relevance.answers.questions import NOISE, SLOPE, STEEP
from probeval.relevance.answers.verdicts import AnswersUsed, answers_used
from probeval.relevance.effects.cutpoints import cutpoints
from probeval.relevance.inference.blocks import Layout
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.observers.levels import Stacks
from probeval.scores.evaluate import evaluate

SCALE = Scale.graded(2)
DEPTH = 5
LEVEL = 0.9
FIRM = ("ann", "bob")
RANDOM = "random"


def hierarchical() -> Hierarchical:
    """The model of texts."""
    model = load_card("text-hierarchical").model
    assert isinstance(model, Hierarchical)
    return model


@dataclass(frozen=True, eq=False)
class Truth:
    """A campaign without judgments, the relevance of its pairs and their grades."""

    collection: Collection
    relevance: Floats
    judgments: Judgments


def draw_truth(rng: np.random.Generator, *, queries: int = 20, systems: int = 5, docs: int = 8) -> Truth:
    """Draw a campaign: variances, parameters, relevance and grades from the prior of the card."""
    model = hierarchical()
    runs = SyntheticCampaign(
        systems=systems, queries=queries, depth=DEPTH, docs=docs, prior=model.prior, scale=SCALE
    ).draw(rng)
    collection = replace(runs, judgments=None)
    design = model.unlabelled(collection.problem(depth=DEPTH, scale=SCALE))
    sds = {e.name: float(np.exp(rng.normal(e.log_sd.mean, e.log_sd.sd))) for e in design.effects}
    prior, layout = relevance_before(Stacks(design), None, sds), Layout.of(design)
    g = prior.mean + np.linalg.solve(np.linalg.cholesky(prior.precision).T, rng.normal(size=layout.size))
    relevance = design.campaign_rows(np.arange(len(design.pool))) @ g[layout.columns]
    for query in range(len(design.pool.queries)):
        pairs = design.pool.pairs_of(query)
        relevance[pairs] += prior.root_times(
            QueryBlock(slice(query, query + 1), pairs), rng.normal(size=(pairs.stop - pairs.start, 1))
        )[:, 0]
    scales = sds["cutpoint_scale"] * rng.normal(size=(1, len(design.pool.queries)))
    cuts = cutpoints(g[layout["first_cut"]], np.abs(g[layout["gaps"]])[None], scales)[0, design.pool.query]
    level = (relevance[:, None] + cuts + rng.logistic(size=(len(relevance), 1)) > 0).sum(axis=1)
    grades = Judgments.coded(design.pool, np.arange(len(design.pool)), SCALE.values[SCALE.levels[level]])
    return Truth(collection, relevance, grades)


def draw_choices(rng: np.random.Generator, truth: Truth, slopes: dict[str, float], n: int) -> PairAnswers:
    """Draw ``n`` choices of each assessor, of pairs at random; a slope of 0 is an answer at random."""
    pool, rows = truth.collection.runs.pool, []
    for name, slope in slopes.items():
        side = 0.3 * rng.normal()
        for _ in range(n):
            pairs = pool.pairs_of(int(rng.integers(len(pool.queries))))
            a, b = rng.choice(np.arange(pairs.start, pairs.stop), 2, replace=False)
            left = rng.random() < expit(slope * (truth.relevance[a] - truth.relevance[b]) + side)
            rows.append((*pool.label(a), pool.label(b)[1], "left" if left else "right", name))
    return as_answers(pd.DataFrame(rows, columns=["query", "left", "right", "choice", "assessor"]))


def draw_numbers(
    rng: np.random.Generator, truth: Truth, slopes: dict[str, float], noise: dict[str, float], n: int
) -> Magnitudes:
    """Draw ``n`` magnitudes of each assessor, in units of eight documents of a query."""
    pool, rows = truth.collection.runs.pool, []
    for name, slope in slopes.items():
        left = n
        while left > 0:
            pairs = pool.pairs_of(int(rng.integers(len(pool.queries))))
            size = min(8, pairs.stop - pairs.start, left)
            level = rng.normal(3, 1)
            for pair in rng.choice(np.arange(pairs.start, pairs.stop), size, replace=False):
                log = level + slope * truth.relevance[pair] + noise[name] * rng.normal()
                rows.append((*pool.label(pair), float(np.exp(log)), str(left), name))
            left -= size
    return as_magnitudes(pd.DataFrame(rows, columns=["query", "doc", "number", "unit", "assessor"]))


@dataclass(frozen=True, eq=False)
class Covered:
    """The shares of pairs and systems whose interval has the truth, and the assessors."""

    relevance: float
    scores: float
    assessors: AnswersUsed


def cover(seed: int, what: str, *, n: int = 200) -> Covered:
    """Draw a campaign, answers of two assessors and of one who answers at random, and fit the model to these alone.

    ``what`` is ``preferences``, ``magnitudes``, or ``mix``: half of each.
    """
    rng = np.random.default_rng([seed, 7])
    truth = draw_truth(rng)
    many = n // 2 if what == "mix" else n
    answers = magnitudes = None
    if what != "magnitudes":
        slopes = {name: float(np.exp(rng.normal(SLOPE.mean, SLOPE.sd))) for name in FIRM}
        answers = draw_choices(rng, truth, {**slopes, RANDOM: 0.0}, many)
    if what != "preferences":
        steep = {name: float(np.exp(rng.normal(STEEP.mean, STEEP.sd))) for name in FIRM}
        noise = {name: float(np.exp(rng.normal(NOISE.mean, NOISE.sd))) for name in (*FIRM, RANDOM)}
        magnitudes = draw_numbers(rng, truth, {**steep, RANDOM: 0.0}, noise, many)
    collection = replace(truth.collection, answers=answers, magnitudes=magnitudes)
    model = hierarchical()
    problem = collection.problem(depth=DEPTH, scale=SCALE)
    posterior = model.infer(problem)
    drawn = posterior.draw(400, np.random.default_rng(seed)).whole()[0]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    metric, runs = parse(f"DCG@{DEPTH}"), collection.runs.top(DEPTH)
    relevance = model.distribution(problem, posterior, np.random.default_rng(seed))
    scores = evaluate(runs, relevance, metric, rng=np.random.default_rng(seed)).at(LEVEL).to_frame()
    true = measure(runs, truth.judgments, metric, scale=SCALE).to_frame().set_index("system")["mean"]
    within = true[scores["system"]].between(scores["lower"].to_numpy(), scores["upper"].to_numpy())
    return Covered(
        float(np.mean((low <= truth.relevance) & (truth.relevance <= high))),
        float(within.mean()),
        answers_used(posterior.design.answers),
    )
