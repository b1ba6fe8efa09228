from __future__ import annotations

import numpy as np
import pytest

from probeval.data import ObserverSpec, Scale, write_campaign
from probeval.errors import ModelError
from probeval.relevance import SyntheticObserver, load_card, synthetic_campaign
from probeval.relevance.effects import model_effects
from probeval.relevance.synthetic import SPREAD


def draw(seed: int, **sizes):
    return synthetic_campaign(seed=seed, **sizes)


def content(folder) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_same_seed_same_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", 4), ("b", 4), ("c", 5)):
        write_campaign(draw(seed), tmp_path / name)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    a, c = content(tmp_path / "a"), content(tmp_path / "c")
    assert a.keys() == c.keys()
    assert all(a[name] != c[name] for name in a if name != "systems.tsv")


def test_sizes():
    campaign = draw(1, systems=7, queries=9, depth=11, docs=30, groups=4)
    runs = campaign.runs
    assert runs.pairs.shape == (7, 9, 11)
    assert runs.retrieved.all()
    assert np.all(runs.pool.sizes <= 30)
    assert len(runs.systems) == len(set(runs.systems)) == 7
    assert set(campaign.metadata.groups["source"]) <= {f"source-{i}" for i in range(1, 5)}
    assert campaign.metadata.docs.tolist() == runs.pool.docs.tolist()
    assert campaign.labels is None


@pytest.mark.parametrize(
    ("systems", "sizes"), [(5, [3, 2]), (10, [3, 2, 3, 2]), (11, [3, 2, 3, 3]), (12, [3, 2, 3, 4])]
)
def test_teams_are_small_and_nobody_is_alone(systems, sizes):
    # Threes and twos in turn; the last team takes what is left.
    teams = draw(0, systems=systems, queries=2, depth=3).runs.teams
    assert [teams.count(f"team-{i + 1}") for i in range(len(set(teams)))] == sizes


def test_every_pair_is_judged_on_the_scale():
    for scale in (Scale.binary(), Scale.graded(3), Scale.fine()):
        campaign = draw(2, scale=scale)
        grades = campaign.judgments.grades()
        assert campaign.judgments.pool is campaign.runs.pool
        assert not np.isnan(grades).any()
        assert set(grades) <= set(scale.grades)
        assert len(set(grades)) > 1


def test_it_says_that_it_is_synthetic():
    assert draw(0).name == "synthetic"


def test_no_list_is_longer_than_the_documents_there_are():
    assert draw(0, depth=50, docs=10, queries=3).runs.depth == 10


def test_one_system_one_query():
    campaign = draw(3, systems=1, queries=1, depth=4)
    assert campaign.runs.pairs.shape == (1, 1, 4)
    assert len(campaign.judgments) == 4


def test_the_share_of_relevant_pairs_follows_the_effects():
    # Without effects each of the about 7,000 pairs is relevant with this probability: 4 standard errors are .024.
    none = {effect.name: 0.0 for effect in model_effects(["source"])}
    for share in (0.2, 0.5):
        campaign = draw(6, queries=150, sds=none, popularity=0.0, relevant=share)
        assert np.mean(campaign.judgments.grades() >= 1) == pytest.approx(share, abs=0.024)


def test_an_effect_can_be_made_larger_and_an_unknown_one_is_refused():
    def spread(**sds):
        campaign = draw(7, queries=60, sds={"query": 0.0, **sds})
        relevant = campaign.judgments.grades() >= 1
        return np.std([relevant[campaign.runs.pool.pairs_of(q)].mean() for q in range(60)])

    assert spread(query=2.0) > 1.5 * spread()
    with pytest.raises(ModelError, match=r"No effect 'teams'.*Did you mean 'team'"):
        draw(7, sds={"teams": 1.0})


def test_popular_documents_are_more_often_relevant():
    campaign = draw(8, queries=60)
    runs = campaign.runs
    count = np.bincount(runs.pairs[runs.retrieved], minlength=len(runs.pool))
    relevant = campaign.judgments.grades() >= 1
    assert relevant[count >= 6].mean() > relevant[count == 1].mean() + 0.15


def test_systems_of_one_team_agree_more():
    runs = draw(9, queries=40).runs
    sets = [[set(lists[lists >= 0]) for lists in system] for system in runs.pairs]
    overlap = {True: [], False: []}
    for i in range(len(sets)):
        for j in range(i):
            shared = np.mean([len(a & b) for a, b in zip(sets[i], sets[j], strict=True)])
            overlap[runs.teams[i] == runs.teams[j]].append(shared)
    assert min(overlap[True]) > max(overlap[False])


@pytest.mark.parametrize("wrong", [{"systems": 0}, {"groups": 0}, {"relevant": 1.0}])
def test_impossible_campaigns_are_refused(wrong):
    with pytest.raises(ModelError, match="at least one system"):
        draw(0, **wrong)


def test_with_a_prior_the_campaign_has_its_effects_and_systems_agree_unequally():
    prior = load_card("text-hierarchical").model.prior

    def spread(campaign) -> float:
        """The sd over systems of the mean popularity of their documents, in sds of pairs."""
        runs = campaign.runs.top(10)
        popular = np.log(np.bincount(runs.pairs[runs.retrieved], minlength=len(runs.pool)))
        return np.std([popular[lists].mean() for lists in runs.pairs]) / popular.std()

    # Ten past campaigns have .25 to 1.0, in the middle .7; typical campaigns have .1.
    like_past = [spread(draw(seed, docs=300, prior=prior)) for seed in range(3)]
    assert 0.4 < np.mean(like_past) < 1.0
    assert spread(draw(0, docs=300)) < 0.2
    for scale in (Scale.binary(), Scale.graded(3), Scale.fine()):
        grades = draw(0, scale=scale, prior=prior).judgments.grades()
        assert set(grades) <= set(scale.values[scale.levels])
        assert len(set(grades)) > 1
    with pytest.raises(ModelError, match=r"No effect 'group:source': query, .*"):
        draw(0, prior=prior, sds={"group:source": 1.0})
    with pytest.raises(ModelError, match="leave these two out"):
        draw(0, prior=prior, relevant=0.1)


def test_an_observer_drawn_from_a_prior_is_worth_what_real_ones_are():
    prior = load_card("text-hierarchical").model.prior
    rng = np.random.default_rng(0)
    drawn = [SyntheticObserver.drawn(rng, prior, name="llm", grades=2) for _ in range(400)]
    about = prior.observers.possible(ObserverSpec("llm", scale="graded:2"))[0].prior
    logs = np.log([observer.slope / SPREAD for observer in drawn])
    assert logs.mean() == pytest.approx(about.log_slope.mean, abs=4 * about.log_slope.sd / 20)
    assert logs.std() == pytest.approx(about.log_slope.sd, rel=0.15)  # 4 standard errors of an sd
    known = SyntheticObserver.drawn(rng, prior, name="gpt4o_umbrela", grades=3)
    assert set(known.own) == {"query", "slope", "interaction", "team", "system", "selectivity", "pair"}
    labels = draw(0, prior=prior, observers={"llm": drawn[0]}).labels.on(draw(0, prior=prior).runs.pool)
    assert set(labels.values.ravel()) == {0.0, 1.0, 2.0}
    assert draw(0, prior=prior, queries=2, observers=2).labels.sources == ("machine1", "machine2")
