"""Users as a file: their mapping to satisfaction and their preferences, for ``--mapping FILE``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated

import msgspec

from probeval.data.files import read_bytes, write_bytes
from probeval.errors import DataError
from probeval.results import plain

__all__ = ["AgreementCounts", "MappingCurve", "UsersFile", "is_users_file", "read_users_file", "write_users_file"]

FORMAT = "probeval users"
VERSION = 1
TENTHS = 10

Counts = Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(min_length=TENTHS, max_length=TENTHS)]


@dataclass(frozen=True)
class MappingCurve:
    """The polynomial of a mapping to satisfaction, and its residual."""

    coefficients: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]
    residual: float


@dataclass(frozen=True)
class AgreementCounts:
    """The numbers of users who prefer the better list, neither, or the worse one, by tenths of the difference."""

    better: Counts
    neither: Counts
    worse: Counts


@dataclass(frozen=True)
class UsersFile:
    """The users of one study, for the measure that the name states."""

    name: str
    origin: str
    mapping: MappingCurve | None
    agreement: AgreementCounts


def is_users_file(name: str | PathLike[str]) -> bool:
    """Whether a mapping is named by a file, not by its published name."""
    return str(name).lower().endswith(".json")


def write_users_file(path: Path, users: UsersFile) -> None:
    """Write the users of a study."""
    document = {"format": FORMAT, "version": VERSION, **plain(users)}
    write_bytes(path, f"{json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode())


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
    try:
        return msgspec.convert(found, UsersFile)
    except msgspec.ValidationError:
        raise DataError(
            "damaged: expected a name, an origin, the coefficients and the residual of a mapping, and the numbers "
            f"better, neither and worse of {TENTHS} tenths. Write it again with 'probeval users report --save'.",
            path=path,
        ) from None
