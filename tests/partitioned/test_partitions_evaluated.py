"""A campaign in partitions gives the same answer as in memory, however it is cut and wherever the work is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import probeval
from probeval.data import Collection, Judgments, LabelTable, Metadata, split, write_partitions
from probeval.display import Table
from probeval.errors import ProbevalError
from probeval.features import standards
from probeval.partitioned import PartitionedEstimate, tasks
from probeval.relevance import Hierarchical, SyntheticCampaign, load_card
from probeval.reports.page import TableText
from tests.heard import Heard

QUERIES, KEPT, JUDGED = 24, 8, 30
SAME = {"rtol": 0, "atol": 1e-9}


@pytest.fixture(scope="module")
def campaign() -> Collection:
    """A campaign with labels of all pairs, of which one source leaves some out, and some judgments."""
    rng = np.random.default_rng(3)
    full = SyntheticCampaign(systems=4, queries=QUERIES, depth=5, docs=30).draw(rng)
    full = replace(full, metadata=None)
    assert full.judgments is not None
    grades = full.judgments.on(full.runs.pool).grades()
    labels = np.column_stack([np.clip(np.round(grades + rng.normal(0, sd, len(grades))), 0, 2) for sd in (0.6, 0.9)])
    labels[rng.random(len(grades)) < 0.2, 1] = np.nan
    judged = full.judgments.take(rng.permutation(len(full.judgments))[:JUDGED])
    return replace(full, judgments=judged, labels=LabelTable(full.runs.pool, ("bot", "other"), labels))


@pytest.fixture(autouse=True, scope="module")
def few_in_memory():
    """Constants are from few queries, and work is done in small chunks: most queries are in no one's memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(standards, "SAMPLE", KEPT)
        patch.setattr(tasks, "CHUNK", 5)
        yield


@pytest.fixture(scope="module")
def folders(campaign, tmp_path_factory) -> dict[int, Path]:
    """The campaign in one partition, in 3 and in 7."""
    home = tmp_path_factory.mktemp("partitions")
    found = {n: home / f"in-{n}" for n in (1, 3, 7)}
    for n, folder in found.items():
        write_partitions(split(campaign, n), folder)
    return found


@pytest.fixture(scope="module")
def whole(campaign) -> probeval.Evaluation:
    return probeval.evaluate(campaign, "DCG@5")


@pytest.fixture(scope="module")
def in_three(folders) -> probeval.Evaluation:
    return probeval.evaluate(folders[3], "DCG@5", jobs=1)


def assert_same_scores(a: probeval.Evaluation, b: probeval.Evaluation) -> None:
    """All that follows from the scores of two evaluations is the same."""
    for part in ("mean", "covariance", "between", "query_mean", "query_variance", "draws"):
        one, other = getattr(a.scores.joint, part), getattr(b.scores.joint, part)
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, **SAME)
    assert (a.scores.pool, a.scores.judged, a.scores.ideal) == (b.scores.pool, b.scores.judged, b.scores.ideal)
    assert a.scores.queries.tolist() == b.scores.queries.tolist()
    assert a.ranking.order == b.ranking.order


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "parts"), [("DCG@5", (1, 3, 7)), ("nDCG@5", (7,))])
def test_partitions_give_what_memory_gives(campaign, folders, metric, parts):
    whole = probeval.evaluate(campaign, metric, draws=50)
    for n in parts:
        part = probeval.evaluate(folders[n], metric, draws=50, jobs=1)
        assert len(part.estimate.estimation.pool.queries) < QUERIES
        assert_same_scores(part, whole)
        assert part.labels.to_dict()["sources"][0]["labelled"] == 1.0
        np.testing.assert_allclose(
            part.labels.to_frame()[["labelled", "slope"]].astype(float),
            whole.labels.to_frame()[["labelled", "slope"]].astype(float),
            **SAME,
        )


def test_without_labels_and_without_judgments(campaign, folders, tmp_path):
    bare = replace(campaign, labels=None, judgments=None)
    write_partitions(split(bare, 4), tmp_path / "bare")
    options = {"draws": 50, "scale": "graded:2"}
    assert_same_scores(
        probeval.evaluate(tmp_path / "bare", "DCG@5", jobs=1, **options), probeval.evaluate(bare, "DCG@5", **options)
    )


