"""Every bad input is one line on stderr with path and line, exit 1, nothing on stdout, nothing left behind."""

from __future__ import annotations

import gzip
import subprocess
import sys

import pytest

RUN = "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d3 1 1 t\n"
QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\n"


def squeezed(text: str) -> bytes:
    return gzip.compress(text.encode())


# name: (file that is wrong, its content, what the line says after the path)
FILES = {
    "run with 5 columns": (
        "run",
        RUN + "q2 Q0 d4 2 1\n",
        ":4: expected 6 columns (query Q0 doc rank score tag), got 5.",
    ),
    "score no number": ("run", RUN + "q2 Q0 d4 2 high t\n", ":4: the score must be a number, got 'high'."),
    "score nan": ("run", RUN + "q2 Q0 d4 2 nan t\n", ":4: the score must be a number, got 'nan'."),
    "duplicate document": (
        "run",
        RUN + "q1 Q0 d1 3 1 t\n",
        ":4: document 'd1' of query 'q1' stands on line 1 already. Keep one.",
    ),
    "empty run": ("run", "", ": the file is empty."),
    "comments only": ("run", "# nothing\n", ": holds no line of the form 'query Q0 doc rank score tag'."),
    "truncated gz": ("run", squeezed(RUN * 9)[:-10], ": the gzip data ends too early; the file is cut short."),
    "damaged gz": ("run", squeezed(RUN)[:-8] + b"\0" * 8, ": the gzip data is damaged"),
    "binary run": ("run", bytes(range(256)) * 8, ": a binary file; expected text lines of the form"),
    "run not UTF-8": ("run", RUN.encode() + b"q2 Q0 d\xe9 2 1 t\n", ":4: ids must be UTF-8 text."),
    "word for a grade": ("qrels", QRELS + "q2 0 d4 good\n", ":4: the grade must be a number, got 'good'."),
    "qrels with 3 columns": ("qrels", "q1 d1 1\n", ":1: expected 4 columns (query assessor doc grade), got 3."),
    "qrels twice": ("qrels", QRELS + "q1 0 d1 1\n", ":4: document 'd1' of query 'q1' stands on line 1 already."),
    "empty qrels": ("qrels", "\n\n", ": the file is empty."),
    "truncated qrels gz": ("qrels", squeezed(QRELS)[:-5], ": the gzip data ends too early"),
    "store of a campaign": (
        "run",
        b"SQLite format 3\0" + bytes(99),
        ": a store of campaigns; expected text lines of the form 'query Q0 doc rank score tag'.",
    ),
    "store for qrels": (
        "qrels",
        b"SQLite format 3\0" + bytes(99),
        ": a store of campaigns; expected text lines of the form 'query assessor doc grade'.",
    ),
    "binary qrels": ("qrels", b"\0\1\2" * 99, ": a binary file; expected text lines of the form"),
    "qrels not UTF-8": ("qrels", QRELS.encode() + b"q2 0 d\xe9 1\n", ":4: ids must be UTF-8 text."),
}


def expect_refusal(said, *parts: object) -> None:
    """One line, on stderr alone, exit 1."""
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith("Error: ")
    assert said.err.endswith("\n")
    assert said.err.count("\n") == 1
    for part in parts:
        assert str(part) in said.err


@pytest.fixture
def good(put):
    return put("good/run", RUN), put("good/qrels", QRELS)


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("case", FILES)
def test_a_bad_file(probeval, put, good, case, form):
    which, content, expected = FILES[case]
    path = put(f"bad/{which}", content)
    run, qrels = (path, good[1]) if which == "run" else (good[0], path)
    expect_refusal(probeval("evaluate", run, "--qrels", qrels, "--metric", "AP", "--format", form), f"{path}{expected}")


def test_a_grade_off_the_scale(probeval, good):
    run, qrels = good
    said = probeval("evaluate", run, "--qrels", qrels, "--metric", "AP", "--scale", "graded:1")
    expect_refusal(said, f"{qrels}:1: the grade must be a grade on the scale binary, got '2'.")


def test_a_grade_off_the_scale_in_a_table(probeval, put, good):
    qrels = put("qrels.csv", "query,doc,grade\nq1,d1,1\nq1,d2,2\n")
    said = probeval("evaluate", good[0], "--qrels", qrels, "--metric", "AP", "--scale", "binary")
    expect_refusal(said, f"{qrels}: the grade in row 2: 2 is not on the scale binary.")


