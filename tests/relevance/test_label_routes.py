"""Relevance given labels by two routes: the package's algebra, and dense normals over all labels and all parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from probeval.arrays import Floats
from probeval.data import Collection, Scale
from probeval.relevance import HierarchicalPrior, SyntheticObserver, synthetic_campaign
from probeval.relevance.inference.blocks import JudgedPairs, Layout
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.newton import Mode, find_mode
from probeval.relevance.inference.sampling import LaplaceDraws
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.normal import Normal
from probeval.relevance.nuts.label_gradient import JudgedLabels
from probeval.relevance.nuts.label_normals import LabelledQueries, Setting
from probeval.relevance.observers.conditioning import LEVEL, LIKING, family_block, pair_scale
from probeval.relevance.observers.levels import Stacks
from probeval.relevance.observers.measure import LabelEvidence, measure_labels
from probeval.relevance.observers.prior import PAIR
from probeval.relevance.observers.target import LevelTarget
from probeval.relevance.observers.worth import LOGISTIC, Worth, joint_slope, n_systems

GRADED = Scale.graded(2)
TERMS = ("log(fSYS)", "fTEAM")
OBSERVERS = {"a_1": SyntheticObserver(), "a_2": SyntheticObserver(slope=0.8), "b": SyntheticObserver(grades=3)}


def prior_of(collection: Collection) -> HierarchicalPrior:
    names = ("query", "slope", "team", "system", "interaction", "cutpoint_scale", "group:source")
    return HierarchicalPrior(
        terms=TERMS,
        coefficients=(Normal(0.7, 0.4), Normal(0.1, 0.15)),
        first_cut=Normal(-0.6, 1.0),
        gaps={},
        gap=Normal(1.5, 0.4),
        log_sds={
            name: Normal(mean, 0.3) for name, mean in zip(names, (0, -1.1, -0.3, -0.4, -0.4, -1, -0.5), strict=True)
        },
    )


@pytest.fixture(scope="module")
def campaign() -> Collection:
    """5 systems, 4 queries, 5 ranks, labels by two families, of which a tenth is missing."""
    campaign = synthetic_campaign(seed=3, systems=5, queries=4, depth=5, docs=10, groups=3, observers=OBSERVERS)
    missing = np.random.default_rng(1).random(campaign.labels.values.shape) < 0.1
    missing[:3] = True  # pairs without any label
    return replace(campaign, labels=replace(campaign.labels, values=np.where(missing, np.nan, campaign.labels.values)))


@pytest.fixture(scope="module")
def design(campaign) -> ModelDesign:
    return Hierarchical(prior_of(campaign)).design(campaign.problem(depth=5, scale=GRADED))


@pytest.fixture(scope="module")
def evidence(design) -> LabelEvidence:
    assert design.evidence is not None
    assert np.isinf([f.extra[:3] for f in design.evidence.families]).all()
    return design.evidence


@pytest.fixture(scope="module")
def worth(evidence) -> Worth:
    """A setting in which one family measures relevance and one is reversed."""
    return replace(evidence.worth.settings[0], slopes=(0.4, -0.2), popularity=(0.5, 0.8))


def dense_normal(
    design: ModelDesign, evidence: LabelEvidence, worth: Worth
) -> tuple[Floats, Floats, Floats, slice, slice]:
    """Mean and covariance of (g, x, y) from the model as it is written, the labels y, and the places of g and x."""
    plain, layout, scale = evidence.design, Layout.of(design), pair_scale(evidence.priors)
    n_pairs, every = len(design.pool), np.arange(len(design.pool))
    n_families = len(evidence.families)
    n = layout.size + n_pairs * (1 + n_families)
    mean, columns = np.zeros(n), []

    def independent(coefficients: Floats, sd: float | Floats) -> None:
        """Add independent normals: their coefficients in (g, x, y), shape (n, normal)."""
        columns.append(coefficients * sd)

    at_x = layout.size
    at_y = [layout.size + n_pairs * (1 + i) for i in range(n_families)]
    slopes = [slope / scale for slope in worth.slopes]
    for where, priors in ((layout.cuts, design.cuts), (layout["coefficients"], design.coefficients)):
        mean[where] = [p.mean for p in priors]
        sds = np.array([p.sd for p in priors])
        own = np.zeros((n, len(priors)))
        own[where] = np.eye(len(priors))
        if where == layout["coefficients"]:
            for i, family in enumerate(evidence.families):
                tie = slopes[i] * worth.popularity[i]
                own[layout[family_block(family, "terms")]] = tie * np.eye(len(priors))
                own[at_y[i] : at_y[i] + n_pairs] = (slopes[i] + tie) * plain.terms
        independent(own, sds)
    for effect in plain.of_campaign:
        rows = effect.columns.rows(every)
        own = np.zeros((n, rows.shape[1]))
        own[layout[effect.name]] = np.eye(rows.shape[1])
        for i in range(n_families):
            own[at_y[i] : at_y[i] + n_pairs] = slopes[i] * rows
        independent(own, scale * worth.sds[effect.name])
    for i, family in enumerate(evidence.families):
        doubt = worth.hypotheses[i].prior.popularity.sd
        liking = [np.hypot(LIKING, doubt * slopes[i] * c.mean) for c in design.coefficients]
        parts = {"level": (np.ones((n_pairs, 1)), LEVEL.sd), "terms": (plain.terms, np.array(liking))}
        parts |= {e.name: (e.columns.rows(every), worth.own[i][e.name]) for e in plain.of_campaign}
        for part, (rows, sd) in parts.items():
            own = np.zeros((n, rows.shape[1]))
            own[layout[family_block(family, part)]] = np.eye(rows.shape[1])
            own[at_y[i] : at_y[i] + n_pairs] = rows
            independent(own, sd)
    within = {e.name: by_query(design, e.columns.rows(every)) for e in plain.of_query} | {PAIR: np.eye(n_pairs)}
    for name, rows in within.items():
        own = np.zeros((n, rows.shape[1]))
        own[at_x : at_x + n_pairs] = rows
        for i in range(n_families):
            own[at_y[i] : at_y[i] + n_pairs] = slopes[i] * rows
        variance = LOGISTIC if name == PAIR else worth.sds[name] ** 2
        independent(own, scale * np.sqrt(evidence.priors.share(name) * variance))
        for i in range(n_families):
            own = np.zeros((n, rows.shape[1]))
            own[at_y[i] : at_y[i] + n_pairs] = rows
            independent(own, worth.own[i][name])
    for i, family in enumerate(evidence.families):
        own = np.zeros((n, n_pairs))
        own[at_y[i] : at_y[i] + n_pairs] = np.eye(n_pairs)
        independent(own, np.sqrt(np.where(family.labelled, family.extra, 0.0)))
        mean[layout[family_block(family, "terms")]] = slopes[i] * worth.popularity[i] * mean[layout["coefficients"]]
        mean[at_y[i] : at_y[i] + n_pairs] = (
            slopes[i] * (1 + worth.popularity[i]) * plain.terms @ mean[layout["coefficients"]]
        )
    every_column = np.concatenate(columns, axis=1)
    labelled = np.concatenate([np.ones(at_y[0], dtype=bool), *(f.labelled for f in evidence.families)])
    labels = np.concatenate([f.scores for f in evidence.families])[labelled[at_y[0] :]]
    covariance = (every_column @ every_column.T)[np.ix_(labelled, labelled)]
    return mean[labelled], covariance, labels, slice(0, layout.size), slice(at_x, at_x + n_pairs)


def by_query(design: ModelDesign, rows: Floats) -> Floats:
    """The columns of an effect within queries as those of independent coefficients, shape (pair, query and column)."""
    one = np.eye(len(design.pool.queries))[design.pool.query]
    return (one[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)


def given_labels(mean: Floats, covariance: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the others given the last ones."""
    known = slice(len(mean) - len(labels), len(mean))
    rest = slice(0, known.start)
    gain = np.linalg.solve(covariance[known, known], covariance[known, rest]).T
    return mean[rest] + gain @ (labels - mean[known]), covariance[rest, rest] - gain @ covariance[known, rest]


