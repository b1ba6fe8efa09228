"""``probeval label``: labels by a language model, as people make them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import probeval as package
from probeval.data import write_campaign
from probeval.labelling import Behaviour, LoopbackServer
from tests.cli.conftest import Said

Run = Callable[..., Said]
KEY = "sk-secret-0123456789"
NAME = "my-llm_graded"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small campaign with texts; the grade of a pair is the last word of its document."""
    place = tmp_path_factory.mktemp("label")
    campaign = package.synthetic_campaign(seed=1, systems=4, queries=6, depth=5)
    write_campaign(campaign, place / "mine")
    pool = campaign.runs.pool
    docs = [f"{doc}\tAbout {doc}, {i % 4}\n" for i, doc in enumerate(sorted(set(pool.docs)))]
    (place / "docs.tsv").write_text("".join(docs))
    (place / "queries.tsv").write_text("".join(f"{query}\twords of {query}\n" for query in pool.queries))
    return place


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(grade) as one:
        yield one


def grade(query: str, document: str) -> int:
    return int(document.split()[-1])


@pytest.fixture
def label(probeval: Run, folder: Path, server: LoopbackServer, tmp_path: Path) -> Callable[..., Said]:
    """Run ``probeval label`` on the campaign, with a table and a cache of its own."""

    def run(*options: object, out: str = "labels.csv", url: str = "", cache: str = "answers") -> Said:
        return probeval(
            "label", folder / "mine", "--base-url", url or server.base_url, "--model", "my-llm",
            "--docs", folder / "docs.tsv", "--queries", folder / "queries.tsv", "-o", tmp_path / out,
            "--cache", tmp_path / cache, *options,
        )  # fmt: skip

    return run


def n_pairs(folder: Path) -> int:
    return len(package.read_runs(folder / "mine" / "runs").pool)


def test_labels_of_all_pairs_with_their_probabilities_and_provenance(label, folder, server, tmp_path):
    found = label()
    n = n_pairs(folder)
    assert found.code == 0, found.err
    assert f"{n} of {n} pairs labelled by {NAME}" in found.out
    assert f"The texts of 6 queries and {n} documents go to {server.base_url} (model my-llm)." in found.err
    table = package.read_labels(tmp_path / "labels.csv")
    assert table.sources == (NAME,)
    assert table.probabilities[NAME].shape == (n, 4)
    (observer,) = table.observers
    assert (observer.kind, observer.scale) == ("machine", "probabilities")
    assert table.provenance[NAME].startswith("model my-llm; prompt graded ")
    assert table.provenance[NAME].endswith(time.strftime("; %Y-%m-%d", time.gmtime()))


