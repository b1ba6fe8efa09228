from __future__ import annotations

import gzip

import numpy as np
import pytest

from probeval.data import Judgments, Runs, Scale, read_judgments, read_runs, write_qrels, write_run
from probeval.errors import DataError

RUN = "q1 Q0 d1 1 3.5 t\nq1 Q0 d2 2 2.5 t\nq2 Q0 d1 1 -1e-3 t\n"
QRELS = "q1 0 d1 2\nq1 0 d3 0\nq2 0 d1 1\n"
BOM = b"\xef\xbb\xbf"


def rows(runs: Runs) -> list[list]:
    return runs.to_frame()[["query", "doc", "rank", "score"]].values.tolist()


def events(judgments: Judgments) -> list[list]:
    return judgments.to_frame()[["query", "doc", "grade"]].values.tolist()


RUN_ROWS = [["q1", "d1", 1, 3.5], ["q1", "d2", 2, 2.5], ["q2", "d1", 1, -0.001]]
QRELS_ROWS = [["q1", "d1", 2], ["q1", "d3", 0], ["q2", "d1", 1]]

DRESSES = {
    "plain": lambda text: text.encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip in two members": lambda text: b"".join(gzip.compress(line.encode()) for line in text.splitlines(True)),
    "no newline at the end": lambda text: text.encode().rstrip(),
    "tabs": lambda text: text.replace(" ", "\t").encode(),
    "many spaces": lambda text: text.replace(" ", "  \t ").encode(),
    "indented": lambda text: "".join(f"  {line}" for line in text.splitlines(True)).encode(),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "cr": lambda text: text.replace("\n", "\r").encode(),
    "byte order mark": lambda text: BOM + text.encode(),
    "byte order mark and comment": lambda text: BOM + b"# made by hand\n" + text.encode(),
    "comments": lambda text: ("# one\n" + text.replace("q2", "#two 2 3\nq2", 1) + "#three").encode(),
    "comments, crlf": lambda text: f"# one\n{text}# two\n".replace("\n", "\r\n").encode(),
    "comments, cr": lambda text: f"# one\n{text}# two\n".replace("\n", "\r").encode(),
    "blank lines": lambda text: ("\n\n" + text.replace("\n", "\n \t\n\n")).encode(),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_a_run_in_any_dress(put, dress):
    assert rows(read_runs(put("run", DRESSES[dress](RUN)))) == RUN_ROWS


@pytest.mark.parametrize("dress", DRESSES)
def test_a_qrels_in_any_dress(put, dress):
    assert events(read_judgments(put("qrels", DRESSES[dress](QRELS)))) == QRELS_ROWS


def test_gzip_is_told_by_content_and_not_by_name(put):
    assert rows(read_runs(put("run.gz", RUN))) == RUN_ROWS


def test_a_system_is_its_file_name(put):
    runs = read_runs(put("x/bm25.gz", gzip.compress(RUN.encode())), put("x/b.m.25.txt", RUN))
    assert runs.systems == ("bm25", "b.m.25.txt")


def test_ids_are_strings_for_ever(put):
    odd = ["27003e", "00afd2", "1e5", "NaN", "007", "7", "null", "None", "inf", "0x10", "1_0", "é", "文", '"x', "a,b"]
    runs = read_runs(put("run", "".join(f"{d} Q0 {d} 1 1 t\n" for d in odd)))
    assert sorted(d for _, d, _, _ in rows(runs)) == sorted(odd)
    assert runs.queries.tolist() == sorted(odd)
    judged = read_judgments(put("qrels", "".join(f"{d} 0 {d} 1\n" for d in odd)))
    assert judged.pool == runs.pool


def test_an_id_may_hold_any_space_but_ascii_ones(put):
    # trec_eval splits at ASCII white space alone.
    assert rows(read_runs(put("run", "q Q0 a\u00a0b\u2028c 1 1 t\n")))[0][1] == "a\u00a0b\u2028c"


@pytest.mark.parametrize("score", ["1e-3", "-7.763e-05", "+5", ".5", "5.", "1E5", "inf", "-inf", "0", "-0"])
def test_scores_as_trec_writes_them(put, score):
    assert rows(read_runs(put("run", f"q Q0 d 1 {score} t\n")))[0][3] == float(score)


def test_ranks_matter_only_where_they_are_used(put):
    path = put("run", "q Q0 d first 1 t\n")
    assert len(rows(read_runs(path))) == 1
    with pytest.raises(DataError, match=r"run:1: the rank must be a number, got 'first'"):
        read_runs(path, order="rank")


def test_negative_grades_are_kept(put):
    judged = read_judgments(put("qrels", "q 0 a -2\nq 0 b -1\nq 0 c 1\n"))
    assert judged.grades().tolist() == [-2, -1, 1]
    assert judged.scale() == Scale.binary()


def test_several_assessors_in_the_second_column(put):
    judged = read_judgments(put("qrels", "q ann d 2\nq bob d 0\nq cy d 2\nq ann e 1\n"))
    assert judged.assessors == ("ann", "bob", "cy")
    assert judged.grades("median").tolist() == [2, 1]
    assert judged.grades("min").tolist() == [0, 1]
    assert read_judgments(put("one", "q Q0 d 2\nq Q0 e 0\n")).assessors == ("",)


def test_prels(put):
    judged = read_judgments(put("prels", "q d1 1 2 0.5\nq d2 -1 1 0.0625\n"))
    assert events(judged) == [["q", "d1", 1], ["q", "d2", -1]]


def test_a_directory_a_glob_and_files_in_one_call(put):
    put("runs/b", RUN)
    put("runs/a.gz", gzip.compress(RUN.encode()))
    put("runs/.hidden", "not a run")
    folder = put("more/c.run", RUN).parent.parent
    assert read_runs(folder / "runs", f"{folder}/more/*.run").systems == ("a", "b", "c.run")
    assert read_runs(folder).systems == ("a", "b")  # a campaign folder gives its runs/


def test_a_name_with_brackets_is_a_name_and_not_a_glob(put):
    assert read_runs(put("run[1]", RUN)).systems == ("run[1]",)


def test_depth_keeps_the_first_ranks(put):
    assert rows(read_runs(put("run", RUN), depth=1)) == [RUN_ROWS[0], RUN_ROWS[2]]


def fault(line: str, at: int = 2) -> str:
    lines = RUN.splitlines()
    lines.insert(at - 1, line)
    return "\n".join(lines)


BAD_RUNS = {
    "five columns": (fault("q1 Q0 d9 4 1.5"), ":2: expected 6 columns (query Q0 doc rank score tag), got 5."),
    "seven columns": (
        fault("q1 Q0 d9 4 1.5 my tag", 4),
        ":4: expected 6 columns (query Q0 doc rank score tag), got 7.",
    ),
    "two rows on a line": (fault("q Q0 a 1 1 t q Q0 b 2 1 t"), ":2: expected 6 columns"),
    "a row over two lines": (fault("q Q0 a\n1 1 t"), ":2: expected 6 columns (query Q0 doc rank score tag), got 3."),
    "after comments and blanks": ("# a\n\n" + fault("q1 Q0 d9"), ":4: expected 6 columns"),
    "word for a score": (fault("q1 Q0 d9 4 high t"), ":2: the score must be a number, got 'high'."),
    "nan": (fault("q1 Q0 d9 4 nan t", 1), ":1: the score must be a number, got 'nan'."),
    "comma": (fault("q1 Q0 d9 4 1,5 t"), ":2: the score must be a number, got '1,5'."),
    "underscore": (fault("q1 Q0 d9 4 1_0 t"), ":2: the score must be a number, got '1_0'."),
    "other digits": (fault("q1 Q0 d9 4 ٣ t"), ":2: the score must be a number, got '٣'."),
    "duplicate": (fault("q1 Q0 d1 4 1 t", 4), ":4: document 'd1' of query 'q1' stands on line 1 already. Keep one."),
    "empty": ("", ": the file is empty."),
    "white space": (" \n\t\n", ": the file is empty."),
    "empty gzip": (gzip.compress(b""), ": the file is empty."),
    "only comments": ("# a\n# b\n", ": holds no line of the form 'query Q0 doc rank score tag'."),
    "only a byte order mark": (BOM, ": holds no line of the form"),
    "truncated gzip": (gzip.compress(RUN.encode() * 50)[:-12], ": the gzip data ends too early"),
    "gzip header alone": (b"\x1f\x8b", ": the gzip data ends too early"),
    "damaged gzip": (gzip.compress(RUN.encode())[:-8] + b"\0" * 8, ": the gzip data is damaged"),
    "gzip and rubbish": (gzip.compress(RUN.encode()) + b"rubbish", ": the gzip data is damaged"),
    "binary": (bytes(range(256)) * 4, ": a binary file; expected text lines of the form"),
    "utf-16": (RUN.encode("utf-16"), ": a binary file; expected text lines of the form"),
    "control character": (fault("q1 Q0 d\x019 4 1 t"), ":2: the doc must have no control character"),
    "not utf-8": (RUN.encode() + b"q1 Q0 d\xe99 4 1 t\n", ":4: ids must be UTF-8 text. Convert the file."),
}


@pytest.mark.parametrize("case", BAD_RUNS)
def test_a_bad_run_is_refused_with_its_line(put, case):
    content, expected = BAD_RUNS[case]
    path = put("bad", content)
    with pytest.raises(DataError) as caught:
        read_runs(put("good", RUN), path)
    assert str(caught.value).startswith(f"{path}{expected}")
    assert len(str(caught.value).splitlines()) == 1


BAD_QRELS = {
    "word for a grade": (QRELS + "q3 0 d1 high\n", ":4: the grade must be a number, got 'high'."),
    "infinite": (QRELS + "q3 0 d1 inf\n", ":4: the grade must be a number, got 'inf'."),
    "underscore": (QRELS + "q3 0 d1 1_0\n", ":4: the grade must be a number, got '1_0'."),
    "three columns": ("q1 d1 1\n", ":1: expected 4 columns (query assessor doc grade), got 3."),
    "five columns late": (QRELS + "q1 0 d9 1 x\n", ":4: expected 4 columns (query assessor doc grade), got 5."),
    "four columns late": (
        "q d 1 0 .5\nq 0 e 1\n",
        ":2: expected 5 columns (query doc grade method probability), got 4.",
    ),
    "duplicate": (QRELS + "q1 0 d1 0\n", ":4: document 'd1' of query 'q1' stands on line 1 already. Keep one."),
    "prels duplicate": ("q d 1 0 .5\nq d 1 0 .5\n", ":2: document 'd' of query 'q' stands on line 1 already."),
    "only comments": ("# a\n", ": holds no line of the form 'query assessor doc grade'."),
    "not utf-8": (QRELS.encode() + b"q1 0 d\xe9 1\n", ":4: ids must be UTF-8 text."),
    "assessor not utf-8": (QRELS.encode() + b"q1 J\xe9 d9 1\n", ":4: ids must be UTF-8 text."),
}


@pytest.mark.parametrize("case", BAD_QRELS)
def test_a_bad_qrels_is_refused_with_its_line(put, case):
    content, expected = BAD_QRELS[case]
    path = put("bad", content)
    with pytest.raises(DataError) as caught:
        read_judgments(path)
    assert str(caught.value).startswith(f"{path}{expected}")


def test_a_grade_off_the_scale_is_refused_with_its_line(put):
    path = put("qrels", "q1 0 d2 1\n" + QRELS)
    with pytest.raises(DataError, match=r"qrels:2: the grade must be a grade on the scale binary, got '2'"):
        read_judgments(path, scale=Scale.graded(1))
    assert len(read_judgments(path, scale=Scale.graded(2))) == 4


def test_files_that_are_not_there(tmp_path, put):
    for read in (read_runs, read_judgments):
        with pytest.raises(DataError, match=r"missing: "):
            read(tmp_path / "missing")
    with pytest.raises(DataError, match="expected a file, got a directory"):
        read_judgments(tmp_path)
    with pytest.raises(DataError, match="no runs"):
        read_runs(tmp_path)
    with pytest.raises(DataError, match="cannot be read: File name too long"):
        read_runs("x" * 5000)
    with pytest.raises(DataError, match="no runs were named"):
        read_runs()
    with pytest.raises(DataError, match="Two runs are named 'bm25'"):
        read_runs(put("a/bm25", RUN), put("b/bm25.gz", RUN))


@pytest.mark.parametrize("name", ["run", "run.gz"])
def test_a_written_run_reads_back(tmp_path, name):
    rng = np.random.default_rng(3)
    docs = ["007", "1e5", "NaN", "é", "null"]
    runs = Runs.rows(["run"] * 5, ["q", "q", "q", "r", "r"], docs, rng.normal(size=5) * 10.0 ** rng.integers(-9, 9, 5))
    write_run(tmp_path / name, runs, "run")
    again = read_runs(tmp_path / name)
    assert again.pool == runs.pool
    assert again.to_frame().equals(runs.to_frame())  # scores to the last bit
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")


def test_a_run_without_scores_keeps_its_order(tmp_path):
    runs = Runs.rows(["s"] * 12, ["q"] * 12, [f"d{i}" for i in (5, 3, 9, 1, 11, 2, 0, 8, 4, 10, 7, 6)])
    write_run(str(tmp_path / "s"), runs, "s")
    assert read_runs(tmp_path / "s").pairs.tolist() == runs.pairs.tolist()


def test_white_space_in_a_system_name_does_not_break_its_file(put, tmp_path):
    runs = read_runs(put("my run.txt", RUN))
    write_run(tmp_path / "out", runs, "my run.txt")
    assert rows(read_runs(tmp_path / "out")) == RUN_ROWS


def test_a_written_qrels_reads_back(tmp_path):
    grades = [0, 1, 2.5, -1, -2, 1234567, 0.1234567890123]
    judged = Judgments.rows(["q"] * 7, list("abcdefg"), grades, assessors=["x", "y"] * 3 + ["x"])
    write_qrels(tmp_path / "qrels.gz", judged)
    again = read_judgments(tmp_path / "qrels.gz")
    assert again.to_frame().drop(columns="time").equals(judged.to_frame().drop(columns="time"))


def test_a_written_qrels_keeps_the_latest_grade_of_each_assessor(tmp_path):
    judged = Judgments.rows(["q"] * 4, ["d"] * 4, [0, 1, 2, 1], assessors=["", "0", "ann", "ann"])
    write_qrels(tmp_path / "qrels", judged)
    assert (tmp_path / "qrels").read_text() == "q 0 d 1\nq ann d 1\n"


@pytest.mark.parametrize(
    ("query", "doc", "who"),
    [("", "d", "a"), ("q r", "d", "a"), ("#q", "d", "a"), ("q", "d\te", "a"), ("q", "d", "a b")],
)
def test_what_a_trec_file_cannot_hold_is_not_written(tmp_path, query, doc, who):
    with pytest.raises(DataError, match="cannot hold"):
        write_qrels(tmp_path / "qrels", Judgments.rows([query], [doc], [1], assessors=[who]))
    assert list(tmp_path.iterdir()) == []


def test_a_run_with_unwritable_ids_is_not_written(tmp_path):
    with pytest.raises(DataError, match=r"cannot hold 'd e' among its docs"):
        write_run(tmp_path / "run", Runs.rows(["s"], ["q"], ["d e"], [1]), "s")
    assert list(tmp_path.iterdir()) == []