@pytest.fixture(scope="module")
def labels_alone(evidence) -> LabelEvidence:
    """Nothing is known of the joint slope on the terms."""
    priors = evidence.priors
    return replace(evidence, priors=replace(priors, constants=replace(priors.constants, together=1e9)))


def test_the_joint_slope_on_the_terms_is_one_more_observation(design, evidence, labels_alone, worth):
    known, alone = (
        measure_labels(Stacks(e.design), design, e.priors, e.families, worth).precision
        for e in (evidence, labels_alone)
    )
    constants = evidence.priors.constants
    together = constants.together * constants.widening(n_systems(design))
    assert together > constants.together
    (row,) = joint_slope(evidence.design) / pair_scale(evidence.priors)
    where = Layout.of(design)["coefficients"]
    expected = np.zeros(known.shape)
    expected[where, where] = np.outer(row, row) / together**2
    np.testing.assert_allclose(known - alone, expected, atol=1e-9)
    np.testing.assert_allclose(row @ [c.mean for c in design.coefficients], 1.0)


def test_labels_condition_as_a_dense_normal_does(design, labels_alone, worth):
    evidence = labels_alone
    prior = measure_labels(Stacks(evidence.design), design, evidence.priors, evidence.families, worth)
    mean, covariance, labels, g, x = dense_normal(design, evidence, worth)
    mean, covariance = given_labels(mean, covariance, labels)
    response = np.zeros((len(design.pool), len(prior.mean)))
    response[:, Layout.of(design).columns] = prior.response()
    own = np.linalg.inv(prior.precision)
    seen = np.zeros((len(design.pool),) * 2)
    for q in range(len(design.pool.queries)):
        seen[design.pool.pairs_of(q), design.pool.pairs_of(q)] = prior.covariance(q)
    np.testing.assert_allclose(prior.mean, mean[g], atol=1e-8)
    np.testing.assert_allclose(own, covariance[g, g], atol=1e-8)
    np.testing.assert_allclose(prior.offset + response @ prior.mean, mean[x], atol=1e-8)
    np.testing.assert_allclose(response @ own, covariance[x, g], atol=1e-8)
    np.testing.assert_allclose(seen + response @ own @ response.T, covariance[x, x], atol=1e-8)


