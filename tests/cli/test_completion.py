"""What the shell completes, and the list of verbs."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from probeval.cli.app import GROUPS, ORDER, app
from probeval.cli.commands import VERBS
from probeval.relevance import ADDED_MODELS, Uniform, register_model
from probeval.selection import POLICIES, RULES, Policy, StoppingRule, register_policy, register_rule


def completed(line: str) -> list[str]:
    """What bash is told for this line, the cursor at its end."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_PROBEVAL_COMPLETE": "complete_bash"}
    return CliRunner().invoke(app, env=asked, prog_name="probeval").stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("probeval evaluate runs --metric nD", {"nDCG@10"}),
        ("probeval evaluate runs --metric SetP", {"SetP"}),
        ("probeval compare runs --metric RB", {"RBP@10"}),
        ("probeval evaluate runs --model uni", {"uniform"}),
        ("probeval plan runs --model text-hier", {"text-hierarchical"}),
        ("probeval next runs --policy g", {"gain"}),
        ("probeval simulate runs --policy mt", {"mtc"}),
        ("probeval report runs --policy mt", {"mtc", "mtc-undecided", "mtc-thesis"}),
        ("probeval campaign create store runs --policy g", {"gain"}),
        ("probeval next runs --stop h", {"halfwidth=", "hours="}),
        ("probeval evaluate runs --scale gr", {"graded:2", "graded:3", "graded:4"}),
        ("probeval evaluate runs --format ", {"table", "csv", "json"}),
    ],
)
def test_values_are_offered(line, offered):
    assert offered <= set(completed(line))


def test_policies_and_rules_from_outside_are_offered():
    class Mine(StoppingRule):
        """A rule of one's own."""

        name = "mine"
        summary = "nothing"

        def value(self, state, rate):
            return 0.0

    register_rule(Mine())
    register_policy(Policy("myown", "nothing", lambda context, goal: context.best_rank))
    try:
        assert completed("probeval next runs --stop mi") == ["mine="]
        assert completed("probeval simulate runs --policy my") == ["myown"]
        register_model(Uniform(), name="my-model")
        assert completed("probeval evaluate runs --model my") == ["my-model"]
    finally:
        del RULES["mine"], POLICIES["myown"], ADDED_MODELS["my-model"]


def test_help_names_every_policy_goal_and_rule(probeval, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said = " ".join(probeval("next", "--help").out.split())
    rules = " ".join(f"{name}=" for name in RULES)
    assert f"{rules}; comma means or, plus means and." in said
    assert f"The selection policy: {', '.join(POLICIES)}." in said
    assert "The goal of judging: ranking, best, top:N, pair:A,B, scores, success, relevant or trust:LEAST." in said
    assert "default: .1 for gain (.25, from both sides, to compare two) and 0 for others." in said


def test_the_help_lists_every_verb_in_the_order_of_use(probeval, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = probeval("--help").out.partition("Commands:")[2].strip().splitlines()
    assert [line.split()[0] for line in lines] == [*ORDER, *sorted({*VERBS, *GROUPS} - set(ORDER))]
    assert "..." not in "".join(lines)
