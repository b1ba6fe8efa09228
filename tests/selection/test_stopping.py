"""Stopping rules: what they say, when they hold, and how far they are."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probeval.data import Scale
from probeval.errors import SelectionError
from probeval.relevance import FallbackModel, Uniform
from probeval.selection import RULES, Judging, Rate, Stopping, StoppingRule, StoppingTarget, register_rule


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("confidence=.95", "confidence=0.95"),
        (" every = .9 , budget=500 ", "every=0.9,budget=500"),
        ("confidence=.95+halfwidth=.05,best=.99", "confidence=0.95+halfwidth=0.05,best=0.99"),
        ("hours=2,seconds=30", "hours=2,seconds=30"),
        ("cost=100+best=.9,price=.25", "cost=100+best=0.9,price=0.25"),
        ("budget=1234567", "budget=1234567"),
        ("confidence=.9999999", "confidence=0.9999999"),
        ("", ""),
    ],
)
def test_a_rule_is_its_text(text, said):
    rule = Stopping.parse(text)
    assert str(rule) == said
    assert Stopping.parse(said) == rule
    assert Stopping.parse(rule) is rule
    assert Stopping.parse(None) == Stopping()


NUMBERS = {
    **dict.fromkeys(("confidence", "every", "best"), st.floats(0, 1)),
    **dict.fromkeys(("halfwidth", "budget"), st.floats(0, 1e9)),
}
ALTERNATIVES = st.lists(
    st.lists(st.sampled_from(sorted(NUMBERS)), min_size=1, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({n: NUMBERS[n] for n in names})
    ),
    max_size=3,
)


@settings(max_examples=50)
@given(ALTERNATIVES)
def test_parsing_undoes_printing(alternatives):
    rule = Stopping(tuple(tuple(StoppingTarget(RULES[n], t) for n, t in each.items()) for each in alternatives))
    back = Stopping.parse(str(rule))
    assert len(back.alternatives) == len(alternatives)
    for one, two in zip(back.alternatives, alternatives, strict=True):
        assert {t.rule.name: t.target for t in one} == pytest.approx(two, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("confidence", "A stopping rule is confidence=NUMBER, a probability; got confidence."),
        ("confidence=95", "A stopping rule is confidence=NUMBER, a probability; got confidence=95."),
        ("best=high", "A stopping rule is best=NUMBER, a probability; got best=high."),
        ("budget=-1", "A stopping rule is budget=NUMBER, a positive number; got budget=-1."),
        ("budget=inf", "A stopping rule is budget=NUMBER, a positive number; got budget=inf."),
        ("every=nan", "A stopping rule is every=NUMBER, a probability; got every=nan."),
        ("hours=1,seconds=0", "A stopping rule is seconds=NUMBER, a positive number; got seconds=0."),
        ("hours=1", "The stopping rule hours= needs seconds= per judgment."),
        ("cost=1,seconds=3", "The stopping rule cost= needs price= per judgment."),
    ],
)
def test_what_is_no_rule(text, message):
    with pytest.raises(SelectionError) as error:
        Stopping.parse(text)
    assert str(error.value) == message


def test_a_slip_gets_a_hint():
    with pytest.raises(SelectionError, match=r"No stopping rule 'confidense': .*Did you mean 'confidence'\?"):
        Stopping.parse("confidense=.95")


@pytest.mark.parametrize(
    ("text", "judged", "left"),
    [
        ("budget=10", 0, 10),
        ("budget=10", 7, 3),
        ("budget=10", 12, 0),
        ("budget=0", 0, 0),
        ("confidence=.95", 0, None),
        ("confidence=.95,budget=10", 4, 6),
        ("budget=10,budget=8", 0, 8),  # the first that holds
        ("budget=10+confidence=.9", 0, None),  # a budget that does not stop alone
        ("hours=1,seconds=60", 0, 60),
        ("hours=1,seconds=7", 0, 515),  # the 515th passes the hour
        ("cost=10,price=.1", 40, 60),
        ("budget=10+hours=1,seconds=60", 0, 60),  # both
    ],
)
def test_how_many_are_left(text, judged, left):
    assert Stopping.parse(text).left(judged) == left


def test_every_rule_against_the_scores(state):
    some = state(12)
    ranking = some.ranking
    upper = np.triu_indices(5, k=1)
    expected = {
        "confidence": ranking.confidence,
        "every": ranking.pair_confidence[upper].min(),
        "best": ranking.p_near_best.max(),
        "halfwidth": max(np.ptp(some.scores[s].interval(0.95)) for s in some.scores.systems) / 2,
        "sd": np.sqrt(np.mean([some.scores[s].variance() for s in some.scores.systems])),
        "budget": 12,
        "hours": 12 * 30 / 3600,
        "cost": 12 * 0.5,
    }
    assert {*expected, "error"} == set(RULES)  # errors have a test of their own
    check = Stopping.parse(
        "confidence=1,every=1,best=1,halfwidth=0,sd=0,budget=99,hours=9,cost=99,seconds=30,price=.5"
    ).check(some)
    assert check.values == pytest.approx(expected)
    assert not check.reached
    assert check.reasons == ()
    assert 0 < check.progress < 1
    for name, value in expected.items():
        rates = ",seconds=30,price=.5"
        held = Stopping.parse(f"{name}={float(value)!r}{rates}").check(some)
        assert held.reached, name
        assert held.progress == 1.0
        factor = 0.99 if name in ("halfwidth", "sd") else 1.01
        harder = min(value * factor, 1.0) if name in ("confidence", "every", "best") else value * factor
        assert not Stopping.parse(f"{name}={float(harder)!r}{rates}").check(some).reached, name


def test_commas_are_or_and_pluses_are_and(state):
    some = state(12)
    assert Stopping.parse("confidence=1,budget=12").check(some).reasons == ("budget 12 >= 12",)
    assert not Stopping.parse("confidence=1+budget=12").check(some).reached
    both = Stopping.parse("halfwidth=.9+budget=5").check(some)
    assert both.reached
    assert both.reasons[0].startswith("halfwidth ")
    assert both.reasons[0].endswith(" <= 0.9 and budget 12 >= 5; independent pairs: not calibrated")


def test_no_rule_never_stops(state):
    check = Stopping.parse("").check(state(12))
    assert (check.reached, check.reasons, check.values, check.progress) == (False, (), {}, 0.0)


def test_progress_grows_with_what_is_judged(state):
    for text in ("confidence=.99", "every=.9", "halfwidth=.01", "budget=100"):
        early, late = (Stopping.parse(text).check(state(n)).progress for n in (4, 30))
        assert 0 <= early < late <= 1, text


def test_confidence_is_that_of_the_goal(state):
    rule = Stopping.parse("confidence=.5,every=.5")
    pair = state(12, goal="pair:system-01,system-04")
    sure = pair.ranking.pair_confidence[0, 3]
    assert rule.check(pair).values == pytest.approx({"confidence": sure, "every": sure})
    best = state(12, goal="best")
    assert rule.check(best).values["confidence"] == best.ranking.p_near_best.max()
    scores = state(12, goal="scores")
    assert rule.check(scores).values["confidence"] == scores.ranking.confidence


def test_identical_systems_do_not_keep_judging_from_its_end(full):
    one = full.runs.select(["system-01"])
    same = replace(
        full,
        runs=replace(
            one,
            systems=("one", "copy"),
            pairs=np.repeat(one.pairs, 2, axis=0),
            scores=np.repeat(one.scores, 2, axis=0),
            teams=None,
        ),
        judgments=None,
    )
    begun = Judging.of(same, FallbackModel([Uniform()]), "DCG@5", scale=Scale.graded(2)).begin()
    check = Stopping.parse("best=.99+every=.99+confidence=.99").check(begun)
    assert check.reached
    assert begun.ranking.tied_with_best() == ["copy"]


def test_systems_that_hardly_differ_do_not_keep_judging_from_its_end(full, state):
    # With all but one pair judged, no difference is larger than what that pair can add to it.
    n = len(full.judgments) - 1
    exact, roped = state(n), state(n, rope=0.5)
    rule = Stopping.parse("best=1+every=1")
    assert not rule.check(exact).reached
    assert rule.check(roped).reached
    assert len(roped.ranking.tied_with_best()) == 4
    assert roped.ranking.sentences()[1] == "Differences up to 0.5 count as ties."


def test_budget_none_and_all_judged(state, full):
    assert Stopping.parse("budget=0").check(state(0)).reached
    everything = state(len(full.judgments), collection=full)
    assert Stopping.parse("confidence=1+every=1+best=1+halfwidth=0").check(everything).reached


def test_one_system_is_always_sure(state, full):
    alone = replace(full, runs=full.runs.select(["system-01"]))
    begun = state(0, collection=alone)
    check = Stopping.parse("confidence=.95").check(begun)
    assert check.reached
    assert Stopping.parse("every=1+best=1").check(begun).reached
    assert not Stopping.parse("halfwidth=.01").check(begun).reached


class Days(Rate):
    """How many judgments a day has."""

    name = "perday"
    summary = "judgments per day"


class Elapsed(StoppingRule):
    """Days of judging."""

    name = "days"
    summary = "days of judging, at `perday=` judgments per day"
    rate = Days()

    def value(self, state, rate):
        return len(state.judgments) / rate

    def judgments(self, target, rate):
        return target * rate


def test_a_rule_from_outside(state):
    rule = register_rule(Elapsed())
    try:
        stopping = Stopping.parse("days=3+best=0,days=2,perday=4")
        assert str(stopping) == "days=3+best=0,days=2,perday=4"
        assert stopping.targets(rule) == [3, 2]
        assert stopping.left(5) == 3
        check = stopping.check(state(6))
        assert (check.reached, check.values["days"], list(check.values)) == (False, 1.5, ["best", "days"])
        assert check.progress == 0.75
        assert stopping.check(state(12)).reasons[-1] == "days 3 >= 2"
        with pytest.raises(SelectionError, match=r"The stopping rule days= needs perday= per judgment\."):
            Stopping.parse("days=3")
        assert register_rule(Elapsed()) is RULES["days"] is not rule
        for name, what in (("perday", "the rate of a stopping rule"), ("budget", "a stopping rule of probeval")):
            with pytest.raises(SelectionError, match=f"{name} is {what}. Give yours another name"):
                register_rule(type("Mine", (Elapsed,), {"name": name})())
    finally:
        del RULES["days"]
    with pytest.raises(SelectionError, match="No stopping rule 'days'"):
        Stopping.parse("days=3,perday=4")
    assert stopping.check(state(12)).reached  # it has its rules with it
    assert pickle.loads(pickle.dumps(stopping)) == stopping


@pytest.mark.parametrize("name", ["", "a=b", "a,b", "a+b", "a b"])
def test_names_that_no_rule_can_have(name, monkeypatch):
    monkeypatch.setattr(Elapsed, "name", name)
    with pytest.raises(SelectionError, match="The name of a stopping rule must not"):
        register_rule(Elapsed())


def test_every_rule_says_what_it_is():
    assert all(name == rule.name and rule.summary and type(rule).__doc__ for name, rule in RULES.items())
    assert {name for name, rule in RULES.items() if rule.at_most} == {"halfwidth", "sd", "error"}
    assert {name: rule.rate.name for name, rule in RULES.items() if rule.rate} == {"hours": "seconds", "cost": "price"}
