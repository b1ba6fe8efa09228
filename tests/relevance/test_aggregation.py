"""Votes of simulated and real workers: grades, workers, calibration, and the cases at the edges."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from probeval.data import Scale, Votes, as_votes, read_votes
from probeval.errors import DataError, ModelError, ScaleError
from probeval.relevance.aggregation import METHODS, aggregate_votes
from probeval.relevance.aggregation.baselines import dawid_skene, median_levels, vote_shares
from probeval.relevance.aggregation.curves import answer_curves, cutpoint_shape
from probeval.relevance.aggregation.model import NODES, fit_votes
from probeval.relevance.aggregation.reference import consensus_probabilities
from probeval.relevance.aggregation.votes import VoteArrays
from probeval.relevance.aggregation.workers import Population

MEAN, SD = np.array([-0.2, 0.15, 0.3]), np.array([1.0, 0.4, 0.4])
QUERY_SD, SHAPE = 0.6, np.array([1.0, -1.0])
LEVEL = 0.9


def simulate(seed, *, pairs=2000, queries=20, workers=60, per_pair=5, careless=0.1, gold=0.1):
    """Votes drawn from the model, with what they were drawn from."""
    rng = np.random.default_rng([11, seed])
    query = np.sort(rng.integers(queries, size=pairs))
    effect = rng.normal(0, QUERY_SD, queries)
    relevance = (effect - effect.mean())[query] + rng.normal(size=pairs)
    parameters = rng.normal(MEAN, SD, (workers, 3))
    sign = (rng.random(workers) >= careless).astype(float)
    busy = rng.pareto(1.2, workers) + 0.2
    worker = np.concatenate([rng.choice(workers, per_pair, replace=False, p=busy / busy.sum()) for _ in range(pairs)])
    pair = np.repeat(np.arange(pairs), per_pair)
    shift, spread, slope = parameters[worker].T
    logit = shift[:, None] + np.exp(spread)[:, None] * SHAPE
    logit += (sign[worker] * np.exp(slope) * relevance[pair])[:, None]
    level = (rng.random((len(pair), 1)) < expit(logit)).sum(axis=1)
    view = rng.normal(0, 1.0, queries)
    expert = -0.3 + SHAPE + (1.5 * relevance + view[query])[:, None]
    grade = (rng.random((pairs, 1)) < expit(expert)).sum(axis=1)
    known = np.where(rng.random(pairs) < gold, grade, -1)
    arrays = VoteArrays(pair, worker, level, query, known, 3, workers, queries)
    return arrays, {"relevance": relevance, "parameters": parameters, "sign": sign, "grade": grade}


def table(rows):
    return as_votes(pd.DataFrame(rows, columns=["query", "doc", "worker", "label"]))


def crowd(seed=1, pairs=200, workers=5, slope=2.0):
    """Rows of votes by good workers, and the relevance that they see."""
    rng = np.random.default_rng(seed)
    relevance = rng.normal(size=pairs)
    uniform = rng.random((workers, pairs))
    labels = (uniform[..., None] < expit(SHAPE + slope * relevance[:, None])).sum(axis=-1)
    rows = [(f"q{i % 5}", f"d{i:03}", f"w{j}", int(labels[j, i])) for j in range(workers) for i in range(pairs)]
    return rows, relevance


def calibration_error(stated, right, bins=10):
    at = np.minimum((stated * bins).astype(int), bins - 1)
    return np.abs(np.bincount(at, stated - right, minlength=bins)).sum() / len(stated)


# The parts


def test_scores_are_derivatives_of_log_probabilities():
    parameters = np.array([[0.3, -0.2, 0.5], [-1.0, 0.4, 0.1]])
    shape = cutpoint_shape(np.array([0.2, 0.3, 0.4, 0.1]))
    for sign in (1.0, 0.0, -1.0):
        curves = answer_curves(parameters, shape, NODES[10:30], sign=sign)
        np.testing.assert_allclose(curves.probability.sum(axis=1), 1)
        for p in range(3):
            step = 1e-5 * np.eye(3)[p]
            above, below = (
                answer_curves(parameters + s, shape, NODES[10:30], sign=sign).probability for s in (step, -step)
            )
            numeric = (np.log(above) - np.log(below)) / 2e-5
            np.testing.assert_allclose(curves.score[..., p], numeric, atol=1e-6)


def test_the_consensus_keeps_the_shares_of_the_average_worker():
    population = Population(np.array([0.4, 0.1, 0.5]), SD, np.array([1.0, 0.0, 0.0]))
    sd = np.sqrt(1 + QUERY_SD**2)
    prior = np.exp(-((NODES / sd) ** 2) / 2)
    prior /= prior.sum()
    answers = answer_curves(population.mean[None], SHAPE, NODES).probability[0] @ prior
    found = consensus_probabilities(population, QUERY_SD, prior[None], SHAPE, NODES)[0]
    np.testing.assert_allclose(found, answers, atol=0.01)  # the logistic is nearly normal


# Other methods


def test_majority_and_median_by_hand():
    rows = [("q", "a", w, g) for w, g in zip("vwxyz", (0, 0, 1, 2, 2), strict=True)]
    rows += [("q", "b", "v", 2), ("q", "b", "w", 2), ("q", "c", "v", -2)]
    majority, median = (aggregate_votes(table(rows), method=m).to_frame() for m in ("majority", "median"))
    assert majority["grade"].tolist() == [0, 2, 2]  # the lower on a tie; without votes, the most frequent of all
    assert median["grade"].tolist() == [1, 2, 2]
    assert majority["votes"].tolist() == [5, 2, 0]
    np.testing.assert_allclose(majority[["p0", "p1", "p2"]].iloc[0], [0.4, 0.2, 0.4])


def test_dawid_and_skene_against_a_plain_version():
    arrays, _ = simulate(1, pairs=40, queries=2, workers=6, per_pair=4, gold=0.2)
    found = vote_shares(arrays)
    known = arrays.gold >= 0
    found[known] = np.eye(3)[arrays.gold[known]]
    for _ in range(100):
        tables = np.full((6, 3, 3), 0.01)  # (worker, true level, answer)
        for d, j, y in zip(arrays.pair, arrays.worker, arrays.level, strict=True):
            tables[j, :, y] += found[d]
        tables /= tables.sum(axis=2, keepdims=True)
        new = np.tile(found.mean(axis=0), (len(found), 1))
        for d, j, y in zip(arrays.pair, arrays.worker, arrays.level, strict=True):
            new[d] *= tables[j, :, y]
        new /= new.sum(axis=1, keepdims=True)
        new[known] = np.eye(3)[arrays.gold[known]]
        found = new
    np.testing.assert_allclose(dawid_skene(arrays), found, atol=1e-4)


def test_dawid_and_skene_against_crowd_kit():
    crowdkit = pytest.importorskip("crowdkit.aggregation", reason="crowd-kit is not installed")
    arrays, _ = simulate(2, pairs=300, gold=0.0)
    votes = pd.DataFrame({"task": arrays.pair, "worker": arrays.worker, "label": arrays.level})
    theirs = crowdkit.DawidSkene(n_iter=100).fit_predict_proba(votes)
    same = theirs.to_numpy().argmax(axis=1) == dawid_skene(arrays).argmax(axis=1)
    assert same.mean() > 0.97  # they smooth in another way


def test_the_lower_median_of_shares():
    assert median_levels(np.array([[0.25, 0.25, 0.5], [0.0, 1.0, 0.0]])).tolist() == [1, 1]


# The model on simulated votes


def test_workers_are_recovered():
    arrays, truth = simulate(3)
    fitted = fit_votes(arrays)
    busy = np.bincount(arrays.worker, minlength=arrays.n_workers) >= 100
    attentive = busy & (truth["sign"] > 0)
    workers = fitted.workers
    for p in range(3):
        assert np.corrcoef(workers.parameters[0, attentive, p], truth["parameters"][attentive, p])[0, 1] > 0.8
    assert workers.kinds[1, busy & (truth["sign"] == 0)].min() > 0.9
    assert (workers.kinds[1, attentive] > 0.5).sum() <= 1  # one has a slope three sds below the mean
    # Means of 60 draws, with standard errors of sd / sqrt(60), and the votes' own.
    np.testing.assert_allclose(fitted.population.mean, truth["parameters"].mean(axis=0), atol=0.25)


def test_probabilities_of_the_expert_are_calibrated():
    arrays, truth = simulate(4)
    probability = fit_votes(arrays).probabilities()
    test = arrays.gold < 0
    stated, right = probability.max(axis=1)[test], (probability.argmax(axis=1) == truth["grade"])[test]
    # A calibrated forecast has an expected error of about sqrt(bins / n) / 2 in ten bins; views of queries add to it.
    assert calibration_error(stated, right) < 0.06
    assert abs(stated.mean() - right.mean()) < 0.05


def test_certainty_of_the_consensus_grows_with_votes():
    few, many = (fit_votes(simulate(5, per_pair=n, gold=0.0)[0]).probabilities().max(axis=1).mean() for n in (2, 12))
    assert few + 0.1 < many


@pytest.mark.validation
def test_intervals_and_probabilities_over_many_crowds():
    covered, relevance, errors = [], [], []
    for seed in range(30):
        arrays, truth = simulate(100 + seed)
        fitted = fit_votes(arrays)
        voted = np.bincount(arrays.worker, minlength=arrays.n_workers) > 0
        sd = np.sqrt(np.einsum("jpp->jp", fitted.workers.covariance[0]))
        apart = np.abs(fitted.workers.parameters[0] - truth["parameters"]) / sd
        covered.append((apart < 1.645)[voted & (truth["sign"] > 0)].mean(axis=0))
        mean = fitted.posterior @ NODES
        spread = np.sqrt(fitted.posterior @ NODES**2 - mean**2)
        relevance.append((np.abs(mean - truth["relevance"]) < 1.645 * spread).mean())
        probability, test = fitted.probabilities(), arrays.gold < 0
        right = probability.argmax(axis=1) == truth["grade"]
        errors.append((probability.max(axis=1) - right)[test].mean())
    # 30 crowds of 2,000 pairs; crowds differ by about .01 and .03.
    assert np.mean(relevance) == pytest.approx(LEVEL, abs=3 * 0.01 / np.sqrt(30) + 0.005)
    assert np.mean(errors) == pytest.approx(0.0, abs=3 * 0.03 / np.sqrt(30) + 0.005)
    # About 1,600 workers. Estimated means and sds of the population count as known: intervals are short by up to .05.
    tolerance = 3 * np.sqrt(LEVEL * (1 - LEVEL) / 1600)
    assert np.all(np.mean(covered, axis=0) > LEVEL - 0.05 - tolerance)
    assert np.all(np.mean(covered, axis=0) < LEVEL + tolerance)


# At the edges


def test_one_worker_is_the_consensus():
    rows = [("q", f"d{i:02}", "w", i % 3) for i in range(30)]
    found = aggregate_votes(table(rows))
    assert found.to_frame()["grade"].tolist() == [i % 3 for i in range(30)]
    assert found.workers()["agreement"].tolist() == [1.0]
    assert found.probability.max() < 0.9  # one vote is no certainty


def test_one_vote():
    found = aggregate_votes(table([("q", "d", "w", 1)]))
    assert found.to_frame()["grade"].tolist() == [1]
    assert "1 pair, 1 vote by 1 worker" in found.summary()


@pytest.mark.parametrize("method", METHODS)
def test_all_labels_equal(method):
    rows = [(f"q{i % 2}", f"d{i:02}", f"w{j}", 1) for i in range(30) for j in range(4)]
    found = aggregate_votes(table(rows), scale=Scale.graded(2), method=method)
    assert set(found.to_frame()["grade"]) == {1}
    assert found.probability[:, 1].min() > 0.8
    assert np.all(np.isfinite(found.workers().select_dtypes("number")))


def test_two_identical_workers_count_once():
    rows, _ = crowd()
    twice = [*rows, *((q, d, "copy", g) for q, d, w, g in rows if w == "w0")]
    once, found = aggregate_votes(table(rows)), aggregate_votes(table(twice))
    np.testing.assert_allclose(found.probability, once.probability, atol=1e-6)
    workers = found.workers().set_index("worker")
    assert workers.loc["copy", "slope"] == workers.loc["w0", "slope"]
    assert any("same votes as another" in note for note in found.notes)


def test_a_worker_who_contradicts_everybody_is_reversed_and_helps():
    rows, relevance = crowd()
    rng = np.random.default_rng(5)
    against = (rng.random((len(relevance), 1)) < expit(SHAPE - 2 * relevance[:, None])).sum(axis=1)
    rows += [(f"q{i % 5}", f"d{i:03}", "against", int(g)) for i, g in enumerate(against)]
    found = aggregate_votes(table(rows))
    worker = found.workers().set_index("worker").loc["against"]
    assert worker["p_reversed"] > 0.99
    assert worker["slope_lower"] < worker["slope"] < worker["slope_upper"] < 0
    assert found.workers()["p_reversed"].sum() == pytest.approx(worker["p_reversed"], abs=0.01)


def test_a_pair_with_only_broken_links_has_the_prior_of_its_query_and_no_place_in_qrels():
    rows, _ = crowd()
    found = aggregate_votes(table([*rows, ("q0", "broken", "w0", -2), ("q0", "broken", "w1", -2)]))
    row = found.to_frame().set_index("doc").loc["broken"]
    assert row["votes"] == 0
    assert 0.1 < row["p1"] < 0.9
    assert found.votes.no_grade == 2
    assert len(found.to_judgments()) == len(found.grade) - 1


def test_binary_and_fine_scales():
    rows, relevance = crowd()
    binary = aggregate_votes(table([(q, d, w, int(g > 0)) for q, d, w, g in rows]))
    assert str(binary.scale) == "binary"
    rng = np.random.default_rng(1)
    fine = aggregate_votes(table([(q, d, w, int(30 * g + rng.integers(30))) for q, d, w, g in rows]))
    assert str(fine.scale) == "fine"
    assert fine.probability.shape == (200, 10)
    grade = fine.to_frame().sort_values("doc")["grade"]
    assert np.corrcoef(grade, relevance)[0, 1] > 0.7


def test_an_assessor_as_the_reference():
    rows, _ = crowd()
    found = aggregate_votes(table(rows), reference="w3")
    assert found.reference == "w3"
    assert "w3" not in set(found.workers()["worker"])
    mine = {d: g for _, d, w, g in rows if w == "w3"}
    frame = found.to_frame()
    assert frame["grade"].tolist() == [mine[d] for d in frame["doc"]]
    some = [row for row in rows if row[2] != "w3" or row[1] < "d050"]
    told = aggregate_votes(table(some), reference="w3").to_frame()
    assert 0.4 < told.loc[told["gold"].isna(), ["p0", "p1", "p2"]].max(axis=1).mean() < 0.95


def test_gold_is_certain_and_the_consensus_ignores_it():
    rows, _ = crowd()
    votes = table(rows)
    gold = as_votes(votes, {"q0": {"d000": 2, "d005": 0}})
    for method in METHODS:
        frame = aggregate_votes(gold, method=method).to_frame().set_index("doc")
        assert frame.loc["d000", ["grade", "p2", "gold"]].tolist() == [2, 1, 2]
    one, other = aggregate_votes(votes), aggregate_votes(gold, reference="consensus")
    np.testing.assert_array_equal(one.probability, other.probability)
    relevance = aggregate_votes(gold).relevance()
    assert int(relevance.certain.sum()) == 2


def test_wrong_names_and_no_votes_are_refused():
    rows, _ = crowd(pairs=10)
    with pytest.raises(ModelError, match=r"No method 'mode'.*Did you mean 'model'"):
        aggregate_votes(table(rows), method="mode")
    with pytest.raises(DataError, match=r"No assessor 'w9' among the votes"):
        aggregate_votes(table(rows), reference="w9")
    with pytest.raises(DataError, match="no pair has a gold grade"):
        aggregate_votes(table(rows), reference="gold")
    with pytest.raises(DataError, match="there are no votes"):
        aggregate_votes(table([("q", "d", "w", -2)]))
    with pytest.raises(ModelError, match="between 0 and 1"):
        aggregate_votes(table(rows), level=1.0)
    with pytest.raises(ScaleError, match="not on the scale binary"):
        aggregate_votes(table(rows), scale=Scale.binary())


# Real votes


def real(data) -> Votes:
    path = data / "crowd-trec-rf10" / "trec-rf10-data.txt.gz"
    if not path.exists():
        pytest.skip("the folder of real campaigns has no crowd-trec-rf10")
    return read_votes(path)


def held_out(votes, seed):
    """The votes with a random tenth of the gold grades, and the other gold grades."""
    order = np.random.default_rng(seed).permutation(len(votes.gold))
    n = round(len(order) / 10)
    return replace(votes, gold=votes.gold.take(order[:n])), votes.gold.take(order[n:])


def accuracies(found, gold):
    """Accuracy on three levels and on two, and the calibration error on three."""
    probability, truth = found.probability[gold.pair], gold.grade.astype(int)
    right = probability.argmax(axis=1) == truth
    right2 = (probability[:, 1:].sum(axis=1) > 0.5) == (truth > 0)
    return right.mean(), right2.mean(), calibration_error(probability.max(axis=1), right)


@pytest.mark.slow
def test_grades_of_experts_from_a_real_crowd(data):
    known, gold = held_out(real(data), seed=0)
    model, other = (accuracies(aggregate_votes(known, method=m), gold) for m in ("model", "dawid-skene"))
    assert model[0] > max(0.53, other[0])
    assert model[1] > max(0.70, other[1])
    assert model[2] < 0.05


@pytest.mark.validation
def test_grades_of_experts_from_a_real_crowd_over_ten_splits(data):
    votes = real(data)
    rows = []
    for seed in range(10):
        known, gold = held_out(votes, seed)
        rows.append([accuracies(aggregate_votes(known, method=m), gold) for m in ("model", "dawid-skene")])
    model, other = np.moveaxis(np.array(rows), 1, 0)
    assert model[:, 0].mean() == pytest.approx(0.596, abs=0.01)
    assert model[:, 1].mean() == pytest.approx(0.723, abs=0.01)
    assert model[:, 2].mean() < 0.04
    assert np.all(model[:, :2] > other[:, :2])  # on every split
