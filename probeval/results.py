"""Results as records: the JSON of a result, its JSON Schema and the columns of its CSV are its documented fields.

A field of a dataclass with a line beside it, ``judged: Annotated[int, "The number of judged pairs."]``, is a key of the
JSON. A figure that is computed is a :class:`key`, with its docstring as the line. Rows of a table are dataclasses too:
all of their fields are keys, with a line or without. A key that is :data:`UNSET` is left out.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache, cached_property
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec
import numpy as np
import pandas as pd
from msgspec import UNSET, UnsetType

from probeval.display import Described, Record, Table, summary_text

__all__ = [
    "DIALECT",
    "FLAT",
    "HIDDEN",
    "UNSET",
    "VERSION",
    "Key",
    "Named",
    "Result",
    "UnsetType",
    "changed",
    "frame",
    "json_schema",
    "json_text",
    "key",
    "keys",
    "plain",
    "return_type",
    "rows",
]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# One number for all schemas of the package. It rises when a document that was valid before can be invalid now, or the
# other way round: a key added, removed or renamed, or another type. Descriptions and key order do not count.
VERSION = 2
FLAT: Any = object()  # beside a field that is a record: its keys stand among those of the result
HIDDEN: Any = object()  # beside a field of a row: no key

R = TypeVar("R")
T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True)
class Named:
    """Beside a field: the name of its key, where that is another one."""

    name: str


class key(cached_property[T]):  # noqa: N801 - a decorator
    """A key of a result that is computed, once; its docstring is the line of documentation.

    ``@key.named("judged")`` gives it another name in the JSON than in Python; the keys of a ``@key.flat`` record stand
    among those of the result.
    """

    name: str | None = None
    is_flat = False

    @staticmethod
    def flat(compute: Callable[[Any], V]) -> key[V]:
        """A computed record whose keys stand among those of the result."""
        found = key(compute)
        found.is_flat = True
        return found

    @staticmethod
    def named(name: str) -> Callable[[Callable[[Any], V]], key[V]]:
        """The decorator of a key with this name in the JSON."""

        def made(compute: Callable[[Any], V]) -> key[V]:
            found = key(compute)
            found.name = name
            return found

        return made


@dataclass(frozen=True, repr=False)
class Key(Record):
    """A key of a record: its name, the attribute that has its value, where it is declared, and whether it is flat."""

    name: str
    attribute: str
    owner: type
    flat: bool = False
    text: str = ""

    @property
    def type(self) -> Any:
        """The type of the value, without what stands beside it."""
        declared = vars(self.owner).get(self.attribute)
        if isinstance(declared, key):
            annotation: Any = declared.func.__annotations__["return"]
        else:
            annotation = self.owner.__annotations__[self.attribute]
        kind = _resolve(annotation, self.owner.__module__)
        return get_args(kind)[0] if get_origin(kind) is Annotated else kind


class Result(Described):
    """A result: its documented fields and keys are its JSON, its tables and sentences are for people.

    A class says in :meth:`tables` and :meth:`sentences` what people read. CSV has the rows of the first key that is a
    list of records, unless :meth:`to_frame` says otherwise.
    """

    @property
    def exit_code(self) -> int:
        """The exit code of the command that prints it."""
        return 0

    def to_dict(self) -> Any:
        """The plain data that JSON prints."""
        return plain(self)

    def to_frame(self) -> pd.DataFrame:
        """The rows: labels in columns and a plain index, as CSV has them."""
        for one in keys(type(self)):
            row = _row_type(one.type)
            if row is not None:
                return frame(getattr(self, one.attribute), row)
        raise TypeError(f"{type(self).__name__} has no rows: give it a to_frame().")

    @abstractmethod
    def _headline(self) -> str:
        """A title in a few words."""

    def tables(self) -> Sequence[Table]:
        """The tables that :meth:`summary`, notebooks and the command line show."""
        return (Table(self.to_frame(), self._headline()),)

    def summary(self) -> str:
        """The result for people: its tables, and a sentence or two."""
        return summary_text(self.tables(), self.sentences())

    def to_markdown(self) -> str:
        """The tables in Markdown, with all rows."""
        return "\n\n".join(table.markdown() for table in self.tables())

    def to_latex(self) -> str:
        r"""The tables in LaTeX, with all rows; they need ``\usepackage{booktabs}``."""
        return "\n\n".join(table.latex() for table in self.tables())


@cache
def keys(record: type) -> tuple[Key, ...]:
    """The keys of a record: its fields in order, then its computed ones; empty for what is no record.

    >>> @dataclass(frozen=True)
    ... class Scored:
    ...     system: str
    ...     mean: Annotated[float, "The expected score."]
    ...     draws: Annotated[Any, HIDDEN] = None
    >>> [(one.name, one.text) for one in keys(Scored)]
    [('system', ''), ('mean', 'The expected score.')]
    """
    all_fields = not issubclass(record, Described)
    if not is_dataclass(record) or not (all_fields or issubclass(record, Result)):
        return ()  # a measure or a scale is a value, which reads back from its text
    found: dict[str, Key] = {}
    for base in reversed(record.__mro__):
        for attribute, annotation in vars(base).get("__annotations__", {}).items():
            if attribute in record.__dataclass_fields__:
                beside = _beside(annotation, base.__module__)
                lines = [one for one in beside if isinstance(one, str)]
                if HIDDEN in beside or not (all_fields or lines or FLAT in beside):
                    continue
                name = next((one.name for one in beside if isinstance(one, Named)), attribute)
                found[attribute] = Key(name, attribute, base, FLAT in beside, " ".join(lines))
    for base in reversed(record.__mro__):
        for attribute, made in vars(base).items():
            if isinstance(made, key):
                text = " ".join((inspect.getdoc(made.func) or "").split("\n\n")[0].split())
                found[attribute] = Key(made.name or attribute, attribute, base, made.is_flat, text)
            elif attribute in found and attribute not in record.__dataclass_fields__:
                del found[attribute]  # a base's key, here computed otherwise and not printed
    return tuple(found.values())


def _beside(annotation: Any, module: str) -> tuple[Any, ...]:
    """What stands beside the type of a field; types that only type checkers import are not loaded for it."""
    if isinstance(annotation, str):
        if not annotation.startswith("Annotated["):
            return ()
        tree = ast.parse(annotation, mode="eval").body
        assert isinstance(tree, ast.Subscript)
        assert isinstance(tree.slice, ast.Tuple)
        names = vars(sys.modules[module])
        return tuple(eval(ast.unparse(part), names) for part in tree.slice.elts[1:])
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _resolve(annotation: Any, module: str) -> Any:
    """A type from its annotation, also where its module imports it for type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, vars(sys.modules[module]))
    except NameError:
        return eval(annotation, {**vars(sys.modules[module]), **_for_checkers(module)})


