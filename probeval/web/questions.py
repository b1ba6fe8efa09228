"""A question on a page: the template of its kind, and its documents in their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from jinja2 import BaseLoader, ChoiceLoader, FunctionLoader, PackageLoader
from markupsafe import Markup

from probeval.campaign import KINDS, Kind
from probeval.campaign.candidates import Material
from probeval.web.documents import Document
from probeval.web.highlight import mark_terms

__all__ = ["PagePlace", "ShownDocument", "places_of", "template_loader", "template_of"]

FOLDER, ENDING = "kinds/", ".html"
MAX_CHARACTERS = 240  # of a text in a list; the rest is folded


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
