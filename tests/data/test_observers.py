"""Who gives labels: what is inferred from labels, what is read, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from probeval.data import LabelTable, ObserverSpec, Pool, as_labels, describe_observer, read_labels, read_observers
from probeval.data.files import write_bytes
from probeval.data.observers import as_observers
from probeval.errors import DataError, ProbevalWarning

NONE = np.nan


@pytest.mark.parametrize(
    ("name", "family"),
    [("gpt4o_umbrela_2", "gpt4o"), ("TREMA-rubric0", "TREMA"), ("a-b_c", "a"), ("ann", "ann"), ("_x", "_x")],
)
def test_the_family_is_the_first_part_of_the_name(name, family):
    assert ObserverSpec(name).family == family
    assert ObserverSpec(name, family="mine").family == "mine"


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0, 1, NONE], "binary"),
        ([0, 0], "binary"),
        ([1, 2, NONE], "graded:2"),
        ([0, 10], "graded:10"),
        ([0, 11], "number"),
        ([-1, 1], "number"),
        ([0.5, 1], "number"),
        ([NONE, NONE], "number"),
        ([], "number"),
        ([[0.5, 0.5], [NONE, NONE]], "probabilities"),
    ],
)
def test_the_scale_is_inferred_from_the_labels(values, scale):
    spec = describe_observer("gpt_x", np.array(values, dtype=float))
    assert spec == ObserverSpec("gpt_x", "machine", "gpt", scale)


@pytest.mark.parametrize(
    ("scale", "levels"), [("binary", 2), ("graded:1", 2), ("graded:10", 11), ("number", None), ("probabilities", None)]
)
def test_levels_of_a_scale(scale, levels):
    assert ObserverSpec("x", scale=scale).levels == levels


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"name": ""}, "an observer has no name"),
        ({"kind": "persn"}, "must be machine, similarity or person, got 'persn'. Did you mean 'person'?"),
        ({"scale": "graded:11"}, "the scale must be one of binary, graded:M (integers 0..M, M up to 10), number,"),
        ({"scale": "graded:0"}, "got 'graded:0'"),
        ({"scale": "fine"}, "got 'fine'"),
    ],
)
def test_a_wrong_description_is_refused(parts, expected):
    with pytest.raises(DataError) as caught:
        ObserverSpec(**{"name": "x", **parts})
    assert expected in str(caught.value)


def test_what_is_given_counts():
    given = {"kind": "person", "family": "ours", "scale": "graded:4"}
    values = np.array([0.0, 1.0])
    assert describe_observer("a_b", values, given) == ObserverSpec("a_b", "person", "ours", "graded:4")
    assert describe_observer("a_b", values, {"scale": "number"}) == ObserverSpec("a_b", "machine", "a", "number")
    assert describe_observer("a_b", values, ObserverSpec("other", scale="binary")).name == "a_b"


@pytest.mark.parametrize(
    ("values", "scale", "bad"),
    [([0, 2, 3], "binary", "2"), ([0, 1.5], "graded:3", "1.5"), ([4, 5, -1], "graded:4", "5"), ([-1], "binary", "-1")],
)
def test_labels_must_be_on_the_given_scale(values, scale, bad):
    pool = Pool.of(["q"] * len(values), [f"d{i}" for i in range(len(values))])
    table = LabelTable(pool, ("x",), np.array(values, dtype=float)[:, None])
    first = next(f"d{i}" for i, value in enumerate(values) if f"{value:g}" == bad)
    expected = f"observer 'x': the label {bad} of query 'q', document '{first}' is not on the given scale {scale}"
    with pytest.raises(DataError) as caught:
        table.described({"x": {"scale": scale}})
    assert str(caught.value).startswith(expected)
    with pytest.raises(DataError, match=f"the label {bad} is not on the given scale"):
        describe_observer("x", np.array(values, dtype=float), {"scale": scale})


def test_probabilities_and_labels_are_not_taken_for_one_another():
    with pytest.raises(
        DataError, match="'x' has one label per pair, which the given scale probabilities does not allow"
    ):
        describe_observer("x", np.array([0.0, 1.0]), {"scale": "probabilities"})
    with pytest.raises(DataError, match="'x' has probabilities of grades, which the given scale binary does not allow"):
        describe_observer("x", np.array([[0.2, 0.8]]), {"scale": "binary"})


def test_a_table_of_labels_describes_its_observers():
    table = LabelTable(Pool.of(["q", "q"], ["a", "b"]), ("ann", "gpt_x"), np.array([[2.0, 0.0], [1.0, 1.0]]))
    assert [(o.name, o.kind, o.scale) for o in table.observers] == [
        ("ann", "machine", "graded:2"),
        ("gpt_x", "machine", "binary"),
    ]
    described = table.described({"ann": {"kind": "person", "scale": "graded:3"}, "eve": {"kind": "person"}})
    assert described.observers[0] == ObserverSpec("ann", "person", "ann", "graded:3")
    assert described.observers[1] == table.observers[1]
    again = described.described({"gpt_x": {"family": "gpt4"}})
    assert [observer.family for observer in again.observers] == ["ann", "gpt4"]
    assert again.observers[0].kind == "person"


def test_a_file_of_observers(put):
    path = put("observers.tsv", "Name\tkind\tscale\tnote\nann\tperson\tgraded:3\tfast\ngpt_x\t\t\t\n")
    with pytest.warns(ProbevalWarning, match="columns that describe no observer are not used: note"):
        assert read_observers(str(path)) == {"ann": {"kind": "person", "scale": "graded:3"}, "gpt_x": {}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("name,kind\nann,robot\n", "row 1: observer 'ann': the kind must be machine, similarity or person"),
        ("name,scale\nann,0-3\n", "row 1: observer 'ann': the scale must be one of"),
        ("name,kind\nann,person\nann,machine\n", "row 2: observer 'ann' is described twice. Keep one row."),
        ("name,kind\n,person\n", "row 1: an observer has no name"),
        (
            "observer,kind\nann,person\n",
            "no column 'name'. Expected name, and any of kind, family and scale; got 'observer'",
        ),
        ("name,kind\n", "the table has no rows"),
    ],
)
def test_bad_files_of_observers_are_refused_with_their_path(put, content, expected):
    path = put("observers.csv", content)
    with pytest.raises(DataError) as caught:
        read_observers(path)
    assert str(caught.value).startswith(f"{path}: {expected}")
    assert "\n" not in str(caught.value)


def test_observers_in_memory(put):
    expected = {"ann": {"kind": "person"}, "gpt": {"family": "openai"}}
    frame = pd.DataFrame({"name": ["ann", "gpt"], "kind": ["person", None], "family": [np.nan, "openai"]})
    assert as_observers(frame) == as_observers(expected) == expected
    assert as_observers(put("observers.csv", frame.to_csv(index=False))) == expected
    assert as_observers({"x": ObserverSpec("ann", "person")})["x"]["kind"] == "person"
    assert as_observers({}) == {}
    with pytest.raises(DataError, match="observer 'ann': expected a mapping such as"):
        as_observers({"ann": "person"})


def test_a_table_of_labels_may_say_how_it_was_made(tmp_path):
    path = tmp_path / "labels.csv"
    about = {"name": "llm", "family": "gpt", "scale": "graded:3", "provenance": "llm-1, prompt a, 2026-01-31"}
    path.write_text(f"# labels by {json.dumps(about)}\nquery,doc,llm,ann\nq1,007,2,1\n")
    table = read_labels(path)
    assert table.provenance == {"llm": "llm-1, prompt a, 2026-01-31"}
    assert table.observers[0].scale == "graded:3"  # not graded:2, as its labels alone would tell
    assert table.observers[1].scale == "binary"
    # It stays with the labels, and what is said of them later is added to it.
    for kept in (table.take(["llm"]), table.on(table.pool), table.described({"llm": {"kind": "person"}})):
        assert kept.provenance == table.provenance
        assert kept.observers[0].family == "gpt"
    other = tmp_path / "other.tsv"
    other.write_text("query\tdoc\tx\nq2\td\t0\n")
    assert as_labels([path, other]).provenance == table.provenance


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.csv.gz"])
def test_a_written_table_of_labels_reads_back(tmp_path, name):
    spec = ObserverSpec("llm", scale="probabilities", provenance='prompt "a", \u00e9; 2026-01-31')
    shares = np.array([[0.1, 0.9], [np.nan, np.nan]])
    pool = Pool.of(["q1", "q1"], ["=d1", "007"])
    at = pool.locate(["q1", "q1"], ["=d1", "007"])
    values = np.array([[0.9, 1.0], [np.nan, 2.0]])[np.argsort(at)]
    table = LabelTable(pool, ("llm", "ann"), values, {"llm": shares[np.argsort(at)]}, {"llm": spec})
    separator = "\t" if ".tsv" in name else ","
    write_bytes(tmp_path / name, table.to_csv(separator=separator).encode())
    back = read_labels(tmp_path / name)
    assert back.pool == pool
    assert back.sources == table.sources
    np.testing.assert_allclose(back.values, table.values)
    assert back.descriptions == {"llm": spec}


@pytest.mark.parametrize("line", ["{", "[]", '{"kind": "machine"}', "7", '{"name": "llm", "scale": "big"}'])
def test_a_wrong_description_in_front_of_labels_is_an_error(tmp_path, line):
    (tmp_path / "labels.csv").write_text(f"# labels by {line}\nquery,doc,llm\nq1,d1,2\n")
    with pytest.raises(DataError, match=r"labels\.csv"):
        read_labels(tmp_path / "labels.csv")
