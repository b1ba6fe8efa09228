"""``probeval schema``: the JSON Schema of a verb's output with ``--format json``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer

from probeval.cli.commands import Printed, verb
from probeval.cli.output import write_json
from probeval.errors import ProbevalError, did_you_mean
from probeval.records import About
from probeval.results import json_schema, return_type

__all__ = ["outputs", "schema", "schema_of"]


@dataclass(frozen=True)
class VerbOutput:
    """A verb with data on stdout."""

    verb: Annotated[str, "The verb."]
    output: Annotated[str, "What it prints."]


@verb("Print the JSON Schema of a verb's output.")
def schema(
    output: Printed,
    verb: Annotated[
        list[str] | None,
        About(
            "A verb such as evaluate or campaign status; without it, list all.",
            metavar="[VERB]",
            argument=True,
            kind=str,
            many=True,
        ),
    ] = None,
) -> tuple[VerbOutput, ...] | None:
    """Print the JSON Schema (draft 2020-12) of a verb's output with --format json, or list the verbs with a schema.

    Example: probeval schema evaluate
    """
    if verb:
        write_json(schema_of(" ".join(verb)))
        return None
    return tuple(VerbOutput(name, _described(kind)) for name, kind in outputs().items())


def schema_of(verb: str) -> dict[str, Any]:
    """The JSON Schema of a verb's output, by the name of the verb: ``evaluate``, ``campaign status``."""
    known = outputs()
    if verb not in known:
        raise ProbevalError(f"No schema for {verb!r}: {', '.join(known)}.{did_you_mean(verb, known)}")
    return json_schema(known[verb], title=f"probeval {verb}")


def outputs() -> dict[str, Any]:
    """The type of each verb's JSON: what its function returns."""
    from probeval.cli.app import app

    return {name: kind for name, function in _verbs(app) if (kind := return_type(function)) is not None}


def _verbs(group: typer.Typer, before: str = "") -> Iterator[tuple[str, Any]]:
    """The verbs of a group and of the groups in it, by name, and their functions."""
    for one in group.registered_commands:
        function = one.callback.verb  # type: ignore[union-attr]
        yield before + (one.name or function.__name__.replace("_", "-")), function
    for inner in group.registered_groups:
        name, entry = f"{before}{inner.name}", inner.typer_instance.registered_callback  # type: ignore[union-attr]
        if entry is not None:
            yield name, entry.callback.verb  # type: ignore[union-attr]
        yield from _verbs(inner.typer_instance, f"{name} ")  # type: ignore[arg-type]


def _described(kind: Any) -> str:
    """What a type is, by the docstrings of its records."""
    parts = get_args(kind) if get_origin(kind) in (UnionType, Union) else (kind,)
    classes = [get_args(part)[0] if get_args(part) else part for part in parts]
    lines = [(inspect.getdoc(one) or "").partition("\n")[0].removesuffix(".") for one in classes]
    return "; or ".join(line[:1].lower() + line[1:] for line in lines)
