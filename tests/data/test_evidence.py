from __future__ import annotations

import numpy as np
import pytest

from probeval.data import LabelTable, Metadata, Pool, read_graded_labels, read_labels, read_metadata
from probeval.errors import DataError, ProbevalWarning


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
    np.testing.assert_array_equal(on.values, [[2], [np.nan], [np.nan]])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("query\tdoc\tgpt\nq\td\t1\nq\td\t1\n", "two rows label one pair"),
        ("query\tdoc\tgpt\nq\td\tgood\n", "expected a column of numbers beside query and document: gpt is text"),
        ("query\tdoc\nq\td\n", "expected a column of numbers beside query and document: there is none"),
        ("query\tdoc\tgpt\nq\td\t1\nq\te\tgood\n", "the gpt in row 2 must be a number, got 'good'"),
        ("query\tdoc\tgpt\nq\td\t1\nq\te\tnan\n", "the gpt in row 2 must be a number, got 'nan'"),
        ("query\tdoc\tgpt\nq\td\t1\nq\te\t-inf\n", "the gpt in row 2 must be a finite number, got '-inf'"),
        ("query\tdoc\tm\tm:0\tm:1\nq\td\t1\t0\t1\n", "one column per grade, m:0, m:1, .. without a gap"),
        ("query\tdoc\tm:0\nq\td\t1\n", "one column per grade, m:0, m:1, .. without a gap, up to m:10; got m:0."),
        ("query\tdoc\tm:0\tm:2\nq\td\t0\t1\n", "got m:0, m:2."),
        ("query\tdoc\tm:0\tm:1\nq\tb\t0\t1\nq\ta\t.5\t.4\n", "by 'm' in row 2 must be 0 or more and sum to 1, got 0.5"),
        ("query\tdoc\tm:0\tm:1\nq\ta\t-.5\t1.5\n", "in row 1 must be 0 or more and sum to 1, got -0.5, 1.5"),
        ("query\tdoc\tm:0\tm:1\nq\ta\t1\t\n", "in row 1 must be 0 or more and sum to 1, got 1, nothing"),
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


@pytest.mark.parametrize(
    ("sources", "values", "expected"),
    [
        (("a", "a"), [[0.0, 1.0]], "two columns of labels are called 'a'"),
        (("a",), [[np.inf]], "labels must be finite numbers"),
    ],
)
def test_labels_have_distinct_names_and_are_finite(sources, values, expected):
    with pytest.raises(DataError, match=expected):
        LabelTable(Pool.of(["q"], ["d"]), sources, np.array(values))


def test_columns_of_text_are_named_and_passed_over(put):
    path = put("labels.csv", "query,doc,gpt,why,empty\nq,b,1,it fits,\nq,a,0,it does not,\n")
    with pytest.warns(ProbevalWarning, match="columns of text are not labels: why"):
        labels = read_labels(path)
    assert labels.sources == ("gpt", "empty")
    assert labels.values[:, 0].tolist() == [0, 1]


PROBABILITIES = (
    "query\tdoc\tm-x:0\tgpt:4\tm-x:2\tm-x:1\tann\nq\tb\t.2\t3\t.5\t.3\t2\nq\ta\t\t\t\t\t1\nq\tc\t0\t1\t.9995\t0\t\n"
)


def test_probabilities_of_grades(put):
    labels = read_labels(put("labels.tsv", PROBABILITIES))
    assert labels.sources == ("m-x", "gpt:4", "ann")  # without gpt:0, gpt:4 is a name
    np.testing.assert_allclose(labels.probabilities["m-x"], [[np.nan] * 3, [0.2, 0.3, 0.5], [0, 0, 1]])
    np.testing.assert_allclose(labels.values[:, 0], [np.nan, 1.3, 2])
    assert [observer.scale for observer in labels.observers] == ["probabilities", "graded:3", "graded:2"]
    on = labels.on(Pool.of(["q", "r"], ["b", "b"])).probabilities["m-x"]
    np.testing.assert_allclose(on, [[0.2, 0.3, 0.5], [np.nan] * 3])
    assert labels.to_frame().columns.tolist() == ["query", "doc", "m-x:0", "m-x:1", "m-x:2", "gpt:4", "ann"]
    assert set(labels.on(labels.pool).probabilities) == {"m-x"}  # none of ann


def test_probabilities_need_a_source_and_one_row_per_pair():
    pool = Pool.of(["q"], ["d"])
    for parts in ({"b": np.ones((1, 2)) / 2}, {"a": np.ones((2, 2)) / 2}):
        with pytest.raises(DataError, match="need a source of that name and one row per pair"):
            LabelTable(pool, ("a",), np.zeros((1, 1)), parts)


