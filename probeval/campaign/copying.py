"""Backup and restore: a store copied into a new one, of either kind, while it is in use."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path

from probeval.campaign.checking import StoreCheck, check_store
from probeval.campaign.databases import sqlite_file
from probeval.campaign.log import Store
from probeval.errors import StoreError

__all__ = ["copy_store"]


def copy_store(source: str | Path, target: str | Path) -> StoreCheck:
    """Copy a store, as it is at one moment, and check the copy.

    Judging goes on meanwhile. Nothing is ever overwritten: a file that exists and a database that has campaigns are
    refused. A file gets its name when it is complete and checked.

    Parameters
    ----------
    source, target
        The path of an SQLite file, or a PostgreSQL URL.
    """
    file = sqlite_file(str(target))
    origin = Store(source, read_only=True)
    try:
        if file is None:
            copy = Store(target, create=True)
            try:
                origin.copy_to(copy)
                return replace(_sound(copy), warnings=tuple(origin.warnings()))
            finally:
                copy.close()
        return _copied(origin, file)
    finally:
        origin.close()


def _copied(origin: Store, file: Path) -> StoreCheck:
    """Copy into a file under another name, check it, and give it its name."""
    if file.exists():
        raise StoreError(f"{file}: exists already, and nothing is overwritten. Use another name.")
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}.part")
    try:
        copy = Store(draft, create=True)
        try:
            origin.copy_to(copy)
            found = _sound(copy)
        finally:
            copy.close()
        _publish(draft, file)
        return replace(found, store=str(file), warnings=tuple(origin.warnings()))
    finally:
        for end in ("", "-wal", "-shm"):
            Path(f"{draft}{end}").unlink(missing_ok=True)


def _sound(copy: Store) -> StoreCheck:
    found = check_store(copy)
    if found.faults:
        raise StoreError(f"The copy has {len(found.faults)} faults, as the original has: {found.faults[0]}")
    return found


def _publish(draft: Path, file: Path) -> None:
    """Give a complete file its name, unless another file has it."""
    try:
        with draft.open("rb") as content:
            os.fsync(content.fileno())
        os.link(draft, file)
    except FileExistsError:
        raise StoreError(f"{file}: exists already, and nothing is overwritten. Use another name.") from None
    except OSError as error:
        raise StoreError(f"{file}: cannot be written: {error.strerror or error}.") from None
