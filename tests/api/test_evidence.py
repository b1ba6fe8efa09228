"""Paths, frames, dicts and objects of other packages are the same collection."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import probeval
from probeval.api import as_collection, select_model
from probeval.api.evidence import note_outside
from probeval.api.users import as_goal_metric, as_rope
from probeval.data import Scale
from probeval.errors import DataError, ModelError, ProbevalWarning, SatisfactionError
from probeval.relevance import FallbackModel, Uniform, load_card
from tests.heard import Heard

RUNS = {
    "bm25": {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d3": 1.0}},
    "dense": {"q1": {"d2": 0.9, "d4": 0.8}, "q2": {"d3": 0.5}},
}
QRELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 1}}
LINES = [(s, q, d, v) for s, lists in RUNS.items() for q, docs in lists.items() for d, v in docs.items()]
GRADES = [(q, d, g) for q, docs in QRELS.items() for d, g in docs.items()]


class RanxLike:
    """What ranx's Run and Qrels offer."""

    def __init__(self, content, name=None):
        self.content, self.name = content, name

    def to_dict(self):
        return self.content


def _forms(put):
    """The same runs and judgments in every accepted form."""
    scored, judged = namedtuple("ScoredDoc", "query_id doc_id score"), namedtuple("Qrel", "query_id doc_id relevance")
    for system, lists in RUNS.items():
        rows = [f"{q} Q0 {d} 1 {v} {system}\n" for q, docs in lists.items() for d, v in docs.items()]
        put(f"runs/{system}", "".join(rows))
    qrels = put("qrels.txt", "".join(f"{q} 0 {d} {g}\n" for q, d, g in GRADES))
    folder = qrels.parent / "runs"
    frame = pd.DataFrame(LINES, columns=["system", "query", "doc", "score"])
    return {
        "a folder": (folder, qrels),
        "a text": (str(folder), str(qrels)),
        "files": ([folder / "bm25", folder / "dense"], qrels),
        "frames": (frame, pd.DataFrame(GRADES, columns=["query", "doc", "grade"])),
        "dicts": (RUNS, QRELS),
        "ranx": ([RanxLike(lists, name) for name, lists in RUNS.items()], RanxLike(QRELS)),
        "ir_measures": (
            {s: [scored(q, d, v) for t, q, d, v in LINES if t == s] for s in RUNS},
            [judged(q, d, g) for q, d, g in GRADES],
        ),
        "a collection": (probeval.Collection("x", probeval.as_runs(RUNS)), probeval.as_judgments(QRELS)),
    }


def test_every_form_is_the_same_evaluation(put):
    forms = _forms(put)
    expected = probeval.evaluate(RUNS, "P@2", qrels=QRELS, model="uniform").to_dict()
    for name, (runs, qrels) in forms.items():
        assert probeval.evaluate(runs, "P@2", qrels=qrels, model="uniform").to_dict() == expected, name


def test_evidence_from_files_and_frames(put):
    labels = pd.DataFrame({"query": ["q1", "q2"], "doc": ["d1", "d3"], "llm": [1.0, np.nan]})
    groups = pd.DataFrame({"doc": ["d1", "d2"], "site": ["a", "b"]})
    put("labels.tsv", labels.to_csv(sep="\t", index=False))
    file = put("groups.tsv", groups.to_csv(sep="\t", index=False))
    by_frame = as_collection(RUNS, labels=labels, metadata=groups)
    by_file = as_collection(RUNS, labels=file.parent / "labels.tsv", metadata=file)
    pd.testing.assert_frame_equal(by_frame.labels.to_frame(), by_file.labels.to_frame())
    assert by_frame.metadata.groups.keys() == by_file.metadata.groups.keys() == {"site"}
    assert as_collection(by_file, labels=by_frame.labels).labels is by_frame.labels


def test_labels_from_several_sources(put):
    one = pd.DataFrame({"query": ["q1", "q2"], "doc": ["d1", "d3"], "llm": [1.0, np.nan]})
    two = put("two.csv", "query,doc,ann\nq1,d2,3\n")
    labels = as_collection(RUNS, labels=[one, two]).labels
    assert labels.sources == ("llm", "ann")
    assert len(labels.pool) == 3
    assert as_collection(RUNS, labels=[]).labels is None
    with pytest.raises(DataError, match="two columns of labels are called 'llm'"):
        as_collection(RUNS, labels=[one, one])


