"""Ties and bounds against enumeration, and what a measure must not depend on."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from probeval.data import ABSENT, POOLED, UNJUDGED, Scale, as_judgments, as_runs
from probeval.errors import MetricError
from probeval.metrics import REGISTRY, Lists, Metric, bounds, measure, parse
from probeval.metrics.ties import expected, expected_sum_precision, extremes, permuted, variance

CLOSE = 1e-12
WIDE = settings(max_examples=6 * settings.default.max_examples)  # where examples have many measures to choose from
SCALES = (Scale.binary(), Scale.graded(2), Scale.graded(3, gain="exp"), Scale((0, 2, 5)), Scale((1, 2, 4)))


def one_list(scale: Scale, codes, known=()) -> Lists:
    """One list of one query; ``known`` holds the codes of the judged documents beside it."""
    judged = [c for c in [*codes, *known] if c >= 0]
    relevant_counts = [[sum(c >= level for c in judged) for level in range(len(scale))]]
    return Lists(scale, np.array([[codes]], dtype=np.int16), np.array(relevant_counts))


@st.composite
def ranked(draw, max_depth: int = 6, max_open: int = 6, scales=SCALES) -> Lists:
    scale = draw(st.sampled_from(scales))
    grade = st.integers(0, len(scale) - 1)
    depth = draw(st.integers(1, max_depth))
    n_open = draw(st.integers(0, min(max_open, depth)))
    codes = draw(st.lists(grade, min_size=depth - n_open, max_size=depth - n_open))
    codes += draw(st.lists(st.sampled_from([UNJUDGED, UNJUDGED, POOLED]), min_size=n_open, max_size=n_open))
    codes = draw(st.permutations(codes)) + [ABSENT] * draw(st.integers(0, 2))
    return one_list(scale, codes, draw(st.lists(grade, max_size=5)))


# ---- ties ----


@st.composite
def tied(draw) -> tuple[Lists, np.ndarray]:
    """A list and the first rank of each rank's group; absent documents are tied with nothing."""
    lists = draw(ranked(scales=SCALES[:4]))  # a lowest grade that is worth something can make Q fall as it moves up
    retrieved = lists.retrieved[0, 0]
    joined = draw(st.lists(st.booleans(), min_size=len(retrieved), max_size=len(retrieved)))
    start = np.arange(len(retrieved))
    for i in range(1, len(start)):
        if joined[i] and retrieved[i]:
            start[i] = start[i - 1]
    return lists, start[None, None]


def orders(lists: Lists, start: np.ndarray) -> Lists:
    """Every order of the tied groups, as so many systems."""
    codes, first = lists.codes[0, 0], start[0, 0]
    groups = [codes[first == g] for g in np.unique(first)]
    every = [np.concatenate(choice) for choice in product(*(list(permutations(g)) for g in groups))]
    return Lists(lists.scale, np.array(every, dtype=np.int16)[:, None], lists.relevant_counts)


CLOSED_FORM = [
    "P@3", "P(rel=2)@2", "CG", "CG@3", 'DCG(norm="none")@4', 'DCG(norm="ideal")@3', "SDCG@3", "RBP", "RBP(p=0.5)@3",
    'RBP(norm="ideal")@3', "INSQ(T=2)", "nDCG", "nDCG@3", 'nDCG(discount="jk")@4', "AP", "AP@3", "AP(rel=2)",
    'AP(norm="min")@3', 'AP(norm="perfect")', "RR", "RR@3", "RR(rel=2)", "R@3", "F@3", "F(beta=2)@4", "SetR", "SetF",
]  # fmt: skip
UNDER_ORDER = [
    *CLOSED_FORM, "Success@2", "ERR", "ERR@3", 'ERR(norm="perfect")@3', "Q", "Q@3", 'Q(norm="min")@3',
    'Q(norm="perfect")@3', "GAP", "GAP@3", 'GAP(norm="perfect")@3', "ADR@3", 'ADR(norm="perfect")@3', "Rprec", "SetP",
    "Bpref", "Judged@3", "INST", "INST(T=3)",
]  # fmt: skip


