"""Every task with evidence uses all of it, or refuses a piece with its reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import probeval
from probeval.api.evidence import REFUSED, Beside
from probeval.errors import DataError
from probeval.records import inputs
from probeval.simulation.plan import plan

FIELDS = [one.name for one in inputs(Beside)]
METRIC = "nDCG@3"
DEPTH = 3
GROUPS = ["doc", "artist", "genre"]


@pytest.fixture(autouse=True, scope="module")
def two_paths() -> Iterator[None]:
    """Plans draw two truths, not eight: evidence changes these too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(plan.__kwdefaults__, "paths", 2)
        yield


@cache
def campaign() -> probeval.Collection:
    return probeval.synthetic_campaign(seed=3, systems=5, queries=6, depth=DEPTH)


@cache
def runs() -> pd.DataFrame:
    """The runs, with ranks that reverse the order of scores: orders by rank and by score differ."""
    table = campaign().runs.to_frame()
    return table.assign(rank=DEPTH + 1 - table["rank"])


@cache
def evidence() -> dict[str, Any]:
    """A piece of each kind of evidence, that of the base of comparison first where it needs another."""
    rng = np.random.default_rng(4)
    pairs = first(1)[["query", "doc"]].sort_values(["query", "doc"], ignore_index=True)  # in the pool of every task
    judged = campaign().judgments.to_frame()[["query", "doc", "grade"]]
    few = judged.iloc[::3]
    two = pd.concat([few.assign(assessor="ann"), few.assign(assessor="bob", grade=2 - few["grade"])])
    same = pairs[pairs["query"] == pairs["query"][0]]
    docs = list(campaign().runs.pool.docs)
    extra = pd.DataFrame({"system": "other", "query": pairs["query"].unique(), "doc": "zz", "score": 1.0, "rank": 1})
    return {
        "qrels": few,
        "labels": pairs.assign(judge=rng.integers(0, 3, len(pairs))),
        "observers": {"judge": {"kind": "person", "family": "crowd", "scale": "graded:2"}},
        "preferences": pd.DataFrame(
            {"query": same["query"].iloc[0], "left": same["doc"].iloc[0], "right": same["doc"].iloc[1:],
             "choice": "left", "relevant": "", "assessor": "ann"}
        ),
        "magnitudes": pairs.iloc[:12].assign(number=rng.uniform(1, 9, 12), assessor="ann"),
        "metadata": pd.DataFrame([(doc, f"a{i % 3}", f"g{i % 2}") for i, doc in enumerate(docs)], columns=GROUPS),
        "docs": {doc: f"{'red wine' if i % 2 else 'blue beer'} w{i}" for i, doc in enumerate(docs)},
        "pool": extra,
        "teams": {system: f"t{i % 2}" for i, system in enumerate(campaign().runs.systems)},
        "reference": "ann",
        "order": "rank",
        "two": two,
        "all": judged,
        "half": judged.iloc[::2],
    }  # fmt: skip


def first(n: int) -> pd.DataFrame:
    return runs()[runs()["system"].isin(campaign().runs.systems[:n])]


def last() -> pd.DataFrame:
    return runs()[runs()["system"] == campaign().runs.systems[-1]]


FAST = {"scale": "graded:2"}
TASKS = {
    "evaluate": lambda **given: probeval.evaluate(runs(), METRIC, draws=50, **FAST, **given),
    "next": lambda **given: probeval.next_pairs(runs(), METRIC, n=3, draws=50, **FAST, **given),
    "compare": lambda **given: probeval.compare(runs(), METRIC, draws=50, **{"model": "hierarchical", **FAST, **given}),
    "gate": lambda **given: probeval.gate(first(1), last(), METRIC, draws=50, **FAST, **given),
    "plan": lambda **given: probeval.plan(first(3), "DCG@3", "confidence=.6", **FAST, **given),
    "simulate": lambda **given: probeval.simulate(
        runs(), METRIC, batch=8, until=0.4, draws=20, systems="all", **FAST, **given
    ),
    "gstudy": lambda **given: probeval.gstudy(runs(), METRIC, draws=50, **{"model": "hierarchical", **FAST, **given}),
    "predict": lambda **given: probeval.predict(runs(), depth=DEPTH - 1, **FAST, **given),
    "reuse": lambda **given: probeval.reuse(first(4), last(), METRIC, **FAST, **given),
    "reuse_study": lambda **given: probeval.reuse_study(runs(), METRIC, **FAST, **given),
}
NEEDS_ALL = {"simulate", "reuse_study"}  # judgments, of a finished campaign


def given_for(task: str, field: str) -> dict[str, str]:
    """What stands beside the field, by names of evidence: labels for observers, two people for a reference."""
    given = {"qrels": "all" if task in NEEDS_ALL else "qrels"}
    if field == "qrels":
        return {"qrels": "half"} if task in (*NEEDS_ALL, "reuse") else {}
    if field == "reference":
        return {"qrels": "two"}
    if field == "metadata":
        return {**given, "model": "independent"}  # its card for groups of these names is another one
    if field == "observers":
        return {**given, "labels": "labels"}
    return given


@cache
def outcome(task: str, *given: tuple[str, str]) -> str:
    """What a task says of evidence with these names; most fields stand beside the same."""
    named = {field: evidence().get(name, name) for field, name in given}
    return json.dumps(TASKS[task](**named).to_dict(), default=str)


REASONS = {"simulate": "simulation", "reuse": "reuse", "reuse_study": "reuse"}


@pytest.mark.filterwarnings("ignore::probeval.errors.ProbevalWarning")  # of features that groups lack
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("task", [pytest.param(t, marks=pytest.mark.slow) if t == "plan" else t for t in TASKS])
def test_a_piece_of_evidence_changes_the_answer_or_is_refused(task: str, field: str):
    before = given_for(task, field)
    after = {**before, field: "all" if field == "qrels" and task in NEEDS_ALL else field}
    if field in REFUSED.get(REASONS.get(task, ""), ()):
        with pytest.raises(DataError, match=f"^--{field} .*\\."):
            outcome(task, *after.items())
    else:
        assert outcome(task, *after.items()) != outcome(task, *before.items())
