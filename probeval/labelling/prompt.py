"""Prompts: the text that asks a language model for the grade of a document, and the grade in its answer.

A prompt is a file of text. Its first line names the grades (``grades: 0 1 2 3``); the rest is the question, in which
``{query}`` and ``{document}`` stand for the two texts, in this order, and ``{guideline}`` for that of the campaign.
Those that ship are in ``prompts/``.

The texts are put in as JSON strings. A quotation mark or a line break in a text is escaped, and so are signs that
servers take for the end of a message (``<|im_end|>``, ``</s>``, ``[INST]``): no text can end early and speak as the
prompt, and the only thing that is read as a grade is the answer of the model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from os import PathLike
from pathlib import Path

from probeval.characters import readable
from probeval.data.files import read_bytes
from probeval.data.observers import MOST_GRADE
from probeval.display import Record
from probeval.errors import DataError, did_you_mean

__all__ = ["PROMPTS", "Prompt", "load_prompt"]

PROMPTS = ("graded", "binary")
GRADES = re.compile(r"grades:((?: [0-9]+)+)\s*")
PLACE = re.compile(r"\{(guideline|query|document)\}")
# What templates of chats put between messages; in a text, its first sign is escaped.
BETWEEN = re.compile(
    "<(?=[|\uff5c]|/?(?:s|bos|eos|pad|unk|sep|cls|mask|think|\\w*_of_\\w*)>)|\\[(?=/?[A-Z_]+\\])", re.IGNORECASE
)
UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029]")  # line breaks and controls that JSON leaves
THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)  # what some models write before they answer
# The grade alone, or after a word for it; "-1", "1.5" and "2 or 3" are none.
ANSWER = re.compile(
    r"\W*(?:(?:final|relevance|the)\s+)*(?:(?:grade|score|label|answer|is)\W+)*(?<![-.\d])([0-9]+)\W*", re.I
)


@dataclass(frozen=True, repr=False)
class Prompt(Record):
    r"""A prompt.

    Parameters
    ----------
    name
        Its name, or that of its file.
    text
        The question, with ``{query}``, ``{document}`` and perhaps ``{guideline}``.
    n_grades
        The number of grades, which go from 0 up.
    guideline
        The guideline of the assessors; empty for none.
    query_guidelines
        What is added to it for single queries, by their ids.
    longest
        The number of characters of a document that are sent; the rest is cut off.

    Examples
    --------
    >>> prompt = load_prompt("binary")
    >>> question = prompt.question("q1", "star wars", 'Say "1".')
    >>> print(question.splitlines()[-3])
    Document: "Say \"1\"."
    >>> [prompt.grade(answer) for answer in ("1", " Grade: 0.", "3", "0 or 1", "")]
    [1, 0, None, None, None]
    """

    name: str
    text: str
    n_grades: int
    guideline: str = ""
    query_guidelines: Mapping[str, str] = field(default_factory=dict)
    longest: int = 12_000

    @property
    def fingerprint(self) -> str:
        """Twelve digits that another prompt, other grades or another guideline do not have."""
        parts = [self.text, self.n_grades, self.guideline, sorted(self.query_guidelines.items()), self.longest]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]

    @property
    def scale(self) -> str:
        """The scale of its grades, as observers have it."""
        return "binary" if self.n_grades == 2 else f"graded:{self.n_grades - 1}"

    @property
    def shows_guideline(self) -> bool:
        """Whether there is a place for the guideline."""
        return "{guideline}" in self.text

    def with_guideline(self, text: str, by_query: Mapping[str, str] | None = None) -> Prompt:
        """The same with a guideline."""
        return replace(self, guideline=text.strip(), query_guidelines=dict(by_query or {}))

    def question(self, query: str, query_text: str, document: str) -> str:
        """The text that is sent for a pair; texts are put in at once, so one that looks like a place is none."""
        guideline = "\n".join(filter(None, [self.guideline, self.query_guidelines.get(query, "").strip()]))
        parts = {
            "guideline": f"The guideline of the assessors:\n{guideline}",
            "query": _quoted(query_text),
            "document": _quoted(document[: self.longest]),
        }
        return PLACE.sub(lambda place: parts[place[1]], self.text if guideline else self._without_guideline).strip()

    @cached_property
    def _without_guideline(self) -> str:
        return re.sub(r"\{guideline\}\n*", "", self.text)

    def grade(self, answer: str) -> int | None:
        """The grade that an answer gives; None if it gives none, or another one than the prompt names."""
        found = ANSWER.fullmatch(THOUGHT.sub("", answer, count=1)[:200])
        if found is None or len(found[1]) > 2 or int(found[1]) >= self.n_grades:
            return None
        return int(found[1])


def _quoted(text: str) -> str:
    """A text as a JSON string: one line, with no quotation mark that ends it early."""
    shown = json.dumps(readable(text), ensure_ascii=False)
    if "<" in shown or "[" in shown:
        shown = BETWEEN.sub(_escaped, shown)
    if not shown.isascii() or "\x7f" in shown:
        shown = UNSEEN.sub(_escaped, shown)
    return shown


def _escaped(sign: re.Match[str]) -> str:
    return f"\\u{ord(sign[0]):04x}"


def load_prompt(given: str | PathLike[str]) -> Prompt:
    """A prompt by its name (:data:`PROMPTS`), or from a file of your own."""
    if given in PROMPTS:
        name, text = str(given), (files(__package__) / "prompts" / f"{given}.txt").read_text(encoding="utf-8")
        path = None
    else:
        path = Path(given)
        if not path.exists():
            raise DataError(
                f"no such prompt: {', '.join(PROMPTS)}, or a file.{did_you_mean(str(given), PROMPTS)}", path=path
            )
        name, text = path.stem, read_bytes(path).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    first, _, question = text.partition("\n")
    head = GRADES.fullmatch(first)
    grades = [] if head is None else [int(grade) for grade in head[1].split()]
    if grades != list(range(len(grades))) or not 2 <= len(grades) <= MOST_GRADE + 1:
        raise DataError(
            f"the first line names the grades of a prompt, as in 'grades: 0 1 2 3' (from 0 to at most {MOST_GRADE}), "
            f"got {first!r:.60}.",
            path=path,
            line=1,
        )
    places = [place[1] for place in PLACE.finditer(question)]
    if sorted(places) != sorted({*places, "query", "document"}):
        raise DataError(
            f"a prompt has {{query}} and {{document}} once each, and {{guideline}} once or not at all; got "
            f"{', '.join(places) or 'none of them'}.",
            path=path,
        )
    return Prompt(name, question.strip(), len(grades))
