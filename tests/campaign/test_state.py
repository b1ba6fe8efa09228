"""The fold: pure, the same in one sweep or in many, and what it says of leases, overlap and grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probeval.campaign.comparison_events import Compared, ComparisonAdjudicated, GoldOrdersChanged
from probeval.campaign.study_events import ListsCompared, ListsWithdrawn, StudyCreated, StudySetup

from probeval.campaign import KINDS, Setup, State, fold, layers
from probeval.campaign.codec import decode, encode
from probeval.campaign.events import (
    Adjudicated,
    Changed,
    Commented,
    Created,
    Event,
    Flagged,
    GoldChanged,
    GuidelineChanged,
    Imported,
    Invited,
    Judged,
    Labelled,
    Leased,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Released,
    Revoked,
    Role,
    RunsAdded,
    SignedIn,
    SignedOut,
    Skipped,
    TaskPurpose,
    TopicsAssigned,
    Withdrawn,
)
from probeval.data import Scale
from probeval.errors import CampaignError

SETUP = Setup(name="c", metric="nDCG@5", scale=Scale.graded(2), model="uniform", depth=5, overlap=0.5)
NAMES = st.sampled_from(["ann", "bob", "cy"])
PAIRS = st.tuples(st.sampled_from(["q1", "q2"]), st.sampled_from(["d1", "d2", "d3"]))
GRADES = st.sampled_from([0.0, 1.0, 2.0])
PURPOSES = st.sampled_from(list(TaskPurpose))


def _begun(*events: Event) -> list[Event]:
    """A log of these events after the first one, numbered."""
    log = [Created(by="eve", time=0.0, setup=SETUP), *events]
    return [type(e)(**{f.name: getattr(e, f.name) for f in fields(e)} | {"number": i}) for i, e in enumerate(log, 1)]


def _judged(by: str, query: str, doc: str, grade: float, time: float = 1.0) -> Judged:
    return Judged(by=by, time=time, query=query, doc=doc, grade=grade)


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Logs as campaigns make them: what is withdrawn was judged, by the same assessor."""
    events: list[Event] = []
    for time in range(1, draw(st.integers(0, 25)) + 1):
        who, (query, doc) = draw(NAMES), draw(PAIRS)
        about = {"by": who, "time": float(time), "query": query, "doc": doc}
        kind = draw(st.sampled_from(["judged", "leased", "released", "skipped", "adjudicated", "withdrawn", "changed"]))
        mine = [(i, e) for i, e in enumerate(events, start=2) if isinstance(e, Judged) and e.by == who]
        if kind == "judged":
            token = draw(st.none() | st.just(f"t{time}"))
            events.append(Judged(**about, grade=draw(GRADES), token=token, purpose=draw(PURPOSES)))
        elif kind == "leased":
            events.append(Leased(**about, until=time + draw(st.floats(0, 10)), purpose=draw(PURPOSES)))
        elif kind == "released":
            events.append(Released(**about))
        elif kind == "skipped":
            events.append(Skipped(**about, reason="odd"))
        elif kind == "adjudicated":
            events.append(Adjudicated(**about, grade=draw(GRADES)))
        elif kind == "changed":
            overlap = draw(st.floats(0, 1))
            events.append(Changed(by=who, time=float(time), setup=SETUP.changed(overlap=overlap)))
        elif mine:
            number, event = draw(st.sampled_from(mine))
            of = {"query": event.query, "doc": event.doc, "judgment": number, "purpose": event.purpose}
            events.append(Withdrawn(by=who, time=float(time), **of))
    return _begun(*events)


def _plain(state: State) -> dict[str, object]:
    return {field.name: getattr(state, field.name) for field in fields(state)}


@given(logs(), st.data())
def test_a_fold_in_parts_is_the_fold_of_the_whole_and_leaves_its_input_alone(log: list[Event], data: st.DataObject):
    cut = data.draw(st.integers(0, len(log)))
    before = fold(State(), log[:cut])
    kept = _plain(before)
    kept = {name: dict(value) if isinstance(value, Mapping) else value for name, value in kept.items()}
    assert _plain(fold(before, log[cut:])) == _plain(fold(State(), log))
    assert _plain(before) == kept


@given(logs())
def test_questions_answered_are_counted_by_assessor_and_query(log: list[Event]):
    state = fold(State(), log)
    expected = Counter((who, pair[0]) for pair in state.judged for who in {given.by for given in state.given(pair)})
    assert {key: n for key, n in state.answered.items() if n} == expected


CHANGES = st.lists(st.tuples(st.sampled_from(["set", "remove", "copy", "look"]), st.integers(0, 9)), max_size=60)


