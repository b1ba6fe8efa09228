"""Ids become numbers in bulk: the same as one by one, whatever their length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval.data import read_judgments, read_runs, trec
from probeval.errors import DataError

# Few letters and lengths around the width of a machine word, so that ids share words.
ids = st.text("ab", min_size=1, max_size=20).map(str.encode) | st.binary(min_size=1, max_size=90).map(
    lambda b: bytes(36 + x % 90 for x in b)
)


def one_by_one(labels: list[bytes]) -> tuple[list[int], list[bytes]]:
    seen: dict[bytes, int] = {}
    return [seen.setdefault(label, len(seen)) for label in labels], list(seen)


def columns(labels: list[bytes]) -> trec.Tokens:
    return trec._columns(b"".join(b"%s 0 d 1\n" % label for label in labels), trec.QRELS, ("query",))["query"]


@given(st.lists(st.lists(ids, min_size=1, max_size=12), min_size=1, max_size=4))
def test_ids_are_numbered_in_the_order_in_which_they_are_seen(parts):
    number, known = trec.numbered([columns(part) for part in parts])
    assert (number.tolist(), known) == one_by_one([label for part in parts for label in part])


def test_ids_that_hash_alike_are_told_apart(monkeypatch):
    monkeypatch.setattr(trec, "MIX", np.uint64(0))  # now only the last word counts
    labels = [b"aaaaaaaa-same", b"bbbbbbbb-same", b"aaaaaaaa-same"]
    number, known = trec.numbered([columns(labels)])
    assert (number.tolist(), known) == ([0, 1, 0], labels[:2])


def test_short_and_very_long_ids_meet(put):
    long = "http://example.org/" + "x" * 500
    put("runs/a", "q Q0 d1 1 2 t\n")
    put("runs/b", f"q Q0 {long} 1 3 t\nq Q0 d1 2 2 t\n")
    runs = read_runs(put("runs/c", f"q Q0 {long}y 1 1 t\n").parent)
    assert list(runs.pool.docs) == ["d1", long, long + "y"]
    assert [[runs.pool.label(p)[1] for p in runs.pairs[s, 0] if p >= 0] for s in range(3)] == [
        ["d1"],
        [long, "d1"],
        [long + "y"],
    ]


@pytest.mark.parametrize("mark", ["\x01", "\x1f", "\x08"])
def test_a_control_character_is_refused_wherever_it_stands(put, mark):
    for line in (f"q{mark} 0 d 1\n", f"q 0 d{mark}e 1\n", f"q 0 d 1\n{mark}q 0 e 1\n"):
        with pytest.raises(DataError, match="control character"):
            read_judgments(put("qrels.txt", line))


def test_other_blanks_part_columns_and_only_ends_of_line_part_rows(put):
    judged = read_judgments(put("qrels.txt", "q\v0\td1\f1\r\nq 0  d2 0  \r\n\r\n"))
    assert judged.to_frame()[["query", "doc", "grade"]].to_numpy().tolist() == [["q", "d1", 1.0], ["q", "d2", 0.0]]
    with pytest.raises(DataError, match=r"qrels.txt:1: expected 4 columns"):
        read_judgments(put("qrels.txt", "q 0 d1\n1 q 0 d2 0\n"))
