"""Votes from tables, with labels that are no grades, repeated labels and gold grades."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from probeval.data import Judgments, Votes, as_votes, read_votes
from probeval.errors import DataError

TEXT = (
    "topicID\tworkerID\tdocID\tgold\tlabel\n"
    "1\tw1\td1\t2\t1\n1\tw2\td1\t2\t2\n1\tw1\td2\t-1\t-2\n1\tw1\td1\t2\t2\n2\tw2\td3\t-2\t0\n"
)


def check(votes: Votes) -> None:
    """The votes of ``TEXT``: w1 changed a label, and pair (1, d2) has only a broken link."""
    table = votes.judgments.to_frame()
    assert sorted(zip(table["query"], table["doc"], table["assessor"], table["grade"], strict=True)) == [
        ("1", "d1", "w1", 2.0),
        ("1", "d1", "w2", 2.0),
        ("2", "d3", "w2", 0.0),
    ]
    assert len(votes.judgments.pool) == 3
    assert (votes.no_grade, votes.repeated) == (1, 1)
    assert votes.gold.to_frame()[["query", "doc", "grade"]].to_numpy().tolist() == [["1", "d1", 2.0]]


@pytest.mark.parametrize("name", ["votes.tsv", "votes.txt", "votes.txt.gz"])
def test_columns_are_recognised_whatever_the_name_of_the_file(put, name):
    data = TEXT.encode()
    check(read_votes(put(name, gzip.compress(data) if name.endswith(".gz") else data)))


def test_other_formats_of_tables(put, tmp_path):
    table = pd.DataFrame([line.split("\t") for line in TEXT.splitlines()[1:]], columns=TEXT.splitlines()[0].split("\t"))
    check(read_votes(put("votes.csv", TEXT.replace("\t", ","))))
    check(read_votes(put("votes.jsonl", "\n".join(json.dumps(row) for row in table.to_dict("records")))))
    table.to_parquet(tmp_path / "votes.parquet")
    check(read_votes(tmp_path / "votes.parquet"))
    check(as_votes(table))


def test_qrels_with_assessors_are_votes(put):
    votes = read_votes(put("qrels.txt", "q ann d 2\nq bob d 1\nq ann e 0\n"))
    assert len(votes.judgments) == 3
    assert votes.gold is None


def test_gold_from_elsewhere_replaces_the_column_and_lies_on_the_pairs_with_labels(put):
    path = put("votes.tsv", TEXT)
    votes = as_votes(path, {"2": {"d3": 1}, "9": {"other": 2}})
    assert votes.gold.to_frame()[["query", "doc", "grade"]].to_numpy().tolist() == [["2", "d3", 1.0]]
    assert as_votes(path, put("gold.qrels", "2 0 d3 1\n")).gold.grade.tolist() == [1.0]


def test_later_votes_are_later_by_time_and_gold_keeps_its_rows():
    table = pd.DataFrame(
        {
            "query": "q", "doc": ["a", "a", "b"], "worker": "w", "label": [2, 0, 1], "time": [9.0, 1.0, 5.0],
            "gold": [1, 1, 2],
        }
    )  # fmt: skip
    votes = as_votes(table)
    assert votes.judgments.grades().tolist() == [2.0, 1.0]
    assert votes.gold.grades().tolist() == [1.0, 2.0]


def test_judgments_by_several_assessors_are_votes():
    judged = Judgments.rows(["q", "q"], ["d", "d"], [1, 0], assessors=["ann", "bob"])
    assert len(as_votes(judged).judgments) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,doc,label\nq,d,1\n", "no column for the assessor"),
        ("query,worker,label\nq,w,1\n", "no column for the doc"),
        ("query,doc,worker,label\nq,d,w,yes\n", "the grade in row 1 must be a number, got 'yes'"),
        ("query,doc,worker,label,gold\nq,d,w,1,x\n", "the gold grade in row 1 must be a number"),
        ("query,doc,worker,label,gold\nq,d,w,1,1\nq,d,v,1,2\n", "query 'q', document 'd' has several gold grades"),
    ],
)
def test_faults_are_named(put, text, message):
    with pytest.raises(DataError, match=message):
        read_votes(put("votes.csv", text))


def test_labels_of_a_real_crowd(data):
    path = data / "crowd-trec-rf10" / "trec-rf10-data.txt.gz"
    if not path.exists():
        pytest.skip("the folder of real campaigns has no crowd-trec-rf10")
    votes = read_votes(path)
    given = votes.judgments
    assert len(given) + votes.no_grade + votes.repeated == 98_453
    assert len(given.pool) == 20_232
    assert len(given.assessors) == 766
    assert votes.no_grade == 6_670
    assert np.bincount(votes.gold.grade.astype(int)).tolist() == [1_501, 863, 913]