@pytest.mark.parametrize("scale", ["graded", "graded:0", "graded:x", "coarse", "graded:99999999999"])
def test_no_such_scale(probeval, good, scale):
    said = probeval("evaluate", good[0], "--qrels", good[1], "--metric", "AP", "--scale", scale)
    expect_refusal(said, "A scale is 'binary', 'binary:G' (relevant from G on), 'graded:M' (grades 0..M)", scale)


@pytest.mark.parametrize("scale", ["0-3", "0..3", "graded3"])
def test_a_scale_by_its_ends(probeval, good, scale):
    said = probeval("evaluate", good[0], "--metric", "AP", "--scale", scale)
    expect_refusal(said, f"got '{scale}'. For 0 to 3: graded:3.")


def test_grades_that_suggest_no_scale(probeval, put, good):
    expect_refusal(probeval("evaluate", good[0], "--qrels", put("q", "q1 0 d1 101\n"), "--metric", "AP"), "No scale")


def test_no_query_in_common(probeval, put, good):
    qrels = put("other", "x1 0 d1 1\n")
    expect_refusal(
        probeval("evaluate", good[0], "--qrels", qrels, "--metric", "AP"), "no query in common", "'q1'", "'x1'"
    )


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("NDGC@10", "Unknown metric 'NDGC@10'. Did you mean 'nDCG@10'?"),
        ("banana", "Unknown metric 'banana'. Known: AP, "),
        ("P10", "Unknown metric 'P10'. Did you mean 'P@10'?"),
        ("nDCG@10,AP", "give several as separate metrics."),
        ("nDCG@0", "the cutoff must be a whole number from 1, got @0."),
        ("P@-1", "the cutoff must be a whole number from 1, got @-1."),
        ("P@1.5", "the cutoff must be a whole number from 1, got @1.5."),
        ("P", "P needs a cutoff"),
        ("nDCG@@10", "Cannot read 'nDCG@@10' as a metric"),
        ("", "Cannot read '' as a metric"),
        ("nDCG@10\nAP", "Cannot read"),
        ("__import__('os')", "Cannot read"),
        ("RBP(p=1.5)", "RBP: p must be"),
        ("RBP(q=1)", "RBP"),
    ],
)
def test_a_bad_measure(probeval, good, metric, expected):
    expect_refusal(probeval("evaluate", good[0], "--qrels", good[1], "--metric", metric), expected)


def test_one_bad_measure_among_good_ones(probeval, good):
    said = probeval("evaluate", good[0], "--qrels", good[1], "--metric", "AP", "--metric", "NDGC")
    expect_refusal(said, "Did you mean 'nDCG'?")


def test_a_directory_without_runs(probeval, tmp_path, good):
    (tmp_path / "empty").mkdir()
    said = probeval("evaluate", tmp_path / "empty", "--qrels", good[1], "--metric", "AP")
    expect_refusal(said, f"{tmp_path / 'empty'}: the directory has no runs. Expected one TREC run file per system.")


def test_files_that_are_not_there(probeval, tmp_path, good):
    run, qrels = good
    missing = tmp_path / "missing"
    expect_refusal(
        probeval("evaluate", missing, "--qrels", qrels, "--metric", "AP"), f"{missing}: no such file or directory"
    )
    expect_refusal(
        probeval("evaluate", run, "--qrels", missing, "--metric", "AP"), f"{missing}: cannot be read: No such file"
    )
    expect_refusal(probeval("evaluate", tmp_path / "*.run", "--qrels", qrels, "--metric", "AP"), "no file matches it")
    expect_refusal(probeval("evaluate", run, "--qrels", tmp_path, "--metric", "AP"), "expected a file, got a directory")
    expect_refusal(probeval("evaluate", "x" * 5000, "--qrels", qrels, "--metric", "AP"), "File name too long")


def test_the_first_bad_file_of_several_is_named(probeval, put, good):
    put("runs/a", RUN)
    bad = put("runs/b", RUN + "q1 Q0\n")
    put("runs/c", RUN)
    said = probeval("evaluate", bad.parent, "--qrels", good[1], "--metric", "AP")
    expect_refusal(said, f"{bad}:4: expected 6 columns")
    assert "folder of runs" not in said.err  # runs/a was read as one


