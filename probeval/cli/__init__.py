"""The command line: one file per verb, wiring only."""

from probeval.cli.app import main

__all__ = ["main"]
