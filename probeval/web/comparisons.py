"""Two documents side by side: their parts of a page, and answers about them in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from probeval.campaign import Compared, ComparisonAdjudicated, Judged
from probeval.web.documents import Document
from probeval.web.highlight import mark_terms

if TYPE_CHECKING:
    from probeval.campaign import Adjudicated

__all__ = ["Side", "Words", "answer_words", "docs_of", "relevant_words", "shown_sides"]

SIDES = (("left", "upper"), ("right", "lower"))
RELEVANT = {"both": "both relevant", "chosen": "only the better one relevant", "neither": "neither relevant"}
BOTH_BAD = ("equal", "neither")
Words = tuple[str, str]  # for documents side by side, and for documents one under the other


@dataclass(frozen=True)
class Side:
    """One of two documents on a page.

    Parameters
    ----------
    name, low_name
        Its place where the documents are side by side, and where they are one under the other.
    doc, document
        Its id, and the document if it is known.
    title, text
        Its title and text, with the terms of the query marked.
    """

    name: str
    low_name: str
    doc: str
    document: Document | None
    title: Markup
    text: Markup


def shown_sides(docs: Sequence[str], documents: Mapping[str, Document], query: str) -> list[Side]:
    """The documents on the left and on the right, for templates; empty for a single document."""
    if len(docs) < 2:
        return []
    shown = []
    for (name, low_name), doc in zip(SIDES, docs, strict=True):
        document = documents.get(doc)
        title, text = ("", "") if document is None else (document.title, document.text)
        shown.append(Side(name, low_name, doc, document, mark_terms(title, query), mark_terms(text, query)))
    return shown


def docs_of(answer: Judged | Adjudicated | Compared | ComparisonAdjudicated) -> tuple[str, ...]:
    """The document that an answer is about, or both."""
    return (answer.left, answer.right) if isinstance(answer, Compared | ComparisonAdjudicated) else (answer.doc,)


def answer_words(answer: Judged | Adjudicated | Compared | ComparisonAdjudicated, *, left: str | None = None) -> Words:
    """An answer in words; a grade as a number.

    Parameters
    ----------
    answer
        A grade, or an answer about two documents.
    left
        The document that is on the left now; by default the one that was on the left.

    Examples
    --------
    >>> answer = Compared(by="ann", time=0.0, query="q", left="d1", right="d2", choice="left", relevant="both")
    >>> answer_words(answer)
    ('left is better', 'upper is better')
    >>> answer_words(answer, left="d2")[0]
    'right is better'
    """
    if not isinstance(answer, Compared | ComparisonAdjudicated):
        return (f"{answer.grade:g}",) * 2
    swapped = left is not None and left != answer.left
    if isinstance(answer, Compared) and answer.left_number is not None and answer.right_number is not None:
        numbers = (answer.left_number, answer.right_number)
        return (" and ".join(f"{number:g}" for number in (reversed(numbers) if swapped else numbers)),) * 2
    if answer.choice == "equal":
        return ("both bad" if answer.relevant == BOTH_BAD[1] else BOTH_BAD[0],) * 2
    wide, narrow = SIDES[0 if (answer.choice == "left") != swapped else 1]
    return f"{wide} is better", f"{narrow} is better"


def relevant_words(answer: Judged | Adjudicated | Compared | ComparisonAdjudicated) -> str:
    """Which of two documents are relevant, in words; empty if the answer does not tell more than its choice."""
    if not isinstance(answer, Compared | ComparisonAdjudicated) or (answer.choice, answer.relevant) == BOTH_BAD:
        return ""
    return RELEVANT.get(answer.relevant, "")