@pytest.fixture(scope="module")
def sure_of_liking(worth) -> Worth:
    """The setting with a known liking for popularity, which NUTS samples and one setting has fixed."""
    sure = [h.prior for h in worth.hypotheses]
    sure = [replace(prior, popularity=Normal(prior.popularity.mean, 1e-9)) for prior in sure]
    both = zip(worth.hypotheses, sure, strict=True)
    return replace(worth, hypotheses=tuple(h._replace(prior=prior) for h, prior in both))


def test_the_joint_normal_of_nuts_is_that_of_one_family_after_the_other(design, labels_alone, sure_of_liking):
    known, worth = labels_alone, sure_of_liking
    prior = measure_labels(Stacks(known.design), design, known.priors, known.families, worth)
    labels = replace(LabelledQueries.of(design), level=None)
    setting = Setting.of(worth)
    width, sizes = labels.grams.shape[2], design.pool.sizes
    place = np.where(np.arange(width) < sizes[:, None], np.arange(width), -1)
    products = labels.products(setting, labels.targets(place))
    given = labels.campaign(setting, products, 0.0)
    layout = Layout.of(design)
    keep = np.append(0, np.arange(layout.columns.start, layout.size))
    np.testing.assert_allclose(labels.parameters(setting, given.mean), prior.mean[keep], atol=1e-8)
    turn = np.column_stack([labels.parameters(setting, row) for row in np.eye(len(keep))])
    turn -= labels.parameters(setting, np.zeros(len(keep)))[:, None]
    covariance = np.linalg.inv(given.root @ given.root.T)
    expected = np.linalg.inv(prior.precision)[np.ix_(keep, keep)]
    np.testing.assert_allclose(turn @ covariance @ turn.T, expected, atol=1e-8)
    mean = labels.relevance(products, given.start + given.z @ given.mean, np.zeros(place.shape))
    np.testing.assert_allclose(
        mean[place >= 0], prior.offset + prior.response() @ prior.mean[layout.columns], atol=1e-8
    )
    for q, size in enumerate(sizes):
        mine = (products.root[q] @ products.root[q].T)[:size, :size]
        np.testing.assert_allclose(mine, prior.covariance(q), atol=1e-8)


@pytest.mark.parametrize("level", [None, LevelTarget(-0.5, 0.8)])
def test_the_gradient_of_labels_is_that_of_finite_differences(design, worth, level):
    rng = np.random.default_rng(0)
    judged = JudgedLabels(replace(LabelledQueries.of(design), level=level), np.array([0, 3, 7, 8, 20]))
    n = len(judged.labels.mean_rows)
    inputs = [*Setting.of(worth), np.array(-0.4), rng.standard_normal(n), rng.standard_normal(5)]
    weight = rng.standard_normal(5)

    def value(*at: Floats) -> float:
        log_marginal, logits, _ = judged.value(*at)
        return float(1.3 * log_marginal + logits @ weight)

    found = judged.gradient(1.3, weight, *inputs)
    for i, values in enumerate(inputs):
        expected = np.empty(values.shape)
        for at in np.ndindex(*values.shape):
            step = np.zeros(values.shape)
            step[at] = 1e-5
            ahead, behind = ([*inputs[:i], values + sign * step, *inputs[i + 1 :]] for sign in (1, -1))
            expected[at] = (value(*ahead) - value(*behind)) / 2e-5
        np.testing.assert_allclose(found[i], expected, atol=1e-6 * max(1.0, np.abs(expected).max()))