def test_observers_from_a_file_a_frame_or_a_mapping(put):
    labels = pd.DataFrame({"query": ["q1"], "doc": ["d1"], "ann": [1.0], "gpt_x": [2.0]})
    frame = pd.DataFrame({"name": ["ann"], "kind": ["person"], "scale": ["graded:3"]})
    mapping = {"ann": {"kind": "person", "scale": "graded:3"}}
    path = put("observers.tsv", frame.to_csv(sep="\t", index=False))
    for observers in (frame, mapping, path, str(path)):
        collection = as_collection(RUNS, labels=labels, observers=observers)
        assert [(o.name, o.kind, o.scale) for o in collection.labels.observers] == [
            ("ann", "person", "graded:3"),
            ("gpt_x", "machine", "graded:2"),
        ]
    later = as_collection(as_collection(RUNS, labels=labels), observers=mapping)
    assert later.labels.observers == collection.labels.observers
    evaluation = probeval.evaluate(RUNS, "P@2", qrels=QRELS, labels=labels, observers=mapping, model="uniform")
    assert evaluation.estimate.collection.labels.observers == collection.labels.observers


def test_observers_need_labels():
    with pytest.raises(DataError, match="observers describe labels, and there are none"):
        as_collection(RUNS, observers={"ann": {"kind": "person"}})
    labels = pd.DataFrame({"query": ["q1"], "doc": ["d1"], "ann": [1.0]})
    with pytest.warns(ProbevalWarning, match="Observers without labels: bob, eve"):
        as_collection(RUNS, labels=labels, observers={"bob": {}, "ann": {"kind": "person"}, "eve": {}})


def test_what_is_not_given_stays(small):
    assert as_collection(small).judgments is small.judgments
    query, doc = small.runs.pool.label(0)
    assert as_collection(small, qrels={query: {doc: 1}}).judgments is not small.judgments


@pytest.mark.parametrize("what", ["qrels", "labels"])
def test_ids_that_never_match_are_named(put, what):
    runs = {"a": {"q1": {f"d{i}": float(i) for i in range(5)}, "q2": {"d1": 1.0}}}
    table = "query\tdoc\t{}\n{}\tx1\t1\n{}\tx2\t0\n".replace("{}", "grade" if what == "qrels" else "llm", 1)
    with pytest.raises(DataError, match=r"made\.tsv: no document in common, for the queries that are in both") as error:
        as_collection(runs, **{what: put("made.tsv", table.format("q1", "q1"))})
    assert "'q1 d0', 'q1 d1', 'q1 d2' and others" in str(error.value)
    assert "'q1 x1', 'q1 x2'" in str(error.value)
    with pytest.raises(DataError, match=r"no query in common: the runs answer 'q1', 'q2', the .* are for 'q8', 'q9'"):
        as_collection(runs, **{what: put("made.tsv", table.format("q8", "q9"))})


def test_pairs_outside_the_pool_are_counted(put):
    runs = {"a": {"q1": {"d1": 2.0, "d2": 1.0}}}
    labels = put("labels.tsv", "query\tdoc\tllm\nq1\td1\t1\nq1\td2\t0\nq1\tx1\t1\n")
    heard = Heard()
    note_outside(as_collection(runs, qrels={"q1": {"d1": 1, "x1": 0, "x2": 0}}, labels=labels), heard)
    assert heard.said == [
        "2 of 3 judged pairs are not counted: no run retrieved them.",
        "1 of 3 labelled pairs are not counted: no run retrieved them.",
    ]


def test_teams_beside_a_folder_of_runs(put):
    put("runs/a", "q1 Q0 d1 1 1 a\n")
    folder = put("runs/b", "q1 Q0 d2 1 1 b\n").parent
    assert as_collection(folder).runs.teams is None
    put("systems.tsv", "run\tteam\na\tred\nb\tblue\n")
    assert as_collection(folder).runs.teams == ("red", "blue")


def test_a_model_by_name_by_card_and_as_an_object(small):
    unjudged = replace(small, judgments=None)
    heard = Heard()
    named = select_model(unjudged, "uniform", scale="graded:2", gain="exp", reporter=heard)
    assert named.name == "uniform"
    assert named.scale == Scale.graded(2, gain="exp")
    assert heard.said == ["Model uniform: it was asked for. Scale graded:2 (named)."]
    card = load_card("text-out")
    assert select_model(unjudged, card, scale="graded:2").card is card
    own = FallbackModel([Uniform()])
    given = select_model(unjudged, own, scale="graded:2")
    assert (given.model, given.name, given.card) == (own, "FallbackModel", None)
    with pytest.raises(ModelError, match="needs a relevance model"):
        select_model(unjudged, "none")


def test_a_model_that_was_fitted_on_these_judgments_says_so(campaign):
    card = probeval.fit([campaign, replace(campaign, name="other", runs=campaign.runs)])
    heard = Heard()
    select_model(campaign, card, reporter=heard)
    assert heard.said[1] == "mine was fitted on these judgments (campaign): its confidence is too high here."


