"""Changes of a campaign under way, links, backups and checks, as people type them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from probeval.campaign import Campaign
from tests.cli.conftest import Said
from tests.cli.test_campaign import runs, store  # noqa: F401

Run = Callable[..., Said]


def test_a_target_is_raised_and_the_log_says_who_did_it(probeval: Run, store: str):  # noqa: F811
    said = probeval(
        "campaign", "change", store, "--stop", "confidence=.97", "--rope", 0.01, "--lease", 5, "--by", "eve"
    )
    assert said.out.splitlines()[2:] == [
        "stopping  confidence=.95  confidence=.97",
        "rope      0.0             0.01",
        "lease     900.0           300.0",
    ]
    said = probeval("campaign", "change", store, "--metric", "P@20")
    assert (said.code, said.err) == (
        1,
        "Error: P@20 looks at 20 ranks, and the pool has 5. Change the depth as well.\n",
    )
    assert probeval("campaign", "change", store, "--metric", "P@20", "--depth", 20).code == 0
    assert "Give at least one setting" in probeval("campaign", "change", store).err
    assert "Did you mean" in probeval("campaign", "change", store, "--policy", "dept").err
    log = probeval("campaign", "log", store).out.splitlines()
    assert "eve    changed  stopping confidence=.95 -> confidence=.97" in log[2]
    assert len(log) == 4
    assert len(probeval("campaign", "log", store, "--all", "--format", "csv").out.splitlines()) == 4


def test_pause_resume_close_reopen(probeval: Run, store: str):  # noqa: F811
    assert "paused" in probeval("campaign", "pause", store, "--reason", "lunch").out
    said = probeval("campaign", "next", store, "--assessor", "ann")
    assert "The campaign is paused: no pairs are given out." in said.err
    assert "The campaign is paused (lunch): no pairs are given out" in probeval("campaign", "status", store).err
    assert probeval("campaign", "reopen", store).err == "Error: The campaign is paused, not closed.\n"
    assert probeval("campaign", "resume", store).code == 0
    assert probeval("campaign", "close", store).code == 0
    assert probeval("campaign", "resume", store).err == "Error: The campaign is closed, not paused.\n"
    assert probeval("campaign", "reopen", store).code == 0
    assert (
        probeval("campaign", "next", store, "--assessor", "ann", "--no-refresh", "--format", "csv").out.count("\n") == 2
    )


def test_a_late_run_joins(probeval: Run, store: str, tmp_path: Path):  # noqa: F811
    (tmp_path / "late").write_text("q1 Q0 brand-new 1 2 x\n")
    said = probeval("campaign", "runs", "add", store, tmp_path / "late", "--by", "eve")
    assert said.out.splitlines()[1].split()[1:3] == ["late", "1"]
    assert "lack" in said.err
    assert "has a system 'late' already" in probeval("campaign", "runs", "add", store, tmp_path / "late").err
    assert probeval("campaign", "record", store, "q1", "brand-new", 2, "--assessor", "ann").code == 0
    status = json.loads(probeval("campaign", "status", store, "--refresh", "--format", "json").out)
    assert "late" in {row["system"] for row in status["snapshot"]["systems"]}


def test_a_link_is_shown_once_and_revoked(probeval: Run, store: str):  # noqa: F811
    said = probeval("campaign", "assessors", "add", store, "ann", "--base-url", "https://judge.example.org/")
    link = said.out.strip()
    assert link.startswith("https://judge.example.org/join/")
    token = link.rpartition("/")[2]
    assert len(token) == 43
    assert "Give this link to ann alone: it signs in as assessor, until " in said.err
    assert token not in Path(store).read_bytes().decode("latin-1")
    assert token not in probeval("campaign", "assessors", "list", store).out
    assert token not in probeval("campaign", "export", store, "--format", "log").out
    again = probeval("campaign", "assessors", "add", store, "ann")
    assert again.err == "Error: 'ann' is invited already, as assessor. Revoke that first to give another link.\n"
    with Campaign.open(store) as campaign:
        assert campaign.people.may_sign_in(token)
        assert probeval("campaign", "assessors", "revoke", store, "ann").code == 0
        assert not campaign.people.may_sign_in(token)
    assert "No one is invited" in probeval("campaign", "assessors", "list", store).err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--role", "onwer"], "must be one of assessor, adjudicator, owner, got 'onwer'. Did you mean 'owner'?"),
        (["--expires", "soon"], "--expires takes hours, days or weeks such as 12h, 30d or 8w, or never; got 'soon'."),
        (["--expires", "0d"], "--expires takes hours"),
        (["--base-url", "judge.example.org"], "--base-url takes an address such as https://judge.example.org"),
        (["--base-url", "https://a.example/x?y"], "--base-url takes an address"),
        (["--base-url", "javascript:alert(1)"], "--base-url takes an address"),
    ],
)
def test_invitations_that_will_not_do(probeval: Run, store: str, options: list[str], why: str):  # noqa: F811
    said = probeval("campaign", "assessors", "add", store, "ann", *options)
    assert said.code == 1
    assert why in said.err
    assert "No one is invited" in probeval("campaign", "assessors", "list", store).err


def test_a_backup_is_checked_restored_and_never_overwrites(probeval: Run, store: str, tmp_path: Path):  # noqa: F811
    assert probeval("campaign", "backup", store, "copy.db").code == 0
    assert "copy.db: exists already" in probeval("campaign", "backup", store, "copy.db").err
    assert probeval("campaign", "restore", "copy.db", "again.db").code == 0
    assert probeval("campaign", "restore", "none.db", "x.db").code == 2
    assert probeval("campaign", "check", "again.db").err == "No faults.\n"
    with sqlite3.connect("again.db") as file:
        file.execute("UPDATE probeval_event SET by = 'mallory' WHERE number = 1")
    file.close()
    said = probeval("campaign", "check", "again.db")
    assert said.code == 1
    assert said.err == (
        "Fault: campaign 'campaign': event 1 was changed, or an event before it: its digest is not the one that was "
        "written.\n"
    )
    said = probeval("campaign", "restore", "again.db", "x.db")
    assert (said.code, "The copy has 1 faults" in said.err) == (1, True)
    assert not (tmp_path / "x.db").exists()


def test_a_file_of_assessors_is_imported_into_the_store(
    probeval: Run,
    store: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(
        "probeval.web.serve", lambda *_, ready, roster, **__: ready(f"alone: {roster.alone is not None}")
    )
    assert "alone: True" in probeval("judge", store).out
    team = tmp_path / "team.csv"
    team.write_text("assessor,token,role\nann,kX2vq0Zl9mJr5tYw8uBn,\neve,Qe7pLd3sVh1cRf6gTa4i,owner\n")
    said = probeval("judge", store, "--assessor-file", team, "--host", "0.0.0.0")
    assert "alone: False" in said.out
    assert "kX2vq0Zl9mJr5tYw8uBn" not in Path(store).read_bytes().decode("latin-1")
    assert probeval("campaign", "assessors", "list", store).out.count("\n") == 3
    assert "alone: False" in probeval("judge", store, "--host", "0.0.0.0").out  # from the store alone
    assert "alone: True" in probeval("judge", store, "--assessor", "me").out
    assert "not both" in probeval("judge", store, "--assessor", "me", "--assessor-file", team).err
    assert "needs a token" in probeval("judge", store, "--assessor", "me", "--host", "0.0.0.0").err
    probeval("campaign", "assessors", "revoke", store, "ann")
    said = probeval("judge", store, "--assessor-file", team)
    assert f"ann: the token in {team} was revoked" in said.err
    assert probeval("campaign", "assessors", "list", store).out.count("\n") == 2


def test_gold_pairs_are_given_shown_and_answered(probeval: Run, store: str, tmp_path: Path):  # noqa: F811
    (tmp_path / "gold.txt").write_text("q1 0 not-in-a-run 1\n")
    said = probeval("campaign", "gold", store, tmp_path / "gold.txt", "--by", "eve")
    assert said.err.splitlines() == [
        "1 gold pair, 0 of them asked so far.",
        "0 of them count as judged.",
        "No task is a gold pair yet: set a share with campaign change --gold-share .05.",
    ]
    assert "gold_share  0.0     0.99" in probeval("campaign", "change", store, "--gold-share", 0.99).out
    given = json.loads(probeval("campaign", "next", store, "--assessor", "ann", "--no-refresh", "--format", "json").out)
    assert given["next"][0]["doc"] == "not-in-a-run"
    assert "purpose" not in given["next"][0]  # it looks like any other
    probeval("campaign", "record", store, "q1", "not-in-a-run", 0, "--assessor", "ann")
    (pair,) = json.loads(probeval("campaign", "gold", store, "--format", "json").out)["pairs"]
    assert (pair["answers"], pair["right"], pair["retrieved"]) == (1, 0, False)
    assert "gold     1 pair\n" in probeval("campaign", "log", store).out
    (tmp_path / "wrong.txt").write_text("nowhere 0 d 1\n")
    said = probeval("campaign", "gold", store, tmp_path / "wrong.txt")
    assert said.err.startswith("Error: Gold: no query 'nowhere' in this campaign.")


def test_the_answers_of_a_person_are_set_aside_and_come_back(probeval: Run, store: str):  # noqa: F811
    given = json.loads(probeval("campaign", "next", store, "--assessor", "dan", "--no-refresh", "--format", "json").out)
    query, doc = given["next"][0]["query"], given["next"][0]["doc"]
    probeval("campaign", "record", store, query, doc, 0, "--assessor", "dan")
    said = probeval("campaign", "set-aside", store, "dan", "--by", "eve", "--reason", "a robot", "--format", "json")
    assert json.loads(said.out)["set_aside"]
    status = json.loads(probeval("campaign", "status", store, "--format", "json").out)
    assert [(each["assessor"], each["set_aside"]) for each in status["verdicts"]] == [("dan", True)]
    assert status["judged"] == 0
    assert "set aside  dan: a robot" in probeval("campaign", "log", store).out
    said = probeval("campaign", "set-aside", store, "dan", "--undo", "--format", "json")
    assert not json.loads(said.out)["set_aside"]
    assert json.loads(probeval("campaign", "status", store, "--format", "json").out)["judged"] == 1
    assert probeval("campaign", "set-aside", store, "dna").err.startswith("Error: 'dna' has answered nothing.")
