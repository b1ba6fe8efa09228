"""Round trips through other tools: pairs out, simulated answers in, the same scores as from plain files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probeval.data import Collection, read_judgments, write_campaign
from probeval.relevance import synthetic_campaign

METRIC = ("--metric", "DCG@5", "--model", "uniform", "--scale", "graded:2")


@pytest.fixture(scope="module")
def made() -> Collection:
    return synthetic_campaign(seed=5, systems=3, queries=3, depth=5, docs=8)


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """The runs of a campaign, and texts of its queries and documents."""
    write_campaign(made, tmp_path)
    pool = made.runs.pool
    for name, known in (("query", pool.queries), ("doc", pool.docs)):
        rows = "".join(f"{one}\tthe {name} {one}, in words\n" for one in known)
        (tmp_path / f"{name}.tsv").write_text(f"{name}\ttext\n{rows}")
    return tmp_path


@pytest.fixture
def truth(made) -> dict[tuple[str, str], float]:
    grades = made.judgments.grades()
    return {made.judgments.pool.label(i): float(grade) for i, grade in enumerate(grades)}


def ranking(probeval, *given):
    said = probeval("evaluate", *given, *METRIC, "--format", "json", "--quiet")
    assert said.code == 0, said.err
    return json.loads(said.out)


def batch(probeval, folder, tool):
    out = folder / "out"
    texts = ("--queries", folder / "query.tsv", "--docs", folder / "doc.tsv")
    said = probeval("next", folder / "runs", *METRIC, "-n", 8, "--for", tool, "--out", out, *texts, "--format", "json")
    assert said.code == 0, said.err
    pairs = [(row["query"], row["doc"]) for row in json.loads(said.out)["next"]]
    return out, pairs, said.err


def plain(folder, truth, pairs):
    """The same grades as qrels."""
    path = folder / "same.qrels"
    path.write_text("".join(f"{query} 0 {doc} {truth[query, doc]:g}\n" for query, doc in pairs))
    return path


def test_label_studio(probeval, folder, truth):
    out, pairs, said = batch(probeval, folder, "label-studio")
    assert f"For label-studio: {out / 'tasks.json'}, {out / 'config.xml'}." in said
    tasks = json.loads((out / "tasks.json").read_text())
    assert [(task["data"]["query"], task["data"]["doc"]) for task in tasks] == pairs
    assert tasks[0]["data"]["query_text"] == f"the query {pairs[0][0]}, in words"
    assert tasks[0]["data"]["doc_text"] == f"the doc {pairs[0][1]}, in words"
    for number, (task, pair) in enumerate(zip(tasks, pairs, strict=True)):
        result = task["predictions"][0]["result"][0] | {"value": {"choices": [f"{truth[pair]:g}"]}}
        skipped = number == 3
        task["annotations"] = [
            {
                "completed_by": {"id": 1, "email": "ann@example.org"},
                "result": [] if skipped else [result],
                "was_cancelled": skipped,
                "updated_at": f"2026-05-04T10:00:{number:02d}Z",
                "lead_time": 4.5,
            }
        ]
    (folder / "export.json").write_text(json.dumps(tasks))
    judged = [pair for number, pair in enumerate(pairs) if number != 3]
    from_tool = ranking(probeval, folder / "runs", "--qrels", folder / "export.json")
    assert from_tool == ranking(probeval, folder / "runs", "--qrels", plain(folder, truth, judged))
    said = probeval("convert", folder / "export.json", "-o", folder / "export.qrels")
    first = (folder / "export.qrels").read_text().splitlines()[0]
    assert first == f"{pairs[0][0]} ann@example.org {pairs[0][1]} {truth[pairs[0]]:g}"
    assert "1 annotations are left out: 1 skipped" in said.err


def test_quepid(probeval, folder, truth):
    out, pairs, said = batch(probeval, folder, "quepid")
    assert f"For quepid: {out / 'book.json'}." in said
    book = json.loads((out / "book.json").read_text())
    for pair, key in zip(book["query_doc_pairs"], pairs, strict=True):
        assert pair["query_text"] == f"the query {key[0]}, in words"
        assert json.loads(pair["document_fields"]) == {"text": f"the doc {key[1]}, in words"}
        pair["judgements"] = [{"rating": truth[key], "user_email": "ann@example.org", "unrateable": False}]
    (folder / "book.json").write_text(json.dumps(book))
    said = probeval("evaluate", folder / "runs", *METRIC, "--qrels", folder / "book.json")
    assert said.code == 1
    assert "is a text, not an id" in said.err
    assert "probeval convert FILE --queries TEXTS" in said.err
    said = probeval("convert", folder / "book.json", "--queries", folder / "query.tsv", "-o", folder / "qrels.txt")
    assert (said.code, said.err) == (0, "")
    assert said.out.split() == [
        "file",
        "format",
        "judgments",
        "assessors",
        str(folder / "qrels.txt"),
        "qrels",
        "8",
        "1",
    ]
    from_tool = ranking(probeval, folder / "runs", "--qrels", folder / "qrels.txt")
    assert from_tool == ranking(probeval, folder / "runs", "--qrels", plain(folder, truth, pairs))


def test_rank_eval(probeval, folder, truth, made):
    runs, pool = made.runs.top(5), made.runs.pool
    known = plain(folder, truth, [pool.label(i) for i in range(0, len(pool), 3)])
    said = probeval(
        "convert", known, "--to", "rank-eval", "--index", "films", "--queries", folder / "query.tsv",
        "--metric", 'DCG(gain="exp",norm="none")@5', "-o", folder / "request.json",
    )  # fmt: skip
    assert said.code == 0, said.err
    body = json.loads((folder / "request.json").read_text())
    assert body["metric"] == {"dcg": {"k": 5, "normalize": False}}
    assert read_judgments(folder / "request.json").fingerprint() == read_judgments(known).fingerprint()
    rated = {(r["id"], rating["_id"]): rating["rating"] for r in body["requests"] for rating in r["ratings"]}
    for system, lists in zip(runs.systems, runs.pairs, strict=True):
        details = {}
        for query, pairs in zip(runs.queries, lists, strict=True):
            docs = [runs.pool.label(int(pair))[1] for pair in pairs if pair >= 0]
            hits = [
                {"hit": {"_index": "films", "_id": doc, "_score": 1.0}, "rating": rated.get((query, doc))}
                for doc in docs
            ]
            unrated = [{"_index": "films", "_id": doc} for doc in docs if (query, doc) not in rated]
            details[query] = {"metric_score": 0.0, "unrated_docs": unrated, "hits": hits, "metric_details": {}}
        path = folder / "responses" / f"{system}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"metric_score": 0.0, "details": details, "failures": {}}))
    from_engine = ranking(probeval, folder / "responses", "--qrels", folder / "request.json")
    from_files = ranking(probeval, folder / "runs", "--qrels", known, "--depth", 5)
    for document in (from_engine, from_files):
        document.pop("notes", None)
    assert from_engine["systems"] == from_files["systems"]
    said = probeval("next", folder / "responses", "--qrels", folder / "request.json", *METRIC, "--format", "json", "-q")
    assert all((row["query"], row["doc"]) not in rated for row in json.loads(said.out)["next"])


def test_a_campaign_through_label_studio(probeval, folder, truth, tmp_path):
    store = tmp_path / "mine.db"
    create = ("--queries", folder / "query.tsv", "--name", "summer", "--quiet")
    assert probeval("campaign", "create", store, folder / "runs", *METRIC, *create).code == 0
    said = probeval(
        "campaign", "next", store, "--assessor", "team", "-n", 6, "--for", "label-studio", "--out", folder / "batch",
        "--docs", folder / "doc.tsv",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert f"For label-studio: {folder / 'batch' / 'tasks.json'}" in said.err
    tasks = json.loads((folder / "batch" / "tasks.json").read_text())
    assert len(tasks) == 6
    assert {p["model_version"] for task in tasks for p in task["predictions"]} == {"summer"}
    for task in tasks:
        grade = truth[task["data"]["query"], task["data"]["doc"]]
        result = {"from_name": "grade", "type": "choices", "value": {"choices": [f"{grade:g}"]}}
        task["annotations"] = [{"completed_by": 7, "result": [result], "updated_at": "2026-05-04T10:00:00Z"}]
    (folder / "export.json").write_text(json.dumps(tasks))
    said = probeval("campaign", "import", store, folder / "export.json", "--format", "json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["judgments"] == 6
    assert json.loads(said.out)["assessors"] == "7"
    said = probeval("campaign", "export", store, "--format", "quepid")
    book = json.loads(said.out)
    assert (book["name"], book["scale"], len(book["query_doc_pairs"])) == ("summer", "0,1,2", 6)
    assert book["query_doc_pairs"][0]["query_text"].endswith("in words")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("--for", "label_studio", "--out", "x"), "--for label_studio: expected quepid or label-studio. Did you mean"),
        (("--for", "quepid"), "--for TOOL and --out FOLDER go together"),
        (("--out", "x"), "--for TOOL and --out FOLDER go together"),
        (("--for", "quepid", "--out", __file__), "expected a folder for the files of quepid, got a file"),
    ],
)
def test_wrong_tools_are_refused_before_any_work(probeval, folder, given, expected):
    said = probeval("next", folder / "runs", *METRIC, *given)
    assert said.code == 1
    assert expected in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("--to", "quepit"), "to write: qrels, quepid, rank-eval, partitions. Did you mean 'quepid'?"),
        (("--to", "label-studio"), "No format 'label-studio' to write"),
        (("--as", "qrls"), "No format 'qrls'"),
        (("--to", "rank-eval"), "rank_eval needs the index of the documents"),
        (("--to", "rank-eval", "--index", "i", "--metric", "AP"), "rank_eval needs a cutoff: AP@10"),
        (("--to", "rank-eval", "--index", "i", "--metric", "AP@10"), "rank_eval has no AP@10: nDCG@k, "),
        (("--scale", "binary"), "on the scale binary"),
        (("--partitions", "2"), "--partitions does not go with --to qrels. Leave it out."),
        (("--to", "partitions", "--rule", "median"), "--rule does not go with --to partitions. Leave it out."),
    ],
)
def test_what_convert_refuses(probeval, tmp_path, given, expected):
    (tmp_path / "qrels.txt").write_text("q1 0 d1 2\n")
    said = probeval("convert", tmp_path / "qrels.txt", "-o", tmp_path / "out", *given)
    assert (said.code, said.out, (tmp_path / "out").exists()) == (1, "", False)
    assert expected in said.err
    assert len(said.err.splitlines()) == 1


def test_runs_become_partitions(probeval, put, tmp_path):
    pytest.importorskip("pyarrow")
    put("runs/a", "q1 Q0 d1 1 2 a\nq2 Q0 d2 1 1 a\n")
    qrels = put("qrels.txt", "q1 0 d1 1\n")
    options = ("--to", "partitions", "--partitions", "2", "--qrels", qrels, "-o", tmp_path / "parts")
    said = probeval("convert", tmp_path / "runs", *options, "--format", "json")
    assert (said.code, said.err) == (0, "2 partitions, 2 queries, 2 pairs.\n")
    assert json.loads(said.out)["judgments"] == 1
    assert sorted(path.name for path in (tmp_path / "parts" / "runs").iterdir()) == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]
    said = probeval("convert", tmp_path / "runs", *options)
    assert (said.code, said.err) == (
        1,
        f"Error: {tmp_path / 'parts'}: exists already and is not empty. Name a new folder.\n",
    )
    said = probeval("convert", qrels, qrels, "-o", tmp_path / "out")
    assert (said.code, said.err) == (1, "Error: expected one file of judgments, got 2. Convert one at a time.\n")
