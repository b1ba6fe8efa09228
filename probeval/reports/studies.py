"""Reports of studies of several campaigns: each kind of study registers its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

from probeval.errors import DataError
from probeval.reports.page import Page, Quote, Section
from probeval.reports.pages import reproduction
from probeval.studies.collections import CollectionStudy

__all__ = ["report_study", "study_page"]


@singledispatch
def report_study(study: CollectionStudy[Any], *, command: str = "") -> Page:
    """Return the report of a study of several campaigns.

    A study of one's own registers a function that returns its page, by its class: ``@report_study.register``.
    """
    raise DataError(f"No report for {type(study).__name__}: register one with report_study.register.")


def study_page(
    title: str,
    lead: str,
    sections: Sequence[Section],
    *,
    figures: Sequence[tuple[str, str, str]],
    paragraph: str,
    facts: Mapping[str, str],
    command: str,
) -> Page:
    """Return the page of a study: its sections, a paragraph for a paper, and how to make the page again."""
    return Page(
        kind="study",
        title=title,
        lead=lead,
        figures=tuple(figures),
        sections=(
            *sections,
            Section("paper", "Summary for a paper", (Quote(paragraph),)),
            reproduction(facts, command),
        ),
    )
