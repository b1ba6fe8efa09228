"""Weights and segments of queries, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from probeval.data import as_query_weights, as_segments
from probeval.errors import DataError

QUERIES = ["q1", "q2", "q3", "q4", "q5"]


def test_weights_from_a_file_a_frame_and_a_mapping(tmp_path):
    path = tmp_path / "traffic.tsv"
    path.write_text("qid\tWeight\nq2\t3\nq1\t0.5\nq9\t7\n")
    for given in (path, pd.DataFrame({"query": ["q1", "q2"], "weight": [0.5, 3]}), {"q1": 0.5, "q2": 3}):
        assert as_query_weights(given, ["q1", "q2"]).tolist() == [0.5, 3.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,weight\nq1,1\n", r"4 of 5 queries have no weight: 'q2', 'q3', 'q4' and others\. Give each one"),
        ("query,weight\nq1,-1\n", "the weight in row 1 must be a number from 0, got -1"),
        ("query,weight\nq1,many\n", "the weight in row 1 must be a number, got 'many'"),
        ("query,weight\nq1,1\nq1,2\n", "the query 'q1' has several weights: give one row per query"),
        ("query,weight\nq1,0\nq2,0\nq3,0\nq4,0\nq5,0\n", "all queries have the weight 0"),
        (
            "query,traffic\nq1,1\n",
            "no column 'weight': the columns query and weight are expected, got 'query', 'traffic'",
        ),
        ("name,weight\nq1,1\n", "no column for the query"),
    ],
)
def test_wrong_weights(tmp_path, text, message):
    path = tmp_path / "traffic.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as wrong:
        as_query_weights(path, QUERIES)
    assert str(wrong.value).startswith(str(path))


def test_segments(tmp_path):
    path = tmp_path / "segments.csv"
    path.write_text("query,segment\nq2,tail\nq1,head\nq1,short\nq9,head\n")
    found = as_segments(path, QUERIES)
    assert list(found) == ["tail", "head", "short"]
    assert np.flatnonzero(found["head"]).tolist() == [0]
    assert np.flatnonzero(found["tail"]).tolist() == [1]


def test_segments_of_other_queries():
    with pytest.raises(
        DataError, match="no query in common: the runs answer 'q1', 'q2', 'q3' and others, the table has 'x'"
    ):
        as_segments({"x": "head"}, QUERIES)
    with pytest.raises(
        DataError, match="expected a path, a data frame, or a mapping from queries to segments; got int"
    ):
        as_segments(7, QUERIES)