@given(tied(), st.sampled_from(CLOSED_FORM))
def test_the_expected_score_under_ties_is_the_mean_over_all_orders(case, name):
    lists, start = case
    metric = parse(name)
    every = metric.scores(orders(lists, start))
    assert expected(metric, lists, start)[0, 0] == pytest.approx(every.mean(), abs=CLOSE)


@given(tied(), st.sampled_from([name for name in CLOSED_FORM if parse(name).definition.rank_weights is not None]))
def test_the_variance_under_ties_is_that_over_all_orders(case, name):
    lists, start = case
    metric = parse(name)
    every = metric.scores(orders(lists, start))
    assert variance(metric, lists, start)[0, 0] == pytest.approx(every.var(), abs=CLOSE)


@given(tied(), st.sampled_from(UNDER_ORDER))
def test_the_extremes_under_ties_are_attained_and_never_passed(case, name):
    lists, start = case
    metric = parse(name)
    every = metric.scores(orders(lists, start))
    low, high = extremes(metric, lists, start)
    assert low[0, 0] == pytest.approx(every.min(), abs=CLOSE)
    assert high[0, 0] == pytest.approx(every.max(), abs=CLOSE)


@given(tied(), st.sampled_from(["P@3", "RR", "ERR@3", 'DCG(norm="none")@3', "SDCG@3", "RBP@4", "INSQ@4"]))
def test_open_grades_and_ties_together(case, name):
    lists, start = case
    metric, top = parse(name), len(lists.scale) - 1
    filled = [assigned(lists, grades)[0] for grades in product(range(top + 1), repeat=int(lists.unjudged.sum()))]
    every = np.concatenate([metric.scores(orders(one, start)).ravel() for one in filled[:64]])
    low, high = extremes(metric, lists, start, unjudged_open=True)
    if len(filled) <= 64:
        assert low[0, 0] == pytest.approx(every.min(), abs=CLOSE)
        assert high[0, 0] == pytest.approx(every.max(), abs=CLOSE)
    else:  # too many to try all
        assert low[0, 0] - CLOSE <= every.min()
        assert every.max() <= high[0, 0] + CLOSE


def test_what_has_no_closed_form_or_no_known_extremes_says_so():
    lists, start = one_list(SCALES[0], [1, 0, UNJUDGED]), np.zeros((1, 1, 3), dtype=int)
    for name in ("ERR", "INST", "Bpref", "Success@2"):
        with pytest.raises(MetricError, match="no closed form under ties"):
            expected(parse(name), lists, start)
        with pytest.raises(MetricError, match="no closed form under ties"):
            variance(parse(name), lists, start)
    for name in ("EDCG", "infAP"):
        with pytest.raises(MetricError, match="not known"):
            extremes(parse(name), lists, start)
    with pytest.raises(MetricError, match="apart"):
        extremes(parse("AP"), lists, start, unjudged_open=True)


@given(tied(), st.integers(0, 2**32 - 1))
def test_permuted_lists_keep_their_groups(case, seed):
    lists, start = case
    drawn = permuted(lists, start, 8, np.random.default_rng(seed))
    assert drawn.codes.shape == (8, *lists.codes.shape)
    for first in np.unique(start):
        group = start == first
        for codes in drawn.codes:
            assert sorted(codes[group]) == sorted(lists.codes[group])


def test_permuted_lists_are_uniform_over_orders():
    lists, start = one_list(Scale.graded(3), [3, 2, 1, 0]), np.array([[[0, 0, 0, 3]]])
    drawn = permuted(lists, start, 6000, np.random.default_rng(1)).codes[:, 0, 0]
    assert np.all(drawn[:, 3] == 0)
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    # Each of the 6 orders has 1000 +- 29; 5 sd is 144.
    assert len(counts) == 6
    assert np.all(np.abs(counts - 1000) < 144)


