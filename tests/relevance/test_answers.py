"""Answers as observations: two routes to each number, properties, errors, and coverage in simulated campaigns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from probeval.arrays import Floats
from probeval.data import Judgments, PairAnswers, Pool, as_answers, as_magnitudes
from probeval.errors import DataError, ModelError, ProbevalWarning
from probeval.relevance.answers.assessors import Assessors
from probeval.relevance.answers.field import Field, FieldPosterior, Sites, by_query
from probeval.relevance.answers.fit import AnsweredCampaign
from probeval.relevance.answers.observations import AnswerRows, observe
from probeval.relevance.answers.priors import relevance_after
from probeval.relevance.answers.questions import LOG_SLOPE, LOG_WIDTH, NARROW, QUESTIONS, SHIFT
from probeval.relevance.answers.sites import no_sites, updated_sites
from probeval.relevance.answers.verdicts import answers_used
from probeval.relevance.covariances import Covariances
from probeval.relevance.inference.blocks import Layout
from probeval.relevance.inference.measured import MeasuredPrior, SeenStack
from probeval.relevance.online import follow
from tests.relevance.answer_campaigns import (
    DEPTH,
    FIRM,
    RANDOM,
    SCALE,
    Covered,
    cover,
    draw_choices,
    draw_truth,
    hierarchical,
)

DOCS = ["a", "b", "c"]
POOL = Pool.of(["q"] * 3, DOCS)
MEAN = np.array([0.5, -0.3, 0.1])
COVARIANCE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 2.0]])


def small_field(observations: AnswerRows) -> Field:
    """Three documents of one query, of which the mean and the covariance are known; a parameter without effect."""
    stack = SeenStack(np.arange(3)[None], Covariances.whole(COVARIANCE[None].copy()))
    prior = MeasuredPrior(
        1.0, np.zeros(1), np.eye(1), MEAN, np.zeros((3, 0)), np.zeros((0, 1)), (stack,), (np.zeros(1, dtype=int),)
    )
    return Field(prior, np.zeros((3, 1)), POOL, by_query(POOL, observations, np.empty(0, dtype=int)))


def certain(observations: AnswerRows, slope: float, shift: float = 0.0, width: float | None = None) -> Assessors:
    """Assessors who are attentive, with these parameters."""
    typical = Assessors.typical(observations)
    parameters, kinds = typical.parameters.copy(), np.zeros(typical.kinds.shape)
    kinds[0] = 1.0
    parameters[..., LOG_SLOPE], parameters[..., SHIFT] = np.log(slope), shift
    parameters[..., LOG_WIDTH] = NARROW if width is None else np.log(width)
    return Assessors(parameters, kinds)


def propagate(observations: AnswerRows, assessors: Assessors) -> tuple[Field, Sites, FieldPosterior]:
    """Update sites until nothing moves."""
    field, sites = small_field(observations), no_sites(len(observations))
    found = field.posterior(sites)
    for _ in range(80):
        sites, moved = updated_sites(observations, assessors, sites, found, share=0.5)
        found = field.posterior(sites)
    assert moved < 1e-6
    return field, sites, found


def choices(*rows: tuple[str, str, str], assessor: str = "x") -> PairAnswers:
    return as_answers(pd.DataFrame(rows, columns=["left", "right", "choice"]).assign(query="q", assessor=assessor))


def test_sites_of_choices_agree_with_numerical_integration() -> None:
    answers = choices(("a", "b", "left"), ("b", "c", "right"), ("c", "a", "equal"), ("a", "b", "left"))
    observations = observe(POOL, answers, None)
    slope, side, width = 0.8, 0.2, 0.6
    field, sites, found = propagate(observations, certain(observations, slope, side, width))
    axis = np.linspace(-8, 8, 49)
    theta = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = multivariate_normal(MEAN, COVARIANCE).pdf(theta) * (axis[1] - axis[0]) ** 3
    left, right = {"a": 0, "b": 1, "c": 2}, {1: 1, 0: 0, -1: -1}
    for a, b, choice in zip(answers.left, answers.right, answers.choice, strict=True):
        centre = slope * (theta[:, left[a]] - theta[:, left[b]]) + side
        p = {1: expit(centre - width), -1: expit(-centre - width)}
        p[0] = 1 - p[1] - p[-1]
        weight = weight * p[right[int(choice)]]
    mean = weight @ theta / weight.sum()
    covariance = (theta * weight[:, None]).T @ theta / weight.sum() - np.outer(mean, mean)
    np.testing.assert_allclose(found.relevance[0], mean, atol=0.02)
    np.testing.assert_allclose(found.covariance(0), covariance, atol=0.06)
    evidence = field.log_integral(sites, found) + sites.log_size.sum()
    assert evidence == pytest.approx(np.log(weight.sum()), abs=0.01)


def dense(rows: Floats, y: Floats, noise: Floats) -> tuple[Floats, Floats, float]:
    """The posterior of the three documents given y = rows theta + noise, and the log density of y."""
    v = rows @ COVARIANCE @ rows.T + noise
    gain = COVARIANCE @ rows.T @ np.linalg.inv(v)
    log = float(multivariate_normal(rows @ MEAN, v).logpdf(y))
    return MEAN + gain @ (y - rows @ MEAN), COVARIANCE - gain @ rows @ COVARIANCE, log


def test_magnitudes_are_exact_with_a_level_of_their_own() -> None:
    table = pd.DataFrame({"query": "q", "doc": ["a", "b", "c", "a"], "number": [10.0, 4.0, 2.0, 7.0], "assessor": "x"})
    observations = observe(POOL, None, as_magnitudes(table))
    _, _, found = propagate(observations, certain(observations, 0.3, 0.0, 0.5))
    rows = 0.3 * np.eye(3)[[0, 1, 2, 0]]
    unknown = 1e7  # the variance of the level
    mean, covariance, _ = dense(rows, np.log(table["number"].to_numpy()), 0.25 * np.eye(4) + unknown)
    np.testing.assert_allclose(found.relevance[0], mean, atol=1e-5)
    np.testing.assert_allclose(found.covariance(0), covariance, atol=1e-5)


def test_numbers_to_100_and_ratios_are_exact_with_their_evidence() -> None:
    numbers = as_magnitudes(
        pd.DataFrame({"query": "q", "doc": DOCS, "number": [80, 35, 50], "kind": "s100", "assessor": "x"})
    )
    ratio = pd.DataFrame({"query": ["q"], "left": ["a"], "right": ["b"], "left_number": [0], "right_number": [5]})
    observations = observe(POOL, as_answers(ratio.assign(choice="right", assessor="x")), numbers)
    assert len(observations) == 4  # the choice follows from the numbers, and does not count again
    field, sites, found = propagate(observations, certain(observations, 0.3, 0.1, 0.5))
    rows = 0.3 * np.concatenate([[[1, -1, 0]], np.eye(3)])
    y = np.concatenate([[np.log(1 / 6)], (np.array([80, 35, 50]) - 50) / 30]) - 0.1
    mean, covariance, log = dense(rows, y, 0.25 * np.eye(4))
    np.testing.assert_allclose(found.relevance[0], mean, atol=1e-5)
    np.testing.assert_allclose(found.covariance(0), covariance, atol=1e-5)
    assert field.log_integral(sites, found) + sites.log_size.sum() == pytest.approx(log, abs=1e-4)


def test_the_prior_after_answers_is_dense_normal_algebra() -> None:
    rng = np.random.default_rng(3)
    truth = draw_truth(rng, queries=3, systems=3, docs=6)
    model = hierarchical()
    design = model.unlabelled(truth.collection.problem(depth=DEPTH, scale=SCALE))
    answers = draw_choices(rng, truth, {"x": 0.5}, 12)
    observations = observe(design.pool, answers.take(answers.query != design.pool.queries[1]), None)
    campaign = AnsweredCampaign.of(design, np.full(len(design.pool), -1, dtype=np.int16), observations)
    before = campaign.before(None, np.array([e.log_sd.mean for e in campaign.effects]))
    sites = Sites(rng.uniform(0.1, 1, len(observations)), rng.normal(size=len(observations)), np.zeros(0))
    field = campaign.field(before)
    after = relevance_after(field, campaign.rows, design.pool, sites, 1.0)
    columns = Layout.of(design).columns

    def joint(prior: MeasuredPrior) -> tuple[Floats, Floats]:
        rows = campaign.rows + prior.response()
        covariance = rows @ np.linalg.inv(prior.precision)[columns, columns] @ rows.T
        for query in range(len(design.pool.queries)):
            pairs = design.pool.pairs_of(query)
            covariance[pairs, pairs] += prior.covariance(query)
        return prior.offset + rows @ prior.mean[columns], covariance

    mean, covariance = joint(before)
    p = observations.rows.toarray()
    v = p @ covariance @ p.T + np.diag(1 / sites.precision)
    gain = covariance @ p.T @ np.linalg.inv(v)
    found_mean, found_covariance = joint(after)
    np.testing.assert_allclose(found_mean, mean + gain @ (sites.linear / sites.precision - p @ mean), atol=1e-8)
    np.testing.assert_allclose(found_covariance, covariance - gain @ p @ covariance, atol=1e-7)
    # The block route gives the same evidence as the density of the sites' observations.
    alone = field.posterior(sites)
    z, w = sites.linear / sites.precision, sites.precision
    direct = multivariate_normal(p @ mean, v).logpdf(z) + (np.log(2 * np.pi / w) + w * z**2).sum() / 2
    assert field.log_integral(sites, alone) == pytest.approx(float(direct), abs=1e-6)


@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=[q.name for q in QUESTIONS])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_derivatives_of_questions_are_those_of_the_log_likelihood(number: int, sign: float) -> None:
    question, u = QUESTIONS[number], np.array([0.7])
    at = np.array([[-0.4, 0.3, -0.2]])
    for answer in (np.array([1.0]), np.array([-1.0]), np.array([0.0])):
        curve, h = question.curve(answer, u, at, sign), 1e-4
        up, down = (question.curve(answer, u + d, at, sign) for d in (h, -h))
        assert curve.slope == pytest.approx((up.value - down.value) / (2 * h), abs=1e-6)
        assert curve.curve == pytest.approx(-(up.value - 2 * curve.value + down.value) / h**2, abs=1e-4)
        for i in range(3):
            step = np.zeros((1, 3))
            step[0, i] = h
            high, low = (question.curve(answer, u, at + d, sign).value for d in (step, -step))
            assert curve.score[0, i] == pytest.approx(float((high - low)[0]) / (2 * h), abs=1e-5)


def test_contradictory_answers_leave_two_documents_equal_and_no_side() -> None:
    both = choices(("a", "b", "left"), ("b", "a", "left"), ("a", "b", "right"), ("b", "a", "right"))
    observations = observe(POOL, both, None)
    field = small_field(observations)
    _, _, found = propagate(observations, certain(observations, 1.0))
    before = field.posterior(no_sites(len(observations)))
    gap = [one.relevance[0][0] - one.relevance[0][1] for one in (before, found)]
    assert abs(gap[1]) < abs(gap[0])
    assert found.covariance(0)[0, 0] < before.covariance(0)[0, 0]


def test_only_the_chosen_one_needs_a_choice() -> None:
    table = pd.DataFrame({"query": "q", "left": ["a"], "right": ["b"], "choice": ["equal"], "relevant": ["chosen"]})
    with pytest.raises(DataError, match=r"only the chosen one of 'a' and 'b' is relevant, but the answer prefers"):
        observe(POOL, as_answers(table), None)
    table["choice"] = "left"
    observations = observe(POOL, as_answers(table), None)
    assert observations.answer[observations.question == 1].tolist() == [1.0, -1.0]


def test_answers_outside_the_pool_are_counted_and_left_out() -> None:
    with pytest.warns(ProbevalWarning, match=r"1 of 2 answers are about queries or documents outside the pool"):
        observations = observe(POOL, choices(("a", "b", "left"), ("a", "z", "left")), None)
    assert (len(observations), observations.outside, observations.given.tolist()) == (1, 1, [1])


def test_repeated_questions_are_kept_and_equal_only_widens_where_it_is_said() -> None:
    observations = observe(POOL, choices(("a", "b", "left"), ("a", "b", "left")), None)
    assert len(observations) == 2
    assert len(set(observations.identities())) == 2
    assert LOG_WIDTH in observations.questions[0].fixed
    with_tie = observe(POOL, choices(("a", "b", "equal")), None)
    assert LOG_WIDTH not in with_tie.questions[0].fixed


@pytest.fixture(scope="module")
def campaign() -> tuple[PairAnswers, Judgments, object]:
    """A small campaign with the answers of two assessors and of one who answers at random."""
    rng = np.random.default_rng(11)
    truth = draw_truth(rng, queries=6, systems=3, docs=6)
    return draw_choices(rng, truth, {"ann": 0.7, "bob": 0.7, RANDOM: 0.0}, 40), truth.judgments, truth


def test_the_loop_refits_warm_to_what_a_cold_fit_gives(campaign: tuple) -> None:
    answers, judgments, truth = campaign
    online = follow(hierarchical(), truth.collection.problem(depth=DEPTH, scale=SCALE))
    some = judgments.take(np.arange(10))
    first = online.after(some, np.random.default_rng(0), answers=answers.take(slice(0, 100)))
    warm = online.after(some, np.random.default_rng(0), answers=answers, last=first)
    cold = online.after(some, np.random.default_rng(0), answers=answers)
    means = [one.relevance.moments(SCALE.values)[0].mean(axis=0) for one in (warm, cold)]
    np.testing.assert_allclose(*means, atol=0.1)
    assert warm.posterior is not None
    assert first.posterior is not None
    assert warm.posterior.design.answers is not None
    assert first.posterior.design.answers is not None
    assert warm.posterior.design.answers.points is first.posterior.design.answers.points
    assert warm.relevance.certain[:10].all()


def test_sides_change_with_the_answers(campaign: tuple) -> None:
    answers, _, truth = campaign
    swapped = replace(answers, left=answers.right, right=answers.left, choice=-answers.choice)
    online = follow(hierarchical(), truth.collection.problem(depth=DEPTH, scale=SCALE))
    one, other = (online.after(None, np.random.default_rng(0), answers=given) for given in (answers, swapped))
    means = [found.relevance.moments(SCALE.values)[0] for found in (one, other)]
    np.testing.assert_allclose(*means, atol=1e-6)
    sides = [[a.side for a in answers_used(found.answers).assessors] for found in (one, other)]
    np.testing.assert_allclose(sides[0], -np.array(sides[1]), atol=1e-6)


def test_answers_are_not_sampled(campaign: tuple) -> None:
    answers, _, truth = campaign
    with pytest.raises(ModelError, match=r"Answers about documents are fitted by inference='laplace' only"):
        hierarchical().infer(
            replace(truth.collection, answers=answers).problem(depth=DEPTH, scale=SCALE), inference="nuts"
        )


def check(found: list[Covered], low: float, high: float) -> None:
    assert low <= np.mean([one.relevance for one in found]) <= high
    assert low <= np.mean([one.scores for one in found]) <= high


def verdicts(found: list[Covered], names: tuple[str, ...]) -> float:
    """The share of these assessors who are named as careless or reversed."""
    named = [a.is_bad for one in found for a in one.assessors.assessors if a.assessor in names]
    return float(np.mean(named))


def test_intervals_and_verdicts_of_one_campaign() -> None:
    found = [cover(2, "mix")]
    check(found, 0.7, 1.0)  # of 150 pairs, in a campaign with its own variances
    assert verdicts(found, (RANDOM,)) == 1.0
    assert verdicts(found, FIRM) == 0.0


@pytest.mark.validation
@pytest.mark.parametrize("what", ["preferences", "magnitudes", "mix"])
def test_intervals_cover_and_the_random_assessor_is_named(what: str) -> None:
    found = [cover(seed, what) for seed in range(200)]
    off = 2 * np.sqrt(0.9 * 0.1 / 200)  # the systems of a campaign stand or fall together: 200 observations
    check(found, 0.84 - off, 0.96 + off)
    assert verdicts(found, (RANDOM,)) >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 200)
    assert verdicts(found, FIRM) <= 0.05
