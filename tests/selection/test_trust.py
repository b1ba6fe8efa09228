"""The trust report: slopes, biases, verdicts, and the ranking without labels."""

import re
from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.data import Judgments, LabelTable
from probeval.errors import DataError, ModelError, SelectionError
from probeval.relevance import synthetic_campaign
from probeval.scores.trust import trustworthy
from probeval.selection import Goal
from probeval.selection.labels import agreement_slopes

DEPTH = 6


@pytest.fixture(scope="module")
def campaign():
    made = synthetic_campaign(seed=3, systems=8, queries=25, depth=DEPTH)
    teams = {str(s): f"team{i // 2}" for i, s in enumerate(made.runs.systems)}
    return replace(made, runs=made.runs.with_teams(teams))


def labels_of(campaign, seed, *, favoured=None, noise=0.5):
    """Grades with noise, on 0 to 3; one grade more for the documents of a favoured team."""
    rng = np.random.default_rng(seed)
    pool = campaign.runs.top(DEPTH).pool
    grades = campaign.judgments.on(pool).grades()
    values = np.round(np.nan_to_num(grades) + noise * rng.standard_normal(len(pool)))
    if favoured is not None:
        runs = campaign.runs.top(DEPTH)
        mine = np.unique(runs.pairs[[t == favoured for t in runs.teams]])
        mine = mine[mine >= 0]
        values[mine] += 1
    return LabelTable(pool, ("llm",), np.clip(values, 0, 3)[:, None])


def judged(campaign, n, seed=0):
    rows = np.random.default_rng(seed).permutation(len(campaign.judgments))[:n]
    return replace(campaign, judgments=campaign.judgments.take(rows))


def report(collection, **options):
    return probeval.evaluate(collection, f"DCG@{DEPTH}", model="hierarchical", scale="graded:2").trust(**options)


@pytest.mark.slow
def test_an_unfair_labeller_is_named_and_its_shift_found(campaign):
    unfair = replace(judged(campaign, 300), labels=labels_of(campaign, 1, favoured="team1"))
    first = report(unfair).observers[0].biases[0]
    assert first.name == "team1"
    assert first.p_biased > 0.95
    assert first.verdict == "biased"
    assert first.lower < 0.9 < first.upper  # labels at the top of the scale stay there
    assert first.needed == 0


@pytest.mark.slow
def test_a_fair_labeller_is_not_named(campaign):
    fair = replace(judged(campaign, 300), labels=labels_of(campaign, 1))
    found = report(fair)
    assert [b.name for b in found.observers[0].biases if b.verdict == "biased"] == []
    assert found.agreements[0].correlation_lower > 0.5
    assert found.observers[0].p_measures > 0.95


def test_with_nothing_judged_no_verdict_is_given(campaign):
    found = report(replace(campaign, judgments=None, labels=labels_of(campaign, 2, favoured="team1")))
    biases = found.observers[0].biases
    assert {b.verdict for b in biases} == {"undecided"}
    assert {b.needed for b in biases} == {None}
    assert "nothing is judged" in found.summary()


@pytest.mark.slow
def test_alternatives_are_the_worth_halved_doubled_and_no_labels(campaign):
    found = report(replace(judged(campaign, 40), labels=labels_of(campaign, 2)))
    assert [a.case for a in found.alternatives] == ["worth halved", "worth doubled", "without labels"]
    without = probeval.evaluate(judged(campaign, 40), f"DCG@{DEPTH}", model="hierarchical", scale="graded:2")
    assert found.alternatives[2].best == without.ranking.order[0]
    assert found.alternatives[2].confidence == pytest.approx(without.ranking.confidence)


def test_the_report_is_the_same_as_plain_data_and_tables(campaign):
    found = report(replace(judged(campaign, 40), labels=labels_of(campaign, 2)), margin=0.2)
    data = found.to_dict()
    assert data["margin"] == 0.2
    assert data["observers"][0]["slope"] == found.to_frame()["slope"][0]
    assert len(found.biases()) == 4
    assert found.rankings()["case"].tolist() == [a["case"] for a in data["alternatives"]]
    assert data["agreements"][0]["kappa"] == found.agreement()["kappa"][0]
    cells = data["agreements"][0]["confusion"]
    assert found.confusion()["pairs"].tolist() == [cell["pairs"] for cell in cells]
    assert found.confusion_table().columns.tolist() == ["source", "label", "grade 0", "grade 1", "grade 2"]
    assert (data["panel"], "drift" in data, "texts" in data) == (None, False, False)


