from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval import Scale
from probeval.errors import ProbevalWarning, SatisfactionError
from probeval.metrics.mapping import (
    SCALES,
    SatMapping,
    fit_mapping,
    load_mapping,
    mapping_for,
    measure_mapped,
    published_mappings,
    published_names,
    tenths,
)

NAMES = sorted(published_mappings())


def test_tenths_are_closed_on_the_left_and_the_last_on_both_sides():
    edges = np.arange(11) / 10
    assert tenths(edges).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    assert tenths(edges[1:] - 0.01).tolist() == list(range(10))
    assert tenths([0.8 - 0.5, 0.1 * 3]).tolist() == [3, 3]  # .30000000000000004, and .30000000000000004 the other way


@pytest.mark.parametrize("name", NAMES)
def test_a_published_mapping_is_a_probability_and_has_a_monotone_neighbour(name):
    mapping = load_mapping(name)
    x = np.linspace(0, 1, 1001)
    low, high = mapping.range
    assert 0 <= low <= mapping(x).min() + 1e-12
    assert mapping(x).max() - 1e-12 <= high <= 1
    assert mapping.is_monotone == bool(np.all(np.diff(mapping(x)) >= -1e-12))
    near = mapping.monotone()
    assert np.all(np.diff(near(x)) >= -1e-12)
    assert np.abs(near(x) - mapping(x)).max() < 0.07
    assert (near is mapping) == mapping.is_monotone


@pytest.mark.parametrize(
    ("metric", "scale", "name"),
    [
        ("CG@5", "graded:2", "CGl@5/broad"),
        ("CG@5", "fine", "CGl@5/fine"),
        ('DCG(gain="exp")@5', "graded:4", "DCGe@5/nl5"),
        ('Q(norm="perfect")@5', "graded:3", "Ql@5/nl4"),
        ('RBP(norm="perfect")@5', "fine", "RBPl@5/fine"),
        ('GAP(norm="perfect")@5', "graded:2", "GAP@5/broad"),
        ("P(rel=20)@5", "fine", "P@5/lmin20"),
        ('AP(rel=40, norm="perfect")@5', "fine", "AP@5/lmin40"),
    ],
)
def test_our_measures_find_their_mapping(metric, scale, name):
    assert mapping_for(metric, Scale.parse(scale)).name == name


def test_the_gain_of_the_scale_counts():
    assert mapping_for("CG@5", Scale.graded(2, gain="exp")).name == "CGe@5/broad"


@pytest.mark.parametrize(
    ("metric", "scale", "expected"),
    [
        ("nDCG@10", "graded:3", "No mapping to satisfaction is published for nDCG@10 on the scale graded:3"),
        ("GAP@5", "graded:2", "No mapping"),  # that one is normalised by the ideal list
        ('RBP(p=0.9, norm="perfect")@5', "fine", "No mapping"),
        ("CG@10", "graded:2", "No mapping"),
        ("P@5", "binary", "Several mappings fit P@5 on binary: P@5/lmin20, P@5/lmin40"),
    ],
)
def test_what_has_no_mapping_is_told_what_to_do(metric, scale, expected):
    with pytest.raises(SatisfactionError, match=expected):
        mapping_for(metric, Scale.parse(scale))


def test_a_wrong_name_gets_a_hint():
    with pytest.raises(SatisfactionError, match=r"Did you mean 'DCGl@5/broad'\?"):
        load_mapping("DCGl5/broad")


@pytest.mark.parametrize("score", [1.2, -0.1, float("nan")])
def test_scores_that_are_not_normalised_are_refused(score):
    with pytest.raises(SatisfactionError, match="scores from 0 to 1"):
        load_mapping("CGl@5/broad")([0.5, score])


def test_a_cubic_is_found_again_from_its_own_shares():
    truth = SatMapping((0.1, 0.3, 0.9, -0.5))
    x = np.repeat((np.arange(10) + 0.5) / 10, 1000)
    said = np.concatenate([np.arange(1000) < 1000 * share for share in truth(x[::1000])])
    for shape in ("cubic", "monotone"):
        found = fit_mapping(x, said, shape=shape)
        np.testing.assert_allclose(found(x), truth(x), atol=0.002)
        assert found.residual < 0.001


@given(st.lists(st.floats(0, 1), min_size=4, max_size=10), st.integers(0, 2**32 - 1))
def test_the_monotone_shape_rises_and_stays_a_probability(shares, seed):
    rng = np.random.default_rng(seed)
    x = rng.permutation((np.arange(10) + 0.5) / 10)[: len(shares)]
    said = np.concatenate([np.arange(50) < 50 * share for share in shares])
    found = fit_mapping(np.repeat(x, 50), said, shape="monotone")
    curve = found(np.linspace(0, 1, 201))
    assert np.all(np.diff(curve) >= -1e-9)
    assert curve.min() >= -1e-9
    assert curve.max() <= 1 + 1e-9


def test_the_monotone_shape_is_at_least_as_near_as_a_cubic_that_rises():
    # Its Bernstein coefficients are .2, .4, .5, .7, so the monotone shape could be the same curve.
    truth = SatMapping((0.2, 0.6, -0.3, 0.2))
    rng = np.random.default_rng(2)
    x = rng.random(3000)
    said = rng.random(3000) < truth(x)
    cubic, monotone = (fit_mapping(x, said, shape=shape) for shape in ("cubic", "monotone"))
    assert cubic.is_monotone
    assert monotone.residual <= cubic.residual + 1e-6
    assert np.abs(monotone(x) - truth(x)).max() < 0.07


def test_a_cubic_that_is_no_probability_warns():
    x = np.repeat((np.arange(10) + 0.5) / 10, 10)
    said = np.repeat([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], 10)
    with pytest.warns(ProbevalWarning, match="no probability everywhere. Use shape='monotone'"):
        fit_mapping(x, said)


def test_too_few_tenths_and_unknown_shapes_are_refused():
    with pytest.raises(SatisfactionError, match="at least 4 tenths of the score, got 3"):
        fit_mapping([0.1, 0.2, 0.3], [0, 1, 1])
    with pytest.raises(SatisfactionError, match=r"No shape 'cubical': cubic, monotone. Did you mean 'cubic'"):
        fit_mapping([0.1, 0.2, 0.3], [0, 1, 1], shape="cubical")


@pytest.mark.parametrize("name", NAMES)
def test_a_mapping_names_its_measure(name):
    for text in SCALES[name.partition("/")[2]]:
        scale = Scale.parse(text)
        assert name in published_names(measure_mapped(name, scale), scale)


@pytest.mark.parametrize("name", NAMES)
def test_every_mapping_is_reached_by_a_scale_and_a_measure(name):
    scale = Scale.parse(SCALES[name.partition("/")[2]][0])
    assert scale.codes([0, 2]).tolist()[0] == 0  # Broad, or a scale of judgments from 0 to 100
    assert mapping_for(str(measure_mapped(name, scale)), scale).name == name


def test_mappings_are_for_the_gains_that_they_name():
    scale = Scale.parse("fine:4")
    assert published_names("CG@5", scale.with_gain("exp")) == ["CGe@5/nl4"]
    assert published_names("CG@5", scale.with_gain("0,1,2,5")) == []


def test_success_begins_at_one_score_in_all_published_mappings():
    assert all(load_mapping(name).succeeds_from_a_score_on for name in NAMES)  # though 14 are not monotone
    hill = SatMapping((0.0, 4.0, -4.0))
    assert not hill.succeeds_from_a_score_on
    assert hill.succeeds([0.0, 0.5, 1.0]).tolist() == [False, True, False]
