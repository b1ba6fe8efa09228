"""A finished campaign judged again: checkpoints, stops, the assessor, and who is asked."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from probeval.data import Judgments, Scale
from probeval.errors import SelectionError
from probeval.metrics import measure, parse
from probeval.relevance import FallbackModel, Uniform
from probeval.selection import POLICIES
from probeval.simulation import HeldOut, SimulatedAssessor, SimulationProtocol, replay

MODEL = FallbackModel([Uniform()])
DCG = parse("DCG@5")


@pytest.fixture(scope="module")
def held(campaign):
    """A campaign some of whose comparisons are significant."""
    return HeldOut.of(campaign("one", 1, sds={"team": 1.5, "system": 1.5}), depth=5)


@pytest.fixture(scope="module")
def gappy(campaign):
    """A campaign one of whose pairs nobody judged: fewer than one in a hundred of each system's documents."""
    made = campaign("gappy", 4, queries=30)
    return HeldOut.of(replace(made, judgments=made.judgments.take(np.arange(len(made.judgments)) != 7)), depth=5)


def run(held, **options):
    policy, seed = options.pop("policy", "mtc"), options.pop("seed", 0)
    options = {"metric": DCG, "stop": "confidence=.95", "checkpoints": (), "explore": 0, **options}
    return replay(held, MODEL, SimulationProtocol.of(**options), policy=policy, name="uniform", seed=seed)


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_checkpoints_are_met_to_the_judgment_before_and_after_the_stop(held, batch):
    shares = (0, 0.01, 0.02, 0.05, 0.33, 0.5, 1.0)
    trajectory = run(held, checkpoints=shares, batch=batch, stop="budget=5")
    pool = len(held.pool)
    assert [p.judged for p in trajectory.points] == [ceil(s * pool) for s in shares]
    assert [p.fraction for p in trajectory.points] == pytest.approx([ceil(s * pool) / pool for s in shares])
    assert trajectory.stop is not None
    assert trajectory.stop.judged == 5
    assert trajectory.reasons == ("budget 5 >= 5",)
    assert trajectory.points[-1].accuracy == trajectory.points[-1].confidence == trajectory.points[-1].tau == 1.0
    assert trajectory.points[-1].mae == pytest.approx(0, abs=1e-12)


def test_a_campaign_for_success_is_judged_by_p_success(held):
    options = {"policy": "gain", "batch": 20, "draws": 100, "stop": "confidence=.9", "checkpoints": (0.3, 1.0)}
    said = run(held, goal="success", **options)
    users = measure(held.collection.runs, held.collection.judgments, 'PSucc(mapping="DCGl@5/broad")')
    assert said.setup.metric == str(users.metric)
    assert said.stop is not None
    assert said.stop.confidence >= 0.9
    assert said.reasons[0].startswith("confidence 0.9")
    assert said.points[0].confidence < said.points[1].confidence == 1
    assert said.points[1].mae == pytest.approx(0, abs=1e-12)
    by_measure = run(held, metric=users.metric, **options)  # the goal is the ranking by this measure
    assert [s.confidence for s in by_measure.steps] == [s.confidence for s in said.steps]


def test_steps_are_batches(held):
    trajectory = run(held, batch=10, until=0.5, stop="")
    n = ceil(0.5 * len(held.pool))
    assert [s.judged for s in trajectory.steps] == [*range(0, n, 10), n]
    assert trajectory.stop is None
    assert trajectory.to_dict()["stop"]["reached"] is False
    assert trajectory.to_dict()["stop"]["judged"] == n


