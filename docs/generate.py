"""The pages that are written from the code: measures, policies, goals and stopping rules from their lists, the command
line from its functions.
"""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

import typer
from typer.models import ArgumentInfo, OptionInfo

from probeval.cli.app import app, root
from probeval.metrics import REGISTRY, Metric
from probeval.metrics.metric import MetricDefinition, Parameter
from probeval.selection import EXPLORE_SIDES, GOALS, POLICIES, RULES

__all__ = ["commands", "options", "pages"]

CUTOFF = {"optional": "optional (`@k`)", "required": "required (`@k`)", "none": "none"}
BOUNDS = {
    "monotone": "exact: every unjudged document of the lowest grade, and of the top grade",
    "ratio": "exact: by Dinkelbach's iteration",
    "precision": "exact: over the number of relevant unjudged documents",
    "found": "exact: in closed form",
    None: "none where something is unjudged (`nan`)",
}


def pages() -> dict[str, str]:
    """File names and their MyST text."""
    written = {"measures.md": _measures(), "judging.md": _judging(), "command-line.md": _command_line()}
    return {name: "\n".join(lines) + "\n" for name, lines in written.items()}


def _measures() -> Iterator[str]:
    yield "# Measures"
    yield ""
    yield f"All {len(REGISTRY)} measures of this version, from the registry in the code."
    yield "The [theory page](../../theory/measures.md) has the notation;"
    yield "[Choose a measure](../../how-to/measures.md) has advice."
    yield ""
    yield "| measure | what it says |"
    yield "|---|---|"
    for name in sorted(REGISTRY, key=str.lower):
        yield f"| [{name}](#measure-{name.lower()}) | {REGISTRY[name].summary} |"
    for name in sorted(REGISTRY, key=str.lower):
        yield from _measure(REGISTRY[name])


def _measure(definition: MetricDefinition) -> Iterator[str]:
    yield ""
    yield f"(measure-{definition.name.lower()})="
    yield f"## {definition.name}"
    yield ""
    yield f"{definition.summary[0].upper()}{definition.summary[1:]}."
    yield ""
    yield "$$"
    yield definition.formula
    yield "$$"
    yield ""
    yield f"Cutoff: {_cutoff(definition)}. Weighted sum of gains: {_linear(definition)}."
    yield ""
    yield from _bounds(definition)
    if definition.parameters:
        yield ""
        yield "| parameter | default | values | meaning |"
        yield "|---|---|---|---|"
        for name, parameter in definition.parameters.items():
            yield f"| `{name}` | {_default(parameter)} | {_values(parameter)} | {parameter.doc} |"


def _judging() -> Iterator[str]:
    yield "# Policies, goals and stopping rules"
    yield ""
    yield "[Which pair next](../../theory/judging.md) has the mathematics."
    yield ""
    yield "## Policies"
    yield ""
    yield "The exploration is that of judging that names none;"
    yield f"where there is any, it is at least {EXPLORE_SIDES:g} if the goal compares two sides."
    yield ""
    yield "| policy | what it chooses | exploration |"
    yield "|---|---|---|"
    for name, policy in POLICIES.items():
        yield f"| `{name}` | {policy.summary} | {policy.explores:g} |"
    yield ""
    yield "## Goals"
    yield ""
    yield "| goal | what it is for |"
    yield "|---|---|"
    yield from (f"| `{form}` | {summary} |" for form, summary in GOALS.items())
    yield ""
    yield "## Stopping rules"
    yield ""
    yield "A rule holds when its figure is at least, or at most, its target."
    yield ""
    yield "| rule | figure | target | needs |"
    yield "|---|---|---|---|"
    for name, rule in RULES.items():
        needs = "" if rule.rate is None else f"`{rule.rate.name}=`, {rule.rate.summary}"
        yield f"| `{name}=` | {rule.summary} | {rule.kind}, {'at most' if rule.at_most else 'at least'} | {needs} |"


def _cutoff(definition: MetricDefinition) -> str:
    fixed = definition.cutoff
    return f"always {fixed}, which is not written" if isinstance(fixed, int) else CUTOFF[fixed]


def _variants(definition: MetricDefinition) -> dict[str, Metric]:
    """The measure under each of its norms, or each choice of a parameter that it needs, by how that is written."""
    for name, parameter in definition.parameters.items():
        if parameter.required:
            return {f'`{name}="{c}"`': Metric(definition.name, parameters={name: c}) for c in parameter.choices}
    norm = definition.parameters.get("norm")
    if norm is None:
        return {"": Metric(definition.name)}
    asked = [c for c in norm.choices if c != norm.default]
    return {"by default": Metric(definition.name)} | {
        f'`norm="{c}"`': Metric(definition.name, parameters={"norm": c}) for c in asked
    }


