"""The fold: pure, the same in one sweep or in many, and what it says of leases, overlap and grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval.campaign import (
    Adjudicated,
    Answered,
    Changed,
    Commented,
    Compared,
    ComparisonAdjudicated,
    Created,
    Event,
    Flagged,
    GoldGradesChanged,
    GoldOrdersChanged,
    GuidelineChanged,
    Imported,
    Invited,
    Judged,
    Labelled,
    Leased,
    ListsCompared,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Question,
    Released,
    Restored,
    Revoked,
    Role,
    RunsAdded,
    SetAside,
    Setup,
    SignedIn,
    SignedOut,
    Skipped,
    State,
    TaskPurpose,
    TopicsAssigned,
    Withdrawn,
    fold,
)
from probeval.campaign import state as state_module
from probeval.campaign.log import decode, encode, event_classes
from probeval.campaign.questions import as_question, graded, kind_of
from probeval.campaign.state import Layers
from probeval.data import Scale
from probeval.errors import CampaignError
from probeval.selection import Pick

SETUP = Setup(name="c", metric="nDCG@5", scale=Scale.graded(2), model="uniform", depth=5, overlap=0.5)
NAMES = st.sampled_from(["ann", "bob", "cy"])
PURPOSES = st.sampled_from([purpose for purpose in TaskPurpose if purpose is not TaskPurpose.aside])
QUESTIONS = st.sampled_from(
    [graded(query, doc) for query in ("q1", "q2") for doc in ("d1", "d2", "d3")]
    + [as_question(("q1", "d1", "d2")), as_question(("q2", "d2", "d3"))]
    + [Question("", (f"{number}a", f"{number}b"), "lists") for number in range(2)]
)
VALUES = {
    "grade": st.fixed_dictionaries({"grade": st.sampled_from([0.0, 1.0, 2.0])}),
    "comparison": st.fixed_dictionaries({"choice": st.sampled_from(["left", "right", "equal"])}),
    "lists": st.fixed_dictionaries({"choice": st.sampled_from(["left", "right", "same"]), "good": st.booleans()}),
}


def _begun(*events: Event) -> list[Event]:
    """A log of these events after the first one, numbered."""
    log = [Created(by="eve", time=0.0, setup=SETUP), *events]
    return [type(e)(**{f.name: getattr(e, f.name) for f in fields(e)} | {"number": i}) for i, e in enumerate(log, 1)]


def _judged(by: str, query: str, doc: str, grade: float, time: float = 1.0) -> Judged:
    return Judged(by=by, time=time, query=query, documents=(doc,), grade=grade)


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Logs as campaigns make them, of all kinds of questions: what is withdrawn was answered, by the same assessor."""
    events: list[Event] = []
    for time in range(1, draw(st.integers(0, 25)) + 1):
        who, question = draw(NAMES), draw(QUESTIONS)
        kind, head = kind_of(question.kind), {"by": who, "time": float(time)}
        about = {**head, "query": question.query, "documents": draw(st.permutations(question.documents).map(tuple))}
        task = {**about, "asks": question.kind}
        steps = [
            "answered",
            "leased",
            "released",
            "skipped",
            "settled",
            "withdrawn",
            "changed",
            "set aside",
            "restored",
        ]
        what = draw(st.sampled_from(steps))
        mine = [(i, e) for i, e in enumerate(events, start=2) if isinstance(e, Answered) and e.by == who]
        if what == "answered":
            token, seconds = draw(st.none() | st.just(f"t{time}")), draw(st.none() | st.floats(0, 9))
            more = {
                "token": token,
                "seconds": seconds,
                "purpose": draw(PURPOSES),
                "source": draw(st.sampled_from(["", "f"])),
            }
            events.append(kind.answered(**about, **draw(VALUES[question.kind]), **more))
        elif what == "leased":
            events.append(Leased(**task, until=time + draw(st.floats(0, 10)), purpose=draw(PURPOSES)))
        elif what == "released":
            events.append(Released(**task))
        elif what == "skipped":
            events.append(Skipped(**task, reason="odd"))
        elif what == "settled" and kind.settled is not None:
            events.append(kind.settled(**about, **draw(VALUES[question.kind])))
        elif what in ("set aside", "restored"):
            events.append((SetAside if what == "set aside" else Restored)(**head, assessor=who))
        elif what == "changed":
            events.append(Changed(**head, setup=SETUP.changed(overlap=draw(st.floats(0, 1)))))
        elif mine:
            number, event = draw(st.sampled_from(mine))
            of = {"query": event.query, "documents": event.documents, "asks": event.asks, "purpose": event.purpose}
            events.append(Withdrawn(**head, **of, judgment=number))
    return _begun(*events)


