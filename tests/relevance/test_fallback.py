"""The chain: the most informed model that can speak, judged pairs certain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.arrays import objects
from probeval.data import Collection, Judgments, Metadata, Scale
from probeval.errors import ModelError, ProbevalWarning, ScaleError
from probeval.relevance import Empirical, FallbackModel, FittedOrdinal, Uniform, synthetic_campaign
from probeval.relevance.models.base import as_model

BROAD = Scale.graded(2)


def ordinal(term: str, cuts: tuple[float, ...]) -> FittedOrdinal:
    return FittedOrdinal((term,), (0.0,), (1.0,), (1.0,), {len(cuts) + 1: cuts})


JUD, GROUP, OUT = (ordinal(term, (1.0, -1.0)) for term in ("aDOC", "f[source]", "fSYS"))
CHAIN = FallbackModel([JUD, GROUP, OUT, Uniform()])


@pytest.fixture
def holes(small) -> Collection:
    """One query has judgments, the documents of half the sources have no group."""
    known = small.metadata
    source = np.where(known.groups["source"] == "source-1", "", known.groups["source"])
    first = small.judgments.pool.query[small.judgments.pair] == 0
    judgments = small.judgments.take(first & (np.arange(len(first)) % 2 == 0))
    return replace(small, metadata=Metadata(known.docs, {"source": objects(source)}), judgments=judgments)


def test_the_most_informed_that_can_speaks(holes):
    with pytest.warns(ProbevalWarning, match="missing is not zero"):
        found, levels, chosen = CHAIN.probabilities(holes.problem(depth=8, scale=BROAD))
    pool = holes.runs.pool
    grouped = holes.metadata.codes("source", pool.docs)[pool.doc] >= 0
    np.testing.assert_array_equal(chosen, np.where(pool.query == 0, 0, np.where(grouped, 1, 2)))
    assert set(chosen) == {0, 1, 2}
    assert levels.tolist() == [0, 1, 2]
    for i, model in enumerate((JUD, GROUP, OUT)):
        rows = chosen == i
        with pytest.warns(ProbevalWarning) if i == 1 else np.errstate():
            np.testing.assert_array_equal(found[rows], model.probabilities(holes.problem(depth=8, scale=BROAD))[rows])


def test_without_anything_the_last_speaks(small):
    bare = Collection("bare", small.runs)
    found, _, chosen = FallbackModel([JUD, GROUP, Uniform()]).probabilities(bare.problem(depth=8, scale=BROAD))
    assert set(chosen) == {2}
    np.testing.assert_allclose(found, 1 / 3)


def test_a_chain_that_falls_silent_says_so(small):
    bare = Collection("bare", small.runs)
    n = len(small.runs.top(8).pool)
    with pytest.raises(ModelError, match=rf"No model applies to {n} pairs\. End the list of models with Uniform"):
        FallbackModel([JUD, GROUP]).probabilities(bare.problem(depth=8, scale=BROAD))
    with pytest.raises(ModelError, match=r"No model applies to \d+ pairs\. End the list of models with Uniform"):
        FallbackModel([]).predict(bare.problem(depth=8, scale=BROAD))


def test_the_scale_must_come_from_somewhere(small):
    with pytest.raises(ScaleError, match="scale of the grades must be named"):
        CHAIN.predict(Collection("bare", small.runs).problem(depth=8))
    assert CHAIN.predict(small.problem(depth=8)).scale == BROAD


def test_judged_pairs_are_certain_and_the_others_are_as_said(holes):
    with pytest.warns(ProbevalWarning):
        known = CHAIN.predict(holes.problem(depth=8, scale=BROAD))
    grade = holes.judgments.on(holes.runs.pool).grades()
    np.testing.assert_array_equal(known.certain, ~np.isnan(grade))
    mean, variance = known.moments(BROAD.values)
    np.testing.assert_array_equal(mean[known.certain], grade[known.certain])
    assert np.all(variance[known.certain] == 0)
    assert np.all(variance[~known.certain] > 0)


def test_bins_and_the_uniform_side_by_side():
    """On a fine scale an ordinal model speaks in ten bins and the uniform in all 101 grades."""
    scale = Scale.fine()
    campaign = synthetic_campaign(seed=4, systems=4, queries=3, depth=5, docs=15, scale=scale)
    first = campaign.judgments.take(campaign.judgments.pool.query[campaign.judgments.pair] == 0)
    some = replace(campaign, judgments=first.take(np.arange(len(first)) > 0))
    chain = FallbackModel([ordinal("aDOC", tuple(np.linspace(3, -3, 9))), Uniform()])
    found, levels, chosen = chain.probabilities(some.problem(depth=5, scale=scale))
    assert levels.tolist() == list(range(101))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found[chosen == 1], 1 / 101)
    binned = found[chosen == 0]
    assert np.flatnonzero(binned.any(axis=0)).tolist() == list(range(5, 100, 10))
    mean, variance = chain.predict(some.problem(depth=5, scale=scale)).moments(scale.values)
    np.testing.assert_allclose(mean[chosen == 1], 50)
    np.testing.assert_allclose(variance[chosen == 1], 850)
    # Where only the ordinal model speaks, only its levels are there.
    alone = chain.probabilities(replace(campaign, judgments=campaign.judgments).problem(depth=5, scale=scale))
    assert alone[1].tolist() == list(range(5, 100, 10))


def test_a_judgment_speaks_for_the_others_of_its_query(holes):
    pool = holes.runs.pool
    pair = int(np.flatnonzero(pool.query == 2)[0])
    more = Judgments.coded(pool, np.append(holes.judgments.on(pool).pair, pair), np.append(holes.judgments.grade, 2))
    with pytest.warns(ProbevalWarning):
        before, after = (
            CHAIN.probabilities(replace(holes, judgments=j).problem(depth=8, scale=BROAD))
            for j in (holes.judgments, more)
        )
    moved = before[2] != after[2]
    assert set(np.flatnonzero(moved)) == set(np.flatnonzero(pool.query == 2)) - {pair}
    np.testing.assert_array_equal(before[0][~moved], after[0][~moved])


def test_what_a_chain_is_made_of():
    assert CHAIN.terms == ["aDOC", "f[source]", "fSYS"]
    assert FallbackModel([Empirical({3: (0.9, 0.0999, 0.0001)}), Uniform()]).check()
    assert as_model(JUD).models == [JUD]
    assert as_model([JUD, OUT]).models == [JUD, OUT]
    assert as_model(CHAIN) is CHAIN
