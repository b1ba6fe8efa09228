"""The audit: unbiased whatever the model, limits that hold at every look, few false alarms, and alarms when due."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

from probeval.data import Judgments, Runs, Scale
from probeval.metrics import measure
from probeval.relevance import RelevanceDistribution, SyntheticCampaign
from probeval.selection import AuditReport, Batch, Judging, Pick, audit, foresee
from probeval.selection.audit import FEWEST, _sequences, unbiased
from probeval.selection.batch import draw_probability
from probeval.selection.bets import BETS, Residuals, e_process

HIERARCHICAL = "text-hierarchical"
SCALE = Scale.graded(2)


@dataclass(frozen=True, eq=False)
class Fixed:
    """A model with these probabilities, whatever is judged."""

    probability: np.ndarray

    def predict(self, problem, *, rng=None):
        return RelevanceDistribution.of(problem.pool, problem.scale, self.probability, judgments=problem.grades)

    def check(self):
        return []


def drawn(state, pairs, chances):
    """What is foreseen of a batch of draws."""
    batch = Batch(np.array(pairs), np.array(chances))
    return list(zip(pairs, foresee(state, batch), strict=True))


def true_gains(full, state):
    return state.context.gains[full.judgments.codes_on(state.judging.pool, SCALE)]


@pytest.mark.parametrize("model", ["uniform", HIERARCHICAL])
@pytest.mark.parametrize("metric", ["DCG@5", "P@3"])
def test_the_expectation_over_all_draws_is_the_true_score_of_every_system(full, state, model, metric):
    some = state(8, model=model, metric=metric)
    y, weights = true_gains(full, some), some.context.level_weights
    chance = draw_probability(some.context, some.goal, some.open)
    total = sum(chance[i] * unbiased(drawn(some, [i], [chance[i]]), y, weights)[0] for i in np.flatnonzero(some.open))
    np.testing.assert_allclose(total, measure(full.runs, full.judgments, metric).values.mean(axis=1))
    np.testing.assert_allclose(total, weights @ y)


def test_the_second_draw_of_a_batch_is_unbiased_too(full, state):
    some = state(20, model=HIERARCHICAL)
    y, weights, chance = (
        true_gains(full, some),
        some.context.level_weights,
        draw_probability(some.context, some.goal, some.open),
    )
    total = np.zeros(len(some.judging.runs.systems))
    for i in np.flatnonzero(some.open):
        left = some.open.copy()
        left[i] = False
        then = draw_probability(some.context, some.goal, left)
        for j in np.flatnonzero(left):
            z = unbiased(drawn(some, [i, j], [chance[i], then[j]]), y, weights)
            total += chance[i] * then[j] * z[1]
    np.testing.assert_allclose(total, weights @ y)


def test_draws_from_before_a_later_system_are_unbiased_for_the_others(full, state):
    some = state(8, model=HIERARCHICAL)
    late = Runs.rows(["late"] * 2, [full.runs.queries[0]] * 2, ["new", str(full.runs.pool.docs[0])])
    joined = replace(some.judging.collection, runs=full.runs.joined(late))
    then = Judging.of(joined, some.judging.model, some.judging.metric, scale=SCALE).begin()
    pool, runs = then.judging.pool, some.judging.runs
    labels = [some.judging.pool.label(pair) for pair in range(len(some.judging.pool))]
    at = pool.locate([query for query, _ in labels], [doc for _, doc in labels])
    y, weights = np.zeros(len(pool)), then.context.level_weights
    y[at] = true_gains(full, some)
    chance = draw_probability(some.context, some.goal, some.open)
    total = sum(
        chance[i] * unbiased([(at[i], pick) for _, pick in drawn(some, [i], [chance[i]])], y, weights)[0]
        for i in np.flatnonzero(some.open)
    )
    np.testing.assert_allclose(total[:-1], (some.context.level_weights @ true_gains(full, some)))
    np.testing.assert_allclose(total[:-1], (weights @ y)[: len(runs.systems)])
    assert np.isnan(total[-1])  # it was not there


@pytest.mark.parametrize("goal", ["pair:system-02,system-04", "best"])
def test_draws_from_both_sides_are_unbiased_for_every_system(full, state, goal):
    some = state(8, model=HIERARCHICAL, goal=goal)
    y, weights = true_gains(full, some), some.context.level_weights
    chance = draw_probability(some.context, some.goal, some.open)
    total = sum(chance[i] * unbiased(drawn(some, [i], [chance[i]]), y, weights)[0] for i in np.flatnonzero(some.open))
    np.testing.assert_allclose(total, weights @ y)


def flattered(seed, *, stated):
    """The audit of two systems after 600 draws, with a model that adds to one system's gains; the true difference."""
    rng = np.random.default_rng(seed)
    full = SyntheticCampaign(systems=2, queries=300, depth=10).draw(rng)
    first, second = (np.isin(np.arange(len(full.runs.pool)), full.runs.pairs[s]) for s in (0, 1))
    even = np.full((len(first), 3), 1 / 3)
    even += stated * (first.astype(float) - second)[:, None] * [-1, 0, 1]
    codes = rng.integers(3, size=len(first))
    judging = Judging.of(
        replace(full, judgments=None), Fixed(even), "DCG@10", goal="pair:system-01,system-02", scale=SCALE, explore=1.0
    )
    state = judging.begin()
    batch = state.next(600)
    chosen = list(zip(batch.pairs.tolist(), foresee(state, batch), strict=True))
    after = state.after(Judgments.coded(judging.pool, batch.pairs, SCALE.values[codes[batch.pairs]]))
    levels = after.context.level_weights @ after.context.gains[codes]
    return audit(after, chosen), float(levels[0] - levels[1])