def return_type(function: Callable[..., Any]) -> Any:
    """The type that a function returns, None left out; None if it returns nothing."""
    kind = _resolve(function.__annotations__.get("return"), function.__module__)
    if get_origin(kind) in (Union, types.UnionType):
        return Union[tuple(part for part in get_args(kind) if part is not types.NoneType)]  # noqa: UP007
    return kind


@cache
def _for_checkers(module: str) -> dict[str, Any]:
    """The names that a module imports for type checkers only."""
    names: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(ast.unparse(ast.Module(node.body, [])), names)
    return names


def plain(value: Any) -> Any:
    """A result as plain data: dicts, lists, texts and numbers.

    >>> plain({"mean": np.float64(0.5), "ranks": np.arange(2), "systems": ("a", "b")})
    {'mean': 0.5, 'ranks': [0, 1], 'systems': ['a', 'b']}
    """
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Enum):
        return value.value
    kind: type = type(value)
    declared = keys(kind)
    if declared:
        found: dict[str, Any] = {}
        for one in declared:
            inner = getattr(value, one.attribute)
            if inner is UNSET:
                continue
            found |= plain(inner) if one.flat else {one.name: plain(inner)}
        return dict(sorted(found.items(), key=lambda item: isinstance(item[1], list)))  # lists last, for the reader
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    return str(value)


def changed(result: R, **values: Any) -> R:
    """A copy of a result with other values of some fields; what it has computed stays, its keys aside."""
    made, kind = copy(result), cast("type", type(result))
    for one in keys(kind):
        if isinstance(vars(one.owner).get(one.attribute), key):
            vars(made).pop(one.attribute, None)
    vars(made).update(values)
    return made


def json_text(value: Any) -> str:
    """A result as JSON; numbers that are not finite are null."""
    return msgspec.json.format(msgspec.json.encode(plain(value)), indent=2).decode()


