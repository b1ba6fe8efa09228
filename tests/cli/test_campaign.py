"""``probeval campaign`` as people type it: create, next, record, undo, adjudicate, export, import."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from probeval.campaign import Campaign
from probeval.data import Collection, read_judgments, write_campaign
from tests.cli.conftest import Said

Run = Callable[..., Said]


@pytest.fixture
def runs(small: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_campaign(small, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "runs"


@pytest.fixture
def store(probeval: Run, runs: Path) -> str:
    made = probeval(
        "campaign", "create", "mine.db", runs, "--metric", "nDCG@5", "--scale", "graded:2", "--model", "uniform",
        "--overlap", 0.5, "--policy", "depth",
    )  # fmt: skip
    assert made.code == 0, made.err
    return "mine.db"


def _next(probeval: Run, store: str, who: str, n: int = 1) -> list[dict[str, str]]:
    said = probeval("campaign", "next", store, "--assessor", who, "-n", n, "--format", "json")
    assert said.code == 0, said.err
    return json.loads(said.out)["next"]


@pytest.mark.slow
def test_the_whole_way(probeval: Run, store: str, tmp_path: Path):
    for who, more in (("ann", 0), ("bob", 1)):
        for task in _next(probeval, store, who, 6):
            grade = min(2, more + len(task["doc"]) % 2)
            said = probeval("campaign", "record", store, task["query"], task["doc"], grade, "--assessor", who)
            assert said.code == 0, said.err
    listed = json.loads(probeval("campaign", "adjudicate", store, "--format", "json").out)["disagreements"]
    assert listed
    query, (doc,) = listed[0]["query"], listed[0]["documents"]
    settled = probeval(
        "campaign", "adjudicate", store, query, doc, 1, "--by", "eve", "--reason", "it is", "--format", "csv"
    )
    assert settled.out.splitlines()[1].endswith(f"adjudicated,{query},{doc},eve,1")
    status = probeval("campaign", "status", store, "--refresh")
    assert "Krippendorff's alpha" in status.err
    assert f"{len(listed) - 1} disagreements to settle, 1 settled." in status.err
    assert "Confidence" in status.err
    document = json.loads(probeval("campaign", "status", store, "--format", "json").out)
    assert document["adjudicated"] == 1
    assert {row["assessor"]: row["judgments"] for row in document["assessors"]} == {"ann": 6, "bob": 6}
    out = probeval("campaign", "export", store, "-o", "qrels.txt")
    assert out.err.endswith("lines in qrels.txt. Read them elsewhere with --scale graded:2.\n")
    assert f"{query} adjudicated {doc} 1\n" in Path("qrels.txt").read_text()
    assert len(read_judgments("qrels.txt")) == document["judged"] + document["undecided"]
    rows = [json.loads(line) for line in probeval("campaign", "export", store, "--format", "jsonl").out.splitlines()]
    assert {row["assessor"] for row in rows} == {"ann", "bob", "eve"}


def test_record_undo_skip_flag_and_comment(probeval: Run, store: str):
    (task,) = _next(probeval, store, "ann")
    pair = task["query"], task["doc"]
    said = probeval("campaign", "record", store, *pair, 2, "--assessor", "ann", "--token", "t1", "--format", "json")
    again = probeval("campaign", "record", store, *pair, 2, "--assessor", "ann", "--token", "t1", "--format", "json")
    assert json.loads(said.out) == json.loads(again.out)
    assert json.loads(said.out)["answer"] == "2"
    assert probeval("campaign", "record", store, "--assessor", "ann", "--withdraw", 0).code == 0
    assert _next(probeval, store, "ann")[0]["doc"] == task["doc"]
    both = probeval(
        "campaign", "record", store, *pair, "--assessor", "ann", "--skip", "--flag", "no text", "--comment", "?"
    )
    assert [line.split()[1] for line in both.out.splitlines()[1:]] == ["commented", "flagged", "skipped"]
    assert (
        _next(probeval, store, "ann")[0]["doc"] != task["doc"] or _next(probeval, store, "ann")[0]["query"] != pair[0]
    )


def test_guidelines_have_versions(probeval: Run, store: str):
    Path("how.txt").write_text("Be fair.\n")
    none = probeval("campaign", "guideline", store)
    assert (none.out, none.err) == ("", "No guideline yet. Add one with probeval campaign guideline mine.db FILE\n")
    assert json.loads(probeval("campaign", "guideline", store, "--format", "json").out) == {"version": 0, "text": ""}
    assert probeval("campaign", "guideline", store, "how.txt").out == "Version 1\nBe fair.\n"
    assert json.loads(probeval("campaign", "guideline", store, "--format", "json").out)["version"] == 1


def test_texts_of_queries_come_with_the_campaign_or_later(probeval: Run, store: str, runs: Path):
    Path("queries.tsv").write_text("q1\twhat is it\nq2\twhere is it\n")
    none = probeval("campaign", "queries", store, "--format", "csv")
    assert none.out.splitlines()[:2] == ["query,text", "q1,"]
    assert none.err == (
        "No query texts: assessors will see ids only. Add them with probeval campaign queries mine.db FILE\n"
    )
    given = probeval("campaign", "queries", store, "queries.tsv", "--by", "eve", "--format", "csv")
    assert given.out.splitlines()[:3] == ["query,text", "q1,what is it", "q2,where is it"]
    assert given.err == "2 of 5 queries have a text.\n"
    texts = {task["query"]: task["text"] for task in _next(probeval, store, "ann", 40)}
    assert (texts["q1"], texts["q3"]) == ("what is it", "")
    log = probeval("campaign", "export", store, "--format", "log").out
    assert '"by": "eve", "kind": "queries", "texts": {"q1": "what is it", "q2": "where is it"}}' in log
    made = probeval(
        "campaign", "create", "other.db", runs, "--metric", "P@5", "--model", "uniform", "--queries", "queries.tsv"
    )
    assert "No query texts" not in made.err
    assert probeval("campaign", "queries", "other.db", "--format", "csv").out == given.out


def test_a_campaign_is_created_with_teams_topics_and_links(probeval: Run, runs: Path):
    Path("topics.xml").write_text("<top><num>q1<title>birds<desc>that sing<narr>Not in zoos.</top>")
    teams = [f"{run.name.removesuffix('.gz')}\t{'ab'[i % 2]}" for i, run in enumerate(sorted(runs.iterdir()))]
    Path("teams.tsv").write_text("\n".join(["system\tteam", *teams]))
    Path("people.txt").write_text("ann\nbob\n")
    arguments = ("--metric", "P@5", "--model", "uniform", "--teams", "teams.tsv", "--queries", "topics.xml")
    invite = ("--invite", "people.txt", "--base-url", "https://judge.example.org")
    made = probeval("campaign", "create", "team.db", runs, *arguments, *invite)
    assert made.code == 0, made.err
    assert "2 links in links.csv: give each to that person alone." in made.err
    assert Path("links.csv").stat().st_mode & 0o077 == 0
    with Path("links.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert [(row["assessor"], row["role"]) for row in rows] == [("ann", "assessor"), ("bob", "assessor")]
    with Campaign.open("team.db") as campaign:
        tokens = [row["link"].removeprefix("https://judge.example.org/join/") for row in rows]
        assert all(map(campaign.people.may_sign_in, tokens))
        assert campaign.queries["q1"] == "birds"
        assert campaign.state.query_guideline("q1") == "that sing\n\nNot in zoos."
        assert {*campaign.collection.runs.teams} == {"a", "b"}
    again = probeval("campaign", "create", "other.db", runs, *arguments, *invite)
    assert "links.csv: exists already, and links are kept nowhere else. Give another file (--links)." in again.err
    Path("people.csv").write_text("assessor,role\nann,boss\n")
    wrong = probeval("campaign", "create", "other.db", runs, *arguments, "--invite", "people.csv", "--links", "new.csv")
    assert "The role must be one of assessor, adjudicator, owner, got 'boss'" in wrong.err
    assert not Path("other.db").exists()
    Path("more.tsv").write_text("query\ttext\tnarrative\nq2\tbees\tOf all kinds.\n")
    assert probeval("campaign", "queries", "team.db", "more.tsv").err == "2 of 5 queries have a text.\n"
    assert "Of all kinds." in probeval("campaign", "guideline", "team.db", "--query", "q2").out


def test_creating_says_what_is_missing_and_what_comes_next(probeval: Run, runs: Path):
    made = probeval(
        "campaign", "create", "my own.db", runs, "--metric", "P@5", "--model", "uniform", "--stop", "best=.9"
    )
    stated = probeval("campaign", "statement", "my own.db", "--format", "json", "--appeal", "Write to <us>.")
    found = json.loads(stated.out)
    registered = f"The rule best=.9 is registered as event 1, with the hash {found['registered']['hash']}"
    assert made.err.splitlines()[-3] == registered
    assert stated.err.endswith(f"The page is statement.html. Publish it with the hash {found['head']}\n")
    page = Path("statement.html").read_text()
    assert all(text in page for text in (found["registered"]["hash"], found["head"], "Write to &lt;us&gt;."))
    assert made.err.splitlines()[-2:] == [
        "No query texts: assessors will see ids only. Add them with probeval campaign queries 'my own.db' FILE",
        "Next: probeval judge 'my own.db' --docs FILE (on a page), "
        "or probeval campaign next 'my own.db' --assessor YOU",
    ]


@pytest.mark.slow
def test_status_evaluate_and_report_state_the_same_confidence(probeval: Run, runs: Path):
    model = "text-hierarchical"
    said = probeval(
        "campaign", "create", "mine.db", runs, "--metric", "nDCG@5", "--scale", "graded:2", "--model", model
    )
    assert said.code == 0, said.err
    lines = Path("data/qrels.txt").read_text().splitlines()
    Path("some.txt").write_text("\n".join(lines[::4]) + "\n")
    assert probeval("campaign", "import", "mine.db", "some.txt", "--assessor", "trec").code == 0
    status = json.loads(probeval("campaign", "status", "mine.db", "--refresh", "--format", "json").out)
    evaluated = probeval(
        "evaluate", runs, "--qrels", "some.txt", "--metric", "nDCG@5", "--scale", "graded:2", "--model", model,
        "--format", "json",
    )  # fmt: skip
    assert json.loads(evaluated.out)["confidence"] == status["snapshot"]["confidence"]
    reported = probeval("report", "mine.db", "-o", "report.html", "--format", "csv")
    assert reported.code == 0, reported.err
    assert f"confidence,{status['snapshot']['confidence']:.3f}," in reported.out


def test_imports_say_what_came_in(probeval: Run, store: str, small: Collection):
    said = probeval("campaign", "import", store, "data/qrels.txt", "--assessor", "trec", "--format", "json")
    assert json.loads(said.out) == {
        "judgments": len(small.judgments),
        "answers": 0,
        "assessors": "trec",
        "labelled": 0,
        "machines": "",
    }
    again = probeval("campaign", "import", store, "data/qrels.txt", "--assessor", "trec")
    assert (again.code, again.err) == (1, "Error: data/qrels.txt: already imported, as event 2.\n")
    Path("labels.csv").write_text("query,doc,llm\nq1,d1,1\nq99,d1,1\n")
    labelled = probeval("campaign", "import", store, "labels.csv", "--as", "labels", "--format", "json")
    assert labelled.err == "Left out: labels of 1 pairs of other queries.\n"
    assert json.loads(labelled.out)["machines"] == "llm"


def test_next_of_a_finished_campaign(probeval: Run, store: str):
    probeval("campaign", "import", store, "data/qrels.txt", "--assessor", "trec")
    said = probeval("campaign", "next", store, "--assessor", "ann", "-n", 200)
    waiting = len(said.out.splitlines()) - 1  # the pairs that want another opinion
    assert "The target is met" in said.err
    assert 0 < waiting < 200


def test_the_same_seed_gives_the_same_overlap_and_tables(probeval: Run, runs: Path):
    for name in ("a.db", "b.db"):
        made = probeval(
            "campaign", "create", name, runs, "--metric", "P@5", "--model", "uniform", "--overlap", 0.3, "--seed", 5,
            "--quiet",
        )  # fmt: skip
        assert made.err == ""
    a, b = (json.loads(probeval("campaign", "status", name, "--format", "json").out) for name in ("a.db", "b.db"))
    assert a["overlap"] == b["overlap"] > 0
    assert [t["doc"] for t in _next(probeval, "a.db", "x", 5)] == [t["doc"] for t in _next(probeval, "b.db", "x", 5)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("status", "none.db"), "none.db: no such store. Create one first: probeval campaign create."),
        (
            ("status", "data/qrels.txt"),
            "data/qrels.txt: not a store of campaigns. Create one first.",
        ),
        (("record", "mine.db", "q1", "--assessor", "a"), "Give QUERY, DOC (or two) and ANSWER"),
        (("record", "mine.db", "q1", *"abcdefgh", "--assessor", "a"), "Give QUERY, DOC"),
        (("record", "mine.db", "q1", "d1", "d2", "left", "--assessor", "a", "--flag", "x"), "is about one document"),
        (("record", "mine.db", "q1", "nope", "1", "--assessor", "a"), "Query 'q1': no run retrieves document 'nope'."),
        (
            ("adjudicate", "mine.db", "q1"),
            "Give QUERY, DOC (or two) and ANSWER",
        ),
        (("export", "mine.db", "-o", "no/such/../../mine.db/x"), "cannot be written"),
        (("status", "mine.db", "--name", "other"), "mine.db: no campaign 'other'."),
        (("status", "oracle://x/y"), "A store must be the path of an SQLite file or a postgresql:// URL; got neither."),
    ],
)
def test_errors_are_one_line(probeval: Run, store: str, arguments: tuple[str, ...], says: str):
    said = probeval("campaign", *arguments)
    assert said.code == 1
    assert said.err.startswith("Error: ")
    assert says in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_store_of_a_newer_version_is_refused_in_one_line(probeval: Run, store: str):
    with sqlite3.connect(store) as file:
        file.execute("UPDATE probeval_version SET version = 7")
    file.close()
    said = probeval("campaign", "status", store)
    assert said.err == "Error: mine.db: written by a newer probeval (schema 7, this one reads 3). Update it.\n"


def test_creating_twice_is_refused_and_changes_nothing(probeval: Run, store: str, runs: Path):
    before = probeval("campaign", "export", store, "--format", "log").out
    said = probeval("campaign", "create", store, runs, "--metric", "P@5", "--model", "uniform")
    assert said.code == 1
    assert "already has a campaign 'campaign'. Use another name or another store." in said.err
    assert probeval("campaign", "export", store, "--format", "log").out == before


@pytest.mark.slow
def test_without_sqlalchemy_one_line_says_what_to_install():
    code = (
        "import sys; sys.modules['sqlalchemy'] = None; sys.argv = ['probeval', 'campaign', 'status', 'none.db']; "
        "from probeval.cli import main; main()"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert said.stderr == "Error: Campaigns need SQLAlchemy: pip install 'probeval[web]'.\n"


def test_a_campaign_has_a_rope(probeval: Run, runs: Path):
    made = probeval(
        "campaign", "create", "mine.db", runs, "--metric", "DCG@5", "--scale", "graded:2", "--model", "uniform",
        "--rope", "users=.5", "--format", "json",
    )  # fmt: skip
    assert made.code == 0, made.err
    assert "Half of the users notice a difference of 0.4" in made.err
    assert json.loads(made.out)["rope"] == 0.4
    status = json.loads(probeval("campaign", "status", "mine.db", "--refresh", "--format", "json").out)
    assert status["snapshot"]["reached"]
    assert status["snapshot"]["systems"][0]["p_near_best"] == 1.0


def test_topics_are_dealt_assigned_and_listed(probeval: Run, runs: Path, tmp_path: Path):
    create = ("campaign", "create", "own.db", runs, "--metric", "nDCG@5", "--scale", "graded:2", "--model", "uniform")
    assert probeval(*create, "--topics", "owned", "--stay", 2, "--quiet").code == 0
    dealt = probeval("campaign", "topics", "own.db", "--even", "--assessor", "ann", "--assessor", "bob")
    assert dealt.code == 0, dealt.err
    assert "ann owns" in dealt.err
    listed = json.loads(probeval("campaign", "topics", "own.db", "--format", "json").out)
    assert (listed["topics"], listed["stay"]) == ("owned", 2.0)
    owners = [topic["owner"] for topic in listed["queries"]]
    assert abs(owners.count("ann") - owners.count("bob")) <= 1
    (tmp_path / "who.csv").write_text(f"query,assessor\n{listed['queries'][0]['query']},cy\n")
    assert probeval("campaign", "topics", "own.db", "who.csv", "--by", "eve").code == 0
    task = _next(probeval, "own.db", "cy")[0]
    assert (task["query"], task["switched"], task["judged_in_topic"]) == (listed["queries"][0]["query"], True, 0)
    now = json.loads(probeval("campaign", "topics", "own.db", "--format", "json").out)["queries"][0]
    assert (now["owner"], now["judging"], now["judged"]) == ("cy", "cy", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--even",), "Topics are dealt with --even to each --assessor NAME: give both."),
        (("--assessor", "ann"), "give both"),
        (("who.csv", "--even", "--assessor", "ann"), "not both"),
        (("who.csv",), "No query 'q99' in this campaign."),
        (("bad.csv",), "no column for the assessor"),
    ],
)
def test_topics_that_cannot_be_assigned(probeval: Run, store: str, tmp_path: Path, arguments, message: str):
    (tmp_path / "who.csv").write_text("query,assessor\nq99,ann\n")
    (tmp_path / "bad.csv").write_text("query,who\nq99,ann\n")
    said = probeval("campaign", "topics", store, *arguments)
    assert said.code != 0
    assert message in said.err
    assert said.err.count("\n") == 1


def test_owners_without_owned_topics_get_a_remark(probeval: Run, store: str):
    said = probeval("campaign", "topics", store, "--even", "--assessor", "ann")
    assert "owners have no effect. Let them: campaign change --topics owned." in said.err
    changed = probeval("campaign", "change", store, "--topics", "owned", "--stay", 2, "--grade-words", "no,partly,yes")
    assert changed.code == 0, changed.err
    status = json.loads(probeval("campaign", "status", store, "--format", "json").out)
    assert (status["topics"], status["stay"], status["grade_words"]) == ("owned", 2.0, ["no", "partly", "yes"])
    assert "topics" in probeval("campaign", "log", store).out


def test_guidelines_of_queries(probeval: Run, store: str):
    Path("birds.txt").write_text("Birds only.\n")
    Path("many.tsv").write_text("query\ttext\nq1\tMore than birds.\nq2\tBees.\nelsewhere\tx\n")
    none = probeval("campaign", "guideline", store, "--query", "q1")
    assert none.err == "No guidelines of single queries.\n"
    one = json.loads(probeval("campaign", "guideline", store, "birds.txt", "--query", "q1", "--format", "json").out)
    assert one == {"guidelines": [{"query": "q1", "version": 1, "text": "Birds only."}]}
    both = probeval("campaign", "guideline", store, "many.tsv", "--per-query", "--format", "csv")
    assert both.out.splitlines() == ["query,version,text", "q1,2,More than birds.", "q2,2,Bees."]
    assert probeval("campaign", "guideline", store, "birds.txt").out == "Version 3\nBirds only.\n"
    for options, why in [
        (("--query", "q9"), "No query 'q9' in this campaign."),
        (("--query", "q1", "--per-query"), "Give --query with a text file, or --per-query with a table; not both."),
        (("none.txt", "--query", "q1"), "none.txt: cannot be read"),
        (("birds.txt", "--per-query"), "birds.txt: "),
    ]:
        said = probeval("campaign", "guideline", store, *options)
        assert said.code == 1
        assert why in said.err


def test_words_for_grades_as_text_or_as_a_file(probeval: Run, runs: Path):
    Path("words.txt").write_text("no\nrelated, in a way\n\nyes\n")
    create = ("campaign", "create", "words.db", runs, "--metric", "P@5", "--scale", "graded:2", "--model", "uniform")
    for name, given, words in [
        ("a", "no, related,yes ", ["no", "related", "yes"]),
        ("b", "words.txt", ["no", "related, in a way", "yes"]),
    ]:
        made = probeval(*create, "--name", name, "--grade-words", given, "--format", "json")
        assert json.loads(made.out)["grade_words"] == words
    wrong = probeval(*create, "--name", "c", "--grade-words", "no,yes")
    assert (wrong.code, wrong.out) == (1, "")
    assert "The scale graded:2 has 3 grades: give words for 3, got 2." in wrong.err


def test_disagreements_with_their_documents(probeval: Run, store: str):
    (task,) = _next(probeval, store, "ann")
    query, doc = task["query"], task["doc"]
    for who, grade in (("ann", 0), ("bob", 2)):
        probeval("campaign", "record", store, query, doc, grade, "--assessor", who, "--comment", f"{who} is sure")
    Path("docs.tsv").write_text(f"doc\ttext\n{doc}\tA text \x1b[2J\u202e of birds.\n")
    Path("queries.tsv").write_text(f"query\ttext\n{query}\tbirds\n")
    probeval("campaign", "queries", store, "queries.tsv")
    probeval("campaign", "guideline", store, "queries.tsv", "--per-query")
    listed = probeval("campaign", "adjudicate", store, "--docs", "docs.tsv")
    assert listed.out.splitlines() == [
        f"Query {query}: birds",
        "Guideline: birds",
        f"Document {doc}:",
        r"  A text \x1b[2J\u202e of birds.",  # nothing that a terminal obeys
        "Answers: ann 0, bob 2.",
        "Comments: ann: ann is sure; bob: bob is sure",
        "",
    ]
    (row,) = json.loads(probeval("campaign", "adjudicate", store, "--docs", "docs.tsv", "--format", "json").out)[
        "disagreements"
    ]
    assert (row["query_text"], row["guideline"], row["texts"]) == ("birds", "birds", ["A text \x1b[2J\u202e of birds."])


def test_a_skip_says_why(probeval: Run, store: str):
    (task,) = _next(probeval, store, "ann")
    probeval(
        "campaign", "record", store, task["query"], task["doc"], "--assessor", "ann", "--skip", "--reason", "no text"
    )
    log = [json.loads(line) for line in probeval("campaign", "export", store, "--format", "log").out.splitlines()]
    assert [event["reason"] for event in log if event["kind"] == "skipped"] == ["no text"]