@given(st.data())
def test_expected_sum_precision_is_the_mean_over_orders_and_relevance(data):
    p = np.array(data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=5)))
    joined = data.draw(st.lists(st.booleans(), min_size=len(p), max_size=len(p)))
    start = np.arange(len(p))
    for i in range(1, len(p)):
        start[i] = start[i - 1] if joined[i] else i
    groups = [np.flatnonzero(start == g) for g in np.unique(start)]
    every = [np.concatenate(choice) for choice in product(*(list(permutations(g)) for g in groups))]
    total = 0.0
    for relevant in product([0, 1], repeat=len(p)):
        chance = np.prod(np.where(relevant, p, 1 - p))
        for order in every:
            found, sp = 0, 0.0
            for i, doc in enumerate(order, start=1):
                found += relevant[doc]
                sp += relevant[doc] * found / i
            total += chance * sp / len(every)
    assert expected_sum_precision(p[None, None], start[None, None])[0, 0] == pytest.approx(total, abs=CLOSE)


# ---- bounds ----


def assigned(lists: Lists, grades) -> tuple[Lists, Lists]:
    """The lists with these codes for the unjudged, and all the codes that are then known counted."""
    codes = lists.codes.copy()
    codes[lists.unjudged] = grades[: int(lists.unjudged.sum())]
    more = np.array([[sum(g >= level for g in grades) for level in range(len(lists.scale))]])
    return Lists(lists.scale, codes, lists.relevant_counts), Lists(lists.scale, codes, lists.relevant_counts + more)


def possible(metric: Metric, lists: Lists, outside: int) -> np.ndarray:
    """The score under every grade of every unjudged document, in the list (to the cutoff) and outside it."""
    lists = lists.top(metric.cutoff)
    n = int(lists.unjudged.sum()) + outside
    worlds = [assigned(lists, grades)[1] for grades in product(range(len(lists.scale)), repeat=n)]
    codes, relevant_counts = np.stack([w.codes for w in worlds]), np.stack([w.relevant_counts for w in worlds])
    return metric.scores(Lists(lists.scale, codes, relevant_counts)).ravel()


BOUNDED = [
    "P@3", "P(rel=2)@4", "RR", "RR(rel=2)@3", "Success@3", "CG", "CG@3", "DCG@4", 'DCG(norm="none", discount="jk")@4',
    "SDCG@9", "RBP@4", 'RBP(norm="perfect")@4', "INSQ@4", "ERR", "ERR@3", 'ERR(norm="perfect")@3',
    'AP(norm="perfect")@4', 'Q(norm="perfect")@4', 'GAP(norm="perfect")@4', 'ADR(norm="perfect")@4', "SetP",
    "R@3", "R(rel=2)@9", "R(rel=0)@3", "F@3", "F(beta=2)@4", "SetR", "SetF(beta=0.5)",
    "AP", "AP@3", "AP@9", "AP(rel=0)", "AP(rel=2)", 'AP(norm="min")@3', 'AP(rel=2, norm="min")@4',
    "nDCG", "nDCG@1", "nDCG@3", "nDCG@9", 'nDCG(gain="exp")', 'nDCG(gain="exp", discount="jk")@4', 'CG(norm="ideal")@3',
    'DCG(norm="ideal")', 'RBP(p=0.5, norm="ideal")@3', 'RBP(p=0.95, norm="ideal")',
    'PSat(mapping="DCGl@5/broad")', 'PSucc(mapping="CGl@5/broad")', 'PSucc(mapping="GAP@5/fine")',
]  # fmt: skip


def expect_bounds(metric: Metric, lists: Lists, outside: int) -> None:
    """The bounds are the least and the greatest of all possible scores."""
    every = possible(metric, lists, outside)
    low, high = bounds(metric, lists, outside)
    assert low[0, 0] == pytest.approx(every.min(), abs=CLOSE)
    assert high[0, 0] == pytest.approx(every.max(), abs=CLOSE)