@pytest.mark.slow
def test_a_population_of_queries_and_a_second_measure(campaign, folders):
    whole = probeval.evaluate(campaign, "DCG@5", target="population")
    part = probeval.evaluate(folders[3], "DCG@5", target="population", jobs=1)
    assert_same_scores(part, whole)
    assert_same_scores(part.by("P@5"), whole.by("P@5"))
    with pytest.raises(ProbevalError, match="depth 3, the partitions were read to depth 5"):
        part.by("P@3")


@pytest.mark.slow
def test_processes_give_the_same(folders, in_three):
    assert_same_scores(probeval.evaluate(folders[3], "DCG@5", jobs=2), in_three)


def test_judgments_of_a_file_take_the_place_of_the_folder_s(campaign, folders):
    few = campaign.judgments.take(np.arange(10))
    assert_same_scores(
        probeval.evaluate(folders[3], "DCG@5", qrels=few, scale="graded:2", jobs=1),
        probeval.evaluate(replace(campaign, judgments=few), "DCG@5", scale="graded:2"),
    )


@pytest.mark.slow
def test_comparisons_next_pairs_and_trust_do_not_depend_on_partitions(campaign, folders, whole, in_three):
    seven = probeval.evaluate(folders[7], "DCG@5", jobs=1)
    nexts, nexts_ = (evaluation.next(20).to_frame() for evaluation in (in_three, seven))
    assert nexts[["query", "doc"]].equals(nexts_[["query", "doc"]])
    kept = set(standards.sample_positions(QUERIES).tolist())
    assert {int(np.searchsorted(campaign.runs.queries, q)) for q in nexts["query"]} & kept
    trust, trust_ = seven.trust(), in_three.trust()
    np.testing.assert_allclose(trust.to_frame()["slope"], trust_.to_frame()["slope"], **SAME)
    np.testing.assert_allclose(trust.rankings()["confidence"], whole.trust().rankings()["confidence"], **SAME)
    compared, compared_ = (probeval.compare(c, "DCG@5", jobs=1).to_frame() for c in (folders[7], campaign))
    for column in ("difference", "p_better", "p_better_unlabelled"):
        np.testing.assert_allclose(compared[column], compared_[column], **SAME)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "more.tsv"}, "--labels does not go with a campaign in partitions"),
        ({"systems": "judged"}, "--systems does not go"),
        ({"inference": "nuts"}, "a sampler needs all pairs"),
        ({"model": "uniform"}, "evaluated by the hierarchical model"),
        ({"aggregate": "gm-eps"}, "Geometric means need the draws of every query"),
        ({"method": "exact"}, "scored by moments or draws, not by exact"),
        ({"method": "draws", "draws": 1}, "At least two draws"),
    ],
)
def test_what_cannot_be_done_in_parts_is_refused(folders, options, message):
    with pytest.raises(ProbevalError, match=message):
        probeval.evaluate(folders[3], "DCG@5", **{"jobs": 1, **options})


def test_what_needs_all_pairs_is_refused(campaign, folders, in_three):
    for work in (in_three.fairness, in_three.posterior, in_three.page):
        with pytest.raises(ProbevalError, match="all pairs in memory"):
            work()
    with pytest.raises(ProbevalError, match="Tests need the scores of all queries"):
        probeval.compare(folders[3], "DCG@5", method="t")


@pytest.fixture(scope="module")
def plain(campaign) -> Collection:
    """The same, with judgments as a file has them: of the judged pairs alone."""
    judged = campaign.judgments.to_frame()
    return replace(campaign, judgments=Judgments.rows(judged["query"], judged["doc"], judged["grade"]))


@pytest.fixture(scope="module")
def whole_plain(plain) -> probeval.Evaluation:
    return probeval.evaluate(plain, "DCG@5")


@pytest.fixture(scope="module")
def in_processes(plain) -> probeval.Evaluation:
    return probeval.evaluate(plain, "DCG@5", jobs=2)


def test_queries_without_judgments_are_in_no_one_s_memory(campaign, plain):
    """Also where the pool of the judgments has all pairs."""
    kept = [
        probeval.evaluate(given, "DCG@5", jobs=1).estimate.estimation.pool.queries.tolist()
        for given in (plain, campaign)
    ]
    assert len(kept[0]) < QUERIES
    assert kept[0] == kept[1]


