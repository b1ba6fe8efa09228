"""Judging by topic: the rule, the queue of every topic, and topics dealt to assessors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval.errors import SelectionError
from probeval.selection.batch import choose_by_topic, draw_probability
from probeval.selection.topics import Queue, check_stay, check_topics, deal


def queue_of(values: dict[str, list[float]], draws: dict[str, int] | None = None) -> Queue[str, str]:
    """A queue of topics with the values of their pairs, a1, a2, .., and draws, each due after some pairs."""
    pairs = [(value, f"{topic}{i}") for topic, each in values.items() for i, value in enumerate(each, 1)]
    pairs.sort(key=lambda pair: (-pair[0], pair[1]))
    drawn = draws or {}
    names = [*drawn, *(name for _, name in pairs)]
    worth = [0.0] * len(drawn) + [value for value, _ in pairs]
    return Queue(names, [name[0] for name in names], worth, [*drawn.values(), *[None] * len(pairs)])


def judged(queue: Queue[str, str], n: int, stay: float) -> list[str]:
    """The first pairs of one assessor."""
    out: list[str] = []
    while len(out) < n:
        pair = queue.next(lambda p: p not in out, current=out[-1][0] if out else None, stay=stay, taken=len(out))
        if pair is None:
            break
        out.append(pair)
    return out


def test_without_a_price_the_best_pair_comes_first_and_draws_when_they_are_due():
    queue = queue_of({"a": [9, 5, 4], "b": [8, 6, 1]}, {"c9": 2})
    assert judged(queue, 9, 0) == ["a1", "b1", "c9", "b2", "a2", "a3", "b3"]


def test_a_switch_must_pay_its_price():
    # With a price of 1, a visit to b is worth max(8/2, 14/3, 15/4) = 4.67 per judgment: a2 is worth more, a3 less.
    queue = queue_of({"a": [9, 5, 4], "b": [8, 6, 1]})
    assert judged(queue, 4, 1) == ["a1", "a2", "b1", "b2"]
    assert judged(queue, 4, 0.5) == ["a1", "b1", "b2", "a2"]
    assert judged(queue, 4, 10) == ["a1", "a2", "a3", "b1"]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=1),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.sampled_from([None, "a", "b"]),
    st.data(),
)
def test_the_best_visit_is_the_best_of_all(values, stay, current, data):
    """The search ends early; a look at every visit to every topic finds the same."""
    queue = queue_of({topic: sorted(map(float, each), reverse=True) for topic, each in values.items()})
    left = data.draw(st.sets(st.sampled_from(queue.pairs)))
    found = queue.next(left.__contains__, current=current, stay=stay)
    rates = []
    for topic in values:
        own = [at for at, pair in enumerate(queue.pairs) if pair[0] == topic and pair in left]
        price = 0.0 if topic == current else stay
        totals = np.cumsum([queue.values[at] for at in own])
        rates += [(-max(totals / (price + 1 + np.arange(len(own)))), own[0])] if own else []
    assert found == (queue.pairs[min(rates)[1]] if rates else None)


def test_a_rich_topic_comes_before_one_with_a_single_good_pair():
    queue = queue_of({"a": [9, 1, 1], "b": [8, 8, 8]})
    assert judged(queue, 1, 0) == ["a1"]
    assert judged(queue, 1, 2) == ["b1"]


def test_a_draw_waits_for_a_change_of_topic_and_is_not_forgotten():
    queue = queue_of({"a": [9, 8, 1], "b": [7, 6]}, {"c9": 1})
    assert judged(queue, 9, 1) == ["a1", "a2", "c9", "b1", "b2", "a3"]
    assert judged(queue_of({"a": [9, 8, 1], "b": [7]}, {"a9": 1}), 3, 1) == ["a1", "a9", "a2"]  # no change needed


def test_only_allowed_topics_are_taken():
    queue = queue_of({"a": [9], "b": [8]}, {"a9": 0})
    assert queue.next(lambda _: True, allowed=lambda topic: topic == "b", stay=1) == "b1"
    assert queue.next(lambda _: True, allowed=lambda topic: topic == "c", stay=1) is None


def test_what_is_left_in_a_topic_is_what_is_worth_staying_for():
    queue = queue_of({"a": [9, 5, 4], "b": [8, 6, 1]})
    assert [queue.left(lambda _: True, "a", stay=stay) for stay in (0, 1, 10)] == [1, 2, 3]
    assert queue.left(lambda _: True, "c", stay=1) == 0


VALUES = st.lists(st.integers(0, 20), min_size=1, max_size=5).map(lambda each: sorted(map(float, each), reverse=True))


@given(st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=2), st.floats(0, 5), st.floats(0, 5))
def test_a_higher_price_never_makes_an_assessor_leave(values, one, other):
    queue, low, high = queue_of(values), min(one, other), max(one, other)
    for topic in values:
        stays = [queue.next(lambda _: True, current=topic, stay=stay) for stay in (low, high)]
        if low > 0 and stays[0] is not None and stays[0][0] == topic:
            assert stays[1] == stays[0]
    assert sorted(judged(queue, 99, high)) == sorted(queue.pairs)  # nothing is lost, nothing comes twice


@pytest.mark.parametrize("stay", [-1, float("nan"), float("inf")])
def test_a_price_that_is_no_price(stay):
    with pytest.raises(SelectionError, match="must be a finite number from 0"):
        check_stay(stay)


def test_an_unknown_way_of_giving_topics():
    with pytest.raises(SelectionError, match=r"free, in-turn, owned; got 'own'\. Did you mean 'owned'\?"):
        check_topics("own")


@given(st.dictionaries(st.integers(0, 30), st.integers(1, 50), min_size=1), st.integers(1, 6))
def test_topics_are_dealt_evenly(sizes, n):
    dealt = deal(sizes, [f"a{i}" for i in range(n)])
    assert list(dealt) == list(sizes)
    counts = [list(dealt.values()).count(f"a{i}") for i in range(n)]
    assert max(counts) - min(counts) <= 1


def test_topics_of_who_leaves_are_dealt_to_the_others_who_keep_theirs():
    first = deal(dict.fromkeys("abcdef", 10), ["ann", "bob", "cy"])
    then = deal(dict.fromkeys("abcdef", 10), ["bob", "cy"], first)
    assert all(then[topic] == name for topic, name in first.items() if name != "ann")
    assert sorted(then.values()) == ["bob"] * 3 + ["cy"] * 3
    with pytest.raises(SelectionError, match="name at least one"):
        deal({"a": 1}, [])


def test_every_query_has_its_best_pairs_in_the_queue(state):
    now = state(10, explore=0.0)
    open_ = now.open
    pairs, values = choose_by_topic(now.context, "gain", 3, goal=now.goal, offered=open_)
    query = now.judging.pool.query
    assert np.all(np.diff(values) <= 1e-12)
    assert np.all(values >= 0)
    own = now.judging.policy(now.context, now.goal)
    for q in range(len(now.judging.runs.queries)):
        mine, left = pairs[query[pairs] == q], np.flatnonzero(open_ & (query == q))
        assert len(mine) == len(set(mine.tolist())) == min(3, len(left))
        assert own[mine[0]] == pytest.approx(own[left].max())  # the first is the best of the query by itself


def test_an_order_without_gains_is_counted_from_its_lowest(state):
    now = state(0, explore=0.0, policy="depth")
    pairs, values = choose_by_topic(now.context, "depth", 2, goal=now.goal, offered=now.open)
    assert values.min() >= 0
    rank = now.context.best_rank
    np.testing.assert_array_equal(values, rank[now.open].max() - rank[pairs])


def test_draws_wait_and_are_not_drawn_again(state):
    now = state(0, explore=0.2)
    queue, draws = now.by_topic(20, per_topic=2)
    assert len(draws) == 4
    assert [due for due in queue.due if due is not None] == [4, 9, 14, 19]
    again, others = now.by_topic(20, per_topic=2, waiting=draws.pairs[:2])
    assert set(others.pairs.tolist()).isdisjoint(draws.pairs[:2].tolist())
    assert list(again.pairs[:2]) == draws.pairs[:2].tolist()
    assert list(again.due[:2]) == [0, 0]
    assert len(again.pairs) == len(set(again.pairs))


def test_half_of_the_draws_are_from_the_topics_of_now(state):
    now = state(0, explore=0.2)
    near = now.judging.pool.query == 1
    probability = draw_probability(now.context, now.goal, now.open, near)
    plain = draw_probability(now.context, now.goal, now.open)
    assert probability.sum() == pytest.approx(1)
    assert probability[near].sum() == pytest.approx(0.5 + 0.5 * plain[near].sum())
    np.testing.assert_allclose(probability[~near], plain[~near] / 2)
    np.testing.assert_array_equal(
        draw_probability(now.context, now.goal, now.open, np.zeros(len(near), dtype=bool)), plain
    )
    _, draws = now.by_topic(20, per_topic=2, current=[1])
    assert draws.probability[0] == pytest.approx(probability[draws.pairs[0]])
