"""Label Studio: tasks out, annotations in, by payloads as its documentation gives them."""

from __future__ import annotations

import json
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

from probeval.data import OpenPair, Scale, WriteOptions, read_annotations, read_judgments, read_label_studio
from probeval.data.label_studio import label_studio_tasks
from probeval.errors import DataError, ProbevalWarning
from tests.data.payload_files import PAYLOADS, refusals

EXPORT, MINIMAL = PAYLOADS / "label_studio.json", PAYLOADS / "label_studio_min.json"
PAIRS = [OpenPair("q1", "007", 1.62), OpenPair("q2", "7", 0.4), OpenPair("q2", "1e5")]


def test_annotations_are_judgments_by_their_annotators_in_order_of_time():
    with pytest.warns(ProbevalWarning, match="1 annotations are left out: 1 skipped, 0 without a grade"):
        judged = read_judgments(EXPORT)
    rows = judged.to_frame()[["query", "doc", "grade", "assessor"]].to_numpy().tolist()
    assert rows == [["q1", "007", 2, "ann@example.org"], ["q1", "7", 0, "ann@example.org"], ["q1", "007", 1, "2"]]
    assert judged.time[0] == 1777888805.5  # 2026-05-04T10:00:05.5Z
    assert "q2" not in judged.pool.queries  # skipped is not judged, and not zero


def test_every_annotation_with_its_lead_time_and_whether_it_was_skipped():
    table = read_annotations(EXPORT)
    assert table["lead_time"].tolist() == [5.25, 8.5, 3.0, 1.5]
    assert table["skipped"].tolist() == [False, False, False, True]
    assert np.isnan(table["grade"].iloc[-1])


def test_the_smaller_exports_hold_the_same_judgments():
    with pytest.warns(ProbevalWarning):
        full = read_label_studio(EXPORT).to_frame()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # they have no skipped annotations to leave out
        minimal = read_judgments(MINIMAL).to_frame()
        table = read_judgments(PAYLOADS / "label_studio.csv").to_frame()
    assert minimal.equals(full)
    key = ["query", "doc", "assessor", "grade"]
    assert table.sort_values(key)[key].to_numpy().tolist() == full.sort_values(key)[key].to_numpy().tolist()


def test_tasks_have_ids_texts_and_the_expected_grade():
    options = WriteOptions(queries={"q1": "solar"}, docs={"007": 'a "text" <b>'}, scale=Scale.graded(2), name="summer")
    first, second, third = json.loads(label_studio_tasks(PAIRS, options)["tasks.json"])
    assert first["data"] == {"query": "q1", "doc": "007", "query_text": "solar", "doc_text": 'a "text" <b>'}
    (prediction,) = first["predictions"]
    assert prediction["model_version"] == "summer"
    (result,) = prediction["result"]
    assert (result["type"], result["value"]) == ("choices", {"choices": ["2"]})
    assert second["predictions"][0]["result"][0]["value"] == {"choices": ["0"]}
    assert second["data"]["doc_text"] == "7"  # without a text, its id
    assert "predictions" not in third


@pytest.mark.parametrize(
    ("scale", "tag", "values"),
    [
        (Scale.graded(3), "Choices", ["0", "1", "2", "3"]),
        (Scale((0, 0.5, 1)), "Choices", ["0", "0.5", "1"]),
        (Scale.fine(), "Number", []),
    ],
)
def test_the_labeling_configuration_shows_the_scale(scale, tag, values):
    files = label_studio_tasks(PAIRS[:1], WriteOptions(scale=scale))
    root = ElementTree.fromstring(files["config.xml"])
    control = root.find(tag)
    assert (control.get("name"), control.get("required")) == ("grade", "true")
    assert [choice.get("value") for choice in control] == values
    shown = {text.get("name"): text.get("value") for text in root.findall("Text")}
    assert control.get("toName") in shown
    data = json.loads(files["tasks.json"])[0]
    assert {value.removeprefix("$") for value in shown.values()} <= data["data"].keys()
    result = data["predictions"][0]["result"][0]
    assert (result["from_name"], result["to_name"], result["type"]) == ("grade", control.get("toName"), tag.lower())


