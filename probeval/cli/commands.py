"""Commands from records: every field of a record is an option of the command, with its help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, is_dataclass, replace
from enum import Enum, StrEnum
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import typer

from probeval.cli.completion import COMPLETIONS
from probeval.cli.options import Format, OutputFormat, Quiet
from probeval.cli.output import Messages, write_result
from probeval.records import SAME, About, Input, inputs
from probeval.results import Result, return_type

__all__ = ["VERBS", "FieldsOf", "Output", "Printed", "command", "spelled", "verb"]

F = TypeVar("F", bound=Callable[..., Any])
VERBS: dict[str, tuple[str, Callable[..., Any]]] = {}  # by name: a line on it, and the function


def verb(summary: str, *, name: str | None = None) -> Callable[[F], F]:
    """Register a function as a verb of the command line, under its own name or another."""

    def register(function: F) -> F:
        VERBS[name or function.__name__] = summary, function
        return function

    return register


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The form of the data on stdout, of a verb without messages."""

    output_format: Format = OutputFormat.table


@dataclass(frozen=True, kw_only=True)
class Output(Printed):
    """The form of the data on stdout, and the messages on stderr."""

    quiet: Quiet = False

    @cached_property
    def messages(self) -> Messages:
        """Messages on stderr."""
        return Messages(quiet=self.quiet)

    @cached_property
    def hints(self) -> list[str]:
        """Messages for the end: after the result and its sentences, what to do next."""
        return []


@dataclass(frozen=True)
class FieldsOf:
    """Marks a parameter of a verb as a dict of those fields of a record that are given; none has to be."""

    record: type


def command(function: Callable[..., Any]) -> Callable[..., None]:
    """Return the command of a verb: a function for Typer, with the fields of the verb's records as its parameters.

    A parameter of the verb that is no record is an option of its own. If it has the name of a field, it stands in its
    place, and the record gets its value, the first of several. What a record reports goes to the messages of
    :class:`Output`. A parameter marked by :class:`FieldsOf` takes the fields of a record without their defaults.

    What the verb returns is printed: a result, a record or a tuple of records. Its type is that of the verb's JSON.
    """
    hints = _parameter_types(function)
    parameters = inspect.signature(function).parameters
    records = {name: hints[name] for name in parameters if isinstance(hints[name], type) and is_dataclass(hints[name])}
    some = {name: mark for name in parameters if isinstance(mark := _mark(hints[name]), FieldsOf)}
    rest = {name: p for name, p in parameters.items() if name not in records and name not in some}
    own = {name: _input(name, hints[name], p) for name, p in rest.items()}
    shown: dict[str, Input | inspect.Parameter] = {}
    for name in parameters:
        if name in own:
            shown[name] = own[name]
        elif name in some:
            shown |= {one.name: one.optional for one in inputs(some[name].record)}
        else:
            shown |= {one.name: one for one in inputs(records[name]) if one.about.option != ""}
    shown |= own

    def run(**values: Any) -> None:
        made: dict[str, Any] = {}
        for name, record in sorted(records.items(), key=lambda item: not issubclass(item[1], Output)):
            read = {one.name: _value(one, values[one.name]) for one in inputs(record) if one.name in values}
            if any(one.name == "reporter" for one in inputs(record)):
                read["reporter"] = next(r for r in made.values() if isinstance(r, Output)).messages
            made[name] = record(**read)
        for name, mark in some.items():
            read = {one.name: _value(one.optional, values[one.name]) for one in inputs(mark.record)}
            made[name] = {field: value for field, value in read.items() if value is not None}
        for name, one in own.items():
            made[name] = _value(one, values[name]) if isinstance(one, Input) else values[name]
        result = function(**made)
        if result is not None:
            kind = get_args(return_type(function))[0] if result == () else None
            _print(result, next(shown for shown in made.values() if isinstance(shown, Printed)), kind)

    made_of = map(_parameter, shown.values())
    ready = sorted(made_of, key=_order)
    run.__name__, run.__doc__, run.verb = function.__name__, function.__doc__, function  # type: ignore[attr-defined]
    run.__signature__ = inspect.Signature(ready)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in ready}
    return run


