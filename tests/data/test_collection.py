from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.data import (
    UNJUDGED,
    Collection,
    Judgments,
    LabelTable,
    Pool,
    Runs,
    Scale,
    read_campaign,
    read_teams,
    write_campaign,
)
from probeval.data.problem import Grades
from probeval.errors import DataError, ScaleError
from tests.heard import Heard

# The figures of the campaigns' README: systems, teams, queries, judgments, scale.
CAMPAIGNS = {
    "mirex2011": (18, None, 100, 6_322, "fine"),
    "trec8-adhoc": (129, 41, 50, 86_830, "binary"),
    "trec-dl2019-passage": (37, 12, 43, 9_260, "graded:3"),
    "clef-ehealth2018-irtask1": (24, None, 50, 26_025, "graded:2"),
    "trec-covid-round1": (143, 56, 30, 8_691, "graded:2"),
    "touche2022-task2": (21, None, 50, 2_107, "graded:2"),
}


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_real_campaigns_have_the_counts_of_their_readme(data, name):
    systems, teams, queries, judgments, scale = CAMPAIGNS[name]
    campaign = read_campaign(data / name)
    assert campaign.name == name
    assert len(campaign.runs.systems) == systems
    assert len(campaign.runs.queries) == queries
    assert len(campaign.judgments) == len(campaign.judgments.pool) == judgments
    assert str(campaign.judgments.scale()) == scale
    assert campaign.runs.depth == (5 if name == "mirex2011" else 100)
    if teams:
        assert len(set(campaign.runs.teams)) == teams
    assert (campaign.metadata is not None) == (name == "mirex2011")
    assert (campaign.labels is not None) == (name == "trec-dl2019-passage")
    # The files hold the lists in trec_eval's order, which is ours.
    assert np.all(np.diff(campaign.runs.scores.astype(np.float32), axis=2)[campaign.runs.retrieved[..., 1:]] <= 0)


def test_every_pair_of_mirex_is_judged(data):
    campaign = read_campaign(data / "mirex2011")
    assert campaign.runs.pool == campaign.judgments.pool
    assert campaign.runs.teams is None


@pytest.mark.parametrize("name", ["mirex2011", "trec-dl2019-passage"])
def test_file_order_is_the_order_of_trec_eval(data, name):
    by_rule, as_listed = (read_campaign(data / name, order=order).runs for order in ("trec_eval", "file"))
    assert np.array_equal(by_rule.pairs, as_listed.pairs)


@pytest.fixture
def whole(small) -> Collection:
    rng = np.random.default_rng(2)
    values = np.where(rng.random((len(small.runs.pool), 2)) < 0.3, np.nan, rng.normal(size=(len(small.runs.pool), 2)))
    return replace(small, labels=LabelTable(small.runs.pool, ("gpt", "clicks"), values))


def test_a_written_campaign_reads_back(tmp_path, whole):
    write_campaign(whole, tmp_path / "synthetic")
    again = read_campaign(tmp_path / "synthetic")
    assert again.name == "synthetic"
    assert again.runs.systems == whole.runs.systems
    assert again.runs.teams == whole.runs.teams
    assert again.runs.to_frame().equals(whole.runs.to_frame())
    assert again.judgments.to_frame().equals(whole.judgments.to_frame())
    assert again.metadata.docs.tolist() == whole.metadata.docs.tolist()
    assert again.metadata.groups["source"].tolist() == whole.metadata.groups["source"].tolist()
    assert again.labels.sources == whole.labels.sources
    np.testing.assert_array_equal(again.labels.on(whole.runs.pool).values, whole.labels.values)
    names = {p.name for p in (tmp_path / "synthetic").iterdir()}
    assert names == {"runs", "qrels.txt", "systems.tsv", "metadata.tsv", "labels.tsv"}


def test_probabilities_and_descriptions_of_labels_read_back(tmp_path, small):
    pool = small.runs.pool
    parts = np.random.default_rng(1).dirichlet([1, 1, 1], size=len(pool))
    parts[0] = np.nan
    labels = LabelTable(pool, ("ann", "m"), np.column_stack([np.ones(len(pool)), parts @ [0, 1, 2]]), {"m": parts})
    labels = labels.described({"ann": {"kind": "person", "scale": "graded:3"}})
    write_campaign(replace(small, labels=labels), tmp_path / "c")
    again = read_campaign(tmp_path / "c").labels
    assert again.observers == labels.observers
    assert again.descriptions == labels.descriptions
    np.testing.assert_allclose(again.on(pool).probabilities["m"], parts)
    np.testing.assert_allclose(again.on(pool).values, labels.values)
    (tmp_path / "c" / "observers.tsv").write_text("name\tscale\nann\tbinary\nm\tbinary\n")
    with pytest.raises(DataError) as caught:
        read_campaign(tmp_path / "c")
    assert str(caught.value).startswith(f"{tmp_path / 'c' / 'observers.tsv'}: observer 'm' has probabilities of grades")


def test_groups_with_quotes_and_tabs_read_back(tmp_path, small):
    from probeval.arrays import objects
    from probeval.data import Metadata

    odd = ['"a', 'b"c"', "d\te", "f g", "", "é", "NaN"]
    metadata = Metadata(objects([f"d{i}" for i in range(7)]), {"site": objects(odd)})
    write_campaign(replace(small, metadata=metadata), tmp_path / "c")
    assert read_campaign(tmp_path / "c").metadata.groups["site"].tolist() == odd


