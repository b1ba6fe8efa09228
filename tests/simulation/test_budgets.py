"""Policies at fixed budgets and in area, paired over seeds and collections."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import trapezoid

from probeval.reliability import ap_correlation
from probeval.simulation import Simulation, SimulationProtocol, simulate
from probeval.simulation.budgets import (
    BUDGET_FIGURES,
    area_under,
    compare_at_budgets,
    curves_of,
    summarise_budgets,
)

BUDGETS = (0.0, 0.1, 0.3)


def curves(values: dict[tuple[str, str, int], tuple[float, ...]]) -> pd.DataFrame:
    """Curves by collection, policy and seed; all figures are the same."""
    rows = [
        {"campaign": campaign, "policy": policy, "seed": seed, "budget": budget} | dict.fromkeys(BUDGET_FIGURES, value)
        for (campaign, policy, seed), curve in values.items()
        for budget, value in zip(BUDGETS, curve, strict=True)
    ]
    return pd.DataFrame(rows)


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(-1, 1)), min_size=2, max_size=8))
def test_the_area_is_the_trapezoidal_rule_over_the_range(steps):
    x, y = np.cumsum([s[0] for s in steps]), np.array([s[1] for s in steps])
    area = area_under(x.tolist(), y.tolist())
    assert area == pytest.approx(trapezoid(y, x) / (x[-1] - x[0]), abs=1e-9)
    assert y.min() - 1e-9 <= area <= y.max() + 1e-9


def test_one_collection_is_paired_by_seed():
    a, b = [(0.2, 0.6, 0.8), (0.2, 0.5, 0.9), (0.2, 0.7, 0.9)], [(0.2, 0.4, 0.7), (0.2, 0.4, 0.7), (0.2, 0.5, 0.6)]
    made = {("one", policy, s): c for policy, cs in (("gain", a), ("random", b)) for s, c in enumerate(cs)}
    rows = {(r.figure, r.budget): r for r in compare_at_budgets(curves(made))}
    assert len(rows) == len(BUDGET_FIGURES) * (len(BUDGETS) + 1)
    last = rows["tau", 0.3]
    differences = [0.8 - 0.7, 0.9 - 0.7, 0.9 - 0.6]
    expected = stats.t.interval(0.95, 2, loc=np.mean(differences), scale=stats.sem(differences))
    assert (last.collections, last.seeds, last.difference) == (1, 3, pytest.approx(np.mean(differences)))
    assert (last.lower, last.upper) == pytest.approx(expected)
    assert last.verdict == "undecided"
    middle = {name: rows[name, 0.1].verdict for name in BUDGET_FIGURES}
    assert middle == {name: "better" if sign > 0 else "worse" for name, sign in BUDGET_FIGURES.items()}
    area = rows["accuracy", None]
    per_seed = [area_under(BUDGETS, x) - area_under(BUDGETS, y) for x, y in zip(a, b, strict=True)]
    assert area.difference == pytest.approx(np.mean(per_seed))


def test_several_collections_are_the_unit():
    gaps = {"one": (0.1, 0.3), "two": (0.2, 0.2), "three": (0.05, 0.15)}
    made = {(c, "gain", s): (0.0, 0.5, 0.5 + gap) for c, both in gaps.items() for s, gap in enumerate(both)}
    made |= {(c, "mtc", 0): (0.0, 0.5, 0.5) for c in gaps}  # without chance: one seed
    row = next(r for r in compare_at_budgets(curves(made)) if (r.figure, r.budget) == ("tau", 0.3))
    means = [np.mean(both) for both in gaps.values()]
    assert (row.collections, row.seeds, row.difference) == (3, 6, pytest.approx(np.mean(means)))
    assert (row.lower, row.upper) == pytest.approx(stats.t.interval(0.95, 2, np.mean(means), stats.sem(means)))
    summary = {(r.policy, r.figure, r.budget): r for r in summarise_budgets(curves(made))}
    assert summary["gain", "tau", 0.3].mean == pytest.approx(0.5 + np.mean(means))
    assert (summary["gain", "tau", 0.3].collections, summary["gain", "tau", 0.3].seeds) == (3, 6)


def test_a_collection_that_one_policy_lacks_is_left_out():
    made = {("one", "gain", 0): (0, 0, 1), ("one", "mtc", 0): (0, 0, 0), ("two", "gain", 0): (0, 0, 0)}
    row = next(r for r in compare_at_budgets(curves(made)) if (r.figure, r.budget) == ("tau", 0.3))
    assert (row.collections, row.seeds, row.difference, row.lower, row.verdict) == (1, 1, 1.0, None, "undecided")


@pytest.fixture(scope="module")
def stopped(three) -> Simulation:
    protocol = SimulationProtocol.of(
        "DCG@5", policies=["mtc:uniform", "random:uniform"], seeds=3, batch=10, stop="budget=25",
        checkpoints=[0, 0.2], until=0.4,
    )  # fmt: skip
    return simulate(three[0], protocol)


def test_a_budget_stop_compares_what_it_bought(stopped):
    assert "judgments_at_stop" not in stopped.compare_policies()["figure"].tolist()
    share = 25 / stopped.setup.pool
    rows = stopped.compare_at_budgets().set_index(["figure", "budget"])
    at_stop = [[t.at_stop.tau for t in stopped.trajectories if t.policy == p] for p in ("mtc", "random")]
    expected = np.mean(np.subtract(*at_stop))
    assert rows.loc[("tau", share), "difference"] == pytest.approx(expected)
    assert share in curves_of(stopped.trajectories)["budget"].tolist()
    document = json.loads(json.dumps(stopped.to_dict()))
    assert {row["verdict"] for row in document["budget_comparisons"]} <= {"better", "worse", "undecided"}
    assert len(document["budgets"]) == 2 * len(BUDGET_FIGURES) * 4  # two checkpoints, the stop, the area
    titles = [table.title for table in stopped.tables()]
    assert titles[-2:] == [
        "Means at budgets (shares of the pool), and areas under the curves (their mean heights)",
        "Figure of policy minus that of other, 95% intervals",
    ]


def test_the_ap_correlation_of_a_point(three):
    protocol = SimulationProtocol.of("DCG@5", policies=["mtc:uniform"], batch=50, checkpoints=[0, 1])
    nothing, everything = simulate(three[0], protocol).trajectories[0].points
    n = len(three[0].runs.systems)
    assert nothing.tau_ap == pytest.approx(ap_correlation(np.arange(n), np.zeros(n), variant="a"))  # all tied
    assert everything.tau_ap == pytest.approx(1)
