"""Labels as measurements of relevance: their effect, and the edges: one source, one query, copies, contradictions."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import probeval
from probeval.data import LabelTable, Scale
from probeval.data.observers import ObserverSpec
from probeval.relevance import Hierarchical, HierarchicalPrior, load_card, synthetic_campaign
from probeval.relevance.normal import Normal
from probeval.relevance.observers.family import family_units
from probeval.relevance.observers.prior import UNSEEN, LabelConstants, ObserverPrior, ObserverPriors
from probeval.relevance.observers.worth import judgments_to_tell
from probeval.scores import evaluate

SCALE = Scale.graded(2)
DEPTH = 10
MODEL = Hierarchical(
    HierarchicalPrior(
        terms=("log(fSYS)", "fTEAM"),
        coefficients=(Normal(0.9, 0.3), Normal(0.1, 0.15)),
        first_cut=Normal(-0.6, 0.8),
        gaps={},
        gap=Normal(1.0, 0.3),
        log_sds={
            "query": Normal(-0.2, 0.35),
            "slope": Normal(-1.1, 0.3),
            "interaction": Normal(-0.3, 0.3),
            "team": Normal(-0.9, 0.35),
            "system": Normal(-0.9, 0.35),
            "cutpoint_scale": Normal(-1.5, 0.3),
        },
    )
)


@pytest.fixture(scope="module")
def campaign():
    """A campaign of 10 systems and 25 queries, every pair judged on 0-2."""
    return synthetic_campaign(seed=5, systems=10, queries=25, depth=DEPTH, docs=40)


def grades(campaign):
    return campaign.judgments.on(campaign.runs.pool).grades()


def noisy(campaign, noise=0.7, seed=0):
    """Labels of an observer that is right but for normal noise, in grades."""
    error = np.random.default_rng([2, seed]).normal(size=len(campaign.runs.pool))
    return np.clip(np.round(grades(campaign) + noise * error), 0, 2)


def with_labels(campaign, judged=None, **columns):
    """The campaign with columns of labels, and only the first ``judged`` pairs judged, none by default."""
    table = LabelTable(campaign.runs.pool, tuple(columns), np.column_stack(list(columns.values())))
    some = None if judged is None else campaign.judgments.take(np.arange(len(campaign.judgments)) < judged)
    return replace(campaign, labels=table, judgments=some)


def without(campaign, judged=None):
    return replace(with_labels(campaign, judged, bot=noisy(campaign)), labels=None)


def evaluated(collection):
    predicted = MODEL.predict(collection.problem(depth=DEPTH, scale=SCALE))
    return evaluate(collection.runs.top(DEPTH), predicted, "DCG@10")


def scores(collection):
    """Expected scores by DCG@10 with their standard deviations, shapes (system,)."""
    found = evaluated(collection)
    return found.mean, np.sqrt(np.diag(found.covariance))


def covariance(collection):
    return evaluated(collection).covariance


def truth(campaign):
    return scores(campaign)[0]


def centred(values):
    return values - values.mean()


def test_labels_bring_scores_nearer_to_the_truth(campaign):
    true = centred(truth(campaign))
    errors = [np.abs(centred(scores(c)[0]) - true).mean() for c in (with_labels(campaign, bot=noisy(campaign)),
                                                                     without(campaign))]  # fmt: skip
    assert errors[0] < 0.6 * errors[1]


def test_labels_never_make_a_pair_certain_and_judgments_do(campaign):
    collection = with_labels(campaign, judged=40, bot=grades(campaign))
    predicted = MODEL.predict(collection.problem(depth=DEPTH, scale=SCALE))
    assert predicted.certain.sum() == 40
    _, variance = predicted.moments(SCALE.gains)
    assert (variance[~predicted.certain] > 0).all()
    np.testing.assert_array_equal(variance[predicted.certain], 0)


def test_one_query(campaign):
    small = synthetic_campaign(seed=6, systems=5, queries=1, depth=DEPTH, docs=30)
    for judged in (None, 4):
        mean, sd = scores(with_labels(small, judged, bot=noisy(small)))
        assert np.isfinite(mean).all()
        assert (sd > 0).all()


@pytest.mark.parametrize("judged", [None, 30])
def test_equal_labels_are_left_out(campaign, judged):
    said = scores(with_labels(campaign, judged, bot=np.ones(len(campaign.runs.pool))))
    np.testing.assert_array_equal(said, scores(without(campaign, judged)))
    nothing = scores(with_labels(campaign, judged, bot=np.full(len(campaign.runs.pool), np.nan)))
    np.testing.assert_array_equal(nothing, said)
    # Beside another column they change nothing either.
    both = with_labels(campaign, judged, bot=np.ones(len(campaign.runs.pool)), other=noisy(campaign))
    np.testing.assert_array_equal(scores(both), scores(with_labels(campaign, judged, other=noisy(campaign))))


def test_labels_on_a_third_of_the_pairs():
    campaign = synthetic_campaign(seed=5, systems=10, queries=70, depth=DEPTH, docs=40)
    labels = noisy(campaign)
    labelled = np.random.default_rng(3).random(len(labels)) < 1 / 3
    some = with_labels(campaign, bot=np.where(labelled, labels, np.nan))
    left = MODEL.design(some.problem(depth=DEPTH, scale=SCALE)).measured[0].variance
    assert left[labelled].mean() < left[~labelled].mean()
    # Worth less than all labels, and more than none.
    everything, third, nothing = (
        np.diag(centred(np.eye(10)) @ covariance(c) @ centred(np.eye(10))).mean()
        for c in (with_labels(campaign, bot=labels), some, without(campaign))
    )
    assert everything < third < nothing


def test_a_copy_of_a_column_adds_nothing(campaign):
    labels = noisy(campaign)
    one, two = (with_labels(campaign, **dict.fromkeys(names, labels)) for names in (["bot_a"], ["bot_a", "bot_b"]))
    for single, copied in zip(scores(one), scores(two), strict=True):
        np.testing.assert_allclose(copied, single, rtol=1e-6)


def test_who_contradicts_everybody_in_a_family_is_turned(campaign):
    a, b, c = (noisy(campaign, seed=seed) for seed in range(3))
    agreeing, contrary = (
        with_labels(campaign, bot_a=a, bot_b=b, bot_c=c),
        with_labels(campaign, bot_a=a, bot_b=b, bot_c=2 - c),
    )
    for right, turned in zip(scores(agreeing), scores(contrary), strict=True):
        np.testing.assert_allclose(turned, right, rtol=1e-9)


def test_a_reversed_observer_is_found_and_ranks_as_its_labels_do(campaign):
    labels = noisy(campaign)
    straight, turned = with_labels(campaign, bot=labels), with_labels(campaign, bot=2 - labels)
    assert MODEL.design(turned.problem(depth=DEPTH, scale=SCALE)).evidence.worth.probability(0, sign=-1) > 0.9
    one, other = scores(straight)[0], scores(turned)[0]
    assert np.corrcoef(one, other)[0, 1] > 0.97


@pytest.mark.slow
def test_a_permuted_column_is_noise(campaign):
    plain, _ = scores(without(campaign))
    rng = np.random.default_rng(4)
    moved = []
    for _ in range(3):
        collection = with_labels(campaign, bot=rng.permutation(noisy(campaign)))
        assert MODEL.design(collection.problem(depth=DEPTH, scale=SCALE)).evidence.worth.probability(0, sign=0) > 0.9
        moved.append(np.abs(centred(scores(collection)[0]) - centred(plain)).mean())
    assert np.mean(moved) < 0.1 * truth(campaign).std()


def test_blocks_of_any_size_give_the_same_draws(campaign):
    collection = with_labels(campaign, judged=60, bot=noisy(campaign), other=noisy(campaign, 1.5, seed=1))
    posterior = MODEL.infer(collection.problem(depth=DEPTH, scale=SCALE))
    drawn = posterior.draw(30, np.random.default_rng(0))
    whole = drawn.whole()
    for size in (1, 70):
        parts = [drawn.block(block) for block in posterior.design.pool.blocks(size)]
        assert len(parts) > 1
        for i in range(2):
            np.testing.assert_allclose(np.concatenate([p[i] for p in parts], axis=1), whole[i], atol=1e-12)


def test_members_without_two_labels_are_no_part_of_a_family(campaign):
    table = with_labels(campaign, bot_a=noisy(campaign), bot_b=np.zeros(len(campaign.runs.pool))).labels
    labels = table.on(campaign.runs.pool)
    labels = table.on(campaign.runs.pool)
    counts = np.ones(len(campaign.runs.pool))
    (family,) = family_units(labels, ObserverPriors(), counts=counts)
    assert [member.name for member in family.members] == ["bot_a"]


def test_a_card_without_observers_has_the_general_priors(campaign):
    data = load_card("text-hierarchical").models[0].to_dict()
    data["prior"].pop("observers", None)
    old = Hierarchical.from_dict(data)
    assert old.prior.observers == ObserverPriors()
    (possible,) = old.prior.observers.possible(ObserverSpec("gpt4o_umbrela", scale="graded:3"))
    assert possible.prior == UNSEEN
    assert old.design(with_labels(campaign, bot=noisy(campaign)).problem(depth=DEPTH, scale=SCALE)).measured


def test_a_number_by_a_machine_never_seen_may_be_a_similarity():
    similar = replace(UNSEEN, log_slope=Normal(-3.5, 0.5))
    priors = ObserverPriors({"machine number": UNSEEN, "similarity number": similar}, {"bot": UNSEEN})
    kinds = {p.kind: p.weight for p in priors.possible(ObserverSpec("mine"))}
    share = priors.constants.similarity
    assert kinds == pytest.approx({"machine number": 1 - share, "similarity number": share})
    for told in (ObserverSpec("mine", kind="similarity"), ObserverSpec("mine", scale="binary"), ObserverSpec("bot")):
        assert len(priors.possible(told)) == 1
    assert priors.possible(ObserverSpec("mine", kind="similarity"))[0].prior == similar


def test_cards_of_earlier_versions_had_biases_relative_to_relevance():
    old = UNSEEN.to_dict()
    del old["log_bias"], old["reversed"]
    old["log_own"]["system"] = old["log_own"]["team"] = [-0.5, 0.7]
    read = ObserverPrior.from_dict(old)
    assert read.log_own == UNSEEN.log_own
    assert read.log_bias == Normal(UNSEEN.log_slope.mean - 0.5, 0.7)  # log of r lambda
    assert read.reversed == LabelConstants().reversed
    priors = ObserverPriors.from_dict({"by_kind": {"machine graded": old}, "by_name": {}, "seen": {"query": 0.7}})
    assert priors.constants == LabelConstants(seen={"query": 0.7})


def test_priors_are_their_data():
    own = {"query": Normal(-1.0, 0.5)}
    bare = ObserverPrior(Normal(-1.0, 0.3), own, Normal(-2.0, 0.5), Normal(0.5, 0.2), None, 0.01)
    constants = LabelConstants(seen={"query": 0.7, "pair": 0.3}, few=5.0)
    priors = ObserverPriors({"machine number": bare}, {"bot": UNSEEN}, constants)
    assert ObserverPriors.from_dict(json.loads(json.dumps(priors.to_dict()))) == priors
    assert priors.knows(ObserverSpec("bot"))
    assert [p.prior for p in priors.possible(ObserverSpec("my_llm"))] == [bare]  # a number, by a machine
    assert [p.prior for p in priors.possible(ObserverSpec("my_llm", scale="binary"))] == [UNSEEN]
    assert all(each["origin"] for each in priors.to_dict()["constants"].values())
    model = Hierarchical(replace(MODEL.prior, observers=priors))
    assert Hierarchical.from_dict(json.loads(json.dumps(model.to_dict()))).prior == model.prior


SHIPPED = load_card("text-hierarchical").model


def similarity(campaign, seed=0):
    """Numbers that rise with the number of systems and favour some of them, whatever is relevant."""
    rng, runs = np.random.default_rng([8, seed]), campaign.runs
    has = np.zeros((len(runs.pool), len(runs.systems)))
    for system, pairs in enumerate(runs.pairs):
        has[pairs[pairs >= 0], system] = 1
    n = has.sum(axis=1)
    of_query = rng.normal(size=len(runs.queries))[runs.pool.query]
    return 0.7 * np.log(n) + of_query + has @ rng.normal(size=has.shape[1]) / np.sqrt(n) + 0.4 * rng.normal(size=len(n))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_numbers_of_an_unknown_name_that_favour_systems_change_little(seed):
    campaign = synthetic_campaign(seed=seed, systems=12, queries=30, depth=DEPTH, docs=40)
    given = with_labels(campaign, mine=similarity(campaign, seed))
    predicted = [SHIPPED.predict(c.problem(depth=DEPTH, scale=SCALE)) for c in (given, without(campaign))]
    labelled, plain = (evaluate(campaign.runs.top(DEPTH), p, "DCG@10") for p in predicted)
    assert SHIPPED.design(given.problem(depth=DEPTH, scale=SCALE)).evidence.worth.best[0].kind == "similarity number"
    assert np.corrcoef(labelled.mean, plain.mean)[0, 1] > 0.9
    assert labelled.ranking().confidence < plain.ranking().confidence + 0.02


@pytest.mark.slow
def test_judgments_bring_back_a_judge_taken_for_noise():
    """Three systems on ten queries: by themselves, labels equal to the grades are noise with more than .99."""
    small = synthetic_campaign(seed=1, systems=3, queries=10, depth=DEPTH)
    order = np.random.default_rng(1).permutation(len(small.judgments))
    labels = LabelTable(small.judgments.pool, ("perfect",), small.judgments.grades().astype(float)[:, None])

    def p_noise(judged):
        qrels = small.judgments.take(np.sort(order[:judged])) if judged else None
        evaluation = probeval.evaluate(small.runs, "DCG@10", qrels=qrels, labels=labels, scale=SCALE, draws=100)
        return evaluation.trust().to_frame()["p_noise"][0]

    assert p_noise(0) > 0.99
    assert p_noise(50) < 0.05


def test_two_runs_do_not_turn_a_known_judge():
    campaign = synthetic_campaign(seed=4, systems=6, queries=40, depth=DEPTH, docs=40)
    labels = noisy(campaign)
    for systems in (campaign.runs.systems[:2], campaign.runs.systems[2:4]):
        runs = campaign.runs.select(systems)
        two = replace(with_labels(campaign, gpt4o_umbrela=labels), runs=runs)
        belief = SHIPPED.design(two.problem(depth=DEPTH, scale=SCALE)).evidence.worth
        assert belief.probability(0, sign=-1) < 0.02


def test_judgments_that_tell_the_kind_of_numbers():
    campaign = synthetic_campaign(seed=1, systems=10, queries=30, depth=DEPTH, docs=40)
    numbers = noisy(campaign) + 0.1 * np.random.default_rng(0).normal(size=len(campaign.runs.pool))

    def needed(**columns):
        design = SHIPPED.design(with_labels(campaign, **columns).problem(depth=DEPTH, scale=SCALE))
        evidence = design.evidence
        return judgments_to_tell(evidence.design, evidence.priors, evidence.worth, 0)

    assert needed(mine=noisy(campaign)) is None  # grades
    assert needed(gpt4o_exam_binary=numbers) is None  # known to the card
    assert 10 <= needed(mine=numbers) <= 200


def test_numbers_that_are_noise_for_sure_have_no_kind_to_tell():
    # Their slope is 0 in every setting, so that no judgment would tell a judge of relevance from a similarity.
    campaign = synthetic_campaign(seed=1)
    noise = campaign.runs.pool.to_frame().assign(junk=np.random.default_rng(1).normal(size=len(campaign.runs.pool)))
    found = probeval.evaluate(campaign.runs, "DCG@10", labels=noise, scale="graded:2")
    assert [source.needed for source in found.labels.sources] == [None]
