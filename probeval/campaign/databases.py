"""The databases that stores are kept in: how SQLite files and PostgreSQL are opened, and what their errors mean."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

from probeval.errors import StoreError

__all__ = [
    "BUSY",
    "DAMAGED",
    "PATIENCE",
    "FileIdentity",
    "claim_file",
    "mark_as_closed",
    "mark_as_open",
    "open_postgres",
    "open_sqlite",
    "reason_of",
    "server_lock",
    "sqlite_file",
    "was_left_open",
]

PATIENCE = 10.0  # seconds to wait for another process that writes


class FileIdentity:
    """The files that were opened, to notice that others have their names: the database, its log and the log's index.

    A connection stays with the files that it opened, so a store whose file or write-ahead log (``-wal``) is deleted,
    moved or replaced would take judgments that are lost at the end. Processes lock the index (``-shm``): with two of
    them they would write over each other.

    Parameters
    ----------
    file
        The database, which exists.
    connection
        A connection that has read it. It is kept until the end, because SQLite removes the log with the last one.
    """

    def __init__(self, file: Path, connection: PoolProxiedConnection) -> None:
        self._file, self._connection = str(file), connection
        self._real = os.path.realpath(file)  # SQLite follows links too: the log lies beside this name
        self._opened = _place(os.lstat(self._real))
        self._beside = {name: _place_if_any(name) for name in (f"{self._real}-wal", f"{self._real}-shm")}

    def check(self) -> None:
        """Raise an error if a name no longer leads to its file, or the database has another name too."""
        try:
            named, real = os.stat(self._file), os.lstat(self._real)  # noqa: PTH116
        except OSError:
            raise StoreError(f"{self._file}: deleted or moved while it was open. {UNSAVED}") from None
        if _place(named) != self._opened:
            raise StoreError(f"{self._file}: replaced by another file while it was open. {UNSAVED}")
        if _place(real) != self._opened:
            raise StoreError(f"{self._file}: moved while it was open, and linked. {UNSAVED}")
        if named.st_nlink > 1:  # the write-ahead log lies beside the name, so each name would have its own
            raise StoreError(f"{self._file}: the file has {named.st_nlink} names (hard links). Remove all but one.")
        for name, opened in self._beside.items():
            now = _place_if_any(name)
            if now != opened:
                if now is None:
                    self._rescue()
                raise StoreError(
                    f"{name}: deleted, moved or replaced while the store was open. Nothing was saved since. Stop the "
                    "server by Ctrl+C or SIGTERM, not by kill -9, and start it again."
                )

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def _rescue(self) -> None:
        """Copy the log, which only open connections still have, into the database.

        No other process has opened the store since, or there would be a new log.
        """
        with suppress(sqlite3.Error):
            self._connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")


UNSAVED = "Nothing was saved since. Put the file back, or restore a backup, and start again."


def _place(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _place_if_any(name: str) -> tuple[int, int] | None:
    try:
        return _place(os.stat(name))  # noqa: PTH116
    except OSError:
        return None


def sqlite_file(text: str) -> Path | None:
    """The file that a path or an SQLite URL names; None for another URL."""
    if "://" not in text:
        return Path(text)
    return Path(text.removeprefix("sqlite:///").removeprefix("sqlite://")) if text.startswith("sqlite:") else None


def open_sqlite(file: Path, *, create: bool, read_only: bool) -> sa.Engine:
    """Connections to an SQLite file, whose commits are on disk when they return."""
    if not create and not file.exists():
        raise StoreError(f"{file}: no such store. Create one first: probeval campaign create.")
    _refuse_without_log(file)
    _refuse_another_log(file, read_only=read_only)
    modes = ["ro", "ro&immutable=1"] if read_only else ["rwc" if create else "rw"]
    if create:
        claim_file(file)
    fresh = create and (not file.exists() or file.stat().st_size == 0)

    def connect() -> sqlite3.Connection:
        for mode in modes:
            if "immutable" in mode:
                _refuse_unread(file)
            address = f"file:{quote(str(file.absolute()))}?mode={mode}"
            connection = sqlite3.connect(
                address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                # Reading may need files beside the database that this user cannot create: try it.
                connection.execute(
                    "PRAGMA journal_mode = WAL" if fresh else "SELECT name FROM sqlite_master"
                ).fetchall()
            except sqlite3.Error:
                connection.close()
                if mode == modes[-1]:
                    raise
            else:
                return connection
        raise AssertionError

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool, pool_timeout=PATIENCE)
    sa.event.listen(
        engine,
        "begin",
        lambda connection: connection.exec_driver_sql(
            "BEGIN IMMEDIATE" if connection.get_execution_options().get("writing") else "BEGIN"
        ),
    )
    return engine


def claim_file(file: Path) -> None:
    """Create a file that only this user can read and write, unless it exists; SQLite reports what is wrong with it."""
    with suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def mark_as_open(connection: sa.Connection) -> None:
    """Write into the file, in the transaction under way, that events may lie in a log beside it."""
    if connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal":
        connection.exec_driver_sql(f"PRAGMA user_version = {IN_USE}")


def mark_as_closed(file: Path) -> None:
    """Write into a file that no one has open that all of its events are in it; where someone has, nothing is done."""
    address = f"file:{quote(os.path.realpath(file))}?mode=rw"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True, timeout=0)) as alone:
        alone.execute("PRAGMA locking_mode = EXCLUSIVE")
        if alone.execute("PRAGMA user_version").fetchone() == (IN_USE,):
            alone.execute("PRAGMA user_version = 0")


def was_left_open(file: Path) -> bool:
    """Whether a file was in use when it was last written, and its log is not beside it: a copy of the file alone."""
    real = os.path.realpath(file)
    for patience in (0.0, 0.05, 0.2):  # between the removal of the log and the mark, for one that closes just now
        time.sleep(patience)
        try:  # the file alone, through SQLite: reading it past SQLite would free the locks of this process
            with closing(sqlite3.connect(f"file:{quote(real)}?mode=ro&immutable=1", uri=True)) as alone:
                marked = alone.execute("PRAGMA user_version").fetchone() == (IN_USE,)
        except sqlite3.Error:
            return False  # opening it says what is wrong
        log = Path(f"{real}-wal")  # those who only read it leave an empty one
        if not marked or (log.exists() and log.stat().st_size):
            return False
    return True


IN_USE = 1  # of SQLite's user_version, which the file has in its header


def server_lock(file: Path, name: str) -> sqlite3.Connection:
    """A lock on a file, held until it is closed; an error if another server holds it.

    SQLite refuses to lock a file that was opened and has lost its name since.

    Parameters
    ----------
    file
        The file; it is made if there is none, and stays.
    name
        The name of the store, for the error.
    """
    claim_file(file)
    lock = sqlite3.connect(file, timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" in str(error):
            raise StoreError(f"{name}: another server is using this store. Use it or stop it first.") from None
        raise StoreError(f"{file}: {reason_of(error)}") from None
    return lock


def _refuse_without_log(file: Path) -> None:
    """Refuse a file whose write-ahead log was deleted, or lies beside a link that has taken the file's name.

    SQLite would open it without the events in that log, and nothing would show that there were any.
    """
    real = os.path.realpath(file)
    wal, index, other = f"{real}-wal", f"{real}-shm", f"{file}-wal"
    # The log is made before its index and removed after it. Looking twice leaves out a store that opens or closes now.
    if not _place_if_any(wal) and _place_if_any(index) and not _place_if_any(wal):
        raise StoreError(
            f"{wal}: deleted while the store was open, so the latest events may be lost. Put it back, or restore a "
            f"backup. To go on with the events that are left, stop all that use the store and delete {index}."
        )
    if file.is_symlink() and _place_if_any(other) not in (None, _place_if_any(wal)) and os.stat(other).st_size:  # noqa: PTH116
        raise StoreError(
            f"{other}: has events of a store that was moved to {real} and linked. Stop all that use the store, and put "
            "the file back in the place of the link. To go on without these events, delete their file."
        )


def _refuse_another_log(file: Path, *, read_only: bool) -> None:
    """Refuse a store that another process has open, and whose log or index was deleted: SQLite would make new ones.

    With two logs or two indexes, each process would write over the events of the other.
    """
    real = os.path.realpath(file)
    until = time.monotonic() + PATIENCE
    while not (_place_if_any(f"{real}-wal") and (read_only or _place_if_any(f"{real}-shm"))):
        try:  # a lock that is only had if no other connection is open; reading takes it
            with closing(sqlite3.connect(f"file:{quote(real)}?mode=rw", uri=True, timeout=0)) as alone:
                alone.execute("PRAGMA locking_mode = EXCLUSIVE")
                alone.execute("SELECT name FROM sqlite_master").fetchall()
            return
        except sqlite3.Error as error:
            if "locked" not in str(error):
                return  # opening it says what is wrong
        if time.monotonic() > until:
            raise StoreError(
                f"{file}: its -wal or -shm file is gone, and another process still has the store open. Stop that "
                "process by Ctrl+C or SIGTERM, not by kill -9, and try again."
            )
        time.sleep(0.01)  # it is just being opened or closed


def _refuse_unread(file: Path) -> None:
    """Refuse to read a file alone while its write-ahead log has events that are not in it yet."""
    wal = Path(f"{file.resolve()}-wal")
    if wal.exists() and wal.stat().st_size:
        raise StoreError(
            f"{file}: its latest events are in {wal.name}, which cannot be read here. Copy both files to a folder that "
            "you can write to, and read them there."
        )


def open_postgres(text: str, *, read_only: bool) -> tuple[str, sa.Engine]:
    """The name of a PostgreSQL database, without its password, and connections to it."""
    try:
        url = sa.make_url(text)
        if url.drivername not in ("postgres", "postgresql", "postgresql+psycopg"):
            raise ValueError
        url = url.set(drivername="postgresql+psycopg")
        patience = {"connect_timeout": max(2, round(PATIENCE))}
        engine = sa.create_engine(url, pool_pre_ping=True, pool_timeout=PATIENCE, connect_args=patience)
    except (ArgumentError, ValueError):
        raise StoreError("A store must be the path of an SQLite file or a postgresql:// URL; got neither.") from None
    except ImportError:
        raise StoreError("PostgreSQL needs psycopg: pip install 'probeval[postgres]'.") from None

    def prepare(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit TO on")  # a commit that returned is on disk
            cursor.execute(f"SET lock_timeout TO {round(1000 * PATIENCE)}")
            if read_only:
                cursor.execute("SET default_transaction_read_only TO on")
        connection.commit()

    sa.event.listen(engine, "connect", prepare)
    return url.render_as_string(hide_password=True), engine


def reason_of(error: DBAPIError | sqlite3.Error, *, opened: bool = False) -> str:
    """The cause of a database error, and what to do about it.

    Parameters
    ----------
    error
        The error.
    opened
        Whether the store was opened before, so that it was a store then.
    """
    cause = error.orig if isinstance(error, DBAPIError) else error
    if getattr(cause, "sqlite_errorname", "") == "SQLITE_IOERR_SHMSIZE":  # the index of the write-ahead log cannot grow
        return FULL
    text = str(cause).strip()
    message = text.splitlines()[0].rstrip(".") if text else "no reason given"
    for part, known in (REASONS | (WHILE_OPEN if opened else {})).items():
        if part in message.lower():
            return known
    return f"{message[0].lower()}{message[1:]}."


FULL = "the disk is full; this step was not saved, all earlier ones were. Free some space and try again."
DAMAGED = "the file is damaged. Restore it from a backup."
BUSY = f"another process has been writing for {PATIENCE:g} seconds; this step was not saved. Stop it, or try again."
REASONS = {
    "disk is full": FULL,
    "no space left": FULL,
    "database is locked": BUSY,
    "due to lock timeout": BUSY,
    "readonly database": "cannot be written: the file or its folder is read-only here.",
    "read-only transaction": "open for reading only.",
    "file is not a database": "not a store of campaigns. Create one first.",
    "malformed": DAMAGED,
    "disk i/o error": "the disk failed, or the file was cut short; this step was not saved. Restore a backup.",
    "could not decode": DAMAGED,
    "unable to open": "cannot be opened: no such folder, or no permission.",
}
WHILE_OPEN = {"file is not a database": DAMAGED, "no such table": DAMAGED, "no such column": DAMAGED}
