"""What a report says of an evaluation, against the parts that compute it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import probeval
from probeval.data import Collection, LabelTable, Runs, Scale, as_judgments, as_runs
from probeval.display import Table
from probeval.errors import ModelError
from probeval.metrics import measure
from probeval.relevance import Choice
from probeval.reliability import compare, gstudy
from probeval.reports import Milestone, Page, ReportResults, milestone, paragraph, report_evaluation
from probeval.reports.page import Facts, Figure, Part, Prose, Quote, TableText, render
from probeval.reports.pages import _figures, _lead
from probeval.reports.results import EffectSize
from probeval.reports.satisfaction import users
from probeval.reports.sections import judging, model, pairs, ranking, reliability
from probeval.satisfaction import load_agreement, load_mapping
from probeval.scores.two_systems import probability
from probeval.selection import Judging

ALL = ["ranking", "teams", "pairs", "queries", "judging", "model", "reliability", "users", "new-query", "paper", "made"]


def text(part: Part) -> str:
    if isinstance(part, (Prose, Quote)):
        return part.text
    if isinstance(part, Facts):
        return " ".join(f"{name} {value}" for name, value in part.rows)
    if isinstance(part, Figure):
        return f"{part.alt} {part.caption}"
    table = TableText.of(part)
    return " ".join([table.caption, *table.columns, *(cell for row in table.rows for cell in row)])


def said(page: Page, key: str) -> str:
    return " ".join(map(text, page[key].parts))


def test_sections_are_all_there_and_in_order(page: Page) -> None:
    assert [section.key for section in page.sections] == ALL


def test_the_ranking_is_that_of_the_scores(partial: ReportResults, page: Page) -> None:
    (table,) = (TableText.of(part) for part in page["ranking"].parts if isinstance(part, Table))
    expected = partial.ranking.to_frame()
    assert [row[1] for row in table.rows] == list(expected["system"])
    assert [row[3] for row in table.rows] == [f"{m:.4f}" for m in expected["mean"]]
    assert [int(row[-1]) for row in table.rows] == expected["group"].tolist()
    best = partial.ranking.order[0]
    assert page.figures[0][1] == best
    assert best in page.lead


def _open_race(*names: str) -> ReportResults:
    """By P@1 on three queries: sure has 2 of 3, null and zero 0, tied-* as much as sure; others are like a coin."""
    queries, judged = ("q1", "q2", "q3"), dict[str, dict[str, int]]()
    for query in queries:
        judged[query] = {"sure": int(query != "q3"), "null": 0, "zero": 0}
    lists = {name: {q: {"sure" if name.startswith("tied") else name: 1.0} for q in queries} for name in names}
    collection = Collection("race", as_runs(lists), as_judgments(judged))
    found = probeval.evaluate(collection, "P@1", model="uniform", scale=Scale.binary(), draws=2000)
    return ReportResults.of(found.judging(), found.choice)


OPEN = [f"open-{i}" for i in range(9)]


def test_nobody_leads_where_nothing_is_decided() -> None:
    found = _open_race("sure", *OPEN)
    lead = _lead(found)
    assert lead.startswith(
        "No two systems can be distinguished yet (3 of 30 pairs judged). "
        "sure has the highest expected score by P@1 on 3 queries, 0.667; open-"
    )
    likely, p = found.scores.systems[found.ranking.p_best.argmax()], found.ranking.p_best.max()
    assert f"; {likely} is most likely to be the best ({p:.0%}). Even with all pairs judged, 3 queries would" in lead
    assert lead.endswith("too few to distinguish 9 of the others from sure on new queries.")
    assert _figures(found)[0][:2] == ("highest expected score", "sure")
    assert "P(best) can be higher for a lower rank" in " ".join(map(text, ranking(found).parts))


def test_who_leads_is_the_likeliest_to_be_the_best() -> None:
    lead = _lead(_open_race("sure", "null", *OPEN))
    assert lead.startswith("sure has the highest expected score of 11 systems by P@1 on 3 queries; open-")
    assert "is most likely to be the best, with probability 0." in lead
    assert "9 more cannot be distinguished from sure on these queries." in lead
    found = _open_race("sure", "null", "zero")
    assert _lead(found) == (
        "sure leads 3 systems by P@1 on 3 queries, and is the best on these queries with probability 1.000. "
        "All others can be distinguished from it on these queries. 3 queries are too few to distinguish 2 of the "
        "others from sure on new queries."
    )
    assert _figures(found)[0][:2] == ("leader", "sure")
    assert "for a lower rank" not in " ".join(map(text, ranking(found).parts))
    assert _lead(_open_race("tied-1", "tied-2")) == "All 2 systems are tied by P@1 on 3 queries."
    assert _lead(_open_race("sure")) == "One system, sure: P@1 on 3 queries, 0.6667."


def test_pairs_say_ties_and_whether_queries_are_enough(partial: ReportResults) -> None:
    def table(found: ReportResults) -> list[dict[str, str]]:
        (made,) = (TableText.of(part) for part in pairs(found).parts if isinstance(part, Table))
        return [dict(zip(made.columns, row, strict=True)) for row in made.rows]

    (tie,) = table(_open_race("tied-1", "tied-2"))
    assert tie["P(tie)"] == ">0.999"
    assert (tie["on these queries"], tie["on new queries, all judged"]) == ("tied", "-")
    (told,) = table(_open_race("sure", "null"))
    assert "P(tie)" not in told
    assert (told["on these queries"], told["on new queries, all judged"]) == ("decided", "too few")
    assert told["difference"].endswith("(p\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.184)")  # of a t test: 1, 1 and 0
    (doubt,) = table(_open_race("sure", "open-1"))
    assert (doubt["on these queries"], doubt["on new queries, all judged"]) == ("undecided", "too few")
    assert doubt["difference"].count(" ") == 1  # it breaks before its p alone
    first, second = partial.ranking.order[:2]
    assert table(partial)[0]["difference"].replace("\N{NO-BREAK SPACE}", " ") == str(partial.effect(first, second))


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_queries_are_enough_where_p_is_small(full: ReportResults, level: float) -> None:
    """With all pairs judged, the column of queries and the p of the paired t test say the same."""
    found = replace(full, level=level)
    (made,) = (TableText.of(part) for part in pairs(found).parts if isinstance(part, Table))
    assert f"enough if p would be below {1 - level:.3g}; else they are too few." in made.caption
    seen = set()
    for row in made.rows:
        cells = dict(zip(made.columns, row, strict=True))
        p = found.effect(cells["system"], cells["other"]).p
        seen.add(cells["on new queries, all judged"])
        assert cells["on new queries, all judged"] == ("enough queries" if p <= 1 - level else "too few")
    assert seen == {"enough queries", "too few"}


def test_the_interval_of_reliability_is_the_full_one(partial: ReportResults, full: ReportResults) -> None:
    """That of judging and sampling, as in the section below; with all pairs judged, the very same."""
    last, tile = partial.milestones[-1], _figures(partial)[-1]
    assert tile[1] == f"{last.erho2:.3f}"
    assert "] for judging and sampling; of scores Φ " in tile[2]
    for name in ("erho2", "phi"):
        wide = partial.reliability[name]
        assert wide.upper - wide.lower > getattr(last, f"{name}_upper") - getattr(last, f"{name}_lower")
    coefficient = full.study.coefficient("erho2")
    assert full.reliability["erho2"].lower == coefficient.lower
    assert full.reliability["erho2"].value == pytest.approx(coefficient.value)
    assert f"[{coefficient.lower:.2f}, {coefficient.upper:.2f}] for sampling;" in _figures(full)[-1][2]


def test_judgments_are_counted_as_they_are(small: Collection, choice: Choice) -> None:
    """Judgments of other pairs, and several of one pair, are not judged pairs."""
    assert small.judgments is not None
    query, doc = small.judgments.pool.label(0)
    table = pd.DataFrame({"query": [query] * 3 + ["other"], "doc": [doc, doc, "unseen", doc], "grade": [1, 1, 2, 0]})
    state = Judging.of(
        replace(small, judgments=as_judgments(table)), choice.model, "CG@5", scale=choice.scale, draws=50
    )
    found = ReportResults.of(state.begin(), choice)
    assert text(judging(found).parts[0]) == (
        f"1 of {found.scores.pool} pairs of query and document that systems retrieved to depth 5 (1.8%) are judged. "
        "Not counted: judgments of pairs outside the pool (2), further judgments of the same pairs (1)."
    )
    table.loc[1, "grade"] = 2
    votes = as_judgments(table.assign(assessor=["ann", "bob", "ann", "ann"]))
    state = Judging.of(replace(small, judgments=votes), choice.model, "CG@5", scale=choice.scale, draws=50)
    assert ") are judged. Not counted: pairs with judgments that disagree (1), judgments" in text(
        judging(ReportResults.of(state.begin(), choice)).parts[0]
    )


def test_it_is_said_why_confidence_fell(partial: ReportResults) -> None:
    before, after = partial.milestones
    rose = replace(before, confidence=0.6, expected_tau=0.2), replace(after, confidence=0.7, expected_tau=0.3)
    fell = replace(rose[0], confidence=0.8), rose[1]
    wider = fell[0], replace(fell[1], half_width=1.0, expected_tau=0.1)

    def prose(milestones: tuple[Milestone, ...]) -> str:
        return " ".join(map(text, judging(replace(partial, milestones=milestones)).parts))

    assert " fell: " not in prose(rose)
    assert "The mean confidence fell: judgments can differ from what the model learned" in prose(fell)
    assert "until there are more judgments; the half-widths did shrink." in prose(fell)
    assert "The mean confidence and the expected tau fell: " in prose(wider)
    assert "until there are more judgments." in prose(wider)


def test_what_the_others_are_expected_to_have_is_whole(page: Page) -> None:
    table = next(TableText.of(part) for part in page["judging"].parts if isinstance(part, Table))
    assert table.columns == ("grade", "judged pairs", "expected of the others")
    assert all(cell.replace(",", "").isdigit() for row in table.rows for cell in row)


def test_terms_are_explained_where_they_first_stand(page: Page) -> None:
    assert page.figures[-1][0] == "reliability of differences E ρ²"
    assert "E ρ² and Φ, from 0 to 1: stability" in said(page, "judging")
    assert "which splits the variance of scores" in said(page, "reliability")
    assert "if pairs are chosen by the policy gain;" in said(page, "reliability")
    assert "route moments, normal: means and covariances of grades" in said(page, "made")
    assert "neighbours in different bands need not differ" in said(page, "ranking")


def test_with_all_judged_effects_are_those_of_the_paired_t_test(full: ReportResults, small: Collection) -> None:
    assert small.judgments is not None
    tests = compare(measure(small.runs, small.judgments, "CG@5"))
    for a, b, report in zip(tests.to_frame()["a"], tests.to_frame()["b"], tests.report(), strict=True):
        assert str(full.effect(a, b)).replace("±", "+-") == report


def test_a_system_differs_from_itself_by_nothing(full: ReportResults) -> None:
    assert full.population is not None
    score = full.population[full.ranking.order[0]]
    assert str(EffectSize.of(score - score, 0.95)) == "0.0000 ± 0.0000 (p = 1.000)"


def test_with_all_judged_milestones_are_an_ordinary_g_study(full: ReportResults, small: Collection) -> None:
    assert small.judgments is not None
    study = gstudy(measure(small.runs, small.judgments, "CG@5"), interval="none")
    last = full.milestones[-1]
    assert last.erho2 == pytest.approx(study.coefficient("erho2").value, abs=1e-9)
    assert last.phi == pytest.approx(study.coefficient("phi").value, abs=1e-9)
    assert last.confidence == 1.0
    assert last.half_width == pytest.approx(0.0, abs=1e-12)


def test_judging_counts_as_an_error(partial: ReportResults, full: ReportResults) -> None:
    before, after = partial.milestones
    assert before.judged == 0
    assert after.judged == partial.scores.judged > 0
    assert after.half_width < before.half_width
    for mark in (before, after):
        assert 0 <= mark.phi_lower <= mark.phi <= mark.phi_upper <= 1
        assert mark.phi <= mark.erho2 + 1e-12  # the error of scores holds that of differences
    components = gstudy(partial.by_query, interval="draws")
    assert after.erho2 < components.coefficient("erho2").value


def test_milestones_follow_the_order_of_judging(small: Collection, choice: Choice) -> None:
    assert small.judgments is not None
    few = small.judgments.take(np.arange(30))
    state = Judging.of(replace(small, judgments=few), choice.model, "CG@5", scale=choice.scale).begin()
    found = ReportResults.along(state, choice, few)
    counts = [mark.judged for mark in found.milestones]
    assert counts[0] == 0
    assert counts[-1] == state.scores.judged
    assert counts == sorted(counts)
    assert len(counts) > 3
    assert found.milestones[-1] == milestone(state)
    assert "in the order of judging" in said(report_evaluation(found), "judging")


def test_what_more_is_needed_is_said(partial: ReportResults, full: ReportResults, page: Page) -> None:
    assert "more judgments" in said(page, "reliability")
    assert "E ρ² = 0.95" in said(page, "reliability")
    need = partial.study.queries_for("erho2")
    shown = "never" if np.isinf(need.value) else f"{need.value:,.0f}"
    assert shown in said(page, "reliability")
    assert "All pairs of the pool are judged" in text(reliability(full).parts[-1])


def test_users_are_asked_where_a_mapping_applies(partial: ReportResults, page: Page, choice: Choice) -> None:
    assert "CGl@5/broad" in said(page, "users")
    assert "of 100 users" in said(page, "users")
    other = ReportResults(
        Judging.of(partial.state.judging.collection, choice.model, "AP@5", scale=choice.scale).begin(),
        choice,
        partial.milestones,
    )
    assert "such as DCGl@5/broad" in text(users(other).parts[0])  # nothing is published for it
    lent = users(replace(other, mapping=load_mapping("DCGl@5/broad")))
    assert "DCGl@5/broad" in text(lent.parts[0])
    assert "of 100 users" in text(lent.parts[-1])
    own = replace(load_mapping("DCGl@5/broad"), name="AP@5/mine")  # of a study: no agreement is published by this name
    assert "of 100 users" not in text(users(replace(other, mapping=own)).parts[-1])
    asked = replace(other, mapping=own, agreement=load_agreement("DCGl@5/broad"))
    assert text(users(asked).parts[-1]) == text(lent.parts[-1])


def test_a_new_query_is_predicted_from_both_sides_and_from_one(partial: ReportResults, page: Page) -> None:
    shown = said(page, "new-query")
    first = partial.users.new_query(partial.ranking.order[0], level=partial.level)
    assert first.lower <= first.above <= first.mean <= first.upper
    for figure in (first.mean, first.above):
        assert f"{figure:.4f}" in shown
    assert "95% above" in shown


def test_the_model_shows_its_card(choice: Choice, page: Page) -> None:
    assert choice.card is not None
    shown = said(page, "model")
    assert choice.card.title in shown
    assert all(limit in shown for limit in choice.card.limits)
    assert all(name in shown for name in choice.card.training["campaigns"])
    facts = {"0.9 to 1": {"pairs": 20, "confidence": 0.95, "accuracy": 0.9}}
    evident = replace(choice, card=replace(choice.card, evaluation={"stated confidence": facts}))
    section = model(evident, "robust04")
    rows = next(TableText.of(part).rows for part in section.parts if isinstance(part, Table))
    assert rows == (("0.9 to 1", "20", "0.9500", "0.9000"),)
    assert any("confidence is too high here" in text(part) for part in section.parts)
    assert "has no card" in " ".join(map(text, model(replace(choice, card=None), None).parts))


def test_the_figures_of_an_ordinal_card_are_those_of_campaigns_left_out(choice: Choice) -> None:
    from probeval.relevance import load_card

    card = load_card("text-jud")
    (table,) = (TableText.of(p) for p in model(replace(choice, card=card), None).parts if isinstance(p, Table))
    first = next(iter(card.evaluation.values()))["held out by campaign"]
    assert [row[0] for row in table.rows] == list(first)
    assert [row[-1] for row in table.rows] == [f"{facts['ratio']:.4f}" for facts in first.values()]


def test_the_paragraph_has_value_half_width_and_p(partial: ReportResults, full: ReportResults, page: Page) -> None:
    order = partial.ranking.order
    text_ = paragraph(partial)
    assert str(partial.effect(order[0], order[1])) in text_
    assert "12 (" not in text_  # of 12 judgments those in the pool of depth 5 count
    assert f"{partial.scores.judged} (" in text_
    assert "judging and sampling of queries" in text_
    assert f"{order[0]} has the highest expected score, " in text_
    assert " for the population of queries; it differs from" in text_
    assert re.search(r"learned from \d+ campaigns\)", text_)  # this one may be among them
    # The priors and the inference are named, for a methods section.
    assert "Inference is by Laplace's method (Pareto k " in text_
    assert "of the coefficients of standardised terms log(wSYS) N(1.04, 0.50), wSYS N(0.20, 0.18)" in text_
    assert "of the log standard deviations of effects, " in text_
    assert "query 1.61 (0.39)" in text_
    assert "all were judged" in paragraph(full)
    assert "priors" not in paragraph(full)  # nothing is predicted
    assert f"{full.ranking.order[0]} scored highest, " in paragraph(full)
    assert page["paper"].parts == (Quote(text_),)


def test_how_it_was_made_names_versions_seed_and_model(page: Page) -> None:
    made = said(page, "made")
    for word in ("probeval 0.", "numpy", "seed 0", "model text-hierarchical", "measure CG@5", "probeval report runs/"):
        assert word in made


@pytest.mark.parametrize(("systems", "queries"), [(1, 5), (6, 1), (3, 2), (2, 2), (2, 1)])
def test_small_evaluations_have_a_report_too(small: Collection, choice: Choice, systems: int, queries: int) -> None:
    assert small.judgments is not None
    some = replace(small, runs=_first(small, systems, queries))
    judging = Judging.of(some, choice.model, "P@5", scale=choice.scale, draws=50)
    found = ReportResults.of(judging.begin(), choice)
    page = report_evaluation(found)
    assert [section.key for section in page.sections] == (
        [key for key in ALL if key != "teams" and (key != "new-query" or queries > 1)]
        if systems != 2
        else ["difference", "queries", "next", *["new-query"] * (queries > 1), "model", "paper", "made"]
    )
    assert paragraph(found)
    assert page.lead


def _results_of(collection: Collection, choice: Choice) -> ReportResults:
    judging = Judging.of(collection, choice.model, "CG@5", scale=choice.scale, draws=200)
    return ReportResults.of(judging.begin(), choice)


def _first(campaign: Collection, systems: int, queries: int) -> Runs:
    """Some of the systems and queries."""
    runs = campaign.runs
    lists: dict[str, dict[str, dict[str, float]]] = {}
    for s, name in enumerate(runs.systems[:systems]):
        lists[name] = {}
        for q in range(queries):
            pairs = [p for p in runs.pairs[s, q] if p >= 0]
            lists[name][runs.queries[q]] = {runs.pool.label(int(p))[1]: float(-i) for i, p in enumerate(pairs)}
    return as_runs(lists)


def test_two_systems_have_one_page_on_their_difference(small: Collection, choice: Choice) -> None:
    assert small.judgments is not None
    pair = replace(small, runs=small.runs.select(small.runs.systems[:2]))
    few = pair.judgments.on(pair.runs.top(5).pool)
    values = np.clip(few.grades() + np.random.default_rng(2).integers(-1, 2, len(few.pool)), 0, 2)
    labels = LabelTable(few.pool, ("my_llm",), values[:, None])
    pair = replace(pair, judgments=few.take(np.arange(0, len(few), 3)), labels=labels)
    found = _results_of(pair, choice)
    page = report_evaluation(found, title="Two")
    assert [section.key for section in page.sections] == [
        "difference", "queries", "labels", "next", "new-query", "model", "paper", "made",
    ]  # fmt: skip
    here, new = found.decision.here, found.decision.new
    assert page.lead == f"{found.decision.on_these} {found.decision.on_new}"
    assert [value for _, value, _ in page.figures] == [
        f"{here.difference.mean():+.4f}",
        probability(here.p_better),
        probability(new.p_better),
        f"{found.scores.judged:,}",
    ]
    table = next(TableText.of(part) for part in page["difference"].parts if isinstance(part, Table))
    assert [row[0] for row in table.rows] == ["these", "new", "these, without labels"]
    assert [row[3] for row in table.rows] == [probability(c.p_better) for c in (here, new, found.decision.unlabelled)]
    (sources,) = [TableText.of(part) for part in page["labels"].parts if isinstance(part, Table)]
    assert sources.rows[0][:2] == ("my_llm", "no")
    assert "Labels by my_llm (100% of the pairs) were used as noisy measurements of relevance" in paragraph(found)
    assert ("The next pairs to judge" in said(page, "next")) == found.decision.is_undecided
    assert "E ρ²" not in render(page)
    assert "is better" in render(page)


def test_two_systems_with_all_judged_and_no_labels(small: Collection, choice: Choice) -> None:
    page = report_evaluation(_results_of(replace(small, runs=small.runs.select(small.runs.systems[:2])), choice))
    assert "labels" not in [section.key for section in page.sections]
    assert "Every pair is judged" in said(page, "next")
    assert "Labels by" not in said(page, "paper")


@pytest.mark.parametrize(("error", "said"), [(ModelError("No shape fits."), "No shape fits."), (ValueError("x"), "x")])
def test_a_section_that_fails_leaves_its_reason_and_the_rest(
    partial: ReportResults, page: Page, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(found: ReportResults) -> None:
        raise error

    monkeypatch.setattr("probeval.reports.satisfaction.new_query", fail)
    short = report_evaluation(partial, title="A campaign", command="probeval report runs/")
    assert [s.key for s in short.sections] == [s.key for s in page.sections]
    (failed,) = [s for s in short.sections if s.key == "new-query"]
    assert isinstance(failed.parts[0], Prose)
    assert failed.parts[0].text.startswith("This section could not be made. ")
    assert said in failed.parts[0].text
