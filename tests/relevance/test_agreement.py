"""Agreement of labels with people: against plain figures, coverage for chosen pairs, the panel, drift and texts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

from probeval.data import Judgments, Pool, Runs, Scale
from probeval.data.observers import ObserverSpec
from probeval.relevance import RelevanceDistribution
from probeval.relevance.observers.agreement import GradePosterior, agreement, disagreements, recalibration
from probeval.relevance.observers.drift import drift
from probeval.relevance.observers.liking import text_biases, text_properties
from probeval.relevance.observers.panel import panel
from probeval.relevance.observers.trust import kin_of
from probeval.reliability import weighted_kappa

SCALE = Scale.graded(2)
LLM = ObserverSpec("llm", scale="graded:2")
N, QUERIES = 600, 30


def made(rng, *, n=N, noise=1.0):
    """Pairs, their true P(grade) given what is seen of them, grades drawn from it, and labels that are seen."""
    pool = Pool.of([f"q{i % QUERIES:02}" for i in range(n)], [f"d{i:04}" for i in range(n)])
    seen = rng.normal(0, 1.5, n)
    labels = np.clip(np.round(1 + 0.6 * seen + noise * rng.normal(0, 0.5, n)), 0, 2)
    centre = seen + 1.2 * (labels - 1)
    at_least = expit(centre[:, None] - np.array([0.3, 1.8]))
    p = np.column_stack([1 - at_least[:, 0], at_least[:, 0] - at_least[:, 1], at_least[:, 1]])
    grades = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return pool, p, grades, labels


def judged(pool, p, grades, rows):
    given = Judgments.coded(pool, rows, grades[rows].astype(float))
    return RelevanceDistribution.of(pool, SCALE, p, judgments=given)


def found_for(pool, p, grades, rows, labels, *, seed=0, observer=LLM):
    posterior = GradePosterior.of(judged(pool, p, grades, rows), np.random.default_rng(seed))
    return agreement(posterior, labels, observer, 2.0, seed=[seed])


def test_with_all_judged_it_is_the_plain_agreement():
    pool, p, grades, labels = made(np.random.default_rng(0))
    found = found_for(pool, p, grades, np.arange(N), labels)
    assert found.kappa == pytest.approx(weighted_kappa(labels, grades))
    assert found.kappa == found.kappa_lower == found.kappa_upper
    assert found.equal == pytest.approx(np.mean(labels == grades))
    assert found.correlation == pytest.approx(np.corrcoef(labels, grades)[0, 1])
    cells = {(c.label, c.grade): c for c in found.confusion}
    assert cells[2, 0].pairs == cells[2, 0].judged == np.sum((labels == 2) & (grades == 0))
    assert sum(c.pairs for c in found.confusion) == pytest.approx(N)


def test_labels_missing_and_numbers():
    pool, p, grades, labels = made(np.random.default_rng(1))
    some = np.where(np.arange(N) % 3 == 0, np.nan, labels)
    found = found_for(pool, p, grades, np.arange(N), some)
    kept = ~np.isnan(some)
    assert (found.pairs, found.kappa) == (kept.sum(), pytest.approx(weighted_kappa(some, grades)))
    numbers = found_for(pool, p, grades, np.arange(N), 7 + 3 * labels, observer=ObserverSpec("score"))
    assert (numbers.kappa, numbers.equal, numbers.confusion) == (None, None, ())
    assert numbers.correlation == pytest.approx(np.corrcoef(labels, grades)[0, 1])
    assert numbers.name == "correlation"
    assert found_for(pool, p, grades, np.arange(29), labels) is None
    assert found_for(pool, p, grades, np.arange(N), np.ones(N)) is None


def test_probability_of_an_agreement():
    pool, p, grades, labels = made(np.random.default_rng(2))
    known = found_for(pool, p, grades, np.arange(N), labels)
    assert (known.probability_of(known.kappa - 0.01), known.probability_of(known.kappa + 0.01)) == (1.0, 0.0)
    some = found_for(pool, p, grades, np.arange(60), labels)
    assert some.probability_of(some.kappa) == pytest.approx(0.5, abs=1e-6)
    assert some.probability_of(some.kappa_lower) == pytest.approx(0.975, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [False, True], ids=["model right", "model wrong about the labels"])
def test_intervals_hold_the_truth_where_doubtful_pairs_are_chosen(wrong):
    """Pairs whose label contradicts the rest are judged first: on these alone the agreement is far too low."""
    inside, off, bare = [], [], []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        pool, p, grades, labels = made(rng)
        stated = p
        if wrong:  # too unsure, and labels believed less than they should be
            at_least = np.cumsum(p[:, ::-1], axis=1)[:, ::-1][:, 1:]
            moved = expit(0.8 * logit(np.clip(at_least, 1e-9, 1 - 1e-9)) - 0.4 * (labels - 1)[:, None])
            stated = np.column_stack([1 - moved[:, 0], moved[:, 0] - moved[:, 1], moved[:, 1]])
        doubt = -np.abs(stated @ [0, 1, 2] - 0.9) + 0.3 * np.abs(labels - stated @ [0, 1, 2])
        rows = np.argsort(-(doubt + 0.3 * rng.random(N)))[:120]
        found = found_for(pool, stated, grades, rows, labels, seed=seed)
        truth = weighted_kappa(labels, grades)
        inside.append(found.kappa_lower <= truth <= found.kappa_upper)
        off.append(found.kappa - truth)
        bare.append(weighted_kappa(labels[rows], grades[rows]) - truth)
    assert np.mean(bare) < -0.15
    assert np.mean(inside) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 80)
    assert abs(np.mean(off)) < abs(np.mean(bare)) / 4


def test_recalibration_finds_what_was_changed():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(4000), rng.normal(size=4000)])
    logits = rng.normal(0, 1.5, 4000)[:, None] + np.array([0.5, -1.0])
    at_least = expit(1.4 * logits + (x @ [0.5, -0.7])[:, None])
    level = (rng.random((4000, 1)) < at_least).sum(axis=1)
    centre, covariance = recalibration(logits, level, x, np.arange(4000) % 200)
    common, apart = centre[1:3], centre[3:].reshape(2, 2)
    assert centre[0] == pytest.approx(np.log(1.4), abs=0.08)
    assert (common[:, None] + apart).mean(axis=1) == pytest.approx([0.5, -0.7], abs=0.1)
    assert np.linalg.eigvalsh(covariance).min() > 0


def test_the_worst_disagreements():
    pool, p, grades, labels = made(np.random.default_rng(3))
    posterior = GradePosterior.of(judged(pool, p, grades, np.arange(100)), np.random.default_rng(0))
    worst = disagreements(posterior, pool, labels, LLM, 2.0, n=5)
    place = {pool.label(i): i for i in range(N)}
    at = [place[one.query, one.doc] for one in worst]
    assert [one.apart for one in worst] == [(labels[i] - grades[i]) / 2 for i in at]
    assert min(abs(one.apart) for one in worst) >= np.sort(np.abs(labels[:100] - grades[:100]))[-5] / 2
    assert disagreements(posterior, pool, np.where(np.arange(N) < 100, np.nan, labels), LLM, 2.0, n=5) == ()


def columns_of(pool, p, grades, values, rows, names=None):
    posterior = GradePosterior.of(judged(pool, p, grades, rows), np.random.default_rng(0))
    names = names or [f"c{i}" for i in range(values.shape[1])]
    return panel(posterior, values, [ObserverSpec(name, family=name[:2], scale="number") for name in names], seed=[0])


def test_copies_are_one_judge_and_independent_ones_are_many():
    rng = np.random.default_rng(0)
    pool, p, grades, _labels = made(rng, n=3000)
    errors = rng.normal(size=(3000, 4))
    apart = grades[:, None] + errors
    every = np.arange(3000)
    assert columns_of(pool, p, grades, apart, every).effective == pytest.approx(4, abs=0.3)
    copies = columns_of(pool, p, grades, np.repeat(apart[:, :1], 4, axis=1), every)
    assert copies.effective == pytest.approx(1, abs=1e-6)
    shared = grades[:, None] + np.sqrt(0.5) * errors[:, :1] + np.sqrt(0.5) * rng.normal(size=(3000, 4))
    found = columns_of(pool, p, grades, shared, every)  # Kish: 4/(1 + 3 x .5)
    assert found.effective == pytest.approx(1.6, abs=0.1)
    assert found.error_correlation == pytest.approx(0.5, abs=0.05)
    turned = columns_of(pool, p, grades, shared * [1, -1, 1, -1], every)
    assert turned.effective == pytest.approx(found.effective)
    assert columns_of(pool, p, grades, apart[:, :1], every) is None


def test_the_panel_is_that_of_residuals_within_grades():
    rng = np.random.default_rng(1)
    pool, p, grades, labels = made(rng)
    values = np.column_stack([labels, grades + rng.normal(size=N), labels + rng.normal(size=N)])
    found = columns_of(pool, p, grades, values, np.arange(N), ["aa1", "bb1", "aa2"])
    left = values.copy()
    for grade in range(3):
        left[grades == grade] -= left[grades == grade].mean(axis=0)
    rho = np.corrcoef(left.T)
    by_name = {(pair.a, pair.b): pair for pair in found.pairs}
    assert by_name["aa1", "aa2"].error_correlation == pytest.approx(rho[0, 2], abs=1e-6)
    assert (by_name["aa1", "aa2"].family, by_name["aa1", "bb1"].family) == ("aa", None)
    assert found.effective == pytest.approx(9 / rho.sum())
    assert [(one.family, one.columns) for one in found.families] == [("aa", 2)]
    some = columns_of(pool, p, grades, values, np.arange(150), ["aa1", "bb1", "aa2"])
    assert some.lower < found.effective < some.upper


def runs_on(pool):
    return Runs.rows(
        ["one"] * len(pool), pool.queries[pool.query], pool.docs[pool.doc], -np.arange(len(pool), dtype=float)
    )


def test_a_repeat_is_stable_and_a_shift_is_drift():
    rng = np.random.default_rng(0)
    pool, p, grades, labels = made(rng)
    posterior = GradePosterior.of(judged(pool, p, grades, np.arange(200)), rng)
    noise = rng.choice([-1, 0, 1], N, p=[0.05, 0.9, 0.05])
    again, higher = np.clip(labels + noise, 0, 2), np.minimum(labels + (rng.random(N) < 0.15), 2)
    stable = drift(posterior, runs_on(pool), again, labels, (LLM, LLM), 2.0, [0])
    assert stable.verdict == "stable"
    assert stable.up + stable.down == pytest.approx(np.mean(again != labels))
    assert stable.kappa == pytest.approx(weighted_kappa(again, labels))
    moved = drift(posterior, runs_on(pool), higher, labels, (LLM, LLM), 2.0, [0])
    assert moved.verdict == "drifted"
    assert moved.shift == pytest.approx(np.mean(higher - labels))
    change = higher - labels
    per_query = np.array([np.sum(change[pool.query == q] - change.mean()) for q in range(QUERIES)])
    error = np.sqrt(QUERIES / (QUERIES - 1) * np.sum(per_query**2)) / N
    assert (moved.upper - moved.lower) / 2 == pytest.approx(2.045 * error, rel=1e-3)  # t with 29 degrees of freedom
    assert drift(posterior, runs_on(pool), labels, np.full(N, np.nan), (LLM, LLM), 2.0, [0]) is None
    few = replace(posterior, out=replace(posterior.out, pairs=posterior.out.pairs[:0]))
    assert few.judged == 0


def test_who_follows_the_length_of_texts():
    rng = np.random.default_rng(2)
    pool, p, grades, _labels = made(rng, n=1500)
    length = rng.normal(6, 1, 1500)
    long = grades + 0.6 * (length - 6) + 0.5 * rng.normal(size=1500)
    fair = grades + 0.5 * rng.normal(size=1500)
    posterior = GradePosterior.of(judged(pool, p, grades, np.arange(300)), rng)
    found = text_biases(posterior, np.column_stack([long, fair]), ("long", "fair"), {"length": length}, [0])
    assert [(one.source, one.verdict) for one in found] == [("long", "more"), ("fair", "undecided")]
    truth = np.corrcoef(long, length)[0, 1] - np.corrcoef(grades, length)[0, 1]
    assert found[0].lower < truth < found[0].upper
    assert "follows the length of the text more than people do" in found[0].sentence


def test_properties_of_texts():
    pool = Pool.of(["q1", "q1", "q2"], ["a", "b", "a"])
    found = text_properties(pool, {"a": "Two words"}, {"q1": "two, three"})
    assert found["length"].tolist()[0] == 1.0
    assert np.isnan(found["length"][1])
    assert found["overlap"][0] == 0.5
    assert np.isnan(found["overlap"][2])  # no query text
    assert set(text_properties(pool, {"a": "x"}, None)) == {"length"}


def test_kin_is_found_by_words_of_names_and_teams():
    runs = Runs.rows(["bm25", "x--monot5-3b", "monot5x"], ["q"] * 3, ["d"] * 3, [1.0] * 3)
    assert kin_of(ObserverSpec("monot5_base"), runs) == ("x--monot5-3b",)
    assert kin_of(ObserverSpec("gpt"), runs) == ()
    assert kin_of(ObserverSpec("gpt"), runs.with_teams({"bm25": "team GPT"})) == ("bm25",)
    assert kin_of(ObserverSpec("bm25"), runs.select(["bm25"])) == ()  # all systems are no contrast
