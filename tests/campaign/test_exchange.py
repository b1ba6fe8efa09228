"""Judgments and labels in and out: what each file becomes, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probeval.campaign import Campaign, Imported, Judged, Labelled
from probeval.campaign.archive import join_labels, pack_labels, unpack_labels
from probeval.campaign.questions import graded
from probeval.data import LabelTable, Pool, read_texts
from probeval.errors import CampaignError, DataError
from tests.campaign.conftest import on_both_databases

Put = Callable[[str, str | bytes], Path]
TEXTS = {"q1": "Jaguar speed", "q2": "=cats"}


@pytest.fixture
def campaign(make: Callable[..., Campaign]) -> Campaign:
    return make(queries=TEXTS, guideline="Ours.")


def _docs(campaign: Campaign, query: str, n: int) -> list[str]:
    return [doc for q, doc in map(campaign.pool.label, range(len(campaign.pool))) if q == query][:n]


def test_qrels_become_judgments_with_their_source(campaign: Campaign, put: Put):
    a, b, c = _docs(campaign, "q1", 3)
    file = put("nist.txt", f"q1 0 {a} 2\nq1 0 {b} 0\nq1 0 {c} -1\nq99 0 x 1\n")
    found = campaign.import_file("eve", file)
    assert len(found.judgments) == 2
    assert found.left_out == ("1 judgments of other queries", "1 judgments drawn but not judged")
    log = campaign.log()
    assert isinstance(log[-3], Imported)
    judged = [event for event in log if isinstance(event, Judged)]
    assert [(j.doc, j.grade, j.by, j.source, j.guideline) for j in judged] == [
        (a, 2, "nist", "nist.txt", 0),
        (b, 0, "nist", "nist.txt", 0),
    ]
    with pytest.raises(CampaignError, match=r"nist\.txt: already imported, as event 4"):
        campaign.import_file("eve", file)
    with pytest.raises(CampaignError, match="no judgment to withdraw"):
        campaign.withdraw("nist")  # it was not made here


def test_imported_judgments_end_the_leases_of_pairs_that_need_no_more(campaign: Campaign, put: Put):
    first, second = campaign.next("team", n=2)
    campaign.import_file("eve", put("a.csv", f"query,doc,grade,assessor\n{first.query},{first.doc},1,ann\n"))
    assert [(task.query, task.doc) for task in campaign.next("team", n=1)] == [(second.query, second.doc)]
    assert campaign.next("team", n=2)[1].doc != first.doc


def test_imported_judgments_leave_the_leases_of_pairs_that_need_another(make: Callable[..., Campaign], put: Put):
    campaign = make(overlap=1.0, opinions=2)
    (first,) = campaign.next("team")
    campaign.import_file("eve", put("a.csv", f"query,doc,grade,assessor\n{first.query},{first.doc},1,ann\n"))
    assert campaign.next("team")[0].doc == first.doc


def test_tables_keep_their_assessors_and_times(campaign: Campaign, put: Put):
    a, b = _docs(campaign, "q1", 2)
    text = f"query,doc,grade,assessor,time\nq1,{a},2,ann,5\nq1,{a},1,bob,6\nq1,{b},0,ann,7\n"
    campaign.import_file("eve", put("judged.csv", text))
    said = campaign.state.latest(graded("q1", a))
    assert {who: (j.grade, j.when) for who, j in said.items()} == {"ann": (2, 5.0), "bob": (1, 6.0)}
    assert campaign.status().shared == 1


def test_what_was_exported_can_be_imported_elsewhere(campaign: Campaign, make: Callable[..., Campaign], put: Put):
    for i in range(5):
        campaign.answer("ann", campaign.pool.label(i), grade=i % 3)
        campaign.answer("bob", campaign.pool.label(i), grade=1)
    campaign.settle("eve", campaign.pool.label(0), grade=2)
    other = make(name="other")
    other.import_file("eve", put("all.jsonl", campaign.export("jsonl")))
    np.testing.assert_array_equal(other.state.judgments.grades(), campaign.state.judgments.grades())


def test_a_quepid_book_becomes_judgments_and_its_machines_labels(campaign: Campaign, put: Put):
    (a, b), (c,) = _docs(campaign, "q1", 2), _docs(campaign, "q2", 1)
    book = f"query,docid,Ann,Robo Judge\nJaguar speed,{a},2,1\nJaguar speed,{b},,0\n =cats,{c},1,\n"
    campaign.import_file("eve", put("book.csv", book), machines=["Robo Judge"])
    state = campaign.state
    assert {pair: {w: j.grade for w, j in state.latest(graded(*pair)).items()} for pair in state.judged} == {
        ("q1", a): {"Ann": 2.0},
        ("q2", c): {"Ann": 1.0},
    }
    labels = campaign.collection.labels
    assert labels is not None
    assert labels.sources == ("Robo Judge",)
    assert dict(
        zip(map(labels.pool.label, range(len(labels.pool))), labels.values[:, 0], strict=True)
    ) == pytest.approx({("q1", a): 1.0, ("q1", b): 0.0, ("q2", c): np.nan}, nan_ok=True)
    with pytest.raises(DataError, match=r"no assessor 'Rob' in it"):
        campaign.import_file("eve", put("other.csv", book + f"Jaguar speed,{c},0,0\n"), machines=["Rob"])


def test_umbrela_answers_become_labels_and_never_judgments(campaign: Campaign, put: Put):
    a, b = _docs(campaign, "q1", 2)
    rows = [
        {
            "model": "m",
            "query": "Jaguar speed",
            "passage": "fast",
            "prediction": "3",
            "judgment": 2,
            "result_status": 1,
        },
        {
            "model": "m",
            "query": "Jaguar speed",
            "passage": "cars",
            "prediction": "?",
            "judgment": 0,
            "result_status": 0,
        },
    ]
    file = put("answers.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match="docs="):
        campaign.import_file("eve", file)
    campaign.import_file("eve", file, docs={a: "fast", b: "cars"})
    assert not campaign.state.judged
    labels = campaign.collection.labels
    assert labels is not None
    assert labels.sources == ("m",)
    np.testing.assert_array_equal(np.sort(labels.values[:, 0]), [2.0, np.nan])


@on_both_databases
def test_label_tables_add_up_and_the_model_sees_them(make: Callable[..., Campaign], put: Put):
    campaign = make(model="text-hierarchical", metric="P@5")
    before = campaign.refresh()
    docs = _docs(campaign, "q1", 4)
    first = "query\tdoc\tllm\n" + "".join(f"q1\t{doc}\t{i % 2}\n" for i, doc in enumerate(docs))
    campaign.import_file("eve", put("one.tsv", first), file_format="labels")
    campaign.import_file(
        "eve", put("two.tsv", f"query\tdoc\tllm\tclicks\nq1\t{docs[0]}\t1\t.5\n"), file_format="labels"
    )
    labels = campaign.collection.labels
    assert labels is not None
    assert labels.sources == ("llm", "clicks")
    assert labels.on(Pool.of(["q1"], [docs[0]])).values.tolist() == [[1.0, 0.5]]
    assert [event.pairs for event in campaign.log() if isinstance(event, Labelled)] == [4, 1]
    assert campaign.is_behind
    assert campaign.refresh().judged == before.judged == 0


def test_joined_labels_keep_what_only_one_table_has():
    one = LabelTable(Pool.of(["q", "q"], ["a", "b"]), ("x",), np.array([[1.0], [2.0]]))
    two = LabelTable(Pool.of(["q", "r"], ["b", "c"]), ("y", "x"), np.array([[5.0, np.nan], [6.0, 7.0]]))
    joined = join_labels([one, two])
    assert joined.sources == ("x", "y")
    np.testing.assert_array_equal(joined.values, [[1.0, np.nan], [2.0, 5.0], [7.0, 6.0]])


def test_joined_probabilities_and_descriptions():
    parts = np.array([[0.5, 0.5], [0.0, 1.0]])
    one = LabelTable(Pool.of(["q", "q"], ["a", "b"]), ("x",), parts @ [[0], [1]], {"x": parts})
    two = LabelTable(Pool.of(["q"], ["b"]), ("x",), np.array([[2.0]]), {"x": np.array([[0.0, 0.0, 1.0]])})
    joined = join_labels([one.described({"x": {"kind": "person"}}), two])
    np.testing.assert_array_equal(joined.probabilities["x"], [[0.5, 0.5, 0], [0, 0, 1]])
    assert joined.observers[0].kind == "person"
    plain = LabelTable(two.pool, ("x",), np.array([[0.0]]))
    mixed = join_labels([one, plain.described({"x": {"scale": "binary"}})])
    np.testing.assert_array_equal(mixed.values, [[0.5], [0]])
    assert not mixed.probabilities


def test_labels_are_stored_with_probabilities_and_descriptions():
    parts = np.array([[0.5, 0.5], [np.nan, np.nan]])
    table = LabelTable(Pool.of(["q", "q"], ["a", "b"]), ("ann", "x"), np.array([[1.0, 0.5], [0, np.nan]]), {"x": parts})
    table = table.described({"ann": {"kind": "person", "scale": "graded:3"}})
    again = unpack_labels(pack_labels(table))
    np.testing.assert_array_equal(again.probabilities["x"], parts)
    np.testing.assert_array_equal(again.values, table.values)
    assert again.observers == table.observers
    assert again.descriptions == table.descriptions


def test_judgment_lists_and_evaluations_become_labels(campaign: Campaign, put: Put):
    a, b = _docs(campaign, "q1", 2)
    rated = [{"query": "Jaguar speed", "ratings": [{"docId": a, "rating": "2.000"}]}, {"query": "dogs", "ratings": []}]
    campaign.import_file("eve", put("ratings.json", json.dumps({"name": "srw", "judgmentRatings": rated})))
    campaign.import_file("eve", put("evaluations.csv", f"qid,did,raw_answer,answer\nq1,{b},..,1\nq99,x,..,0\n"))
    labels = campaign.collection.labels
    assert labels is not None
    assert labels.sources == ("srw", "ragelo")
    assert not campaign.state.judged


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.txt", "q1 0 d\n", "expected 4 columns"),
        ("a.txt", "q1 0 d 7\n", "a grade on the scale graded:2"),
        ("a.txt", "q99 0 d 1\n", "nothing in it belongs to this campaign: 1 judgments of other queries"),
        ("a.csv", "query,docid,Ann\nJaguar speed,d1,7\n", "is not on the scale graded:2"),
        ("a.csv", "query,docid,Ann\nsomething else,d1,1\n", "no id in queries= for the text 'something else'"),
        (
            "a.csv",
            "query,site\nq1,2\n",
            "Name the format of the file: qrels, table, quepid, label-studio, rank-eval, umbrela, ragelo",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused_whole(campaign: Campaign, put: Put, name: str, text: str, says: str):
    with pytest.raises(DataError, match=says):
        campaign.import_file("eve", put(name, text))
    assert campaign.state.number == 3
    with pytest.raises(DataError, match=r"Unknown format 'qurels'.*Did you mean 'qrels'"):
        campaign.import_file("eve", put(name, text), file_format="qurels")


def test_the_log_is_exported_whole(campaign: Campaign):
    campaign.answer("ann", campaign.pool.label(0), grade=1)
    campaign.withdraw("ann")
    rows = [json.loads(line) for line in campaign.export("log").splitlines()]
    assert [row["number"] for row in rows] == list(range(1, len(campaign.log()) + 1))
    assert [row["kind"] for row in rows] == ["created", "guideline", "queries", "judged", "withdrawn", "leased"]
    with pytest.raises(DataError, match="Unknown format 'xls'"):
        campaign.export("xls")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "q1\tJaguar speed\nq2\t=cats\n"),
        ("a.csv", "qid,text\nq1,Jaguar speed\nq2,=cats\n"),
        ("a.jsonl", '{"query_id": "q1", "title": "Jaguar speed"}\n{"query_id": "q2", "title": "=cats"}\n'),
    ],
)
def test_texts_are_read_from_tables(put: Put, name: str, text: str):
    assert read_texts(put(name, text), "query") == TEXTS


def test_a_table_without_texts_is_refused(put: Put):
    with pytest.raises(DataError, match=r"expected a column for the query and one of text, title"):
        read_texts(put("a.csv", "qid,x\nq1,2\n"), "query")
