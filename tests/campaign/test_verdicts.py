"""Verdicts on assessors: the mathematics, who is named and who is not; answers that are set aside and come back."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, stats

from probeval.campaign import Campaign, Restored, SetAside, State, fold
from probeval.campaign import verdicts as own
from probeval.campaign.verdicts import (
    ALARM,
    CARELESS,
    CheckedAnswers,
    answer_errors,
    careful_answers,
    posterior_of,
    surprise_of,
)
from probeval.data import read_judgments
from probeval.errors import CampaignError

Make = Callable[..., Campaign]
Answers = dict[str, tuple[np.ndarray, np.ndarray]]
LEVELS = 4
SHARES = np.array([0.5, 0.25, 0.15, 0.1])


def _answers(rng: np.random.Generator, n: int, *, wrong: float = 0.1, lapses: float = 0.0, shift: int = 0):
    """Known grades, and the answers of an assessor; careful errors are by one grade, or seldom by more."""
    known = rng.choice(LEVELS, n, p=SHARES)
    at = int(np.argmin(np.abs(own.ERRORS - wrong)))
    careful = careful_answers(LEVELS)[at]
    given = np.array([rng.choice(LEVELS, p=careful[min(LEVELS - 1, max(0, g + shift))]) for g in known])
    return known, np.where(rng.random(n) < lapses, rng.integers(LEVELS, size=n), given)


def _evidence(answers: Answers, n: int | None = None) -> CheckedAnswers:
    given = {name: np.bincount(y[:n], minlength=LEVELS).astype(float) for name, (_, y) in answers.items()}
    total = sum(given.values()) + 1 / LEVELS
    found = CheckedAnswers(total / total.sum(), given)
    for name, (known, y) in answers.items():
        found.known[name] = np.zeros((LEVELS, LEVELS))
        np.add.at(found.known[name], (known[:n], y[:n]), 1)
    return found


def _careless(answers: Answers, n: int | None = None) -> dict[str, float]:
    found = posterior_of(list(answers), [_evidence(answers, n)], {})
    return {name: care.careless for name, care in found.items()}


def test_the_posterior_is_that_of_the_formula():
    """By integration over the share at random and the sum over errors and shifts, for one assessor with gold."""
    answers = {"ann": _answers(np.random.default_rng(3), 12, lapses=0.5)}
    evidence = _evidence(answers)
    q, (known, given) = evidence.habits("ann"), answers["ann"]

    def density(random: float) -> float:
        total = 0.0
        for error, weight in zip(careful_answers(LEVELS), own.ERROR_PRIOR, strict=True):
            for shift, share in ((-1, 0.1), (0, 0.8), (1, 0.1)):
                p = [error[min(LEVELS - 1, max(0, g + shift)), y] for g, y in zip(known, given, strict=True)]
                total += weight * share * np.prod((1 - random) * np.array(p) + random * q[given])
        careful = stats.beta(1, 19)
        prior = CARELESS / (2 / 3) if random > 1 / 3 else (1 - CARELESS) * careful.pdf(random) / careful.cdf(1 / 3)
        return float(total * prior)

    low, high = (integrate.quad(density, *ends)[0] for ends in ((0, 1 / 3), (1 / 3, 1)))
    assert _careless(answers)["ann"] == pytest.approx(high / (low + high), abs=0.03)  # on a grid of 24 shares


def test_nothing_known_leaves_the_prior():
    found = posterior_of(["ann", "bob"], [CheckedAnswers(SHARES)], {})
    assert found["ann"].careless == pytest.approx(CARELESS)
    (doubted,) = posterior_of(["ann"], [], {"ann": 9.0}).values()  # nine times as probable: even
    assert doubted.careless == pytest.approx(0.5)


def test_a_careless_assessor_is_named_and_a_strict_one_is_not():
    rng = np.random.default_rng(0)
    answers = {name: _answers(rng, 40) for name in ("ann", "bob", "cy")}
    answers |= {"dan": _answers(rng, 40, lapses=0.75), "eve": _answers(rng, 40, shift=-1)}
    found = _careless(answers)
    assert found.pop("dan") > ALARM
    assert max(found.values()) < 0.05


def test_who_disagrees_with_a_careless_assessor_is_not_careless():
    """Bob and Dan differ on half of their pairs; Dan's gold answers say whose fault it is."""
    rng = np.random.default_rng(1)
    answers = {"bob": _answers(rng, 30), "dan": _answers(rng, 30, lapses=0.8)}
    evidence = _evidence(answers)
    known, theirs = _answers(rng, 30, lapses=0.8)
    both = np.zeros((LEVELS, LEVELS))
    np.add.at(both, (theirs, known), 1)
    evidence.with_others.update({"bob": {"dan": both}, "dan": {"bob": both.T}})
    found = posterior_of(["bob", "dan"], [evidence], {})
    assert found["bob"].careless < 0.2
    assert found["dan"].careless > ALARM
    assert found["dan"].random > 0.5