def _plain(state: State) -> dict[str, object]:
    plain = {field.name: getattr(state, field.name) for field in fields(state)}
    plain["own"] = {who: [own.count, *own.answers()] for who, own in state.own.items()}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in plain.items()}


@given(logs(), st.lists(st.integers(0, 26), max_size=4))
def test_a_fold_in_any_batches_is_the_fold_of_the_whole_and_leaves_its_input_alone(log: list[Event], cuts: list[int]):
    state, at = State(), 0
    for cut in [*sorted(cuts), len(log)]:
        kept = _plain(state)
        after = fold(state, log[at:cut]) if at < cut else state
        assert _plain(state) == kept
        state, at = after, max(at, cut)
    assert _plain(state) == _plain(fold(State(), log))


@given(logs())
def test_the_state_is_what_a_plain_walk_through_the_log_finds(log: list[Event]):
    """Answers, own answers, leases and settled answers, computed the slow way."""
    state, standing, held, settled, aside = fold(State(), log), dict[int, Answered](), {}, {}, set[str]()
    for event in log:
        if isinstance(event, (SetAside, Restored)):
            (aside.add if isinstance(event, SetAside) else aside.discard)(event.assessor)
            held = {key: lease for key, lease in held.items() if key[1] != event.assessor}
        if isinstance(event, Answered):
            standing[event.number] = event
        elif isinstance(event, Withdrawn):
            standing.pop(event.judgment, None)
        elif isinstance(event, Leased):
            held[event.question, event.by] = event
        elif isinstance(event, (Released, Skipped)):
            held.pop((event.question, event.by), None)
        elif isinstance(event, (Adjudicated, ComparisonAdjudicated)):
            settled[event.question] = event
        if isinstance(event, Answered):
            held.pop((event.question, event.by), None)
            others = {each.by for each in standing.values() if each.question == event.question and each.counts} - aside
            setup = next(e.setup for e in reversed(log[: event.number]) if isinstance(e, (Created, Changed)))
            enough = not others or event.asked.by_everyone or len(others) >= setup.wanted(event.question)
            if event.source and (enough or event.question in settled):
                held = {key: lease for key, lease in held.items() if key[0] != event.question}
    out = {n for n, answer in standing.items() if answer.by in aside and answer.counts}
    shown = {n: replace(a, purpose=TaskPurpose.aside) if n in out else a for n, a in standing.items()}
    assert {n: answer for given in state.answers.values() for answer in given for n in [answer.number]} == shown
    own = {who: [*one.answers()] for who, one in state.own.items()}
    mine = [answer for answer in reversed(standing.values()) if not answer.source]
    assert own == {who: [a for a in mine if a.by == who] for who in {a.by for a in mine}}
    assert {(q, who): lease for q, leases in state.leases.items() for who, lease in leases.items()} == held
    assert state.settled == settled
    asked = {(a.by, a.question, a.purpose) for a in standing.values()}
    assert {key: n for key, n in state.answered.items() if n} == Counter((who, q.query) for who, q, _ in asked)
    counted = {a.question for a in shown.values() if a.counts}
    assert {kind: n for kind, n in state.asked.items() if n} == Counter(q.kind for q in counted)


CHANGES = st.lists(st.tuples(st.sampled_from(["set", "remove", "copy", "look"]), st.integers(0, 9)), max_size=60)


@given(CHANGES)
def test_layers_are_dicts_whose_copies_are_independent(changes: list[tuple[str, int]]):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_module, "MAX_CHANGES", 4)
        ours, plain = Layers({0: -1, 5: -1}), {0: -1, 5: -1}
        kept: list[tuple[Layers[int, int], dict[int, int]]] = []
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
    state, waiting = fold(State(), log), set()
    for question in state.answers:
        opinions = len(state.latest(question))
        if opinions and question.kind != "lists" and question not in state.settled:
            waiting |= {question} if opinions < state.settings.wanted(question) else set()
    assert set(state.waiting) == waiting


@given(logs(), NAMES, QUESTIONS, st.floats(0, 40))
def test_a_question_is_open_by_the_definition(log: list[Event], who: str, question: Question, now: float):
    state = fold(State(), log)
    judged, held = set(state.latest(question)), state.holders(question, now)
    skipped = {s.by for s in state.skipped.get(question, ())}
    free = who not in judged | held | skipped and question not in state.settled
    # A question that is answered enough is closed even where a lease of it still runs.
    room = question.kind == "lists" or len(judged | held) < state.settings.wanted(question)
    assert state.is_open(question, who, now) == (free and room)


