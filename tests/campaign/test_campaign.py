"""A campaign from its first pair to its export: leases, overlap, undo, adjudication, agreement, snapshots."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from probeval.campaign import Campaign, Judged, Leased, Setup, candidates
from probeval.campaign.questions import Question, graded
from probeval.campaign.snapshot import judgments_left, way_come
from probeval.data import Collection, Scale, read_judgments
from probeval.errors import CampaignError, MetricError, SatisfactionError, SelectionError
from probeval.relevance import choose_model, write_card
from probeval.reliability.agreement import krippendorff_alpha
from probeval.scores import evaluate
from probeval.streams import Purpose, stream
from tests.campaign.conftest import Clock, on_both_databases


def _truth(small: Collection) -> dict[tuple[str, str], float]:
    assert small.judgments is not None
    return {small.judgments.pool.label(i): g for i, g in enumerate(small.judgments.grades())}


def _judge_all(campaign: Campaign, truth: dict[tuple[str, str], float], *who: str) -> None:
    """Everybody judges in turn until nothing is left for anybody."""
    tasks = {name: campaign.next(name) for name in who}
    while any(tasks.values()):
        for name in who:
            if tasks[name]:
                task = tasks[name][0]
                grade = truth[task.query, task.doc]
                _, tasks[name] = campaign.answer_and_next(name, task.question, grade=grade)
            else:
                tasks[name] = campaign.next(name)


def test_next_gives_the_same_pair_until_it_is_judged_and_others_get_others(campaign: Campaign):
    first = campaign.next("ann")
    assert campaign.next("ann") == first
    assert campaign.next("ann", n=3)[0] == first[0]
    others = campaign.next("bob", n=3)
    assert not {(t.query, t.doc) for t in others} & {(t.query, t.doc) for t in campaign.next("ann", n=3)}
    judged = campaign.answer("ann", (first[0].query, first[0].doc), grade=2)
    assert first[0] not in campaign.next("ann", n=3)
    assert (judged.by, judged.grade, judged.guideline) == ("ann", 2.0, 0)


def test_a_lease_runs_out_and_a_late_judgment_still_counts(campaign: Campaign, clock: Clock):
    first = campaign.next("ann")[0]
    clock.now += campaign.setup.lease - 10
    assert campaign.next("bob")[0] != first
    clock.now += 20
    assert (campaign.next("cy")[0].query, campaign.next("cy")[0].doc) == (first.query, first.doc)
    campaign.answer("ann", (first.query, first.doc), grade=1)
    campaign.answer("cy", (first.query, first.doc), grade=2)
    assert len(campaign.state.latest(first.question)) == 2


def test_released_and_skipped_pairs_go_to_others(campaign: Campaign):
    first = campaign.next("ann")[0]
    pair = first.query, first.doc
    campaign.release("ann", pair)
    assert (campaign.next("bob")[0].query, campaign.next("bob")[0].doc) == pair
    campaign.skip("bob", pair, reason="not my language")
    assert (campaign.next("bob")[0].query, campaign.next("bob")[0].doc) != pair
    assert (campaign.next("cy")[0].query, campaign.next("cy")[0].doc) == pair


def test_two_never_hold_one_pair_unless_it_overlaps(make: Callable[..., Campaign], small: Collection):
    campaign = make(overlap=0.3, opinions=2)
    truth = _truth(small)
    names = [f"a{i}" for i in range(5)]
    threads = [threading.Thread(target=_judge_all, args=(campaign, truth, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _judge_all(campaign, truth, *names)  # opinions that were asked for when somebody had stopped
    held: dict[Question, dict[str, float]] = {}
    for event in campaign.log():
        if isinstance(event, Leased):
            mine = held.setdefault(event.question, {})
            mine[event.by] = event.until
            alive = [who for who, until in mine.items() if until > event.time]
            assert len(alive) <= campaign.setup.wanted(event.question)
        elif isinstance(event, Judged):
            held[event.question].pop(event.by)
    state = campaign.state
    assert len(state.judged) == len(campaign.pool)
    for pair, said in state.judged.items():
        assert len(said) == len({j.by for j in said}) == campaign.setup.wanted(graded(*pair))


def test_a_request_sent_twice_counts_once_and_a_token_means_one_thing(campaign: Campaign):
    pair, other = campaign.pool.label(0), campaign.pool.label(1)
    first = campaign.answer("ann", pair, grade=1, token="r1")
    assert campaign.answer("ann", pair, grade=1, token="r1") == first
    again, tasks = campaign.answer_and_next("ann", pair, grade=1, token="r1")
    assert again == first
    assert len(tasks) == 1
    assert sum(isinstance(e, Judged) for e in campaign.log()) == 1
    for who, where, grade in (("ann", pair, 2), ("bob", pair, 1), ("ann", other, 1)):
        with pytest.raises(CampaignError, match="was used for a different request"):
            campaign.answer(who, where, grade=grade, token="r1")
    with pytest.raises(CampaignError, match="was used for a different request"):
        campaign.skip("ann", pair, token="r1")
    undone = campaign.withdraw("ann", token="r2")
    assert campaign.withdraw("ann", token="r2") == undone


def test_undo_gives_the_pair_back_and_brings_the_earlier_grade_back(campaign: Campaign):
    task = campaign.next("ann")[0]
    pair = task.query, task.doc
    _, then = campaign.answer_and_next("ann", pair, grade=1)
    undone = campaign.withdraw("ann")
    assert undone.question == task.question
    assert [(t.query, t.doc) for t in campaign.next("ann", n=3)][:2] == [pair, (then[0].query, then[0].doc)]
    assert not campaign.state.judged
    campaign.answer("ann", pair, grade=1)
    better = campaign.answer("ann", pair, grade=2)
    campaign.withdraw("ann", better.number)
    assert campaign.state.latest(task.question)["ann"].grade == 1
    with pytest.raises(CampaignError, match=f"'ann' has no judgment {better.number} to withdraw"):
        campaign.withdraw("ann", better.number)
    with pytest.raises(CampaignError, match="'bob' has no judgment 3 to withdraw"):
        campaign.withdraw("bob", 3)  # it is ann's


def test_every_judgment_keeps_who_when_and_the_guideline(make: Callable[..., Campaign], clock: Clock):
    campaign = make(guideline="Old.")
    pair, other = campaign.pool.label(0), campaign.pool.label(1)
    campaign.answer("ann", pair, grade=1)
    assert campaign.change_guideline("eve", "New.").version == 2
    clock.now = 2_000_000.0
    late = campaign.answer("bob", other, grade=2)
    assert (late.by, late.time, late.guideline) == ("bob", 2_000_001.0, 2)
    assert campaign.state.judged[pair][0].guideline == 1
    rows = [json.loads(line) for line in campaign.export("jsonl").splitlines()]
    assert [(r["assessor"], r["guideline"], r["time"]) for r in rows if r["doc"] == other[1]] == [
        ("bob", 2, 2_000_001.0)
    ]


@on_both_databases
def test_texts_of_queries_may_come_later_and_everybody_sees_them(campaign: Campaign, store: str):
    task = campaign.next("ann")[0]
    assert task.text == ""
    with Campaign.open(store) as other:  # as a process of its own would
        other.change_queries("eve", {task.query: "what is it", "q99": "of another collection"})
    assert campaign.next("ann")[0].text == "what is it"
    assert campaign.queries == {query: "what is it" if query == task.query else "" for query in campaign.queries}
    assert "q99" not in campaign.state.texts


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ({"q99": "x"}, "Expected texts of this campaign's queries, such as 'q1'; got one of 'q99'"),
        ({"q1": " "}, "got one of 'q1'"),
        ({}, "got none"),
        ({"q1": "a\x00b"}, "The text of query 'q1' must be text without control characters"),
    ],
)
def test_texts_that_no_query_has_use_for_are_refused(make: Callable[..., Campaign], texts: dict[str, str], says: str):
    campaign = make()
    with pytest.raises(CampaignError, match=says):
        campaign.change_queries("eve", texts)
    assert campaign.state.number == 1
    if texts:
        with pytest.raises(CampaignError, match=says):
            make(name="other", queries=texts)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (lambda c, q, d: c.answer("ann", (q, d), grade=3), r"The grades of the scale graded:2 are 0, 1, 2; got 3"),
        (lambda c, q, d: c.answer("ann", (q, d), grade=float("nan")), "got nan"),
        (lambda c, q, d: c.answer("ann", (q, d), grade=-1), "got -1"),
        (lambda c, q, d: c.answer("ann", (q, d), grade=True), "got True"),
        (lambda c, q, d: c.answer("ann", (q, d), grade="2"), "got '2'"),
        (lambda c, q, d: c.answer("ann", (q, "none"), grade=1), "no run retrieves document 'none'"),
        (lambda c, q, d: c.answer("ann", ("q99", d), grade=1), "No query 'q99' in this campaign"),
        (lambda c, q, d: c.answer("", (q, d), grade=1), "must be one line of text, got ''"),
        (lambda c, q, d: c.answer("a\nb", (q, d), grade=1), "must be one line of text"),
        (lambda c, q, d: c.answer("a" * 101, (q, d), grade=1), "at most 100 characters, got 101"),
        (lambda c, q, d: c.answer("\ud800", (q, d), grade=1), "must be one line of text"),
        (lambda c, q, d: c.comment("ann", q, d, "a\x00b"), "A comment must be text without control characters"),
        (lambda c, q, d: c.comment("ann", q, d, "x" * 10_001), "at most 10,000 characters, got 10,001"),
        (lambda c, q, d: c.settle("eve", (q, d), grade=9), "got 9"),
        (lambda c, q, d: c.next("x\x00"), "must be one line of text"),
        (lambda c, q, d: c.change("eve", policy="gian"), "gain"),
        (lambda c, q, d: c.change("eve", goal="pair:a,b"), "No system 'a' among the runs"),
    ],
)
def test_steps_that_make_no_sense_are_refused_and_leave_no_trace(campaign: Campaign, step, says: str):
    with pytest.raises((CampaignError, SelectionError), match=says):
        step(campaign, *campaign.pool.label(0))
    assert campaign.state.number == 1


@on_both_databases
@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "'; DROP TABLE probeval_event; --", "../../x", "é\u202e😀", "a\nb"]
)
def test_texts_come_back_as_they_were_written(campaign: Campaign, text: str):
    pair = campaign.pool.label(0)
    campaign.comment("ann", *pair, text)
    campaign.flag("ann", *pair, reason=text)
    state = campaign.state
    assert (state.comments[pair][0].text, state.flags[pair][0].reason) == (text, text)
    assert "DROP" not in text or len(campaign.log()) == 3


def test_agreement_bias_and_adjudication_of_two_assessors(make: Callable[..., Campaign], small: Collection, tmp_path):
    campaign = make(overlap=0.5)
    truth = _truth(small)
    rng = np.random.default_rng(3)
    pairs = [p for p in map(campaign.pool.label, range(len(campaign.pool))) if campaign.setup.wanted(graded(*p)) == 2]
    ann = {pair: truth[pair] for pair in pairs}
    bob = {pair: min(truth[pair] + (rng.random() < 0.4), 2) for pair in pairs}
    for pair in pairs:
        campaign.answer("ann", pair, grade=ann[pair])
        campaign.answer("bob", pair, grade=bob[pair])
    status = campaign.status()
    both = np.array([[ann[p] for p in sorted(pairs)], [bob[p] for p in sorted(pairs)]])
    assert status.alpha == pytest.approx(krippendorff_alpha(both, level="ordinal"))
    assert (status.shared, status.overlap, status.overlap_done) == (len(pairs),) * 3
    gap = both[1] - both[0]
    shares = {share.assessor: share for share in status.assessors}
    assert shares["bob"].bias == pytest.approx(gap.mean())
    assert shares["ann"].bias == pytest.approx(-gap.mean())
    assert shares["bob"].bias_error == pytest.approx(gap.std(ddof=1) / np.sqrt(len(gap)))
    assert shares["bob"].seconds == 2.0  # ann's and bob's judgments take turns, a second each
    assert status.disagreements == (gap != 0).sum() > 1

    (worst,) = campaign.state.disagreements[0].pairs
    campaign.settle("eve", worst, grade=0, reason="both missed the date")
    after = campaign.status()
    assert (after.adjudicated, after.disagreements) == (1, status.disagreements - 1)
    qrels = {(q, d): (how, float(g)) for q, how, d, g in map(str.split, campaign.export("qrels").splitlines())}
    assert qrels[worst] == ("adjudicated", 0.0)
    assert all(how == "0" for pair, (how, _) in qrels.items() if pair != worst)
    rows = [json.loads(line) for line in campaign.export("jsonl").splitlines()]
    (row,) = [r for r in rows if (r["query"], r["doc"]) == worst]
    assert (row["grade"], row["assessor"], row["adjudicated"]) == (0, "eve", True)
    assert row["overruled"] == f"ann:{ann[worst]:g} bob:{bob[worst]:g}"

    (tmp_path / "out.csv").write_text(campaign.export("csv"))
    (tmp_path / "out.txt").write_text(campaign.export("qrels"))
    settled = campaign.state.judgments
    for name in ("out.csv", "out.txt"):  # what is read back is what the campaign says
        back = read_judgments(tmp_path / name).on(settled.pool)
        np.testing.assert_array_equal(back.grades(), settled.grades())


def test_status_before_anything_is_judged(campaign: Campaign):
    status = campaign.status()
    assert (status.judged, status.judgments, status.shared, status.left, status.snapshot) == (0, 0, 0, None, None)
    assert np.isnan(status.alpha)
    assert status.to_frame().empty
    json.dumps(status.to_dict())


@on_both_databases
def test_the_model_proposes_and_everybody_sees_it(campaign: Campaign, store: str):
    assert campaign.is_behind
    with Campaign.open(store) as other:  # as a process of its own would
        snapshot = other.refresh()
    assert not campaign.is_behind
    assert campaign.snapshot == snapshot
    assert snapshot.judged == 0
    assert [row.system for row in snapshot.systems] == campaign.evaluate().order
    tasks = campaign.next("ann", n=3)
    assert [(t.query, t.doc) for t in tasks] == list(snapshot.queue[:3])
    campaign.answer("ann", (tasks[0].query, tasks[0].doc), grade=1)
    assert campaign.is_behind
    assert campaign.status().behind == 1
    newer = campaign.refresh()
    assert newer.judged == 1
    assert (tasks[0].query, tasks[0].doc) not in newer.queue
    assert [point["judged"] for point in campaign.curve()] == [0, 1]


@on_both_databases
def test_an_outlook_of_less_does_not_replace_one_of_more(campaign: Campaign):
    old = campaign.refresh()
    campaign.answer("ann", campaign.pool.label(0), grade=1)
    new = campaign.refresh()
    campaign._log.store.add_snapshot(campaign._log.key, old.to_row())
    assert campaign._log.store.snapshot(campaign._log.key)["number"] == new.number
    assert len(campaign.curve()) == 2


def test_evaluation_is_that_of_the_exported_judgments(make: Callable[..., Campaign], small: Collection):
    campaign = make(metric="nDCG@5", model="text-jud")
    truth = _truth(small)
    for i in range(0, len(campaign.pool), 2):
        campaign.answer("ann", campaign.pool.label(i), grade=truth[campaign.pool.label(i)])
    choice = choose_model("text-jud", small, scale=Scale.graded(2))
    judged = replace(small, judgments=campaign.state.judgments)
    relevance = choice.model.predict(judged.problem(depth=5, scale=Scale.graded(2)))
    scores = evaluate(small.runs.top(5), relevance, "nDCG@5", rng=stream(0, Purpose.SCORES))
    np.testing.assert_allclose(campaign.evaluate().scores.mean, scores.mean)


def test_the_way_begins_at_the_first_look():
    assert way_come([]) is None
    assert way_come([(0, 0.28)]) == 0
    assert way_come([(0, 0.28), (18, 0.25)]) == 0  # surer at first than now
    assert way_come([(0, 0.2), (30, 0.6)]) == pytest.approx(0.5)
    assert way_come([(0, 0.2), (90, 1.0)]) == way_come([(0, 1.0)]) == 1
    assert way_come([(0, 1.0), (30, 0.7)]) == 0.7  # the target was raised


def test_what_is_left_is_unknown_until_twenty_judgments_were_seen_to_come():
    assert judgments_left([], 500) is None
    assert judgments_left([(0, 0.1), (1, 0.4)], 500) is None
    assert judgments_left([(300, 0.1), (319, 0.4)], 500) is None  # judgments that were there before teach nothing
    assert judgments_left([(300, 0.1), (320, 0.4)], 500) == 40
    assert judgments_left([(0, 0.1), (1, 1.0)], 500) == 0
    one_by_one = [(n, n / 100) for n in range(51)]
    assert judgments_left(one_by_one, 500) == 50
    assert judgments_left(one_by_one, 30) == 30


def test_judged_to_the_end_the_target_is_met_and_nothing_is_left(make: Callable[..., Campaign], small: Collection):
    campaign = make(stopping="confidence=.95")
    _judge_all(campaign, _truth(small), "ann", "bob")
    snapshot = campaign.refresh()
    assert snapshot.reached
    assert snapshot.confidence == 1
    assert snapshot.queue == ()
    assert campaign.next("ann") == []
    assert campaign.status().left == 0
    assert small.judgments is not None
    assert campaign.state.judgments.fingerprint() == small.judgments.on(campaign.pool).fingerprint()


def test_a_withdrawn_judgment_is_forgotten_by_the_model(campaign: Campaign):
    before = campaign.refresh()
    campaign.answer("ann", campaign.pool.label(0), grade=2)
    campaign.refresh()
    campaign.withdraw("ann")
    after = campaign.refresh()
    assert [row.mean for row in after.systems] == [row.mean for row in before.systems]
    assert after.judged == 0


def test_a_card_of_ones_own_is_kept_with_the_campaign(make: Callable[..., Campaign], small: Collection, tmp_path):
    card = choose_model("text-jud", small, scale=Scale.graded(2)).card
    assert card is not None
    write_card(replace(card, name="mine"), tmp_path / "mine")
    campaign = make(model=str(tmp_path / "mine"))
    for file in (tmp_path / "mine").iterdir():
        file.unlink()
    same = make(model="text-jud", name="shipped")
    assert campaign.setup.model == "mine"
    assert campaign.refresh().systems == same.refresh().systems


def test_judgments_of_the_collection_are_the_first_of_the_campaign(make: Callable[..., Campaign], store, small):
    with Campaign.create(store, small, metric="nDCG@5", model="uniform", name="judged", by="trec") as campaign:
        assert len(campaign.state.judged) == len(small.judgments.pool)
        assert campaign.setup.scale == Scale.graded(2)
        assert campaign.next("ann") == []


def test_settings_change_and_the_log_says_so(campaign: Campaign):
    campaign.change("eve", overlap=1.0, stopping="budget=10")
    assert (campaign.setup.overlap, campaign.setup.stopping) == (1.0, "budget=10")
    pair = campaign.pool.label(0)
    campaign.answer("ann", pair, grade=1)
    first = campaign.next("bob")[0]
    assert (first.query, first.doc) == pair  # it wants another opinion now


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"metric": "NDGC@5"}, MetricError, "Did you mean 'nDCG@5'"),
        ({"policy": "gian"}, SelectionError, "gain"),
        ({"stopping": "confidence=2"}, SelectionError, "probability"),
        ({"goal": "pair:system-1,nobody"}, CampaignError, "among the runs"),
        ({"goal": "success", "metric": "RR@5"}, SatisfactionError, "goal success: no mapping .* with --mapping"),
        ({"name": " "}, CampaignError, "The name of a campaign"),
    ],
)
def test_campaigns_that_make_no_sense_are_refused(make: Callable[..., Campaign], settings, error, says):
    with pytest.raises(error, match=says):
        make(**settings)


def test_the_measure_follows_the_goal_of_success(make: Callable[..., Campaign]):
    campaign = make(metric="DCG@5")
    campaign.change("eve", goal="success")
    assert (campaign.setup.metric, campaign.setup.goal) == ('PSucc(mapping="DCGl@5/broad")', "success")


def test_ids_that_no_qrels_could_hold_are_refused(make, small: Collection, store: str):
    from probeval.data import Runs

    odd = Collection("odd", Runs.rows(["a", "b"], ["q 1", "q 1"], ["d", "e"], [1.0, 2.0]))
    with pytest.raises(CampaignError, match="must not contain white space or control characters, got 'q 1'"):
        Campaign.create(store, odd, metric="P@5", model="uniform")


def test_setups_come_back_from_plain_data():
    tabled = Scale.graded(3).with_gain("0,.25,.5,1")
    for scale in (Scale.binary(), Scale.graded(3, gain="exp"), Scale.fine(), tabled):
        setup = Setup(name="x", metric="AP", scale=scale, model="m", depth=7, opinions=3, overlap=0.2)
        assert Setup.from_dict(json.loads(json.dumps(setup.to_dict()))) == setup


def test_assessors_judge_on_a_scale_of_grades():
    given = {"name": "x", "metric": "AP", "model": "m", "depth": 7}
    for scale in ("fine:4", "binary:40", "real"):
        with pytest.raises(CampaignError, match=f"Assessors judge on a scale of grades .*, got {scale}"):
            Setup(scale=Scale.parse(scale), **given)
    with pytest.raises(CampaignError, match="Unknown rule 'mean'"):
        Setup(scale=Scale.binary(), rule="mean", **given)


def test_a_lease_keeps_the_prediction_and_the_probability_of_its_pair(make, small):
    campaign, truth = make(explore=0.5), _truth(small)
    campaign.refresh()
    for _ in range(12):
        task = campaign.next("ann")[0]
        campaign.answer("ann", task.question, grade=truth[task.query, task.doc])
    leases = [event for event in campaign.log() if isinstance(event, Leased)]
    assert [lease.pick is not None and lease.pick.probability is not None for lease in leases] == [False, True] * 6
    assert all(0 < lease.pick.probability < 1 for lease in leases[1::2] if lease.pick)
    campaign.refresh()
    report = campaign.audit()
    assert (report.draws, report.judged) == (6, 12)
    status = campaign.status()
    assert "Audit: level" in status.summary()
    assert "6 of the judged pairs were drawn at random, too few to tell" in status.summary()
    assert status.to_dict()["snapshot"]["audit"]["draws"] == 6
    # A second opinion and a judgment withdrawn and given again are the same pick.
    last = campaign.withdraw("ann")
    assert campaign.audit().judged == 11
    campaign.answer("ann", last.question, grade=0)
    assert campaign.audit().judged == 12
    campaign.change("owner", metric="P@5")
    assert campaign.audit().judged == 0  # predictions were of another measure


def test_a_log_without_predictions_is_read_and_has_nothing_to_audit(campaign, small):
    truth = _truth(small)
    for _ in range(5):  # no snapshot yet: pairs come by popularity
        task = campaign.next("ann")[0]
        campaign.answer("ann", task.question, grade=truth[task.query, task.doc])
    assert all(event.pick is None for event in campaign.log() if isinstance(event, Leased))
    assert campaign.audit().judged == 0
    snapshot = campaign.refresh()
    row = snapshot.to_row()
    body = {k: v for k, v in json.loads(row["body"]).items() if k not in ("audit", "picks", "digest")}
    older = type(snapshot).from_row({**row, "body": json.dumps(body)})
    assert (older.audit, older.picks) == (None, ())
    assert older.queue == snapshot.queue
    assert type(snapshot).from_row(row).picks == snapshot.picks


def test_pairs_without_a_grade_are_found_again_after_many_judgments_and_after_a_withdrawal(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
):
    """A queue that leaves out what is judged: no pair that is open is missing from it."""
    monkeypatch.setattr(candidates, "AGAIN", 3)
    known, sizes = campaign._candidates(campaign.state), []
    for turn in range(8):
        (task,) = campaign.next("ann")
        campaign.answer("ann", task.question, grade=1)
        if turn == 5:
            campaign.withdraw("ann")
        state, queue = campaign.state, known.without_grade(campaign.state)
        left = [pair for pair in known.popular.pairs if not state.given(pair)]
        assert [pair for pair in queue.pairs if not state.given(pair)] == left
        sizes.append(len(queue.pairs))
    assert sizes[0] > sizes[-1]
