r"""Bayesian variance components (PyMC): the posterior of each, all positive.

Effects are normal, and their standard deviations have half-normal priors, twice as wide as the spread of all scores.
Effects integrate out: the likelihood of complete scores depends only on the mean squares. Missing scores are parameters
beside the standard deviations: integrated over, they leave the likelihood of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from probeval.arrays import Floats
from probeval.bayes import NutsDiagnostics, arviz_data, diagnose, load, sample
from probeval.errors import ReliabilityError
from probeval.reliability.anova import MeanSquares, effects, sums_of_squares
from probeval.reliability.observed import Observed

__all__ = ["WIDTH", "VariancePosterior", "sample_components"]

WIDTH = 2.0  # scale of the prior of standard deviations, in standard deviations of all scores
JOINT = 100  # most joint draws of scores whose posteriors are sampled at once


@dataclass(frozen=True, eq=False)
class VariancePosterior:
    """The posterior of variance components, as draws of NUTS.

    Parameters
    ----------
    observed
        The scores; if they are uncertain, the joint draws whose posteriors were sampled.
    prior
        The scale of the half-normal prior of standard deviations, shape (joint draw,).
    chains
        ``sd``, the standard deviations, shape (chain, draw, joint draw, effect); with gaps also ``missing``, the
        missing scores, shape (chain, draw, gap).
    statistics
        The sampler's statistics of each draw, each of shape (chain, draw).
    """

    observed: Observed
    prior: Floats
    chains: Mapping[str, Floats]
    statistics: Mapping[str, Floats]

    @cached_property
    def diagnostics(self) -> NutsDiagnostics:
        """R-hat, bulk ESS and divergences; warns if the draws are unreliable."""
        return diagnose(self.chains, self.statistics)

    @property
    def draws(self) -> Floats:
        """The components, shape (draw, effect); each joint draw of the scores has its turn."""
        sd = self.chains["sd"]
        flat = sd.reshape(-1, *sd.shape[2:])
        return np.asarray(flat[np.arange(len(flat)), self._rows(len(flat))] ** 2)

    def _rows(self, n: int) -> np.ndarray:
        return np.arange(n) % len(self.observed.values)

    def to_arviz(self, *, rng: np.random.Generator | None = None) -> Any:
        """Return ArviZ data: posterior (with all effects), sampler statistics, and the prior of standard deviations.

        Known scores add posterior predictive, log-likelihood and observed data. ``rng`` draws effects given their
        standard deviations, and predictions; seed 0 by default. The mean of all scores has no proper prior, so there
        is no prior predictive.
        """
        rng = np.random.default_rng(0) if rng is None else rng
        observed, shape = self.observed, self.chains["sd"].shape[:2]
        design, labels = observed.design, observed.labels
        values = observed.values[self._rows(shape[0] * shape[1])]
        gaps = np.isnan(values[0])
        if gaps.any():
            values[:, gaps] = self.chains["missing"].reshape(len(values), -1)
        mean, found = draw_effects(MeanSquares(design, values.shape[1:], np.empty(0)), values, self.draws, rng)
        sd = np.sqrt(self.draws)
        posterior: dict[str, Any] = {"sd": sd, "component": self.draws, "mean": mean}
        prior: dict[str, Any] = {"sd": np.abs(rng.normal(size=sd.shape)) * self.prior[self._rows(len(sd)), None]}
        prior["component"] = prior["sd"] ** 2
        dims = {"sd": ["effect"], "component": ["effect"], "score": ["cell"]}
        centre = mean.reshape(-1, *(1,) * len(design.facets))
        for name, effect, part in zip(design.names[:-1], design.effects, found, strict=False):
            centre = centre + part
            dims[f"{name}_effect"] = [facet for facet in design.facets if facet in effect]
            posterior[f"{name}_effect"] = part.reshape(len(part), *(len(labels[f]) for f in dims[f"{name}_effect"]))
        groups: dict[str, dict[str, Any]] = {
            "posterior": posterior,
            "prior": prior,
            "sample_stats": dict(self.statistics),
            "constant_data": {"prior_scale": self.prior},
        }
        at = np.argwhere(~gaps)
        if not observed.is_uncertain:
            centre, spread = centre[:, ~gaps], sd[:, [-1]]
            score = values[0][~gaps]
            groups["posterior_predictive"] = {"score": rng.normal(centre, spread)}
            groups["log_likelihood"] = {
                "score": -0.5 * ((score - centre) / spread) ** 2 - np.log(spread) - 0.5 * np.log(2 * np.pi)
            }
            groups["observed_data"] = {"score": score}
        for group, of in groups.items():
            if group in ("posterior", "prior", "posterior_predictive", "log_likelihood"):
                groups[group] = {name: v.reshape(*shape, *v.shape[1:]) for name, v in of.items()}
        cells = [" ".join(labels[f][i] for f, i in zip(design.facets, cell, strict=True)) for cell in at.tolist()]
        coords = {"effect": list(design.names), "cell": cells, **{f: list(names) for f, names in labels.items()}}
        attributes = {"model": f"{design}, normal effects", "inference": "nuts", **asdict(self.diagnostics)}
        return arviz_data(groups, coords, dims, attributes)


def sample_components(
    observed: Observed,
    prior: float | None = None,
    *,
    rng: np.random.Generator,
    draws: int = 2000,
    tune: int = 1000,
    chains: int = 2,
) -> VariancePosterior:
    r"""Sample the standard deviations of all effects, and the missing scores.

    .. math:: p(\sigma \mid MS) \propto \prod_\alpha \lambda_\alpha^{-\nu_\alpha/2}
        e^{-\nu_\alpha MS_\alpha/2\lambda_\alpha} \prod_\beta N^+(\sigma_\beta \mid 0, s^2)

    Parameters
    ----------
    observed
        The scores. Of many joint draws the posteriors of 100 are sampled, all at once.
    prior
        The scale :math:`s` of the half-normal prior of standard deviations; by default twice that of all scores.
    rng, draws, tune, chains
        The generator of the sampler's seed, and the length of the run.
    """
    if observed.missing and observed.is_uncertain:
        raise ReliabilityError("method='bayes' takes uncertain scores without gaps only. Use method='anova'.")
    pm, pt = load("pymc"), load("pytensor.tensor")
    rows = np.unique(np.linspace(0, len(observed.values) - 1, JOINT).astype(int))
    values, design = observed.values[rows], observed.design
    flat = values.reshape(len(rows), -1)
    centre = np.nanmean(flat)
    scale = np.full(len(rows), prior) if prior else WIDTH * np.nanstd(flat, axis=1)
    scaled = (values - centre) / scale.reshape(-1, *(1,) * (values.ndim - 1))
    balanced = MeanSquares(design, values.shape[1:], np.empty(0))
    gaps = np.flatnonzero(np.isnan(flat[0]))
    with pm.Model() as model:
        sd = pm.HalfNormal("sd", 1.0, shape=(len(rows), len(design.names)))
        scores: Any = scaled
        if len(gaps):
            filled = pt.set_subtensor(pt.as_tensor(scaled.ravel())[gaps], pm.Flat("missing", shape=len(gaps)))
            scores = filled.reshape(values.shape)
        squares = sums_of_squares(effects(design, scores), values.shape[1:])
        expected = pt.dot(sd**2, balanced.weights.T)
        total = balanced.degrees * pt.log(expected) + pt.stack(squares, axis=1) / expected
        pm.Potential("scores", -0.5 * total.sum())
    found, statistics = sample(
        model,
        draws=draws,
        tune=tune,
        chains=chains,
        target_accept=0.95,
        random_seed=int(rng.integers(2**31)),
        progressbar=False,
    )
    found["sd"] = found["sd"] * scale[:, None]
    if len(gaps):
        found["missing"] = found["missing"] * scale[0] + centre
    some = Observed(design, observed.labels, values)
    posterior = VariancePosterior(some, scale, found, statistics)
    _ = posterior.diagnostics  # warns where sampling did not converge
    return posterior


def draw_effects(
    squares: MeanSquares, values: Floats, variances: Floats, rng: np.random.Generator
) -> tuple[Floats, list[Floats]]:
    r"""Return the mean of all scores and every effect given their variances, drawn from their posterior.

    By Matheron's rule: effects :math:`x_0` from the prior, with the scores :math:`y_0` that they make, become

    .. math:: x_\alpha = x_{0\alpha} + \sum_{\beta \subseteq \alpha} \frac{k_\alpha \sigma^2_\alpha}{\lambda_\beta}
        P_\beta (y - \mu - y_0),

    as :math:`\text{Cov}[x_\alpha, y] = k_\alpha \sigma^2_\alpha \sum_{\beta \subseteq \alpha} P_\beta` and
    :math:`\text{Var}[y] = \sum_\beta \lambda_\beta P_\beta`, with :math:`P_\beta` the projection on effect
    :math:`\beta`; the empty one is the mean.

    Parameters
    ----------
    squares
        The design and its sizes.
    values, variances
        Complete scores, shape (draw, \*facets), and the components, shape (draw, effect).
    """
    design, cells, n = squares.design, values[0].size, len(values)
    ones = (1,) * len(squares.sizes)
    copies = np.diag(squares.weights)  # k
    expected = variances @ squares.weights.T
    of_mean = variances @ copies
    mean = values.reshape(n, -1).mean(axis=1) + rng.normal(size=n) * np.sqrt(of_mean / cells)
    drawn = []
    for effect, variance in zip(design.effects, variances.T, strict=True):
        levels = [size if facet in effect else 1 for facet, size in zip(design.facets, squares.sizes, strict=True)]
        drawn.append(rng.normal(size=(n, *levels)) * np.sqrt(variance).reshape(n, *ones))
    left = values - mean.reshape(n, *ones) - sum(drawn)
    common = left.reshape(n, -1).mean(axis=1)
    parts = effects(design, left)
    for i, effect in enumerate(design.effects):
        gained = (copies[i] * variances[:, i])[:, None] / np.column_stack([of_mean, expected])
        drawn[i] = drawn[i] + (gained[:, 0] * common).reshape(n, *ones)
        for j, other in enumerate(design.effects):
            if other <= effect:
                drawn[i] = drawn[i] + gained[:, j + 1].reshape(n, *ones) * parts[j]
    return mean, drawn
