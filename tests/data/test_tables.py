from __future__ import annotations

import gzip
import json
from io import BytesIO

import numpy as np
import pandas as pd
import pytest

from probeval.data import Scale, read_judgments, read_runs
from probeval.errors import DataError

ODD = ["27003e", "00afd2", "1e5", "NaN", "007", "null", "NA", "None", "inf", "True", "é"]
RUNS = [
    {"system": s, "query": q, "doc": d, "score": v}
    for s, q, d, v in [("b", "007", "1e5", 1.5), ("b", "007", "NaN", 2.5), ("a", "NA", "null", -1.0)]
]
RUN_ROWS = [["b", "007", "NaN", 1, 2.5], ["b", "007", "1e5", 2, 1.5], ["a", "NA", "null", 1, -1.0]]
QRELS = [
    {"query": q, "doc": d, "grade": g, "assessor": a}
    for q, d, g, a in [("007", "1e5", 2, "ann"), ("NA", "null", 0, "bob"), ("007", "1e5", 1, "bob")]
]


def encode(rows: list[dict], kind: str) -> bytes:
    frame = pd.DataFrame(rows)
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if kind == "parquet":
        buffer = BytesIO()
        frame.to_parquet(buffer)
        return buffer.getvalue()
    return frame.to_csv(index=False, sep="\t" if kind == "tsv" else ",").encode()


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("squeeze", [False, True])
def test_runs_from_every_kind_of_table(put, kind, squeeze):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    content = encode(RUNS, kind)
    path = put(f"runs.{kind}.gz", gzip.compress(content)) if squeeze else put(f"runs.{kind}", content)
    runs = read_runs(path)
    assert runs.to_frame().values.tolist() == RUN_ROWS


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_judgments_from_every_kind_of_table(put, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    judged = read_judgments(put(f"qrels.{kind}", encode(QRELS, kind)))
    assert judged.to_frame().drop(columns="time").values.tolist() == [list(row.values()) for row in QRELS]
    assert judged.grades("max").tolist() == [2, 0]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_ids_are_strings_for_ever(put, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    rows = [{"query": d, "doc": d, "grade": 1} for d in ODD]
    judged = read_judgments(put(f"qrels.{kind}", encode(rows, kind)))
    assert judged.pool.docs.tolist() == sorted(ODD)
    assert judged.pool.queries.tolist() == sorted(ODD)


def test_numbers_as_ids_keep_their_spelling(put):
    judged = read_judgments(
        put("q.jsonl", '{"query": 7, "doc": 1e5, "grade": 1}\n{"query": 7, "doc": 1.50, "grade": 0}')
    )
    assert judged.pool.docs.tolist() == ["1.50", "1e5"]
    pytest.importorskip("pyarrow")
    judged = read_judgments(put("q.parquet", encode([{"query": 7, "doc": 12, "grade": 1}], "parquet")))
    assert judged.pool.label(0) == ("7", "12")
    with pytest.raises(DataError, match=r"the doc in row 1 must be a string, got 12\.5"):
        read_judgments(put("q.parquet", encode([{"query": 7, "doc": 12.5, "grade": 1}], "parquet")))


def test_beir_qrels(put):
    judged = read_judgments(put("qrels.tsv", "query-id\tcorpus-id\tscore\n1\t007\t1\n1\tMED-10\t2\n"))
    assert judged.to_frame()[["query", "doc", "grade"]].values.tolist() == [["1", "007", 1], ["1", "MED-10", 2]]


@pytest.mark.parametrize("header", ["QID,Docno,Relevance", "topic,document_id,rel", "query_id, doc_id ,label"])
def test_columns_go_by_many_names(put, header):
    assert len(read_judgments(put("qrels.csv", f"{header}\nq,d,1\n"))) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfquery,doc,grade\nq,d,1\n",
        b"query,doc,grade\r\nq,d,1\r\n",
        b"query,doc,grade\nq,d,1",
        b"\n\nquery,doc,grade\n\nq,d,1\n\n",
        b'"query","doc","grade"\n"q","d","1"\n',
        b"grade,x,doc,query\n1,,d,q\n",
    ],
)
def test_a_csv_in_any_dress(put, content):
    judged = read_judgments(put("qrels.csv", content))
    assert judged.to_frame()[["query", "doc", "grade"]].values.tolist() == [["q", "d", 1]]