def test_draws_contradict_a_model_that_favours_a_side():
    report, true = flattered(1, stated=0.25)
    found = report.difference
    assert (found.a, found.b) == ("system-01", "system-02")
    assert found.lower <= true <= found.upper < found.model
    assert any("The draws contradict the model, which favours system-01" in line for line in report.sentences())
    report, true = flattered(1, stated=0.0)
    assert report.difference.lower <= true <= report.difference.upper
    assert not any("contradict" in line for line in report.sentences())
    assert any(line.startswith("system-01 minus system-02: ") for line in report.sentences())


def test_an_estimate_by_its_formula(full, state):
    some = state(8, model=HIERARCHICAL)
    y, weights = true_gains(full, some), some.context.level_weights.toarray()
    i = int(np.flatnonzero(some.open)[3])
    f = some.context.gain_moments[0]
    known = some.prediction.relevance.certain
    z = weights[:, known] @ y[known] + weights[:, ~known] @ f[~known] + weights[:, i] * (y[i] - f[i]) / 0.04
    np.testing.assert_allclose(unbiased(drawn(some, [i], [0.04]), y, some.context.level_weights)[0], z)
    np.testing.assert_allclose(foresee(some, Batch(np.array([i]), np.array([0.04])))[0].scores, some.scores.mean)


def test_what_is_foreseen_is_the_mean_and_the_whole_variance_of_the_gain(state):
    some = state(8, model=HIERARCHICAL)
    batch = Judging.choosing(some.judging, "gain", explore=0.5).state(some.judgments).next(6)
    relevance, gains = some.prediction.relevance, some.context.gains
    probability = relevance.probability.mean(axis=0)
    for pair, pick in zip(batch.pairs, foresee(some, batch), strict=True):
        mean = probability[pair] @ gains
        assert pick.predicted == pytest.approx(mean)
        assert pick.variance == pytest.approx(probability[pair] @ gains**2 - mean**2)
        assert (pick.known, pick.fitted) == (8, 8)
    assert [p.probability is not None for p in foresee(some, batch)] == batch.drawn.tolist()


def test_the_level_of_other_measures_is_a_weighted_mean_of_gains(state):
    for metric in ("nDCG@5", "AP", "RR"):
        some = state(8, metric=metric)
        sums = np.asarray(some.context.level_weights.sum(axis=1)) * some.context.gains.max()
        np.testing.assert_allclose(sums, 1.0)


def test_bets_are_fair_by_enumeration():
    f, fitted = np.array([0.2, 0.7, 0.5, 0.9, 0.4]), np.array([0, 0, 3, 4, 4])
    mean = np.zeros((3, len(BETS)))
    for y in itertools.product([0.0, 1.0], repeat=5):
        chance = np.prod(np.where(y, f, 1 - f))
        mean += chance * e_process(Residuals(np.array(y), f, f * (1 - f), np.full(5, 0.5), fitted))
    np.testing.assert_allclose(mean, 1.0)
    assert sum(bet.weight for bet in BETS) == pytest.approx(1)


def test_bets_stay_fair_where_residuals_of_a_fit_depend_on_each_other():
    f = np.full(3, 0.4)
    picks = Residuals(np.ones(3), f, f * (1 - f), np.full(3, 0.3), np.zeros(3, dtype=int))
    alike = 0.4 * e_process(picks)[-1] + 0.6 * e_process(picks._replace(actual=np.zeros(3)))[-1]
    np.testing.assert_allclose(alike, 1.0)


