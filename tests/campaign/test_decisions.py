"""Decisions: events as a pure function of a state and a time, and requests that are repeated."""

from __future__ import annotations

import pytest

from probeval.campaign import Created, Event, Judged, Leased, Setup, State, fold
from probeval.campaign.candidates import QuestionQueues
from probeval.campaign.changes import ChangeGuideline
from probeval.campaign.decisions import Answer, Decision, LeaseNext, Skip, Withdraw
from probeval.campaign.log import Log, PendingDecision, Store
from probeval.campaign.questions import Question, graded
from probeval.data import Scale
from probeval.errors import CampaignError
from probeval.selection.topics import Queue

PAIR, OTHER = graded("q", "d"), graded("q", "e")


def in_order(*pairs):
    return Queue(pairs, [pair.query for pair in pairs], [1.0] * len(pairs), [None] * len(pairs))


SETUP = Setup(name="mine", metric="P@5", scale=Scale.binary(), model="uniform", depth=5, lease=60.0)


def answer(question: Question, grade: float = 1.0, by: str = "ann", **options: object) -> Answer:
    return Answer(by=by, question=question, values={"grade": grade}, **options)  # type: ignore[arg-type]


def _after(decision: Decision, state: State, now: float = 5.0) -> tuple[State, PendingDecision]:
    pending = PendingDecision(decision, lambda: now)
    return pending.take(state), pending


@pytest.fixture
def state() -> State:
    return fold(State(), [Created(by="eve", time=0.0, number=1, setup=SETUP)])


def test_the_same_state_and_time_give_the_same_events(state: State):
    following = LeaseNext(
        assessor="ann", n=1, questions=lambda after: QuestionQueues([in_order(PAIR, OTHER)]), picks={}
    )
    decision = answer(PAIR, next=following)
    first, again = (decision.take(state, 5.0).events for _ in range(2))
    assert first == again
    assert [(type(event), event.question) for event in first] == [(Judged, PAIR), (Leased, OTHER)]
    assert first[1].until == 65.0
    assert state.number == 1


def test_a_repeated_request_adds_nothing_and_its_outcome_is_the_earlier_event(state: State):
    decision = answer(PAIR, token="r1")
    after, first = _after(decision, state)
    still, again = _after(decision, after, now=9.0)
    assert again.outcome().event == first.outcome().event == after.tokens["r1"]
    assert (again.events, still.number) == ((), 2)


@pytest.mark.parametrize(
    "other",
    [
        answer(PAIR, by="bob", token="r1"),
        answer(OTHER, token="r1"),
        answer(PAIR, 0.0, token="r1"),
        Skip(by="ann", question=PAIR, token="r1"),
        ChangeGuideline(by="ann", text="New.", token="r1"),
    ],
)
def test_a_token_of_another_request_is_refused(state: State, other: Decision):
    after, _ = _after(answer(PAIR, token="r1"), state)
    unchanged, refused = _after(other, after)
    assert unchanged is after
    assert refused.events == ()
    with pytest.raises(CampaignError, match="The token 'r1' was used for a different request"):
        refused.outcome()


def test_a_repeated_withdrawal_finds_its_event_after_the_judgment_is_gone(state: State):
    judged, _ = _after(answer(PAIR), state)
    withdrawn, first = _after(Withdraw(by="ann", token="r2"), judged)
    _, again = _after(Withdraw(by="ann", token="r2"), withdrawn)
    assert first.outcome().event.judgment == 2
    assert again.outcome().event == first.outcome().event
    assert again.events == ()  # the pair is leased already


def test_a_decision_taken_again_replaces_its_outcome(state: State):
    pending = PendingDecision(ChangeGuideline(by="eve", text="New."), lambda: 5.0)
    pending.take(state)
    later, _ = _after(ChangeGuideline(by="bob", text="Other."), state)
    pending.take(later)  # as after a transaction that the database rolled back
    outcome = pending.outcome()
    assert (outcome.event.version, outcome.event.number, outcome.state.number) == (2, 3, 3)
    assert outcome.events == (outcome.event,)


class Broken(Decision[Event]):
    """A decision with a bug."""

    def events(self, state: State, now: float) -> list[Event]:
        raise ZeroDivisionError

    def event_asked_for(self, state: State, events: object) -> Event:
        pytest.fail("no events, so none is asked for")


def test_a_bug_in_a_decision_reaches_its_caller_and_the_log_goes_on(campaign):
    log: Log = campaign._log
    assert isinstance(log.store, Store)
    with pytest.raises(ZeroDivisionError):
        log.advance(Broken())
    assert log.advance(answer(graded(*campaign.pool.label(0)))).event.number == 2
