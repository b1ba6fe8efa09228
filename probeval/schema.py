"""JSON Schema of plain data, from the TypedDicts that say what it is.

A result's ``to_dict()`` returns a TypedDict, so the type checker proves that the code writes what the type says; the
schema is made from the same type, so it cannot say anything else.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, NotRequired, Required, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from typing import is_typeddict as _is_typeddict

import pandas as pd

__all__ = ["DIALECT", "VERSION", "json_schema", "records"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# One number for all schemas of the package. It rises when a document that was valid before can be invalid now, or the
# other way round: a key added, removed or renamed, or another type. Descriptions and key order do not count.
VERSION = 1

T = TypeVar("T")

PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": ["number", "null"]},  # a number that is not finite is printed as null
    type(None): {"type": "null"},
    Any: {},
    object: {},
}


def records(frame: pd.DataFrame, kind: type[T]) -> list[T]:
    """The rows of a table as plain data of one type, a TypedDict whose keys the columns must be.

    Examples
    --------
    >>> from typing import TypedDict
    >>> class Row(TypedDict):
    ...     system: str
    ...     mean: float
    >>> records(pd.DataFrame({"system": ["a"], "mean": [0.5]}), Row)
    [{'system': 'a', 'mean': 0.5}]
    """
    fields = _fields(kind)
    columns = set(map(str, frame.columns))
    required = {name for name, (_, needed) in fields.items() if needed}
    if not required <= columns <= fields.keys():
        wrong = sorted((required - columns) | (columns - fields.keys()))
        raise TypeError(f"{kind.__name__} and the columns of the table differ in {', '.join(wrong)}.")
    return cast("list[T]", frame.to_dict("records"))


def json_schema(kind: Any, *, title: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a type: a TypedDict, a list or a union of such, and what these hold.

    Parameters
    ----------
    kind
        The type. Keys that it does not name are not allowed.
    title
        What the document is.

    Examples
    --------
    >>> json_schema(dict[str, list[float]], title="shares")["additionalProperties"]["items"]
    {'type': ['number', 'null']}
    """
    defined: dict[str, dict[str, Any]] = {}
    root = _schema(kind, defined)
    found = {"$schema": DIALECT, "title": title, "x-version": VERSION, **root}
    return found | ({"$defs": dict(sorted(defined.items()))} if defined else {})


def _schema(kind: Any, defined: dict[str, dict[str, Any]]) -> dict[str, Any]:
    origin, inside = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return dict(PLAIN[kind])
    if _is_typeddict(kind):
        return _reference(kind, defined)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if origin is Literal:
        return {"const": inside[0]} if len(inside) == 1 else {"enum": list(inside)}
    if origin is list:
        return {"type": "array", "items": _schema(inside[0], defined)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(inside[1], defined)}
    if origin in (Union, types.UnionType):
        return _union([_schema(part, defined) for part in inside])
    raise TypeError(
        f"No JSON Schema for {kind!r}: use str, int, bool, float, None, Literal, list, dict or a TypedDict."
    )


def _union(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Plain types together as one list of names; anything else as alternatives."""
    if all(part.keys() == {"type"} for part in parts):
        names = [name for part in parts for name in ([part["type"]] if isinstance(part["type"], str) else part["type"])]
        return {"type": list(dict.fromkeys(names))}
    return {"anyOf": parts}


def _reference(kind: Any, defined: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A TypedDict by reference, its definition made once."""
    name = kind.__name__
    if name not in defined:
        defined[name] = {}  # a place, so that a type that names itself ends here
        described, fields = _descriptions(kind), _fields(kind)
        properties = {}
        for key, (inner, _) in fields.items():
            properties[key] = _schema(inner, defined) | ({"description": described[key]} if key in described else {})
        text = inspect.getdoc(kind) or ""
        defined[name] = {
            "type": "object",
            "description": " ".join(text.split("\n\n")[0].split()),
            "properties": properties,
            "required": [key for key, (_, needed) in fields.items() if needed],
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}


def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The keys of a TypedDict: the type of each, and whether it must be there.

    ``__required_keys__`` does not see ``NotRequired`` behind postponed annotations before Python 3.12.
    """
    found = {}
    for key, hint in get_type_hints(kind, include_extras=True).items():
        needed = get_origin(hint) is not NotRequired
        found[key] = (get_args(hint)[0] if get_origin(hint) in (NotRequired, Required) else hint, needed)
    return found


def _descriptions(kind: Any) -> dict[str, str]:
    """The description of each key in the ``Parameters`` of a docstring; keys on one line share one."""
    text = inspect.getdoc(kind) or ""
    section = re.search(r"^Parameters\n-+\n(.*)", text, re.DOTALL | re.MULTILINE)
    found: dict[str, str] = {}
    if section is None:
        return found
    names: list[str] = []
    for line in section[1].splitlines():
        if line[:1].strip():
            names = [name.strip() for name in line.split(",")]
        else:
            found |= {name: f"{found.get(name, '')} {line.strip()}".strip() for name in names}
    return found
