"""The report of a simulation, from the result and from its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from probeval.data import Collection
from probeval.display import Table
from probeval.errors import DataError
from probeval.reports import read_simulation, render, report_simulation
from probeval.reports.page import Figure, Prose, Quote, TableText
from probeval.simulation import Simulation, SimulationProtocol, simulate


@pytest.fixture(scope="module")
def result(small: Collection) -> Simulation:
    protocol = SimulationProtocol.of(
        "DCG@5", policies=["mtc:uniform", "random:uniform"], batch=5, seeds=2, checkpoints=(0.0, 0.2)
    )
    return simulate(small, protocol)


def test_the_table_of_stops_is_the_summary(result: Simulation) -> None:
    page = report_simulation(result)
    (table,) = (TableText.of(part) for part in page["stops"].parts if isinstance(part, Table))
    summary = result.stops()
    at = table.columns.index("judged")
    assert [int(row[at].replace(",", "")) for row in table.rows] == summary["judged"].tolist()
    assert page.figures[0][1] == str(summary["judged"].min())
    assert "2 of 2 seeds, stopped after a median of" in " ".join(
        p.text for p in page["stops"].parts if isinstance(p, Prose)
    )


def test_json_says_the_same_but_for_the_curves(result: Simulation, put: Callable[[str, str], Path]) -> None:
    path = put("simulated.json", json.dumps(result.to_dict()))
    from_json, from_result = report_simulation(read_simulation(path)), report_simulation(result)
    assert from_json.figures == from_result.figures
    for ours, theirs in zip(from_json.sections, from_result.sections, strict=True):
        parts = [[p for p in s.parts if not isinstance(p, Figure)] for s in (ours, theirs)]
        plain = [[TableText.of(p) if isinstance(p, Table) else p for p in some] for some in parts]
        assert plain[0] == plain[1]
    assert isinstance(from_json["paper"].parts[0], Quote)
    assert render(from_json).count("<svg") == 3


def test_a_figure_that_is_not_known_is_no_error(result: Simulation, put: Callable[[str, str], Path]) -> None:
    document = result.to_dict()
    document["policies"][0]["points"][0]["rho"] = None
    for policy in document["policies"]:
        policy["judgments_to_tau90"] = None
    page = report_simulation(read_simulation(put("s.json", json.dumps(document))))
    assert "did not stay at .9 for 100 judgments in the " in page.figures[2][2]
    assert "None" not in render(page)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"policies": [{"policy": "gain"}]}', '{"policies": []}'])
def test_another_file_is_refused_in_one_line(put: Callable[[str, str], Path], text: str) -> None:
    with pytest.raises(DataError, match=r"other\.json: "):
        read_simulation(put("other.json", text))
