"""The HTML: valid, self-contained, with words for every picture."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from probeval.display import Table
from probeval.errors import DataError
from probeval.reports import Page, Prose, Section, render, write_report
from probeval.reports.page import TableText

VOID = {"meta", "link", "br", "hr", "img", "input"}


@dataclass
class Reader(HTMLParser):
    """Reads a page as strictly as a validator would where it matters here: nesting, ids, references."""

    open: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}> repeats an attribute"
        found = dict(attrs)
        self.tags.append((tag, found))
        self.ids += [v for k, v in attrs if k == "id" and v]
        self.references += [v for k, v in attrs if k in ("aria-labelledby",) and v]
        for name in ("href", "xlink:href", "src"):
            if found.get(name):
                self.links.append(str(found[name]))
        for value in found.values():
            self.references += re.findall(r"url\(#([^)]+)\)", value or "")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)
        assert "svg" in self.open or tag in VOID, f"<{tag}/> does not close itself in HTML"

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def html(page: Page) -> str:
    return render(page)


def test_tags_nest_and_ids_are_used_once_and_found(html: str) -> None:
    assert html.startswith("<!DOCTYPE html>\n")
    reader = read(html)
    assert len(set(reader.ids)) == len(reader.ids)
    inside = [link.removeprefix("#") for link in reader.links if link.startswith("#")]
    assert inside
    assert set(inside) | set(reader.references) <= set(reader.ids)
    assert [tag for tag, _ in reader.tags].count("h1") == 1


def test_the_reader_sees_what_is_wrong() -> None:
    for bad in ("<p><b></p></b>", "<div/>", '<p id="a" id="b"></p>'):
        with pytest.raises(AssertionError):
            read(bad)


def test_nothing_is_asked_of_a_network_and_nothing_runs(html: str) -> None:
    reader = read(html)
    assert all(link.startswith(("#", "data:")) for link in reader.links)
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\"\s<)]+", html)) <= names
    assert not {"script", "iframe", "object", "embed"} & {tag for tag, _ in reader.tags}
    assert "@import" not in html
    policy = next(a["content"] for tag, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy


def test_every_picture_has_words_and_follows_the_page(html: str) -> None:
    pictures = [found for tag, found in read(html).tags if tag == "svg"]
    assert len(pictures) >= 5
    for found in pictures:
        assert found["role"] == "img"
        assert len(found["aria-label"] or "") > 20
    assert "#000000" not in html
    assert html.count("currentColor") > 10


def test_light_and_dark_and_print(html: str) -> None:
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert 'name="viewport"' in html


def test_small_screens_and_paper(html: str) -> None:
    """A picture is never wider than the screen, a table scrolls under a shade, and only a long table is parted."""
    style = html[html.index("<style>") : html.index("</style>")]
    assert "min-width" not in re.sub(r"\(.*?\)", "", style)
    assert "overflow-x: auto" in style
    assert style.count("var(--shade)") == 2
    assert html.count('class="wide" tabindex="0"') == html.count("<table>")
    short, long = (Table(pd.DataFrame({"n": range(n)}), "") for n in (12, 13))
    made = render(Page("t", "l", (), (Section("s", "S", (short, long)),)))
    assert re.findall(r"<figure([^>]*)>", made) == [' class="whole"', ""]


def test_long_tables_fold_without_a_script() -> None:
    tables = tuple(Table(pd.DataFrame({"n": range(n)}), "") for n in (25, 26, 60))
    assert [TableText.of(table).folded for table in tables] == [0, 6, 40]
    made = render(Page("t", "l", (), (Section("s", "S", tables),)))
    assert re.findall(r"<summary>(.*?)</summary>", made) == ["All 26 rows", "All 60 rows"]
    assert made.count('<tr class="more">') == 46
    assert made.count("<tr") == 3 + 25 + 26 + 60
    paper = made[made.index("@media print") : made.index("</style>")]
    assert ".more { display: table-row; }" in paper
    read(made)


def test_names_are_escaped(html: str) -> None:
    assert "A &lt;b&gt;small&lt;/b&gt; campaign" in html
    assert "<b>small" not in html
    row = Table(pd.DataFrame({"system": ["<script>alert(1)</script>"], "n": [3]}), "R&D")
    made = render(Page("t", "l", (), (Section("s", "S", (row, Prose("a < b"))),)))
    assert "<script>" not in made
    assert "R&amp;D" in made
    read(made)


def test_the_same_page_has_the_same_bytes(page: Page, html: str) -> None:
    assert render(page) == html


def test_tables_say_what_is_not_known() -> None:
    frame = pd.DataFrame({"name": ["a", "b"], "value": [0.5, float("nan")], "n": [1200, 3]})
    table = TableText.of(Table(frame.assign(most=[float("inf"), 2.0])))
    assert table.rows == (("a", "0.5000", "1,200", "never"), ("b", "-", "3", "2.0000"))
    assert table.numeric == (False, True, True, True)
    texts = pd.DataFrame({"share": ["12.5%", "-"], "seconds": ["1.5", "2"], "bias": ["+0.10 ± 0.02", "-"]})
    assert TableText.of(Table(texts)).numeric == (True, True, False)


def test_a_report_is_written_whole_or_not_at_all(page: Page, html: str, tmp_path: Path) -> None:
    assert write_report(page, tmp_path / "a" / "r.html").read_text(encoding="utf-8") == html
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError):
        write_report(page, tmp_path / "file" / "r.html")
