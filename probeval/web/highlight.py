"""Query terms marked in the text of a document. The text is escaped here, piece by piece."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from markupsafe import Markup, escape

__all__ = ["fold_word", "mark_terms", "query_terms"]

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