def test_texts_are_the_same_in_every_form(put):
    texts = {"d1": "red wine", "d2": "red beer", "d9": "never retrieved", "d3": ""}
    frame = pd.DataFrame({"docid": list(texts), "text": list(texts.values())})
    path = put("docs.tsv", "".join(f"{doc}\t{text}\n" for doc, text in texts.items()))
    for docs in (texts, frame, path, str(path)):
        vectors = as_collection(RUNS, docs=docs).vectors
        assert vectors.docs.tolist() == ["d1", "d2"]
        assert vectors.values.shape == (2, 3)
    assert as_collection(RUNS, docs=vectors).vectors is vectors
    assert as_collection(RUNS).vectors is None


def test_texts_of_other_kinds_are_refused():
    with pytest.raises(DataError, match="docs are a path, a data frame, a mapping from ids to texts, or Vectors; got"):
        as_collection(RUNS, docs={"d1": [1.0, 2.0]})
    with pytest.raises(DataError, match="expected a column for the doc"):
        as_collection(RUNS, docs=pd.DataFrame({"doc": ["d1"], "x": ["y"]}))


def test_an_evaluation_notes_its_texts():
    found = probeval.evaluate(RUNS, "DCG@5", scale="graded:2", docs={"d1": "red wine", "d2": "red beer", "d3": "tea"})
    assert "Texts of 3 of 4 documents." in found.notes


def test_a_rope_is_a_number_or_what_users_notice():
    heard = Heard()
    assert [as_rope(rope, "nDCG@10", Scale.binary(), reporter=heard) for rope in (0, 0.01, "0", ".05")] == [
        0, 0.01, 0, 0.05,
    ]  # fmt: skip
    assert heard.said == []
    assert as_rope("users=.5", "CG@5", Scale.graded(2), reporter=heard) == 0.5
    assert heard.said == [
        "Half of the users notice a difference of 0.5 (CGl@5/broad; Urbano 2013, music similarity, 4,115 answers)."
    ]
    assert as_rope("users=0.8", "nDCG@10", Scale.binary(), mapping="CGl@5/fine") == 0.7
    assert as_rope("users=.5", mapping="CGl@5/fine") == 0.3


def test_the_measure_of_a_goal():
    assert str(as_goal_metric("nDCG@10", "best", mapping="DCGl@5/broad", rope="users=.5")) == "nDCG@10"
    assert str(as_goal_metric("DCG@5", "success")) == "DCG@5"  # its mapping depends on the scale
    assert str(as_goal_metric("nDCG@10", "success", mapping="DCGl@5/broad")) == 'PSucc(mapping="DCGl@5/broad")'
    with pytest.raises(SatisfactionError, match=r"rope users=.5: .* not in P\(success\). Give a number"):
        as_goal_metric("CG@5", "success", rope="users=.5")


@pytest.mark.parametrize(
    ("rope", "metric", "mapping", "expected"),
    [
        (-0.1, "CG@5", None, r"at least 0, or users=SHARE \(users=.5\), got '-0.1'"),
        ("half", "CG@5", None, "got 'half'"),
        ("users=", "CG@5", None, "got 'users='"),
        ("inf", "CG@5", None, "got 'inf'"),
        ("users=5", "CG@5", None, "A share of users is above 0 and at most 1, got 5"),
        ("users=.99", "CG@5", None, "No difference is noticed by 99% of users: CGl@5/broad reaches 89.4%"),
        ("users=.5", "nDCG@10", None, r"for nDCG@10 on the scale graded:2. Borrow some with --mapping .* CGl@5/fine"),
        ("users=.5", None, None, "for a table of scores. Borrow some with --mapping"),
        (
            "users=.5",
            'PSat(mapping="CGl@5/broad")',
            "CGl@5/broad",
            "scores of two lists, not in PSat",
        ),
        ("users=.5", "CG@5", "Ql@5/fine", "No agreement 'Ql@5/fine': CGl@5/broad"),
    ],
)
def test_a_bad_rope_is_refused(rope, metric, mapping, expected):
    with pytest.raises(SatisfactionError, match=expected):
        as_rope(rope, metric, metric and Scale.graded(2), mapping=mapping)


def test_teams_from_a_mapping_a_frame_or_a_file(tmp_path):
    runs = {"bm25": {"q1": {"d1": 2.0}}, "dense": {"q1": {"d2": 1.0}}, "own": {"q1": {"d3": 1.0}}}
    table = pd.DataFrame({"run": ["bm25", "dense"], "team": ["ir", "ir"]})
    table.to_csv(tmp_path / "teams.csv", index=False)
    for given in (table, {"bm25": "ir", "dense": "ir"}, tmp_path / "teams.csv", str(tmp_path / "teams.csv")):
        assert probeval.as_collection(runs, teams=given).runs.teams == ("ir", "ir", "own")
    with pytest.raises(DataError, match="no team of these systems: the runs are 'bm25'"):
        probeval.as_collection(runs, teams={"BM25": "ir"})
    with pytest.raises(DataError, match="got 'a'"):
        probeval.as_collection(runs, teams=pd.DataFrame({"a": [1]}))
