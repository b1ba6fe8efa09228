"""Files that are wrong in every way: a mutated file is read or refused in one line, and none takes the memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import warnings
from pathlib import Path

import pandas as pd
import pytest

from probeval.data import limits, read_judgments, read_labels, read_runs, read_texts
from probeval.data.limits import VARIABLE, most_bytes
from probeval.errors import DataError, ProbevalWarning
from tests.attack.cases import MOST_MEMORY, check_apart, check_some
from tests.data.hostile_files import FILES, sources


def test_every_source_is_a_good_file(tmp_path: Path):
    """What is mutated is read as it is; a harness of files that nothing reads would hold nothing."""
    for source in sources():
        path = tmp_path / source.name
        path.write_bytes(source.content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbevalWarning)
            assert source.read(path) is not None, source.name  # or it raises


def test_mutated_files_are_read_or_refused_in_one_line():
    """The first of the 100,000 files of make validate."""
    assert check_some(FILES, 300).used > 30


@pytest.mark.validation
def test_a_hundred_thousand_mutated_files():
    """No traceback, no line that is not one line, and never more memory than stated."""
    assert MOST_MEMORY == 1 << 30
    check_apart("files", FILES.full)


def test_what_a_compressed_file_may_unpack_to(put):
    """Real ones unpack to 2 to 13 times their size; a bomb is refused long before it is unpacked."""
    bomb = put("run.gz", gzip.compress(bytes(90 << 20), compresslevel=1))
    with pytest.raises(DataError, match=rf"unpacks to more than 67,108,864 bytes\. .* set {VARIABLE} to more"):
        read_runs(bomb)
    assert most_bytes(10 << 20) == 500 << 20
    assert most_bytes() == most_bytes(1 << 40) == 4 << 30


def test_the_limit_is_raised_by_a_variable(put, monkeypatch):
    lines = "".join(f"q{i} Q0 d 1 1 t\n" for i in range(20_000)).encode()
    path = put("run.gz", gzip.compress(lines))
    monkeypatch.setattr(limits, "ROOM", 1000)
    monkeypatch.setattr(limits, "RATIO", 2)
    with pytest.raises(DataError, match="unpacks to more than"):
        read_runs(path)
    monkeypatch.setenv(VARIABLE, str(len(lines)))
    assert len(read_runs(path).queries) == 20_000
    monkeypatch.setenv(VARIABLE, "1000")  # lower, for a service that takes files from others
    with pytest.raises(DataError, match="has more than 1,000 bytes"):
        read_runs(put("run", lines))
    monkeypatch.setenv(VARIABLE, "8 GB")
    with pytest.raises(DataError, match=r"must be a number of bytes such as 8000000000, got '8 GB'"):
        read_runs(path)


def test_a_file_without_end_is_refused(monkeypatch):
    with pytest.raises(DataError, match="expected a file or a pipe, got a device"):  # nothing is read
        read_texts(Path("/dev/zero"), "doc")
    monkeypatch.setattr(limits, "MAX_FILE_BYTES", 10 << 20)
    with subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        with pytest.raises(DataError, match="has more than 10,485,760 bytes"):
            read_texts(Path(f"/dev/fd/{endless.stdout.fileno()}"), "doc")
        endless.kill()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("wide.csv", b"a," * 1_000_000 + b"b\n1\n", "expected at most 10,000 columns, got 1,000,001"),
        ("quoted.csv", b'"a\n"' + b",b" * 1_000_000 + b"\n1\n", "expected at most 10,000 columns, got 1,000,001"),
        ("short.csv", b"a," * 9_000 + b"b\n" + b"1\n" * 9_000, "cells, and at most 10,000,000 are expected"),
        ("keys.jsonl", b"".join(b'{"k%d": 1}\n' % i for i in range(9_000)), "cells, and at most 10,000,000 are"),
        (
            "wide.jsonl",
            json.dumps(dict.fromkeys(map(str, range(20_000)))).encode(),
            "at most 10,000 columns, got 20",
        ),
    ],
)
def test_tables_that_would_fill_the_memory(put, name, content, said):
    with pytest.raises(DataError, match=said):
        read_labels(put(name, content))


def test_sources_that_have_nothing_in_common(put):
    rows = [{"qid": f"q{i}", "docid": "d", "judgment": 1, "prediction": "", "model": f"m{i}"} for i in range(9_000)]
    with pytest.raises(DataError, match=r"9,000 values would be kept in 9,000 x 9,000 places, nearly all empty"):
        read_labels(put("labels.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    run = [f"q Q0 d{i} 1 1 t\n" for i in range(9_000)] + [f"q{i} Q0 d 1 1 t\n" for i in range(9_000)]
    with pytest.raises(DataError, match=r"18,000 values would be kept in 1 x 9,001 x 9,000 places"):
        read_runs(put("run", "".join(run)))


def test_parquet_that_stands_for_much_more(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    long = pd.DataFrame({"query": "q" * 1000, "doc": ["d"] * 100_000, "grade": 1})
    path = tmp_path / "long.parquet"
    long.to_parquet(path)
    assert path.stat().st_size < 20_000
    with pytest.raises(DataError, match="unpacks to more than 67,108,864 bytes"):
        read_judgments(path)
    monkeypatch.setattr(limits, "ROOM", 1 << 20)
    pd.DataFrame({"query": ["q"] * 100_000, "grade": 1}).to_parquet(path)
    with pytest.raises(DataError, match="unpacks to more than 1,048,576 bytes"):
        read_judgments(path)


def test_parquet_comes_back(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"query": ["q1", "q1", "q2"], "doc": ["007", "7", "é"], "grade": [2, 0, 1]})
    for i, frame in enumerate((table, table.set_index("query"), table[table["grade"] > 0], table.astype("category"))):
        path = tmp_path / f"{i}.parquet"
        frame.to_parquet(path)
        rows = read_judgments(path).to_frame()[["query", "doc", "grade"]]
        expected = table[table["grade"] > 0] if i == 2 else table
        assert sorted(rows.itertuples(index=False, name=None)) == sorted(expected.itertuples(index=False, name=None))