def without_labels(said):
    """The sentences but those on labels: their agreement is over all pairs, which are not in memory."""
    return [sentence for sentence in said if not sentence.startswith("Labels: ")]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("metric", ["DCG@5", "nDCG@5"])
def test_processes_give_for_plain_runs_what_memory_gives(plain, metric, jobs):
    here, heard = Heard(), Heard()
    whole = probeval.evaluate(plain, metric, draws=50, reporter=here)
    part = probeval.evaluate(plain, metric, draws=50, jobs=jobs, reporter=heard)
    assert isinstance(part.estimate, PartitionedEstimate)
    assert len(part.estimate.estimation.pool.queries) < QUERIES
    assert_same_scores(part, whole)
    np.testing.assert_allclose(part.ranking.p_rank, whole.ranking.p_rank, **SAME)
    assert part.to_frame()["system"].tolist() == whole.to_frame()["system"].tolist()
    numbers = ["mean", "lower", "upper"]
    np.testing.assert_allclose(part.to_frame()[numbers], whole.to_frame()[numbers], **SAME)
    np.testing.assert_allclose(
        part.labels.to_frame()[["labelled", "slope"]].astype(float),
        whole.labels.to_frame()[["labelled", "slope"]].astype(float),
        **SAME,
    )
    assert without_labels(part.sentences()) == without_labels(whole.sentences())
    assert without_labels(heard.said) == without_labels(here.said)
    assert repr(part) == repr(whole)


def test_processes_without_labels_and_without_judgments(campaign):
    bare = replace(campaign, labels=None, judgments=None)
    options = {"draws": 50, "scale": "graded:2"}
    assert_same_scores(probeval.evaluate(bare, "DCG@5", jobs=2, **options), probeval.evaluate(bare, "DCG@5", **options))


@pytest.mark.slow
def test_plain_runs_in_processes_have_all_their_pairs(whole_plain, in_processes):
    pairs, pairs_ = (evaluation.next(10).to_frame() for evaluation in (in_processes, whole_plain))
    pd.testing.assert_frame_equal(pairs, pairs_, rtol=0, atol=1e-9)
    kept = set(in_processes.estimate.estimation.pool.queries.tolist())
    assert not set(in_processes.next(100).to_frame()["query"]) <= kept  # not only among the queries in memory
    fair, fair_ = (evaluation.fairness().to_frame() for evaluation in (in_processes, whole_plain))
    pd.testing.assert_frame_equal(fair, fair_, rtol=0, atol=1e-9)
    posterior, posterior_ = (evaluation.posterior() for evaluation in (in_processes, whole_plain))
    np.testing.assert_allclose(posterior.weights, posterior_.weights, **SAME)
    for name, one in posterior_.log_sds.items():
        np.testing.assert_allclose(posterior.log_sds[name].mean, one.mean, **SAME)
    page, page_ = (evaluation.page() for evaluation in (in_processes, whole_plain))
    assert page.title == page_.title
    assert [section.title for section in page.sections] == [section.title for section in page_.sections]
    tables, tables_ = (
        [TableText.of(part).rows for section in one.sections for part in section.parts if isinstance(part, Table)]
        for one in (page, page_)
    )
    assert tables == tables_


@pytest.mark.slow
def test_the_report_of_plain_runs_in_processes_is_written(in_processes, tmp_path):
    written = in_processes.report(tmp_path / "report.html")
    assert "DCG@5" in written.read_text(encoding="utf-8")


@pytest.mark.slow
def test_another_measure_in_processes(whole_plain, in_processes):
    assert_same_scores(in_processes.by("P@5"), whole_plain.by("P@5"))


def test_a_measure_of_another_depth_in_processes(whole_plain, in_processes):
    assert_same_scores(in_processes.by("P@3"), whole_plain.by("P@3"))  # all runs are there


