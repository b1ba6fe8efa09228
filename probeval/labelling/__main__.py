"""Serve a table of grades over the chat protocol on this machine: ``python -m probeval.labelling TABLE``."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Sequence
from pathlib import Path

from probeval.data.tables import read_table
from probeval.data.texts import read_texts
from probeval.errors import DataError
from probeval.labelling.server import Behaviour, LoopbackServer

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m probeval.labelling", description=__doc__)
    parser.add_argument("table", type=Path, help="a table with the columns query, doc and grade")
    parser.add_argument("--queries", type=Path, required=True, help="the texts of queries")
    parser.add_argument("--docs", type=Path, required=True, help="the texts of documents")
    parser.add_argument("--port", type=int, default=8000, help="its port (8000)")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds until an answer (0)")
    given = parser.parse_args(arguments)
    table, queries, docs = read_table(given.table), read_texts(given.queries, "query"), read_texts(given.docs, "doc")
    missing = {"query", "doc", "grade"} - set(table.columns)
    if missing:
        raise DataError(
            f"expected the columns query, doc and grade; {', '.join(sorted(missing))} missing.", path=given.table
        )
    rows = zip(table["query"], table["doc"], table["grade"], strict=True)
    grades = {(queries.get(query, ""), docs.get(doc, "")): int(float(grade)) for query, doc, grade in rows}
    n_grades = max(grades.values()) + 1
    with LoopbackServer(grades, n_grades=n_grades, behaviour=Behaviour(delay=given.delay), port=given.port) as server:
        print(f"{server.base_url} answers for {len(grades):,} pairs. Ctrl-C ends it.", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
