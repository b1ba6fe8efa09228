"""Features of the judgments so far: by hand, left out, one judgment at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection, Judgments, Runs, Scale, read_campaign
from probeval.features import JudgedFeatures, compute_features, judged_features, relevance_of
from probeval.relevance import SyntheticCampaign

NAMES = ["aSYS", "dSYS", "aDOC", "nDOC", "a[source]"]


@pytest.fixture
def judged() -> Collection:
    """a: q d1 d2, r e1; b: q d2 d3; c: r e1 e2. Judged on 0-2: d1 2, d3 0, e1 1."""
    rows = [("a", "q", "d1"), ("a", "q", "d2"), ("a", "r", "e1"), ("b", "q", "d2"), ("b", "q", "d3")]
    rows += [("c", "r", "e1"), ("c", "r", "e2")]
    runs = Runs.rows(*zip(*rows, strict=True))
    return Collection("judged", runs, Judgments.rows(["q", "q", "r"], ["d1", "d3", "e1"], [2, 0, 1]))


def test_by_hand(judged):
    table = compute_features(judged.problem(depth=2), ["aSYS", "dSYS", "aDOC", "nDOC"])
    # Pairs: d1 {a}, d2 {a b}, d3 {b}, e1 {a c}, e2 {c}; relevances d1 1, d3 0, e1 1/2.
    nan = np.nan
    np.testing.assert_allclose(table["aSYS"], [0.5, 0.5, nan, 1, 0.5])
    # All others: d1 (0 + 1/2)/2, d2 and e2 1.5/3, d3 1.5/2, e1 1/2.
    np.testing.assert_allclose(table["dSYS"], [0.25, 0, nan, 0.5, 0])
    np.testing.assert_allclose(table["aDOC"], [0, 0.5, 1, nan, 0.5])
    np.testing.assert_allclose(table["nDOC"], np.log([2, 3, 2, 1, 2]))


def test_relevance_is_grade_over_top_grade(judged):
    np.testing.assert_array_equal(relevance_of(judged.problem(depth=2)), [1, np.nan, 0, 0.5, np.nan])
    graded = judged.problem(depth=2, scale=Scale.graded(4))
    np.testing.assert_array_equal(relevance_of(graded), [0.5, np.nan, 0, 0.25, np.nan])
    assert np.isnan(relevance_of(graded.with_judgments(None))).all()


def test_drawn_but_not_judged_is_unjudged_and_junk_is_the_lowest(judged):
    marked = Judgments.rows(["q", "q", "q"], ["d1", "d2", "d3"], [2, -1, -2])
    found = relevance_of(replace(judged, judgments=marked).problem(depth=judged.runs.depth))
    np.testing.assert_array_equal(found[:3], [1, np.nan, 0])


def test_a_judgment_makes_new_totals_and_keeps_the_old(judged):
    before = judged_features(judged.problem(depth=2))
    kept = before.query_mean()
    after = before.with_judgment(1, 1.0)
    np.testing.assert_array_equal(before.query_mean(), kept)
    np.testing.assert_allclose(after.query_mean()[:3], [0.5, 0.5, 1])
    with pytest.raises(ValueError, match="read-only"):
        after.relevance[0] = 0


def read(totals: JudgedFeatures, *, source: bool = True) -> np.ndarray:
    columns = [totals.system_mean(), totals.system_difference(), totals.query_mean(), totals.query_count()]
    return np.stack([*columns, totals.group_mean("source")] if source else columns)


@pytest.mark.parametrize("systems", [3, 64, 65, 130])
def test_any_number_of_systems(systems):
    # More than one word of bits, and word boundaries.
    rng = np.random.default_rng(systems)
    campaign = SyntheticCampaign(systems=systems, queries=3, depth=4, docs=40).draw(rng)
    totals = judged_features(campaign.problem(depth=4), ["source"])
    relevance, pool = totals.relevance, totals.neighbours.pool
    runs = campaign.runs.top(4)
    retrieved = np.zeros((len(pool), systems), dtype=bool)
    s, q, r = np.nonzero(runs.retrieved)
    retrieved[runs.pairs[s, q, r], s] = True
    for pair in range(len(pool)):
        others = (retrieved & retrieved[pair]).any(axis=1) & (np.arange(len(pool)) != pair)
        assert totals.system_mean()[pair] == pytest.approx(relevance[others].mean(), abs=1e-12)


def test_one_by_one_is_all_at_once_on_a_whole_campaign(small):
    full = judged_features(small.problem(depth=8), ["source"])
    running = judged_features(small.problem(depth=8).with_judgments(None), ["source"])
    for pair in np.random.default_rng(2).permutation(len(full.relevance)):
        running = running.with_judgment(int(pair), 0.5)  # and changed below
        running = running.with_judgment(int(pair), full.relevance[pair])
    np.testing.assert_allclose(read(running), read(full), atol=1e-12)


def test_kept_totals_are_read_and_not_made_again(small):
    totals = judged_features(small.problem(depth=8).with_judgments(None), ["source"]).with_judgment(3, 1.0)
    table = compute_features(small.problem(depth=8), NAMES, judged=totals)
    np.testing.assert_array_equal(table.values.T, read(totals))
    assert np.isnan(table["aDOC"][3])  # only itself is judged


@pytest.mark.slow
def test_one_by_one_on_a_large_campaign(data):
    campaign = read_campaign(data / "trec8-adhoc")
    full = judged_features(campaign.problem(depth=20))
    judged = np.flatnonzero(~np.isnan(full.relevance))
    late = np.random.default_rng(0).choice(judged, size=300, replace=False)
    early = full.relevance.copy()
    early[late] = np.nan
    running = JudgedFeatures.of(full.neighbours, early)
    for pair in late:
        running = running.with_judgment(int(pair), full.relevance[pair])
    np.testing.assert_allclose(read(running, source=False), read(full, source=False), atol=1e-12)
