"""References hold: docstrings cite papers that are listed and formulas that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
THEORY = ROOT / "docs" / "theory"
PAGES = sorted(THEORY.glob("*.md"))
MODULES = sorted((ROOT / "probeval").rglob("*.py"))
BUILT = {"_build", "generated", "__pycache__"}

NAME = r"[A-ZÄÖÜ][\w'-]*[a-zäöüéíšž]"
YEAR = r"((?:18|19|20)\d\d)([ab]?)\b"
CITED = re.compile(rf"({NAME}(?:, {NAME})*(?:,? and {NAME})?)(?: et al\.| and others)?,? \(?{YEAR}")
TARGET = re.compile(r"docs/theory/([\w-]+\.md)(?:#([\w-]+))?")


def files() -> list[Path]:
    """All modules and pages of the repository but this one."""
    found = [p for folder in ("probeval", "docs", "examples", "tests", "models") for p in (ROOT / folder).rglob("*")]
    return sorted({p for p in found if p.suffix in {".py", ".md"} and not BUILT & set(p.parts)} - {Path(__file__)})


def docstrings(path: Path) -> Iterator[str]:
    """Every docstring of a module, each on one line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield " ".join((ast.get_docstring(node) or "").split())


def anchors(page: Path) -> set[str]:
    """The targets of a page, such as ``(gain)=``."""
    return set(re.findall(r"^\(([\w-]+)\)=$", page.read_text(encoding="utf-8"), flags=re.MULTILINE))


def listed() -> list[str]:
    """The entries of the page of references."""
    text = (THEORY / "references.md").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith("- ")]


def citations(text: str) -> list[tuple[list[str], str]]:
    """The authors and the year of every paper that a text cites."""
    prose = re.sub(r"\$[^$]*\$|`[^`]*`", "", " ".join(text.split()))
    return [(re.split(r", and |, | and ", names), year + letter) for names, year, letter in CITED.findall(prose)]


def is_listed(authors: list[str], year: str, entries: list[str]) -> bool:
    return any(e.startswith(f"- {authors[0]},") and f"({year}" in e and all(a in e for a in authors) for e in entries)


def test_every_formula_that_is_cited_exists():
    known = {page.name: anchors(page) for page in PAGES}
    missing, seen = [], 0
    for path in files():
        for page, anchor in TARGET.findall(path.read_text(encoding="utf-8")):
            seen += 1
            if page not in known or (anchor and anchor not in known[page]):
                missing.append(f"{path.relative_to(ROOT)}: docs/theory/{page}#{anchor}")
    assert not missing, "\n".join(missing)
    assert seen > 20  # the scan does see them


def test_anchors_are_unique():
    every = [anchor for page in PAGES for anchor in anchors(page)]
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert len(re.findall(r"^\([\w-]+\)=$", text, flags=re.MULTILINE)) == len(set(every))
    assert not re.findall(r"^\([\w-]+\)=\n(?:\$\$|```)", text, flags=re.MULTILINE), "a block of math loses its anchor"


def test_every_cited_paper_is_on_the_page_of_references():
    entries, missing = listed(), []
    for path in (*MODULES, *PAGES):
        if path.name == "references.md":
            continue
        texts = docstrings(path) if path.suffix == ".py" else [path.read_text(encoding="utf-8")]
        cited = [citation for text in texts for citation in citations(text)]
        unlisted = [(authors, year) for authors, year in cited if not is_listed(authors, year, entries)]
        missing += [f"{path.relative_to(ROOT)}: {', '.join(authors)} {year}" for authors, year in unlisted]
    assert not missing, "\n".join(missing)


def test_the_scan_reads_citations():
    text = "See Urbano, Marrero and Martín (2013b), Brennan 2001, (Kubinec, 2023), Moffat et al. (2017). On MIREX 2011."
    assert citations(text) == [
        (["Urbano", "Marrero", "Martín"], "2013b"),
        (["Brennan"], "2001"),
        (["Kubinec"], "2023"),
        (["Moffat"], "2017"),
    ]
    assert not is_listed(["Nobody"], "2001", listed())


def test_references_are_in_order_and_each_has_one_year():
    entries = listed()
    plain = [entry.translate(str.maketrans("äöüéíš", "aoueis")).lower() for entry in entries]
    assert [e.split(",")[0] for e in plain] == sorted(e.split(",")[0] for e in plain)
    assert len(set(entries)) == len(entries)
    for entry in entries:
        assert re.search(r"\((?:18|19|20)\d\d[ab]?\)\. ", entry), entry
        doi = re.search(r"\[doi:([^\]]+)\]\(https://doi\.org/([^)]+)\)", entry)
        assert doi is None or doi[1] == doi[2], entry


def test_every_test_that_a_page_names_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/security.md").read_text(encoding="utf-8"))
    assert named
    missing = [f"{path}::{test}" for path, test in named if f"def {test}(" not in (ROOT / path).read_text("utf-8")]
    assert not missing, "\n".join(missing)
