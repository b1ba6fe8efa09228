"""Single queries and teams in a report: the figures are those of the scores, long tables are cut, names are text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import Collection
from probeval.display import Table
from probeval.relevance import Choice, choose_model
from probeval.reports import Page, ReportResults, render
from probeval.reports import queries as section
from probeval.reports.page import TableText
from probeval.reports.queries import queries
from probeval.reports.sections import pairs, ranking
from probeval.reports.teams import teams
from probeval.selection import Judging


def tables(page: Page) -> list[TableText]:
    return [TableText.of(part) for part in page["queries"].parts if isinstance(part, Table)]


def test_the_hardest_queries_are_first_with_their_judged_share(partial: ReportResults, page: Page) -> None:
    _, each, _ = tables(page)
    means = partial.by_query.joint.query_mean.mean(axis=0)
    order = np.argsort(means)
    assert [row[0] for row in each.rows] == [partial.scores.queries[q] for q in order]
    assert [float(row[1]) for row in each.rows] == pytest.approx(means[order], abs=1e-4)
    judged = [tuple(map(int, row[5].split(" of "))) for row in each.rows]
    assert sum(n for n, _ in judged) == partial.scores.judged
    assert sum(n for _, n in judged) == partial.scores.pool
    systems = partial.scores.systems
    best = partial.by_query.joint.query_mean.argmax(axis=0)
    assert [row[3] for row in each.rows] == [systems[best[q]] for q in order]


def test_differences_are_those_of_the_first_two(partial: ReportResults, page: Page) -> None:
    differences, _, _ = tables(page)
    a, b = partial.ranking.order[:2]
    assert differences.caption.startswith(f"{a} minus {b}: ")
    mean = dict(zip(partial.scores.queries, partial.by_query.joint.query_mean.T, strict=True))
    i, j = (partial.scores.systems.index(system) for system in (a, b))
    sizes = [abs(float(row[1])) for row in differences.rows]
    assert sizes == sorted(sizes, reverse=True)
    for query, value, *_ in differences.rows:
        assert float(value) == pytest.approx(mean[query][i] - mean[query][j], abs=1e-4)


def test_every_system_has_a_score_with_an_interval(partial: ReportResults, page: Page, full: ReportResults) -> None:
    *_, scores = tables(page)
    assert scores.columns == ("query", *partial.ranking.order)
    assert len(scores.rows) == len(partial.scores.queries)
    assert any("[" in cell for row in scores.rows for cell in row[1:])
    *_, known = (TableText.of(part) for part in queries(full).parts if isinstance(part, Table))
    assert not any("[" in cell for row in known.rows for cell in row[1:])  # all is judged
    assert "Every pair of every query is judged" in queries(full).parts[0].text  # type: ignore[union-attr]


def test_long_campaigns_are_cut_with_a_note(partial: ReportResults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(section, "MOST_QUERIES", 3)
    monkeypatch.setattr(section, "MOST_SYSTEMS", 2)
    _, each, scores = (TableText.of(part) for part in queries(partial).parts if isinstance(part, Table))
    assert len(each.rows) == len(scores.rows) == 3
    assert len(scores.columns) == 3
    assert "Here are 3 of 5 queries; probeval evaluate --per-query --format csv has all." in each.caption
    assert "Here are 2 of 6 systems" in scores.caption


def test_teams_are_grouped(partial: ReportResults) -> None:
    (found,) = teams(partial)
    table = next(TableText.of(part) for part in found.parts if isinstance(part, Table))
    runs = partial.state.judging.runs
    assert runs.teams is not None
    assert {row[0]: int(row[1]) for row in table.rows} == {team: runs.teams.count(team) for team in set(runs.teams)}
    ranks = [int(row[3]) for row in table.rows]
    assert ranks == sorted(ranks)
    assert ranks[0] == 1
    of = dict(zip(runs.systems, runs.teams, strict=True))
    for team, _, _, _, _, mean, *_ in table.rows:
        mine = [partial.scores[s].mean() for s in runs.systems if of[s] == team]
        assert float(mean) == pytest.approx(np.mean(mine), abs=1e-4)
    shown = next(TableText.of(part) for part in ranking(partial).parts if isinstance(part, Table))
    assert [row[2] for row in shown.rows] == [of[row[1]] for row in shown.rows]


def test_no_section_without_teams(partial: ReportResults) -> None:
    judging = partial.state.judging
    alone = replace(judging.collection, runs=replace(judging.collection.runs, teams=None))
    made = Judging.of(alone, choose_model("uniform", alone, scale=judging.scale).model, "CG@5", scale=judging.scale)
    assert teams(ReportResults(made.begin(), partial.choice)) == ()


def test_hostile_names_are_drawn_as_they_are(small: Collection, choice: Choice) -> None:
    names = (r"$\foo$", "$x^2$", "<b>", "a&b", "query", "$$")
    runs = replace(small.runs, systems=names, teams=tuple(rf"$\team{i // 2}$" for i in range(6)))
    collection = replace(small, runs=runs, judgments=None)
    judging = Judging.of(collection, choose_model("uniform", collection, scale=choice.scale).model, "CG@5",
                         scale=choice.scale, draws=50)  # fmt: skip
    found = ReportResults(judging.begin(), choice)
    made = Page("Hostile", "", (), (ranking(found), *teams(found), pairs(found), queries(found)))
    html = render(made)  # a picture of mathematics that is none would fail here
    assert r"$\foo$" in html
    assert "&lt;b&gt;" in html
    assert "<td><b>" not in html
