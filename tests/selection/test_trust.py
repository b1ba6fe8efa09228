"""The trust report: slopes, biases, verdicts, and the ranking without labels."""

import re
from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.data import LabelTable
from probeval.errors import DataError, ModelError
from probeval.relevance import synthetic_campaign

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


def test_an_unfair_labeller_is_named_and_its_shift_found(campaign):
    unfair = replace(judged(campaign, 300), labels=labels_of(campaign, 1, favoured="team1"))
    first = report(unfair).observers[0].biases[0]
    assert first.name == "team1"
    assert first.p_biased > 0.95
    assert first.verdict == "biased"
    assert first.lower < 0.9 < first.upper  # labels at the top of the scale stay there
    assert first.needed == 0


def test_a_fair_labeller_is_not_named(campaign):
    fair = replace(judged(campaign, 300), labels=labels_of(campaign, 1))
    found = report(fair)
    assert [b.name for b in found.observers[0].biases if b.verdict == "biased"] == []
    assert found.observers[0].correlation > 0.5
    assert found.observers[0].p_measures > 0.95


def test_with_nothing_judged_no_verdict_is_given(campaign):
    found = report(replace(campaign, judgments=None, labels=labels_of(campaign, 2, favoured="team1")))
    biases = found.observers[0].biases
    assert {b.verdict for b in biases} == {"undecided"}
    assert {b.needed for b in biases} == {None}
    assert "nothing is judged" in found.summary()


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


def test_a_trust_report_needs_labels_and_a_model_that_examines_them(campaign):
    with pytest.raises(DataError, match="--labels"):
        report(judged(campaign, 10))
    labelled = replace(judged(campaign, 10), labels=labels_of(campaign, 2))
    with pytest.raises(ModelError, match="hierarchical"):
        probeval.evaluate(labelled, f"DCG@{DEPTH}", model="uniform").trust()
    with pytest.raises(DataError, match="between 0 and 1"):
        report(labelled, margin=2.0)


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
