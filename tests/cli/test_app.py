"""The application: options of one value are given once, and ``python -m probeval`` is the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from probeval import __version__
from probeval.cli.app import UsageError, app


def commands(group, path=()):
    """Every command and group, with the words that call it."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


def repeatable(param) -> bool:
    return param.param_type_name != "option" or param.multiple or param.is_flag or param.count


ALL = list(commands(typer.main.get_command(app)))
CASES = [
    (path, command, option, max(param.opts, key=len))
    for path, command in ALL
    for param in command.params
    if not repeatable(param)
    for option in param.opts
]


def test_an_option_of_one_value_is_given_once_in_every_command():
    names = {" ".join(path) for path, _ in ALL}
    assert {"gate", "evaluate", "campaign create", "models show", "models"} <= names
    assert len(CASES) > 300
    for path, command, option, name in CASES:
        with pytest.raises(UsageError) as wrong:
            command.make_context(" ".join(path), [option, "1", option, "2"])
        assert wrong.value.message == f"{name} takes one value and is given 2 times. Give it once.", (path, option)


def test_a_repeated_option_is_wrong_usage(probeval):
    result = probeval("campaign", "create", "c", "--metric", "P@5", "--metric=nDCG@5")
    assert result.code == 2
    assert "--metric takes one value and is given 2 times. Give it once." in result.err


def test_what_may_be_repeated_still_may(probeval, tmp_path):
    (tmp_path / "a.txt").write_text("q1 Q0 d1 1 2.0 a\nq1 Q0 d2 2 1.0 a\n")
    result = probeval(
        "evaluate", tmp_path / "a.txt", "--metric", "P@1", "--metric", "P@2", "-q", "-q", "--format", "json"
    )
    assert result.code == 0, result.err


@pytest.mark.slow
def test_a_module_that_runs():
    done = subprocess.run([sys.executable, "-m", "probeval", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"probeval {__version__}\n"