def test_a_trust_report_needs_labels_and_a_model_that_examines_them(campaign):
    with pytest.raises(DataError, match="--labels"):
        report(judged(campaign, 10))
    labelled = replace(judged(campaign, 10), labels=labels_of(campaign, 2))
    with pytest.raises(ModelError, match="hierarchical"):
        probeval.evaluate(labelled, f"DCG@{DEPTH}", model="uniform").trust()
    with pytest.raises(DataError, match="between 0 and 1"):
        report(labelled, margin=2.0)


@pytest.mark.slow
def test_doubts_are_said(campaign):
    turned = labels_of(campaign, 1)
    reversed_labels = LabelTable(turned.pool, ("llm",), 3 - turned.values)
    found = probeval.evaluate(
        replace(judged(campaign, 60), labels=reversed_labels), f"DCG@{DEPTH}", model="hierarchical", scale="graded:2"
    )
    assert "its scale may be reversed (P(reversed) 1.00)" in found.trust().sentences()[0]
    assert "its scale may be reversed (P(reversed) 1.00)" in found.labels.sentences()[0]
    assert found.labels.to_dict()["sources"][0]["p_reversed"] > 0.95
    numbers = LabelTable(
        turned.pool, ("mine",), turned.values + 0.1 * np.random.default_rng(0).normal(size=(len(turned.pool), 1))
    )
    new = probeval.evaluate(
        replace(campaign, judgments=None, labels=numbers), f"DCG@{DEPTH}", model="hierarchical", scale="graded:2"
    )
    assert re.search(r"a numeric labeller never seen: judge about \d+ pairs first", new.labels.sentences()[0])
    assert 0 < new.trust().observers[0].p_similarity < 1


@pytest.mark.slow
def test_agreement_is_of_all_labelled_pairs_and_not_of_the_judged_ones(campaign):
    labels = labels_of(campaign, 1, noise=0.8)
    everything = report(replace(campaign, labels=labels)).agreements[0]
    pool = campaign.runs.top(DEPTH).pool
    grades = campaign.judgments.on(pool).grades()
    assert everything.correlation == pytest.approx(np.corrcoef(grades, labels.values[:, 0])[0, 1])
    assert everything.correlation_lower == everything.correlation_upper
    open_ = replace(campaign, judgments=None, labels=labels)
    first = probeval.evaluate(open_, f"DCG@{DEPTH}", model="hierarchical", scale="graded:2")
    doubtful = first.next(80, policy="uncertain").pairs
    hard = pool.locate(*zip(*doubtful, strict=True))
    some = replace(campaign, judgments=Judgments.coded(pool, hard, grades[hard]), labels=labels)
    found = probeval.evaluate(some, f"DCG@{DEPTH}", model="hierarchical", scale="graded:2")
    bare = np.corrcoef(grades[hard], labels.values[hard, 0])[0, 1]
    source = found.labels.sources[0]
    assert abs(source.correlation - everything.correlation) < abs(bare - everything.correlation)
    assert f"its correlation with the grades is {source.correlation:.2f}" in str(source)


def test_too_few_judgments_say_nothing_of_the_agreement(campaign):
    few = replace(judged(campaign, 10), labels=labels_of(campaign, 1))
    found = probeval.evaluate(few, f"DCG@{DEPTH}", model="hierarchical", scale="graded:2")
    assert found.labels.sources[0].correlation is None
    assert "too few to tell how it agrees with people" in found.labels.sentences()[0]
    assert found.trust().agreements == ()


@pytest.mark.slow
def test_earlier_labels_and_texts(campaign):
    now, before = labels_of(campaign, 1), labels_of(campaign, 2)
    pool = campaign.runs.top(DEPTH).pool
    docs = {str(doc): "a word " * (1 + i % 7) for i, doc in enumerate(pool.docs)}
    queries = {str(query): "a word" for query in pool.queries}
    found = report(replace(judged(campaign, 100), labels=now), earlier=before, docs=docs, queries=queries)
    assert found.drift[0].pairs == len(pool)
    assert found.drift[0].up + found.drift[0].down == np.mean(now.values != before.values)
    assert {one.what for one in found.texts} == {"length"}  # all documents have the words of the query
    assert any("Against earlier labels" in table.title for table in found.tables())
    other = LabelTable(pool, ("a", "b"), np.repeat(now.values, 2, axis=1))
    with pytest.raises(DataError, match="Give both the same name"):
        report(replace(judged(campaign, 100), labels=now), earlier=other)


