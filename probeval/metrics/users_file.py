"""Users as a file: their mapping to satisfaction and their preferences, for ``--mapping FILE``."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from probeval.data.files import read_bytes, write_bytes
from probeval.errors import DataError

__all__ = ["AgreementCounts", "MappingCurve", "UsersFile", "is_users_file", "read_users_file", "write_users_file"]

FORMAT: Literal["probeval users"] = "probeval users"
VERSION = 1
TENTHS = 10
PARTS = ("better", "neither", "worse")


class MappingCurve(TypedDict):
    """The polynomial of a mapping to satisfaction, and its residual."""

    coefficients: list[float]
    residual: float


class AgreementCounts(TypedDict):
    """The numbers of users who prefer the better list, neither, or the worse one, by tenths of the difference."""

    better: list[int]
    neither: list[int]
    worse: list[int]


class UsersFile(TypedDict):
    """The users of one study, for the measure that the name states."""

    format: Literal["probeval users"]
    version: int
    name: str
    origin: str
    mapping: MappingCurve | None
    agreement: AgreementCounts


def is_users_file(name: str | PathLike[str]) -> bool:
    """Whether a mapping is named by a file, not by its published name."""
    return str(name).lower().endswith(".json")


def write_users_file(path: Path, users: UsersFile) -> None:
    """Write the users of a study."""
    write_bytes(path, f"{json.dumps(users, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode())


def read_users_file(path: Path) -> UsersFile:
    """Read the users of a study; anything else is refused."""
    try:
        found = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise DataError("not a file of users: expected one that 'probeval users report --save' wrote.", path=path)
    if found.get("version") != VERSION:
        raise DataError(f"users of version {found.get('version')!r}: this probeval reads {VERSION}.", path=path)
    curve, counts = found.get("mapping"), found.get("agreement")
    fits = isinstance(found.get("name"), str) and isinstance(found.get("origin"), str)
    fits = fits and (curve is None or _is_curve(curve))
    if not fits or not isinstance(counts, dict) or not all(map(_is_count, map(counts.get, PARTS))):
        raise DataError(
            "damaged: expected a name, an origin, the coefficients and the residual of a mapping, and the numbers "
            f"better, neither and worse of {TENTHS} tenths. Write it again with 'probeval users report --save'.",
            path=path,
        )
    return cast("UsersFile", found)


def _is_curve(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("coefficients"), list) or not value["coefficients"]:
        return False
    values = [*value["coefficients"], value.get("residual")]
    return all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values)


def _is_count(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == TENTHS
        and all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in value)
    )
