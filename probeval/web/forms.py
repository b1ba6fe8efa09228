"""Forms: fields of known names and limited lengths, and nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from probeval.campaign.parsing import LONGEST_ID, LONGEST_TEXT
from probeval.web.assessors import Assessor

__all__ = ["Form", "own_form", "read_form"]

KIND = "application/x-www-form-urlencoded"
# The fields of all forms, with their maximum lengths.
FIELDS = {
    "mark": 64,
    "request": 64,
    "query": LONGEST_ID,
    "doc": LONGEST_ID,
    "left": LONGEST_ID,
    "right": LONGEST_ID,
    "grade": 20,
    "choice": 10,
    "relevant": 10,
    "bad": 1,
    "left_number": 20,
    "right_number": 20,
    "judgment": 15,
    "text": LONGEST_TEXT,
    "token": 500,
    "seconds": 20,
    "question": 15,
    "good": 5,
}
NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
MAGNITUDE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?", re.ASCII)


class Form(dict[str, str]):
    """The fields of a form; a missing field is empty."""

    def __missing__(self, name: str) -> str:
        return ""

    @property
    def pair(self) -> tuple[str, str]:
        """The query and the document."""
        return self["query"], self["doc"]

    @property
    def grade(self) -> float:
        """The grade as a number; other text is returned as it is, and the campaign refuses it."""
        text = self["grade"]
        return float(text) if NUMBER.fullmatch(text) else text  # type: ignore[return-value]

    @property
    def is_comparison(self) -> bool:
        """Whether it is about two documents."""
        return bool(self["left"] or self["right"])

    @property
    def comparison(self) -> tuple[str, str, str]:
        """The query, and the documents on the left and on the right."""
        return self["query"], self["left"], self["right"]

    @property
    def choice(self) -> tuple[str, str]:
        """The better side, and which documents are relevant; each empty if the form does not say."""
        return ("equal", "neither") if self["bad"] else (self["choice"], self["relevant"])

    @property
    def magnitudes(self) -> tuple[float, float] | None:
        """The numbers of the documents on the left and on the right; None if the form has none."""
        given = self["left_number"].strip(), self["right_number"].strip()
        if not any(given):
            return None
        for side, text in zip(("left", "right"), given, strict=True):
            if not MAGNITUDE.fullmatch(text) or not float(text) > 0:
                raise HTTPException(400, f"The number of the {side} document must be above 0, got {text!r}.")
        return float(given[0]), float(given[1])

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
        return self.number("judgment")

    def number(self, name: str) -> int:
        """The number in a field."""
        text = self[name]
        if not NUMBER.fullmatch(text) or "." in text:
            raise HTTPException(400, f"The {name} must be given by its number, got {text!r}.")
        return int(text)

    def token(self, person: Assessor, kind: str) -> str | None:
        """The token of this request: sent twice by one person, it counts once."""
        if not self["request"]:
            return None
        text = "\0".join([person.name, kind, self["request"]])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


async def read_form(request: Request) -> Form:
    """The form in the body of a request; anything else is refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != KIND:
        raise HTTPException(415, f"A form must be sent as {KIND}.")
    try:
        text = (await request.body()).decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=len(FIELDS), errors="strict")
    except ValueError:
        raise HTTPException(400, "The form cannot be read: expected a few fields of UTF-8 text.") from None
    form = Form({name: value.replace("\r\n", "\n") for name, value in pairs})
    _check(form, len(pairs))
    return form


async def own_form(request: Request, person: Assessor) -> Form:
    """The form that this person's own page sent; others are refused."""
    form = await read_form(request)
    if not person.wrote(form["mark"]):
        raise HTTPException(403, "This page is from an earlier session. Reload it and try again.")
    return form


def _check(form: Mapping[str, str], sent: int) -> None:
    for name, value in form.items():
        if name not in FIELDS:
            raise HTTPException(400, f"Unknown form field {name!r:.60}.")
        if len(value) > FIELDS[name]:
            raise HTTPException(400, f"The field {name} has at most {FIELDS[name]:,} characters, got {len(value):,}.")
    if len(form) < sent:
        raise HTTPException(400, "The form has a field twice.")