def _linear(definition: MetricDefinition) -> str:
    answers = {how: metric.is_linear for how, metric in _variants(definition).items()}
    if len(set(answers.values())) == 1:
        return "yes" if next(iter(answers.values())) else "no"
    return ", ".join(
        f"{'yes' if yes else 'no'} {how if how == 'by default' else 'with ' + how}" for how, yes in answers.items()
    )


def _bounds(definition: MetricDefinition) -> Iterator[str]:
    answers = {how: BOUNDS[definition.bounds(metric)] for how, metric in _variants(definition).items()}
    if len(set(answers.values())) == 1:
        yield f"Bounds: {next(iter(answers.values()))}."
    else:
        yield "Bounds:"
        yield ""
        for text in dict.fromkeys(answers.values()):
            yield f"- {', '.join(how for how, found in answers.items() if found == text)}: {text}"
    if definition.ceiling is not None:
        yield ""
        yield "Without a cutoff the list never ends: its upper bound counts all ranks past the end as top grades."


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "none: must be given"
    return "not set" if parameter.default is None else f"`{parameter.default}`"


def _values(parameter: Parameter) -> str:
    if parameter.choices:
        return ", ".join(f"`{c}`" for c in parameter.choices if c is not None)
    low = "" if parameter.low is None else f" from {parameter.low:g}"
    return f"number{low}" + ("" if parameter.high is None else f", below {parameter.high:g}")


def commands(group: typer.Typer = app, prefix: str = "") -> dict[str, Callable[..., Any]]:
    """The commands by name, those of groups too: ``models``, ``models show``."""
    found = {}
    for command in group.registered_commands:
        assert command.callback is not None
        found[prefix + (command.name or command.callback.__name__.replace("_", "-"))] = command.callback
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        name = f"{prefix}{inner.name}"
        alone = inner.typer_instance.registered_callback
        if alone is not None and alone.callback is not None and alone.invoke_without_command:
            found[name] = alone.callback
        found |= commands(inner.typer_instance, f"{name} ")
    return found


def options(command: Callable[..., Any]) -> Iterator[tuple[str, OptionInfo | ArgumentInfo, Any, Any]]:
    """How each parameter of a command is written, what is said of it, its type and its default.

    This is read from the function, not from Typer's objects, which change from version to version.
    """
    hints = typing.get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        if typing.get_origin(hints[name]) is not typing.Annotated:  # Typer's own context
            continue
        kind, info = typing.get_args(hints[name])[:2]
        # Inside Annotated the first spelling of an option stands where its default would.
        spelled = [s for s in (info.default, *(info.param_decls or ())) if isinstance(s, str) and s.startswith("-")]
        written = info.metavar if isinstance(info, ArgumentInfo) else ", ".join(spelled)
        yield str(written or name.upper()), info, kind, parameter.default


def _command_line() -> Iterator[str]:
    yield "# Command line"
    yield ""
    yield f"{inspect.getdoc(root)}"
    yield ""
    yield "[Use the command line](../../how-to/command-line.md) has examples, formats and exit codes."
    yield ""
    yield "## probeval"
    yield ""
    yield from _table(root)
    for name, command in commands().items():
        yield ""
        yield f"## probeval {name}"
        yield ""
        yield "```text"
        arguments = [text for text, info, _, _ in options(command) if isinstance(info, ArgumentInfo)]
        yield " ".join(["probeval", name, *arguments, "[OPTIONS]"])
        yield "```"
        yield ""
        yield f"{inspect.getdoc(command)}"
        yield ""
        yield from _table(command)


def _table(command: Callable[..., Any]) -> Iterator[str]:
    yield "| option | value | default | meaning |"
    yield "|---|---|---|---|"
    for text, info, kind, default in options(command):
        shown = "required" if default is inspect.Parameter.empty else _shown(default)
        meaning = str(info.help).replace("|", r"\|")
        yield f"| `{text}` | {_kind(info, kind)} | {shown} | {meaning} |"


def _shown(default: Any) -> str:
    if default is None or default is False:
        return ""
    return f"`{default.value if isinstance(default, enum.Enum) else default}`"


def _kind(info: OptionInfo | ArgumentInfo, kind: Any) -> str:
    if isinstance(kind, types.UnionType):
        kind = next(k for k in typing.get_args(kind) if k is not type(None))
    if typing.get_origin(kind) is list:
        kind = typing.get_args(kind)[0]
    if kind is bool:
        return ""
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return ", ".join(f"`{choice.value}`" for choice in kind)
    if isinstance(info, OptionInfo) and info.metavar:
        return info.metavar
    return {int: "number", float: "number", str: "text"}.get(kind, "path") if isinstance(info, OptionInfo) else "path"
