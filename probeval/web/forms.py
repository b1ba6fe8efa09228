"""What forms say: fields of known names and lengths, and nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from probeval.web.assessors import Assessor

__all__ = ["Form", "read_form"]

KIND = "application/x-www-form-urlencoded"
# Every field that a form may have, and how many characters.
FIELDS = {
    "mark": 64,
    "request": 64,
    "query": 4000,
    "doc": 4000,
    "grade": 20,
    "judgment": 15,
    "text": 10_000,
    "token": 500,
}
NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")


class Form(dict[str, str]):
    """The fields of a form; one that is not there is empty."""

    def __missing__(self, name: str) -> str:
        return ""

    @property
    def pair(self) -> tuple[str, str]:
        """The query and the document."""
        return self["query"], self["doc"]

    @property
    def grade(self) -> float:
        """The grade as a number; a text that is none stays what it is, for the campaign to refuse."""
        text = self["grade"]
        return float(text) if NUMBER.fullmatch(text) else text  # type: ignore[return-value]

    @property
    def judgment(self) -> int:
        """The number of a judgment."""
        text = self["judgment"]
        if not NUMBER.fullmatch(text) or "." in text:
            raise HTTPException(400, f"A judgment goes by its number, got {text!r}.")
        return int(text)

    def token(self, person: Assessor, kind: str) -> str | None:
        """The name of this request in the log: sent twice by one person, it counts once."""
        if not self["request"]:
            return None
        text = "\0".join([person.name, kind, self["request"]])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


async def read_form(request: Request) -> Form:
    """The form that a request sends; whatever is not one is refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != KIND:
        raise HTTPException(415, f"A form must be sent as {KIND}.")
    try:
        text = (await request.body()).decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=len(FIELDS), errors="strict")
    except ValueError:
        raise HTTPException(400, "The form cannot be read: a few fields of UTF-8 text are expected.") from None
    form = Form({name: value.replace("\r\n", "\n") for name, value in pairs})
    _check(form, len(pairs))
    return form


def _check(form: Mapping[str, str], sent: int) -> None:
    for name, value in form.items():
        if name not in FIELDS:
            raise HTTPException(400, f"No form here has a field {name!r:.60}.")
        if len(value) > FIELDS[name]:
            raise HTTPException(400, f"The field {name} has {FIELDS[name]:,} characters at most, got {len(value):,}.")
    if len(form) < sent:
        raise HTTPException(400, "The form says something twice.")