@pytest.mark.slow
@WIDE
@given(ranked(max_open=4), st.integers(0, 2), st.sampled_from(BOUNDED))
@example(one_list(Scale.graded(3), [UNJUDGED, 3, UNJUDGED, 1, UNJUDGED], [3, 3, 2]), 2, "nDCG@4")
@example(one_list(Scale.binary(), [UNJUDGED]), 0, "AP(rel=2)")  # no grade is relevant
@example(one_list(Scale((1, 2, 4)), [0]), 1, "nDCG")  # the lowest grade is worth something
def test_bounds_are_attained_and_never_passed(lists, outside, name):
    expect_bounds(parse(name), lists, outside)


@WIDE
@given(
    ranked(max_open=4),
    st.integers(0, 2),
    st.sampled_from([name for name in BOUNDED if parse(name).definition.bounds(parse(name)) in ("ratio", "precision")]),
)
def test_bounds_of_ratios_are_attained_and_never_passed(lists, outside, name):
    expect_bounds(parse(name), lists, outside)


@given(
    ranked(max_depth=4, max_open=2, scales=SCALES[:4]),
    st.sampled_from(
        ["RBP", "RBP(p=0.5)", "RBP(rel=2)", "INSQ", "INSQ(T=2.5)", "INST", "INST(T=3)", 'INST(T=0.5, gain="exp")']
    ),
)
def test_bounds_of_endless_lists_count_what_stands_past_the_end(lists, name):
    # The unjudged, two ranks past the end and then a long tail of the lowest or of the top grade, in every way.
    metric, top = parse(name), len(lists.scale) - 1
    given_codes = lists.codes[0, 0][lists.retrieved[0, 0]]
    free = np.append(given_codes < 0, [True, True])
    rows = []
    for grades in product(range(top + 1), repeat=int(free.sum())):
        codes = np.append(given_codes, [0, 0])
        codes[free] = grades
        rows += [np.append(codes, np.full(300, 0)), np.append(codes, np.full(300, top))]
    every = metric.scores(Lists(lists.scale, np.array(rows, dtype=np.int16)[:, None], lists.relevant_counts)).ravel()
    if not name.startswith("INST"):  # INST knows its own tail; 300 ranks of the others are not endless
        every[1::2] += 1 - metric.rank_weights(len(rows[0])).sum()
    low, high = bounds(metric, lists)
    assert low[0, 0] == pytest.approx(every.min(), abs=1e-9)
    assert high[0, 0] == pytest.approx(every.max(), abs=1e-9)


@given(ranked(), st.sampled_from(["Q@3", "GAP@3", "ADR@3", "EDCG@3", "Rprec", "Bpref", "infAP"]))
def test_without_exact_bounds_only_the_settled_has_any(lists, name):
    metric = parse(name)
    low, high = bounds(metric, lists)
    score = metric.scores(lists)[0, 0]
    open_ = bool(lists.top(metric.cutoff).unjudged.any())
    assert np.isnan(low[0, 0]) == open_
    assert np.isnan(high[0, 0]) == open_
    if not open_:
        assert low[0, 0] == high[0, 0] == score
        assert np.isnan(bounds(metric, lists, 1)[0][0, 0])


@WIDE
@given(ranked(), st.sampled_from(BOUNDED), st.integers(0, 3))
def test_one_more_judgment_never_widens_the_bounds(lists, name, grade):
    metric = parse(name)
    before = bounds(metric, lists)
    open_ = np.argwhere(lists.unjudged[0, 0])
    assume(len(open_))
    codes = lists.codes.copy()
    codes[0, 0, open_[0]] = min(grade, len(lists.scale) - 1)
    deep = metric.cutoff is not None and open_[0] >= metric.cutoff
    relevant_counts = lists.relevant_counts + (np.arange(len(lists.scale)) <= codes[0, 0, open_[0]])
    if deep:  # past the cutoff it was outside
        before = bounds(metric, lists, 1)
    after = bounds(metric, Lists(lists.scale, codes, relevant_counts))
    assert before[0][0, 0] - CLOSE <= after[0][0, 0] <= after[1][0, 0] + CLOSE
    assert after[1][0, 0] <= before[1][0, 0] + CLOSE


