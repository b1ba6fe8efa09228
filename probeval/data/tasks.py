"""What goes out to other tools: pairs to judge, and the options of writers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from probeval.data.scale import Scale
from probeval.display import Record
from probeval.errors import DataError

__all__ = ["OpenPair", "WriteOptions", "query_texts"]


@dataclass(frozen=True)
class OpenPair:
    """A pair to judge.

    Parameters
    ----------
    query, doc
        Ids of the query and the document.
    expected
        The expected grade; None if unknown.
    """

    query: str
    doc: str
    expected: float | None = None


@dataclass(frozen=True, repr=False)
class WriteOptions(Record):
    """Options of writers; each format uses those that it needs.

    Parameters
    ----------
    queries, docs
        Texts by id. A query or document without one goes out with its id.
    scale
        The scale of the grades.
    name
        The name of the campaign, for tools that show one.
    index, search, metric
        For ``rank-eval``: the index of the documents, the search as a mapping, and the metric as the engine takes it.
    """

    queries: Mapping[str, str] | None = None
    docs: Mapping[str, str] | None = None
    scale: Scale | None = None
    name: str = "probeval"
    index: str | None = None
    search: Mapping[str, Any] | None = None
    metric: Mapping[str, Any] | None = None

    def query_text(self, query: str) -> str:
        """The text of a query, or its id."""
        return (self.queries or {}).get(query) or query

    def doc_text(self, doc: str) -> str:
        """The text of a document, or its id."""
        return (self.docs or {}).get(doc) or doc


def query_texts(queries: Iterable[str], options: WriteOptions, tool: str) -> dict[str, str]:
    """The text of each query, for a tool that identifies queries by their text: no two may share one."""
    texts: dict[str, str] = {}
    owner: dict[str, str] = {}
    for query in dict.fromkeys(queries):
        text = options.query_text(query).strip()
        if text in owner:
            raise DataError(
                f"the queries {owner[text]!r} and {query!r} have the same text, {text[:60]!r}, and {tool} tells "
                "queries apart by their text. Change one of the texts."
            )
        owner[text] = query
        texts[query] = text
    return texts