@given(logs())
def test_events_come_back_from_rows(log: list[Event]):
    assert [decode(encode(event)) for event in log] == log


def test_every_event_comes_back_from_its_row():
    head = {"by": "ann", "time": 1.5, "number": 4}
    about, two = {**head, "query": "q", "documents": ("d",)}, {**head, "query": "q", "documents": ("e", "d")}
    pair = {**head, "query": "q", "doc": "d"}
    some: list[Event] = [
        Created(**head, setup=SETUP),
        Changed(**head, setup=SETUP),
        GuidelineChanged(**head, version=2, text="a\nb"),
        QueryGuidelinesChanged(**head, version=3, texts={"q": "é <b>", "r": ""}),
        QueriesChanged(**head, texts={"q": "é <b>"}),
        TopicsAssigned(**head, owners={"q": "ann", "r": ""}),
        Leased(**about, until=9.0),
        Leased(**two, asks="comparison", until=9.0, purpose=TaskPurpose.repeat),
        Leased(
            **about, until=9.0, pick=Pick(predicted=1.0, variance=0.5, centre=1.0, known=1, fitted=2, scores=(0.5,))
        ),
        Released(**about),
        Withdrawn(**about, judgment=3),
        Skipped(**two, asks="comparison", reason="r"),
        Flagged(**pair, reason="r"),
        Commented(**pair, text="é <b>"),
        Judged(**about, grade=2.0, guideline=1, source="f", at=0.5, seconds=3.5, token="t"),
        Adjudicated(**about, grade=1.0, reason="r"),
        GoldGradesChanged(**head, grades={"q": {"d": 2.0}}),
        Compared(**two, choice="left", relevant="both", comment="é"),
        Compared(**two, left_number=3.0, right_number=0.0, seconds=2.5),
        ComparisonAdjudicated(**two, choice="equal", reason="r"),
        GoldOrdersChanged(**head, orders={"q": (("d", "e"), ("f", "e"))}),
        ListsCompared(**head, query="q", documents=("3b", "3a"), choice="same", good=False, seconds=2.5),
        Imported(**head, source="f", judgments=3, answers=1),
        Labelled(**head, source="f", part="p", columns=("a", "b"), pairs=2),
        RunsAdded(**head, source="f", part="p", systems=("a", "b"), pairs=2),
        PhaseChanged(**head, phase=Phase.paused, reason="r"),
        Invited(**head, assessor="ann", role=Role.adjudicator, digest="d", until=9.0),
        Revoked(**head, assessor="ann"),
        SetAside(**head, assessor="ann", reason="r"),
        Restored(**head, assessor="ann"),
        SignedIn(**head, digest="d", until=9.0),
        SignedOut(**head, digest="d"),
    ]
    assert {event.kind for event in some} == set(event_classes())
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
    undo = Withdrawn(by="ann", time=3.0, query="q1", documents=("d1",), judgment=3)
    assert fold(State(), _begun(*twice)).latest(graded("q1", "d1"))["ann"].grade == 2
    assert fold(State(), _begun(*twice, undo)).latest(graded("q1", "d1"))["ann"].grade == 1


def test_one_grade_a_pair_by_the_rule_and_the_adjudicated_one_wins():
    said = [_judged("ann", "q1", "d1", 0), _judged("bob", "q1", "d1", 2), _judged("cy", "q1", "d1", 2)]
    settled = Adjudicated(by="eve", time=9.0, query="q1", documents=("d1",), grade=1.0)
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
    assert fold(State(), _begun(*log)).disagreements == [graded("q2", "d1"), graded("q1", "d1")]
    settled = Adjudicated(by="eve", time=9.0, query="q2", documents=("d1",), grade=1.0)
    assert fold(State(), _begun(*log, settled)).disagreements == [graded("q1", "d1")]


def test_for_the_model_grades_that_differ_stay_apart_until_they_are_settled():
    log = [
        *(_judged(who, "q1", "d1", grade) for who, grade in (("ann", 1), ("bob", 2))),
        *(_judged(who, "q2", "d2", grade) for who, grade in (("ann", 1), ("bob", 1))),
    ]
    differing = fold(State(), _begun(*log)).evidence
    assert (len(differing), len(differing.pool)) == (3, 2)
    low, high = differing.limits(Scale.graded(2))
    assert (low.tolist(), high.tolist()) == ([1, -1], [2, -1])
    settled = Adjudicated(by="eve", time=9.0, query="q1", documents=("d1",), grade=1.0)
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
