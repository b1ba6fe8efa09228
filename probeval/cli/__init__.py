"""The command line: one file a verb, wiring only."""

from probeval.cli.app import main

__all__ = ["main"]
