"""The true error of scores at each stated standard deviation, and the stopping rules sd= and error=."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from probeval.errors import SelectionError
from probeval.relevance import FallbackModel, Uniform, synthetic_campaign
from probeval.selection import (
    ErrorCorrection,
    Judging,
    Stopping,
    model_kind,
    published_corrections,
    read_corrections,
    stated_sd,
    write_corrections,
)
from probeval.selection.errors import add_corrections, learn_curve
from probeval.simulation import SimulationProtocol, learn_errors, simulate

CAMPAIGN = synthetic_campaign(seed=1, systems=5, queries=8, depth=5)
MODEL = FallbackModel([Uniform()])
LINE = ErrorCorrection("DCG@5", "Uniform", ("past",), (0.01, 0.05), (0.02, 0.1))  # twice the stated sd


def judging(few: int):
    state = Judging.of(replace(CAMPAIGN, judgments=CAMPAIGN.judgments.take(np.arange(few))), MODEL, "DCG@5")
    return state.begin()


def test_the_stated_sd_is_the_root_of_the_mean_variance():
    state = judging(40)
    sds = [state.scores[s].standard_deviation() for s in state.scores.systems]
    assert stated_sd(state.scores) == pytest.approx(np.sqrt(np.mean(np.square(sds))))
    assert Stopping.parse("sd=.5").check(state).values["sd"] == pytest.approx(stated_sd(state.scores))


def test_a_correction_and_its_inverse():
    for sd in (0.003, 0.02, 0.05, 0.2):
        assert LINE.error(sd) == pytest.approx(2 * sd)
        assert LINE.sd_for(2 * sd) == pytest.approx(sd)
    flat = ErrorCorrection("P@5", "Uniform", ("a",), (0.01, 0.02, 0.03), (0.02, 0.02, 0.05))
    assert flat.sd_for(0.02) == pytest.approx(0.02)  # the highest sd with this error


def test_judging_stops_by_the_true_error():
    state = judging(100)
    rule = Stopping.parse("error=.05").with_corrections([LINE])
    value = rule.check(state).values["error"]
    assert value == pytest.approx(2 * stated_sd(state.scores))
    assert not Stopping.parse(f"error={value * 0.99}").with_corrections([LINE]).check(state).reached
    found = Stopping.parse(f"error={value * 1.01}").with_corrections([LINE]).check(state)
    assert found.reached
    assert found.reasons[0].startswith("error ")


def test_without_a_correction_it_is_said_how_to_get_one():
    with pytest.raises(SelectionError, match=r"no correction for DCG@5 by the model Uniform.*--learn-errors FILE"):
        Stopping.parse("error=.05").check(judging(10))


def test_replays_show_the_error_at_each_stated_sd():
    protocol = SimulationProtocol.of("DCG@5", policies=["variance:uniform"], batch=10, stop="sd=.0001")
    found = simulate(CAMPAIGN, protocol)
    (learned,) = learn_errors(found.trajectories)
    assert (learned.metric, learned.model, learned.collections) == ("DCG@5", "Uniform", (CAMPAIGN.name,))
    first = found.trajectories[0].steps[0]
    assert learned.error(first.sd) >= first.mae - 1e-9  # nothing judged: the largest sd
    assert found.trajectories[0].points[0].sd == pytest.approx(first.sd)
    with pytest.raises(SelectionError, match="got none"):
        learn_errors([])


def test_a_curve_is_the_mean_of_its_replays_and_does_not_fall():
    sd = np.array([0.04, 0.02, 0.01, 0.0])
    a, b = (sd, np.array([0.08, 0.04, 0.02, 0.0])), (sd, np.array([0.04, 0.02, 0.03, 0.0]))
    x, y = learn_curve([a, b])
    assert y[-1] == pytest.approx(0.06)
    assert (np.diff(y) >= 0).all()
    assert min(x) == pytest.approx(0.01)
    with pytest.raises(SelectionError, match="nothing to learn"):
        learn_curve([(np.zeros(2), np.zeros(2))])


def test_corrections_on_disk(tmp_path):
    file = tmp_path / "errors.json"
    write_corrections([LINE], file)
    assert read_corrections(file) == (LINE,)
    other = replace(LINE, collections=("other",), errors=(0.04, 0.2))
    (both,) = add_corrections([other], file)
    assert both.collections == ("past", "other")
    assert both.error(0.05) == pytest.approx(0.15)
    assert read_corrections(file) == (both,)
    with pytest.raises(SelectionError, match="past in both"):
        add_corrections([LINE], file)
    file.write_text(json.dumps([{"metric": "P@5"}]))
    with pytest.raises(SelectionError, match="A correction has metric, model"):
        read_corrections(file)
    file.write_text("no")
    with pytest.raises(SelectionError, match="not a file of corrections"):
        read_corrections(file)
    with pytest.raises(SelectionError, match="cannot be read"):
        read_corrections(tmp_path / "none.json")


def test_the_corrections_that_ship_are_whole():
    known = published_corrections()
    assert len({(c.metric, c.model) for c in known}) == len(known) > 0
    assert all(0 < c.sd_for(0.01) < c.sd_for(0.05) and c.collections for c in known)


def test_the_kind_of_a_model():
    assert model_kind(MODEL) == "Uniform"
    assert model_kind(Uniform()) == "Uniform"
