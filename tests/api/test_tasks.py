"""The other tasks: the same numbers as the command line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import probeval
from probeval.errors import DataError, ModelError, ReliabilityError
from probeval.relevance import load_card
from tests.heard import Heard

METRIC = "DCG@10"


def _same(found, printed):
    """Numbers that are not finite are null in JSON."""
    if isinstance(found, dict):
        assert found.keys() == printed.keys()
        for key in found:
            _same(found[key], printed[key])
    elif isinstance(found, (list, tuple)):
        assert len(found) == len(printed)
        for one, other in zip(found, printed, strict=True):
            _same(one, other)
    elif isinstance(found, float) and not np.isfinite(found):
        assert printed is None
    else:
        assert found == printed


def test_compare(folder, verb):
    files = folder / "runs", "--qrels", folder / "qrels.txt", "--metric", METRIC
    found = probeval.compare(folder / "runs", METRIC, qrels=folder / "qrels.txt", rope=0.01)
    _same(found.to_dict(), verb("compare", *files, "--rope", ".01"))
    assert len(found.to_frame()) == 10
    assert "pairs differ significantly" in found.summary()
    against = found.systems_frame()["system"][0]
    alone = probeval.compare(folder / "runs", METRIC, qrels=folder / "qrels.txt", against=against)
    assert len(alone.to_frame()) == 4
    assert alone._repr_html_()


def test_compare_with_judgments_missing_and_a_model(folder, verb):
    files = folder / "runs", "--qrels", folder / "judged.txt", "--metric", METRIC
    found = probeval.compare(
        folder / "runs", METRIC, qrels=folder / "judged.txt", method="t", model="uniform", scale="graded:2", draws=50
    )
    printed = verb("compare", *files, "--method", "t", "--model", "uniform", "--scale", "graded:2", "--draws", 50)
    _same(found.to_dict(), printed)
    assert {"when_judged", "p_significant"} <= set(found.to_frame().columns)
    assert any("are not judged" in note for note in found.notes)


def test_compare_a_table_of_scores(put, verb):
    table = put("scores.csv", "query,a,b\nq1,.1,.3\nq2,.2,.5\nq3,.4,.5\n")
    found = probeval.compare(table)
    _same(found.to_dict(), verb("compare", table))
    with pytest.raises(ReliabilityError, match="need a measure"):
        probeval.compare(table.parent)
    with pytest.raises(ReliabilityError, match="Did you mean 'b'"):
        probeval.compare(table, against="bb")
    with pytest.raises(DataError, match="needs judgments"):
        probeval.compare({"a": {"q1": {"d1": 1.0}}}, "P@1", model="none")


def test_compare_by_a_model(folder, verb):
    files = folder / "runs", "--qrels", folder / "judged.txt", "--metric", METRIC
    found = probeval.compare(folder / "runs", METRIC, qrels=folder / "judged.txt", rope=0.01)
    _same(found.to_dict(), verb("compare", *files, "--rope", ".01"))
    assert (found.to_frame()[["p_better", "p_equal", "p_worse"]].sum(axis=1) - 1).abs().max() < 1e-9
    assert "pairs of systems are decided at 0.95" in found.summary()
    assert found._repr_html_()


def test_gstudy_and_dstudy(folder, verb):
    runs, qrels = folder / "runs", folder / "qrels.txt"
    study = probeval.gstudy(runs, METRIC, qrels=qrels)
    _same({"metric": METRIC, **study.to_dict()}, verb("gstudy", runs, "--qrels", qrels, "--metric", METRIC))
    sizes = probeval.dstudy(runs, METRIC, qrels=qrels, queries=[10, 50])
    printed = verb("dstudy", runs, "--qrels", qrels, "--metric", METRIC, "--queries", "10,50")
    _same({"metric": METRIC, **sizes.to_dict()}, printed)
    again = probeval.dstudy(study, queries=[10, 50])
    assert again.to_frame()["erho2"].tolist() == sizes.to_frame()["erho2"].tolist()


def test_gstudy_of_a_frame_and_of_uncertain_scores(folder):
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.4], "b": [0.3, 0.5, 0.5]}, index=["q1", "q2", "q3"])
    assert probeval.gstudy(frame).components["system"] > 0
    uncertain = probeval.gstudy(
        folder / "runs", METRIC, qrels=folder / "judged.txt", model="uniform", scale="graded:2", draws=20
    )
    assert uncertain.draws is not None
    with pytest.raises(ModelError, match="not assessors"):
        probeval.gstudy(folder / "runs", METRIC, model="uniform", design="s x q x h", scale="graded:2")


@pytest.mark.slow
def test_plan(folder, verb):
    found = probeval.plan(folder / "runs", "DCG@2", "confidence=.7", scale="graded:2")
    printed = verb("plan", folder / "runs", "--metric", "DCG@2", "--target", "confidence=.7", "--scale", "graded:2")
    _same(found.to_dict(), printed)
    assert printed["targets"] == {"confidence": 0.7}
    assert printed["reached"] == (found.best is not None)


def test_simulate(folder, verb):
    asked = {"batch": 20, "stop": "budget=40", "until": 0.5}
    found = probeval.simulate(
        folder / "runs", METRIC, ["mtc:uniform", "random:uniform"], qrels=folder / "qrels.txt", **asked
    )
    printed = verb(
        "simulate", folder / "runs", "--qrels", folder / "qrels.txt", "--metric", METRIC, "--policy", "mtc:uniform",
        "--policy", "random:uniform", "--batch", 20, "--stop", "budget=40", "--until", ".5", "--jobs", 1,
    )  # fmt: skip
    _same(found.to_dict(), printed)
    with pytest.raises(DataError, match="judgments of a finished campaign"):
        probeval.simulate(folder / "runs", METRIC)


def test_fit_and_use(campaign, tmp_path):
    past = [replace(campaign, name="one"), replace(campaign, name="two")]
    heard = Heard()
    card = probeval.fit(past, out=tmp_path / "model", reporter=heard)
    assert card.name == "model"
    assert load_card(str(tmp_path / "model")).to_dict() == card.to_dict()
    assert heard.said[0] == "one: 5 of 5 systems are fully judged."
    found = probeval.evaluate(replace(campaign, judgments=None), METRIC, model=card, scale="graded:2")
    assert found.choice.name == "model"
    with pytest.raises(ModelError, match="ordinal"):
        probeval.fit(past, kind="hierarchical", terms=[["fSYS"]])
    with pytest.raises(ModelError, match="No kind of model"):
        probeval.fit(past, kind="deep")
    with pytest.raises(DataError, match="no campaign"):
        probeval.fit([])


def test_reports_of_runs_evaluations_and_simulations(folder, tmp_path):
    page = probeval.report(
        folder / "runs", tmp_path / "a.html", METRIC, qrels=folder / "qrels.txt", model="uniform", title="Mine"
    )
    assert (page.title, page.kind) == ("Mine", "evaluation")
    found = probeval.evaluate(folder / "runs", METRIC, qrels=folder / "qrels.txt", model="uniform")
    assert probeval.report(found, tmp_path / "b.html").lead == page.lead
    simulated = probeval.simulate(
        folder / "runs", METRIC, ["random:uniform"], qrels=folder / "qrels.txt", batch=50, until=0.2
    )
    assert probeval.report(simulated, tmp_path / "c.html").kind == "simulation"
    assert all((tmp_path / f"{name}.html").stat().st_size > 1000 for name in "abc")
    with pytest.raises(DataError, match="need a measure"):
        probeval.report(folder / "runs", tmp_path / "d.html")
