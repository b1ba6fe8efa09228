"""Systems, queries, documents and assessors with hostile names, through every door of the package."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from markdown_it import MarkdownIt

import probeval
from probeval.campaign import Campaign, copy_store
from probeval.campaign.questions import graded
from probeval.cli import main
from probeval.data import Collection, Judgments, Runs, Scale, read_campaign, read_judgments, read_runs, write_campaign
from probeval.data.spreadsheets import csv_text, restored_cell
from probeval.errors import CampaignError, DataError
from probeval.plots import plot_pairs, plot_ranking, save
from tests.web.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPT = "<script>window.stolen=1</script>"
NAMES = (
    "$\\foo$",
    "$x^2$",
    "=1+1",
    "@SUM(1)",
    "'=kept",
    SCRIPT,
    "\"'><img/src=x/onerror=window.stolen=1>",
    "\u202eelif\u2066",
    "{{7*7}}|`",
)
BROKEN = "two\nlines"  # only Python can give this name: no file format of runs has room for it
FORMULA = re.compile(r"[=+\-@\t\r\n]")


def _collection(names: tuple[str, ...]) -> Collection:
    """Every name is a system, a query and a document; half of the pairs are judged by people with these names."""
    rng = np.random.default_rng(0)
    docs = [*names, *(f"d{i}" for i in range(4))]
    rows = [(s, q, docs[d]) for s in names for q in names for d in rng.permutation(len(docs))[:6]]
    runs = Runs.rows(*zip(*rows, strict=True))  # type: ignore[arg-type]
    pairs = [runs.pool.label(i) for i in range(0, len(runs.pool), 2)]
    people = [names[i % len(names)].replace("\n", " ") for i in range(len(pairs))]
    grades = [float(i % 3) for i in range(len(pairs))]
    return Collection("hostile", runs, Judgments.rows(*zip(*pairs, strict=True), grades, assessors=people))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def carried() -> Collection:
    """The names that files can carry."""
    return _collection(NAMES)


@pytest.fixture(scope="module")
def evaluation() -> probeval.Evaluation:
    """With a name of two lines too."""
    given = _collection((*NAMES, BROKEN))
    return probeval.evaluate(given.runs, "nDCG@5", qrels=given.judgments, scale="graded:2", model="uniform")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    """A campaign with disagreements, comments and flags, all by hostile names."""
    given = _collection(NAMES)
    bare = Collection(given.name, given.runs)
    store = tmp_path_factory.mktemp("hostile") / "store.db"
    with Campaign.create(
        store, bare, metric="nDCG@5", scale=Scale.graded(2), model="uniform", queries={q: q for q in bare.runs.queries}
    ) as made:
        for i in range(0, len(made.pool), 3):
            for by, grade in ((NAMES[i % len(NAMES)], 2), (NAMES[(i + 1) % len(NAMES)], 0)):
                made.answer(by, made.pool.label(i), grade=grade)
            made.comment(NAMES[i % len(NAMES)], *made.pool.label(i), BROKEN + SCRIPT)
            made.flag(NAMES[i % len(NAMES)], *made.pool.label(i), reason=SCRIPT)
        made.refresh()
        yield made


def _check_csv(text: str) -> list[list[str]]:
    """No cell of the text is computed by a spreadsheet; its cells as they were."""
    rows = list(csv.reader(io.StringIO(text)))
    for cell in (cell for row in rows for cell in row):
        assert not FORMULA.match(cell) or re.fullmatch(r"[-+]?[\d.e+-]+", cell), cell
    return [[restored_cell(cell) for cell in row] for row in rows]


def _check_browser(browser: Browser, *addresses: str) -> str:
    """No script of a name runs on these pages; all their text."""
    texts = []
    page = browser.new_page()
    for address in addresses:
        page.goto(address)
        assert page.evaluate("window.stolen") is None
        assert page.locator("img[src=x]").count() == 0
        texts.append(page.evaluate("document.body.textContent"))
    page.close()
    return "".join(texts)


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_pictures(evaluation: probeval.Evaluation, tmp_path: Path, kind: str):
    for i, ax in enumerate((plot_ranking(evaluation.ranking), plot_pairs(evaluation.ranking))):
        path = tmp_path / f"{i}.{kind}"
        save(ax, path)
        assert path.stat().st_size > 1000
        assert "<script" not in path.read_bytes().decode("latin-1")
        shown = {label.get_text() for label in ax.get_yticklabels()}
        assert {"\\$\\foo\\$", "=1+1", "two\N{REPLACEMENT CHARACTER}lines"} <= shown


def test_results_in_python(evaluation: probeval.Evaluation):
    systems = {*NAMES, BROKEN}
    assert {row["system"] for row in json.loads(json.dumps(evaluation.to_dict()))["systems"]} == systems
    assert SCRIPT not in evaluation._repr_html_()
    assert all(name.encode("unicode_escape").decode() in evaluation.summary() for name in ("\u202eelif\u2066", BROKEN))
    assert all(name in evaluation.summary() for name in NAMES if name.isascii())
    table = _check_csv(csv_text(evaluation.to_frame()))
    assert {row[table[0].index("system")] for row in table[1:]} == systems


def test_commands_read_and_write_tables(carried: Collection, tmp_path: Path, monkeypatch, capsys):
    runs, qrels, picture = tmp_path / "runs.csv", tmp_path / "qrels.csv", tmp_path / "ranking.png"
    runs.write_text(csv_text(carried.runs.to_frame().drop(columns="score")))
    assert carried.judgments is not None
    qrels.write_text(csv_text(carried.judgments.to_frame()))
    assert set(read_runs(runs).systems) == set(NAMES)
    again = read_judgments(qrels)
    assert set(again.assessors) == set(NAMES)
    assert again.pool == carried.judgments.pool
    words = ["evaluate", runs, "--qrels", qrels, "--metric", "nDCG@5", "--model", "uniform", "--scale", "graded:2"]
    monkeypatch.setattr(
        sys, "argv", ["probeval", *map(str, words), "--format", "csv", "--plot", str(picture), "--quiet"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    table = _check_csv(capsys.readouterr().out)
    assert {row[table[0].index("system")] for row in table[1:]} == set(NAMES)
    assert picture.stat().st_size > 1000


def test_a_campaign_folder(carried: Collection, tmp_path: Path):
    """The name of a system is that of a file there, so a slash is refused; the other names come back."""
    with pytest.raises(DataError, match="cannot be the name of a run file"):
        write_campaign(carried, tmp_path / "all")
    some = Collection("some", carried.runs.select([name for name in NAMES if "/" not in name]), carried.judgments)
    write_campaign(some, tmp_path / "some")
    again = read_campaign(tmp_path / "some")
    assert sorted(again.runs.systems) == sorted(some.runs.systems)
    assert again.runs.pool == some.runs.pool


MARKUP = (
    "[x](javascript:alert(1))",
    "![x](https://judge.test/x.png)",
    "<details><script>window.stolen=1</script>",
    "`code` $x$ **bold** _em_ ~~s~~",
    "# head",
    "1. - + item",
    "two\nlines\n# head\n\n- item\n    code",
    "a|b|c",
    "![0.1, 2](https://judge.test/x)",
    "\\`<b>\\$",
    "@everyone",
    "https://judge.test/x",
    "\x00\x01\x1b[2K\ufffe",
    "]]>&lt;</testsuites>",
)


@pytest.mark.parametrize("name", MARKUP)
def test_a_gate(name: str):
    """Names of systems and segments in the summary, which a robot posts, and in JUnit XML, which it reads."""
    base, rng = f"{name} base", np.random.default_rng(0)
    queries, docs = [f"q{i}" for i in range(6)], [f"d{i}" for i in range(5)]
    pairs = [(query, doc) for query in queries for doc in docs]
    rows = [(s, q, docs[d]) for s in (name, base) for q in queries for d in rng.permutation(5)]
    runs = Runs.rows(*zip(*rows, strict=True))
    judged = Judgments.rows(*zip(*pairs, strict=True), rng.integers(0, 3, len(pairs)).astype(float))
    segments = {query: name if i % 2 else "rest" for i, query in enumerate(queries)}
    found = probeval.gate(
        runs.select([name]), runs.select([base]), "nDCG@5", qrels=judged, model="uniform", segments=segments
    )
    suite = ET.fromstring(found.junit())
    assert {each.tag for each in suite.iter()} <= {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "skipped",
        "system-out",
    }
    assert len(suite.findall(".//testcase")) == 3
    plain = probeval.gate(
        _named(runs, name, "new").select(["new"]), runs.select([base]), "nDCG@5", qrels=judged, model="uniform",
        segments={query: "some" if i % 2 else "rest" for i, query in enumerate(queries)},
    )  # fmt: skip
    page = MarkdownIt("gfm-like", {"linkify": False})
    assert _tags(page.render(found.markdown())) == _tags(page.render(plain.markdown()))
    for sign in ("@everyone", "https://"):  # it would be notified, or become a link
        assert sign not in found.markdown()


def _named(runs: Runs, old: str, new: str) -> Runs:
    return Runs(tuple(new if s == old else s for s in runs.systems), runs.pool, runs.pairs, runs.scores)


def _tags(page: str) -> list[str]:
    return re.findall(r"</?[a-z]\w*", page)


@pytest.mark.slow
def test_reports(evaluation: probeval.Evaluation, campaign: Campaign, tmp_path: Path, browser: Browser):
    paths = [tmp_path / "evaluation.html", tmp_path / "campaign.html"]
    for source, path in zip((evaluation, campaign), paths, strict=True):
        probeval.report(source, path)
    text = _check_browser(browser, *(path.as_uri() for path in paths))
    assert all(name in text for name in (*NAMES, BROKEN))


def _exported(text: str, path: Path) -> dict[tuple[str, str, str], float]:
    path.write_text(text)
    table = read_judgments(path).to_frame()
    return {(row.query, row.doc, row.assessor): row.grade for row in table.itertuples()}


def test_exports_and_backups(campaign: Campaign, tmp_path: Path):
    given = {
        (*pair, by): judgment.grade
        for pair in campaign.state.judged
        for by, judgment in campaign.state.latest(graded(*pair)).items()
    }
    rows = _check_csv(campaign.export("csv"))
    assert {(row[0], row[1], row[3]): float(row[2]) for row in rows[1:]} == given
    lines = [json.loads(line) for line in campaign.export("jsonl").splitlines()]
    assert {(row["query"], row["doc"], row["assessor"]): row["grade"] for row in lines} == given
    assert len(campaign.export("log").splitlines()) == len(campaign.log())
    copy_store(campaign.address[0], tmp_path / "copy.db")
    with Campaign.open(tmp_path / "copy.db", read_only=True) as again:
        assert again.log() == campaign.log()


def test_exports_come_back(carried: Collection, tmp_path: Path):
    """Without the name of two lines, every format of judgments is read again."""
    bare = Collection("carried", carried.runs)
    with Campaign.create(tmp_path / "store.db", bare, metric="nDCG@5", scale=Scale.graded(2), model="uniform") as made:
        for i in range(20):
            made.answer(NAMES[i % len(NAMES)], made.pool.label(i), grade=i % 3)
        given = {(*pair, j.by): j.grade for pair, (j,) in made.state.judged.items()}
        for kind in ("csv", "jsonl"):
            assert _exported(made.export(kind), tmp_path / f"judgments.{kind}") == given
        pairs = {pair[:2]: grade for pair, grade in given.items()}
        assert {p[:2]: g for p, g in _exported(made.export("qrels"), tmp_path / "qrels.txt").items()} == pairs


def test_names_that_a_format_cannot_carry_are_refused(tmp_path: Path):
    settings = {"metric": "nDCG@5", "scale": Scale.graded(2), "model": "uniform"}
    with pytest.raises(CampaignError, match="must not contain white space"):
        Campaign.create(tmp_path / "a.db", Collection("a", Runs.rows(["s"], [BROKEN], ["d"])), **settings)
    with Campaign.create(tmp_path / "b.db", Collection("b", Runs.rows(["s"], ["#q"], ["d"])), **settings) as made:
        made.answer("ann", ("#q", "d"), grade=1)
        with pytest.raises(DataError, match="a TREC file cannot hold '#q'"):  # it would be a comment there
            made.export("qrels")
        with pytest.raises(CampaignError, match="must be one line of text"):
            made.answer(BROKEN, ("#q", "d"), grade=1)


@pytest.mark.slow
def test_pages(campaign: Campaign, browser: Browser):
    server = Served.start(campaign.address[0], "--assessor", NAMES[0])
    try:
        text = _check_browser(browser, *(server.url + path for path in ("/", "/adjudicate", "/overview")))
        assert all(name in text for name in NAMES)
        page = browser.new_page()
        page.goto(server.url)  # names go out in a form and come back
        for _ in range(6):
            form = page.locator("#answer")
            pair = form.locator("[name=query]").input_value(), form.locator("[name=doc]").input_value()
            page.keyboard.press("1")
            page.wait_for_function("n => Number(document.getElementById('page').dataset.turn || 0) > n", arg=_)
            assert campaign.state.latest(graded(*pair))[NAMES[0]].grade == 1
            assert page.evaluate("window.stolen") is None
        page.close()
    finally:
        server.kill()
