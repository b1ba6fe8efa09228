"""Estimate variance components by each of the methods, separately for every draw of the scores."""

from __future__ import annotations

import warnings

import numpy as np

from probeval.arrays import Floats
from probeval.errors import ProbevalWarning, ReliabilityError
from probeval.reliability.anova import MeanSquares, henderson, mean_squares
from probeval.reliability.bayesian import posterior_balanced, posterior_gaps
from probeval.reliability.designs import RESIDUAL, Design
from probeval.reliability.mixed import reml_balanced, reml_statsmodels
from probeval.reliability.observed import Observed

__all__ = ["clipped", "decompose", "decompose_again", "posterior"]

WIDTH = 2.0  # scale of the prior of standard deviations, in standard deviations of all scores
JOINT = 100  # most joint draws of scores whose posteriors are sampled at once


def decompose(observed: Observed, squares: MeanSquares | None, method: str) -> Floats:
    """Return the components of every draw, perhaps negative, shape (draw, effect)."""
    if method == "reml":
        return reml_statsmodels(observed) if squares is None else reml_balanced(squares)
    return henderson(observed.design, observed.values) if squares is None else squares.components()


def decompose_again(design: Design, values: Floats, *, balanced: bool, method: str) -> Floats:
    """Return the components of bootstrap scores, none negative; with gaps always by analysis of variance."""
    if not balanced:
        return np.maximum(henderson(design, values), 0.0)
    squares = mean_squares(design, values)
    return np.maximum(reml_balanced(squares) if method == "reml" else squares.components(), 0.0)


def clipped(observed: Observed, components: Floats) -> Floats:
    """Set negative components to 0, with a warning that names them."""
    if observed.is_uncertain:
        return np.maximum(components, 0.0)
    negative = [name for name, value in zip(observed.design.names, components[0], strict=True) if value < 0]
    if negative:
        warnings.warn(
            f"Negative variance of {', '.join(negative)}, set to 0: it is too small for these scores to show. "
            "method='bayes' keeps variances positive.",
            ProbevalWarning,
            stacklevel=3,
        )
    if not components[0, :-1].max() > 0:
        warnings.warn(
            f"All variance is {RESIDUAL}: these scores cannot tell systems apart.", ProbevalWarning, stacklevel=3
        )
    return np.maximum(components, 0.0)


def posterior(observed: Observed, squares: MeanSquares | None, prior: float | None, rng: np.random.Generator) -> Floats:
    """Return posterior draws of the components, shape (draw, effect); every joint draw of the scores contributes."""
    if squares is None:
        if observed.is_uncertain:
            raise ReliabilityError("method='bayes' takes uncertain scores without gaps only. Use method='anova'.")
        return posterior_gaps(observed, prior or WIDTH * float(np.nanstd(observed.values)), rng=rng)
    rows = np.unique(np.linspace(0, len(squares.values) - 1, JOINT).astype(int))
    some = MeanSquares(squares.design, squares.sizes, squares.values[rows])
    spread = WIDTH * observed.values[rows].reshape(len(rows), -1).std(axis=1)
    found = posterior_balanced(some, np.full(len(rows), prior) if prior else spread, rng=rng)
    return np.asarray(found[np.arange(len(found)), np.arange(len(found)) % len(rows)])
