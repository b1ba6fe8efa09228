"""The decision between two systems, in numbers and in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from probeval.data import LabelTable
from probeval.metrics import measure
from probeval.relevance import FallbackModel, Uniform, choose_model, synthetic_campaign
from probeval.scores import decide, labels_of, without_labels
from probeval.selection import Judging

METRIC = "DCG@5"


@pytest.fixture(scope="module")
def campaign():
    return synthetic_campaign(seed=3, systems=2, queries=10, depth=5, sds={"system": 1.0})


def judged(campaign, *, model=None, rope=0.0, **options):
    choice = choose_model(model, campaign)
    return Judging.of(campaign, choice.model, METRIC, scale=campaign.scale(), rope=rope, **options).begin().estimate


def test_with_all_judged_new_queries_are_those_of_the_t_test(campaign):
    a, b = campaign.runs.systems
    found = decide(judged(campaign, model="uniform"), a, b)
    scores = measure(campaign.runs, campaign.judgments, METRIC).values
    test = stats.ttest_rel(scores[0], scores[1])
    low, high = test.confidence_interval(0.95)
    row = found.to_frame().set_index("queries").loc["new"]
    assert (row["lower"], row["upper"]) == (pytest.approx(low), pytest.approx(high))
    assert 2 * min(found.new.p_better, found.new.p_worse) == pytest.approx(test.pvalue)
    assert found.here.confidence == 1
    assert found.verdict == ("better" if test.statistic > 0 else "worse")


def test_the_rope_divides_into_three(campaign):
    a, b = campaign.runs.systems
    some = replace(campaign, judgments=campaign.judgments.take(np.arange(20)))
    state = judged(some, model="uniform", rope=0.5)
    found = decide(state, a, b, level=0.6)
    pair = found.to_dict()
    assert pair["p_better"] + pair["p_equal"] + pair["p_worse"] == pytest.approx(1)
    assert (pair["p_better"], pair["p_worse"]) == (found.here.p_better, found.here.p_worse)
    turned = decide(state, b, a, level=0.6).to_dict()
    assert turned["p_better"] == pytest.approx(pair["p_worse"])
    assert {pair["verdict"], turned["verdict"]} in ({"better", "worse"}, {"equal"}, {"undecided"})


@pytest.mark.parametrize(
    ("level", "rope", "words"),
    [
        (0.5, 0.0, "is better than"),
        (0.9999, 0.0, "It is undecided which of the two is better on these queries"),
        (0.5, 50.0, "differ by no more than 50 on these queries, probability >0.999."),
        (0.9999, 0.2, "by more than 0.2 with probability"),
    ],
)
def test_in_words(campaign, level, rope, words):
    a, b = campaign.runs.systems
    some = replace(campaign, judgments=campaign.judgments.take(np.arange(20)))
    said = decide(judged(some, model="uniform", rope=rope), a, b, level=level).sentences()
    assert words in said[0]
    assert said[1].startswith("On new queries of the same kind")
    assert len(said) == 2


def test_identical_systems_are_equal(campaign):
    runs = campaign.runs
    same = replace(runs, pairs=runs.pairs[[0, 0]], scores=runs.scores[[0, 0]])
    found = decide(judged(replace(campaign, runs=same), model="uniform"), *runs.systems)
    assert found.verdict == "equal"
    assert "have equal scores on these queries" in found.on_these


def test_one_query_says_nothing_of_new_ones():
    one = synthetic_campaign(seed=3, systems=2, queries=1, depth=5)
    found = decide(judged(one, model="uniform"), *one.runs.systems)
    assert found.new is None
    assert "lower_new" not in found.to_dict()


def test_what_labels_contribute(campaign):
    a, b = campaign.runs.systems
    grades = campaign.judgments.grades()
    labels = LabelTable(
        campaign.judgments.pool, ("gpt4o_mine", "flat"), np.column_stack([grades, np.ones(len(grades))])
    )
    few = replace(campaign, judgments=campaign.judgments.take(np.arange(0, len(grades), 4)), labels=labels)
    state = judged(few)
    bare = without_labels(state)
    assert bare.estimation.collection.labels is None
    assert len(bare.judgments) == len(state.judgments)
    found = decide(state, a, b, unlabelled=bare)
    assert found.to_dict()["p_better_unlabelled"] == pytest.approx(bare.scores.compare(a, b).p_better)
    assert "Without labels the difference would be" in found.sentences()[2]
    used = labels_of(state)
    mine, flat = used.sources
    assert (mine.known, flat.known) == ("family", "no")
    assert mine.judged == len(few.judgments)
    assert mine.slope > 0
    assert (flat.correlation, flat.slope) == (None, None)
    assert "new to the model, of a family that it knows" in used.sentences()[0]
    assert without_labels(bare) is None


@pytest.mark.parametrize(("step", "judged_pairs"), [(4, 20), (2, 40), (1, 79)])
def test_how_labels_agree_is_told_from_thirty_judged_pairs(campaign, step, judged_pairs):
    grades = campaign.judgments.grades()
    labels = LabelTable(campaign.judgments.pool, ("same", "flat"), np.column_stack([grades, np.ones(len(grades))]))
    some = replace(campaign, judgments=campaign.judgments.take(np.arange(0, len(grades), step)), labels=labels)
    used = labels_of(judged(some))
    (same, flat), said = used.sources, used.sentences()[0]
    assert same.judged == judged_pairs
    assert same.is_rated == (judged_pairs >= 30)
    assert not flat.is_rated  # equal labels agree with nothing
    if same.is_rated:
        assert same.lower <= same.correlation <= same.upper
        assert same.correlation == pytest.approx(1, abs=1e-6 if judged_pairs == len(grades) else 0.05)
        assert f"by {judged_pairs} judged pairs its correlation with the grades is" in said
    else:
        assert (same.correlation, same.lower, same.upper) == (None, None, None)
        assert f"{judged_pairs} of these pairs are judged, too few to tell how it agrees with people" in said


def test_many_sources_in_one_sentence_and_models_without_labels(campaign):
    grades = campaign.judgments.grades()
    names = ("a", "b", "c", "d")
    values = np.column_stack([grades, 2 - grades, grades, np.where(np.arange(len(grades)) % 2, grades, np.nan)])
    labelled = replace(campaign, labels=LabelTable(campaign.judgments.pool, names, values))
    said, doubts = labels_of(judged(labelled)).sentences()
    assert doubts == "b: its scale may be reversed (P(reversed) 1.00)."
    assert said.startswith("Labels: 4 sources, 0 of them known to the model, label 49% to 100% of the pool")
    assert "-1.00 (b) to 1.00" in said
    state = judged(labelled, model="uniform")
    assert isinstance(state.estimation.model, FallbackModel)
    assert isinstance(state.estimation.model.models[0], Uniform)
    assert labels_of(state).sentences() == ("The model does not use labels: they change nothing here.",)
    assert without_labels(state) is None
    assert labels_of(judged(campaign)).sentences() == ()
