"""Answers of a server, kept in an SQLite file: what was answered once is never asked again.

An answer is kept under a digest of what it depends on: the model, the question with both texts, the parameters, and
which of several samples it is. Texts and keys are not kept. Every answer is on disk before its thread asks the next
question, so a process that is killed loses no more than the requests in flight.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from os import PathLike
from pathlib import Path

from probeval.errors import DataError

__all__ = ["AnswerCache", "KeptAnswer"]

WAIT = 30.0  # seconds for another process that writes
AT_ONCE = 500  # digests of one query


@dataclass(frozen=True)
class KeptAnswer:
    """A kept answer.

    Parameters
    ----------
    key
        The digest of the question.
    query, doc
        The pair.
    grade
        The grade; None if the answer was none, which is a failure.
    shares
        The probabilities of the grades, as numbers with spaces between; empty without.
    reason
        Of a failure: what came instead of a grade.
    model, without
        The model by the server's own name, and what it refused of the request.
    tokens_in, tokens_out
        The size of question and answer.
    time
        When it came, in seconds since 1970.
    """

    key: str
    query: str
    doc: str
    grade: int | None
    shares: str
    reason: str
    model: str
    without: str
    tokens_in: int
    tokens_out: int
    time: float

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The probabilities of the grades; empty without."""
        return tuple(map(float, self.shares.split()))


COLUMNS = [one.name for one in fields(KeptAnswer)]


class AnswerCache:
    """The answers in a file; threads and processes may share it.

    Examples
    --------
    >>> with AnswerCache(":memory:") as cache:
    ...     cache.keep(KeptAnswer("k", "q1", "d1", 2, "", "", "llm-1", "", 300, 1, 0.0))
    ...     cache.find(["k", "other"])["k"].grade
    2
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path, self._lock = Path(path), threading.Lock()
        with self._reading():
            self._database = sqlite3.connect(str(path), timeout=WAIT, check_same_thread=False, isolation_level=None)
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = normal")
            known = {name for (name,) in self._database.execute("select name from sqlite_master where type = 'table'")}
            if known - {"answers"}:
                self._database.close()
                raise DataError("it is a database of something else. Name another file with --cache.", path=path)
            self._database.execute(f"create table if not exists answers ({', '.join(COLUMNS)}, primary key (key))")

    def __repr__(self) -> str:
        return f"<AnswerCache: {self.path}>"

    def find(self, keys: Sequence[str]) -> dict[str, KeptAnswer]:
        """The answers to these questions that are grades."""
        return {one.key: one for one in self._of(keys) if one.grade is not None}

    def failures(self, keys: Sequence[str]) -> dict[str, KeptAnswer]:
        """The failures of these questions."""
        return {one.key: one for one in self._of(keys) if one.grade is None}

    def keep(self, answer: KeptAnswer) -> None:
        """Keep an answer; it is on disk when this returns."""
        with self._lock, self._reading():
            marks = ", ".join("?" * len(COLUMNS))
            self._database.execute(f"insert or replace into answers values ({marks})", astuple(answer))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _of(self, keys: Sequence[str]) -> Iterator[KeptAnswer]:
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            with self._lock, self._reading():
                rows = self._database.execute(
                    f"select {', '.join(COLUMNS)} from answers where key in ({', '.join('?' * len(part))})", part
                ).fetchall()
            yield from (KeptAnswer(*row) for row in rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn errors of SQLite into one line."""
        try:
            yield
        except sqlite3.Error as error:
            raise DataError(
                f"the cache of answers cannot be used: {error}. Name another with --cache.", path=self.path
            ) from None
