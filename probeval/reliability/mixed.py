"""Variance components by restricted maximum likelihood (REML): never negative, and suited to missing scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from probeval.arrays import Floats
from probeval.bayes import load
from probeval.errors import ProbevalWarning
from probeval.reliability.anova import MeanSquares
from probeval.reliability.observed import Observed

__all__ = ["level_codes", "reml_balanced", "reml_statsmodels"]


def reml_balanced(squares: MeanSquares) -> Floats:
    r"""Return REML components of complete scores: those of the analysis of variance if none is negative.

    Else the components :math:`\ge 0` that maximise the restricted likelihood, a function of the mean squares:

    .. math:: -\frac12 \sum_\alpha \nu_\alpha \Big(\log\lambda_\alpha + \frac{MS_\alpha}{\lambda_\alpha}\Big), \quad
        \lambda_\alpha = E[MS_\alpha].
    """
    found = squares.components().copy()
    for row in np.flatnonzero((found < 0).any(axis=1)):
        found[row] = _constrained(squares, squares.values[row])
    return found


def _constrained(squares: MeanSquares, values: Floats) -> Floats:
    from scipy.optimize import minimize

    weights, degrees, scale = squares.weights, squares.degrees, values.max()

    def loss(x: Floats) -> tuple[float, Floats]:
        expected = weights @ x
        ratio = values / scale / expected
        return float(degrees @ (np.log(expected) + ratio)), weights.T @ (degrees * (1 - ratio) / expected)

    bounds = [(0.0, None)] * (len(values) - 1) + [(1e-12, None)]
    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 10_000, "maxfun": 100_000}
    done = minimize(loss, np.full(len(values), 0.1), jac=True, method="L-BFGS-B", bounds=bounds, options=options)  # type: ignore[call-overload]
    return np.asarray(done.x * scale)


def level_codes(observed: Observed) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the level of every effect in each cell with a score, and the positions of these cells, shape (cell,)."""
    design, known = observed.design, np.isfinite(observed.values[0])
    at = np.nonzero(known)
    codes = []
    for effect in design.effects:
        axes = [i for i, f in enumerate(design.facets) if f in effect]
        flat = np.ravel_multi_index([at[i] for i in axes], [known.shape[i] for i in axes])
        codes.append(np.unique(flat, return_inverse=True)[1])
    return codes, np.flatnonzero(known)


def reml_statsmodels(observed: Observed) -> Floats:
    """Return REML components by statsmodels' ``MixedLM``, with or without gaps, shape (draw, effect).

    Slow if interactions have many levels.
    """
    mixed = load("statsmodels.regression.mixed_linear_model")
    codes, cells = level_codes(observed)
    names = observed.design.names[:-1]
    spec = mixed.VCSpec(
        list(names),
        [[[f"{name}{i}" for i in range(code.max() + 1)]] for name, code in zip(names, codes, strict=False)],
        [[np.eye(code.max() + 1)[code]] for code in codes[: len(names)]],
    )
    return np.stack([_fit(mixed, draw.ravel()[cells], spec) for draw in observed.values])


def _fit(mixed: Any, y: Floats, spec: Any) -> Floats:
    spread, ones = y.std(), np.ones(len(y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mixed.MixedLM((y - y.mean()) / spread, ones, groups=ones, exog_vc=spec)
        done = model.fit(reml=True, gtol=1e-7)
    if not done.converged:
        warnings.warn(
            f"REML did not converge ({caught[-1].message if caught else 'no reason given'}). Try method='bayes'.",
            ProbevalWarning,
            stacklevel=2,
        )
    return np.asarray(np.append(done.vcomp, done.scale) * spread**2)
