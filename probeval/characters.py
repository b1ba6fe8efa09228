r"""Characters that cannot be shown as they are: escaped where text is shown, refused or replaced where it is read.

A control character can rewrite what a terminal printed before, a mark of direction can reorder a line, and a lone
surrogate (half of a pair, as a text cut in the middle of an emoji has it in JSON) cannot be encoded at all.
"""

from __future__ import annotations

import re

__all__ = ["CONTROL", "HIDDEN", "SURROGATE", "json_safe", "printable", "readable", "xml_text"]

SURROGATE = re.compile("[\ud800-\udfff]")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MARKS = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"  # of direction, and beyond ASCII
HIDDEN = re.compile(f"[\x00-\x1f{MARKS}]")
NOT_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{MARKS}]")
NONCHARACTERS = re.compile("[\ufffe\uffff]")
IN_JSON = re.compile(f"[{MARKS}]")


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return text that a terminal shows as it is; ``lines`` keeps line breaks and tabs.

    >>> print(printable("bm25\x1b[2K\nd1"), printable("one\ntwo\u202e", lines=True))
    bm25\x1b[2K\nd1 one
    two\u202e
    """
    if lines:
        return NOT_LINES.sub(_escaped, text.replace("\r\n", "\n"))
    return HIDDEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def json_safe(document: str) -> str:
    r"""Return a JSON document with the same content that a terminal shows as it is.

    >>> print(json_safe('{"name": "\x9b2K"}'))
    {"name": "\u009b2K"}
    """
    return IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def readable(text: str) -> str:
    r"""Return text that can be encoded: a lone surrogate becomes the replacement character.

    >>> readable("cut \ud83d")
    'cut \ufffd'
    """
    return text if text.isascii() else SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def xml_text(text: str) -> str:
    r"""Return text that XML can hold, escaped as on a terminal.

    >>> print(xml_text("bm25\x01\ufffe"))
    bm25\x01\ufffe
    """
    return NONCHARACTERS.sub(_escaped, printable(text))
