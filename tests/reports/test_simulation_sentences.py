"""Every sentence of the report of a simulation, against the numbers of the simulation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from probeval.data import Collection
from probeval.display import Table
from probeval.reports import Page, read_simulation, report_simulation
from probeval.reports.page import Facts, Figure, Prose, Quote, TableText
from probeval.simulation import Simulation, SimulationProtocol, Trajectory, TrajectoryStep, simulate

SITUATIONS: dict[str, dict[str, Any]] = {
    "stop reached": {"stop": "confidence=.9"},
    "not reached": {"stop": "", "until": 0.4, "noise": 0.1},
    "until": {"stop": "confidence=.999", "until": 0.25},
    "exhausted": {"stop": "budget=100000"},
    "two policies": {"stop": "confidence=.9", "policies": ["random:uniform", "mtc:uniform"], "seeds": 3},
    "as many": {"stop": "budget=10", "policies": ["random:uniform", "mtc:uniform"]},
    "some seeds": {"stop": "confidence=.93", "policies": ["random:uniform", "mtc:uniform"], "seeds": 3, "until": 0.76},
}
EXPECTED = {
    "stop reached": {"stopped"},
    "not reached": {"until"},
    "until": {"until"},
    "exhausted": {"exhausted"},
    "two policies": {"stopped"},
    "as many": {"stopped"},
    "some seeds": {"stopped", "until"},
}
NUMBER = r"(-?[\d,]+(?:\.\d+)?|-)"
PROMISE = rf"accuracy {NUMBER} at a stated confidence of {NUMBER}, p (=|<) {NUMBER}"
ENDINGS = {
    "stopped": "stopped after",
    "until": "ended without a stop after",
    "exhausted": "ended without a stop, every pair judged that could be, after",
}


@pytest.fixture(scope="module", params=SITUATIONS)
def simulated(request: pytest.FixtureRequest, small: Collection) -> Simulation:
    settings = {"policies": ["mtc:uniform"], "batch": 2, "checkpoints": (0.0, 0.2), **SITUATIONS[request.param]}
    found = simulate(small, SimulationProtocol.of("DCG@5", **settings))
    assert set(found.stops()["ending"]) == EXPECTED[request.param]
    return found


@pytest.fixture(params=["result", "JSON"])
def page(request: pytest.FixtureRequest, simulated: Simulation, put: Callable[[str, str], Path]) -> Page:
    if request.param == "result":
        return report_simulation(simulated)
    text = json.dumps(simulated.to_dict()).replace("NaN", "null")
    return report_simulation(read_simulation(put("simulated.json", text)))


def value(text: str) -> float:
    return float(text.replace(",", ""))


def at(trajectory: Trajectory) -> TrajectoryStep:
    return trajectory.stop or trajectory.steps[-1]


def ending(trajectory: Trajectory, protocol_share: float) -> str:
    """How it ended, from its steps alone."""
    if trajectory.stop is not None:
        assert trajectory.reasons
        return "stopped"
    last = trajectory.steps[-1].judged
    if last == trajectory.setup.offered:
        return "exhausted"
    assert last / trajectory.setup.pool >= protocol_share
    return "until"


def groups(simulation: Simulation) -> dict[str, list[Trajectory]]:
    found: dict[str, list[Trajectory]] = {}
    for trajectory in simulation.trajectories:
        found.setdefault(trajectory.label, []).append(trajectory)
    return found


def p_of(trajectories: list[Trajectory]) -> float:
    each = [t.at_stop.accuracy_p for t in trajectories if t.at_stop is not None]
    return each[0] if len(each) == 1 else min(1.0, 2 * median(each))


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) (?=\S)", text)


def check_promise(found: tuple[str, ...], trajectories: list[Trajectory]) -> None:
    accuracy, stated, sign, p = found
    assert value(accuracy) == pytest.approx(fmean(at(t).accuracy for t in trajectories), abs=0.0005)
    assert value(stated) == pytest.approx(fmean(at(t).confidence for t in trajectories), abs=0.0005)
    assert (p_of(trajectories) < 0.001) if sign == "<" else value(p) == pytest.approx(p_of(trajectories), abs=0.0005)


def check_count(count: str, share: str, trajectories: list[Trajectory]) -> None:
    middle = median(at(t).judged for t in trajectories)
    assert value(count) == middle
    assert value(share) == pytest.approx(100 * middle / trajectories[0].setup.pool, abs=0.05)


def check_lead(text: str, simulation: Simulation) -> None:
    """Raise unless every sentence is of a known form, and its numbers are those of the simulation."""
    by_name, setup = groups(simulation), simulation.setup
    stopped = {name: all(t.stop is not None for t in ts) for name, ts in by_name.items()}
    honest = {n for n, yes in stopped.items() if yes and p_of(by_name[n]) >= 0.05}
    setting, *rest = sentences(text)
    n = len(simulation.trajectories)
    assert setting == (
        f"{n} {'trajectory' if n == 1 else 'trajectories'}: 6 systems compared by DCG@5 on a pool of {setup.pool} "
        "pairs, against full judgments."
    )
    assert rest
    winner = ""
    for sentence in rest:
        if sentence == "There was no stopping rule.":
            assert not setup.stopping
        elif sentence.startswith("No policy reached"):
            seeds = " with every seed" if n > len(by_name) else ""
            assert sentence == f"No policy reached the stopping rule {setup.stopping}{seeds}."
            assert not any(stopped.values())
        elif one := re.fullmatch(
            rf"(\S+) reached the stopping rule (\S+) after {NUMBER} judgments \({NUMBER}% of the pool\), "
            rf"as accurate as it states: {PROMISE}\.",
            sentence,
        ):
            winner, rule, count, share, *promise = one.groups()
            assert (list(by_name), rule) == ([winner], setup.stopping)
            assert honest == {winner}
            check_count(count, share, by_name[winner])
            check_promise(tuple(promise), by_name[winner])
        elif one := re.fullmatch(
            rf"Of the policies as accurate as they state, (\S+) reached the stopping rule (\S+) with the fewest "
            rf"judgments: {NUMBER} \({NUMBER}% of the pool\), {PROMISE}\.",
            sentence,
        ):
            winner, rule, count, share, *promise = one.groups()
            assert rule == setup.stopping
            assert winner in honest
            check_count(count, share, by_name[winner])
            check_promise(tuple(promise), by_name[winner])
            assert value(count) == min(median(at(t).judged for t in by_name[n]) for n in honest)
        elif one := re.fullmatch(r"As many were needed by (.*)\.", sentence):
            for name in one[1].split(", "):
                assert name in honest
                many = [median(at(t).judged for t in by_name[n]) for n in (name, winner)]
                assert many[0] == many[1]
        elif one := re.fullmatch(rf"(\S+) needed {NUMBER}, but is less accurate than it states: {PROMISE}\.", sentence):
            name, count, *promise = one.groups()
            assert stopped[name]
            assert name not in honest
            assert value(count) == median(at(t).judged for t in by_name[name])
            check_promise(tuple(promise), by_name[name])
        elif one := re.fullmatch(r"(\S+) did not reach it( with every seed)?\.", sentence):
            assert not stopped[one[1]]
            assert bool(one[2]) == any(t.stop is not None for t in by_name[one[1]])
        elif sentence.startswith("No policy that reached"):
            assert not honest
            listed = re.findall(rf"(\S+) needed {NUMBER} judgments, {PROMISE}", sentence)
            assert [name for name, *_ in listed] == [n for n, yes in stopped.items() if yes]
            for name, count, *promise in listed:
                assert value(count) == median(at(t).judged for t in by_name[name])
                check_promise(tuple(promise), by_name[name])
        else:
            pytest.fail(f"an unknown sentence: {sentence}")
    assert bool(winner) == bool(honest)


def check_outcomes(text: str, simulation: Simulation, protocol_share: float) -> None:
    """Raise unless there is one clause per policy and ending, with its numbers."""
    by_name, found = groups(simulation), set()
    for clause in re.split(r"(?<=\))[.;] ?", text):
        if not clause:
            continue
        one = re.fullmatch(
            rf"(\S+?)(?:, {NUMBER} of {NUMBER} seeds,)? (stopped after|ended .*after) (?:a median of )?{NUMBER} "
            rf"judgments(?: \({NUMBER} to {NUMBER}\))?, {NUMBER}% of the pool, with an?( mean)? accuracy of {NUMBER} "
            rf"at a stated confidence of {NUMBER} \(tau {NUMBER}\)",
            clause,
        )
        assert one is not None, clause
        name, some, whole, how, count, low, high, share, mean, accuracy, stated, tau = one.groups()
        kind = next(kind for kind, words in ENDINGS.items() if words == how)
        these = [t for t in by_name[name] if ending(t, protocol_share) == kind]
        found.add((name, kind))
        assert (int(some or 1), int(whole or 1)) == (len(these), len(by_name[name]))
        check_count(count, share, these)
        judged = [at(t).judged for t in these]
        assert (low is None) == (len(these) == 1) == (mean is None)
        assert low is None or (value(low), value(high)) == (min(judged), max(judged))
        for shown, figure in ((accuracy, "accuracy"), (stated, "confidence"), (tau, "tau")):
            assert value(shown) == pytest.approx(fmean(getattr(at(t), figure) for t in these), abs=0.0005)
    assert found == {(t.label, ending(t, protocol_share)) for t in simulation.trajectories}


def check_figures(page: Page, simulation: Simulation) -> None:
    by_name, setup = groups(simulation), simulation.setup
    stopped = {name: all(t.stop is not None for t in ts) for name, ts in by_name.items()}
    honest = {n for n, yes in stopped.items() if yes and p_of(by_name[n]) >= 0.05}
    (key, count, note), (_, accuracy, about), (_, tau, lasts) = page.figures
    one = re.fullmatch(rf"(\S+) after {NUMBER} judgments; stated confidence {NUMBER}", about)
    assert one is not None
    name, judged, stated = one.groups()
    these = by_name[name]
    assert value(judged) == median(at(t).judged for t in these)
    for shown, figure in ((accuracy, "accuracy"), (stated, "confidence"), (tau, "tau")):
        assert value(shown) == pytest.approx(fmean(getattr(at(t), figure) for t in these), abs=0.0005)
    if key == "fewest judgments to the stop":
        assert name in honest
        assert count == judged
        parts = re.fullmatch(
            rf"(\S+), {NUMBER}% of the pool(?:, median of (\d) seeds)?(?:; as many by ([^,]+(?:, [^,]+)*))?", note
        )
        assert parts is not None
        check_count(count, parts[2], these)
        assert parts[1] == name
        assert int(parts[3] or 1) == len(these)
        alike = {n for n in honest - {name} if median(at(t).judged for t in by_name[n]) == value(count)}
        assert set((parts[4] or "").split(", ")) - {""} == alike
    elif key == "as accurate as stated":
        assert not honest
        assert note.startswith(f"of {sum(stopped.values())} ")
    else:
        assert key == "reached the stopping rule"
        assert not any(stopped.values())
        n = sum(t.stop is not None for t in simulation.trajectories)
        assert count == (f"{n} of {len(simulation.trajectories)} trajectories" if n else "none")
        assert note == (setup.stopping or "no rule was given")
    good = [t.judgments_to_tau90 for t in these if t.judgments_to_tau90 is not None]
    if not good:
        most = max(t.steps[-1].judged for t in these)
        assert lasts == f"did not stay at .9 for 100 judgments in the {most} of the trajectory"
    else:
        some = f" with {len(good)} of {len(these)} seeds" if len(good) < len(these) else ""
        middle = f"{median(good):g}" if len(these) == 1 else f"a median of {median(good):g}"
        assert lasts == f"stays at .9 for 100 judgments, or to the last, from {middle} on{some}"


def test_every_sentence_is_true(page: Page, simulated: Simulation) -> None:
    setup = simulated.setup
    share = setup.until
    check_lead(page.lead, simulated)
    check_figures(page, simulated)
    *prose, table = page["stops"].parts
    assert isinstance(table, Table)
    text = " ".join(part.text for part in prose if isinstance(part, Prose))
    if len(simulated.trajectories) == len(groups(simulated)):
        assert text == "One seed per policy: results vary with the seed."
    else:
        check_outcomes(text, simulated, share)
    shown = TableText.of(table)
    for row, trajectory in zip(shown.rows, simulated.trajectories, strict=True):
        cells, step = dict(zip(shown.columns, row, strict=True)), at(trajectory)
        how = {"stopped": "stopped", "until": f"ended at {step.judged / setup.pool:.1%}", "exhausted": "all judged"}
        assert cells["ending"] == how[ending(trajectory, share)]
        caveat = "; independent pairs: not calibrated" if trajectory.independent else ""
        assert (cells["policy"], cells["seed"]) == (f"{trajectory.label}{caveat}", str(trajectory.seed))
        assert (cells["judged"], cells["share"]) == (f"{step.judged:,}", f"{step.judged / setup.pool:.1%}")
        for name in ("confidence", "accuracy", "tau"):
            assert cells[name] == f"{getattr(step, name):.4f}"
        assert cells["p"] == ("-" if trajectory.at_stop is None else f"{trajectory.at_stop.accuracy_p:.4f}")
        for name, number in (("to tau .9", trajectory.judgments_to_tau90), ("alarm", trajectory.alarm)):
            assert cells[name] == ("-" if number is None else f"{number:,}")
    *pictures, points = page["trajectory"].parts
    for picture in pictures:
        assert isinstance(picture, Figure)
        assert ("Rings mark the stops." in picture.caption) == any(t.stop for t in simulated.trajectories)
        assert ("over seeds" in picture.caption) == (len(simulated.trajectories) > len(groups(simulated)))
    assert isinstance(points, Table)
    assert len(points.frame) == 2 * len(simulated.trajectories)
    (quote,) = page["paper"].parts
    assert isinstance(quote, Quote)
    said, _, outcomes = quote.text.partition(": ")
    assessor = "with its full judgments as assessor and truth"
    if setup.noise:
        assessor = "with its full judgments as truth, and as an assessor whose grade is wrong with probability 0.1"
    rule = f"the stopping rule {setup.stopping}" if setup.stopping else "no stopping rule"
    assert said == (
        f"We simulated the judging of a finished campaign (6 systems, {setup.pool} pairs, DCG@5), {assessor}, "
        f"and {rule}"
    )
    check_outcomes(outcomes, simulated, share)
    (facts,) = page["made"].parts
    assert isinstance(facts, Facts)
    assert dict(facts.rows)["stopping rule"] == (setup.stopping or "none")


def test_a_trajectory_says_how_it_ended(simulated: Simulation) -> None:
    for trajectory, (_, row) in zip(simulated.trajectories, simulated.stops().iterrows(), strict=True):
        how, step = ending(trajectory, trajectory.setup.until), at(trajectory)
        assert trajectory.ending == row["ending"] == how
        one = re.fullmatch(
            rf"(.*) after {NUMBER} judgments \({NUMBER}% of the pool\): accuracy {NUMBER}, tau {NUMBER}\.",
            trajectory.sentences()[0],
        )
        assert one is not None
        rule = (
            f"The stopping rule {trajectory.setup.stopping} did not hold"
            if trajectory.setup.stopping
            else "No stopping rule"
        )
        expected = {
            "stopped": f"Stopped ({'; '.join(trajectory.reasons)})",
            "until": f"{rule}; ended",
            "exhausted": f"{rule}; ended with every pair judged that could be,",
        }
        assert one[1] == expected[how]
        assert value(one[2]) == step.judged == row["judged"]
        assert value(one[3]) == pytest.approx(100 * step.judged / trajectory.setup.pool, abs=0.05)
        assert (value(one[4]), value(one[5])) == pytest.approx((step.accuracy, step.tau), abs=0.0005)


def test_a_policy_that_claims_too_much_is_not_the_headline(small: Collection) -> None:
    """The policy that stops first, at a stated .952, is right in .893: the other one is named."""
    protocol = SimulationProtocol.of(
        "DCG@5", policies=["mtc:uniform", "random:uniform"], stop="confidence=.9", checkpoints=(0.0, 0.2)
    )
    document = json.loads(json.dumps(simulate(small, protocol).to_dict()).replace("NaN", "null"))
    hasty, honest = (policy["stop"] for policy in document["policies"])
    hasty |= {"judged": 10, "confidence": 0.952, "accuracy": 0.893, "accuracy_p": 0.004}
    honest |= {"judged": 20, "confidence": 0.951, "accuracy": 0.94, "accuracy_p": 0.4}
    page = report_simulation(document)
    assert page.figures[0][1:] == ("20", f"random:uniform, {20 / document['pool']:.1%} of the pool")
    assert "random:uniform reached the stopping rule confidence=0.9 with the fewest judgments: 20" in page.lead
    assert page.lead.endswith(
        "mtc:uniform needed 10, but is less accurate than it states: accuracy 0.893 at a stated confidence of 0.952, "
        "p = 0.004."
    )
    honest["accuracy_p"] = 0.01
    page = report_simulation(document)
    assert page.figures[0] == ("as accurate as stated", "none", "of 2 policies that stopped")
    assert (
        "No policy that reached the stopping rule confidence=0.9 is as accurate as it states: mtc:uniform" in page.lead
    )