@given(CHANGES)
def test_layers_are_dicts_whose_copies_are_independent(changes: list[tuple[str, int]]):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "MAX_CHANGES", 4)
        ours, plain = layers.Layers({0: -1, 5: -1}), {0: -1, 5: -1}
        kept: list[tuple[layers.Layers[int, int], dict[int, int]]] = []
        for at, (what, key) in enumerate(changes):
            if what == "set":
                ours[key] = plain[key] = at
            elif what == "remove":
                assert ours.pop(key, None) == plain.pop(key, None)
            elif what == "look":
                assert list(ours.items()) == list(plain.items())
            else:
                kept.append((ours, plain))
                ours, plain = ours.copy(), plain.copy()
            assert (len(ours), key in ours, ours.get(key)) == (len(plain), key in plain, plain.get(key))
        for one, other in [*kept, (ours, plain)]:
            assert list(one.items()) == list(other.items())  # in the same order, and as they were


@given(logs())
def test_what_waits_is_what_has_an_opinion_and_wants_another(log: list[Event]):
    state = fold(State(), log)
    for pair, said in state.judged.items():
        opinions = len({j.by for j in said})
        wants = pair not in state.adjudicated and opinions < state.settings.wanted(graded(*pair))
        assert (pair in state.waiting) == wants
    assert set(state.waiting) <= set(state.judged)


@given(logs(), NAMES, PAIRS, st.floats(0, 40))
def test_a_pair_is_open_by_the_definition(log: list[Event], who: str, pair: tuple[str, str], now: float):
    state = fold(State(), log)
    judged = {j.by for j in state.judged.get(pair, ())}
    held = state.holders(pair, now)
    skipped = {s.by for s in state.skipped.get(pair, ())}
    free = who not in judged | held | skipped and pair not in state.adjudicated
    # A pair that is judged enough is closed even where a lease of it still runs.
    room = len(judged | held) < state.settings.wanted(graded(*pair))
    assert state.is_open(pair, who, now) == (free and room)


@given(logs())
def test_events_come_back_from_rows(log: list[Event]):
    assert [decode(encode(event)) for event in log] == log


def test_every_kind_comes_back_from_its_row():
    about = {"by": "ann", "time": 1.5, "number": 4, "query": "q", "doc": "d"}
    some: list[Event] = [
        Created(by="e", time=0.0, setup=SETUP),
        Changed(by="e", time=0.0, setup=SETUP),
        GuidelineChanged(by="e", time=0.0, version=2, text="a\nb"),
        QueryGuidelinesChanged(by="e", time=0.0, version=3, texts={"q": "é <b>", "r": ""}),
        QueriesChanged(by="e", time=0.0, texts={"q": "é <b>"}),
        TopicsAssigned(by="e", time=0.0, owners={"q": "ann", "r": ""}),
        Leased(**about, until=9.0),
        Released(**about),
        Judged(**about, grade=2.0, guideline=1, source="f", at=0.5, seconds=3.5, token="t"),
        Withdrawn(**about, judgment=3),
        Skipped(**about, reason="r"),
        Flagged(**about, reason="r"),
        Commented(**about, text="é <b>"),
        Adjudicated(**about, grade=1.0, reason="r"),
        Imported(by="e", time=0.0, source="f", judgments=3),
        Labelled(by="e", time=0.0, source="f", part="p", columns=("a", "b"), pairs=2),
        RunsAdded(by="e", time=0.0, source="f", part="p", systems=("a", "b"), pairs=2),
        PhaseChanged(by="e", time=0.0, phase=Phase.paused, reason="r"),
        Invited(by="e", time=0.0, assessor="ann", role=Role.adjudicator, digest="d", until=9.0),
        Revoked(by="e", time=0.0, assessor="ann"),
        GoldChanged(by="e", time=0.0, grades={"q": {"d": 2.0}}),
        GoldOrdersChanged(by="e", time=0.0, orders={"q": (("d", "e"), ("f", "e"))}),
        Compared(by="ann", time=0.0, query="q", left="e", right="d", choice="left", relevant="both", comment="é"),
        Compared(by="ann", time=0.0, query="q", left="e", right="d", left_number=3.0, right_number=0.0, seconds=2.5),
        ComparisonAdjudicated(by="e", time=0.0, query="q", left="e", right="d", choice="equal", reason="r"),
        Leased(**about, other="e", until=9.0, purpose=TaskPurpose.repeat),
        SignedIn(by="ann", time=0.0, digest="d", until=9.0),
        SignedOut(by="ann", time=0.0, digest="d"),
        StudyCreated(by="e", time=0.0, study=StudySetup(name="s", metric="P@2", scale="binary", depth=2)),
        ListsCompared(by="ann", time=0.0, question=3, choice="same", good=False, swapped=True, seconds=2.5),
        ListsWithdrawn(by="ann", time=0.0, question=3, answer=7),
    ]
    assert {event.kind for event in some} == set(KINDS)
    assert [decode(encode(event)) for event in some] == some