def test_triples_stand_in_rank_order(put):
    path = put("triples.tsv", "b\tq\t2\nb\tq\t10\nb\tq\t1\na\tq\t1\n")
    runs = read_runs(path)
    assert runs.systems == ("b", "a")
    assert runs.to_frame().query("system == 'b'")["doc"].tolist() == ["2", "10", "1"]
    assert np.isnan(runs.scores).all()


@pytest.mark.parametrize("first", ["run", "score", "query", "doc", "system", "\n\na"])
def test_a_triple_is_no_header_whatever_its_ids(put, first):
    runs = read_runs(put("triples.tsv", f"{first}\tq\td1\n{first.strip()}\tq\td2\n"))
    assert runs.to_frame().values[:, :3].tolist() == [[first.strip(), "q", "d1"], [first.strip(), "q", "d2"]]


def test_three_columns_with_a_header_are_no_triples(put):
    runs = read_runs(put("run.csv", "query,doc,rank\nq,d1,2\nq,d2,1\n"))
    assert runs.systems == ("run",)
    assert runs.to_frame()["doc"].tolist() == ["d2", "d1"]
    assert len(read_runs(put("runs.tsv", "doc\tsystem\tquery\nd\ts\tq\n")).pool) == 1


def test_triples_of_mirex_are_its_runs(data):
    triples, runs = read_runs(data / "mirex2011" / "triples.tsv.gz"), read_runs(data / "mirex2011" / "runs")
    assert triples.pool == runs.pool
    assert triples.select(runs.systems).pairs.tolist() == runs.pairs.tolist()


def test_rank_and_score_in_one_table(put):
    path = put("run.csv", "query,doc,rank,score\nq,a,1,1\nq,b,2,2\nq,c,3,2\n")
    docs = {order: read_runs(path, order=order).to_frame()["doc"].tolist() for order in ("trec_eval", "score", "rank")}
    assert docs == {"trec_eval": ["c", "b", "a"], "score": ["b", "c", "a"], "rank": ["a", "b", "c"]}


def test_scores_are_read_to_the_last_bit(put):
    scores = np.random.default_rng(5).normal(size=200) * 1e-7
    lines = "".join(f"q,d{i:03d},{v!r}\n" for i, v in enumerate(scores.tolist()))
    frame = read_runs(put("run.csv", "query,doc,score\n" + lines)).to_frame().sort_values("doc")
    assert frame["score"].tolist() == scores.tolist()


def test_events_happen_in_the_order_of_their_times(put):
    text = "query,doc,grade,time\nq,d,2,30\nq,d,0,10\nq,d,1,20\n"
    assert read_judgments(put("q.csv", text)).grades("latest").tolist() == [2]
    unknown = text.replace("2,30", "2,")
    assert read_judgments(put("q.csv", unknown)).grades("latest").tolist() == [1]  # as they stand


def test_a_missing_assessor_is_nobody(put):
    rows = '{"query":"q","doc":"d","grade":1,"assessor":"ann"}\n{"query":"q","doc":"e","grade":1}\n'
    assert read_judgments(put("q.jsonl", rows)).assessors == ("ann", "")


