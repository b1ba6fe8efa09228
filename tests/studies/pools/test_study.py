"""A whole study of pools: over campaigns, in processes, with all of its exits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.data import Collection, Judgments, Runs
from probeval.errors import DataError
from probeval.plots import plot_multiplicity, plot_pools, plot_trends


def made(seed: int, name: str, *, judged: float = 1.0) -> Collection:
    campaign = probeval.synthetic_campaign(seed=seed, systems=6, queries=12, depth=20)
    kept = np.random.default_rng(0).random(len(campaign.judgments)) < judged
    return replace(campaign, name=name, judgments=campaign.judgments.take(kept))


@pytest.fixture(scope="module")
def campaigns() -> list[Collection]:
    return [made(1, "one"), made(2, "two")]


@pytest.fixture(scope="module")
def study(campaigns):
    return probeval.pool_study(campaigns, ["AP", "P@5"], shares=[0.2, 0.6], depths=[2, 5, 20], leave_team_out=True)


def test_every_cut_of_every_campaign_has_a_row_per_measure(study):
    rows = study.to_frame()
    cuts = ["depth 2", "depth 5", "depth 20", "share 0.2", "share 0.6", "without team-1", "without team-2"]
    for _, part in rows.groupby(["campaign", "metric"]):
        assert part["cut"].tolist() == cuts
    assert study.names == ("one", "two")
    whole = rows[rows["cut"] == "depth 20"]
    assert (whole["concordance"] == 1).all()
    assert (whole["change"] == 0).all()
    assert rows[["residual", "largest_residual"]].notna().all(axis=None)  # beside every test
    assert (rows["unjudged_as"] == "not relevant").all()


def test_the_judgments_of_each_cut(study, campaigns):
    cuts = study["one"].cut_frame().set_index("cut")
    pool = campaigns[0].runs.top(2).pool
    known = campaigns[0].judgments.codes_on(pool, campaigns[0].scale()) >= 0
    assert cuts.loc["depth 2", "judged"] == known.sum()
    assert cuts.loc["depth 20", "kept"] == 1
    assert cuts.loc["share 0.6", "kept"] == pytest.approx(0.6, abs=0.02)
    assert cuts.loc["depth 20", "unjudged"] == 0
    assert cuts.loc["depth 20", "first_unjudged"] == 21  # the end of every list
    assert 1 < cuts.loc["depth 2", "first_unjudged"] < 21


def test_trends_are_of_depths_and_of_shares(study):
    trends = study.trend_frame()
    assert set(trends["kind"]) == {"depth", "share"}
    assert (trends["cuts"] == 2).all()
    for part in study.campaigns:
        for trend in part.trends:
            names = (trend.metric, trend.test, trend.lists, trend.kind)
            bars = [b for b in part.bars if (b.metric, b.test, b.lists, b.kind) == names]
            across = sum(bar.straddling for bar in bars)
            assert across / trend.pairs == pytest.approx(trend.straddling)


def test_shares_and_correlations_stay_in_their_range(study):
    rows, trends = study.to_frame(), study.trend_frame()
    for table, names in (
        (
            rows,
            ["discrimination", "concordance", "residual", "largest_residual", "p_counts", "rises", "stays", "falls"],
        ),
        (trends, ["straddling", "falling", "rising", "straddling_falling", "straddling_rising"]),
        (study.cut_frame(), ["kept", "relevant", "unjudged", "residual", "largest_residual"]),
    ):
        assert (table[names].isna() | table[names].ge(0) & table[names].le(1)).all(axis=None)
    for taus in (rows[["tau"]], trends[["tau_difference", "tau_ratio"]]):
        assert (taus.isna() | taus.abs().le(1)).all(axis=None)


def test_processes_do_not_change_the_result(campaigns):
    one, two = (probeval.pool_study(campaigns, "AP", shares=[0.3], jobs=jobs).to_dict() for jobs in (1, 2))
    np.testing.assert_equal(one, two)  # NaN is equal to itself


def test_a_seed_draws_the_shares(campaigns):
    first, again, other = (
        probeval.pool_study(campaigns[0], "AP", shares=[0.1], seed=seed).to_frame()["change"].tolist()
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_an_incomplete_campaign_counts_all_systems_and_says_so():
    study = probeval.pool_study(made(3, "holes", judged=0.7), "AP", depths=[5, 20])
    assert not study["holes"].facts.deep
    assert "fewer than two systems are judged to depth 20" in study.notes[0]
    assert study["holes"].cut_frame()["unjudged"].iloc[-1] > 0.2  # the reference has unjudged documents too
    assert "not all deeply judged" in study.summary()


def test_submitted_ranks_are_compared_with_scores(tmp_path):
    """Two rows of Figure 3.2 of Yang (2019): ranks 536 and 537 among the best."""
    lines = zip("ABCDEFG", [1, 2, 3, 536, 4, 537, 5], [20.2, 19.7, 19.6, 19.5, 19.3, 19.1, 17.6], strict=True)
    text = "".join(f"351 Q0 {doc} {rank} {score} LIA\n" for doc, rank, score in lines)
    (tmp_path / "odd" / "runs").mkdir(parents=True)
    (tmp_path / "odd" / "runs" / "LIA").write_text(text)
    (tmp_path / "odd" / "runs" / "other").write_text("351 Q0 A 1 2 o\n351 Q0 B 2 2 o\n351 Q0 C 3 1 o\n")
    (tmp_path / "odd" / "qrels.txt").write_text("351 0 A 1\n351 0 B 0\n351 0 C 1\n")
    facts = probeval.pool_study(tmp_path / "odd", "P@2", depths=[1, 2])["odd"].facts
    assert facts.contradicting_docs == pytest.approx(4 / 10)  # 536 and 4, 537 and 5
    assert facts.contradicting_systems == 0.5
    assert (facts.tied_docs, facts.tied_lists) == (0.2, 0.5)


def test_runs_without_ranks_have_no_contradictions(study):
    assert np.isnan(study["one"].facts.contradicting_docs)


def test_a_team_is_compared_with_others_only(study, campaigns):
    rows = study["one"].to_frame()
    teams = campaigns[0].runs.teams
    mine = teams.count("team-1")
    assert rows.loc[rows["cut"] == "without team-1", "pairs"].tolist() == [mine * (6 - mine)] * 2


def test_exits(study, tmp_path):
    assert repr(study) == "<PoolStudy: AP, P@5 by 14 sets of judgments, one, two>"
    assert set(study.named_tables()) == {"facts", "tests", "scores", "teams", "cuts", "trends", "multiplicity"}
    for text in (study.summary(), study.to_markdown(), study.to_latex(), study._repr_html_()):
        assert "without team-2" in text
    page = probeval.report(study, tmp_path / "pools.html", command="probeval pool one two")
    assert [s.key for s in page.sections][:4] == ["campaigns", "tests", "decisions", "scores"]
    html = (tmp_path / "pools.html").read_text()
    assert "RBP residual" in html
    assert html.count("<svg") == 3


def test_pictures(study, campaigns):
    first = plot_pools(study)
    assert [ax.get_title(loc="left") for ax in first.figure.axes] == ["one", "two"]
    for kind in ("share", "team"):
        plot_pools(study, kind=kind)
    plot_trends(study, metric="P@5")
    plot_multiplicity(study)
    shallow = probeval.pool_study(campaigns[0], "AP", depths=[5, 20])
    with pytest.raises(DataError, match="two cuts below the reference"):
        plot_trends(shallow)
    with pytest.raises(DataError, match="no cuts of the kind 'team'"):
        plot_pools(shallow, kind="team")


def test_one_grade_for_a_query_without_kept_judgments():
    """A query whose judged documents are all below the cut keeps its place: its lists score 0, it is not dropped."""
    runs = Runs.rows(["a", "a", "b", "b"] * 2, ["q1"] * 4 + ["q2"] * 4, ["1", "2", "2", "1", "3", "4", "3", "4"])
    judgments = Judgments.rows(["q1", "q1", "q2"], ["1", "2", "4"], [1, 0, 1])
    study = probeval.pool_study(Collection("c", runs, judgments), "AP", depths=[1, 2])
    assert study["c"].facts.queries == 2
    assert study.to_frame()["rises"].iloc[0] == 0.5  # q2 has no judgment at depth 1, and a relevant document below
