"""A small campaign, as folders and as an object; and the command line, to compare with."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probeval.cli import main
from probeval.data import Collection, write_campaign
from probeval.data.trec import write_qrels
from probeval.relevance import synthetic_campaign


@pytest.fixture(scope="session")
def campaign() -> Collection:
    """Five systems, ten queries, every pair of the top 10 judged on 0-2."""
    made = synthetic_campaign(seed=3, systems=5, queries=10, depth=10, docs=40)
    return replace(made, name="campaign")


@pytest.fixture(scope="session")
def folder(campaign: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaign on disk, with every fifth judgment in ``judged.txt``."""
    path = tmp_path_factory.mktemp("api") / "campaign"
    write_campaign(campaign, path)
    assert campaign.judgments is not None
    write_qrels(path / "judged.txt", campaign.judgments.take(np.arange(0, len(campaign.judgments), 5)))
    return path


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """The JSON that a verb prints."""

    def run(*arguments: object) -> Any:
        monkeypatch.setattr(sys, "argv", ["probeval", *map(str, arguments), "--format", "json", "--quiet"])
        with contextlib.suppress(SystemExit):
            main()
        return json.loads(capsys.readouterr().out)

    return run
