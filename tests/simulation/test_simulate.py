"""Policies, models and seeds side by side."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Scale
from probeval.errors import DataError, MetricError, ModelError, ProbevalError, ScoreError, SelectionError
from probeval.selection import POLICIES, RULES, Policy, StoppingRule, register_policy, register_rule
from probeval.simulation import Contender, SimulationProtocol, simulate
from tests.heard import Heard

QUICK = {"metric": "DCG@5", "batch": 10, "checkpoints": (0.0, 0.1), "until": 0.3}

# The figures of docs/theory/calibration.md, and what is told beside them.
POINT = {
    "judged", "fraction", "confidence", "accuracy", "accuracy_significant", "tau", "tau_top15", "tau_ap", "rho",
    "rmse_difference", "mae", "calibration_error", "calibration_excess", "calibration_p", "coverage",
    "centred_coverage", "level_z",
}  # fmt: skip
MORE_POINT = {"accuracy_p", "sd", "centred_coverage_null05"}
STOP = {"reached", "judged", "fraction", "confidence", "accuracy", "tau"}


WORK = {"fit", "labelled", "n_jobs", "scheduler", "reporter"}


def run(collection, **options):
    work = {name: options.pop(name) for name in WORK & set(options)}
    return simulate(collection, SimulationProtocol.of(**options), **work)


def test_a_contender_is_a_policy_and_its_model():
    assert {Contender.parse(policy).model for policy in POLICIES} == {"hierarchical"}  # the calibrated model for all
    mtc, gain = POLICIES["mtc"], POLICIES["gain"]
    assert Contender.parse("mtc:uniform", model="empirical") == Contender(mtc, "uniform")
    assert Contender.parse("mtc", model="empirical") == Contender(mtc, "empirical")
    assert Contender.parse("gain:text-out") == Contender(gain, "text-out")
    assert Contender.parse(gain) == Contender(gain, "hierarchical")
    assert Contender.parse(Contender(gain, "uniform"), model="empirical") == Contender(gain, "uniform")
    assert str(Contender(gain, "uniform")) == "gain:uniform"
    with pytest.raises(SelectionError, match="Did you mean 'mtc'"):
        Contender.parse("mtcs:uniform")


def test_the_document_has_the_fields_of_the_design(three):
    result = run(three[0], policies=["mtc:uniform", "random:uniform"], **QUICK)
    document = json.loads(json.dumps(result.to_dict()))
    assert set(document) == {
        "metric", "pool", "offered", "systems", "stopping", "until", "noise", "test", "rule_settings", "topics",
        "stay", "policies", "over_seeds", "comparisons", "budgets", "budget_comparisons",
    }  # fmt: skip
    assert (document["metric"], document["systems"]) == ("DCG@5", 5)
    for trajectory in document["policies"]:
        assert set(trajectory) == {
            "policy", "model", "seed", "ending", "judged", "judgments_to_tau90", "alarm", "switches", "assessors",
            "independent", "stop", "points", "rules",
        }  # fmt: skip
        assert set(trajectory["stop"]) == STOP | {"accuracy_p", "reasons"}
        assert len(trajectory["points"]) == len(trajectory["rules"]) == 2
        assert set(trajectory["rules"][0]) == {"judged", "decided", "precision", "recall", "f", "threshold"}
        for point in trajectory["points"]:
            assert POINT <= set(point) <= POINT | MORE_POINT


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"rules": "gaet=.9"}, "No setting 'gaet' of rule 4: gate, threshold, sd. Did you mean 'gate'?"),
        ({"rules": "gate=high"}, "The gate of rule 4 is a number, got 'high'. Write for example gate=.95."),
        ({"rules": "gate=95"}, "The gate of rule 4 is a confidence, from 0 to 1; got 95."),
        ({"rules": "sd=0"}, "The sd of rule 4 is a standard deviation above 0; got 0."),
        ({"rules": "threshold=-1"}, "The threshold of rule 4 is a difference of scores, at least 0; got -1."),
        ({"rules": "threshold=.1,sd=.2"}, "a threshold, or the sd that it follows from, not both: leave one out."),
        ({"test": "tuckey"}, "No test 'tuckey': t, wilcoxon, sign, tukey, friedman. Did you mean 'tukey'?"),
    ],
)
def test_wrong_rules_and_tests_are_named(asked, message):
    with pytest.raises(SelectionError, match=re.escape(message)):
        SimulationProtocol.of("DCG@5", **asked)


def test_the_gate_of_rule_4_and_its_threshold(three):
    def decided(rules, test="t"):
        return run(three[0], policies=["mtc:uniform"], rules=rules, test=test, **QUICK).rule_decisions()

    open_, gated, large = (decided(text) for text in ("gate=0,threshold=0", "gate=.9999,threshold=0", "threshold=9"))
    assert open_["decided"].iloc[-1] == 1
    assert gated["decided"].iloc[-1] < 1
    assert large["threshold"].tolist() == [9.0, 9.0]
    assert decided("gate=.5")["threshold"].iloc[-1] == decided("gate=.7")["threshold"].iloc[-1] > 0
    by_tukey = decided("gate=0,threshold=0", "tukey")
    assert by_tukey["precision"].iloc[-1] <= open_["precision"].iloc[-1]  # fewer differences are significant


def test_policies_models_and_seeds_in_order(three):
    result = run(three[0], policies=["mtc", "random", "mtc"], model="uniform", seeds=2, seed=5, **QUICK)
    assert [(c.policy, c.model, c.seed) for c in result.trajectories] == [
        ("mtc", "uniform", 5), ("mtc", "uniform", 6), ("random", "uniform", 5), ("random", "uniform", 6),
    ]  # fmt: skip


def test_tables_and_stops_say_which_policies_take_pairs_as_independent(three):
    said = "independent pairs: not calibrated"
    settings = {"stop": "confidence=.55,budget=12", "checkpoints": (), "until": 0.3, "metric": "DCG@5", "batch": 4}
    both = run(three[0], policies=["mtc", "mtc:independent"], **settings)
    dependent, independent = both.trajectories
    assert (dependent.independent, independent.independent) == (False, True)
    assert all(table.title.endswith(f"; {said} (mtc:independent)") for table in both.tables())
    assert said not in str(dependent.reasons)
    assert independent.reasons[0].endswith(f"; {said}")  # by the confidence; a budget needs no model
    assert independent.sentences()[0].startswith(f"Stopped ({independent.reasons[0]})")
    assert said in independent.tables()[0].title
    alone = run(three[0], policies=["mtc:independent"], **settings)
    assert all(table.title.endswith(f"; {said}") for table in alone.tables())
    calibrated = run(three[0], policies=["mtc"], **settings)
    assert not any(said in table.title for table in calibrated.tables())
    budget = run(three[0], policies=["mtc:uniform"], **settings | {"stop": "budget=12"}).trajectories[0]
    assert (budget.reasons, budget.independent) == (("budget 12 >= 12",), True)


def test_processes_change_nothing(three):
    settings = {"policies": ["mtc:uniform", "gain:uniform", "random:uniform"], "seeds": 2, "explore": 0.2, **QUICK}
    # By their texts: what is not a number is not equal to itself.
    shared, alone = run(three[0], n_jobs=2, **settings), run(three[0], **settings)
    assert json.dumps(shared.to_dict()) == json.dumps(alone.to_dict())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Dask says of itself
def test_a_scheduler_changes_nothing(three):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    settings = {"policies": ["mtc:uniform", "random:uniform"], **QUICK}
    here = run(three[0], **settings)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        there = run(three[0], scheduler=cluster.scheduler_address, **settings)
    assert json.dumps(there.to_dict()) == json.dumps(here.to_dict())


def test_models_are_fitted_on_other_campaigns_alone(three):
    heard = Heard()
    result = run(three[0], policies=["mtc", "mtc:empirical"], fit=three[1:], reporter=heard, **QUICK)
    assert [c.model for c in result.trajectories] == ["hierarchical", "empirical"]
    assert heard.said == [f"one: 5 of 5 systems are judged to depth 5; 8 queries, {result.setup.pool} pairs."]


def test_a_campaign_is_never_fitted_on_itself(three):
    message = "one has the judgments of the simulated campaign: leave it out of the fit"
    with pytest.raises(DataError, match=message):
        run(three[0], fit=three, **QUICK)
    with pytest.raises(DataError, match=message):  # a folder of runs goes by another name
        run(replace(three[0], name="runs"), fit=three, **QUICK)


def test_graded_labels_need_campaigns_to_fit_on(three):
    with pytest.raises(DataError, match="Graded labels need models to fit"):
        run(three[0], labelled=[(None, three[0].judgments)], **QUICK)


def test_models_that_ship_are_named(three):
    heard = Heard()
    run(three[0], policies=["mtc:text-out"], reporter=heard, **QUICK)
    assert heard.said[1] == "Model text-out: it was asked for."


def test_answers_that_were_seen_are_said(three, monkeypatch):
    from probeval.relevance import Choice

    monkeypatch.setattr(Choice, "fitted_on", lambda self, collection: collection.name)
    heard = Heard()
    run(three[0], policies=["mtc:text-out"], reporter=heard, **QUICK)
    assert heard.said[-1] == "text-out was fitted on these judgments (one): its confidence is too high here."


def test_gain_and_scale_are_heard(three):
    linear, steep = (run(three[0], policies=["mtc:uniform"], gain=g, **QUICK) for g in (None, "exp"))
    assert linear.trajectories[0].points[1].mae != steep.trajectories[0].points[1].mae
    wide = run(three[0], policies=["mtc:uniform"], scale=Scale.graded(4), **QUICK)
    assert wide.trajectories[0].points[0].mae != linear.trajectories[0].points[0].mae


def test_all_systems_or_the_judged_ones(three):
    runs, judged = three[0].runs, three[0].judgments
    others = runs.select([f"system-0{i}" for i in range(1, 5)])
    shared = runs.pool.within(others.pool)[judged.on(runs.pool).pair] >= 0
    partly = replace(three[0], judgments=judged.take(shared))  # nobody judged what system-05 alone retrieved
    few, every = (run(partly, policies=["random:uniform"], systems=s, **QUICK) for s in ("judged", "all"))
    assert (few.setup.systems, every.setup.systems) == (4, 5)
    assert every.setup.offered < every.setup.pool
    assert few.setup.offered == few.setup.pool


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"policies": []}, SelectionError, "at least one policy, one seed and one assessor"),
        ({"seeds": 0}, SelectionError, "at least one policy, one seed"),
        ({"batch": 0}, SelectionError, "batches of at least one"),
        ({"checkpoints": [0, 2]}, SelectionError, "Checkpoints, pilot and until are shares of the pool, from 0 to 1"),
        ({"pilot": 2}, SelectionError, "Checkpoints, pilot and until are shares"),
        ({"until": 0}, SelectionError, "Checkpoints, pilot and until are shares"),
        ({"policies": ["gian"]}, SelectionError, "Did you mean 'gain'"),
        ({"goal": "bets"}, SelectionError, "Did you mean 'best'"),
        ({"stop": "confidense=.9"}, SelectionError, "Did you mean 'confidence'"),
        ({"policies": ["mtc:none"]}, ModelError, "Policies need a model"),
        ({"policies": ["mtc:text-uot"]}, ProbevalError, "text-out"),
        ({"noise": 3}, SelectionError, "Noise is the probability of a wrong grade"),
        ({"explore": 3, "policies": ["mtc:uniform"]}, SelectionError, "exploration must be between 0 and 1"),
        ({"goal": "pair:a,b", "policies": ["mtc:uniform"]}, SelectionError, "No system 'a' to compare"),
    ],
)  # fmt: skip
def test_bad_requests(three, options, error, message):
    with pytest.raises(error, match=message):
        run(three[0], **{"policies": ["random:uniform"], **QUICK, **options})


def test_a_campaign_without_judgments(three):
    with pytest.raises(DataError, match="one: without judgments"):
        run(replace(three[0], judgments=None), **QUICK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"policies": []},
            "A simulation needs at least one policy, one seed and one assessor, and batches of at least one.",
        ),
        ({"until": 0}, "Checkpoints, pilot and until are shares of the pool, from 0 to 1."),
        ({"noise": 2}, "Noise is the probability of a wrong grade, between 0 and 1; got 2."),
        ({"explore": -1}, "The share of exploration must be between 0 and 1, got -1."),
        ({"stop": "hours=1"}, "The stopping rule hours= needs seconds= per judgment."),
    ],
)
def test_a_protocol_is_checked_before_there_is_a_campaign(options, message):
    with pytest.raises(SelectionError) as error:
        SimulationProtocol.of("DCG@5", **options)
    assert str(error.value) == message
    if "stop" not in options:  # a text is checked when it is parsed
        with pytest.raises(SelectionError) as error:
            replace(SimulationProtocol.of("DCG@5"), **options)
        assert str(error.value) == message


def test_a_protocol_is_plain_data():
    protocol = SimulationProtocol.of(
        "nDCG@5", policies=["mtc", "gain:uniform", "mtc:independent"], goal="top:3", scale="graded:2",
        stop="hours=2+every=.9,seconds=30",
    )  # fmt: skip
    document = json.loads(json.dumps(protocol.to_dict()))
    assert document["policies"] == ["mtc:hierarchical", "gain:uniform", "mtc:independent"]
    assert (document["metric"], document["goal"], document["scale"]) == ("nDCG@5", "top:3", "graded:2")
    assert document["stop"] == "hours=2+every=0.9,seconds=30"
    assert set(document) == set(SimulationProtocol.__dataclass_fields__)
    assert SimulationProtocol.of(**document) == protocol


def backwards(context, goal):
    """The last pair of the pool first."""
    return np.arange(len(context.runs.pool), dtype=float)


class Unjudged(StoppingRule):
    """Few pairs are left."""

    name = "unjudged"
    summary = "pairs of the pool without a judgment"
    at_most = True

    def value(self, state, rate):
        return float(state.open.sum())


@pytest.fixture
def outside():
    """A policy and a stopping rule that are not of the package."""
    policy = register_policy(Policy("backwards", "the last pair first", backwards))
    rule = register_rule(Unjudged())
    yield policy, rule
    del POLICIES[policy.name], RULES[rule.name]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_policy_and_a_rule_from_outside(three, outside, n_jobs):
    pool = len(three[0].runs.top(5).pool)
    settings = {**QUICK, "stop": f"unjudged={pool - 12},budget=1000", "checkpoints": (), "seeds": 2}
    result = run(three[0], policies=["backwards:uniform"], n_jobs=n_jobs, **settings)
    for trajectory in result.trajectories:
        assert trajectory.label == "backwards:uniform"
        assert trajectory.order[:20] == tuple(range(pool - 1, pool - 21, -1))
        assert trajectory.stop.judged == 20
        assert trajectory.reasons == (f"unjudged {pool - 20} <= {pool - 12}; independent pairs: not calibrated",)


def test_a_plain_function_is_a_policy(three):
    result = run(three[0], policies=[backwards], model="uniform", **{**QUICK, "checkpoints": ()})
    assert result.trajectories[0].policy == "backwards"
    assert "backwards" not in POLICIES


def test_scores_by_draws_and_by_moments_tell_the_same(three):
    settings = QUICK | {"policies": ["random:uniform"], "checkpoints": (), "until": 0.2}
    default, moments, draws = (run(three[0], method=m, **settings).trajectories[0] for m in (None, "moments", "draws"))
    assert default.steps == moments.steps  # a linear measure
    for normal, drawn in zip(moments.steps[1:], draws.steps[1:], strict=True):
        assert 0 < abs(normal.confidence - drawn.confidence) < 0.03  # ten comparisons, 1,000 draws, not quite normal


def test_the_taylor_route_of_a_ratio(three):
    settings = QUICK | {"metric": "nDCG@5", "policies": ["random:uniform"], "checkpoints": (), "until": 0.2}
    by_taylor, by_draws = (run(three[0], method=m, **settings).trajectories[0] for m in ("taylor", "draws"))
    assert 0 < abs(by_taylor.steps[-1].confidence - by_draws.steps[-1].confidence) < 0.1


def test_a_method_that_does_not_fit_the_measure_is_refused_at_once():
    with pytest.raises(ScoreError, match=r"No method 'moment'.*Did you mean 'moments'"):
        SimulationProtocol.of("DCG@5", method="moment")
    with pytest.raises(MetricError, match=r"nDCG@5 is not a weighted sum of gains\. Use method='draws'"):
        SimulationProtocol.of("nDCG@5", method="moments")
    with pytest.raises(ScoreError, match="for ratios of weighted gains such as nDCG@10, not for DCG@5"):
        SimulationProtocol.of("DCG@5", method="taylor")
    with pytest.raises(SelectionError, match="random:ppi, not the method ppi"):
        SimulationProtocol.of("DCG@5", method="ppi")
    assert SimulationProtocol.of("DCG@5", method="draws").to_dict()["method"] == "draws"