BAD = {
    "no query column": ("q.csv", "a,doc,grade\nq,d,1\n", "no column for the query"),
    "no grade column": ("q.csv", "query,doc,assessor\nq,d,1\n", "no column for the grade"),
    "word": ("q.csv", "query,doc,grade\nq,d,1\nq,e,high\n", "the grade in row 2 must be a number, got 'high'"),
    "no number": ("q.csv", "query,doc,grade\nq,d,\n", "the grade in row 1 must be a number, got ''"),
    "underscore": ("q.csv", "query,doc,grade\nq,d,1_0\n", "must be a number, got '1_0'"),
    "infinite": ("q.csv", "query,doc,grade\nq,d,inf\n", "the grade in row 1: must be finite"),
    "short row": ("q.csv", "query,doc,grade\nq,d\n", "the grade in row 1 must be a number"),
    "long rows": ("q.csv", "query,doc,grade\nq,d,1,9\n", "more cells than the header has names (3)"),
    "a long row": ("q.csv", "query,doc,grade\nq,d,1\nq,e,1,9\n", "Expected 3 fields in line 3, saw 4"),
    "header alone": ("q.csv", "query,doc,grade\n", "the table has no rows"),
    "byte order mark alone": ("q.csv", b"\xef\xbb\xbf", "not a table of CSV"),
    "white space in an id": ("q.csv", "query,doc,grade\nq 1,d,1\n", "the query in row 1 must be text without white"),
    "no id": ("q.csv", "query,doc,grade\n,d,1\n", "the query in row 1 must be text"),
    "nul": ("q.csv", "query,doc,grade\nq,d\0e,1\n", "the doc in row 1 must be text"),
    "open quote": ("q.tsv", 'query\tdoc\tgrade\nq\t"d\t1\n', "EOF inside string"),
    "not utf-8": ("q.csv", b"query,doc,grade\nq,d\xe9,1\n", "can't decode"),
    "binary": ("q.csv", bytes(range(256)), "not a table of CSV"),
    "truncated": ("q.csv.gz", gzip.compress(b"query,doc,grade\nq,d,1\n")[:-9], "the gzip data ends too early"),
    "empty": ("q.tsv", "", "the file is empty"),
    "json word": ("q.jsonl", '{"query":"q","doc":"d","grade":"x"}', "the grade in row 1 must be a number, got 'x'"),
    "json list": ("q.jsonl", '{"query":"q","doc":"d","grade":[1]}', "the grade in row 1 must be a number"),
    "json null": ("q.jsonl", '{"query":"q","doc":null,"grade":1}', "the doc in row 1 must be a string, got None"),
    "json bool id": ("q.jsonl", '{"query":true,"doc":"d","grade":1}', "the query in row 1 must be a string, got True"),
    "json half": ("q.jsonl", '{"query":"q","doc":"d","grade":1}\n{"query"', ":2: not a JSON object"),
    "json array": ("q.jsonl", '{"query":"q","doc":"d","grade":1}\n\n[1]', ":3: expected a JSON object, got list"),
    "json deep": ("q.jsonl", "[" * 100_000, ":1: not a JSON object"),
    "json surrogate": ("q.jsonl", '{"query":"\\ud800","doc":"d","grade":1}', "the query in row 1 must be text"),
    "json bytes": ("q.jsonl", b'{"query":"\xe9","doc":"d","grade":1}', ":1: not a JSON object"),
    "no parquet": ("q.parquet", b"PAR0 and more", "not a parquet file"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_refused_in_one_line(put, case):
    name, content, expected = BAD[case]
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = put(name, content)
    with pytest.raises(DataError) as caught:
        read_judgments(path)
    assert str(caught.value).startswith(str(path))
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_grade_off_the_scale_is_refused_with_its_row(put):
    path = put("q.csv", "query,doc,grade\nq,d,1\nq,e,-1\nq,f,2\n")
    with pytest.raises(DataError, match=r"q.csv: the grade in row 3: 2 is not on the scale binary"):
        read_judgments(path, scale=Scale.binary())
    assert len(read_judgments(path, scale=Scale.graded(2))) == 3


def test_a_document_twice_names_the_file(put):
    path = put("run.csv", "query,doc,score\nq,d,1\nq,d,2\n")
    with pytest.raises(DataError, match=r"run.csv: System 'run' retrieves document 'd' twice for query 'q'"):
        read_runs(path)


def test_a_missing_parquet_file_is_missing(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_judgments(tmp_path / "q.parquet")


def test_tables_and_runs_do_not_mix(put):
    with pytest.raises(DataError, match="in one call"):
        read_runs(put("a.csv", "query,doc,score\nq,d,1\n"), put("b", "q Q0 d 1 1 t\n"))