# ---- invariances ----

EVERY = [str(Metric(name).completed(3)) for name in sorted(REGISTRY)]


@st.composite
def campaign(draw):
    """Runs and judgments as dicts, with unjudged documents, and queries that a run lacks."""
    docs = [f"d{i}" for i in range(6)]
    queries = [f"q{i}" for i in range(draw(st.integers(1, 3)))]
    runs = {}
    for system in ("a", "b"):
        answers = draw(st.lists(st.sampled_from(queries), min_size=1, unique=True))
        runs[system] = {
            q: {d: float(i) for i, d in enumerate(draw(st.lists(st.sampled_from(docs), min_size=1, unique=True)))}
            for q in answers
        }
    judged = {q: {d: draw(st.integers(-1, 2)) for d in docs if draw(st.booleans())} for q in queries}
    judged[queries[0]]["d0"] = 2
    some_run = next(iter(runs["a"]))
    judged[some_run]["d1"] = 1
    return runs, judged


def values(runs, judged, metric) -> dict:
    found = measure(as_runs(runs), as_judgments(judged), metric, scale=Scale.graded(2)).to_frame(per_query=True)
    return {(s, q): (v, low, high) for s, q, v, low, high in found.itertuples(index=False)}


@pytest.mark.slow
@given(campaign(), st.sampled_from(EVERY), st.randoms(use_true_random=False))
def test_neither_names_nor_the_order_of_the_input_matter(case, metric, random):
    runs, judged = case
    # Scores within a list differ, so that document ids break no tie.
    rename = {f"d{i}": f"x{i}" for i in random.sample(range(6), 6)}
    rename = dict(zip(rename, random.sample(sorted(rename.values()), 6), strict=True))

    def shuffled(mapping: dict) -> dict:
        return dict(random.sample(sorted(mapping.items()), len(mapping)))

    new_runs = {
        f"s{s}": shuffled({f"t{q}": shuffled({rename[d]: x for d, x in docs.items()}) for q, docs in answers.items()})
        for s, answers in shuffled(runs).items()
    }
    new_judged = {
        f"t{q}": shuffled({rename[d]: g for d, g in grades.items()}) for q, grades in shuffled(judged).items()
    }
    old, new = values(runs, judged, metric), values(new_runs, new_judged, metric)
    assert {(f"s{s}", f"t{q}") for s, q in old} == set(new)
    for (s, q), numbers in old.items():
        np.testing.assert_allclose(new[f"s{s}", f"t{q}"], numbers, atol=CLOSE, equal_nan=True)


@given(campaign(), st.sampled_from([m for m in EVERY if parse(m).definition.bounds(parse(m)) is not None]))
def test_the_score_lies_within_its_bounds(case, metric):
    for value, low, high in values(*case, metric).values():
        assert low - CLOSE <= value <= high + CLOSE
        if parse(metric).definition.bounds(parse(metric)) == "monotone":
            # The unjudged count as nothing, which is the lowest that they can be.
            assert value == pytest.approx(low, abs=CLOSE)


@given(ranked(scales=SCALES[:2]), st.sampled_from(EVERY), st.floats(0.001, 1000))
def test_only_the_order_of_retrieval_scores_matters(lists, metric, factor):
    docs = {f"d{i}": float(-i) for i in range(int(lists.retrieved.sum()))}
    judged = {"q": {f"d{i}": int(c) for i, c in enumerate(lists.codes[0, 0]) if c >= 0} | {"other": 1}}
    scaled = {d: score * factor for d, score in docs.items()}
    old, new = (list(values({"a": {"q": run}}, judged, metric).values()) for run in (docs, scaled))
    np.testing.assert_array_equal(old, new)
