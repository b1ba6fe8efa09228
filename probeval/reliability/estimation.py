"""Estimate variance components by each of the methods, separately for every draw of the scores."""

from __future__ import annotations

import warnings

import numpy as np

from probeval.arrays import Floats
from probeval.errors import ProbevalWarning
from probeval.reliability.anova import MeanSquares, henderson, mean_squares
from probeval.reliability.designs import RESIDUAL, Design
from probeval.reliability.mixed import reml_balanced, reml_statsmodels
from probeval.reliability.observed import Observed

__all__ = ["clipped", "decompose", "decompose_again"]


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
