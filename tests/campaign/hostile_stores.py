"""Damaged stores: values of another type, out of range or missing, JSON that was cut, references to nothing.

Each is used in every way, by the campaign, its page, the check and the copy: what cannot be read is an error of one
line.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from probeval.campaign import Campaign, Store, check_store, copy_store
from probeval.campaign.archive import digest_of
from probeval.campaign.exchange import export_formats
from probeval.campaign.log import TABLES, chained
from probeval.data import Runs, Scale
from probeval.errors import ProbevalError, StoreError
from probeval.relevance import synthetic_campaign
from probeval.results import json_text
from probeval.satisfaction import choose_lists
from probeval.web import Board, Limiter, Roster, application
from tests.attack.cases import Attack, Attempt, Tally, in_memory, is_one_line
from tests.data.hostile_files import VALUES, WORDS, json_places, spoiled_bytes
from tests.web.asking import Client

OLD = Path(__file__).parents[1] / "compatibility"
HOST = "judge.test"
PAGES = ("/", "/progress", "/overview", "/adjudicate", "/export/log")
# In the place of a value in a column: of another type, out of range, of no text, missing.
CELLS: tuple[Any, ...] = (
    None, 0, -1, 1, 7, 2**62, -(2**63), 0.5, 1e308, float("inf"), float("-inf"), "", "x", "1", "1e400", "nan", b"",
    b"\xff\xfe\x00", b"x", "9" * 400, "\x00", "\x1b[2K", "\u2028", "judged", "lists compared", "created", "owner",
)  # fmt: skip
WEIGHTS = {"event": 12, "part": 3, "outlook": 3, "campaign": 1, "version": 1}


def make_stores(folder: Path) -> list[Path]:
    """A store of every kind of campaign, with every kind of event, and those of earlier versions."""
    _graded(folder / "grades.db")
    _lists(folder / "lists.db")
    made = [folder / "grades.db", folder / "lists.db"]
    made += [Path(shutil.copy(file, folder)) for file in sorted(OLD.glob("*.sqlite"))]
    for place in list(made):
        made.append(place.with_name(f"loose-{place.name}"))
        _loosen(Path(shutil.copy(place, made[-1])))
    return made


def _graded(place: Path) -> None:
    given = synthetic_campaign(seed=3, systems=3, queries=3, depth=4, docs=8, groups=2)
    labels = place.with_name("labels.jsonl")
    labels.write_text(
        "".join(
            json.dumps({"query": q, "doc": d, "gpt": 1, "ann": 0}) + "\n"
            for q, d in map(given.runs.pool.label, (0, 1, 2))
        )
    )
    bare = replace(given, judgments=None)
    settings: dict[str, Any] = {"metric": "nDCG@4", "scale": Scale.graded(2), "model": "uniform", "ask": "mixed"}
    settings |= {"overlap": 0.5, "gold_share": 0.1, "repeat_share": 0.1}
    with Campaign.create(place, bare, guideline="Be fair.", queries={"q1": "dogs"}, **settings) as made:
        pairs = [made.pool.label(i) for i in range(len(made.pool))]
        query = pairs[0][0]
        two = [doc for q, doc in pairs if q == query][:2]
        token = made.people.invite("owner", "eve", role="owner")[1]
        made.people.invite("owner", "bob")
        made.people.sign_in(token)
        made.people.revoke("owner", "bob")
        for i, pair in enumerate(pairs[:8]):
            made.answer("ann", pair, grade=i % 3, seconds=2.5, token=f"ann-{i}")
            made.answer("bob", pair, grade=(i + i // 4) % 3, comment="so" * (i % 2))
        made.answer("ann", (query, *two), choice="left")
        made.settle("eve", pairs[7], grade=1, reason="both were wrong")
        made.withdraw("ann")
        made.skip("ann", pairs[9], reason="unreadable")
        made.flag("ann", *pairs[1], reason="a duplicate")
        made.comment("bob", *pairs[1], "half a text")
        made.change_gold("eve", {pairs[10][0]: {pairs[10][1]: 2}})
        made.change_guideline("eve", "Be fair. 2 is best.")
        made.change_query_guidelines("eve", {query: "Dogs alone."})
        made.assign_topics("eve", {query: "ann"})
        made.add_runs("eve", Runs.rows(["late"] * 2, [query] * 2, ["late-1", "late-2"]))
        made.import_file("eve", labels, file_format="labels", machines=["gpt"])
        made.change("eve", stopping="confidence=.9")
        made.change_phase("eve", "paused", reason="lunch")
        made.change_phase("eve", "open")
        made.next("ann", n=2)
        made.refresh()
        made.answer("ann", pairs[11], grade=1)
        made.refresh()
        made.page_secret()


def _lists(place: Path) -> None:
    given = synthetic_campaign(seed=3, systems=4, queries=8, depth=8)
    assert given.judgments is not None
    chosen = choose_lists(given.runs, given.judgments, "CG@5", pairs=6, rng=np.random.default_rng(0))
    with Campaign.create_lists(place, chosen, queries=dict.fromkeys(given.runs.queries, "dogs"), seed=5) as made:
        for i in range(3):
            (task,) = made.next("ann")
            made.answer("ann", task.question, choice="left", good=bool(i % 2))
        made.withdraw("ann")


def _loosen(place: Path) -> None:
    """Take the conditions on columns from a store: then rows may be doubled, and values missing."""
    with closing(sqlite3.connect(place)) as base:
        for name in TABLES.tables:
            base.execute(f"CREATE TABLE loose AS SELECT * FROM {name}")
            base.execute(f"DROP TABLE {name}")
            base.execute(f"ALTER TABLE loose RENAME TO {name}")
        base.commit()


def damage(place: Path, rng: random.Random) -> str:
    """Damage a store in one or more ways; where."""
    with closing(sqlite3.connect(place)) as base:
        found = ""
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            table = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            found = f"{table} {_damage_row(base, f'probeval_{table}', rng)}"
        if rng.random() < 0.6:
            _seal(base)
        base.commit()
    return found


def _damage_row(base: sqlite3.Connection, table: str, rng: random.Random) -> str:
    base.row_factory = sqlite3.Row
    rows = base.execute(f"SELECT rowid AS row, * FROM {table}").fetchall()
    if not rows:
        return "rows"
    row = rng.choice(rows)
    columns = [name for name in row.keys() if name != "row"]  # noqa: SIM118
    way = rng.random()
    if way < 0.06:
        base.execute(f"DELETE FROM {table} WHERE rowid = ?", [row["row"]])
        return "rows"
    if way < 0.12:
        _try(base, f"INSERT INTO {table} SELECT * FROM {table} WHERE rowid = ?", [row["row"]])
        return "rows"
    column = rng.choice([*columns, *[name for name in columns if name in ("body", "content")] * 4])
    old = row[column]
    if way < 0.16:
        other = rng.choice(rows)
        _put(base, table, column, other[column], row["row"])
        return column
    if column == "body" and isinstance(old, str) and rng.random() < 0.85:
        new: Any = _spoiled_json(old, rng)
    elif column == "content" and rng.random() < 0.8:
        new = spoiled_part(old if isinstance(old, bytes) else b"", rng)
    else:
        new = rng.choice(CELLS)
    _put(base, table, column, new, row["row"])
    return column


def _put(base: sqlite3.Connection, table: str, column: str, value: Any, row: int) -> None:
    _try(base, f'UPDATE {table} SET "{column}" = ? WHERE rowid = ?', [value, row])


def _try(base: sqlite3.Connection, statement: str, values: list[Any]) -> None:
    with suppress(sqlite3.IntegrityError, OverflowError, UnicodeEncodeError):  # it has conditions that exclude it
        base.execute(statement, values)


def _spoiled_json(text: str, rng: random.Random) -> Any:
    """JSON that was cut, or with a value replaced, left out or under another name."""
    if rng.random() < 0.15:
        return spoiled_bytes(text.encode(), rng).decode("utf-8", rng.choice(("replace", "ignore")))
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):  # it was cut before
        return rng.choice(CELLS)
    places = list(json_places(tree))
    if not places:
        return json.dumps(rng.choice(VALUES))
    holder, key = rng.choice(places)
    way = rng.random()
    if way < 0.7:
        holder[key] = deepcopy(rng.choice((*VALUES, *WORDS)))
    elif way < 0.85 or isinstance(holder, list):
        del holder[key]
    else:
        holder[rng.choice(WORDS)] = holder.pop(key)
    return json.dumps(tree)


def spoiled_part(content: bytes, rng: random.Random) -> bytes:
    """A part that is wrong: its bytes, or the texts and arrays in it."""
    if rng.random() < 0.3 or content[:2] != b"PK":
        if content[:1] in b"[{" and rng.random() < 0.8:
            return str(_spoiled_json(content.decode(), rng)).encode("utf-8", "replace")
        return spoiled_bytes(content, rng)
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        inner = {name: old.read(name) for name in old.namelist()}
    name = rng.choice(list(inner))
    if name.endswith(".json"):
        inner[name] = str(_spoiled_json(inner[name].decode(), rng)).encode("utf-8", "replace")
    elif rng.random() < 0.2:
        del inner[name]
    else:
        array = np.load(io.BytesIO(inner[name]), allow_pickle=False)
        inner[name] = _npy(_spoiled_array(array, rng))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        for name, data in inner.items():
            new.writestr(name, data)
    return out.getvalue()


def _spoiled_array(array: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    way = rng.randrange(7)
    if way == 0:
        return array[: len(array) // 2] if array.ndim else array[None]
    if way == 1:
        return array[None]
    if way == 2:
        return array.astype(rng.choice((str, bool, complex, np.int8, np.float64)))
    if way == 3:
        return np.concatenate([array.ravel(), array.ravel()])
    changed = array.copy()
    if changed.size:
        values = (-1, -7, 10**6, 2**31 - 1) if changed.dtype.kind == "i" else (np.nan, np.inf, -1e308, -1.0)
        for _ in range(rng.choice((1, 3))):
            changed.reshape(-1)[rng.randrange(changed.size)] = rng.choice(values)
    return changed


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def _seal(base: sqlite3.Connection) -> None:
    """Make the digests right, as one who can write to the store can: then only what is in it is wrong."""
    if not any(row[1] == "digest" for row in base.execute("PRAGMA table_info(probeval_event)")):
        return  # an earlier version
    base.row_factory = sqlite3.Row
    for (key,) in base.execute("SELECT DISTINCT campaign FROM probeval_event").fetchall():
        rows = base.execute("SELECT rowid AS row, * FROM probeval_event WHERE campaign IS ? ORDER BY number", [key])
        found = [dict(row) for row in rows]
        for row, digest in zip(found, chained("", found), strict=True):
            base.execute("UPDATE probeval_event SET digest = ? WHERE rowid = ?", [digest, row["row"]])
    for row in base.execute("SELECT rowid AS row, content FROM probeval_part").fetchall():
        if isinstance(row["content"], bytes):
            base.execute("UPDATE probeval_part SET digest = ? WHERE rowid = ?", [digest_of(row["content"]), row["row"]])


def use_store(place: Path, folder: Path) -> list[ProbevalError]:
    """Use a store in every way; what was refused."""
    refused: list[ProbevalError] = []

    def tried(step: Callable[[], object]) -> Any:
        try:
            return step()
        except ProbevalError as error:
            if not is_one_line(str(error)):
                raise AssertionError(f"not one line: {str(error)[:200]!r}") from error
            refused.append(error)
            return None

    def check() -> None:
        with closing(Store(place)) as store:  # an earlier version is migrated
            said = check_store(store)
        assert all(map(is_one_line, said.sentences())), said.sentences()
        json_text(said.to_dict())

    def copy() -> None:
        copy_store(place, folder / "copy.db")

    def names() -> list[str]:
        with closing(Store(place, read_only=True)) as store:
            return [*store.campaigns()]

    tried(check)
    tried(copy)
    for name in tried(names) or ():
        campaign = tried(lambda name=name: Campaign.open(place, name=name))
        if campaign is None:
            continue
        with campaign:
            for step in _steps(campaign):
                tried(step)
            _visit(campaign)
    for file in folder.glob("copy.db*"):
        file.unlink()
    return refused


def _steps(campaign: Campaign) -> list[Callable[[], object]]:
    """What people do with a campaign."""

    def answer() -> None:
        (task, *_) = campaign.next("zoe")
        values = {"choice": "left", "good": True} if task.question.kind == "lists" else {"grade": 1}
        campaign.answer("zoe", task.question, **(values if task.question.kind != "comparison" else {"choice": "left"}))
        campaign.withdraw("zoe")

    return [
        lambda: repr(campaign),
        lambda: campaign.status().summary(),
        lambda: json_text(campaign.status().to_dict()),
        lambda: campaign.people.find("nobody"),
        lambda: campaign.queries,
        lambda: campaign.gold().summary(),
        lambda: campaign.topics().summary(),
        lambda: campaign.collection,
        lambda: campaign.curve(),
        lambda: campaign.digest(1),
        lambda: campaign.page_secret(),
        answer,
        lambda: campaign.refresh(),
        *(lambda kind=kind: campaign.export(kind) for kind in export_formats()),
    ]


def _visit(campaign: Campaign) -> None:
    """Open every page, as one person on their own machine does."""
    plenty = Limiter(rate=1e9, burst=1e9)
    try:
        app = application(
            campaign, roster=Roster(campaign, alone="owner"), board=Board(campaign), hosts=[HOST], requests=plenty
        )
    except ProbevalError:
        return
    client = Client(app, HOST)
    for path in PAGES:
        answer = client.get(path)
        assert answer.status in (200, 303, 404, 422, 503), (path, answer.status)


@contextmanager
def hostile_stores(number: int) -> Iterator[Attempt]:
    """Attempts to use a damaged store each."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as made:
        known = make_stores(Path(made))

        def attempt(rng: random.Random, folder: Path, tally: Tally) -> None:
            place = Path(shutil.copy(rng.choice(known), folder / "store.db"))
            try:
                tally[f"in {damage(place, rng)}"] += 1
                refused = use_store(place, folder)
            finally:
                for file in folder.glob("*.db*"):
                    file.unlink()
            for error in refused:
                if isinstance(error, StoreError):  # others are of steps that this campaign does not have
                    raise error

        yield attempt


STORES = Attack(
    "stores",
    10_000,
    hostile_stores,
    "values in every table and column of a store are replaced, cut, doubled or left out",
    "each is used, or refused in one line; no page fails",
)
