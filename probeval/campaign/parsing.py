"""Checks of the values that people and programs pass to a campaign: names, texts, grades."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from probeval.characters import CONTROL, SURROGATE, readable
from probeval.data.answers import CHOICES, RELEVANT
from probeval.data.judgments import on_scale
from probeval.data.scale import Scale
from probeval.errors import CampaignError, did_you_mean

__all__ = [
    "NUMBER",
    "as_choice",
    "as_grade",
    "as_id",
    "as_name",
    "as_number",
    "as_owners",
    "as_relevant",
    "as_seconds",
    "as_text",
    "as_texts",
    "as_words",
    "check_values",
]

LONGEST_ID, LONGEST_NAME, LONGEST_TEXT, LONGEST_WORDS = 4000, 100, 10_000, 60
NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
MAX_GRADES_LISTED = 10  # grades listed in an error message


def check_values(given: Mapping[str, object], *expected: str) -> None:
    """Raise an error if an answer has a value with another name than these."""
    for name in given:
        if name not in expected:
            hint = did_you_mean(name, expected)
            raise CampaignError(f"The values of this answer are {', '.join(expected)}; got {name!r}.{hint}")


def as_grade(scale: Scale, grade: object) -> float:
    """A grade of the scale as a float; otherwise an error that lists the valid grades."""
    is_number = isinstance(grade, (int, float)) and not isinstance(grade, bool)
    value = float(grade) if is_number else float("nan")  # type: ignore[arg-type]
    if value not in scale.grades and (not value >= 0 or not on_scale(scale, value)):
        few = len(scale) <= MAX_GRADES_LISTED
        known = ", ".join(f"{g:g}" for g in scale.grades) if few else f"{scale.grades[0]:g} to {scale.grades[-1]:g}"
        raise CampaignError(f"The grades of the scale {scale} are {known}; got {grade!r}.")
    return value


def as_choice(choice: object) -> str:
    """The better of two documents: left, right or equal; empty for no answer."""
    if choice != "" and choice not in CHOICES:
        raise CampaignError(f"The better of two documents is {', '.join(CHOICES)}; got {choice!r}.")
    return str(choice)


def as_relevant(relevant: object, choice: str) -> str:
    """Which of two documents are relevant: both, chosen or neither; empty for no answer."""
    if relevant != "" and relevant not in RELEVANT:
        raise CampaignError(f"Of two documents, {', '.join(RELEVANT)} may be relevant; got {relevant!r}.")
    if relevant == "chosen" and choice not in ("left", "right"):
        raise CampaignError("Only the chosen document is relevant, but neither was chosen: choose left or right.")
    return str(relevant)


def as_number(number: object) -> float | None:
    """The number that an assessor gave a document: finite, from 0; None for no answer."""
    if number is None:
        return None
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not is_number or not 0 <= number < float("inf"):  # type: ignore[operator]
        raise CampaignError(f"The number of a document must be from 0, got {number!r}.")
    return float(number)  # type: ignore[arg-type]


def _is_line(text: object) -> TypeGuard[str]:
    """Whether this is one line of text that can be encoded, and not blank."""
    return isinstance(text, str) and bool(text.strip()) and not CONTROL.search(text) and not SURROGATE.search(text)


def as_name(name: object, whose: str) -> str:
    """A name: one line of text, stripped of surrounding white space."""
    if not _is_line(name):
        raise CampaignError(f"The name of {whose} must be one line of text, got {name!r}.")
    if len(name) > LONGEST_NAME:
        raise CampaignError(f"The name of {whose} has at most {LONGEST_NAME} characters, got {len(name)}.")
    return name.strip()


def as_id(given: str, what: str) -> str:
    """The id of a query or a document: neither empty nor long, without white space and control characters."""
    if not given or given.split() != [given] or CONTROL.search(given):
        raise CampaignError(
            f"Ids of queries and documents must not contain white space or control characters, got {given!r:.60}."
        )
    if len(given) > LONGEST_ID:
        raise CampaignError(
            f"The id of a {what} has at most {LONGEST_ID:,} characters in a campaign, got {len(given):,}: "
            f"{given[:40]!r}.. Rename it in the runs."
        )
    return given


def as_words(words: object) -> str:
    """The words for a grade: a few, on one line."""
    if not _is_line(words):
        raise CampaignError(f"The words for a grade must be one line of text, got {words!r}.")
    if len(words) > LONGEST_WORDS:
        raise CampaignError(f"The words for a grade have at most {LONGEST_WORDS} characters, got {len(words)}.")
    return words.strip()


def as_seconds(seconds: object) -> float:
    """A length of time in seconds."""
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds < float("inf"):  # type: ignore[operator]
        raise CampaignError(f"The time spent on a judgment must be a number of seconds, 0 or more; got {seconds!r}.")
    return float(seconds)  # type: ignore[arg-type]


def as_text(text: object, what: str) -> str:
    """A text of people: of limited length, without control characters other than line breaks and tabs."""
    if isinstance(text, str):
        text = text.replace("\r\n", "\n")
    if not isinstance(text, str) or SURROGATE.search(text) or CONTROL.search(text.replace("\n", "").replace("\t", "")):
        raise CampaignError(f"{what} must be text without control characters, got {text!r:.60}.")
    if len(text) > LONGEST_TEXT:
        raise CampaignError(f"{what} has at most {LONGEST_TEXT:,} characters, got {len(text):,}.")
    return text


def as_texts(texts: Mapping[str, str], queries: Iterable[str], *, may_be_empty: bool = False) -> dict[str, str]:
    """The texts of these queries; texts of other queries are dropped, and so are empty ones unless they may be."""
    ours = dict.fromkeys(queries)
    kept = {query: text for query, text in texts.items() if query in ours and (may_be_empty or text.strip())}
    if not kept:
        got = next((f"one of {query!r}" for query in texts), "none")
        raise CampaignError(f"Expected texts of this campaign's queries, such as {next(iter(ours))!r}; got {got}.")
    return {query: as_text(readable(text), f"The text of query {query!r}") for query, text in kept.items()}


def as_owners(owners: Mapping[str, str], queries: Iterable[str]) -> dict[str, str]:
    """The owners of topics, by query: known queries, and names of assessors or empty."""
    known = list(queries)
    for query in owners:
        if query not in known:
            raise CampaignError(f"No query {query!r} in this campaign.{did_you_mean(str(query), known)}")
    return {query: name and as_name(name, f"the owner of topic {query!r}") for query, name in owners.items()}
