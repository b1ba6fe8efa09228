"""``next``: what it writes in each form, what it says, and how it fails."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from probeval.data import read_campaign, write_campaign, write_qrels
from probeval.relevance import synthetic_campaign
from probeval.selection import POLICIES


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A small campaign, with a third of its judgments in few.qrels."""
    path = tmp_path_factory.mktemp("campaign")
    made = synthetic_campaign(seed=5, systems=5, queries=6, depth=6, docs=15)
    write_campaign(made, path)
    order = np.random.default_rng(1).permutation(len(made.judgments))
    write_qrels(path / "few.qrels", made.judgments.take(order[: len(order) // 3]))
    return path


@pytest.fixture
def asked(probeval, folder):
    def run(*more, qrels="few.qrels", quiet=True):
        judged = ("--qrels", folder / qrels) if qrels else ("--scale", "graded:2")
        usual = {"--metric": "DCG@5", "--model": "uniform"}
        settings = [x for name, value in usual.items() if name not in more for x in (name, value)]
        return probeval("next", folder / "runs", *judged, *settings, *more, *(["--quiet"] if quiet else []))

    return run


def test_a_table_of_pairs(asked, folder):
    said = asked("-n", 4, quiet=False)
    assert said.code == 0, said.err
    title, header, *rows = said.out.splitlines()
    assert header.split() == ["query", "doc", "grade", "sd", "systems", "best_rank", "probability"]
    assert title == "4 pairs to judge next, by gain"
    assert len(rows) == 4
    first, second, third = said.err.splitlines()
    assert first == "Model uniform: it was asked for. Scale graded:2 (inferred from the judgments)."
    assert " pairs judged, confidence 0." in second
    assert "comparisons are decided at 0.95" in third


def test_a_comparison_says_which_share_is_drawn_from_both_sides(asked):
    said = asked("-n", 8, "--goal", "pair:system-01,system-02", quiet=False)
    drawn = [row for row in said.out.splitlines()[2:] if row.split()[-1] != "-"]
    assert len(drawn) == 2
    sentence = "25% of the pairs are drawn at random from both sides of the comparison, with the probability shown."
    assert said.err.splitlines()[-1] == sentence
    assert sentence not in asked("-n", 8, "--goal", "pair:system-01,system-02", "--explore", 0, quiet=False).err
    assert sentence not in asked("-n", 8, quiet=False).err


def test_json_says_what_csv_says_and_more(asked, folder):
    document = json.loads(asked("-n", 3, "--format", "json").out)
    assert list(document) == [
        "metric", "model", "policy", "goal", "pool", "judged", "rope", "confidence", "stop", "comparisons", "next",
    ]  # fmt: skip
    assert (document["metric"], document["policy"], document["goal"]) == ("DCG@5", "gain", "ranking")
    assert document["stop"]["reached"] is False
    assert document["stop"]["values"] == {"confidence": document["confidence"]}
    assert sum(document["comparisons"][k] for k in ("decided", "tied", "open")) == 10
    rows = list(csv.DictReader(io.StringIO(asked("-n", 3, "--format", "csv").out)))
    assert [(r["query"], r["doc"]) for r in rows] == [(r["query"], r["doc"]) for r in document["next"]]
    campaign = read_campaign(folder)
    runs = campaign.runs.top(5)
    for row in document["next"]:
        pair = runs.pool.locate([row["query"]], [row["doc"]])[0]
        system, _, rank = np.nonzero(runs.pairs == pair)
        assert (row["systems"], row["best_rank"]) == (len(system), rank.min() + 1)
        assert (row["grade"], row["sd"]) == pytest.approx((1, np.sqrt(2 / 3)))


def test_nothing_judged_is_asked_again(asked, folder):
    judged = {tuple(line.split()[::2][:2]) for line in (folder / "few.qrels").read_text().splitlines()}
    rows = list(csv.DictReader(io.StringIO(asked("-n", 1000, "--format", "csv", "--stop", "").out)))
    pairs = [(r["query"], r["doc"]) for r in rows]
    pool = read_campaign(folder).runs.top(5).pool
    inside = sum((pool.locate([q], [d]) >= 0).item() for q, d in judged)
    assert len(judged) > 10
    assert len(pairs) == len(set(pairs)) == len(pool) - inside
    assert not judged & set(pairs)


def test_the_loop_by_hand_ends(asked, folder):
    """Ask, judge, ask again: what a newcomer does with a text editor."""
    full = {tuple(x[:1] + x[2:3]): x[3] for x in map(str.split, (folder / "qrels.txt").read_text().splitlines())}
    lines: list[str] = []
    for _ in range(30):
        (folder / "mine.qrels").write_text("".join(lines))
        document = json.loads(asked("-n", 12, "--format", "json", qrels="mine.qrels" if lines else "").out)
        if document["stop"]["reached"]:
            break
        lines += [f"{r['query']} 0 {r['doc']} {full[r['query'], r['doc']]}\n" for r in document["next"]]
    assert document["stop"]["reached"]
    assert document["next"] == []
    assert document["judged"] == len(lines) <= document["pool"]


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"gain"}))
def test_every_policy(asked, policy):
    said = asked("-n", 2, "--policy", policy)
    assert (said.code, len(said.out.splitlines())) == (0, 4), said.err


