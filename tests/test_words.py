"""Plain words: no retired word in identifiers, docstrings, comments, help texts, messages and pages."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "probeval"
DOCS = ROOT / "docs"

# Words of an identifier, in any case, as a word of its own: ``Belief``, ``belief_of``, ``_the_belief``.
IDENTIFIERS = {
    "advisor", "belief", "beliefs", "course", "follower", "form", "forms", "foundation", "founding", "knowledge",
    "lesson", "outlook", "said", "spoken", "stage", "stages", "stretch", "supply", "told", "trial", "trials",
    "vocabulary",
}  # fmt: skip
MODULES = {"averaged", "drawing", "following"}  # retired as names of modules only

UNIT = (
    "assessors?|boolean|cells?|coefficients?|columns?|cutpoints?|decompositions?|documents?|draws?|entr(?:y|ies)|"
    "figures?|files?|gains?|grades?|integers?|judgments?|keys?|lines?|lists?|names?|numbers?|objects?|pairs?|points?|"
    "products?|queries|query|ranks?|records?|rows?|runs?|scores?|seconds?|seeds?|systems?|times?|values?|vectors?|"
    "weights?|words?"
)
THING = (
    "assessor|batch|block|budget|campaign|card|cell|collection|column|cutoff|document|draw|facet|fold|grade|group|grouping|"
    "feature|judgment|kind|level|line|list|measure|metric|model|page|pair|panel|part|person|point|policy|query|rank|rater|replicate|"
    "row|rule|run|sample|scale|source|split|step|system|team|test|thing|topic|user"
)
PERSON = "speaks?|speaking|spoken|knows?|believes?|believed|thinks?"
CLAUSE = (
    "asked|believed|compared|done|drawn|fitted|found|got|held|judged|known|learned|left|measured|missing|predicted|"
    "promised|retrieved|said|sampled|seen|stated|stored|told|true|unjudged"
)

PROSE = {
    "retired word": re.compile(
        r"\b(?:advisors?|beliefs?|follower|founding|foundation|knowledge|lessons?|outlooks?|said|stages?|stretch(?:es)?|"
        r"suppl(?:y|ies)|told|trials?|vocabulary|(?<!of )course)\b|(?-i:\bChain\b)|\bchain of (?:\w+ )?models\b",
        re.IGNORECASE,
    ),
    "a Y, for per Y": re.compile(
        r"(?<!gave )(?<!give )(?<!gives )\b(?:an?|one|two|three|four|\d+|many|few|more|fewer|median|mean) (?:[\w-]+ )?"
        rf"(?:{UNIT}) an? (?:{THING})\b|\bone an? (?:{THING})\b",
        re.IGNORECASE,
    ),
    "personified code": re.compile(
        rf"\b(?:{PERSON})\b|\bhas seen the answers\b|\bh(?:eld|olds?|olding)\b(?:[^.;:]{{0,60}})? against\b"
        r"|\bsay(?:s|ing)? of\b|\b(?:nobody|somebody|whoever)\b",
        re.IGNORECASE,
    ),
    "clause for a noun": re.compile(rf"\bwhat (?:is|was|are|were) (?:not )?(?:{CLAUSE})\b", re.IGNORECASE),
}


class Allowed(NamedTuple):
    """A retired word with a right to stay: in paths that match, where the text matches."""

    path: str
    text: str
    reason: str


ALLOWED = [
    Allowed(r"probeval/campaign/", r"probeval_outlook", "a table of stores on disk"),
    Allowed(r"probeval/web/|docs/", r"\b[fF]orms?\b|form_|_form|_forms", "HTML forms"),
    Allowed(r"docs/theory/|scores/exact", r"\b(?:Bernoulli|independent) trials\b", "the statistical word"),
    Allowed(r"satisfaction/distributions", r"\btrials\b", "a public parameter: the number of random splits"),
    Allowed(r"", r"\btold apart\b", "the English idiom for distinguishable"),
    Allowed(r"docs/", r"\b[Tt]ext REtrieval|“[^”]*”", "quotations and names of others"),
]


class Finding(NamedTuple):
    """A retired word: where, which rule, and the text around it."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


def part(path: Path) -> str:
    """The folder of the package, ``probeval`` for a module on top, or ``docs``."""
    if PACKAGE not in path.parents:
        return "docs"
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "probeval"