def test_later_texts_of_queries_replace_and_join_the_earlier():
    first = QueriesChanged(by="e", time=0.0, texts={"q1": "old", "q2": "stays"})
    later = QueriesChanged(by="e", time=1.0, texts={"q1": "new", "q3": "joins"})
    state = fold(State(), _begun(first, later))
    assert state.texts == {"q1": "new", "q2": "stays", "q3": "joins"}
    assert state.changed == 1  # no model reads them


def test_a_gap_in_a_log_is_refused():
    log = _begun(_judged("ann", "q1", "d1", 1))
    with pytest.raises(CampaignError, match="Event 2 of the log follows event 0"):
        fold(State(), log[1:])


def test_withdrawing_brings_the_judgment_before_it_back():
    twice = [_judged("ann", "q1", "d1", 1), _judged("ann", "q1", "d1", 2, 2.0)]
    undo = Withdrawn(by="ann", time=3.0, query="q1", doc="d1", judgment=3)
    assert fold(State(), _begun(*twice)).latest(("q1", "d1"))["ann"].grade == 2
    assert fold(State(), _begun(*twice, undo)).latest(("q1", "d1"))["ann"].grade == 1


def test_one_grade_a_pair_by_the_rule_and_the_adjudicated_one_wins():
    said = [_judged("ann", "q1", "d1", 0), _judged("bob", "q1", "d1", 2), _judged("cy", "q1", "d1", 2)]
    settled = Adjudicated(by="eve", time=9.0, query="q1", doc="d1", grade=1.0)
    late = _judged("dan", "q1", "d1", 0, 10.0)
    assert fold(State(), _begun(*said)).judgments.grades().tolist() == [2.0]
    assert fold(State(), _begun(*said, settled, late)).judgments.grades().tolist() == [1.0]
    assert len(fold(State(), _begun()).judgments) == 0


def test_disagreements_are_widest_first_and_settled_ones_are_gone():
    log = [
        *(_judged(who, "q1", "d1", grade) for who, grade in (("ann", 1), ("bob", 2))),
        *(_judged(who, "q2", "d1", grade) for who, grade in (("ann", 0), ("bob", 2))),
        *(_judged(who, "q2", "d2", grade) for who, grade in (("ann", 1), ("bob", 1))),
    ]
    assert fold(State(), _begun(*log)).disagreements == [("q2", "d1"), ("q1", "d1")]
    settled = Adjudicated(by="eve", time=9.0, query="q2", doc="d1", grade=1.0)
    assert fold(State(), _begun(*log, settled)).disagreements == [("q1", "d1")]


def test_for_the_model_grades_that_differ_stay_apart_until_they_are_settled():
    log = [
        *(_judged(who, "q1", "d1", grade) for who, grade in (("ann", 1), ("bob", 2))),
        *(_judged(who, "q2", "d2", grade) for who, grade in (("ann", 1), ("bob", 1))),
    ]
    differing = fold(State(), _begun(*log)).evidence
    assert (len(differing), len(differing.pool)) == (3, 2)
    low, high = differing.limits(Scale.graded(2))
    assert (low.tolist(), high.tolist()) == ([1, -1], [2, -1])
    settled = Adjudicated(by="eve", time=9.0, query="q1", doc="d1", grade=1.0)
    assert fold(State(), _begun(*log, settled)).evidence.grades("unanimous").tolist() == [1.0, 1.0]


def test_the_table_of_grades_counts_junk_as_the_lowest():
    log = _begun(_judged("ann", "q1", "d1", -2), _judged("bob", "q1", "d2", 1))
    who, pairs, grades = fold(State(), log).grade_matrix()
    assert (who, pairs) == (["ann", "bob"], [("q1", "d1"), ("q1", "d2")])
    np.testing.assert_array_equal(grades, [[0, np.nan], [np.nan, 1]])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_overlap_is_a_share_of_pairs_by_the_seed_alone(share: float):
    pairs = [(f"q{i % 50}", f"d{i}") for i in range(4000)]
    one, other = (SETUP.changed(overlap=share, seed=seed) for seed in (0, 1))
    chosen = [one.wanted(graded(*pair)) == 2 for pair in pairs]
    # Four standard errors of a share.
    assert abs(np.mean(chosen) - share) <= 4 * np.sqrt(share * (1 - share) / len(pairs))
    assert chosen == [one.wanted(graded(*pair)) == 2 for pair in pairs]
    assert share in (0.0, 1.0) or chosen != [other.wanted(graded(*pair)) == 2 for pair in pairs]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"overlap": 1.5}, "from 0 to 1, got 1.5"),
        ({"opinions": 1}, "must be 2 or more, got 1"),
        ({"lease": 0.0}, "must be a positive number of seconds, got 0"),
        ({"rule": "medean"}, "Did you mean 'median'"),
        ({"scale": SETUP.scale}, "The scale of a campaign cannot change"),
        ({"depth": 0}, "must be 1 or more, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], says: str):
    with pytest.raises(CampaignError, match=says):
        SETUP.changed(**settings)