@pytest.mark.slow
def test_kin_that_is_favoured_is_found_and_kin_that_is_not_is_not(campaign):
    fair = labels_of(campaign, 1)
    runs = campaign.runs
    docs = runs.top(DEPTH).pairs[[runs.systems.index(s) for s in ("system-03", "system-04")]]
    raised = fair.values.copy()
    raised[np.unique(docs[docs >= 0])] += 1
    named = {str(s): f"llm {s}" if s in ("system-03", "system-04") else str(s) for s in runs.systems}
    related = replace(judged(campaign, 300), runs=runs.with_teams(named))
    for values, verdict in ((np.clip(raised, 0, 3), "favours"), (fair.values, "unbiased")):
        kin = report(replace(related, labels=LabelTable(fair.pool, ("llm",), values))).observers[0].kin
        assert kin.systems == ("system-03", "system-04")
        assert kin.verdict == verdict
    assert kin.lower <= 0 <= kin.upper


@pytest.mark.slow
def test_which_labels_may_be_used(campaign):
    good = replace(judged(campaign, 200), labels=labels_of(campaign, 1))
    estimate = probeval.evaluate(good, f"DCG@{DEPTH}", model="hierarchical", scale="graded:2").estimate
    (trusted,), (refused,) = trustworthy(estimate, 0.4), trustworthy(estimate, 0.95)
    assert (trusted.trusted, refused.trusted) == (True, False)
    assert "P(at least 0.95) 0.0" in refused.reason
    unfair = replace(judged(campaign, 300), labels=labels_of(campaign, 1, favoured="team1"))
    (biased,) = trustworthy(
        probeval.evaluate(unfair, f"DCG@{DEPTH}", model="hierarchical", scale="graded:2").estimate, 0.2
    )
    assert not biased.trusted
    assert "biased for or against team1" in biased.reason
    few = replace(judged(campaign, 10), labels=labels_of(campaign, 1))
    (unknown,) = trustworthy(
        probeval.evaluate(few, f"DCG@{DEPTH}", model="hierarchical", scale="graded:2").estimate, 0.4
    )
    assert (unknown.probability, unknown.trusted) == (None, False)


def goal_state(collection, goal, **options):
    found = probeval.evaluate(collection, f"DCG@{DEPTH}", model="hierarchical", scale="graded:2")
    return found.next(12, goal=goal, **options)


def test_the_slope_of_the_agreement_is_that_of_kappa(campaign):
    labels = labels_of(campaign, 1)
    context = goal_state(replace(judged(campaign, 60), labels=labels), "trust").state.context
    slopes = agreement_slopes(context)[:, 0]
    top, y = context.gains.max(), labels.values[:, 0] / 3
    mean, variance = context.gain_moments[0] / top, context.gain_variance / top**2

    def kappa(r):
        spread = r.var() + variance.mean() + y.var() + (r.mean() - y.mean()) ** 2
        return 2 * np.mean((r - r.mean()) * (y - y.mean())) / spread

    for pair in (0, 100, 300):
        moved = mean.copy()
        moved[pair] += 1e-5 / top
        assert slopes[pair] == pytest.approx((kappa(moved) - kappa(mean)) / 1e-5, rel=1e-3, abs=1e-9)


def test_pairs_for_the_labels_are_other_pairs_half_of_them_drawn(campaign):
    given = replace(judged(campaign, 40), labels=labels_of(campaign, 1, noise=1.5))
    found = goal_state(given, "trust:.5", stop="budget=1000")
    assert len(found.pairs) == 12
    assert sum(one.probability is not None for one in found.chosen) == 6
    assert found.goal == "trust:0.5"
    assert "at least 0.5 with people is asked for" in found.status()[0]
    assert "llm: kappa with the grades" in found.status()[1]
    assert set(found.pairs) != set(goal_state(given, "ranking", stop="budget=1000").pairs)


@pytest.mark.slow
def test_no_pair_is_needed_once_labels_are_known_to_be_good_enough_or_not(campaign):
    given = replace(judged(campaign, 200), labels=labels_of(campaign, 1))
    sure, unsure = (goal_state(given, goal, stop="confidence=.95") for goal in ("trust:.2", "trust:.99"))
    assert sure.pairs == unsure.pairs == []
    assert sure.check.values["confidence"] > 0.95
    agreed = probeval.evaluate(given, f"DCG@{DEPTH}", model="hierarchical", scale="graded:2").trust().agreements[0]
    assert len(goal_state(given, f"trust:{agreed.kappa:.4f}", stop="confidence=.95").pairs) == 12


def test_the_goal_trust_needs_labels(campaign):
    with pytest.raises(DataError, match="Give --labels FILE"):
        _ = goal_state(judged(campaign, 10), "trust", stop="budget=1000").pairs
    with pytest.raises(SelectionError, match="No goal 'trust:2'"):
        Goal.parse("trust:2")
    assert str(Goal.parse("trust")) == "trust:0.6"