def dense_posterior(problem: JudgedPairs, mode: Mode) -> tuple[Floats, Floats]:
    """Mean and covariance of (logits of all pairs, first cutpoint, cutpoint scales) around a centre, in one matrix.

    The unknowns are all coefficients of all queries, all pairs' x', and the campaign's parameters. Judgments have the
    information of the centre on the campaign's parameters and on the sums of effects at judged pairs.
    """
    design, layout, measured = problem.design, problem.layout, problem.measured
    assert measured is not None
    n_pairs, n_queries, every = len(design.pool), len(design.pool.queries), np.arange(len(design.pool))
    variances = design.variances(mode.log_sd)
    effects = {e.name: by_query(design, e.columns.rows(every)) for e in design.of_query}
    scale = design.cutpoint_scale
    assert scale is not None
    sizes = [layout.size, *(f.shape[1] for f in effects.values()), n_queries, n_pairs]
    ends = np.cumsum([0, *sizes])
    at = {name: slice(a, b) for name, a, b in zip(["g", *effects, "scale", "x"], ends, ends[1:], strict=False)}
    covariance, centre = np.zeros((ends[-1], ends[-1])), np.zeros(ends[-1])
    covariance[at["g"], at["g"]] = np.linalg.inv(problem.given(mode.log_sd).precision)
    for name in effects:
        covariance[at[name], at[name]] = variances[name] * np.eye(at[name].stop - at[name].start)
    covariance[at["scale"], at["scale"]] = variances[scale.name] * np.eye(n_queries)
    for q in range(n_queries):
        mine = slice(*(at["x"].start + end for end in design.pool.pairs_of(q).indices(n_pairs)[:2]))
        covariance[mine, mine] = measured.covariance(q)
    # What judgments inform: g, then the local parameters in the problem's order.
    local = np.zeros((problem.n_local, ends[-1]))
    for name, rows in effects.items():
        local[problem.at_pair, at[name]] = rows[problem.pairs]
    local[problem.at_pair, at["x"]] = np.eye(n_pairs)[problem.pairs]
    local[problem.at_scale, at["scale"]] = np.eye(n_queries)[problem.queries]
    together = np.concatenate([np.eye(layout.size, ends[-1]), local])
    information = np.zeros((len(together),) * 2)
    own = information[layout.size :, layout.size :]
    for block, arrow in zip(problem.blocks, mode.arrows, strict=True):
        for i, dense in enumerate(arrow.dense()):
            mine = slice(block.where.start + i * block.width, block.where.start + (i + 1) * block.width)
            own[mine, mine] = dense
    information[layout.size :, : layout.size] = mode.cross
    information[: layout.size, layout.size :] = mode.cross.T
    information[: layout.size, : layout.size] = (
        mode.schur @ mode.schur.T - problem.given(mode.log_sd).precision + mode.cross.T @ mode.followed
    )
    centre[at["g"]] = mode.campaign
    followed = covariance[layout.size :, layout.size :] @ local[:, layout.size :].T @ mode.weight
    centre[layout.size :] = followed
    posterior = np.linalg.inv(np.eye(ends[-1]) + covariance @ together.T @ information @ together) @ covariance
    rows = np.zeros((n_pairs + 1 + n_queries, ends[-1]))
    rows[:n_pairs, layout.columns] = design.campaign_rows(every) + measured.response()
    for name, columns in effects.items():
        rows[:n_pairs, at[name]] = columns
    rows[:n_pairs, at["x"]] = np.eye(n_pairs)
    rows[n_pairs, 0] = 1.0
    rows[n_pairs + 1 :, at["scale"]] = np.eye(n_queries)
    offset = np.append(measured.offset, np.zeros(1 + n_queries))
    return offset + rows @ centre, rows @ posterior @ rows.T


def test_draws_given_labels_and_judgments_have_the_moments_of_a_dense_normal(campaign, design):
    codes = campaign.problem(depth=5, scale=GRADED).grades.codes
    judged = np.full(len(design.pool), -1, dtype=np.int16)
    keep = np.concatenate([np.flatnonzero(design.pool.query == q)[[0, 1, 4]] for q in range(3)])  # none of the last
    judged[keep] = codes[keep]
    problem = JudgedPairs(design, judged, design.measured[0])
    mode = find_mode(problem, np.array([e.log_sd.mean for e in design.effects]))
    n = 40_000
    drawn = LaplaceDraws.of([problem], [mode], np.ones(1), n, np.random.default_rng(0))
    eta, _ = drawn.whole()
    scales = drawn.local(design.pool.whole)["cutpoint_scale"][:, 0].T
    values = np.concatenate([eta, drawn.campaign()["first_cut"].T, scales], axis=1)
    mean, covariance = dense_posterior(problem, mode)
    sd = np.sqrt(np.diag(covariance))
    # Draws are centred, so that linear functions have exact means; correlations have standard errors of .005, of
    # which 5.
    np.testing.assert_allclose(values.mean(axis=0), mean, atol=1e-8)
    found = np.cov(values.T) / np.outer(sd, sd)
    np.testing.assert_allclose(found, covariance / np.outer(sd, sd), atol=5 * np.sqrt(2 / n))
