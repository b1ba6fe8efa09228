from __future__ import annotations

import json
from dataclasses import replace

import pytest

from probeval.cli.output import Messages
from probeval.data import write_campaign


@pytest.fixture
def here(small, tmp_path, monkeypatch):
    """A campaign folder to stand in."""
    write_campaign(small, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_runs_with_judgments(probeval, here):
    said = probeval("report", "runs", "--qrels", "qrels.txt", "--metric", "P@5", "--draws", 100, "--format", "json")
    assert said.code == 0, said.err
    document = json.loads(said.out)
    assert document["kind"] == "evaluation"
    assert "±" in document["paragraph"]
    html = (here / "probeval-report.html").read_text(encoding="utf-8")
    assert document["title"] in html
    assert "probeval report runs --qrels qrels.txt" in html
    assert "probeval-report.html" in said.err


@pytest.mark.slow
def test_same_seed_same_bytes(probeval, here):
    arguments = ("report", "runs", "--metric", "P@5", "--scale", "graded:2", "--draws", 50, "-o", "r.html")
    pages = []
    for seed in (1, 1, 2):
        assert probeval(*arguments, "--seed", seed).code == 0
        pages.append((here / "r.html").read_bytes())
    assert pages[0] == pages[1] != pages[2]


def test_title_and_quiet(probeval, here):
    said = probeval(
        "report", "runs", "--metric", "P@5", "--model", "uniform", "--title", "R&D", "--quiet", "--draws", 50,
        "-o", "out/r.html", "--format", "csv",
    )  # fmt: skip
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("what,value,note\n")
    assert "<title>R&amp;D</title>" in (here / "out" / "r.html").read_text(encoding="utf-8")


def test_a_simulation_run_here_and_one_from_json(probeval, here):
    shared = ("runs", "--qrels", "qrels.txt", "--metric", "P@5", "--policy", "mtc:uniform", "--batch", 20)
    assert probeval("report", *shared, "-o", "a.html").code == 0
    said = probeval("simulate", *shared, "--format", "json")
    (here / "s.json").write_text(said.out, encoding="utf-8")
    again = probeval("report", "s.json", "-o", "b.html", "--format", "json")
    assert json.loads(again.out)["kind"] == "simulation"
    assert "mtc:uniform" in (here / "a.html").read_text(encoding="utf-8")
    assert "mtc:uniform" in (here / "b.html").read_text(encoding="utf-8")


def test_a_campaign(probeval, here, small):
    pytest.importorskip("sqlalchemy")
    from probeval.campaign import Campaign

    blind = replace(small, judgments=None)
    with Campaign.create(here / "mine.db", blind, metric="P@5", model="uniform", name="mine") as opened:
        task = opened.next("ann")[0]
        opened.answer("ann", task.question, grade=1)
    said = probeval("report", "mine.db", "--format", "json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["title"] == "Campaign mine"
    assert probeval("report", "mine.db", "--name", "other").code == 1


def test_a_password_is_not_in_the_report(probeval, here):
    asked = ("report", "runs", "--metric", "P@5", "--model", "uniform", "--draws", 50)
    assert probeval(*asked, "--title", "postgresql://ann:secret@host/db").code == 0
    made = (here / "probeval-report.html").read_text(encoding="utf-8").split("made by")[1]
    assert "postgresql://ann:***@host/db" in made
    assert "secret" not in made


def test_a_bar_goes_over_the_work(probeval, here, monkeypatch):
    tracked = []

    def track(self, work, title):
        tracked.append((title, self.quiet))
        return iter(work)

    monkeypatch.setattr(Messages, "track", track)
    asked = ("report", "runs", "--metric", "P@5", "--model", "uniform", "--draws", 50, "--quiet")
    assert probeval(*asked).code == 0
    assert ("Writing the report; the forecast takes longest", True) in tracked


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["runs"], "Runs need a measure"),
        (["runs", "--metric", "P@5", "--model", "none"], "needs a model"),
        (["runs", "--metric", "P@5", "--policy", "gain"], "give --qrels FILE"),
        (["runs", "--metric", "P@5", "--mapping", "CG@5"], "No published mapping 'CG@5'"),
        (["nothing.json"], "nothing.json"),
        (["runs", "--metric", "P@5", "-o", "qrels.txt/r.html", "--model", "uniform"], "qrels.txt"),
    ],
)
def test_bad_input_is_one_line(probeval, here, arguments, says):
    said = probeval("report", *arguments)
    assert said.code == 1
    (error,) = [line for line in said.err.splitlines() if line.startswith("Error: ")]
    assert says in error


def test_teams_from_a_file(probeval, here, small):
    (here / "systems.tsv").unlink()
    names = small.runs.systems
    (here / "mine.csv").write_text(
        "system,team\n" + "".join(f"{s},{'left' if i < 2 else 'right'}\n" for i, s in enumerate(names))
    )
    ask = ("report", "runs", "--qrels", "qrels.txt", "--metric", "P@5", "--draws", 50, "--quiet", "--format", "json")
    said = probeval(*ask, "--teams", "mine.csv", "--model", "uniform")
    assert said.code == 0, said.err
    assert {"Teams", "Queries"} <= set(json.loads(said.out)["sections"])
    assert "<td>left</td>" in (here / "probeval-report.html").read_text(encoding="utf-8")
    (here / "other.csv").write_text("system,team\nnobody,left\n")
    for teams, what in (("other.csv", "no team of these systems"), ("qrels.txt", "columns 'run' (or 'system')")):
        said = probeval(*ask, "--teams", teams)
        assert said.code == 1
        assert said.err.startswith(f"Error: {teams}: ")
        assert what in said.err
    assert probeval(*ask, "--policy", "random:uniform", "--teams", "mine.csv").code == 0
    assert "--teams is for runs" in probeval("report", "mine.json", "--teams", "mine.csv").err
    assert "--teams is for a model" in probeval("evaluate", *ask[1:6], "--model", "none", "--teams", "mine.csv").err
