"""Every docstring's first line, help text and message of the package: a page of the reference, and a script.

``python docs/listing.py`` prints the page; ``python docs/listing.py FILE`` writes it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Entry", "entries", "help_texts", "page", "source_entries"]

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "probeval"
CALLS = {"warn", "talk", "say"}  # functions that show a message to the user

Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Entry(NamedTuple):
    """A text that a reader or user sees: where it is, its kind (docstring, message or help), its name, and itself."""

    path: Path
    line: int
    kind: str
    name: str
    text: str


def entries() -> list[Entry]:
    """Return all entries of the package, ordered by module and line."""
    sources = [entry for path in sorted(PACKAGE.rglob("*.py")) for entry in source_entries(path)]
    return sources + list(help_texts())


def source_entries(path: Path) -> list[Entry]:
    """Return the docstring summaries and messages of one module, ordered by line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sorted([*_summaries(path, tree), *_messages(path, tree)], key=lambda entry: entry.line)


def help_texts() -> Iterator[Entry]:
    """Yield the help texts of the command line: the commands, their arguments and their options."""
    import typer

    from probeval.cli.app import app

    yield from _command_help(typer.main.get_command(app), "probeval")


def page() -> str:
    """Return the listing as a MyST page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Every docstring, help text and message"
    yield ""
    yield "The first line of each docstring, public and private; each help text of the command line; each message of an"
    yield "error, a warning or the command line, with its placeholders in braces. Generated from the code."
    everything = entries()
    for path in dict.fromkeys(entry.path for entry in everything):
        rows = [entry for entry in everything if entry.path == path and entry.kind != "help"]
        if rows:
            yield from _section(_module(path), rows)
    yield from _section("Command line", [entry for entry in everything if entry.kind == "help"])


def _section(title: str, rows: list[Entry]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    for row in rows:
        yield f"- *{row.kind}* {_literal(row.name)}: {_literal(row.text)}"


def _literal(text: str) -> str:
    """A text between enough backticks."""
    fence = "`"
    while fence in text:
        fence += "`"
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{text}{space}{fence}"


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _summaries(path: Path, tree: ast.Module) -> Iterator[Entry]:
    for node, name in _definitions(tree, ""):
        docstring = ast.get_docstring(node)
        if docstring:
            line = node.body[0].lineno
            yield Entry(path, line, "docstring", name or _module(path), docstring.splitlines()[0].strip())


def _definitions(node: Definition, name: str) -> Iterator[tuple[Definition, str]]:
    """Yield a definition and those nested in it, each with its dotted name."""
    yield node, name
    nodes = list(ast.iter_child_nodes(node))
    while nodes:
        child = nodes.pop(0)
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _definitions(child, f"{name}.{child.name}" if name else child.name)
        else:
            nodes += ast.iter_child_nodes(child)


def _messages(path: Path, tree: ast.Module) -> Iterator[Entry]:
    for node in ast.walk(tree):
        call: ast.expr | None = None
        if isinstance(node, ast.Raise):
            call, kind = node.exc, "error"
        elif isinstance(node, ast.Call) and _name(node.func) in CALLS:
            call, kind = node, "warning" if _name(node.func) == "warn" else "message"
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and _is_error(_name(node.value.func)):
            call, kind = node.value, "error"
        if not isinstance(call, ast.Call):
            continue
        texts = [_text(argument) for argument in call.args]
        text = " ".join(text for text in texts if text)
        if text:
            yield Entry(path, node.lineno, kind, _name(call.func), " ".join(text.split()))


def _is_error(name: str) -> bool:
    return name.endswith(("Error", "Exception"))


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _text(node: ast.expr) -> str:
    """The text of a literal, an f-string with its placeholders, a sum or a choice of such; empty for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or f"{{{ast.unparse(getattr(part, 'value', part))}}}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return f"{_text(node.left) or '{..}'}{_text(node.right) or '{..}'}"
    if isinstance(node, ast.IfExp):
        return " / ".join(text for text in (_text(node.body), _text(node.orelse)) if text)
    return ""


def _command_help(command: object, name: str) -> Iterator[Entry]:
    """Yield the help of a command, of its parameters and of its subcommands."""
    path = PACKAGE / "cli" / "app.py"
    text = str(getattr(command, "help", None) or "").split("\n\n")[0]
    yield Entry(path, 0, "help", name, " ".join(text.split()))
    for parameter in getattr(command, "params", ()):
        shown = getattr(parameter, "opts", None) or [parameter.name]
        text = getattr(parameter, "help", None)
        if text:
            yield Entry(path, 0, "help", f"{name} {', '.join(shown)}", " ".join(text.split()))
    for inner, subcommand in getattr(command, "commands", {}).items():
        yield from _command_help(subcommand, f"{name} {inner}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
