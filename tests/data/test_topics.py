"""Topics of TREC, as the tracks wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from probeval.data import read_texts, read_topics
from probeval.errors import DataError

# Topic 301 as in TREC-6 (fields without ends), topic 51 as in the web track, and topic 1 as in TREC-COVID.
OLD = """
<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that participate in international criminal
activity, the activity, and, if possible, collaborating organizations
and the countries involved.

<narr> Narrative:
A relevant document must as a minimum identify the organization and the
type of illegal activity.

</top>

<top>
<num> Number: 302
<title> Poliomyelitis &amp; Post-Polio
</top>
"""
WEB = """<webtrack2010>
<topic number="51" type="ambiguous"><query>horse hooves</query>
<description>Find information about horse hooves, their care, and diseases of hooves.</description>
<subtopic number="1" type="inf">How do I care for hooves?</subtopic></topic>
</webtrack2010>"""
COVID = """<?xml version="1.0" encoding="UTF-8"?>
<topics task="COVIDSearch 2020" batch="1">
<topic number="1">
<query>coronavirus origin</query>
<question>what is the origin of COVID-19</question>
<narrative>seeking range of information about the SARS-CoV-2 virus's origin</narrative>
</topic></topics>"""


@pytest.mark.parametrize(
    ("content", "texts", "notes"),
    [
        (
            OLD,
            {"301": "International Organized Crime", "302": "Poliomyelitis & Post-Polio"},
            {
                "301": "Identify organizations that participate in international criminal activity, the activity, and, "
                "if possible, collaborating organizations and the countries involved.\n\nA relevant document must as a "
                "minimum identify the organization and the type of illegal activity."
            },
        ),
        (
            WEB,
            {"51": "horse hooves"},
            {"51": "Find information about horse hooves, their care, and diseases of hooves."},
        ),
        (
            COVID,
            {"1": "coronavirus origin"},
            {"1": "what is the origin of COVID-19\n\nseeking range of information about the SARS-CoV-2 virus's origin"},
        ),
        (
            "query\ttitle\tdescription\tnarrative\nq1\tbirds\tthat sing\t\nq2\tbees\t\t\n",
            {"q1": "birds", "q2": "bees"},
            {"q1": "that sing"},
        ),
        ("query\tdescription\nq1\tbirds that sing\n", {"q1": "birds that sing"}, {}),  # the text, and no note
    ],
)
def test_texts_and_what_else_describes_queries(
    content: str, texts: dict[str, str], notes: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / ("topics.tsv" if "\t" in content else "topics.txt")
    path.write_text(content)
    assert read_topics(path) == (texts, notes)
    assert read_texts(path, "query") == texts


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"<top><title>no number</top>", "topic 1 has no number"),
        (b"<html><body>not found</body></html>", "expected topics of TREC"),
        (b"<top><num>1<title>\xff", "expected UTF-8"),
        (b"<top><num>1<title>a<top><num>1<title>b", "topic '1' comes twice"),
    ],
)
def test_files_that_are_no_topics_are_refused_in_a_line(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "topics.xml"
    path.write_bytes(content)
    with pytest.raises(DataError, match=why) as refused:
        read_topics(path)
    assert "\n" not in str(refused.value)
