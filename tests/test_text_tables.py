"""Markdown and LaTeX tables: names of any characters come out as they are, numbers are aligned."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probeval.text_tables import LATEX, latex_table, markdown_table, markdown_text

HOSTILE = (
    r"$\foo$", "$x^2$", "a|b", "a&b", "run_1", "_all_", "100%", "#1", "{a}", "a~b", "<b>", "[1]", "*", "a--b", "`c`",
    "\\", r"\input{x}", "-5", "=1+1",
)  # fmt: skip
FRAME = pd.DataFrame({"system": HOSTILE, "mean": np.linspace(-1, 100, len(HOSTILE)), "p_best": np.nan, "n": 3})


def cells_of_latex(text: str) -> list[list[str]]:
    """The cells of the tabular, as LaTeX prints them; fails where a sign is left that means something to it."""
    body = text[text.index("\\toprule") : text.index("\\bottomrule")]
    signs = {escaped: sign for sign, escaped in LATEX.items()} | {"$-$": "-"}
    token = re.compile("|".join(re.escape(s) for s in sorted(signs, key=len, reverse=True)) + r"|[^\\{}&%$#_~^<>|`\[*]")
    rows = []
    for line in body.splitlines():
        if line in ("\\toprule", "\\midrule"):
            continue
        assert line.endswith(" \\\\")
        row = []
        for cell in re.split(r"(?<!\\) & ", line.removesuffix(" \\\\")):
            cell, printed, at = cell.strip(), "", 0
            while at < len(cell):
                found = token.match(cell, at)
                assert found, f"{cell[at:]!r} is not text to LaTeX"
                printed += signs.get(found[0], found[0])
                at = found.end()
            row.append(printed)
        rows.append(row)
    return rows


def test_latex_prints_every_name_as_it_is():
    text = latex_table(FRAME, title="nDCG_1 & more")
    head, *rows = cells_of_latex(text)
    assert head == ["system", "mean", "p_best", "n"]
    assert [row[0] for row in rows] == list(HOSTILE)
    assert rows[0][1:] == ["-1.0000", "--", "3"]
    assert "\\caption{nDCG\\_1 \\& more}" in text
    assert "{lrrr}" in text
    assert not re.search(r"^[\[*]", text, flags=re.MULTILINE)  # would be read as part of the row above
    assert "{table}" not in latex_table(FRAME)  # without a caption there is no float


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path: Path):
    page = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}{latex_table(FRAME, title='#1')}"
    (tmp_path / "page.tex").write_text(f"{page}\\end{{document}}", encoding="utf-8")
    done = subprocess.run(["pdflatex", "-halt-on-error", "page.tex"], cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == 0, done.stdout


def test_markdown_prints_every_name_as_it_is():
    from markdown_it import MarkdownIt

    text = markdown_table(FRAME, title="a *b* |")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [t for t in tokens if t.type == "inline"]
    assert all(child.type in ("text", "text_special", "strong_open", "strong_close")
               for t in inline for child in t.children or [])  # fmt: skip
    printed = ["".join(child.content for child in t.children or []) for t in inline]
    assert printed[0] == "a *b* |"
    names = printed[1:][:: len(FRAME.columns)]
    assert names == ["system", *HOSTILE]


def test_markdown_is_aligned():
    lines = markdown_table(FRAME).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert re.fullmatch(r"\| :-+ \| -+: \| -+: \| -+: \|", lines[1])
    assert markdown_text("p_best of run_1") == "p_best of run_1"  # nothing to escape inside words
    assert markdown_text("two\nlines") == "two lines"


def test_nothing_to_show_is_empty():
    assert markdown_table(pd.DataFrame()) == ""
    assert latex_table(pd.DataFrame()) == ""
    assert len(markdown_table(pd.DataFrame({"a": []})).splitlines()) == 2