def test_the_same_cache_gives_the_same_bytes_without_a_request(label, server, tmp_path):
    label("--parallel", 7)
    asked = sum(server.asked.values())
    found = label("--format", "json", out="again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "labels.csv").read_bytes()
    assert sum(server.asked.values()) == asked
    assert json.loads(found.out) | {"requests": 0, "kept": asked, "expected_tokens_in": 0} == json.loads(found.out)


def test_a_dry_run_sends_nothing_and_shows_what_would_be_sent(label, folder, server, tmp_path):
    found = label("--dry-run", "--price-in", 2, "--price-out", 8, "--format", "json")
    data = json.loads(found.out)
    assert not server.asked
    assert not list(tmp_path.iterdir())
    assert (data["ended"], data["left"], data["kept"]) == ("dry run", n_pairs(folder), 0)
    assert data["expected_cost"] == (2 * data["expected_tokens_in"] + 8 * data["expected_tokens_out"]) / 1e6
    assert 'Query: "words of q1"' in data["example"]
    assert data["example"] in found.err
    label()
    # The rule of thumb is near what the server counts: this one counts a token per four letters.
    used = json.loads(label("--dry-run", "--format", "json", cache="new").out)
    assert used["expected_tokens_in"] == pytest.approx(sum(len(q) // 4 for q in server.asked), rel=0.1)


def test_only_asks_for_the_pairs_of_a_table_in_its_order(label, probeval, folder, server, tmp_path):
    chosen = probeval(
        "next", folder / "mine", "--metric", "nDCG@5", "--scale", "graded:2", "--labeller", NAME, "-n", 5,
        "--format", "csv",
    )  # fmt: skip
    (tmp_path / "next.csv").write_text(chosen.out)
    found = label("--only", tmp_path / "next.csv", "--parallel", 1)
    assert found.code == 0, found.err
    wanted = [line.split(",")[1] for line in chosen.out.splitlines()[1:]]
    asked = [next(word for word in question.split() if word.endswith(",")).rstrip(",") for question in server.asked]
    assert [one for one in wanted if one in str(list(server.asked))] == wanted
    assert len(asked) == 5
    # Those that are labelled are not chosen again.
    more = probeval(
        "next", folder / "mine", "--metric", "nDCG@5", "--scale", "graded:2", "--labels", tmp_path / "labels.csv",
        "--labeller", NAME, "-n", 5, "--format", "json",
    )  # fmt: skip
    data = json.loads(more.out)
    assert data["labeller"] == NAME
    assert not {one["doc"] for one in data["next"]} & set(wanted)


def test_missing_asks_for_what_no_one_has_labelled(label, folder, server, tmp_path):
    pool = package.read_runs(folder / "mine" / "runs").pool.to_frame()
    pool.iloc[:10].assign(ann=1).to_csv(tmp_path / "ann.csv", index=False)
    pool.iloc[10:15].to_csv(tmp_path / "some.csv", index=False)
    label("--only", tmp_path / "some.csv")
    assert sum(server.asked.values()) == 5
    label("--missing", "--labels", tmp_path / "ann.csv", cache="new")
    assert sum(server.asked.values()) == len(pool) - 10
    assert len(package.read_labels(tmp_path / "labels.csv").pool) == len(pool) - 10


def test_failures_are_listed_and_asked_again_alone(label, folder, server, tmp_path):
    server.behaviour = Behaviour(nonsense=0.3, seed=3)
    found = label("--format", "csv")
    failures = found.out.splitlines()[1:]
    n = n_pairs(folder)
    assert 2 < len(failures) < n / 2
    assert f"{len(failures)} pairs have no label." in found.err
    assert len(package.read_labels(tmp_path / "labels.csv").pool) == n - len(failures)
    server.behaviour, before = Behaviour(), sum(server.asked.values())
    (tmp_path / "failed.csv").write_text(found.out)
    label("--failed", "--depth", 5)
    assert sum(server.asked.values()) == before + len(failures)
    assert len(package.read_labels(tmp_path / "labels.csv").pool) == n


def test_a_column_of_another_labeller_is_not_mixed_with_these(label, tmp_path, folder):
    label()
    before = (tmp_path / "labels.csv").read_bytes()
    found = label("--temperature", 1)
    assert found.code == 1
    assert f"it has a column '{NAME}', made by model my-llm; prompt graded" in found.err
    assert "Name another with --column" in found.err
    assert (tmp_path / "labels.csv").read_bytes() == before
    assert label("--prompt", "binary").code == 0  # has a column of its own
    assert package.read_labels(tmp_path / "labels.csv").sources == (NAME, "my-llm_binary")
    assert len(package.read_labels(tmp_path / "labels.csv").provenance) == 2


def test_plain_grades_and_probabilities_of_one_labeller_go_together(label, server, tmp_path, folder):
    pool = package.read_runs(folder / "mine" / "runs").pool.to_frame()
    pool.iloc[:10].to_csv(tmp_path / "first.csv", index=False)
    server.behaviour = Behaviour(logprobs=False)
    found = label("--only", tmp_path / "first.csv")
    assert "The server gives no probabilities of tokens, so a label is one grade." in found.err
    plain = package.read_labels(tmp_path / "labels.csv")
    assert not plain.probabilities
    assert plain.observers[0].scale == "graded:3"
    server.behaviour = Behaviour()
    assert label("--missing").code == 0
    both = package.read_labels(tmp_path / "labels.csv")
    assert len(both.pool) == len(pool)
    assert np.isin(both.probabilities[NAME], [0, 1]).all(axis=1).sum() == 10


def test_a_budget_needs_prices_and_ends_with_what_it_reached(label, tmp_path, folder):
    assert label("--budget", 1).err == "Error: --budget needs prices: --price-in and --price-out, per million tokens.\n"
    found = label("--price-in", 1000, "--price-out", 1000, "--budget", 3, "--format", "json", "--parallel", 3)
    data = json.loads(found.out)
    assert (found.code, data["ended"]) == (0, "budget")
    assert 0 < data["cost"] <= 3
    assert data["labelled"] + data["left"] == data["pairs"]
    assert "The budget ended the work" in found.err
    # What the budget reaches are the first ranks of all queries.
    labelled = package.read_labels(tmp_path / "labels.csv").pool
    runs = package.read_runs(folder / "mine" / "runs")
    first = {runs.pool.label(int(pair)) for pair in runs.pairs[:, :, 0].ravel()}
    reached = {labelled.label(i) for i in range(len(labelled))}
    assert reached <= first or first <= reached


def test_the_key_is_read_from_the_environment_and_never_shown(label, server, tmp_path, monkeypatch):
    server.behaviour = Behaviour(key=KEY)
    found = label()
    assert (found.code, "it asks for a key" in found.err) == (1, True)
    monkeypatch.setenv("PROBEVAL_API_KEY", "wrong-key-9876543210")
    found = label()
    assert (found.code, "the key was refused" in found.err) == (1, True)
    assert "9876543210" not in found.err
    monkeypatch.setenv("MY_KEY", KEY)
    found = label("--key-env", "MY_KEY", "--format", "json")
    assert found.code == 0, found.err
    everything = (
        found.out
        + found.err
        + "".join(path.read_bytes().decode("latin-1") for path in tmp_path.iterdir() if path.is_file())
    )
    assert KEY not in everything
    assert label("--key-env", "NOT_SET").err.startswith("Error: the environment has no variable NOT_SET")


def test_the_campaign_of_a_store_gives_pairs_texts_and_guideline(label, probeval, folder, server, tmp_path):
    pytest.importorskip("sqlalchemy")
    store = tmp_path / "mine.db"
    (tmp_path / "guideline.txt").write_text("Pages for children count less.\n")
    made = probeval(
        "campaign", "create", store, folder / "mine", "--metric", "nDCG@5", "--scale", "graded:2", "--queries",
        folder / "queries.tsv", "--guideline", tmp_path / "guideline.txt", "--model", "uniform", "-q",
    )  # fmt: skip
    assert made.code == 0, made.err
    found = probeval(
        "label", store, "--base-url", server.base_url, "--model", "my-llm", "--docs", folder / "docs.tsv",
        "-o", tmp_path / "labels.csv", "--cache", tmp_path / "answers",
    )  # fmt: skip
    assert found.code == 0, found.err
    assert len(server.asked) == n_pairs(folder)
    assert all("Pages for children count less." in question for question in server.asked)
    assert all("words of q" in question for question in server.asked)
    took = probeval("campaign", "import", store, tmp_path / "labels.csv", "--by", "me")
    assert took.code == 0, took.err
    again = probeval(
        "label", store, "--base-url", server.base_url, "--model", "my-llm", "--docs", folder / "docs.tsv",
        "-o", tmp_path / "more.csv", "--cache", tmp_path / "other", "--missing", "--format", "json",
    )  # fmt: skip
    assert json.loads(again.out)["pairs"] == 0  # the campaign has them
    with package.Campaign.open(store) as campaign:
        assert campaign.collection.labels.provenance[NAME].startswith("model my-llm")


def test_a_campaign_asks_the_machine_as_long_as_it_tells_more_for_its_price(label, probeval, folder, server, tmp_path):
    pytest.importorskip("sqlalchemy")
    store = tmp_path / "mine.db"
    made = probeval(
        "campaign", "create", store, folder / "mine", "--metric", "nDCG@5", "--scale", "graded:2", "--queries",
        folder / "queries.tsv", "-q",
    )  # fmt: skip
    assert made.code == 0, made.err

    def by_worth(prices: str, *options: object) -> Said:
        return probeval(
            "label", store, "--base-url", server.base_url, "--model", "my-llm", "--docs", folder / "docs.tsv",
            "-o", tmp_path / "labels.csv", "--cache", tmp_path / "answers", "--prices", prices, *options,
        )  # fmt: skip

    dear = by_worth(f"person=1,{NAME}=3")
    assert dear.code == 0, dear.err
    assert not server.asked
    assert "For people: for the price" in dear.err
    found = by_worth(f"person=1,{NAME}=.01", "--format", "json")
    assert found.code == 0, found.err
    labelled = json.loads(found.out)["labelled"]
    assert 0 < labelled == len(server.asked) < n_pairs(folder)
    assert "these 10 pairs tell what the labels" in found.err  # it is new: people test it first
    with package.Campaign.open(store) as campaign:
        labels = campaign.collection.labels
        assert int((~np.isnan(labels.values[:, 0])).sum()) == labelled
        campaign.refresh()
    shown = probeval("campaign", "status", store).err
    assert f"Share of the pool that machines labelled: {NAME} {labelled / n_pairs(folder):.0%}." in shown
    wrong = by_worth("person=1,other=.01")
    assert f"person=1,{NAME}=.01" in wrong.err
    assert "leave out --only" in by_worth(f"{NAME}=.01", "--missing").err


def test_trust_says_how_labels_were_made(label, probeval, folder, tmp_path):
    label()
    about = ("--labels", tmp_path / "labels.csv", "--metric", "P@5", "--scale", "graded:2")
    found = probeval("evaluate", folder / "mine", *about, "--trust", "--format", "json")
    assert f"{NAME}: model my-llm; prompt graded " in found.err
    assert json.loads(found.out)["trust"]["observers"][0]["observer"]["provenance"].startswith("model my-llm")


@pytest.mark.slow
def test_a_report_says_how_labels_were_made(label, probeval, folder, tmp_path):
    label()
    about = ("--labels", tmp_path / "labels.csv", "--metric", "P@5", "--scale", "graded:2")
    for runs in ([folder / "mine"], sorted((folder / "mine" / "runs").iterdir())[:2]):  # two have a report of their own
        assert probeval("report", *runs, *about, "-o", tmp_path / "report.html").code == 0
        assert "model my-llm; prompt graded " in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--extra", "{"), "--extra takes a JSON object"),
        (("--extra", '{"messages": []}'), "--extra cannot have 'messages'"),
        (("--name", "x"), "--name is for the store of a campaign"),
        (("--prompt", "grded"), "Did you mean 'graded'"),
    ],
)
def test_wrong_options_are_one_clear_line(label, server, options, said):
    found = label(*options)
    assert (found.code, found.err.count("\n")) == (1, 1)
    assert said in found.err
    assert not server.asked


def test_a_wrong_file_or_address_is_one_clear_line(label, server):
    assert "is written as .csv or .tsv" in label(out="labels.json").err
    assert "--base-url must be an address" in label(url="nowhere").err
    assert not server.asked


def test_pairs_without_texts_are_failures_and_none_with_texts_is_an_error(label, folder, tmp_path, probeval, server):
    lines = (folder / "docs.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "few.tsv").write_text("".join(lines[5:]))
    lost = set(package.read_runs(folder / "mine" / "runs").pool.docs) & {line.split("\t")[0] for line in lines[:5]}
    common = ("--base-url", server.base_url, "--model", "my-llm", "-o", tmp_path / "l.csv", "--cache", tmp_path / "a")
    queries = ("--queries", folder / "queries.tsv")
    found = probeval("label", folder / "mine", *common, *queries, "--docs", tmp_path / "few.tsv", "--format", "csv")
    assert found.out.count("no text of the document") == len(lost) > 0
    (tmp_path / "none.tsv").write_text("x\tone\ny\ttwo\n")
    found = probeval("label", folder / "mine", *common, *queries, "--docs", tmp_path / "none.tsv")
    assert found.code == 1
    assert "none of the" in found.err
    assert "has no text of the document" in found.err


@pytest.mark.slow
def test_ctrl_c_ends_with_what_there_is_and_the_same_command_goes_on(folder, server, tmp_path):
    server.behaviour = Behaviour(delay=0.1)
    command = [
        sys.executable, "-m", "probeval", "label", folder / "mine", "--base-url", server.base_url, "--model", "my-llm",
        "--docs", folder / "docs.tsv", "--queries", folder / "queries.tsv", "-o", tmp_path / "labels.csv",
        "--cache", tmp_path / "answers", "--parallel", "2",
    ]  # fmt: skip
    child = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    while sum(server.asked.values()) < 6:
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    n, some = n_pairs(folder), sum(server.asked.values())
    assert child.returncode == 130, said
    assert f"You ended the work with {n - some} pairs left. The same command goes on from here." in said
    assert len(package.read_labels(tmp_path / "labels.csv").pool) == some
    server.behaviour = Behaviour()
    assert subprocess.run(list(map(str, command)), check=False, capture_output=True).returncode == 0
    assert sum(server.asked.values()) == n
    assert len(package.read_labels(tmp_path / "labels.csv").pool) == n


@pytest.mark.slow
def test_a_dry_run_of_a_whole_campaign_takes_seconds(data, tmp_path):
    name = "trec-dl2019-passage"
    command = [
        sys.executable, "-m", "probeval", "label", data / name / "runs", "--base-url", "http://127.0.0.1:9/v1",
        "--model", "llm", "--queries", data / f"queries-{name}.tsv", "--docs", data / f"docs-{name}.jsonl.gz",
        "--only", data / name / "labels.tsv.gz", "--cache", tmp_path / "answers", "--dry-run", "--format", "json",
    ]  # fmt: skip
    before = os.times()
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    after = os.times()
    assert json.loads(done.stdout)["left"] == 9260
    # Of the processor, since others may use it too.
    assert after.children_user + after.children_system - before.children_user - before.children_system < 5