def test_answers_that_the_model_does_not_expect_tell_of_a_careless_assessor():
    rng, n = np.random.default_rng(5), 60
    level = rng.choice(LEVELS, n, p=SHARES)
    expected = 0.9 * np.eye(LEVELS)[level] + 0.1 * SHARES
    careful = np.array([rng.choice(LEVELS, p=p) for p in expected])
    answers = {"ann": careful, "dan": np.where(rng.random(n) < 0.8, rng.integers(LEVELS, size=n), careful)}
    found = {name: surprise_of(name, expected, given, SHARES) for name, given in answers.items()}
    assert found["dan"].surprising > 2 * max(found["dan"].by_chance, found["ann"].surprising)
    evidence = CheckedAnswers(SHARES, {name: np.bincount(y, minlength=LEVELS) * 1.0 for name, y in answers.items()})
    shape = (len(own.shifts_of(LEVELS)), own.N, len(own.ERRORS))
    evidence.expected.update({name: np.reshape(one.log_likelihood, shape) for name, one in found.items()})
    care = posterior_of(list(answers), [evidence], {})
    assert care["dan"].careless > ALARM
    assert care["ann"].careless < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "assessors"), [(0.4, 5), (0.15, 3)])
def test_equally_good_assessors_are_rarely_named_even_if_looked_at_often(wrong: float, assessors: int):
    """At most 10 of 100 campaigns with up to 60 gold answers each, looked at after every fifth."""
    named = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        answers = {str(who): _answers(rng, 60, wrong=wrong) for who in range(assessors)}
        named += any(max(_careless(answers, n).values()) >= ALARM for n in range(5, 61, 5))
    assert named <= 6


# Answers that are set aside


def _judged(campaign: Campaign) -> None:
    for i in range(9):
        for who in ("ann", "bob", "dan")[: 1 + i % 3]:
            campaign.answer(who, campaign.pool.label(i), grade=2 if who == "dan" else 1)


def _seen(state: State) -> dict[str, object]:
    """What follows from the answers, in a state."""
    given = {q: sorted(state.latest(q)) for q in state.answers if state.latest(q)}
    return {
        "given": given,
        "asked": dict(state.asked),
        "waiting": set(state.waiting),
        "judged": sorted(state.judged),
        "grades": state.judgments.grades().tolist(),
        "disagreements": state.disagreements,
    }


