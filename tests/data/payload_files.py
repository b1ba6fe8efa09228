"""Payloads of other tools, and every way to spoil one value of a payload."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from probeval.errors import DataError

PAYLOADS = Path(__file__).parent / "payloads"
WRONG = (None, 7, "x y", [], {}, float("nan"))


def refusals(read: Callable[[Path], Any], source: Path, scratch: Path, *, keys: Collection[str]) -> list[str]:
    """The errors of a reader on a payload with one value of these keys spoiled, value by value.

    Any error that is not a DataError is raised.
    """
    said = []
    for changed in spoiled(json.loads(source.read_text()), keys):
        scratch.write_text(json.dumps(changed))
        try:
            read(scratch)
        except DataError as error:
            said.append(str(error))
    return said


def spoiled(payload: Any, keys: Collection[str]) -> Iterator[Any]:
    """The payload with a value of one of these keys replaced or left out, or the first entry of an array replaced."""
    for where in _places(payload, keys):
        for wrong in WRONG:
            changed = copy.deepcopy(payload)
            _holder(changed, where)[where[-1]] = wrong
            yield changed
        changed = copy.deepcopy(payload)
        del _holder(changed, where)[where[-1]]
        yield changed
    yield from ({}, [])


def _places(payload: Any, keys: Collection[str], at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = [0] if isinstance(payload, list) and payload else []
    inner = [key for key in payload if key in keys] if isinstance(payload, dict) else inner
    for key in inner:
        yield (*at, key)
        yield from _places(payload[key], keys, (*at, key))


def _holder(payload: Any, where: tuple[Any, ...]) -> Any:
    for key in where[:-1]:
        payload = payload[key]
    return payload