def words(identifier: str) -> list[str]:
    """The words of an identifier, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]


def identifiers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names that a module defines: classes, functions, parameters, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield from ((node.lineno, name.asname) for name in node.names if name.asname)


def measure_shapes(tree: ast.Module) -> Iterator[int]:
    """Yield the lines where a class defines an attribute ``shape``: arrays have one, measures and weights do not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for child in node.body:
                if (
                    isinstance(child, ast.AnnAssign)
                    and isinstance(child.target, ast.Name)
                    and child.target.id == "shape"
                ):
                    yield child.lineno


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield all docstrings, without their examples."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield (
                    node.body[0].lineno,
                    "\n".join(s for s in text.splitlines() if not s.lstrip().startswith((">>>", "..."))),
                )


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield all comments; those on adjacent lines as one."""
    block: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if block and token.start[0] != block[-1][0] + 1:
                yield block[0][0], " ".join(text for _, text in block)
                block = []
            block.append((token.start[0], token.string.lstrip("# ")))
    if block:
        yield block[0][0], " ".join(text for _, text in block)


def prose_findings(path: str, line: int, text: str) -> Iterator[Finding]:
    """Yield the retired words of a text."""
    flat = " ".join(re.sub(r"``[^`]*``|`[^`]*`", "..", text).split())
    for allowed in ALLOWED:
        if re.search(allowed.path, path):
            flat = re.sub(allowed.text, "", flat)
    for rule, pattern in PROSE.items():
        for match in pattern.finditer(flat):
            yield Finding(path, line, rule, flat[max(0, match.start() - 40) : match.end() + 40])


def source_findings(path: str, source: str) -> Iterator[Finding]:
    """Yield the retired words of a module: its name, identifiers, docstrings and comments."""
    tree = ast.parse(source)
    if Path(path).stem in MODULES:
        yield Finding(path, 1, "module", Path(path).stem)
    for line, name in [(1, Path(path).stem), *identifiers(tree)]:
        retired = IDENTIFIERS & set(words(name)) or name == "Chain"
        if retired and not any(re.search(a.path, path) and re.search(a.text, name) for a in ALLOWED):
            yield Finding(path, line, "identifier", name)
    for line in measure_shapes(tree):
        yield Finding(path, line, "identifier", "shape")
    for line, text in [*docstrings(tree), *comments(source)]:
        yield from prose_findings(path, line, text)


def page_findings(path: str, text: str) -> Iterator[Finding]:
    """Yield the retired words of a page's prose: without blocks, formulas, anchors and link targets."""
    blank = re.compile(
        r"^(```|~~~|:::).*?^\1|\$\$.*?\$\$|\$[^$\n]*\$|\]\([^)]*\)|^\([\w-]+\)=$", re.MULTILINE | re.DOTALL
    )
    text = blank.sub(lambda match: "\n" * match[0].count("\n"), text)
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", text):
        yield from prose_findings(path, line, paragraph)
        line += paragraph.count("\n")


def listing() -> ModuleType:
    """The script that lists docstrings, help texts and messages."""
    spec = importlib.util.spec_from_file_location("listing", DOCS / "listing.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("listing", module)  # NamedTuple looks its module up
    spec.loader.exec_module(module)
    return module


LISTING = listing()
SOURCES = sorted(PACKAGE.rglob("*.py"))
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if not {"generated", "_build"} & set(p.parts)] + [ROOT / "README.md"]
PARTS = sorted({part(path) for path in SOURCES} | {"docs"})


def findings(name: str) -> list[Finding]:
    """All retired words of one part."""
    found: list[Finding] = []
    for path in [p for p in SOURCES if part(p) == name]:
        relative = path.relative_to(ROOT).as_posix()
        found += source_findings(relative, path.read_text(encoding="utf-8"))
        for entry in LISTING.source_entries(path):
            if entry.kind != "docstring":
                found += prose_findings(relative, entry.line, entry.text)
    if name == "cli":
        for entry in LISTING.help_texts():
            found += prose_findings("probeval/cli", 0, f"{entry.name}: {entry.text}")
    if name == "docs":
        for path in PAGES:
            if path.name != "changelog.md":
                found += page_findings(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", PARTS)
def test_no_retired_words(name: str) -> None:
    found = findings(name)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize(
    "text",
    [
        "One row a query.",
        "A table with a row a system and query",
        "a rising integer a pair",
        "The belief about a pair",
        "What is judged so far.",
        "Results are held against the truth.",
        "Hold what models state against the full judgments.",
        "The first model that can speak.",
        "It has seen the answers.",
        "the scale's when not said",
        "the model knows little",
        "a stretch of cutpoints",
    ],
)
def test_planted_prose_is_found(text: str) -> None:
    assert list(prose_findings("probeval/data/x.py", 1, text))
    assert list(source_findings("probeval/data/x.py", f'"""{text}"""\n'))
    assert list(source_findings("probeval/data/x.py", f"x = 1  # {text}\n"))
    assert list(page_findings("docs/x.md", f"# Title\n\nSome prose. {text}\n"))


@pytest.mark.parametrize(
    "source",
    [
        "class Belief: ...",
        "class Chain: ...",
        "def told(): ...",
        "def f(said): ...",
        "def f(*, form='csv'): ...",
        "said = 1",
        "for trial in range(3): ...",
        "self.outlook = 1",
        "class Weights:\n    shape: str",
    ],
)
def test_planted_identifiers_are_found(source: str) -> None:
    assert list(source_findings("probeval/data/x.py", source))


def test_planted_messages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LISTING, "ROOT", tmp_path)
    path = tmp_path / "planted.py"
    path.write_text('def f(x):\n    raise ValueError(f"One row a query, got {x}.")\n', encoding="utf-8")
    (entry,) = LISTING.source_entries(path)
    assert (entry.kind, entry.text) == ("error", "One row a query, got {x}.")
    assert list(prose_findings("planted.py", entry.line, entry.text))


@pytest.mark.parametrize(
    "text",
    [
        "One row per query.",
        "The shape of an array, in closed form.",
        "Of course a list has a document.",
        "``said`` as code",
        "The grade of a pair.",
        "30 requests a second",
    ],
)
def test_plain_text_passes(text: str) -> None:
    assert not list(prose_findings("probeval/data/x.py", 1, text))


def test_code_and_numpy_shapes_pass() -> None:
    source = '"""Rows per query."""\nimport numpy as np\nn = np.ones(3).shape\nformat = information = n\n'
    assert not list(source_findings("probeval/data/x.py", source))
    assert not list(page_findings("docs/x.md", "```python\nsaid = 1\n```\n\n$told$\n"))


def test_allowed_words_say_why() -> None:
    assert all(allowed.reason for allowed in ALLOWED)


def test_the_listing_has_all_kinds() -> None:
    page = LISTING.page()
    kinds = set(re.findall(r"^- \*(\w+)\*", page, flags=re.MULTILINE))
    assert kinds == {"docstring", "error", "warning", "message", "help"}
    assert "probeval evaluate --metric" in page
