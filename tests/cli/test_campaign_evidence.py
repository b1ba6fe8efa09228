"""A campaign uses every piece of evidence that it is created with, or refuses it with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from probeval.api.evidence import REFUSED, Beside
from probeval.campaign import Campaign
from probeval.records import inputs
from tests.api.test_verbs_use_evidence import evidence, runs

FIELDS = [one.name for one in inputs(Beside)]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """The evidence of the tests of tasks, as files."""
    have = evidence()
    teams = pd.DataFrame(have["teams"].items(), columns=["system", "team"])
    observers = pd.DataFrame([{"name": name, **spec} for name, spec in have["observers"].items()])
    texts = pd.DataFrame(have["docs"].items(), columns=["doc", "text"])
    tables = {**have, "teams": teams, "observers": observers, "docs": texts, "runs": runs()}
    found: dict[str, Any] = {"reference": "ann", "order": "rank"}
    for name, table in tables.items():
        if isinstance(table, pd.DataFrame):
            found[name] = tmp_path / f"{name}.csv"
            table.to_csv(found[name], index=False)
    return found


@pytest.mark.filterwarnings("ignore::probeval.errors.ProbevalWarning")
@pytest.mark.parametrize("field", FIELDS)
def test_a_campaign_uses_evidence_or_refuses_it(probeval, files: dict[str, Any], tmp_path: Path, field: str):
    beside = {} if field == "qrels" else {"qrels": files["qrels"]}
    beside |= {"labels": files["labels"]} if field == "observers" else {}
    model = "independent" if field == "metadata" else "hierarchical"  # groups choose the card

    def created(name: str, given: dict[str, Any]) -> Any:
        options = [word for option, value in given.items() for word in (f"--{option}", value)]
        return probeval(
            "campaign", "create", tmp_path / name, files["runs"], "--metric", "nDCG@3", "--scale", "graded:2",
            "--model", model, *options,
        )  # fmt: skip

    before, after = created("before.db", beside), created("after.db", {**beside, field: files[field]})
    assert before.code == 0, before.err
    if field in REFUSED["campaign"]:
        assert after.code == 1
        assert after.err.startswith(f"Error: --{field} is not for a")
        return
    assert after.code == 0, after.err
    results = []
    for name in ("before.db", "after.db"):
        with Campaign.open(tmp_path / name) as campaign:
            results.append(json.dumps(campaign.evaluate().to_dict()))
    assert results[0] != results[1]
