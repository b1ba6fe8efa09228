"""Measures of ir_measures are the same measures here."""

from __future__ import annotations

import ir_measures
import pytest
from ir_measures import AP, ERR, RR, SDCG, Bpref, Compat, IPrec, Judged, P, R, Rprec, SetF, SetP, Success, nDCG

import probeval
from probeval.errors import MetricError
from probeval.metrics import measure, metric_of, parse

# RBP of ir_measures needs cwl_eval, and ERR a Perl script.
SAME = [nDCG, nDCG @ 3, AP, AP(rel=2) @ 5, P @ 4, P(rel=2) @ 4, R @ 5, RR, RR(rel=2) @ 2, Rprec, Success @ 2, SetP]
SAME += [SetF, SetF(beta=2.0), Bpref, Judged @ 5]


@pytest.mark.parametrize("theirs", SAME, ids=str)
def test_the_scores_are_the_same(small, theirs):
    frame = small.runs.select([small.runs.systems[2]]).to_frame().rename(columns={"query": "query_id", "doc": "doc_id"})
    judged = small.judgments.to_frame().iloc[::2].rename(
        columns={"query": "query_id", "doc": "doc_id", "grade": "relevance"}
    )  # fmt: skip
    judged["relevance"] = judged["relevance"].astype(int)
    ours = measure(probeval.as_runs({"a": frame}), probeval.as_judgments(judged), theirs)
    assert ours.to_frame()["mean"].item() == pytest.approx(
        ir_measures.calc_aggregate([theirs], judged, frame)[theirs], abs=1e-9
    )


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (nDCG(dcg="log2") @ 10, "nDCG@10"),
        (nDCG(dcg="exp-log2") @ 10, 'nDCG(gain="exp")@10'),
        (ERR @ 20, "ERR(max=4)@20"),
        (ir_measures.RBP(p=0.5, rel=2), "RBP(p=0.5, rel=2)"),
        (ir_measures.MAP, "AP"),
        (P(judged_only=False) @ 5, "P@5"),
    ],
)
def test_parameters_are_translated(theirs, ours):
    assert metric_of(theirs) == parse(ours)


@pytest.mark.parametrize(
    ("theirs", "says"),
    [
        (P(judged_only=True) @ 5, r"ir_measures' P\(judged_only=True\)@5: probeval's P has no judged_only=True\."),
        (nDCG(gains={1: 3}) @ 5, r"probeval's nDCG has no gains="),
        (SetP(relative=True), r"probeval's SetP has no relative=True"),
        (SDCG(max_rel=3) @ 10, r"is not a measure of probeval\. In both are AP, Bpref"),
        (IPrec @ 0.1, r"ir_measures' IPrec@0\.1 is not a measure of probeval"),
        (Compat, "is not a measure of probeval"),
        (10, r"A metric is a name such as 'nDCG@10', or a measure of probeval or ir_measures; got 10\."),
    ],
)
def test_what_differs_is_refused(theirs, says):
    with pytest.raises(MetricError, match=says):
        metric_of(theirs)


def test_they_are_taken_wherever_names_are(small):
    runs, judgments = small.runs, small.judgments
    by_name = probeval.evaluate(runs, "nDCG@5", qrels=judgments, model="uniform")
    assert probeval.evaluate(runs, nDCG @ 5, qrels=judgments, model="uniform").to_dict() == by_name.to_dict()
    assert by_name.by(P @ 5).to_dict() == by_name.by("P@5").to_dict()
    new, old = (runs.select([system]) for system in runs.systems[:2])
    several = probeval.gate(new, old, [nDCG @ 5, P @ 5], qrels=judgments, model="uniform")
    assert several.to_dict() == probeval.gate(new, old, ["nDCG@5", "P@5"], qrels=judgments, model="uniform").to_dict()
    alone = probeval.gate(new, old, nDCG @ 5, qrels=judgments, model="uniform")
    assert alone.to_dict() == probeval.gate(new, old, "nDCG@5", qrels=judgments, model="uniform").to_dict()
    tested, named = (probeval.compare(runs, m, qrels=judgments, method="t") for m in (nDCG @ 5, "nDCG@5"))
    assert tested.to_dict() == named.to_dict()
    with pytest.raises(MetricError, match="P needs a cutoff"):
        probeval.evaluate(runs, P, qrels=judgments)
