"""``probeval skill``: how an agent uses probeval, and what it must not conclude."""

from __future__ import annotations

from importlib import resources

from probeval.cli.commands import verb
from probeval.cli.output import echo

__all__ = ["skill"]


@verb("Print the manual for agents.")
def skill() -> None:
    """Print the manual for agents: what probeval can decide, ten commands, exit codes, and what never to conclude.

    Example: probeval skill > SKILL.md
    """
    echo(resources.files("probeval").joinpath("SKILL.md").read_text(encoding="utf-8").rstrip("\n"))