def _parameter_types(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a verb's parameters; that of its result may be slow to import."""
    annotations = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
    return get_type_hints(
        type("_", (), {"__annotations__": annotations, "__module__": function.__module__}), include_extras=True
    )


def _print(result: Any, output: Printed, kind: type | None) -> None:
    """Print a result: data on stdout, then its sentences and hints on stderr; end with its exit code."""
    if not isinstance(output, Output):
        write_result(result, output.output_format, kind)
    else:
        output.messages.warned(lambda: write_result(result, output.output_format, kind))  # keys may do work
        sentences = output.messages.warned(result.sentences) if isinstance(result, Result) else ()
        for sentence in (*sentences, *output.hints):
            if sentence not in output.messages.said:
                output.messages.say(sentence)
    if isinstance(result, Result) and result.exit_code:
        raise typer.Exit(result.exit_code)


def _order(parameter: inspect.Parameter) -> tuple[bool, bool]:
    """The order of help: arguments first, what every verb has last."""
    argument = isinstance(_mark(parameter.annotation), typer.models.ArgumentInfo)
    return not argument, parameter.name in {one.name for one in inputs(Output)}


def _mark(annotation: Any) -> Any:
    """What stands beside the type in an annotation, if anything."""
    return next(iter(get_args(annotation)[1:2]), None) if get_origin(annotation) is Annotated else None


def _input(name: str, kind: Any, parameter: inspect.Parameter) -> Input | inspect.Parameter:
    """A parameter of a verb as a field; one that is written for Typer as it is."""
    if get_origin(kind) is Annotated and isinstance(get_args(kind)[1], About):
        default = MISSING if parameter.default is inspect.Parameter.empty else parameter.default
        return Input(name, get_args(kind)[0], default, replace(get_args(kind)[1], default=SAME))
    return parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY)


def spelled(one: Input) -> list[str]:
    """The spellings of an option."""
    return (one.about.option or f"--{one.name.replace('_', '-')}").split(", ")


def _parameter(one: Input | inspect.Parameter) -> inspect.Parameter:
    """The parameter of a field for Typer."""
    if isinstance(one, inspect.Parameter):
        return one
    about = one.about
    default = one.default if about.default is SAME else about.default
    if about.parse is not None and isinstance(default, (int, float, tuple)):
        default = _text(default)
    kind = _named(one.name, about.choices) if about.choices else about.kind or _plain(one.type)
    if about.many:
        kind, default = list[kind], default if default is MISSING else None  # type: ignore[valid-type]
    elif about.choices and isinstance(default, str):
        default = kind(default)
    if default is None:
        kind = kind | None
    text = about.text
    if about.many and not about.argument:
        first, _, rest = text.partition(". ")
        text = f"{first.removesuffix('.')}; may be repeated. {rest}".strip()
    info: Any
    if about.argument:
        info = typer.Argument(metavar=about.metavar, help=text)
    else:
        info = typer.Option(
            *spelled(one), metavar=about.metavar, help=text, min=about.least, max=about.most,
            autocompletion=COMPLETIONS.get(one.name),
        )  # fmt: skip
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=Annotated[kind, info],
    )


def _text(default: float | tuple[float, ...]) -> str:
    """The default of an option that is read from text: ``.05``, or ``0,.01,.1``."""
    numbers = default if isinstance(default, tuple) else (default,)
    return ",".join(f"{number:g}".removeprefix("0") or "0" for number in numbers)


def _named(name: str, choices: tuple[str, ...]) -> Any:
    """The choices of an option as Typer takes them."""
    return StrEnum(name, {choice.replace("-", "_"): choice for choice in choices})


def _plain(kind: Any) -> Any:
    """A type without None."""
    if get_origin(kind) in (UnionType, Union):
        (kind,) = (k for k in get_args(kind) if k is not NoneType)
    return kind


def _value(one: Input, given: Any) -> Any:
    """The value of a field from that of its option."""
    if isinstance(given, Enum) and one.about.choices:
        return given.value
    if one.about.many:
        single = replace(one, about=replace(one.about, many=False))
        several = [_value(single, value) for value in given or ()]
        return several or (None if one.default is MISSING else one.default)
    if isinstance(given, list):  # an option of the verb in place of the field
        return given[0] if given else None
    if one.about.parse is not None and isinstance(given, str):
        return one.about.parse(max(spelled(one), key=len), given)
    return given