def rows(kind: type[R], **columns: Iterable[Any]) -> tuple[R, ...]:
    """Records from columns, each a list or an array.

    >>> @dataclass(frozen=True)
    ... class Scored:
    ...     system: str
    ...     mean: float
    >>> rows(Scored, system=["a", "b"], mean=np.array([0.5, 0.25]))[1].mean
    0.25
    """
    lists = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns.values()]
    return tuple(kind(**dict(zip(columns, values, strict=True))) for values in zip(*lists, strict=True))


def frame(records: Iterable[Any], kind: type) -> pd.DataFrame:
    """Records as a table, one row each, with their keys as columns; numbers that are not known are NaN.

    Parameters
    ----------
    records
        The rows.
    kind
        Their class, which names the columns where there are no rows. A column that is unset in all rows is left out.
    """
    found = [plain(record) for record in records]
    declared = {one.name: one.type for one in _flattened(kind)}
    optional = {name for name, inner in declared.items() if UnsetType in get_args(inner)}
    names = [name for name in declared if name not in optional or any(name in row for row in found)]
    made = pd.DataFrame({name: pd.Series([_cell(row.get(name)) for row in found], dtype=object) for name in names})
    numbers = {name: float for name in names if made[name].isna().any() and _is_number(declared[name])}
    return made.infer_objects().astype(numbers)


def _cell(value: Any) -> Any:
    """A value as a cell of a table: lists as text."""
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _is_number(kind: Any) -> bool:
    """Whether the values of a type are numbers, where they are known."""
    inside = set(get_args(kind) or (kind,)) - {type(None), UnsetType}
    return bool(inside) and inside <= {int, float}


def _flattened(kind: type) -> list[Key]:
    """The keys of a record, with those of flat records in their places."""
    found: list[Key] = []
    for one in keys(kind):
        found += _flattened(one.type) if one.flat else [one]
    return found


def _row_type(kind: Any) -> type | None:
    """The record in a type such as ``tuple[Record, ...]``; None for other types."""
    inside = get_args(kind)
    if get_origin(kind) in (tuple, list, Sequence) and isinstance(inside[0], type) and keys(inside[0]):
        return inside[0]
    return None


def json_schema(kind: Any, *, title: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a record, of a list of them, or of a union of such.

    Parameters
    ----------
    kind
        The type. Keys that it does not name are not allowed.
    title
        What the document is.

    Examples
    --------
    >>> json_schema(dict[str, list[float]], title="shares")["additionalProperties"]["items"]
    {'anyOf': [{'type': 'number'}, {'type': 'null'}]}
    """
    parts = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    roots, defined = msgspec.json.schema_components([_json_type(part) for part in parts], ref_template="#/$defs/{name}")
    root = roots[0] if len(roots) == 1 else {"anyOf": list(roots)}
    head = {"$schema": DIALECT, "title": title, "x-version": VERSION}
    return {**head, **root, **({"$defs": defined} if defined else {})}


def _json_type(kind: Any) -> Any:
    """The type of the JSON of a value, for msgspec: structs for records, null for numbers that are not finite."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind is float:
        return float | None
    if kind in (str, int, bool, None, type(None), Any, UnsetType) or origin is Literal:
        return kind
    if kind is object:
        return Any
    if isinstance(kind, TypeVar):
        return _json_type(kind.__bound__)
    if origin is Annotated:
        return _json_type(inside[0])
    if origin in (tuple, list, Sequence, frozenset, set):
        return list[_json_type(inside[0])]  # type: ignore[misc]
    if origin in (dict, Mapping):
        return dict[str, _json_type(inside[1])]  # type: ignore[misc]
    if origin in (Union, types.UnionType):
        return Union[tuple(_json_type(part) for part in inside)]  # noqa: UP007 - of types that are only known here
    record = origin or kind
    if isinstance(record, type) and issubclass(record, Enum):
        return Literal[tuple(member.value for member in record)]
    return _struct(record) if keys(record) else str


@cache
def _struct(record: type) -> type:
    """The JSON of a record as a struct of msgspec."""
    fields: list[Any] = []
    for one in _flattened(record):
        kind = _json_type(one.type)
        kind = Annotated[kind, msgspec.Meta(description=one.text)] if one.text else kind
        fields.append((one.name, kind, UNSET) if UnsetType in get_args(one.type) else (one.name, kind))
    made = msgspec.defstruct(record.__name__, fields, kw_only=True, forbid_unknown_fields=True)
    made.__doc__ = " ".join((inspect.getdoc(record) or "").split("\n\n")[0].split())
    return made
