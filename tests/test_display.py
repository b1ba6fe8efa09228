"""Tables as text and HTML, and the exits that results share."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from probeval.data import Scale, Votes
from probeval.display import MOST_ROWS, Table, html_table, summary_text
from probeval.features import compute_features
from probeval.metrics import measure
from probeval.relevance import FallbackModel, Uniform, aggregate_votes, synthetic_campaign
from probeval.reliability import compare, dstudy, gstudy
from probeval.results import Result
from probeval.satisfaction import Satisfaction, load_agreement, load_mapping
from probeval.scores import Verdict, evaluate
from probeval.text_tables import text_table

FRAME = pd.DataFrame(
    {"system": ["a", "<b>"], "mean": [0.5, np.nan], "lower": [-0.2, np.nan], "upper": [0.9, np.nan], "n": [3, 12]}
)


class Reader(HTMLParser):
    """The tags and the text of a page; fails where tags do not close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    assert not reader.open
    return reader


def test_a_text_table_is_aligned_and_has_dashes_for_what_is_not_known():
    assert text_table(FRAME, title="P@5", decimals={"mean": 2}).splitlines() == [
        "P@5",
        "system  mean    lower   upper   n",
        "a       0.50  -0.2000  0.9000   3",
        "<b>        -        -       -  12",
    ]


def test_an_html_table_is_escaped_and_needs_nothing_else():
    page = html_table(FRAME, title="1 < 2", intervals=("mean", "lower", "upper"), note="a & b")
    found = read(page)
    assert "script" not in found.tags
    assert "link" not in found.tags
    assert not re.search(r"https?:|src=|url\(", page)
    assert "b" not in found.tags  # the name of the system is text
    assert "1 < 2" in found.text
    assert "a & b" in found.text
    assert found.tags.count("svg") == 2
    assert found.tags.count("circle") == 1  # the other row has no value
    assert page.count('class="zero"') == 2  # the axis goes through 0


def test_intervals_share_one_axis():
    frame = pd.DataFrame({"mean": [0.0, 1.0], "lower": [0.0, 0.5], "upper": [0.5, 1.0]})
    ends = re.findall(
        r'class="line" x1="([\d.]+)" x2="([\d.]+)"', html_table(frame, intervals=("mean", "lower", "upper"))
    )
    (a, b), (c, d) = [tuple(map(float, pair)) for pair in ends]
    assert a < b == c < d


def test_long_tables_are_cut_and_say_so():
    text = summary_text([Table(pd.DataFrame({"n": range(MOST_ROWS + 2)}))], ["Done."])
    assert text.endswith("2 more rows in to_frame().\n\nDone.")
    assert len(text.splitlines()) == MOST_ROWS + 4


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    campaign = synthetic_campaign(seed=1, systems=6, queries=40, depth=10)
    assert campaign.judgments is not None
    measured = measure(campaign.runs, campaign.judgments, "DCG@5")
    relevance = FallbackModel([Uniform()]).predict(
        replace(campaign, judgments=None).problem(depth=10, scale=Scale.graded(2))
    )
    scores = evaluate(campaign.runs, relevance, "DCG@5")
    study = gstudy(measured)
    users = Satisfaction(
        measured.values, load_mapping("DCGl@5/broad"), measured.systems, agreement=load_agreement("DCGl@5/broad")
    )
    a, b = measured.systems[:2]
    return {
        "Measured": measured,
        "RelevanceDistribution": relevance,
        "Scores": scores,
        "Ranking": scores.ranking(),
        "Comparison": scores.compare(a, b),
        "GStudy": study,
        "DStudy": dstudy(study),
        "Pairwise": compare(measured),
        "Satisfaction": users,
        "Noticed": users.compare(a, b),
        "Agreement": load_agreement("DCGl@5/broad"),
        "Verdict": Verdict.of(scores.ranking()),
        "FeatureTable": compute_features(campaign.problem(depth=5), ["fSYS"]),
        "Aggregation": aggregate_votes(Votes.of(campaign.judgments)),
    }


KINDS = (
    "Measured", "RelevanceDistribution", "Scores", "Ranking", "Comparison", "GStudy", "DStudy", "Pairwise",
    "Satisfaction", "Noticed", "Agreement", "Verdict", "FeatureTable", "Aggregation",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_has_the_same_exits(kind: str, results: dict[str, Result]):
    result = results[kind]
    frame = result.to_frame()
    assert isinstance(frame.index, pd.RangeIndex)
    assert isinstance(frame.columns[0], str)
    assert result.to_dict()
    assert str(frame.columns[0]) in result.summary()
    assert repr(result).startswith(f"<{kind}: ")
    assert "\n" not in repr(result)
    assert "table" in read(result._repr_html_()).tags
