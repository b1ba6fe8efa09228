r"""Bayesian variance components (PyMC): the posterior of each, all positive.

Effects are normal, and their standard deviations have half-normal priors, twice as wide as the spread of all scores.
Without gaps the effects integrate out: the likelihood depends only on the mean squares, and only standard deviations
are sampled. If scores are missing the effects are sampled too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from probeval.arrays import Floats
from probeval.bayes import diagnose, load, sample
from probeval.reliability.anova import MeanSquares
from probeval.reliability.mixed import level_codes
from probeval.reliability.observed import Observed

__all__ = ["posterior_balanced", "posterior_gaps"]


def posterior_balanced(
    squares: MeanSquares,
    prior: Floats,
    *,
    rng: np.random.Generator,
    draws: int = 2000,
    tune: int = 1000,
    chains: int = 2,
) -> Floats:
    r"""Return posterior draws of the components given mean squares, shape (posterior draw, score draw, effect).

    .. math:: p(\sigma \mid MS) \propto \prod_\alpha \lambda_\alpha^{-\nu_\alpha/2}
        e^{-\nu_\alpha MS_\alpha/2\lambda_\alpha} \prod_\beta N^+(\sigma_\beta \mid 0, s^2)

    Parameters
    ----------
    squares
        One or many decompositions, all sampled at once.
    prior
        The scale :math:`s` of the half-normal prior of standard deviations for each of them, shape (draw,).
    rng, draws, tune, chains
        The generator of the sampler's seed, and the length of the run.
    """
    pm, pt = load("pymc"), load("pytensor.tensor")
    ms = squares.values / prior[:, None] ** 2
    with pm.Model() as model:
        sd = pm.HalfNormal("sd", 1.0, shape=ms.shape)
        expected = pt.dot(sd**2, squares.weights.T)
        pm.Potential("scores", -0.5 * (squares.degrees * (pt.log(expected) + ms / expected)).sum())
    found = _sampled(model, rng, draws, tune, chains)
    return np.asarray(found**2 * prior[:, None] ** 2)


def posterior_gaps(
    observed: Observed, prior: float, *, rng: np.random.Generator, draws: int = 2000, tune: int = 1000, chains: int = 2
) -> Floats:
    """Return posterior draws of the components of scores with gaps, with every effect sampled, shape (draw, effect)."""
    pm = load("pymc")
    codes, cells = level_codes(observed)
    y = observed.values[0].ravel()[cells]
    names = observed.design.names
    with pm.Model() as model:
        sd = pm.HalfNormal("sd", 1.0, shape=len(names))
        mean = pm.Normal("mean", 0.0, 10.0)
        for i, (name, code) in enumerate(zip(names[:-1], codes, strict=False)):
            mean = mean + sd[i] * pm.Normal(name, 0.0, 1.0, shape=int(code.max()) + 1)[code]
        pm.Normal("score", mean, sd[-1], observed=(y - y.mean()) / prior)
    return np.asarray(_sampled(model, rng, draws, tune, chains) ** 2 * prior**2)


def _sampled(model: Any, rng: np.random.Generator, draws: int, tune: int, chains: int) -> Floats:
    """Return draws of the standard deviations, with chains concatenated."""
    found, statistics = sample(
        model,
        draws=draws,
        tune=tune,
        chains=chains,
        target_accept=0.95,
        random_seed=int(rng.integers(2**31)),
        progressbar=False,
    )
    diagnose({"sd": found["sd"]}, statistics)
    return found["sd"].reshape(-1, *found["sd"].shape[2:])
