"""What names, comments and files hold cannot move the cursor of a terminal, nor forge a row."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import probeval.campaign.parsing
from probeval.campaign import Campaign
from probeval.characters import HIDDEN
from probeval.cli.output import echo, write_data, write_json
from probeval.data import Collection, Runs, Scale
from probeval.errors import CampaignError, DataError, ProbevalError, ProbevalWarning

CLI = Path(probeval.cli.output.__file__).parent
FORGED = "fine\x1b[1A\x1b[2K\rq9  d9  ann 2, bob 0\nq8 d8\x9b2K \u202eold"
SETTINGS = {"metric": "P@2", "scale": Scale.graded(2), "model": "uniform"}


def hidden(text: str) -> list[str]:
    """Characters that a terminal does not show, line breaks aside."""
    return HIDDEN.findall(text.replace("\n", ""))


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store of an earlier version, which took any comment."""
    store = tmp_path / "old.db"
    runs = Runs.rows(["a", "a", "b", "b"], ["q1"] * 4, ["d1", "d2", "d2", "d1"])
    with monkeypatch.context() as patched, Campaign.create(store, Collection("old", runs), **SETTINGS) as made:
        patched.setattr(probeval.campaign.parsing, "CONTROL", re.compile("(?!)"))
        for by, grade in (("ann", 2), ("bob", 0)):
            made.answer(by, ("q1", "d1"), grade=grade)
        made.comment("ann", "q1", "d1", FORGED)
        made.flag("ann", "q1", "d1", reason=FORGED)
    return str(store)


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "json"])
@pytest.mark.parametrize("verb", ["adjudicate", "log", "status"])
def test_an_old_comment_reaches_no_terminal(probeval, old, verb, form):
    told = probeval("campaign", verb, old, "--format", form, *(["--all"] if verb == "log" else []))
    assert told.code == 0, told.err
    assert not hidden(told.out + told.err)
    if verb == "adjudicate" and form == "table":
        assert len(told.out.splitlines()) == 3  # a title, names of the columns, and one row
        assert r"fine\x1b[1A\x1b[2K\rq9" in told.out
    if verb == "adjudicate" and form == "json":
        assert json.loads(told.out)["disagreements"][0]["comments"].endswith(FORGED)  # nothing is lost


def test_with_the_documents(probeval, old, put):
    docs = put("docs.jsonl", json.dumps({"doc": "d1", "text": "one\x1b[2K\ntwo \ud83d"}) + "\n")
    told = probeval("campaign", "adjudicate", old, "--docs", docs)
    assert not hidden(told.out)
    assert "  one\\x1b[2K\n  two \N{REPLACEMENT CHARACTER}\n" in told.out


@pytest.mark.parametrize("text", ["a\x1b[2K", "a\rb", "a\x08", "a\x9bb", "a\x00", "a\u2028b", "cut \ud83d"])
def test_what_people_write_has_no_control_characters(tmp_path, text):
    runs = Runs.rows(["a", "b"], ["q1", "q1"], ["d1", "d2"])
    with Campaign.create(tmp_path / "new.db", Collection("new", runs), **SETTINGS) as made:
        for refused in (
            lambda: made.comment("ann", "q1", "d1", text),
            lambda: made.flag("ann", "q1", "d1", reason=text),
            lambda: made.change_guideline("ann", text),
            lambda: made.answer(text, ("q1", "d1"), grade=1),
        ):
            with pytest.raises(CampaignError, match=r"control characters|one line of text"):
                refused()
        made.comment("ann", "q1", "d1", "two\r\nlines\tand a tab")
        assert made.state.comments["q1", "d1"][0].text == "two\nlines\tand a tab"
    if "\ud83d" not in text:
        for runs in (Runs.rows(["a"], [text], ["d"]), Runs.rows(["a"], ["q"], [text]), Runs.rows([text], ["q"], ["d"])):
            with pytest.raises(CampaignError, match=r"control characters|one line of text"):
                Campaign.create(tmp_path / "odd.db", Collection("odd", runs), **SETTINGS)


def test_errors_and_warnings_are_one_line():
    for made in (ProbevalError(FORGED), DataError(FORGED, path=FORGED, line=2), ProbevalWarning(FORGED)):
        assert not HIDDEN.search(str(made))
    assert len(str(ProbevalError("x" * 10**6))) < 3000


def test_data_stays_as_it_is_where_no_terminal_shows_it(capsys, monkeypatch):
    write_data(FORGED)
    assert capsys.readouterr().out == FORGED
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_data(FORGED)
    echo(FORGED)
    assert not hidden(capsys.readouterr().out)
    write_json({"name": FORGED})
    told = capsys.readouterr().out
    assert not hidden(told)
    assert json.loads(told) == {"name": FORGED}


def test_the_command_line_prints_in_one_place():
    wild = [path.name for path in CLI.glob("*.py") if re.search(r"typer\.echo|\bprint\(|secho", path.read_text())]
    assert wild == ["output.py"]