@pytest.mark.slow
def test_measures_and_features_that_look_deeper_than_the_pool(plain):
    """Parts of runs in memory are whole lists: a measure without a cutoff, and features of deeper ranks, see them."""
    prior = load_card("text-hierarchical").model.prior
    deeper = replace(prior, terms=tuple(term.replace("fSYS", "fSYS@5") for term in prior.terms))
    for model in (None, Hierarchical(deeper)):
        whole, parts = (probeval.evaluate(plain, "nDCG@3", model=model, draws=50, **how) for how in ({}, {"jobs": 1}))
        assert isinstance(parts.estimate, PartitionedEstimate)
        assert_same_scores(parts, whole)
        assert_same_scores(parts.by("AP"), whole.by("AP"))


@pytest.mark.slow
def test_without_labels_all_pairs_are_without_them_too(in_processes):
    without = in_processes.estimate.relabelled(())
    assert without.with_all_pairs.collection.labels is None
    np.testing.assert_allclose(without.with_all_pairs.scores.mean, without.scores.mean, **SAME)


@pytest.mark.slow
def test_pairs_and_comparisons_of_plain_runs_in_processes(plain):
    pairs, pairs_ = (probeval.next_pairs(plain, "DCG@5", n=5, **how).to_frame() for how in ({"jobs": 2}, {}))
    pd.testing.assert_frame_equal(pairs, pairs_, rtol=0, atol=1e-9)
    compared, compared_ = (probeval.compare(plain, "RR@5", draws=50, **how) for how in ({"jobs": 2}, {}))
    pd.testing.assert_frame_equal(compared.to_frame(), compared_.to_frame(), rtol=0, atol=1e-9)
    assert without_labels(compared.sentences()) == without_labels(compared_.sentences())


@pytest.mark.slow
def test_users_and_a_new_query_are_of_all_queries(plain):
    compared, compared_ = (
        probeval.compare(plain, "DCG@5", new_query=True, draws=50, **how) for how in ({"jobs": 2}, {})
    )
    pd.testing.assert_frame_equal(compared.to_frame(), compared_.to_frame(), rtol=0, atol=1e-9)
    assert without_labels(compared.sentences()) == without_labels(compared_.sentences())
    assert compared.labels.sources[0].correlation is None  # of all pairs, which are not in memory


def with_metadata(campaign: Collection) -> Collection:
    docs = np.unique(campaign.runs.pool.docs)
    genres = np.array([f"genre-{i % 3}" for i in range(len(docs))], dtype=object)
    return replace(campaign, metadata=Metadata(docs, {"genre": genres}))


@pytest.mark.parametrize(
    ("what", "options", "why"),
    [
        ("metadata", {}, "metadata need all queries at once."),
        ("preferences", {}, "answers need all queries at once."),
        ("", {"outside": True}, "documents outside the pool are estimated from all queries."),
        ("", {"aggregate": "gm-eps"}, "this model, or this kind of scores, needs all queries at once."),
        ("", {"model": "independent"}, "this model, or this kind of scores, needs all queries at once."),
    ],
)
def test_what_needs_all_queries_is_done_in_one_process(campaign, what, options, why):
    given, metric = campaign, "DCG@5"
    if what == "metadata":
        given = with_metadata(campaign)
    if what == "preferences":
        query, left = campaign.runs.pool.label(0)
        right = campaign.runs.pool.label(1)[1]
        row = {"query": query, "left": left, "right": right, "choice": "left", "assessor": "ann"}
        options = {"preferences": pd.DataFrame([row])}
    here, heard = Heard(), Heard()
    whole = probeval.evaluate(given, metric, draws=50, reporter=here, **options)
    part = probeval.evaluate(given, metric, draws=50, jobs=2, reporter=heard, **options)
    remark = f"Estimated in one process: {why}"
    assert remark in heard.said
    assert remark in part.notes
    assert [said for said in heard.said if said != remark] == here.said
    assert_same_scores(part, whole)


def test_one_query_is_evaluated_in_one_process(campaign):
    judged = campaign.judgments.to_frame()["query"][0]
    one = replace(campaign, runs=campaign.runs.at(np.flatnonzero(campaign.runs.queries == judged)))
    assert_same_scores(probeval.evaluate(one, "DCG@5", jobs=2), probeval.evaluate(one, "DCG@5"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Dask says of itself
def test_a_scheduler_that_is_not_there(campaign):
    pytest.importorskip("distributed", reason="Dask is not installed")
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(ProbevalError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:1\."),
    ):
        probeval.evaluate(campaign, "DCG@5", scheduler="tcp://127.0.0.1:1")
