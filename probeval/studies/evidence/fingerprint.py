"""Fingerprints: what a figure depends on, as short hashes. Words are no part of the mathematics."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

__all__ = [
    "fingerprint_of_files",
    "fingerprint_of_mathematics",
    "fingerprint_of_values",
    "modules_reached",
    "parts_of_mathematics",
]

PACKAGE = Path(__file__).parents[2]
LENGTH = 12  # hexadecimal digits
# Modules without mathematics of cells: how results look, what is reported, where work is done, what is made of finished
# replays, and what a plan names, which the fingerprint of the data has.
WORDS = {
    f"probeval.{name}"
    for name in (
        *("characters", "display", "errors", "extensions", "parallel", "records", "reporting", "results"),
        *("text_tables", "threads", "simulation.budgets", "simulation.seeds", "studies.evidence.plan"),
    )
}
# Ways that no cell takes: sampling by PyMC, reports on labels and grades, files of other programs.
NOT_TAKEN = {
    f"probeval.{name}"
    for name in (
        *("bayes", "relevance.nuts.fit", "relevance.nuts.posterior", "relevance.nuts.with_labels"),
        *("relevance.observers.drift", "relevance.observers.liking", "relevance.observers.panel"),
        *("relevance.observers.trust", "relevance.surprise", "scores.trust", "data.exchange", "data.tasks"),
    )
}
CONSTANTS = (".json", ".csv")  # files beside a module, with numbers that it reads
LEFT_OUT = {"kind", "type_comment", "type_ignores", "ctx"}  # fields of a syntax tree that change nothing
NUMBERED = "Purpose"  # of random streams: its numbers never change, so one that is added changes no other
SHOWN = {"Described", "Record", "Result"}  # base classes that say how an object is printed


def fingerprint_of_mathematics(modules: Iterable[str], *, without: Iterable[str] = ()) -> str:
    """Return the fingerprint of the modules that these can reach, and of the files of constants beside them.

    Comments, docstrings, layout, messages of errors, lines of documentation of fields, annotations of types, and how
    objects are printed are left out.

    Parameters
    ----------
    modules
        The modules where it begins.
    without
        Modules that are not taken.

    Examples
    --------
    >>> fingerprint_of_mathematics(["probeval.ties"]) == fingerprint_of_mathematics(["probeval.scores.exact"])
    False
    """
    parts = parts_of_mathematics(tuple(modules), tuple(without))
    return _hash("\n".join(f"{name} {print_}" for name, print_ in parts).encode())


@cache
def parts_of_mathematics(modules: tuple[str, ...], without: tuple[str, ...] = ()) -> tuple[tuple[str, str], ...]:
    """Return the fingerprint of every module that these can reach, and of every file of constants beside them."""
    reached = modules_reached(modules, without)
    folders = sorted({_path(name).parent for name in reached} - {PACKAGE})
    beside = [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix in CONSTANTS]
    parts = [(name, _hash(json.dumps(_plain(_tree(name))).encode())) for name in reached]
    return (*parts, *((path.relative_to(PACKAGE).as_posix(), _hash(path.read_bytes())) for path in beside))


@cache
def fingerprint_of_files(folder: Path) -> str:
    """Return the fingerprint of the bytes of a file, or of all files in a folder and their names."""
    files = sorted(p for p in folder.rglob("*") if p.is_file()) if folder.is_dir() else [folder]
    return _hash(
        "\n".join(f"{p.relative_to(folder.parent).as_posix()} {_hash(p.read_bytes())}" for p in files).encode()
    )


def fingerprint_of_values(values: Any) -> str:
    """Return the fingerprint of plain data."""
    return _hash(json.dumps(values, sort_keys=True).encode())


@cache
def modules_reached(modules: tuple[str, ...], without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the modules of the package that these import, directly or not, and themselves.

    A name that a package re-exports leads to the module that defines it, not to all of the package.

    Examples
    --------
    >>> modules_reached(("probeval.ties",))
    ('probeval.arrays', 'probeval.ties')
    """
    todo, found = list(modules), set[str]()
    while todo:
        name = todo.pop()
        if name not in found and name not in WORDS | NOT_TAKEN | set(without):
            found.add(name)
            todo += _imports(name)
    return tuple(sorted(found))


@cache
def _imports(module: str) -> tuple[str, ...]:
    return tuple(sorted({source for base, name in _named(_tree(module)) for source in _sources(base, name)}))


def _named(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield the modules of the package, and the names in them, that run-time imports name, in functions too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == "probeval":
            yield from ((str(child.module), alias.name) for alias in child.names)
        elif isinstance(child, ast.Import):
            yield from ((alias.name, None) for alias in child.names if alias.name.split(".")[0] == "probeval")
        yield from _named(child)


def _sources(base: str, name: str | None) -> list[str]:
    """Return the module that defines a name."""
    if base == "probeval" and (name is None or not _exists(f"probeval.{name}")):
        return []  # the public face: the version
    if name is None:
        return [base]
    if _exists(f"{base}.{name}"):
        return [f"{base}.{name}"]
    if _path(base).name == "__init__.py":
        for again, its in _named(_tree(base)):
            if its == name and again != base:
                return _sources(again, name)
    return [base]


def _exists(module: str) -> bool:
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def _path(module: str) -> Path:
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_path(module).read_text(encoding="utf-8"))


def _plain(node: Any) -> Any:
    """Return a syntax tree as lists and texts, without words; the same for all versions of Python."""
    if isinstance(node, list):
        return [plain for plain in map(_plain, node) if plain != "Words"]
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Raise):
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return ["Raise", _plain(raised)]
    if (isinstance(node, ast.ImportFrom) and node.module in WORDS) or (
        isinstance(node, ast.ClassDef) and node.name == NUMBERED
    ):
        return "Words"
    if isinstance(node, ast.keyword) and node.arg == "repr":
        return "Words"
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return ["Field", _plain(node.target)]
    fields = {name: value for name, value in ast.iter_fields(node) if name not in LEFT_OUT}
    for name in ("annotation", "returns"):
        fields.pop(name, None)
    if isinstance(node, ast.ClassDef):
        fields["bases"] = [base for base in node.bases if not (isinstance(base, ast.Name) and base.id in SHOWN)]
    body = fields.get("body")
    if isinstance(body, list) and body and _is_text(body[0]):
        fields["body"] = body[1:]
    plain = ((name, _plain(value)) for name, value in fields.items() if value is not None)
    return [type(node).__name__, *([name, value] for name, value in plain if value != [])]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:LENGTH]
