"""Machines with prices in simulations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.data import LabelTable
from probeval.errors import SelectionError
from probeval.selection import AnswerPrices
from probeval.simulation import ALLOCATIONS, SimulationProtocol
from probeval.simulation.machines import SimulatedMachines


@pytest.fixture(scope="module")
def labelled() -> probeval.Collection:
    """A campaign in which one machine gives the grades, and another labels half of the pairs."""
    campaign = probeval.synthetic_campaign(seed=4, systems=4, queries=5, depth=5)
    pool = campaign.judgments.pool
    grades = campaign.judgments.grades()
    half = np.where(np.arange(len(pool)) % 2, grades, np.nan)
    return replace(campaign, labels=LabelTable(pool, ("right", "half"), np.column_stack([grades, half])))


def simulated(labelled, prices, **settings):
    more = {"stop": "confidence=.9", "batch": 10, "checkpoints": (), "draws": 200, "until": 0.4} | settings
    return probeval.simulate(labelled, "DCG@5", prices=prices, **more)


def test_labels_with_a_price_are_hidden_until_they_are_bought(labelled):
    held = SimulationProtocol.of("DCG@5").hold_out(labelled)
    machines = SimulatedMachines.of(held, AnswerPrices.parse("right=.1"))
    assert machines.shown.sources == ("half",)  # without a price: there from the start
    machines.buy("right", np.array([3, 5]))
    assert machines.count == {"right": 2}
    right = machines.shown.values[:, machines.shown.sources.index("right")]
    assert np.flatnonzero(~np.isnan(right)).tolist() == [3, 5]
    assert not machines.available["right"][[3, 5]].any()
    assert machines.available["right"].sum() == len(right) - 2


@pytest.mark.parametrize("rule", ALLOCATIONS)
def test_every_allocation_runs_and_its_cost_adds_up(labelled, rule):
    (made,) = simulated(labelled, "person=2,right=.05", allocations=[rule]).trajectories
    last = made.steps[-1]
    assert last.cost == pytest.approx(2 * last.judged + 0.05 * last.labels)
    assert (last.labels == 0) == (rule == "people")
    assert (last.judged == 0) == (rule == "labels")
    assert made.to_dict()["stop"]["cost"] == made.end.cost
    assert (made.cost_to_tau90 is None) or made.cost_to_tau90 <= last.cost


def test_allocations_are_compared_seed_by_seed_by_their_cost(labelled):
    found = simulated(labelled, "right=.05", allocations=["gain", "people"], seeds=2, until=0.2)
    assert {"labels", "cost", "cost to tau .9"} <= set(found.stops().columns)
    compared = found.compare_policies()
    assert {"cost_at_stop", "cost_to_tau90"} <= set(compared["figure"])
    summary = found.over_seeds()
    assert set(summary["allocation"]) == {"gain", "people"}
    same = simulated(labelled, "right=.05", allocations=["gain", "people"], seeds=2, until=0.2)
    assert same.stops().equals(found.stops())


def test_without_prices_nothing_is_said_of_costs(labelled):
    (made,) = probeval.simulate(labelled, "DCG@5", stop="budget=10", batch=10, checkpoints=(), until=0.1).trajectories
    assert "allocation" not in made.to_dict()
    assert "cost" not in made.to_dict()["stop"]


def test_what_cannot_be_simulated_is_refused(labelled):
    with pytest.raises(SelectionError, match=r"rigth has a price and no labels to buy.*Did you mean 'right'"):
        simulated(labelled, "rigth=.1")
    with pytest.raises(SelectionError, match="No allocation 'root': gain, people, labels, square-root"):
        simulated(labelled, "right=.1", allocations=["root"])
    with pytest.raises(SelectionError, match="one assessor judges at a time"):
        simulated(labelled, "right=.1", assessors=2)
