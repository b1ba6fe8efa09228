from __future__ import annotations

import numpy as np
import pytest

from probeval.data import LabelTable, Metadata, Pool, read_labels, read_metadata
from probeval.errors import DataError


def test_metadata_with_missing_groups(put):
    path = put("metadata.tsv", "doc\tartist\tgenre\n007\ta2\trock\n1e5\t\tjazz\nNaN\ta1\t\n")
    metadata = read_metadata(str(path))
    assert metadata.docs.tolist() == ["007", "1e5", "NaN"]
    assert metadata.codes("artist", ["NaN", "1e5", "007", "7", "nan"]).tolist() == [0, -1, 1, -1, -1]
    assert metadata.codes("genre", ["007", "1e5", "NaN"]).tolist() == [1, 0, -1]
    assert metadata.codes("genre", ["007"]).tolist() == [1]  # the number does not depend on who is asked for
    assert repr(metadata) == "<Metadata: 3 documents by artist, genre>"


def test_metadata_missing_in_other_tables(put):
    rows = '{"doc": "a", "site": "x"}\n{"doc": "b", "site": null}\n{"doc": "c"}\n{"doc": "d", "site": "None"}\n'
    metadata = read_metadata(put("metadata.jsonl", rows))
    assert metadata.groups["site"].tolist() == ["x", "", "", "None"]
    assert metadata.codes("site", list("abcd")).tolist() == [1, -1, -1, 0]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("doc\tsite\na\tx\na\ty\n", "two rows for one document"),
        ("doc\na\n", "at least one column beside the document"),
        ("site\tgenre\nx\ty\n", "no column for the doc"),
        ("doc\tsite\n", "the table has no rows"),
        ("doc\tsite\n\tx\n", "the doc in row 1 must be text"),
    ],
)
def test_bad_metadata_are_refused_with_their_path(put, content, expected):
    path = put("metadata.tsv", content)
    with pytest.raises(DataError) as caught:
        read_metadata(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


def test_an_unknown_grouping_is_named():
    metadata = Metadata(np.array(["a"], dtype=object), {"genre": np.array(["x"], dtype=object)})
    with pytest.raises(DataError, match=r"No column 'genres' in the metadata. Did you mean 'genre'"):
        metadata.codes("genres", ["a"])


def test_labels_with_missing_values(put):
    path = put("labels.tsv", "query_id\tdoc_id\tgpt\tclicks\nq2\t7\t1\t\nq1\t007\t\t0.25\nq1\t7\t0\t-1\n")
    labels = read_labels(str(path))
    assert labels.sources == ("gpt", "clicks")
    assert [labels.pool.label(i) for i in range(3)] == [("q1", "007"), ("q1", "7"), ("q2", "7")]
    np.testing.assert_array_equal(labels.values, [[np.nan, 0.25], [0, -1], [1, np.nan]])


def test_labels_on_another_pool(put):
    labels = read_labels(put("labels.tsv", "query\tdoc\tgpt\nq1\ta\t1\nq1\tb\t2\n"))
    on = labels.on(Pool.of(["q1", "q1", "q2"], ["b", "c", "a"]))
    np.testing.assert_array_equal(on, [[2], [np.nan], [np.nan]])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("query\tdoc\tgpt\nq\td\t1\nq\td\t1\n", "two rows label one pair"),
        ("query\tdoc\tgpt\nq\td\tgood\n", "the gpt in row 1 must be a number, got 'good'"),
        ("query\tgpt\nq\t1\n", "no column for the doc"),
    ],
)
def test_bad_labels_are_refused_with_their_path(put, content, expected):
    path = put("labels.tsv", content)
    with pytest.raises(DataError) as caught:
        read_labels(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


def test_labels_must_fit_their_pool():
    with pytest.raises(DataError, match="cannot have labels of shape"):
        LabelTable(Pool.of(["q"], ["d"]), ("a", "b"), np.zeros((1, 3)))


def test_labels_of_a_real_campaign(data):
    # README of the campaigns: 20 columns by two models; binary and umbrela near complete, nuggets empty for many pairs.
    labels = read_labels(data / "trec-dl2019-passage" / "labels.tsv.gz")
    assert labels.values.shape == (9260, 20)
    missing = dict(zip(labels.sources, np.isnan(labels.values).mean(axis=0), strict=True))
    assert missing["gpt4o_binary"] < 0.01
    assert max(missing[s] for s in labels.sources if "nuggets" in s) > 0.3
    assert len(read_labels(data / "labels-dl2020.tsv.gz").pool) == 11_386


def test_metadata_of_a_real_campaign(data):
    # README: artist and genre of 7,000 clips; 23 retrieved clips, in 43 pairs, have none.
    from probeval.data import read_runs

    folder = data / "mirex2011"
    metadata, pool = read_metadata(folder / "metadata.tsv.gz"), read_runs(folder / "runs").pool
    for grouping in ("artist", "genre"):
        unknown = metadata.codes(grouping, pool.docs) < 0
        assert unknown.sum() == 23
        assert unknown[pool.doc].sum() == 43
    assert len(metadata.docs) == 7000


def test_evidence_as_tables(put):
    metadata = read_metadata(put("metadata.tsv", "doc\tsite\n007\tx\n1e5\t\n"))
    assert metadata.to_frame().to_dict("list") == {"doc": ["007", "1e5"], "site": ["x", ""]}
    labels = read_labels(put("labels.tsv", "query\tdoc\tgpt\nq2\ta\t1\nq1\tb\t\n"))
    assert labels.to_frame().fillna(-1).to_numpy().tolist() == [["q1", "b", -1.0], ["q2", "a", 1.0]]