def test_false_alarms_are_fewer_than_five_in_a_hundred():
    rng = np.random.default_rng(5)
    weights, raised, n = np.array([bet.weight for bet in BETS]), 0, 600
    for _ in range(n):
        f = rng.beta(1, 2, 300)
        y = (rng.random(300) < f).astype(float)
        wealth = e_process(Residuals(y, f, f * (1 - f), np.full(300, f.mean()), np.arange(300) // 3)) @ weights
        raised += wealth.max() >= 20
    assert raised / n < 0.05  # Ville's bound; what is found is about .02


def test_limits_hold_at_every_look():
    rng = np.random.default_rng(6)
    missed, n = 0, 400
    for _ in range(n):
        weight = rng.choice([0.5, 1.0, 1.25], 150)
        z = 0.6 + (weight * ((rng.random(150) < 0.3) - 0.3))[:, None]
        looks = (_sequences(z[:t], np.ones(t), 1.0)[1:, 0] for t in range(FEWEST, 151))
        missed += any(not low <= 0.6 <= high for low, high in looks)
    assert missed / n < 0.05 + 2 * np.sqrt(0.05 * 0.95 / n)


def campaigns(case, n=5):
    """Audits of small campaigns judged by gain, with a model that is right, or wrong in one way."""
    for seed in range(n):
        rng = np.random.default_rng(seed)
        blind = replace(SyntheticCampaign(systems=8, queries=25, depth=10).draw(rng), judgments=None)
        popularity = np.bincount(blind.runs.pairs[blind.runs.retrieved])
        logit = 1.5 * (np.log(popularity) - np.log(popularity).mean())
        up = 1 / (1 + np.exp(-np.column_stack([logit, logit - 1])))
        true = np.column_stack([1 - up[:, 0], up[:, 0] - up[:, 1], up[:, 1]])
        codes = (rng.random((len(true), 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1)
        stated = true
        if case == "level":
            stated = 0.8 * true + [0, 0, 0.2]
        elif case == "popularity":
            order = np.argsort(logit, kind="stable")
            stated = np.empty_like(true)
            stated[order] = true[order[::-1]]
        judging = Judging.of(blind, Fixed(stated), "DCG@10", scale=SCALE, explore=0.2, seed=seed)
        state, chosen, judged = judging.begin(), [], []
        while len(judged) < 0.3 * len(true):
            batch = state.next(6)
            chosen += zip(batch.pairs.tolist(), foresee(state, batch), strict=True)
            judged += batch.pairs.tolist()
            state = state.after(Judgments.coded(judging.pool, np.array(judged), SCALE.values[codes[judged]]))
        yield audit(state, chosen), float((state.context.level_weights @ state.context.gains[codes]).mean())


def test_no_alarm_where_the_model_is_right():
    found = [report for report, _ in campaigns("right")]
    assert all(report.alarm is None for report in found)
    assert all(report.sentences()[0].startswith("Audit: level") and len(report.sentences()) == 1 for report in found)


@pytest.mark.parametrize("case", ["level", "popularity"])
def test_an_alarm_where_the_model_is_wrong_and_the_sample_is_not(case):
    found = list(campaigns(case))
    raised = [report for report, _ in found if report.alarm is not None]
    assert len(raised) >= 4
    assert all(report.finding in report.sentences()[1] for report in raised)
    assert "--explore .3" in raised[0].sentences()[2]
    assert sum(report.lower <= true <= report.upper for report, true in found) >= 4
    if case == "level":
        assert all("gains are lower than predicted" in report.finding for report in raised)
        assert np.mean([abs(r.sample - t) for r, t in found]) < np.mean([abs(r.model - t) for r, t in found])


def test_few_draws_tell_nothing(state):
    some = state(8)
    pairs = some.judgments.on(some.judging.pool).pair
    nothing = audit(some, [])
    assert (nothing.draws, nothing.alarm, nothing.evidence) == (0, None, 1.0)
    assert "too few to tell" in nothing.sentences()[0]
    one = audit(some, [(int(pairs[0]), Pick(0.5, 0.2, 0.5, 0, 0, 0.1, 1.0, tuple(some.scores.mean)))])
    assert one.draws == one.judged == 1
    assert one.sample is None
    assert one.to_frame()["lower"].isna().all()
    assert one.difference is None


def test_pairs_without_a_grade_are_passed_over(state):
    some = state(8)
    i = int(np.flatnonzero(some.open)[0])
    assert audit(some, drawn(some, [i], [0.1])).judged == 0


def test_a_report_as_plain_data_and_back():
    report, _ = next(campaigns("right", 1))
    again = AuditReport.from_dict(report.to_dict())
    assert again == report
    earlier = {name: value for name, value in report.to_dict().items() if name != "difference"}
    assert AuditReport.from_dict(earlier).systems == report.systems
    assert again.summary() == report.summary()
    assert "no alarm" in repr(report)


def test_random_order_is_a_sample_of_its_own(full):
    judging = Judging.of(replace(full, judgments=None), Fixed(np.full((36, 3), 1 / 3)), "P@5", policy="random",
                         scale=SCALE)  # fmt: skip
    state, chosen, judged = judging.begin(), [], []
    grades = full.judgments.on(judging.pool).grades()
    while len(batch := state.next(4)):
        chosen += zip(batch.pairs.tolist(), foresee(state, batch), strict=True)
        judged += batch.pairs.tolist()
        state = state.after(Judgments.coded(judging.pool, np.array(judged), grades[judged]))
    report = audit(state, chosen)
    assert report.draws == 36
    # The last estimates are exact, and weigh most.
    assert report.sample == pytest.approx(float(state.scores.mean.mean()), abs=0.01)
