"""``partition`` in Python and ``probeval convert --to partitions``: from files to a folder and back."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import probeval
from probeval.api import partition as partitions
from probeval.data import read_campaign, write_campaign

pytest.importorskip("pyarrow")

LABELS = "query\tdoc\tgpt\n"


@pytest.fixture
def folder(small, put, tmp_path):
    """A campaign of files with teams and labels."""
    write_campaign(replace(small, metadata=None), tmp_path / "files")
    pool = small.runs.pool.to_frame()
    rows = "".join(f"{q}\t{d}\t{i % 4}\n" for i, (q, d) in enumerate(zip(pool["query"], pool["doc"], strict=True)))
    put("files/labels.tsv", LABELS + rows)
    put("files/systems.tsv", "run\tteam\n" + "".join(f"{s}\tus\n" for s in small.runs.systems[:2]))
    return tmp_path / "files"


@pytest.mark.parametrize("n", [1, 3, None])
def test_files_become_partitions_with_the_same_rows(folder, tmp_path, n):
    beside = {"qrels": folder / "qrels.txt", "labels": folder / "labels.tsv"}
    written = partitions(folder, tmp_path / "parts", n, depth=5, **beside)
    assert len(written) == (n or 1)
    whole = read_campaign(folder)
    top = whole.runs.top(5)
    parts = list(written.read_all())
    assert (written.systems, written.teams) == (whole.runs.systems, whole.runs.teams)
    np.testing.assert_array_equal(np.concatenate([part.runs.scores for part in parts], axis=1), top.scores)
    assert sum(len(part.runs.pool) for part in parts) == len(top.pool)
    assert np.concatenate([part.labels.values for part in parts]).tolist() == whole.labels.values.tolist()
    assert written.read_judgments().fingerprint() == whole.judgments.fingerprint()


def test_objects_become_partitions_too(tmp_path):
    written = probeval.partition({"bm25": {"q1": {"d1": 2.0}, "q2": {"d1": 1.0}}}, tmp_path / "parts", 2)
    assert [part.runs.queries.tolist() for part in written.read_all()] == [["q1"], ["q2"]]


@pytest.fixture
def small_chunks(monkeypatch):
    """Files are read a few rows at a time."""
    monkeypatch.setattr("probeval.data.trec.CHUNK", 100)
    monkeypatch.setattr("probeval.data.spread.ROWS", 7)


@pytest.mark.parametrize("order", ["trec_eval", "rank"])
@pytest.mark.usefixtures("small_chunks")
def test_files_are_read_in_chunks(folder, put, tmp_path, order):
    long = "d" * 70  # longer than the widest id that is compared as machine words
    lines = [f"{q} Q0 {d} {r} {9 - r} x" for r, d in enumerate(("é", long, "d7"), start=1) for q in ("q3", "q10", "zz")]
    put("files/runs/extra", gzip.compress("\n".join(["\ufeff# mine", *lines, "", "# end", ""]).encode()))
    beside = {"qrels": folder / "qrels.txt", "labels": folder / "labels.tsv"}
    written = partitions(folder, tmp_path / "parts", 4, order=order, **beside)
    whole = read_campaign(folder, order=order)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files", "parts"]
    parts = list(written.read_all())
    assert np.concatenate([part.runs.queries for part in parts]).tolist() == whole.runs.queries.tolist()
    np.testing.assert_array_equal(np.concatenate([part.runs.scores for part in parts], axis=1), whole.runs.scores)
    rows = pd.concat([part.runs.to_frame() for part in parts]).sort_values(["system", "query", "rank"])
    expected = whole.runs.to_frame().sort_values(["system", "query", "rank"])
    pd.testing.assert_frame_equal(rows.reset_index(drop=True), expected.reset_index(drop=True))
    assert np.concatenate([part.labels.values for part in parts]).tolist() == whole.labels.values.tolist()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("runs/a", "q1 Q0 d1 1 2 a\n" * 9 + "q1 Q0 d1 1 a\n", r"runs/a:10: expected 6 columns .* got 5"),
        ("runs/a", "# nothing\n", r"runs/a: holds no line of the form"),
        ("runs/a", "", r"runs/a: the file is empty"),
        ("runs/a", b"q1 Q0 d1 1 2 a\nq\xff Q0 d1 1 2 a\n", r"runs/a:2: ids must be UTF-8 text"),
        ("runs/a", b"q1 Q0 d1 1 2 a\nq1 Q0 d\xff 1 2 a\n", r"runs/a:2: ids must be UTF-8 text"),
        (
            "runs/a",
            "q1 Q0 d1 1 2 a\n" + "q2 Q0 d1 1 2 a\n" * 2,
            r"runs/a:3: document 'd1' of query 'q2' stands on line 2",
        ),
        ("runs/a", b"\x1f\x8bno", r"runs/a: the gzip data"),
        ("labels.csv", LABELS.replace("\t", ",") + "q1,d1,1\n" * 20, r"labels.csv: two rows label one pair"),
        (
            "labels.csv",
            LABELS.replace("\t", ",") + "".join(f"q{i},d,1\n" for i in range(20)) + "q,d,x\n",
            r"labels.csv: the gpt in row 21 must be a number, got 'x'",
        ),
        ("labels.csv", LABELS.replace("\t", ","), r"labels.csv: the table has no rows"),
        ("labels.csv", LABELS.replace("\t", ",") + "q9,d1,1\n", r"none of the labels is of a pair that the runs"),
        ("qrels.txt", "q9 0 d1 1\n", r"none of the judgments is of a pair that the runs retrieved"),
    ],
)
def test_faults_are_named_as_when_files_are_read_whole(put, tmp_path, name, text, expected):
    put("runs/a", "q1 Q0 d1 1 2 a\nq2 Q0 d1 1 2 a\n")
    path = put(name, text)
    kind = {"labels.csv": "labels", "qrels.txt": "qrels"}.get(name)
    with pytest.raises(probeval.DataError, match=expected):
        partitions(tmp_path / "runs", tmp_path / "parts", 1, **({} if kind is None else {kind: path}))
    assert not (tmp_path / "parts").exists()


def test_observers_and_teams_are_those_of_the_whole_campaign(folder, tmp_path):
    given = {"observers": {"gpt": {"kind": "person"}, "who": {"kind": "person"}}}
    systems = read_campaign(folder).runs.systems
    given["teams"] = {systems[0]: "them"}
    with pytest.warns(probeval.ProbevalWarning, match=r"Observers without labels: who"):
        written = partitions(folder, tmp_path / "parts", 3, labels=folder / "labels.tsv", **given)
    assert [(o.name, o.kind, o.scale) for o in written.observers] == [("gpt", "person", "graded:3")]
    assert written.teams == ("them", *systems[1:])
    with pytest.raises(probeval.DataError, match=r"observers describe labels, and there are none"):
        partitions(folder, tmp_path / "others", 3, observers=given["observers"])
    off = {"gpt": {"scale": "binary"}}
    with pytest.raises(probeval.DataError, match=r"observer 'gpt': the label 3 is not on the given scale binary"):
        partitions(folder, tmp_path / "others", 3, labels=folder / "labels.tsv", observers=off)