def test_late_batches_are_shares_of_the_pool(held):
    pool = len(held.pool)
    tenth, late = ceil(0.1 * pool), ceil(0.07 * pool)
    trajectory = run(held, batch=3, late_batch=0.07, checkpoints=[0.1], until=0.5, stop="")
    sizes = np.diff([s.judged for s in trajectory.steps]).tolist()
    early = [3] * (tenth // 3) + [tenth % 3] * (tenth % 3 > 0)
    assert sizes[: len(early)] == early
    assert set(sizes[len(early) : -1]) == {late}
    with pytest.raises(SelectionError, match="A late batch is a share of the pool above 0, at most 1; got 2"):
        run(held, late_batch=2)


def test_a_point_is_what_is_stated_with_these_judgments(held):
    from probeval.scores import evaluate

    trajectory = run(held, checkpoints=[0.4], batch=5)
    chosen = np.array(trajectory.order[: trajectory.points[0].judged])
    some = replace(
        held.collection, judgments=held.collection.judgments.take(np.isin(held.collection.judgments.pair, chosen))
    )
    scores = evaluate(some.runs.top(5), MODEL.predict(some.problem(depth=5, scale=held.scale)), DCG)
    assert trajectory.points[0].confidence == pytest.approx(scores.ranking().confidence)
    truth = measure(held.collection.runs.top(5), held.collection.judgments, "DCG@5").values.mean(axis=1)
    assert trajectory.points[0].mae == pytest.approx(np.abs(scores.mean - truth).mean())
    step = next(s for s in trajectory.steps if s.judged == trajectory.points[0].judged)
    assert (step.accuracy, step.tau) == (trajectory.points[0].accuracy, trajectory.points[0].tau)


def test_it_ends_when_it_has_stopped_and_tau_lasts(campaign):
    made = HeldOut.of(campaign("long", 4, systems=2, queries=60), depth=5)
    trajectory = run(made, batch=10, stop="confidence=.7")
    assert trajectory.stop is not None
    good = trajectory.judgments_to_tau90
    assert good is not None
    assert trajectory.steps[-1].judged == max(trajectory.stop.judged + 100, ceil((good + 100) / 10) * 10)
    assert trajectory.steps[-1].judged < len(made.pool)
    assert all(s.tau >= 0.9 for s in trajectory.steps if good <= s.judged <= good + 100)


def test_an_exhausted_pool_ends_cleanly(held):
    trajectory = run(held, batch=9, stop="halfwidth=0+budget=100000")
    assert sorted(trajectory.order) == list(range(len(held.pool)))
    assert trajectory.stop is None
    assert trajectory.to_dict()["stop"] == {
        "reached": False, "judged": len(held.pool), "fraction": 1.0, "confidence": 1.0, "accuracy": 1.0, "tau": 1.0,
        "accuracy_p": None, "reasons": [],
    }  # fmt: skip
    assert trajectory.ending == "exhausted"


def test_pairs_without_a_judgment_are_never_offered(gappy):
    assert len(gappy.known) == len(gappy.pool) - 1
    hidden = set(range(len(gappy.pool))) - set(gappy.known.tolist())
    for policy in ("random", "gain"):
        trajectory = run(gappy, policy=policy, batch=50, stop="", checkpoints=[1.0], explore=0.2)
        assert len(trajectory.order) == len(set(trajectory.order)) == len(gappy.known)
        assert not hidden & set(trajectory.order)
        assert trajectory.points[-1].judged == len(gappy.known)
        assert trajectory.judgments_to_tau90 is not None
    assert trajectory.setup.offered == len(gappy.known)


@pytest.mark.parametrize("stop", ["budget=0", "confidence=.5", "hours=0,seconds=10"])
def test_a_target_that_is_met_stops_before_the_first(held, stop):
    trajectory = run(held, stop=stop, checkpoints=[0.0, 0.1])
    assert trajectory.stop is not None
    assert trajectory.stop.judged == 0
    assert [p.judged for p in trajectory.points] == [0, ceil(0.1 * len(held.pool))]


def test_hours_and_cost_stop_to_the_judgment(held):
    assert run(held, stop="hours=.1,seconds=60", batch=4).stop.judged == 6
    assert run(held, stop="cost=7,price=.5", batch=4).stop.judged == 14


@pytest.mark.parametrize("policy", POLICIES)
def test_same_seed_same_course_and_nothing_twice(held, policy):
    one, two = (run(held, policy=policy, batch=10, until=0.6, stop="", seed=3, explore=0.2) for _ in range(2))
    assert one == two
    assert len(set(one.order)) == len(one.order) == ceil(0.6 * len(held.pool))


def test_seeds_change_what_is_random(held):
    orders = {run(held, policy="random", batch=10, until=0.3, stop="", seed=s).order for s in range(3)}
    assert len(orders) == 3


def test_the_assessor_answers_with_the_true_grades(held):
    assessor = SimulatedAssessor.of(held)
    pairs = [3, 1, 7]
    judged = assessor.judge(held, pairs)
    assert isinstance(judged, Judgments)
    assert judged.pair.tolist() == pairs
    np.testing.assert_array_equal(judged.grade, held.collection.judgments.grades()[pairs])


def test_the_grades_of_a_cut_scale_come_back(held):
    fine = replace(held.collection.judgments, grade=held.collection.judgments.grade * 40)
    for text in ("fine:4", "binary:40", "real"):
        cut = replace(held, collection=replace(held.collection, judgments=fine))
        cut = replace(cut, scale=cut.collection.scale(Scale.parse(text)))
        judged = SimulatedAssessor.of(cut).judge(cut, np.arange(len(cut.pool)))
        np.testing.assert_array_equal(judged.codes(cut.scale), cut.codes)
        assert run(cut, scale=text, gain="linear", batch=20, until=0.2, stop="").order


def test_noise_is_the_share_of_wrong_grades(campaign):
    held = HeldOut.of(campaign("noisy", 2, queries=60), depth=5)
    true, n = held.scale.values[held.codes], len(held.pool)
    for noise in (0.0, 0.2, 1.0):
        given = SimulatedAssessor.of(held, noise=noise, rng=np.random.default_rng(0)).grades
        assert set(given) <= set(held.scale.values)
        # Three standard errors of a share.
        assert (given != true).mean() == pytest.approx(noise, abs=3 * np.sqrt(noise * (1 - noise) / n) + 1e-12)
    # Every wrong grade is as likely as any other.
    wrong = SimulatedAssessor.of(held, noise=1.0, rng=np.random.default_rng(1)).grades[true == 0]
    share = (wrong == 1).mean()
    assert share == pytest.approx(0.5, abs=3 * np.sqrt(0.25 / len(wrong)))
    with pytest.raises(SelectionError, match=r"Noise is the probability of a wrong grade, between 0 and 1; got 2\."):
        SimulatedAssessor.of(held, noise=2)


def test_noise_leaves_an_error_that_no_judging_mends(held):
    clean, noisy = (run(held, policy="random", batch=50, stop="", checkpoints=[1.0], noise=n) for n in (0, 0.4))
    assert clean.points[-1].mae == pytest.approx(0, abs=1e-12)
    assert noisy.points[-1].mae > 0.01
    assert noisy.points[-1].confidence == 1.0


class Counting:
    """Says nothing new, and counts how many judgments it was shown each time."""

    def __init__(self):
        self.seen = []

    def predict(self, problem, *, rng=None):
        judgments = problem.collection.judgments
        self.seen.append(0 if judgments is None else len(judgments))
        return MODEL.predict(problem)


def test_the_model_learns_every_batch_or_every_so_many(held):
    def seen(**options):
        counting = Counting()
        options = {"checkpoints": (), **options}
        protocol = SimulationProtocol.of(DCG, stop="", until=30 / len(held.pool), **options)
        replay(held, counting, protocol, policy="depth", name="")
        return counting.seen

    assert seen(batch=10) == [0, 10, 20, 30]
    assert seen(batch=1, refresh=15) == [0, 15, 30]
    assert seen(batch=10, refresh=15) == [0, 20]
    # A batch that a checkpoint cuts short is learned from as well: what is measured there is up to date.
    assert seen(batch=10, checkpoints=[25 / len(held.pool)]) == [0, 10, 20, 25, 30]


def test_the_goal_reaches_the_stop(held):
    systems = held.collection.runs.systems
    trajectory = run(held, goal=f"pair:{systems[0]},{systems[1]}", batch=1, stop="every=.99")
    ranked = run(held, batch=1, stop="every=.99")
    assert trajectory.stop.judged < ranked.stop.judged


def test_a_measure_that_is_not_linear(held):
    trajectory = run(
        held, policy="gain", metric=parse("nDCG@5"), batch=20, checkpoints=[0.3], draws=100, stop="budget=40"
    )
    assert trajectory.stop.judged == 40
    assert 0 <= trajectory.points[0].coverage <= 1
    assert trajectory.setup.metric == "nDCG@5"


def test_one_system_and_identical_systems(campaign):
    made = campaign("few", 5)
    alone = HeldOut.of(replace(made, runs=made.runs.select(["system-01"])), depth=5)
    trajectory = run(alone, stop="halfwidth=.05", batch=5)
    assert trajectory.stop is not None
    assert np.isnan(trajectory.stop.tau)
    assert trajectory.judgments_to_tau90 is None
    first = made.runs.select(["system-01"])
    twins = replace(
        first,
        systems=("a", "b"),
        pairs=np.repeat(first.pairs, 2, axis=0),
        scores=np.repeat(first.scores, 2, axis=0),
        teams=None,
    )
    same = run(HeldOut.of(replace(made, runs=twins), depth=5), policy="gain", batch=5, stop="every=.95")
    assert same.stop.judged == 0  # they are exact ties
    assert same.stop.accuracy == 1.0


def test_fine_grades(campaign):
    held = HeldOut.of(campaign("fine", 8, scale=Scale.fine(100)), depth=5)
    trajectory = run(held, batch=10, until=0.5, noise=0.1)
    assert len(trajectory.order) == ceil(0.5 * len(held.pool))


def test_every_figure_at_the_stop(held):
    trajectory = run(held, batch=10, stop="budget=30", checkpoints=[0.5])
    assert trajectory.at_stop is not None
    assert trajectory.at_stop.judged == trajectory.stop.judged == 30
    assert (trajectory.at_stop.confidence, trajectory.at_stop.tau) == (trajectory.stop.confidence, trajectory.stop.tau)
    assert run(held, batch=10, stop="", until=0.2).at_stop is None


def test_significant_comparisons_along_the_way(held):
    from scipy.stats import ttest_rel

    trajectory = run(held, batch=10, stop="", checkpoints=[1.0])
    truth = held.truth(DCG)
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5) if ttest_rel(truth[a], truth[b]).pvalue < 0.05]
    assert pairs  # of this campaign
    assert trajectory.steps[-1].significant == 1.0
    assert trajectory.steps[0].significant == 0.5  # all tied, as nothing is judged
    assert trajectory.significant == next(s.judged for s in trajectory.steps if s.significant == 1.0)