def test_a_campaign_may_be_runs_alone(tmp_path, small):
    write_campaign(Collection("bare", small.runs.select(["system-02"])), tmp_path / "bare")
    bare = read_campaign(tmp_path / "bare")
    assert (bare.judgments, bare.metadata, bare.labels) == (None, None, None)
    assert repr(bare) == "<Collection: bare, 1 system, 5 queries, depth 8, 40 pairs>"


def test_writing_twice_gives_the_same_bytes(tmp_path, whole):
    for _ in range(2):
        write_campaign(whole, tmp_path / "a")
    write_campaign(whole, tmp_path / "b")
    for path in (tmp_path / "a").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_other_runs_in_the_folder_are_not_mixed_in(tmp_path, small):
    write_campaign(small, tmp_path)
    with pytest.raises(DataError, match=r"holds other runs already \(system-02.gz\)"):
        write_campaign(Collection("other", small.runs.select(["system-01"])), tmp_path)
    assert read_campaign(tmp_path).runs.to_frame().equals(small.runs.to_frame())


@pytest.mark.parametrize("name", ["../escape", "a/b", "..", ".hidden", "bm25.csv", "/abs"])
def test_a_system_that_cannot_be_a_file_is_not_written(tmp_path, name):
    with pytest.raises(DataError, match="cannot be the name of a run file"):
        write_campaign(Collection("c", Runs.rows([name], ["q"], ["d"], [1])), tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_runs(tmp_path):
    with pytest.raises(DataError, match="has its runs in 'runs/'"):
        read_campaign(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(DataError, match="the directory has no runs"):
        read_campaign(tmp_path)


def test_teams_need_their_columns(put):
    assert read_teams(put("systems.tsv", "run\tteam\tx\n007\tt\t1\n")) == {"007": "t"}
    with pytest.raises(DataError, match=r"expected the columns 'run' \(or 'system'\) and 'team', got 'name', 'team'"):
        read_teams(put("systems.tsv", "name\tteam\na\tb\n"))


def test_progress_sees_every_file(tmp_path, small):
    write_campaign(small, tmp_path)
    heard = Heard()
    read_campaign(tmp_path, reporter=heard)
    assert [file.name for file in heard.done] == [f"{system}.gz" for system in small.runs.systems]


def test_pools_are_apart(small):
    # Judgments keep their own pool: pairs that no system retrieved stay known.
    more = small.judgments.on(small.runs.pool.union(Pool.of(["q1"], ["zz"])))
    assert len(more.pool) == len(small.runs.pool) + 1
    assert np.isnan(more.grades()).sum() == 1


def test_the_scale_is_the_one_named_else_that_of_the_judgments(small):
    assert small.scale() == small.judgments.scale() == small.judgments.scale(None)
    assert small.scale(Scale.graded(4)) == small.judgments.scale(Scale.graded(4)) == Scale.graded(4)
    for judgments in (None, Judgments.none(small.runs.pool)):
        bare = replace(small, judgments=judgments)
        assert bare.scale(Scale.binary()) == Scale.binary()
        with pytest.raises(ScaleError, match=r"^Without judgments the scale of the grades must be named\.$"):
            bare.scale()


def test_codes_on_a_pool_are_those_of_the_judgments_there(small):
    pool, scale = small.runs.top(2).pool, small.scale()
    expected = small.judgments.on(pool).codes(scale)
    np.testing.assert_array_equal(small.problem(depth=2).grades.codes, expected)
    np.testing.assert_array_equal(Grades.of(small.judgments, pool, scale).codes, expected)
    np.testing.assert_array_equal(small.judgments.codes_on(pool, scale), expected)
    nothing = replace(small, judgments=None).problem(depth=2, scale=scale).grades.codes
    assert nothing.dtype == expected.dtype
    assert nothing.tolist() == [UNJUDGED] * len(pool)


@pytest.mark.parametrize(
    ("depths", "systems", "depth"),
    [
        ([4, 4, 4, 4], 4, 4),  # all are judged to depth 4
        ([4, 1, 1, 1], 1, 4),  # a quarter is
        ([3, 3, 0, 0], 2, 3),  # none is; half of them to depth 3
        ([1, 1, 1, 1], 4, 4),  # to less than half the depth: all systems count
    ],
)
def test_the_part_to_learn_from_is_as_deep_as_it_is_judged(depths, systems, depth):
    rows = [(f"s{i}", "q", f"d{i}{rank}") for i in range(4) for rank in range(6)]
    judged = [f"d{i}{rank}" for i, n in enumerate(depths) for rank in range(n)]
    judgments = Judgments.rows(["q"] * len(judged), judged, [0, 1] * (len(judged) // 2) + [1] * (len(judged) % 2))
    part = Collection("past", Runs.rows(*zip(*rows, strict=True)), judgments).judged_part(4)
    assert (len(part.runs.systems), part.runs.depth) == (systems, depth)


def test_real_campaigns_are_learned_from_at_the_depth_to_which_they_are_judged(data):
    assert read_campaign(data / "touche2022-task2").judged_part(10).runs.depth == 5
    assert len(read_campaign(data / "acordar1").judged_part(10).runs.systems) == 12  # none is fully judged


def test_without_judgments_there_is_nothing_to_learn_from():
    with pytest.raises(DataError, match="bare: without judgments there is nothing to learn from"):
        Collection("bare", Runs.rows(["a"], ["q"], ["d"])).judged_part(10)
