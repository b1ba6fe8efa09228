"""Runs, judgments and labels in every form mean the same, in every function that takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import probeval
from probeval.data import as_judgments, as_labels, as_runs, write_qrels, write_run
from probeval.errors import DataError

RUNS = {"a": {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 1.0}}, "b": {"q1": {"d3": 3.0, "d1": 1.0}, "q2": {"d4": 1.0}}}
QRELS = {"q1": {"d1": 1, "d2": 0, "d3": 2}, "q2": {"d4": 1}}
LABELS = pd.DataFrame({"query": ["q1", "q1"], "doc": ["d1", "d3"], "gpt": [1, 2]})


class Exports:
    """A frame of another package, of which only its Arrow stream is known."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    for system in RUNS:
        write_run(tmp_path / "runs" / system, as_runs(RUNS), system)
    write_qrels(tmp_path / "qrels.txt", as_judgments(QRELS))
    LABELS.to_csv(tmp_path / "labels.csv", index=False)
    return tmp_path


def runs_in_all_forms(folder: Path) -> dict[str, Any]:
    paths = {name: folder / "runs" / name for name in RUNS}
    frame = as_runs(RUNS).to_frame()
    return {
        "folder": folder / "runs",
        "text": str(folder / "runs"),
        "glob": f"{folder}/runs/*",
        "list": list(paths.values()),
        "names": paths,
        "frame": frame,
        "arrow": Exports(frame),
        "frames": {name: part.drop(columns="system") for name, part in frame.groupby("system")},
        "arrows": {name: Exports(part.drop(columns="system")) for name, part in frame.groupby("system")},
        "dict": RUNS,
        "runs": as_runs(RUNS),
        "collection": probeval.as_collection(RUNS),
    }


def judgments_in_all_forms(folder: Path) -> dict[str, Any]:
    frame = as_judgments(QRELS).to_frame()[["query", "doc", "grade"]]
    return {
        "path": folder / "qrels.txt",
        "list": [str(folder / "qrels.txt")],
        "frame": frame,
        "arrow": Exports(frame),
        "dict": QRELS,
        "judgments": as_judgments(QRELS),
    }


def test_runs_and_judgments_are_the_same_in_every_form(folder: Path):
    expected = probeval.measure(as_runs(RUNS), as_judgments(QRELS), "nDCG@2", scale="graded:2").to_frame()
    for form, runs in runs_in_all_forms(folder).items():
        found = probeval.measure(runs, QRELS, "nDCG@2", scale="graded:2").to_frame()
        pd.testing.assert_frame_equal(found, expected, obj=form)
    for form, qrels in judgments_in_all_forms(folder).items():
        found = probeval.measure(folder / "runs", qrels, "nDCG@2", scale="graded:2").to_frame()
        pd.testing.assert_frame_equal(found, expected, obj=form)


def test_tasks_take_every_form(folder: Path):
    asked = {"scale": "graded:2", "model": "uniform"}
    expected = probeval.evaluate(RUNS, "P@2", qrels=QRELS, **asked).to_frame()
    for form, runs in runs_in_all_forms(folder).items():
        found = probeval.evaluate(runs, "P@2", qrels=Exports(as_judgments(QRELS).to_frame()), **asked).to_frame()
        pd.testing.assert_frame_equal(found, expected, obj=form)


def test_labels_are_the_same_in_every_form(folder: Path):
    path = folder / "labels.csv"
    for labels in (path, str(path), [path], LABELS, Exports(LABELS), {"gpt": path}, {"gpt": LABELS}):
        found = as_labels(labels)
        assert found.sources == ("gpt",)
        assert found.values[:, 0].tolist() == [1, 2]
    both = as_labels({"one": LABELS, "two": path})
    assert both.sources == ("one", "two")
    np.testing.assert_array_equal(both.values[:, 0], both.values[:, 1])


def test_names_of_judgments_are_assessors(folder: Path):
    found = as_judgments({"ann": folder / "qrels.txt", "bob": folder / "qrels.txt"})
    assert sorted(found.assessors) == ["ann", "bob"]
    assert len(found) == 2 * len(as_judgments(QRELS))


def test_what_has_no_name_or_several_is_refused(folder: Path):
    with pytest.raises(DataError, match="'mine' must be one run, got 2 systems"):
        as_runs({"mine": folder / "runs"})
    with pytest.raises(DataError, match="labels of 'x' must be one column, got gpt, other"):
        as_labels({"x": LABELS.assign(other=1)})
    with pytest.raises(DataError, match="no labels were given"):
        as_labels([])
