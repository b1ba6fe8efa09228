"""Several simulated assessors, and what judging by topic does to the order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from probeval.errors import SelectionError
from probeval.relevance import FallbackModel, Uniform
from probeval.simulation import HeldOut, Simulation, SimulationProtocol, replay

MODEL = FallbackModel([Uniform()])


@pytest.fixture(scope="module")
def held(campaign):
    return HeldOut.of(campaign("one", 1), depth=5)


def run(held, policy="gain", seed=0, **options):
    options = {"metric": "DCG@5", "stop": "budget=60", "checkpoints": (), "until": 0.7, "batch": 5, **options}
    return replay(held, MODEL, SimulationProtocol.of(**options), policy=policy, name="uniform", seed=seed)


def test_the_number_of_assessors_does_not_change_free_choice(held):
    one, five = run(held), run(held, assessors=5)
    assert one.order == five.order
    assert one.probabilities == five.probabilities
    assert set(one.judged_by) == {0}
    assert list(five.judged_by) == [i % 5 for i in range(len(five.order))]
    assert one.switches > 50


def test_owners_keep_to_their_topics(held):
    got = run(held, assessors=3, topics="owned", stay=1.0)
    owners = {}
    for query, who in zip(got.queries, got.judged_by, strict=True):
        assert owners.setdefault(query, who) == who
    assert len(set(got.order)) == len(got.order)
    assert [share.judgments for share in got.work] == [20, 20, 20]


def test_nobody_takes_a_topic_that_another_is_in(held):
    got = run(held, assessors=3, topics="in-turn", stay=1.0)
    current = {}
    for query, who in zip(got.queries, got.judged_by, strict=True):
        assert all(topic != query for other, topic in current.items() if other != who)
        current[who] = query


def test_a_price_means_fewer_switches(held):
    switches = [run(held, assessors=2, topics="owned", stay=stay).switches for stay in (0.0, 0.5, 3.0)]
    assert switches[0] > switches[1] > switches[2]


def test_switches_are_those_of_each_assessor(held):
    got = run(held, assessors=2, topics="free", stay=0.5)
    for share in got.work:
        mine = [q for q, a in zip(got.queries[:60], got.judged_by[:60], strict=True) if a == share.assessor - 1]
        assert share.switches == pytest.approx(100 * sum(a != b for a, b in pairwise(mine)) / len(mine))
    judged = sum(share.judgments for share in got.work)
    assert judged == 60
    assert got.switches == pytest.approx(sum(s.switches * s.judgments for s in got.work) / judged)


def test_draws_by_topic_are_as_many_and_keep_their_probability(held):
    got = run(held, assessors=2, topics="owned", stay=1.0, explore=0.2)
    drawn = [p for p in got.probabilities if p is not None]
    due = int(0.2 * len(got.order))
    assert due - 4 <= len(drawn) <= due  # a few wait for their topics
    assert all(0 < p < 1 for p in drawn)


def test_every_pair_is_judged_in_the_end(held):
    got = run(held, assessors=3, topics="owned", stay=2.0, until=1.0, stop="confidence=1")
    assert sorted(got.order) == sorted(held.known.tolist())


def test_the_same_seed_gives_the_same_judgments(held):
    first, second = (run(held, assessors=3, topics="in-turn", stay=1.0, seed=4) for _ in range(2))
    assert (first.order, first.judged_by) == (second.order, second.judged_by)


def test_the_document_and_the_table_have_the_work_of_each_assessor(held):
    made = Simulation((run(held, assessors=2, topics="owned", stay=1.0),))
    document = made.to_dict()
    assert (document["topics"], document["stay"]) == ("owned", 1.0)
    assert [share["assessor"] for share in document["policies"][0]["assessors"]] == [1, 2]
    assert document["policies"][0]["switches"] == made.trajectories[0].switches
    assert [view.frame.columns[-1] for view in made.tables()][-1] == "switches"
    assert len(Simulation((run(held),)).tables()) == 2


def test_settings_that_cannot_be(held):
    with pytest.raises(SelectionError, match="one assessor"):
        SimulationProtocol.of("DCG@5", assessors=0)
    with pytest.raises(SelectionError, match="must be a finite number from 0, got -1"):
        SimulationProtocol.of("DCG@5", stay=-1)
    with pytest.raises(SelectionError, match="not by topic"):
        SimulationProtocol.of("DCG@5", policies=["random:ppi"], topics="owned")


def test_a_random_policy_by_topic_claims_no_probabilities(held):
    got = run(held, policy="random", assessors=2, topics="owned", stay=1.0)
    assert set(got.probabilities) == {None}
    assert np.isfinite(got.switches)
