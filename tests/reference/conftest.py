"""The command line, for published studies that go through it."""

from tests.cli.conftest import probeval  # noqa: F401