def test_answers_are_set_aside_and_come_back(make: Make):
    campaign = make(overlap=1.0, opinions=3, repeat_share=0.1)
    _judged(campaign)
    before = _seen(campaign.state)
    assert any("dan" in names for names in before["given"].values())
    number = campaign.state.changed
    event = campaign.set_aside("eve", "dan", reason="gold")
    state = campaign.state
    assert (event.assessor, state.set_aside, state.changed) == ("dan", ("dan",), event.number)
    assert number < event.number  # the model runs again
    assert _seen(state) == _seen(
        fold(State(), [e if e.by != "dan" else _empty(e) for e in campaign.log()[: event.number - 1]])
    ) | {"waiting": set(state.waiting)}
    assert all(state.is_open(q, "zoe", 0.0) for q in state.answers if len(state.latest(q)) < 3)
    assert campaign.next("dan") == []
    late = campaign.pool.label(20)
    campaign.answer("dan", late, grade=0)  # nothing is lost, and it does not count
    assert late not in campaign.state.judged
    with pytest.raises(CampaignError, match="are set aside already"):
        campaign.set_aside("eve", "dan")
    campaign.restore("eve", "dan")
    campaign.withdraw("dan")  # the late one
    assert _seen(campaign.state) == before
    assert campaign.next("dan")
    with pytest.raises(CampaignError, match="'dan' are not set aside"):
        campaign.restore("eve", "dan")
    with pytest.raises(CampaignError, match=r"'dam' has answered nothing\. Did you mean 'dan'"):
        campaign.set_aside("eve", "dam")
    assert fold(State(), campaign.log()).answers == campaign.state.answers
    assert [type(e) for e in campaign.log() if isinstance(e, (SetAside, Restored))] == [SetAside, Restored]


def _empty(event):
    """An event in the place of an answer, which says nothing."""
    from probeval.campaign import Commented

    return Commented(by="x", time=event.time, number=event.number, query="q", doc="d", text="-")


def test_a_person_whose_answers_are_set_aside_is_shown_and_exported_as_such(make: Make, tmp_path):
    campaign = make()
    _judged(campaign)
    campaign.set_aside("eve", "dan", reason="look, dan")
    status = campaign.status()
    verdict = {each.assessor: each for each in status.verdicts}["dan"]
    assert verdict.set_aside
    assert "The answers of dan are set aside: they do not count." in status.summary()
    assert {share.assessor: share.judgments for share in status.assessors}["dan"] == 0
    rows = list(csv.DictReader(io.StringIO(campaign.export("csv"))))
    assert {row["purpose"] for row in rows if row["assessor"] == "dan"} == {"aside"}
    (tmp_path / "judged.csv").write_text(campaign.export("csv"))
    assert "dan" not in read_judgments(tmp_path / "judged.csv").assessors
    statement = campaign.statement()
    assert [(c.event, c.what) for c in statement.changes] == [("set aside", "all answers of one person")]
    assert not any("dan" in sentence for sentence in statement.sentences())


# A quiz, and a least share of right answers


def test_a_quiz_comes_first_and_too_few_right_answers_set_a_person_aside(make: Make):
    campaign = make(quiz=6, least_right=0.5, gold_share=0.1, seed=2)
    campaign.change_gold("eve", {query: {f"{query}-gold{i}": 1.0 for i in range(3)} for query in campaign.queries})
    purposes: dict[str, list[str]] = {"ann": [], "dan": []}
    for _ in range(12):
        for who, seen in purposes.items():
            for task in campaign.next(who):
                held = campaign.state.leases[task.question][who]
                seen.append(held.purpose)
                campaign.answer_and_next(who, task.question, grade=1 if who == "ann" else 2)
    assert purposes["ann"][:6] == purposes["dan"] == ["gold"] * 6
    assert "judgment" in purposes["ann"][6:]
    assert campaign.state.set_aside == ("dan",)
    (event,) = [event for event in campaign.log() if isinstance(event, SetAside)]
    assert (event.by, event.reason) == ("dan", "0 of 6 gold questions right, and 50% is the least share")
    campaign.change("eve", gold_share=0.5)
    campaign.restore("eve", "dan")
    while campaign.next("dan"):  # new answers alone count: after six more the person is out again
        (task,) = campaign.next("dan")
        campaign.answer("dan", task.question, grade=2)
    gold = [e for e in campaign.log() if getattr(e, "purpose", "") == "gold" and e.by == "dan" and e.kind == "judged"]
    assert len(gold) == 12
    assert campaign.state.set_aside == ("dan",)


