"""A PostgreSQL server of our own, which listens on a socket in its own folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import quote

NUMBERS = count()


def is_installed() -> bool:
    """Whether the programs of a server are here."""
    return bool(_programs())


def _programs() -> list[Path]:
    return sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server, and stop it at the end; the URL of its database."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user: dict[str, object] = {}
    if os.geteuid() == 0:  # the server does not run as root, but as its own user
        shutil.chown(folder, "postgres", "postgres")
        user = {"user": "postgres", "group": "postgres", "extra_groups": []}
    programs, data = _programs()[-1].parent, folder / "data"

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [programs / program, *arguments], cwd=folder, capture_output=True, text=True, check=False, **user
        )
        assert done.returncode == 0, done.stdout + done.stderr

    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    try:
        run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
        run("pg_ctl", "-D", str(data), "-w", "-s", "-l", str(folder / "log"), "-o", options, "start")
        yield f"postgresql://postgres@/postgres?host={quote(str(folder))}"
        run("pg_ctl", "-D", str(data), "-w", "-s", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_schema(url: str) -> str:
    """The URL of a new, empty schema of a server: a store of its own."""
    import psycopg

    name = f"s{next(NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}&options=-csearch_path%3D{name}"
