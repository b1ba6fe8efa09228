"""Query terms in a document: found whatever their case and accents, and nothing in a text becomes markup."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval.web.questions import mark_terms, query_terms
from tests.web.conftest import SCRIPT


def _marked(text: str, query: str) -> list[str]:
    return [unescape(found) for found in re.findall(r"<mark>(.*?)</mark>", mark_terms(text, query), re.DOTALL)]


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("A CAFÉ, two cafés", "café", ["CAFÉ", "cafés"]),
        ("cafe\u0301 and cafe", "Café", ["cafe\u0301", "cafe"]),  # an accent of its own is part of the word
        ("Straße, STRASSE", "strasse", ["Straße", "STRASSE"]),
        ("The bird sings; birdsong", "How do the birds sing?", ["bird", "sings"]),
        ("to be or not", "to be", ["to", "be"]),  # a query of common words alone
        ("हिन्दी भाषा", "हिन्दी", ["हिन्दी"]),
        ("ΣΊΣΥΦΟΣ", "σίσυφος", ["ΣΊΣΥΦΟΣ"]),
        ("nothing here", "", []),
        ("a_b snake_case", "snake", ["snake"]),
    ],
)
def test_words_are_found(text: str, query: str, found: list[str]):
    assert _marked(text, query) == found


@pytest.mark.parametrize(
    "text", [SCRIPT, "<mark>x</mark>", "&lt;script&gt;", "$\\foo$", "\u202ebird\u202c <bird>", "\"'>"]
)
@pytest.mark.parametrize("query", ["script", "mark lt amp", "bird foo", SCRIPT])
def test_a_text_stays_a_text(text: str, query: str):
    shown = mark_terms(text, query)
    assert unescape(re.sub(r"</?mark>", "", shown)) == text
    assert re.findall(r"<[^>]*>", re.sub(r"</?mark>", "", shown)) == []


@pytest.mark.slow
@given(text=st.text(max_size=80), query=st.text(max_size=30))
def test_nothing_is_lost_or_added(text: str, query: str):
    shown = mark_terms(text, query)
    plain = re.sub(r"</?mark>", "", shown)
    assert plain == str(mark_terms(text, ""))
    assert shown.count("<mark>") == shown.count("</mark>")


def test_a_long_document_takes_little_time():
    text = "The quick brown fox jumps over the lazy dog. " * 2000  # 90,000 characters
    query_terms("fox")
    began = time.perf_counter()
    assert mark_terms(text, "lazy foxes").count("<mark>") == 2000
    assert time.perf_counter() - began < 1  # 20 ms where nothing else runs
