"""``probeval skill``: the manual for agents names commands and options that exist, and codes that are real."""

from __future__ import annotations

import re
import shlex

import typer

from probeval.api.gate import EXIT_CODES
from probeval.cli.app import app


def test_every_command_of_the_manual_parses(probeval):
    manual = probeval("skill").out
    lines = [line for block in re.findall(r"```sh\n(.*?)```", manual, re.S) for line in block.splitlines()]
    assert len(lines) == 10
    verbs = typer.main.get_command(app)
    for line in lines:
        program, verb, *arguments = shlex.split(line, comments=True)
        assert program == "probeval"
        command = verbs.commands[verb]
        with command.make_context(verb, list(arguments), resilient_parsing=True) as context:
            given, _, _ = command.make_parser(context).parse_args(list(arguments))  # refuses an option that is unknown
        required = {param.name for param in command.params if param.required}
        assert required <= {name for name, value in given.items() if value}, line


def test_its_exit_codes_are_those_of_the_gate(probeval):
    codes = re.findall(r"^\| (\d) \| (?:done; for )?`gate`[^:]*: (\w+)", probeval("skill").out, re.M)
    assert {code: EXIT_CODES[verdict] for code, verdict in codes} == {"0": 0, "3": 3, "4": 4}