def test_one_query(campaign):
    held = HeldOut.of(campaign("single", 3, queries=1), depth=5)
    trajectory = run(held, stop="every=.9", checkpoints=[0.0, 1.0])
    assert trajectory.stop is not None
    assert trajectory.points[-1].accuracy == 1.0
    assert trajectory.significant is None  # one query shows nothing to be significant


def test_a_pilot_is_judged_at_random_first(held):
    n = ceil(0.2 * len(held.pool))
    one, two, none = (run(held, pilot=p, seed=s, batch=10, until=0.5, stop="") for p, s in ((0.2, 0), (0.2, 1), (0, 0)))
    assert one.steps[0].judged == n
    assert one.order[:n] != two.order[:n]
    assert one.order[:n] != none.order[:n]
    assert len(set(one.order)) == len(one.order) == ceil(0.5 * len(held.pool))


def test_draws_and_the_audit_are_kept_with_the_order(held):
    trajectory = run(held, explore=0.25, batch=8, until=0.5, pilot=0.05, stop="")
    pilot = ceil(0.05 * len(held.pool))
    assert len(trajectory.probabilities) == len(trajectory.order)
    assert not any(trajectory.probabilities[:pilot])
    drawn = [p for p in trajectory.probabilities if p is not None]
    assert trajectory.audit.draws == len(drawn) > 0
    assert trajectory.audit.judged == len(trajectory.order) - pilot
    assert trajectory.to_dict()["alarm"] == trajectory.alarm
    assert trajectory.sentences()[1].startswith("Audit")