def test_without_a_quiz_five_gold_answers_decide_and_their_questions_open_again(make: Make):
    campaign = make(least_right=0.5, gold_share=0.5, seed=1)
    campaign.change_gold("eve", {query: {f"{query}-gold{i}": 1.0 for i in range(3)} for query in campaign.queries})
    while campaign.next("dan"):
        (task,) = campaign.next("dan")
        campaign.answer("dan", task.question, grade=2)
    given = [answer for answers in campaign.state.answers.values() for answer in answers]
    assert sum(answer.purpose == "gold" for answer in given) == 5
    assert any(answer.purpose == "aside" for answer in given)
    assert not campaign.state.judged
    assert sum(campaign.state.asked.values()) == 0


def test_bad_settings_of_a_quiz_get_one_line(make: Make):
    campaign = make()
    with pytest.raises(CampaignError, match="The questions of a quiz must be 0 or more, got -1"):
        campaign.change("eve", quiz=-1)
    with pytest.raises(CampaignError, match=r"The least share of right answers must be from 0 to 1, got 1\.5"):
        campaign.change("eve", least_right=1.5)


# Errors inside the confidence


def _checked(make: Make, **settings: object) -> Campaign:
    """Three assessors with gold; dan is careless."""
    campaign = make(gold_share=0.4, overlap=0.3, seed=4, **settings)
    campaign.change_gold("eve", {q: {f"{q}-gold{i}": float(i % 3) for i in range(6)} for q in campaign.queries})
    rng = np.random.default_rng(2)
    for _ in range(30):
        for who in ("ann", "bob", "dan"):
            for task in campaign.next(who):
                known = campaign.state.gold.get(task.question, len(task.doc) % 3)
                campaign.answer(who, task.question, grade=float(rng.integers(3)) if who == "dan" else known)
    return campaign


def test_answers_by_consensus_are_less_sure_than_answers_as_certain(make: Make):
    campaign = _checked(make)
    snapshot = campaign.refresh()
    certain, consensus = snapshot.as_certain, snapshot.by_consensus
    assert certain is not None
    assert consensus is not None
    assert snapshot.confidence == certain.confidence
    assert consensus.confidence < certain.confidence
    said = f"the confidence is {consensus.confidence:.3f}"
    assert said in campaign.status().summary()
    campaign.change("eve", answers_as="consensus")
    chosen = campaign.refresh()
    assert chosen.confidence == chosen.by_consensus.confidence == campaign.evaluate().confidence
    assert chosen.judged == snapshot.judged  # and no judged pair is asked for again
    disputed = {question.pairs[0] for question in campaign.state.contested("grade")}
    assert not {*chosen.queue} & ({*campaign.state.judged} - disputed)
    assert "The campaign takes answers by consensus." in campaign.status().summary()
    assert campaign.statement().systems[0].mean == pytest.approx(chosen.systems[0].mean)


def test_the_errors_of_a_careless_assessor_are_wide(make: Make):
    errors = answer_errors(_checked(make).state, ())
    assert errors.checks > 20
    for name in ("ann", "bob", "dan"):
        assert errors.answers[name].sum(axis=1) == pytest.approx(1)
    right = {name: np.diag(answers).mean() for name, answers in errors.answers.items()}
    assert right["dan"] < 0.7 < 0.85 < min(right["ann"], right["bob"])
    both = errors.likelihood({"ann": 2, "bob": 2}, 3)
    assert both[2] == 1
    assert both[0] < errors.likelihood({"ann": 2}, 3)[0] < errors.likelihood({"dan": 2}, 3)[0]


def test_without_a_check_grades_are_taken_as_right(make: Make):
    campaign = make(answers_as="consensus")
    for i in range(5):
        campaign.answer("ann", campaign.pool.label(i), grade=i % 3)
    snapshot = campaign.refresh()
    assert snapshot.by_consensus is None
    assert snapshot.confidence == snapshot.as_certain.confidence
    assert "Grades are taken as right: no answer is checked" in campaign.status().summary()
    with pytest.raises(CampaignError, match="Answers count as certain or by consensus; got 'certan'"):
        campaign.change("eve", answers_as="certan")