@pytest.mark.parametrize("goal", ["best", "top:2", "pair:system-01,system-02", "scores", "success", "relevant"])
def test_every_goal(asked, goal):
    said = asked("-n", 2, "--goal", goal, quiet=False).err
    assert ("Systems are compared by P(success)" in said) == (goal == "success")
    document = json.loads(asked("-n", 2, "--goal", goal, "--format", "json").out)
    assert document["goal"] == goal
    assert document["metric"] == ('PSucc(mapping="DCGl@5/broad")' if goal == "success" else "DCG@5")
    assert len(document["next"]) == 2


def test_a_target_that_is_met_asks_for_nothing(asked):
    said = asked("--stop", "confidence=.5", quiet=False)
    assert said.code == 0
    assert said.out.splitlines()[1].split() == ["query", "doc", "grade", "sd", "systems", "best_rank", "probability"]
    assert "The target is met (confidence 0." in said.err
    assert "no more judgments are needed" in said.err


def test_a_budget_is_not_overdrawn(asked, folder):
    judged = len((folder / "few.qrels").read_text().splitlines())
    few = json.loads(asked("-n", 20, "--stop", f"budget={judged + 3}", "--format", "json").out)
    assert len(few["next"]) == 3
    none = json.loads(asked("-n", 20, "--stop", "budget=0", "--format", "json", qrels="").out)
    assert (none["stop"]["reached"], none["next"]) == (True, [])


def test_everything_judged(asked):
    said = asked("--stop", "", qrels="qrels.txt", quiet=False)
    assert said.code == 0
    assert said.err.splitlines()[-1] == "Every pair is judged."
    assert len(said.out.splitlines()) == 2


def test_none_asked_for(asked):
    assert len(asked("-n", 0).out.splitlines()) == 2


def test_same_seed_same_bytes(asked):
    one, two, other = (asked("--policy", "random", "--format", "csv", "--seed", s).out for s in (1, 1, 2))
    assert one == two != other


def test_fairness_is_a_table_of_teams(asked, folder):
    said = asked("--fairness", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [r["team"] for r in rows] == ["team-1", "team-2"]
    teams = json.loads(asked("--fairness", "--format", "json").out)["teams"]
    assert [float(r["judged"]) for r in rows] == [t["judged"] for t in teams]
    assert set(teams[0]) == {
        "team", "systems", "pairs", "judged", "own", "own_judged", "score", "left_out", "shift",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--policy", "gian"), "Did you mean 'gain'?"),
        (("--goal", "bets"), "Did you mean 'best'?"),
        (("--goal", "pair:system-01,system-9"), "No system 'system-9' to compare. Did you mean 'system-05'?"),
        (("--stop", "confidense=.9"), "Did you mean 'confidence'?"),
        (("--stop", "confidence=95"), "A stopping rule is confidence=NUMBER, a probability; got confidence=95."),
        (("--stop", "hours=3"), "The stopping rule hours= needs seconds= per judgment."),
        (("--explore", "2"), "The share of exploration must be between 0 and 1, got 2."),
        (
            ("--model", "none"),
            "This task needs a relevance model: uniform, empirical, independent, hierarchical or a card.",
        ),
        (("--metric", "NDGC@5"), "Unknown metric 'NDGC@5'. Did you mean 'nDCG@5'?"),
        (("--policy", "mtc-thesis", "--metric", "AP"), "not AP. Use gain."),
    ],
)
def test_errors_are_one_line(asked, more, message):
    said = asked(*more)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Error: ")
    assert said.err.endswith(f"{message}\n")
    assert said.err.count("\n") == 1


def test_wrong_usage(probeval, folder):
    assert probeval("next", folder / "runs").code == 2
    assert probeval("next", folder / "runs", "--metric", "AP", "-n", -1).code == 2


def test_ties_within_the_rope_end_the_judging(asked):
    said = asked("--rope", 2, "--goal", "best", "--stop", "best=.99+every=.99", "-n", 3, quiet=False)
    assert said.code == 0, said.err
    assert "0 are undecided, 10 are ties within 2;" in said.err
    assert "Differences up to 2 count as ties." in said.err
    assert "Tied with system-" in said.err
    assert "no more judgments are needed" in said.err
    document = json.loads(asked("--rope", 0.05, "--format", "json").out)
    plain = json.loads(asked("--format", "json").out)
    assert (plain["rope"], document["rope"]) == (0.0, 0.05)
    assert document["confidence"] > plain["confidence"]


@pytest.mark.parametrize(
    ("rope", "says"),
    [
        ("-1", "A rope is a difference of at least 0, or users=SHARE (users=.5), got '-1'."),
        ("users=.5", "no preferences of users are published for nDCG@5 on the scale fine. Borrow some with --mapping"),
    ],
)
def test_a_rope_that_means_nothing_is_one_line(probeval, folder, rope, says):
    said = probeval(
        "next", folder / "runs", "--metric", "nDCG@5", "--scale", "fine", "--model", "uniform", "--rope", rope
    )
    assert said.code == 1
    assert says in said.err.splitlines()[-1]
