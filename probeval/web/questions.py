"""A question on a page: the template of its kind, and its documents in their places, with the query's terms marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from jinja2 import BaseLoader, ChoiceLoader, FunctionLoader, PackageLoader
from markupsafe import Markup, escape

from probeval.campaign import KINDS, Kind
from probeval.campaign.candidates import Material
from probeval.web.documents import Document

__all__ = [
    "PagePlace",
    "ShownDocument",
    "fold_word",
    "mark_terms",
    "places_of",
    "query_terms",
    "template_loader",
    "template_of",
]

FOLDER, ENDING = "kinds/", ".html"
MAX_CHARACTERS = 240  # of a text in a list; the rest is folded
# English words that would mark half of a text; other languages have all words of a query marked.
COMMON = frozenset(
    re.findall(
        r"\w+",
        """
        a about after all also am an and any are as at be been but by can could did do does for from had has have he
        her his how i if in into is it its may me my no not of on or our out she should so some such than that the
        their them then there these they this to up us was we were what when where which who whom whose why will with
        would you your
        """,
    )
)
LAST_MARK = 0x10000  # marks of later planes are rare, and would make the search ten times as slow
LONGEST = 200_000  # characters of a text in which terms are marked


@dataclass(frozen=True)
class ShownDocument:
    """A document on a page.

    Parameters
    ----------
    doc, document
        Its id, and the document if it is known.
    query
        The text of the query; its terms are marked.
    """

    doc: str
    document: Document | None
    query: str

    @cached_property
    def title(self) -> Markup:
        """Its title."""
        return mark_terms("" if self.document is None else self.document.title, self.query)

    @cached_property
    def text(self) -> Markup:
        """Its text."""
        return mark_terms(self._text, self.query)

    @cached_property
    def beginning(self) -> Markup:
        """The beginning of its text, where many documents are listed."""
        return mark_terms(self._text[: self._cut], self.query)

    @cached_property
    def rest(self) -> Markup:
        """The rest of its text; empty if the beginning is all."""
        return mark_terms(self._text[self._cut :], self.query)

    @property
    def _text(self) -> str:
        return "" if self.document is None else self.document.text

    @cached_property
    def _cut(self) -> int:
        """Where the beginning ends: after a word, if there is one to end it."""
        if len(self._text) <= MAX_CHARACTERS:
            return len(self._text)
        found = self._text.rfind(" ", MAX_CHARACTERS // 2, MAX_CHARACTERS)
        return MAX_CHARACTERS if found < 0 else found


class PagePlace(NamedTuple):
    """A place on the page, by its name and the id of what is there: a document, or a list of them."""

    name: str
    id: str
    documents: Sequence[ShownDocument]

    @property
    def shown(self) -> ShownDocument:
        """The first document there."""
        return self.documents[0]


def places_of(
    kind: Kind, ids: Sequence[str], *, material: Material, documents: Mapping[str, Document], query: str
) -> list[PagePlace]:
    """The places of a question, as an assessor sees them.

    Parameters
    ----------
    kind
        The kind of the question.
    ids
        Its documents or lists, in their places.
    material
        What the campaign asks about.
    documents
        Documents by id.
    query
        The text of the query.
    """
    return [
        PagePlace(name, each, [ShownDocument(doc, documents.get(doc), query) for doc in material.documents(each)])
        for name, each in zip(kind.places, ids, strict=True)
    ]


def template_of(kind: Kind) -> str:
    """The name of a kind's template, for :func:`template_loader`."""
    return f"{FOLDER}{kind.name}{ENDING}"


def template_loader() -> BaseLoader:
    """The templates of this package, and those of kinds that come from elsewhere."""

    def own(name: str) -> str | None:
        kind = KINDS.get(name.removeprefix(FOLDER).removesuffix(ENDING))
        return None if kind is None or kind.template is None else kind.template.read_text("utf-8")

    return ChoiceLoader([FunctionLoader(own), PackageLoader("probeval.web")])


@lru_cache(maxsize=1)
def _words() -> re.Pattern[str]:
    """Words: letters, digits, and the marks that belong to letters, such as accents and vowel signs."""
    points = [i for i in range(LAST_MARK) if unicodedata.category(chr(i)).startswith("M")]
    starts = [i for i, before in zip(points, [-2, *points], strict=False) if i != before + 1]
    ends = [i for i, after in zip(points, [*points[1:], -2], strict=True) if i != after - 1]
    marks = "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in zip(starts, ends, strict=True))
    return re.compile(rf"[^\W_]+(?:[{marks}]+[^\W_]*)*")


@lru_cache(maxsize=20_000)
def fold_word(word: str) -> str:
    """A word without case, accents and a final s, so that forms of one word are equal.

    >>> fold_word("Cafés"), fold_word("CAFE"), fold_word("glass")
    ('cafe', 'cafe', 'glass')
    """
    plain = word.casefold()
    if not plain.isascii():
        parts = unicodedata.normalize("NFKD", plain)
        plain = "".join(c for c in parts if not unicodedata.category(c).startswith("M")).casefold() or plain
    return plain[:-1] if len(plain) > 3 and plain.endswith("s") and not plain.endswith("ss") else plain


@lru_cache(maxsize=1000)
def query_terms(query: str) -> frozenset[str]:
    """The words of a query that are marked, folded; common English words are left out unless there are no others.

    >>> sorted(query_terms("How do the birds find their way?"))
    ['bird', 'find', 'way']
    """
    words = _words().findall(query)
    return frozenset(map(fold_word, [w for w in words if w.casefold() not in COMMON] or words))


def mark_terms(text: str, query: str) -> Markup:
    """The text as HTML, with the terms of the query in ``mark`` elements.

    >>> mark_terms("<b>Birds & bees", "bird song")
    Markup('&lt;b&gt;<mark>Birds</mark> &amp; bees')
    """
    terms = query_terms(query)
    if not terms or len(text) > LONGEST:
        return escape(text)
    pieces, done = [], 0
    for word in _words().finditer(text):
        if fold_word(word[0]) in terms:
            pieces.append(f"{escape(text[done : word.start()])}<mark>{escape(word[0])}</mark>")
            done = word.end()
    return Markup("".join([*pieces, escape(text[done:])]))