def test_a_folder_of_other_files(probeval, put):
    file = put("notes/a.md", "Some words\n")
    said = probeval("evaluate", file.parent, "--metric", "AP")
    expect_refusal(said, f"{file}:1: expected 6 columns", f"Is {file.parent} a folder of runs?")
    assert "folder of runs" not in probeval("evaluate", file, "--metric", "AP").err
    put("notes/b.csv", "a,b\n1,2\n")
    expect_refusal(probeval("evaluate", file.parent, "--metric", "AP"), "tables and TREC runs", "a folder of runs?")


def test_two_runs_of_one_name(probeval, put, good):
    said = probeval(
        "evaluate", put("a/bm25", RUN), put("b/bm25.gz", squeezed(RUN)), "--qrels", good[1], "--metric", "AP"
    )
    expect_refusal(said, "Two runs are named 'bm25'.")


def test_no_qrels_and_no_model(probeval, good):
    expect_refusal(probeval("evaluate", good[0], "--metric", "AP", "--model", "none"), "give --qrels FILE")


def test_no_system_is_judged_enough(probeval, put, good):
    said = probeval("evaluate", good[0], "--qrels", put("few", "q1 0 d1 1\n"), "--metric", "P@2", "--systems", "judged")
    expect_refusal(said, "o system has more than 0.99 of its documents judged")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"],
        ["--format", "xml"],
        ["--order", "random"],
        ["--systems", "some"],
        ["--depth", "0"],
        ["--depth", "ten"],
        ["--seed", "x"],
    ],
)
def test_wrong_usage_is_exit_2(probeval, good, arguments):
    said = probeval("evaluate", good[0], "--qrels", good[1], "--metric", "AP", *arguments)
    assert said.code == 2
    assert said.out == ""
    assert arguments[0] in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("gains", "why"),
    [
        ("log", "Gains are 'linear', 'exp', or one per grade as in 0,.25,.5,1; got 'log'"),
        ("0,1", "The scale graded:2 has 3 grades: give as many gains, got 2 (0, 1)"),
        ("1,0,2", "Gains are finite, from 0, do not fall, and the last is above 0; got 1, 0, 2"),
    ],
)
def test_gains_that_no_scale_has(probeval, good, gains, why):
    said = probeval("evaluate", good[0], "--qrels", good[1], "--metric", "AP", "-q", "--gains", gains)
    expect_refusal(said, why)


def test_missing_arguments_are_exit_2(probeval):
    assert probeval("evaluate", "--metric", "AP").code == 2


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["evaluate", "runs"], "Missing option '--metric'. For example: --metric nDCG@10"),
        (["evaluate", "runs", "--metric", "AP", "-o", "x.csv"], "No such option: -o. Data goes to stdout; redirect"),
        (["rank"], "No such command 'rank'. Commands: demo, evaluate, plan, "),
        (["campaign", "zzz"], "No such command 'zzz'. Commands: create, "),
        (["evalute"], "Did you mean 'evaluate'"),
    ],
)
def test_wrong_usage_comes_with_advice(probeval, arguments, advice):
    said = probeval(*arguments)
    assert (said.code, said.out) == (2, "")
    assert advice in said.err


@pytest.mark.slow
def test_a_real_process_shows_no_traceback(put, good):
    bad = put("bad", RUN + "q1 Q0 d9 3 high t\n")
    command = [sys.executable, "-c", "from probeval.cli import main; main()"]
    arguments = ["evaluate", str(bad), "--qrels", str(good[1]), "--metric", "AP"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: {bad}:4: the score must be a number, got 'high'.\n"
    done = subprocess.run([*command, "--debug", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "DataError" in done.stderr


def test_a_file_name_that_is_no_text(probeval, tmp_path, good):
    import os

    name = os.fsdecode(b"run\xff")
    try:
        (tmp_path / name).write_text(RUN)
    except OSError:
        pytest.skip("this file system has text names only")
    expect_refusal(probeval("evaluate", tmp_path / name, "--qrels", good[1], "--metric", "AP"), "not UTF-8 text")


def test_a_failing_demo_leaves_nothing_behind(probeval, put):
    file = put("taken", "old")
    expect_refusal(probeval("demo", "--folder", file), f"{file}", "cannot be written")
    assert file.read_text() == "old"
    assert [p.name for p in file.parent.iterdir()] == ["taken"]
