"""Datasets of ir_datasets by id, as people type them."""

from __future__ import annotations

import json

from probeval.campaign import Campaign

RUNS = {"a": {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}}, "b": {"q1": {"d3": 2.0}, "q2": {"d2": 1.0}}}


def test_judgments_and_texts_by_id(dataset, probeval, put, tmp_path):
    for system, lists in RUNS.items():
        put(f"runs/{system}", "".join(f"{q} Q0 {d} 1 {v} t\n" for q, docs in lists.items() for d, v in docs.items()))
    runs, store = tmp_path / "runs", tmp_path / "mine.db"
    said = probeval("evaluate", runs, "--metric", "P@2", "--qrels", dataset, "--model", "none", "--format", "json")
    assert json.loads(said.out)["judged"] == 3
    said = probeval(
        "campaign", "create", store, runs, "--metric", "P@2", "--scale", "graded:2", "--model", "uniform",
        "--queries", dataset, "--docs", dataset,
    )  # fmt: skip
    assert (said.code, "2 of 2 queries have a text." in said.err) == (0, True), said.err
    said = probeval("campaign", "import", store, dataset, "--format", "json")
    assert json.loads(said.out) == {"judgments": 3, "assessors": dataset, "labelled": 0, "machines": "", "answers": 0}
    again = probeval("campaign", "import", store, dataset)
    assert (again.code, "irds:mine/test: already imported" in again.err) == (1, True)
    with Campaign.open(str(store)) as campaign:
        assert {event.source for event in campaign.log() if event.kind == "imported"} == {dataset}