def test_some_sources_of_a_table(put):
    labels = read_labels(put("labels.tsv", PROBABILITIES)).described({"ann": {"kind": "person"}})
    taken = labels.take(["ann", "m-x"])
    assert [observer.name for observer in taken.observers] == ["ann", "m-x"]
    assert [observer.kind for observer in taken.observers] == ["person", "machine"]
    np.testing.assert_array_equal(taken.values, labels.values[:, [2, 0]])
    assert set(taken.probabilities) == {"m-x"}
    assert not labels.take(["ann"]).probabilities
    with pytest.raises(DataError, match=r"No labels by 'anne'. Did you mean 'ann'"):
        labels.take(["anne"])


def test_tables_side_by_side(put):
    one = read_labels(put("one.tsv", PROBABILITIES)).described({"ann": {"kind": "person"}})
    two = read_labels(put("two.tsv", "query\tdoc\tbob\tz:0\tz:1\nr\ta\t1\t.4\t.6\nq\tb\t0\t1\t0\n"))
    both = one.joined([two])
    assert both.sources == ("m-x", "gpt:4", "ann", "bob", "z")
    assert [both.pool.label(i) for i in range(4)] == [("q", "a"), ("q", "b"), ("q", "c"), ("r", "a")]
    np.testing.assert_array_equal(both.values[:, 3], [np.nan, 0, np.nan, 1])
    np.testing.assert_array_equal(both.on(one.pool).values[:, :3], one.values)
    np.testing.assert_allclose(both.probabilities["m-x"][[1, 3]], [[0.2, 0.3, 0.5], [np.nan] * 3])
    np.testing.assert_allclose(both.probabilities["z"][[1, 3]], [[1, 0], [0.4, 0.6]])
    assert [observer.kind for observer in both.observers].count("person") == 1
    assert one.joined([]).sources == one.sources
    with pytest.raises(DataError, match=r"two columns of labels are called 'bob'. Rename one"):
        both.joined([two])


def test_grades_beside_labels(put):
    path = put("graded.tsv", "query\tdoc\tnist2019\tann\tgpt\nq\ta\t2\t1\t3\nq\tb\t\t0\t1\n")
    labels, judgments = read_graded_labels(str(path))
    assert labels.sources == ("ann", "gpt")
    assert judgments.to_frame()[["query", "doc", "grade"]].to_numpy().tolist() == [["q", "a", 2]]
    assert len(labels.pool) == 2


@pytest.mark.parametrize(
    ("columns", "copies"),
    [
        ("nist2023_llmjudge nist2023", "nist2023_llmjudge"),
        ("nist2023 nist2019", "nist2023"),
        ("nist2023_copy nist2023 grade", "nist2023_copy, nist2023"),
    ],
)
def test_copies_of_the_grade_are_not_labels(put, columns, copies):
    names = columns.split()  # the last one is the grade
    numbers = " ".join(map(str, range(len(names))))
    path = put("graded.tsv", f"query doc {columns} gpt\nq a {numbers} 3\n".replace(" ", "\t"))
    with pytest.warns(ProbevalWarning, match=f"copies of the grade are not labels: {copies}."):
        labels, judgments = read_graded_labels(path)
    assert labels.sources == ("gpt",)
    assert judgments.grade.tolist() == [len(names) - 1]


def test_a_name_like_a_grade_that_is_not_there_is_a_label(put):
    labels, _ = read_graded_labels(put("graded.tsv", "query\tdoc\tnist2019\tgrade_gpt\nq\ta\t1\t3\n"))
    assert labels.sources == ("grade_gpt",)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "query\tdoc\tgpt\nq\ta\t1\n",
            "expected a column of grades (grade, nist2019, nist2023) beside the labels, got gpt",
        ),
        ("query\tdoc\tgrade\nq\ta\t1\n", "expected labels beside the grade 'grade', got none"),
    ],
)
def test_graded_labels_need_grades_and_labels(put, content, expected):
    path = put("graded.tsv", content)
    with pytest.raises(DataError) as caught:
        read_graded_labels(path)
    assert str(caught.value) == f"{path}: {expected}."


def test_graded_labels_of_real_campaigns(data):
    # README of the campaigns: grades by eight other people, two of them for each of 4,493 pairs; nist2023_llmjudge is
    # the grade again.
    labels, judgments = read_graded_labels(data / "labels-dl2019-more.tsv.gz")
    people = labels.take([f"person{i}" for i in range(1, 9)])
    assert np.count_nonzero((~np.isnan(people.values)).sum(axis=1) == 2) == 4493
    assert len(judgments) == 9260
    with pytest.warns(ProbevalWarning, match="nist2023_llmjudge"):
        labels, judgments = read_graded_labels(data / "labels-dl2023.tsv.gz")
    assert labels.values.shape == (4423, 33)
    assert judgments.scale().levels.tolist() == [0, 1, 2, 3]


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
