"""Campaigns drawn from the prior itself: intervals hold what was drawn at their nominal rate."""

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Judgments, Scale
from probeval.relevance import Hierarchical, HierarchicalPrior, SyntheticCampaign
from probeval.relevance.inference.blocks import JudgedPairs
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.newton import find_mode
from probeval.relevance.inference.sampling import LaplaceDraws
from probeval.relevance.normal import Normal
from probeval.scores import evaluate

SCALE = Scale.graded(2)
PRIOR = HierarchicalPrior(
    terms=("log(fSYS)", "fTEAM"),
    coefficients=(Normal(0.7, 0.4), Normal(0.1, 0.15)),
    first_cut=Normal(-0.6, 0.8),
    gaps={},
    gap=Normal(1.4, 0.3),
    log_sds={
        "query": Normal(0.0, 0.35),
        "slope": Normal(-1.1, 0.3),
        "interaction": Normal(0.0, 0.3),
        "team": Normal(-0.3, 0.35),
        "system": Normal(-0.35, 0.35),
        "cutpoint_scale": Normal(-1.0, 0.3),
    },
)
SHARE = 0.3


def drawn_campaign(seed):
    """A campaign whose grades are drawn from the prior, and the log standard deviations that they were drawn with."""
    rng = np.random.default_rng([7, seed])
    collection = SyntheticCampaign(systems=10, queries=15, depth=10, docs=40).draw(rng)
    design = ModelDesign.of(PRIOR, collection.problem(depth=10, scale=SCALE))
    problem = JudgedPairs(design, np.full(len(design.pool), -1, dtype=np.int16))
    log_sd = np.array([rng.normal(e.log_sd.mean, e.log_sd.sd) for e in design.effects])
    # Nothing is judged: a draw around the mode is one of the prior.
    eta, cuts = LaplaceDraws.of([problem], [find_mode(problem, log_sd)], np.ones(1), 1, rng).whole()
    reach = rng.logistic(size=eta.shape[1])[:, None] + eta[0][:, None] + cuts[0, design.pool.query]
    level = (reach > 0).sum(axis=1)
    judgments = Judgments.coded(design.pool, np.arange(len(design.pool)), SCALE.values[level])
    judged = rng.permutation(len(design.pool))[: int(SHARE * len(design.pool))]
    return replace(collection, judgments=judgments), judged, dict(zip(design.names, log_sd, strict=True))


def coverage(replications):
    """The shares of 90% intervals that hold the drawn log standard deviations, by kind, and the true scores."""
    model, z = Hierarchical(PRIOR), 1.6448536269514722
    kinds = {kind: [] for kind in PRIOR.log_sds}
    scores = []
    for seed in range(replications):
        full, judged, drawn = drawn_campaign(seed)
        problem = full.problem(depth=10, scale=SCALE)
        few = problem.with_judgments(full.judgments.take(judged))
        fit = model.infer(few)
        for kind, stated in fit.log_sds.items():
            kinds[kind].append(abs(drawn[kind] - stated.mean) <= z * stated.sd)
        runs = full.runs.top(10)
        truth = evaluate(runs, model.distribution(problem, fit, np.random.default_rng(0)), "DCG@10").mean
        found = evaluate(runs, model.distribution(few, fit, np.random.default_rng(seed)), "DCG@10")
        scores += [
            found[s].interval(0.9)[0] <= t <= found[s].interval(0.9)[1]
            for s, t in zip(runs.systems, truth, strict=True)
        ]
    return {kind: float(np.mean(held)) for kind, held in kinds.items()}, float(np.mean(scores))


@pytest.mark.slow
def test_intervals_of_scores_hold_what_was_drawn():
    variances, scores = coverage(12)
    # 12 campaigns of 10 systems: three standard errors, systems of a campaign hanging together.
    assert 0.7 <= scores <= 0.99
    assert np.mean(list(variances.values())) > 0.6


@pytest.mark.validation
def test_intervals_of_variances_and_scores_cover_at_their_rate():
    variances, scores = coverage(200)
    print(variances, scores)
    assert 0.84 <= scores <= 0.96
    assert 0.84 <= np.mean(list(variances.values())) <= 0.96
