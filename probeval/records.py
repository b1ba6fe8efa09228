"""Records of inputs: a field has its type, its default and its line of documentation, and stands in one place.

The keywords of a function in Python, the options of a command with their help, and the tables of the documentation are
made from the fields. A task is a record with a method ``run``; :func:`task` is the function that people call.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, Any, ParamSpec, Protocol, TypeVar, get_args, get_origin, get_type_hints

from probeval.display import Record
from probeval.errors import ProbevalError, did_you_mean

__all__ = [
    "SAME",
    "About",
    "Input",
    "Runnable",
    "inputs",
    "is_given",
    "parse_counts",
    "parse_number",
    "parse_shares",
    "part",
    "task",
]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
S = TypeVar("S")
MARGIN = " " * 4
SAME: Any = object()  # as in Python
DEFAULT = re.compile("; default: .*")


@dataclass(frozen=True, repr=False)
class About(Record):
    """The documentation of a field, and its spelling on the command line.

    Parameters
    ----------
    text
        One line for people.
    metavar
        The value in the help of a command, such as ``FILE``.
    option
        The spelling of the option, with a comma between two; by default the name. Empty: not on the command line.
    argument
        Whether it is an argument of the command, not an option.
    kind
        The type on the command line, where the field takes more in Python.
    many
        Whether the option may be repeated.
    choices
        The values that are allowed, if only some are.
    least, most
        The limits of a number.
    default
        The default of the command line, where it is another one.
    parse
        Reads the value from the option and its text, where that is not the value itself.
    """

    text: str
    metavar: str | None = None
    option: str | None = None
    argument: bool = False
    kind: Any = None
    many: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    default: Any = SAME
    parse: Callable[[str, str], Any] | None = None


def parse_number(_: str, text: str) -> float | str:
    """The number in an option such as ``--rope``, or its text."""
    try:
        return float(text)
    except ValueError:
        return text


def parse_shares(option: str, text: str) -> list[float]:
    """The shares in an option such as ``--checkpoints``."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ProbevalError(f"{option} takes comma-separated numbers, got {text!r}.") from None


def parse_counts(option: str, text: str | None) -> list[int] | None:
    """The numbers in an option such as ``--queries``; None if it is not given."""
    if text is None:
        return None
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise ProbevalError(f"{option} takes comma-separated positive integers, got {text!r}.")
    return counts


@dataclass(frozen=True, repr=False)
class Input(Record):
    """A field of a record: name, type, default (:data:`dataclasses.MISSING` if it must be given) and documentation."""

    name: str
    type: Any
    default: Any
    about: About

    @property
    def optional(self) -> Input:
        """The same without a default: None if it is not given."""
        about = replace(self.about, default=SAME, text=DEFAULT.sub(".", self.about.text))
        return replace(self, default=None, about=about)


@cache
def inputs(record: type) -> tuple[Input, ...]:
    """The documented fields of a record, in the order of its keywords.

    >>> @dataclass(frozen=True)
    ... class Sum:
    ...     a: Annotated[int, About("The first number.")]
    ...     b: Annotated[int, About("The second number.")] = 1
    >>> [(one.name, one.about.text) for one in inputs(Sum)]
    [('a', 'The first number.'), ('b', 'The second number.')]
    """
    hints, found = get_type_hints(record, include_extras=True), []
    for field in sorted(fields(record), key=lambda one: bool(one.kw_only)):
        if get_origin(hints[field.name]) is Annotated:
            kind, about = get_args(hints[field.name])[:2]
            found.append(Input(field.name, kind, field.default, about))
    return tuple(found)


def is_given(record: Any, name: str) -> bool:
    """Whether a field of a record has another value than its default."""
    value, default = getattr(record, name), type(record).__dataclass_fields__[name].default
    return value is not default and not (isinstance(value, (str, float, int)) and value == default)


def part(given: Any, record: type[S], **changes: Any) -> S:
    """The record of another type with the fields that both have, and with these changes."""
    names = {field.name for field in fields(given)} & {field.name for field in fields(record)}  # type: ignore[arg-type]
    return record(**{name: getattr(given, name) for name in names} | changes)


class Runnable(Protocol[R]):
    """A task with its inputs."""

    def run(self) -> R:
        """The result."""


def task(record: Callable[P, Runnable[R]], name: str) -> Callable[P, R]:
    """The function with the fields of a record as its parameters, which runs the record.

    Its documentation is that of the record, with a section on the parameters before the examples.
    """
    assert isinstance(record, type)
    kinds = get_type_hints(record)
    signature = inspect.signature(record)
    shown = [p.replace(annotation=kinds[p.name]) for p in signature.parameters.values()]
    known = [p.name for p in shown]

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            wrong = next((key for key in kwargs if key not in known), None)
            hint = did_you_mean(wrong, known) if wrong else ""
            raise TypeError(f"{name}() {error}.{hint}") from None
        made: Runnable[R] = record(*args, **kwargs)
        return made.run()

    call.__name__ = call.__qualname__ = name
    call.__module__ = record.__module__
    call.__doc__ = _documented(record)
    returned = inspect.signature(record.run).return_annotation  # type: ignore[attr-defined]
    call.__signature__ = inspect.Signature(shown, return_annotation=returned)  # type: ignore[attr-defined]
    call.__annotations__ = {**{p.name: p.annotation for p in shown}, "return": returned}
    return call


def _documented(record: type) -> str:
    """The docstring of a record with its parameters."""
    text, mark, examples = (inspect.getdoc(record) or "").partition("Examples\n--------\n")
    rows = [f"{one.name}\n{MARGIN}{one.about.text}{_choices(one.about)}" for one in inputs(record)]
    return "\n".join([text.rstrip(), "", "Parameters", "----------", *rows, "", mark + examples])


def _choices(about: About) -> str:
    """The values that are allowed, in a sentence."""
    return f" One of {', '.join(f'``{choice}``' for choice in about.choices)}." if about.choices else ""
