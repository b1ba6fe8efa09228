"""Variance components by every method, against each other, against known truth, and where scores say little."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probeval.errors import ProbevalWarning, ReliabilityError
from probeval.reliability import Design, Observed, dstudy, gstudy
from probeval.reliability.anova import henderson, mean_squares
from probeval.reliability.bootstrap import bootstrap
from probeval.reliability.mixed import reml_balanced, reml_statsmodels

SIZES = {"system": 6, "query": 8, "assessor": 3, "stemmer": 3, "model": 4, "team": 3}
DESIGNS = ("s x q", "s x (h:q)", "s x q x h", "stemmer x model x q", "(s:team) x q")


def simulate(design: Design, sds: dict[str, float], n: int, rng: np.random.Generator, **sizes: int) -> np.ndarray:
    """Scores with known components, shape (n, *facets)."""
    shape = [sizes.get(f, SIZES[f]) for f in design.facets]
    scores = np.full((n, *shape), 0.4)
    for effect, name in zip(design.effects, design.names, strict=True):
        levels = [size if f in effect else 1 for f, size in zip(design.facets, shape, strict=True)]
        scores = scores + sds.get(name, 0.1) * rng.standard_normal((n, *levels))
    return scores


def observed(design: Design, values: np.ndarray) -> Observed:
    labels = {f: tuple(f"{f}{i}" for i in range(n)) for f, n in zip(design.facets, values.shape[1:], strict=True)}
    return Observed(design, labels, values)


def test_designs_read_and_written():
    for text in DESIGNS:
        assert Design.parse(str(Design.parse(text))) == Design.parse(text)
    assert Design.parse("(h:q) x s") == Design.parse("s x (h:q)") == Design.parse("System x (assessor : query)".lower())
    nested = Design.parse("s x (h:q)")
    assert nested.names == ("system", "query", "system x query", "assessor:query", "residual")
    crossed = Design.parse("s x q x h")
    assert len(crossed.effects) == 7
    assert crossed.names[-1] == "residual"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s", "needs queries"),
        ("q x h", "needs systems"),
        ("s x q x q", "once"),
        ("s x (q:c)", "nested"),
        ("s & q", "No design"),
        ("", "No design"),
    ],
)
def test_designs_that_are_none(text, says):
    with pytest.raises(ReliabilityError, match=says):
        Design.parse(text)


@pytest.mark.parametrize("text", DESIGNS)
def test_mean_squares_and_henderson_agree_where_nothing_is_missing(text):
    design = Design.parse(text)
    values = simulate(design, {}, 3, np.random.default_rng(1))
    squares = mean_squares(design, values)
    assert squares.degrees.sum() == np.prod(values.shape[1:]) - 1
    np.testing.assert_allclose(squares.components(), henderson(design, values), rtol=1e-9, atol=1e-14)
    total = ((values - values.mean(axis=(1, 2, *range(3, values.ndim)), keepdims=True)) ** 2).reshape(3, -1).sum(axis=1)
    np.testing.assert_allclose(squares.values @ squares.degrees, total)


def test_the_two_way_table_by_hand():
    # var_e = MS_e; var_s = (MS_s - var_e)/n_q; var_q = (MS_q - var_e)/n_s (docs/theory/reliability.md#anova).
    scores = np.array([[0.1, 0.4, 0.3], [0.3, 0.5, 0.7]])
    s, q, mean = scores.mean(axis=1), scores.mean(axis=0), scores.mean()
    ms_s, ms_q = 3 * ((s - mean) ** 2).sum() / 1, 2 * ((q - mean) ** 2).sum() / 2
    ms_e = ((scores - s[:, None] - q + mean) ** 2).sum() / 2
    study = gstudy(Observed.matrix(scores))
    want = {"system": (ms_s - ms_e) / 3, "query": (ms_q - ms_e) / 2, "residual": ms_e}
    assert dict(study.components) == pytest.approx(want, rel=1e-12)


def test_nested_components_are_eqs_6_8_and_unbiased():
    # Thesis Eqs 6.8: by their formulas, and their mean over simulations is the truth.
    design = Design.parse("s x (h:q)")
    truth = {"system": 0.2, "query": 0.3, "system x query": 0.15, "assessor:query": 0.1, "residual": 0.12}
    values = simulate(design, truth, 4000, np.random.default_rng(5))
    squares = mean_squares(design, values)
    n_s, n_q, n_h = values.shape[1:]
    ms = dict(zip(design.names, squares.values.T, strict=True))
    e = ms["residual"]
    sq, hq = (ms["system x query"] - e) / n_h, (ms["assessor:query"] - e) / n_s
    q = (ms["query"] - n_h * sq - n_s * hq - e) / (n_s * n_h)
    s = (ms["system"] - n_h * sq - e) / (n_h * n_q)
    found = squares.components()
    np.testing.assert_allclose(found, np.stack([s, q, sq, hq, e], axis=1), rtol=1e-9, atol=1e-12)
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - np.array(list(truth.values())) ** 2) < 4 * error).all()


@pytest.mark.parametrize("text", ["s x q", "s x (h:q)"])
def test_henderson_is_unbiased_with_gaps(text):
    design, rng = Design.parse(text), np.random.default_rng(3)
    values = simulate(design, {"system": 0.2, "query": 0.3}, 3000, rng)
    values[:, rng.random(values.shape[1:]) < 0.2] = np.nan
    found = henderson(design, values)
    truth = np.array([{"system": 0.2, "query": 0.3}.get(name, 0.1) for name in design.names]) ** 2
    assert (np.abs(found.mean(axis=0) - truth) < 4 * found.std(axis=0) / np.sqrt(len(found))).all()


def test_gaps_that_leave_nothing_to_compare():
    values = np.full((1, 4, 4), np.nan)
    values[0, np.arange(4), np.arange(4)] = [0.1, 0.2, 0.4, 0.8]
    with pytest.raises(ReliabilityError, match="cannot be told apart"), pytest.warns(ProbevalWarning, match="missing"):
        gstudy(observed(Design.parse("s x q"), values))


@pytest.mark.parametrize("text", DESIGNS)
def test_reml_is_the_analysis_of_variance_where_that_is_positive(text):
    design = Design.parse(text)
    values = simulate(design, dict.fromkeys(design.names[:-1], 0.4), 20, np.random.default_rng(2))
    squares = mean_squares(design, values)
    found = squares.components()
    positive = (found > 0).all(axis=1)
    assert positive.any()
    np.testing.assert_allclose(reml_balanced(squares)[positive], found[positive], rtol=1e-8)


def test_reml_pools_what_would_be_negative():
    # Systems that do not differ: MS_s and MS_e estimate the same variance, and REML takes them together.
    design = Design.parse("s x q")
    values = simulate(design, {"system": 0.0, "query": 0.3}, 40, np.random.default_rng(4))
    squares = mean_squares(design, values)
    negative = squares.components()[:, 0] < 0
    assert negative.sum() > 5
    ms, df = squares.values[negative], squares.degrees
    pooled = (ms[:, 0] * df[0] + ms[:, 2] * df[2]) / (df[0] + df[2])
    want = np.stack([np.zeros(len(ms)), (ms[:, 1] - pooled) / 6, pooled], axis=1)
    np.testing.assert_allclose(reml_balanced(squares)[negative], want, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("text", ["s x q", pytest.param("s x (h:q)", marks=pytest.mark.slow)])
def test_reml_by_statsmodels_is_ours(text):
    design = Design.parse(text)
    values = simulate(design, dict.fromkeys(design.names[:-1], 0.3), 1, np.random.default_rng(7), system=5, query=6)
    squares = mean_squares(design, values)
    assert (squares.components() > 0).all()
    np.testing.assert_allclose(reml_statsmodels(observed(design, values)), squares.components(), rtol=1e-3)


def test_reml_with_gaps_is_near_henderson():
    design, rng = Design.parse("s x q"), np.random.default_rng(8)
    values = simulate(design, {"system": 0.3, "query": 0.3}, 1, rng, system=10, query=15)
    values[0, rng.random(values.shape[1:]) < 0.1] = np.nan
    with pytest.warns(ProbevalWarning, match="scores are missing"):
        reml = gstudy(observed(design, values), method="reml", interval="none")
    np.testing.assert_allclose(list(reml.components.values()), henderson(design, values)[0], rtol=0.1)


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(2, 7), st.floats(0.1, 5), st.floats(-2, 2))
def test_units_and_orders_do_not_matter(seed, n_systems, n_queries, scale, shift):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_systems, n_queries))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)
        study = gstudy(Observed.matrix(scores))
        moved = gstudy(
            Observed.matrix(shift + scale * scores[rng.permutation(n_systems)][:, rng.permutation(n_queries)])
        )
    assert sum(study.share.values()) == pytest.approx(1)
    assert moved.share == pytest.approx(study.share, rel=1e-7, abs=1e-9)
    values = [study.coefficient("erho2", query=n).value for n in (1, 10, 100)]
    assert values == sorted(values)
    for n in (1, 10, 100):
        assert study.coefficient("phi", query=n).value <= study.coefficient("erho2", query=n).value
        for name in ("erho2", "phi"):
            found = study.coefficient(name, query=n)
            assert 0 <= found.lower <= found.upper <= 1


def test_feldt_and_arteaga_cover_at_their_level():
    design, rng = Design.parse("s x q"), np.random.default_rng(9)
    sds = {"system": 0.1, "query": 0.2, "residual": 0.15}
    values = simulate(design, sds, 400, rng, system=12, query=20)
    truth = {"erho2": 0.01 / (0.01 + 0.0225 / 20), "phi": 0.01 / (0.01 + 0.0625 / 20)}
    for name, value in truth.items():
        found = [gstudy(observed(design, v[None]), level=0.9).coefficient(name) for v in values]
        inside = np.mean([e.lower <= value <= e.upper for e in found])
        assert abs(inside - 0.9) < 4 * np.sqrt(0.09 / len(values)), name


SMALL = {
    "no systems": {"system": 0.0, "query": 0.3, "residual": 0.3},
    "systems alone": {"system": 0.3, "query": 1e-6, "residual": 1e-6},
    "usual": {"system": 0.1, "query": 0.2, "residual": 0.15},
}


@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("interval", ["analytic", "bootstrap", "draws"])
def test_intervals_stay_in_the_range_of_their_figure(case, interval):
    design, rng = Design.parse("s x q"), np.random.default_rng(21)
    for values in simulate(design, SMALL[case], 30, rng, system=3, query=4):
        scores = values if interval != "draws" else values + 0.1 * rng.standard_normal((40, *values.shape))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProbevalWarning)
            study = gstudy(Observed.matrix(scores), interval=interval, n=50, level=0.99)
        for name in ("erho2", "phi"):
            for sizes in ({}, {"query": 1}, {"query": 1000}):
                found = study.coefficient(name, **sizes)
                assert 0 <= found.lower <= found.upper <= 1
            needed = study.queries_for(name)
            assert 1 <= needed.lower <= needed.upper
        if study.draws is not None:
            for name in design.names:
                share, component = study.share_interval(name), study.component(name)
                assert 0 <= share.lower <= share.upper <= 1
                assert 0 <= component.lower <= component.upper
        for point in dstudy(study, queries=[1, 1000]).points:
            for found in (point.tau, point.tau_ap, point.power):
                assert 0 <= found.lower <= found.upper <= 1


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_systems_that_alone_vary_are_perfectly_reliable():
    study = gstudy(Observed.matrix(np.array([[0.0] * 4, [1.0] * 4, [3.0] * 4])))
    for name in ("erho2", "phi"):
        assert study.coefficient(name).ends == [1, 1]
        assert study.queries_for(name).ends == [1, 1]


def test_level_and_target_belong_to_the_study():
    scores = Observed.matrix(np.random.default_rng(1).normal(size=(8, 20)) + np.arange(8)[:, None] / 4)
    study = gstudy(scores, level=0.8, target=0.9)
    wide = replace(study, level=0.99)
    assert wide.erho2.lower < study.erho2.lower < study.erho2.upper < wide.erho2.upper
    found = study.to_dict()
    assert (found["level"], found["target"], found["design"]) == (0.8, 0.9, "s x q")
    assert found["queries_for"]["phi"] == study.queries_for("phi", 0.9).value
    assert found["queries_for_interval"]["phi"] == study.queries_for("phi").ends
    assert "metric" not in found
    assert "share_interval" not in found  # analytic: no draws
    assert "80% intervals" in study.sentences()[1]
    assert "queries for 0.9" in study.tables()[1].frame.columns


def test_bootstrap_is_centred_and_as_wide_as_the_sampling_distribution():
    design, rng = Design.parse("s x q"), np.random.default_rng(11)
    sds = {"system": 0.2, "query": 0.2, "residual": 0.15}
    many = mean_squares(design, simulate(design, sds, 3000, rng, system=20, query=30)).components()
    one = simulate(design, sds, 1, rng, system=20, query=30)
    found = mean_squares(design, one).components()
    again = bootstrap(observed(design, one), found, lambda v: mean_squares(design, v).components(), n=2000, rng=rng)
    np.testing.assert_allclose(again.mean(axis=0), found[0], atol=4 * again.std(axis=0).max() / np.sqrt(2000))
    # A bootstrap knows the variance of normal effects only roughly: kurtosis of 20 levels.
    ratio = (again.std(axis=0) / found[0]) / (many.std(axis=0) / many.mean(axis=0))
    assert (np.abs(np.log(ratio)) < np.log(1.6)).all()


def test_bootstrap_works_with_gaps_and_nesting():
    design, rng = Design.parse("s x (h:q)"), np.random.default_rng(12)
    values = simulate(design, {"system": 0.3}, 1, rng)
    values[0, 2, 3, 1] = np.nan
    values[0, :, 5, 2] = np.nan  # one query has two assessors only
    with pytest.warns(ProbevalWarning, match="7 of 144 scores are missing"):
        study = gstudy(observed(design, values), n=300)
    assert study.interval == "bootstrap"
    assert 2.8 < study.sizes["assessor"] < 3
    found = study.coefficient("erho2")
    assert found.lower < found.value < found.upper
    assert study.coefficient("erho2", query=100).lower > found.lower


def test_uncertain_scores_are_decomposed_draw_by_draw():
    rng = np.random.default_rng(13)
    truth = simulate(Design.parse("s x q"), {"system": 0.2}, 1, rng)[0]
    draws = truth + 0.2 * rng.standard_normal((500, *truth.shape))
    study = gstudy(Observed.matrix(draws))
    assert (study.interval, study.uncertainty) == ("draws", ("judging",))
    parts = mean_squares(Design.parse("s x q"), draws).components().clip(min=0)
    np.testing.assert_allclose(list(study.components.values()), np.median(parts, axis=0))
    e = study.share_interval("system")
    assert e.lower < e.value < e.upper
    both = gstudy(Observed.matrix(draws), interval="bootstrap", n=1000)
    assert both.uncertainty == ("judging", "sampling")
    wide = both.share_interval("system")
    assert wide.upper - wide.lower > e.upper - e.lower
    assert both.draws.shape == (1000, 3)


def test_negative_components_are_zero_and_said():
    scores = np.array([[0.1, 0.9, 0.2, 0.8], [0.9, 0.1, 0.8, 0.2], [0.5, 0.5, 0.5, 0.5]])
    with (
        pytest.warns(ProbevalWarning, match="All variance is residual"),
        pytest.warns(ProbevalWarning, match="Negative variance of system, query, set to 0"),
    ):
        study = gstudy(Observed.matrix(scores))
    assert study.components["system"] == 0
    assert study.coefficient("erho2").value == 0
    assert study.queries_for("erho2").value == np.inf
    assert study.to_dict()["queries_for"] == {"erho2": None, "phi": None}


def test_systems_that_are_twins_are_said():
    rng = np.random.default_rng(14)
    scores = rng.random((4, 6)) + np.arange(4)[:, None]
    with pytest.warns(ProbevalWarning, match="a and b have the same scores: they count"):
        gstudy(Observed.matrix(np.vstack([scores[:1], scores]), list("abcde")))


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (np.full((3, 4), 0.5), "Every score is 0.5"),
        (np.random.default_rng(0).random((1, 4)), "there is one system"),
        (np.random.default_rng(0).random((4, 1)), "there is one query"),
        (np.array([[0.1, np.inf], [0.2, 0.3]]), "finite"),
        (np.array([[0.1, np.nan], [0.2, np.nan]]), "query '2' has no score"),
        (np.array([[np.nan, np.nan], [0.2, 0.1]]), "system '1' has no score"),
    ],
)
def test_scores_that_cannot_be_studied(scores, says):
    with pytest.raises(ReliabilityError, match=says):
        gstudy(Observed.matrix(scores))


def test_methods_and_intervals_that_do_not_go_together():
    scores = Observed.matrix(np.random.default_rng(0).random((4, 5)))
    with pytest.raises(ReliabilityError, match="Did you mean 'anova'"):
        gstudy(scores, method="anowa")
    for interval in ("draws", "posterior"):
        with pytest.raises(ReliabilityError, match="does not go with s x q by anova"):
            gstudy(scores, interval=interval)
    study = gstudy(scores, interval="none")
    assert np.isnan(study.coefficient("phi").lower)
    with pytest.raises(ReliabilityError, match="no assessor"):
        study.coefficient("phi", assessor=2)
    with pytest.raises(ReliabilityError, match="At least one query"):
        study.coefficient("phi", query=0)
    with pytest.raises(ReliabilityError, match="No component 'sistem'"):
        study.component("sistem")
    with pytest.raises(ReliabilityError, match="No coefficient"):
        study.coefficient("rho")
    with pytest.raises(ReliabilityError, match="between 0 and 1"):
        study.queries_for("phi", 1.0)
