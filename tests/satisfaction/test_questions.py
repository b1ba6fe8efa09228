from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, as_judgments, as_runs
from probeval.errors import SatisfactionError
from probeval.metrics import measure
from probeval.relevance import synthetic_campaign
from probeval.satisfaction import ListQuestions, choose_lists, tenths


@pytest.fixture(scope="module")
def collection() -> Collection:
    return synthetic_campaign(seed=0, systems=8, queries=20)


def chosen(collection: Collection, **options: object) -> ListQuestions:
    settings = {"metric": "CG@5", "pairs": 40, "rng": np.random.default_rng(3), **options}
    return choose_lists(collection.runs, collection.judgments, **settings)


def test_differences_are_as_even_as_the_runs_allow(collection):
    found = chosen(collection)
    counts, available = found.chosen, found.available
    assert counts.sum() == 40
    short = counts < counts.max() - 1
    np.testing.assert_array_equal(counts[short], available[short])  # a tenth with fewer pairs gives all it has
    assert (available >= counts).all()
    for tenth in np.flatnonzero(counts < 4):
        assert f"{tenth / 10:g} to {(tenth + 1) / 10:g} ({counts[tenth]})" in found.sentences()[0]


def test_only_tenths_that_are_short_of_pairs_have_a_sentence():
    runs = as_runs({f"s{k:02}": {"q": {f"d{k:02}-{r}": 5 - r for r in range(5)}} for k in range(11)})
    grades = {f"d{k:02}-{r}": int(2 * r < k) + int(2 * r + 1 < k) for k in range(11) for r in range(5)}
    found = choose_lists(runs, as_judgments({"q": grades}), "CG@5", pairs=20, traps=0, rng=np.random.default_rng(0))
    assert found.chosen.tolist() == [0, 3, 3, 2, 2, 2, 2, 2, 2, 2]
    assert found.available.tolist() == [0, 10, 9, 8, 7, 6, 5, 4, 3, 3]  # the last tenth has those of 1 too
    assert found.sentences() == ("Differences with fewer than 2 pairs of lists, all taken: 0 to 0.1 (0).",)


def test_lists_are_those_of_the_runs_with_their_scores(collection):
    found = chosen(collection)
    measured = measure(collection.runs, collection.judgments, "CG@5")
    top = collection.runs.top(5)
    lists = {}
    for row, system in enumerate(top.pairs):
        for column, ranked in enumerate(system):
            docs = tuple(top.pool.label(int(pair))[1] for pair in ranked if pair >= 0)
            lists[str(top.queries[column]), docs] = measured.values[row, column]
    for question in found.pairs:
        assert question.a != question.b
        assert lists[question.query, question.a] == question.score_a
        assert lists[question.query, question.b] == question.score_b
    assert len(set(found.pairs)) == len(found.pairs)


def test_queries_take_turns(collection):
    asked = [question.query for question in chosen(collection).pairs]
    counts = [asked.count(query) for query in set(asked)]
    assert max(counts) <= 4  # 2 per query on average, but rare differences come from few queries


def test_the_same_seed_chooses_the_same_lists(collection):
    assert chosen(collection).questions == chosen(collection).questions
    assert chosen(collection).questions != chosen(collection, rng=np.random.default_rng(4)).questions


def test_traps_have_known_answers(collection):
    found = chosen(collection)
    traps = [question for question in found.questions if question.trap]
    assert sorted(trap.trap for trap in traps) == ["a"] * 4 + ["same"] * 4
    assert found.questions[-8:] != tuple(traps)  # they have no places of their own
    top = collection.runs.top(5)
    for trap in traps:
        own = {top.pool.label(i)[1] for i in range(len(top.pool)) if top.pool.label(i)[0] == trap.query}
        if trap.trap == "same":
            assert trap.a == trap.b
        else:
            assert trap.score_a > 0.5
            assert trap.score_b == 0
            assert not own & set(trap.b)
            assert len(trap.a) == len(trap.b) == len(set(trap.b))


@pytest.mark.parametrize(("pairs", "traps"), [(5, 4), (20, 4), (33, 7), (200, 20)])
def test_one_trap_for_five_pairs(collection, pairs, traps):
    found = chosen(collection, pairs=pairs)
    assert len(found.questions) - len(found.pairs) == traps


def test_lists_with_unjudged_documents_are_not_shown(collection):
    half = replace(collection, judgments=collection.judgments.take(np.arange(0, len(collection.judgments), 2)))
    judged = {half.judgments.pool.label(i) for i in range(len(half.judgments.pool))}
    found = chosen(half, metric="P@2", pairs=30)
    for question in (q for q in found.questions if q.trap != "a"):
        assert all((question.query, doc) in judged for doc in (*question.a, *question.b))


def test_more_pairs_than_there_are(collection):
    found = chosen(collection, pairs=100_000)
    assert len(found.pairs) == found.available.sum()
    assert found.sentences()[0].startswith(f"The runs have only {len(found.pairs):,} of the 100,000 pairs")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "AP"}, "AP has no cutoff: give the length of the lists"),
        ({"pairs": 0}, "must be 1 or more, got 0"),
        ({"traps": -1}, "traps must be 0 or more, got -1"),
        ({"metric": 'DCG(norm="none")@5'}, "scores from 0 to 1"),
    ],
)
def test_wrong_settings(collection, options, message):
    with pytest.raises(SatisfactionError, match=message.replace("(", r"\(")):
        chosen(collection, **options)


def test_one_system_has_no_pairs(collection):
    with pytest.raises(SatisfactionError, match="No query has two different lists of 5 documents"):
        chosen(replace(collection, runs=collection.runs.select([collection.runs.systems[0]])))


def test_one_query_has_no_documents_for_clear_traps():
    runs = as_runs({"a": {"q": {"d1": 2, "d2": 1}}, "b": {"q": {"d3": 2, "d1": 1}}})
    judgments = as_judgments({"q": {"d1": 1, "d2": 0, "d3": 0}})
    with pytest.raises(SatisfactionError, match=r"or no traps \(traps=0\)"):
        choose_lists(runs, judgments, "P@2", pairs=1, rng=np.random.default_rng(0))
    found = choose_lists(runs, judgments, "P@2", pairs=1, traps=0, rng=np.random.default_rng(0))
    assert tenths([abs(q.score_a - q.score_b) for q in found.pairs]).tolist() == [0]
    assert found.to_dict()["pairs"] == 1
