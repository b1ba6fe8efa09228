"""``probeval judge`` before it listens: what it refuses, in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from probeval.campaign import Campaign
from probeval.campaign.copying import copy_store
from probeval.data import Collection
from tests.cli.conftest import Said, probeval  # noqa: F401

Run = Callable[..., Said]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--host", "0.0.0.0"], "every assessor outside this machine needs a token"),
        (["--certificate", "site.pem"], "HTTPS needs both --certificate and --key"),
        (["--certificate", "site.pem", "--key", "site.key"], "site.pem: no such file"),
        (["--assessor", "  "], "The name of an assessor must be one line of text"),
        (["--docs", "none.csv"], "none.csv: cannot be read"),
        (["--assessor-file", "none.csv"], "none.csv: cannot be read"),
        (["--name", "other"], "no campaign 'other'"),
    ],
)
def test_what_will_not_do_is_said(
    probeval: Run,  # noqa: F811
    campaign: Campaign,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    why: str,
):
    monkeypatch.chdir(tmp_path)
    said = probeval("judge", campaign.address[0], "--port", 0, *options)
    assert said.code == 1
    assert said.err.startswith("Error: ")
    assert why in said.err
    assert said.out == ""


def test_what_assessors_will_miss_is_said(
    probeval: Run,  # noqa: F811
    campaign: Campaign,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("probeval.web.serve", lambda *_, ready, **__: ready("http://here/"))
    place = campaign.address[0]
    *missing, _ = probeval("judge", place).err.splitlines()
    assert missing == [
        "No document texts: assessors will see ids only. Add them with --docs FILE",
        f"No query texts: assessors will see ids only. Add them with probeval campaign queries {place} FILE",
    ]
    campaign.change_queries("eve", {"q1": "what is it"})
    docs = tmp_path / "docs.csv"
    docs.write_text(f"doc,text\n{campaign.pool.docs[0]},a text\n")
    assert probeval("judge", place, "--docs", docs).err.splitlines() == [
        f"1 of {len(campaign.pool.docs)} documents to show are in {docs}.",
        "Open this address in a browser. Ctrl+C stops the server.",
    ]


def test_no_store_no_page(probeval: Run, tmp_path: Path):  # noqa: F811
    said = probeval("judge", tmp_path / "none.db")
    assert said.code == 1
    assert "no such store" in said.err


@pytest.mark.skipif(os.name != "posix", reason="files have no modes here")
@pytest.mark.parametrize(("mode", "open_to"), [(0o644, True), (0o640, True), (0o604, True), (0o600, False)])
def test_tokens_that_others_can_read_are_said(
    probeval: Run,  # noqa: F811
    campaign: Campaign,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: int,
    open_to: bool,
):
    monkeypatch.setattr("probeval.web.serve", lambda *_, **__: None)
    team = tmp_path / "team.csv"
    team.write_text("assessor,token\nann,kX2vq0Zl9mJr5tYw8uBn\n")
    team.chmod(mode)
    line = f"{team}: other users of this machine can read its tokens. Run chmod 600 {team}."
    assert (line in probeval("judge", campaign.address[0], "--assessor-file", team).err.splitlines()) == open_to


@pytest.mark.skipif(os.name != "posix", reason="files have no modes here")
def test_a_new_store_is_for_its_owner_only(tmp_path: Path, small: Collection):
    before = os.umask(0o022)
    try:
        with Campaign.create(tmp_path / "new.db", small, metric="nDCG@5", model="uniform") as campaign:
            with campaign.serving():
                campaign.answer("ann", campaign.pool.label(0), grade=1)
                modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob("new.db*")}
            copy_store(tmp_path / "new.db", tmp_path / "copy.db")
    finally:
        os.umask(before)
    assert {"new.db", "new.db-wal", "new.db-shm", "new.db-server"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