def test_tasks_need_a_scale():
    with pytest.raises(DataError, match="name their scale"):
        label_studio_tasks(PAIRS, WriteOptions())


def annotated(value, kind="choices", name="grade", **more):
    result = {"from_name": name, "to_name": "document", "type": kind, "value": {kind: value}}
    return {"result": [result], "completed_by": 1, "was_cancelled": False, **more}


def task(*annotations, **data):
    return {"data": {"query": "q1", "doc": "7", **data}, "annotations": list(annotations)}


@pytest.mark.parametrize(
    ("annotation", "grade"),
    [
        (annotated(37, "number"), 37),
        (annotated(3, "rating"), 3),
        (annotated(["1"], name="how good"), 1),  # the only control
        ({**annotated(["1"]), "result": [*annotated(["1"])["result"], *annotated(["9"], name="mood")["result"]]}, 1),
    ],
)
def test_grades_of_other_controls(put, annotation, grade):
    assert read_label_studio(put("a.json", json.dumps([task(annotation)]))).grade.tolist() == [grade]


@pytest.mark.parametrize("value", ["2", [{"number": 2}], [{"rating": 2}]])
def test_grades_in_json_min(put, value):
    record = {"query_id": "q1", "docid": "7", "id": 1, "grade": value, "annotator": 1, "annotation_id": 5}
    blank = {"query_id": "q1", "docid": "8", "id": 2, "annotator": {}, "annotation_id": None}
    judged = read_label_studio(put("a.json", json.dumps([record, blank])))
    assert judged.to_frame()[["query", "doc", "grade"]].to_numpy().tolist() == [["q1", "7", 2]]
    assert np.isnan(judged.time).all()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([task()], "no task in it has an annotation"),
        ([task({"result": []})], "none of its 1 annotations has a grade"),
        ([{"data": {}}], "task 1 has neither 'annotations' nor 'annotation_id'. Export the project as JSON"),
        ([task(annotated(["relevant"]))], "must be a number, got 'relevant'. Give such a choice an alias"),
        ([task(annotated(["1", "2"]))], "task 1 has 2 values of 'grade' in one annotation; expected one"),
        ([task({**annotated([]), "result": [
            *annotated(["1"], name="mood")["result"], *annotated(["1"], name="tone")["result"],
        ]})], "task 1 has several controls (mood, tone). Name that of the grade 'grade'"),
        ([task(annotated(["1"]), query="two words")], "the query in row 1 must be text without white space"),
        ([task(annotated(["1"]), doc=1.5)], "the doc in row 1 must be a string, got 1.5"),
        ([{"data": {"doc": "7"}, "annotations": [annotated(["1"])]}], "task 1 has no query in its data: one of query"),
        ([task(annotated(["1"], updated_at="noon"))], "expected a time such as 2026-03-09T22:16:08Z, got 'noon'"),
        ([task(annotated(["1"], lead_time="long"))], "'lead_time' must be a number of seconds, got 'long'"),
        ([task(7)], "an annotation of task 1 must be an object, got 7"),
        ([7], "task 1 must be an object"),
    ],
)  # fmt: skip
def test_bad_exports_are_refused_with_their_path(put, content, expected):
    path = put("a.json", json.dumps(content))
    with pytest.raises(DataError) as caught:
        read_label_studio(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


@pytest.mark.parametrize("export", [EXPORT, MINIMAL], ids=lambda path: path.stem)
def test_a_spoiled_export_is_read_or_refused_in_one_line(export, tmp_path):
    keys = {"annotations", "data", "query", "doc", "result", "value", "choices", "from_name", "completed_by", "email",
            "was_cancelled", "updated_at", "lead_time", "grade", "annotator", "annotation_id"}  # fmt: skip
    said = refusals(read_annotations, export, tmp_path / "a.json", keys=keys)
    assert len(said) > 20
    assert all("\n" not in error and str(tmp_path) in error for error in said)
