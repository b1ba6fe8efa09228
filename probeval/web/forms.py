"""Forms: fields of known names and limited lengths, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from probeval.campaign.parsing import LONGEST_ID, LONGEST_TEXT, NUMBER
from probeval.campaign.questions import KINDS, Kind, Question, kind_of

if TYPE_CHECKING:
    from probeval.web.entry import Assessor

__all__ = ["Form", "own_form", "read_form"]

CONTENT = "application/x-www-form-urlencoded"
# The fields that forms share, with their maximum lengths; kinds of questions have more.
FIELDS = {
    "mark": 64,
    "request": 64,
    "kind": 60,
    "query": LONGEST_ID,
    "doc": LONGEST_ID,
    "judgment": 15,
    "text": LONGEST_TEXT,
    "token": 500,
    "seconds": 20,
}


class Form(dict[str, str]):
    """The fields of a form; a missing field is empty."""

    def __missing__(self, name: str) -> str:
        return ""

    @property
    def pair(self) -> tuple[str, str]:
        """The query and the document."""
        return self["query"], self["doc"]

    @property
    def kind(self) -> Kind:
        """The kind of the question."""
        return kind_of(self["kind"])

    @property
    def documents(self) -> tuple[str, ...]:
        """The documents of the question in their places, as they were shown."""
        return tuple(self[place] for place in self.kind.places)

    @property
    def question(self) -> Question:
        """The question."""
        return self.kind.question(self["query"], self.documents)

    @property
    def seconds(self) -> float | None:
        """The time spent on the document, if the page measured it."""
        text = self["seconds"]
        if not text:
            return None
        if not NUMBER.fullmatch(text):
            raise HTTPException(400, f"The time must be a number of seconds, got {text!r}.")
        return float(text)

    @property
    def judgment(self) -> int:
        """The number of a judgment."""
        text = self["judgment"]
        if not NUMBER.fullmatch(text) or "." in text:
            raise HTTPException(400, f"The judgment must be given by its number, got {text!r}.")
        return int(text)

    def token(self, person: Assessor, kind: str) -> str | None:
        """The token of this request: sent twice by one person, it counts once."""
        if not self["request"]:
            return None
        text = "\0".join([person.name, kind, self["request"]])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def known_fields() -> dict[str, int]:
    """The fields of all forms, with their maximum lengths."""
    places = {place: LONGEST_ID for kind in KINDS.values() for place in kind.places}
    return FIELDS | places | {name: most for kind in KINDS.values() for name, most in kind.fields.items()}


async def read_form(request: Request) -> Form:
    """The form in the body of a request; anything else is refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != CONTENT:
        raise HTTPException(415, f"A form must be sent as {CONTENT}.")
    known = known_fields()
    try:
        text = (await request.body()).decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=len(known), errors="strict")
    except ValueError:
        raise HTTPException(400, "The form cannot be read: expected a few fields of UTF-8 text.") from None
    form = Form({name: value.replace("\r\n", "\n") for name, value in pairs})
    _check(form, len(pairs), known)
    return form


async def own_form(request: Request, person: Assessor) -> Form:
    """The form that this person's own page sent; others are refused."""
    form = await read_form(request)
    if not person.wrote(form["mark"]):
        raise HTTPException(403, "This page is from an earlier session. Reload it and try again.")
    return form


def _check(form: Mapping[str, str], sent: int, known: Mapping[str, int]) -> None:
    for name, value in form.items():
        if name not in known:
            raise HTTPException(400, f"Unknown form field {name!r:.60}.")
        if len(value) > known[name]:
            raise HTTPException(400, f"The field {name} has at most {known[name]:,} characters, got {len(value):,}.")
    if len(form) < sent:
        raise HTTPException(400, "The form has a field twice.")
