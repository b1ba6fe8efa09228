"""Records: functions, commands and documentation are made from their fields."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import probeval
from probeval import api
from probeval.api.evaluate import EvaluationInputs
from probeval.api.evidence import REFUSED, Beside
from probeval.api.report import ReportInputs
from probeval.api.simulate import SimulationInputs
from probeval.cli.commands import command
from probeval.cli.evaluate import evaluate as evaluate_verb
from probeval.records import inputs, is_given, part
from probeval.reporting import SILENT, Reporter

RUNS = {"a": {"q1": {"d1": 2.0, "d2": 1.0}}, "b": {"q1": {"d2": 2.0, "d3": 1.0}}}
TASKS = ("evaluate", "next_pairs", "compare", "gate", "plan", "simulate", "reuse", "reuse_study", "report")


@pytest.mark.parametrize("name", [*TASKS, "as_collection"])
def test_a_task_has_the_parameters_of_its_record_and_explains_each(name: str):
    task = getattr(probeval, name)
    parameters = inspect.signature(task).parameters
    assert {one.name for one in inputs(Beside)} <= set(parameters)
    text = inspect.getdoc(task)
    assert all(f"\n{parameter}\n    " in text for parameter in parameters)
    assert (task.__name__, task.__module__.rpartition(".")[0]) == (name, "probeval.api")


def test_options_are_the_fields():
    options = inspect.signature(command(evaluate_verb)).parameters
    assert {one.name for one in inputs(EvaluationInputs) if one.about.option != ""} <= set(options)
    assert "reporter" not in options


def test_a_wrong_keyword_is_named_with_the_nearest():
    with pytest.raises(
        TypeError, match=r"evaluate\(\) got an unexpected keyword argument 'qrel'. Did you mean 'qrels'"
    ):
        probeval.evaluate(RUNS, "P@2", qrel={})
    with pytest.raises(TypeError, match=r"evaluate\(\) missing a required argument: 'metric'"):
        probeval.evaluate(RUNS)


def test_evidence_stands_in_place_of_runs_and_keywords_come_before_it():
    evidence = probeval.Evidence(RUNS, qrels={"q1": {"d1": 1}}, order="file")
    given = EvaluationInputs(evidence, "P@2", order="trec_eval", depth=1)
    assert (given.runs, given.qrels, given.order) == (RUNS, {"q1": {"d1": 1}}, "file")
    assert EvaluationInputs(evidence, "P@2", order="rank").order == "rank"
    asked = {"model": "uniform", "scale": "binary"}
    with_it = probeval.evaluate(evidence, "P@2", **asked)
    assert with_it.to_dict() == probeval.evaluate(RUNS, "P@2", qrels={"q1": {"d1": 1}}, **asked).to_dict()
    assert with_it.scores.judged == 1
    assert len(probeval.compare(evidence, "P@2", **asked).to_frame()) == 1
    assert probeval.as_collection(evidence).judgments is not None


def test_parts_of_records():
    given = EvaluationInputs(RUNS, "P@2", qrels={"q1": {"d1": 1}}, depth=2)
    assert is_given(given, "depth")
    assert not is_given(given, "level")
    evidence = part(given, probeval.Evidence)
    assert (evidence.runs, evidence.qrels) == (RUNS, {"q1": {"d1": 1}})


@pytest.mark.parametrize("field", [one.name for one in inputs(Beside)])
def test_a_report_passes_all_evidence_on(field: str):
    given = ReportInputs(RUNS, "report.html", "P@2", **{field: "given"})
    assert getattr(part(given, EvaluationInputs, runs=RUNS), field) == "given"
    assert getattr(part(given, SimulationInputs, runs=RUNS), field) == "given"


def test_reasons_are_of_fields_of_the_evidence():
    known = {field.name for field in fields(Beside)}
    assert all(set(reasons) <= known for reasons in REFUSED.values())
    assert all(reason.endswith(".") for reasons in REFUSED.values() for reason in reasons.values())


def test_a_silent_reporter_passes_work_on():
    assert list(SILENT.track([1, 2], "Counting")) == [1, 2]
    assert repr(Reporter()) == "<Reporter>"
    assert api.evaluate(RUNS, "P@2", model="uniform", scale="binary").notes


@pytest.mark.validation
def test_type_checkers_see_the_fields(tmp_path: Path):
    script = tmp_path / "use.py"
    script.write_text(
        "import probeval\n"
        "reveal_type(probeval.evaluate('runs', 'P@5', qrels='qrels.txt'))\n"
        "probeval.evaluate('runs', 'P@5', qrel='qrels.txt')\n"
        "probeval.gate('new', 'old', 'P@5', level='high')\n"
    )
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", str(script)],
        capture_output=True, text=True, check=False, cwd=Path(probeval.__file__).parents[1],
    ).stdout  # fmt: skip
    assert 'Revealed type is "probeval.api.evaluation.Evaluation"' in said
    assert 'use.py:3: error: Unexpected keyword argument "qrel"' in said
    assert 'use.py:4: error: Argument "level" has incompatible type "str"' in said
