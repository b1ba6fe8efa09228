"""``partition`` in Python and ``probeval convert --to partitions``: from files to a folder and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
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
