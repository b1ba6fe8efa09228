"""Similar documents: the covariance of the effect, where it is off, and what it is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from probeval.arrays import objects
from probeval.data import Scale, Vectors, text_vectors
from probeval.errors import DataError, ModelError
from probeval.relevance import Hierarchical, HierarchicalPrior, effects, fit_hierarchical, synthetic_campaign
from probeval.relevance.effects.effect import CampaignView
from probeval.relevance.effects.similar import DIRECTIONS, Similar
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.normal import Normal
from probeval.relevance.nuts.directions import SampledPairs

GRADED = Scale.graded(2)
PRIOR = HierarchicalPrior(
    terms=("log(fSYS)",),
    coefficients=(Normal(0.7, 0.4),),
    first_cut=Normal(-0.6, 1.0),
    gaps={},
    gap=Normal(1.2, 0.4),
    log_sds={effect.name: Normal(-0.6, 0.4) for effect in effects.model_effects()},
)
MODEL = Hierarchical(PRIOR)


def drawn(seed=0, *, similar=2.0, **options):
    """A campaign of similar documents, all of it judged."""
    settings = {"systems": 6, "queries": 12, "depth": 8, "dimensions": 4, "sds": {"similar": similar}}
    return synthetic_campaign(seed=seed, **{**settings, **options})


def judged(collection, n, seed=0):
    some = np.random.default_rng(seed).permutation(len(collection.judgments))[:n]
    return replace(collection, judgments=collection.judgments.take(np.sort(some)))


def without(collection):
    return replace(collection, vectors=None)


def columns_of(collection, depth):
    view = CampaignView.of(collection.problem(depth=depth, scale=GRADED))
    return view.runs.pool, Similar().columns(view)


def squared_cosines(collection, pool, query):
    at = pool.pairs_of(query)
    row = {doc: i for i, doc in enumerate(collection.vectors.docs)}
    x = collection.vectors.values[[row[doc] for doc in pool.docs[pool.doc[at]]]]
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T @ x @ x.T


def test_the_covariance_is_the_squared_similarity():
    collection = drawn(systems=2, queries=4, depth=5)
    pool, columns = columns_of(collection, 5)
    dense = columns.rows(np.arange(len(pool)))
    expected = [squared_cosines(collection, pool, q) for q in range(len(pool.queries))]
    size = np.concatenate([np.diag(e) for e in expected]).mean()
    for query, covariance in enumerate(expected):
        rows = dense[pool.pairs_of(query)]
        np.testing.assert_allclose(rows @ rows.T, covariance / size, atol=1e-10)
    assert columns.squares.mean() == pytest.approx(1.0)


def test_of_many_documents_the_leading_directions_are_kept():
    collection = drawn(dimensions=30, systems=8, queries=3)
    pool, columns = columns_of(collection, 8)
    rows = columns.rows(np.arange(len(pool)))[pool.pairs_of(0)]
    whole = squared_cosines(collection, pool, 0)
    value, vector = np.linalg.eigh(whole)
    best = (vector[:, -DIRECTIONS:] * value[-DIRECTIONS:]) @ vector[:, -DIRECTIONS:].T
    assert columns.n_columns == DIRECTIONS < len(rows)
    np.testing.assert_allclose(rows @ rows.T, best * ((rows**2).sum() / np.trace(best)), atol=1e-10)


def test_sparse_and_dense_vectors_have_the_same_columns():
    collection = drawn()
    sparse = replace(collection.vectors, values=csr_array(collection.vectors.values))
    (_, a), (pool, b) = columns_of(collection, 8), columns_of(replace(collection, vectors=sparse), 8)
    every = np.arange(len(pool))
    np.testing.assert_allclose(a.rows(every) @ a.rows(every).T, b.rows(every) @ b.rows(every).T, atol=1e-10)


def test_a_document_without_text_has_no_part_in_it():
    collection = drawn()
    docs = collection.vectors.docs
    vectors = Vectors(docs[1:], collection.vectors.values[1:])
    pool, columns = columns_of(replace(collection, vectors=vectors), 8)
    lacking = pool.docs[pool.doc] == docs[0]
    assert not columns.rows(np.flatnonzero(lacking)).any()
    assert columns.squares[~lacking].mean() == pytest.approx(1.0)
    some = replace(judged(collection, 30), vectors=vectors)
    assert np.isfinite(MODEL.predict(some.problem(depth=8, scale=GRADED)).probability).all()


@pytest.mark.parametrize("case", ["none", "others", "one each"])
def test_it_is_off_without_two_documents_to_compare(case):
    collection = judged(drawn(), 30)
    pool = collection.runs.pool
    docs = {"others": objects(["x", "y"]), "one each": pool.docs[np.unique(pool.doc[np.cumsum(pool.sizes) - 1])]}
    vectors = None if case == "none" else Vectors(docs[case], np.ones((len(docs[case]), 2)))
    given = replace(collection, vectors=vectors).problem(depth=8, scale=GRADED)
    assert "similar" not in MODEL.design(given).names
    plain = ModelDesign.of(PRIOR, without(collection).problem(depth=8, scale=GRADED))
    expected = MODEL.distribution(given, MODEL.refit(given, plain), np.random.default_rng(0))
    found = MODEL.predict(given)
    assert found.probability.tobytes() == expected.probability.tobytes()


def test_its_prior_is_stated_and_in_no_card():
    design = MODEL.design(drawn().problem(depth=8, scale=GRADED))
    assert design.effects[-1].name == "similar"
    assert design.effects[-1].log_sd == Similar.stated
    assert "similar" not in PRIOR.to_dict()["log_sds"]
    assert len(design.coords["direction"]) == design.effects[-1].columns.n_columns


def test_its_variance_is_learned_in_the_campaign():
    sds = []
    for similar in (0.0, 3.0):
        collection = drawn(1, similar=similar, queries=30)
        posterior = MODEL.infer(judged(collection, 400).problem(depth=8, scale=GRADED))
        sds.append(np.exp(posterior.log_sds["similar"].mean))
        assert posterior.log_sds["similar"].sd < 0.6
    assert sds[0] < 0.6
    assert 1.8 < sds[1] < 5.0


def log_score(collection, some):
    problem = some.problem(depth=8, scale=GRADED)
    left = np.flatnonzero(problem.grades.codes < 0)
    probability = MODEL.predict(problem).probability.mean(axis=0)
    codes = collection.problem(depth=8, scale=GRADED).grades.codes
    return float(np.log(probability[left, codes[left]]).mean())


def test_unjudged_documents_are_predicted_better():
    gains = []
    for seed in range(3):
        collection = drawn(seed, queries=20)
        some = judged(collection, len(collection.judgments) // 3, seed)
        gains.append(log_score(collection, some) - log_score(collection, without(some)))
    assert min(gains) > 0.03


def test_judging_one_document_tells_of_a_copy_of_it():
    collection = drawn(similar=0.0, systems=4, queries=10)
    pool = collection.runs.top(8).pool
    values = np.eye(len(pool.docs))
    first, copy = (int(np.flatnonzero(pool.query == 0)[i]) for i in (0, 1))
    values[pool.doc[copy]] = values[pool.doc[first]]
    given = replace(collection, vectors=Vectors(pool.docs, values))
    dense = columns_of(given, 8)[1].rows(np.array([first, copy]))
    np.testing.assert_allclose(dense[0], dense[1], atol=1e-12)


def test_past_campaigns_are_learned_from_without_it():
    collection = drawn(queries=6)
    found, expected = (fit_hierarchical([c], depth=8) for c in (collection, without(collection)))
    assert found.to_dict() == expected.to_dict()
    assert "similar" not in found.prior.log_sds


def test_given_labels_it_is_the_reference_observers_own():
    collection = drawn(observers=2, queries=20)
    some = judged(collection, 150)
    design = MODEL.design(some.problem(depth=8, scale=GRADED))
    assert design.measured
    assert "similar" in design.names
    assert "similar" not in design.evidence.design.names
    assert log_score(collection, some) > log_score(collection, without(some))


def test_the_sampler_has_its_directions():
    problem = judged(drawn(), 40).problem(depth=8, scale=GRADED)
    design = MODEL.design(problem)
    sampled = SampledPairs.of(design, problem.grades.codes)
    assert (sampled.coordinate_effect == design.position("similar")).any()


def test_synthetic_campaigns_have_it_only_with_vectors():
    with pytest.raises(ModelError, match="No effect 'similar'"):
        drawn(dimensions=0)
    plain, vectors = (synthetic_campaign(seed=3, queries=3, dimensions=d) for d in (0, 5))
    assert plain.vectors is None
    assert vectors.vectors.values.shape == (len(vectors.runs.pool.docs), 5)
    np.testing.assert_array_equal(plain.runs.pairs, vectors.runs.pairs)


def test_vectors_of_words_by_hand():
    vectors = text_vectors({"a": "Red red wine", "b": "wine; 12 bottles", "c": " . ", "d": "beer"})
    assert vectors.docs.tolist() == ["a", "b", "d"]
    two, twice = np.log(3 / 2), (1 + np.log(2)) * np.log(3)
    expected = np.array(
        [[twice, two, 0, 0, 0], [0, two, np.log(3), np.log(3), 0], [0, 0, 0, 0, np.log(3)]]
    )  # red, wine, 12, bottles, beer
    np.testing.assert_allclose(vectors.values.toarray(), expected)


def test_bad_vectors_are_refused():
    docs = objects(["a", "b"])
    for values, message in (
        (np.ones((3, 2)), "one vector for each of 2 documents"),
        (np.ones(2), "one vector for each of 2 documents"),
        (np.array([[1.0, np.nan], [0, 1]]), "must be finite"),
    ):
        with pytest.raises(DataError, match=message):
            Vectors(docs, values)
    with pytest.raises(DataError, match="two vectors are of one document"):
        Vectors(objects(["a", "a"]), np.ones((2, 2)))
