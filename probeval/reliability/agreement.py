r"""Agreement of assessors beyond chance: alpha (Krippendorff 2011) and weighted kappa (Cohen 1968).

See docs/theory/significance.md#alpha.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from probeval.arrays import Floats
from probeval.errors import ReliabilityError, did_you_mean
from probeval.ties import signs

__all__ = ["LEVELS", "WEIGHTS", "krippendorff_alpha", "pair_labels", "weighted_kappa"]

LEVELS = {
    "nominal": "any two different values are equally far apart",
    "ordinal": "the distance is the number of given values between",
    "interval": "the distance is the difference, squared",
    "ratio": "the distance is the difference over the sum, squared, for values from 0 such as magnitudes",
}
WEIGHTS = {
    "none": "Cohen's kappa: any disagreement counts alike",
    "linear": "disagreement by the distance of the grades",
    "quadratic": "disagreement by the squared distance of the grades",
}


def krippendorff_alpha(values: ArrayLike, *, level: str = "nominal") -> float:
    r"""Return Krippendorff's alpha of several assessors' values for the same units.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}
       = 1 - (n - 1) \frac{\sum_{c,k} o_{ck} \, \delta^2_{ck}}{\sum_{c,k} n_c n_k \, \delta^2_{ck}},

    with the coincidences :math:`o_{ck}` of values within units: each unit of :math:`m_u` values adds all its ordered
    pairs with weight :math:`1/(m_u - 1)`. 1 is perfect, 0 is chance, less is worse than chance. A unit with one value
    does not count. NaN if all values are equal.

    Parameters
    ----------
    values
        One row per assessor, one column per unit, NaN for missing values, shape (assessor, unit).
    level
        The level of measurement: one of :data:`LEVELS`.

    Examples
    --------
    >>> grades = [[1, 0, 2, 1], [1, 0, 1, 2], [2, 0, 2, 1]]
    >>> round(krippendorff_alpha(grades), 3), round(krippendorff_alpha(grades, level="ordinal"), 3)
    (0.298, 0.558)
    """
    _known(level, LEVELS, "level")
    table = np.asarray(values, dtype=float)
    if table.ndim != 2:
        raise ReliabilityError(f"Alpha needs a table of assessors by units, got an array of shape {table.shape}.")
    given = ~np.isnan(table)
    given &= given.sum(axis=0) > 1
    grades, code = np.unique(table[given], return_inverse=True)
    counts = sparse.csr_array((np.ones(len(code)), (np.nonzero(given)[1], code)), (table.shape[1], len(grades)))
    # Shape (unit, value), and (value, value). Coincidences of a value with itself have no distance: they may stay.
    coincidences = (counts.T @ sparse.diags_array(1 / (given.sum(axis=0) - 1)) @ counts).tocoo()
    margin = np.bincount(code, minlength=len(grades)).astype(float)
    places = _places(grades, margin, level)
    between = "squared" if level in ("ordinal", "interval") else level
    observed = coincidences.data @ _gap(places[coincidences.row], places[coincidences.col], between)
    expected = _expected(places, margin, margin, between)
    return 1 - float((margin.sum() - 1) * observed / expected) if expected else float("nan")


def _places(grades: Floats, margin: Floats, level: str) -> Floats:
    """Return where values are on the axis of their distances, shape (value,)."""
    if level == "ratio" and (grades < 0).any():
        raise ReliabilityError(f"Alpha at ratio level needs values from 0, got {grades[0]:g}. Use interval.")
    # Ordinal: the middle of the occurrences of the value.
    return np.asarray(np.cumsum(margin) - margin / 2) if level == "ordinal" else grades


def _gap(x: Floats, y: Floats, between: str) -> Floats:
    """Return the distance of places, element by element."""
    if between == "nominal":
        return np.asarray(x != y, dtype=float)
    if between == "ratio":
        total = x + y
        return np.asarray(np.divide(x - y, total, out=np.zeros_like(total), where=total > 0) ** 2)
    return np.abs(x - y) if between == "linear" else (x - y) ** 2


def _expected(x: Floats, p: Floats, q: Floats, between: str) -> float:
    r"""Return the distance expected from margins, :math:`\sum_{ij} p_i \, q_j \, d(x_i, x_j)`, x in rising order.

    It is computed without the matrix of distances where that is possible: real grades have thousands of values.
    """
    if between == "ratio":
        return float(p @ _gap(x[:, None], x, between) @ q)
    if between == "nominal":  # all but equal ones
        return float(p.sum() * q.sum() - p @ q)
    if between == "linear":  # a step of the axis is between all pairs with one place below it and one above
        below_p, below_q = np.cumsum(p)[:-1], np.cumsum(q)[:-1]
        return float(np.diff(x) @ (below_p * (q.sum() - below_q) + below_q * (p.sum() - below_p)))
    x = x - x[:1]  # (x_i - x_j)^2 multiplied out, from the first place on
    return float(q.sum() * (p @ x**2) + p.sum() * (q @ x**2) - 2 * (p @ x) * (q @ x))


def weighted_kappa(x: ArrayLike, y: ArrayLike, *, weights: str = "quadratic") -> float:
    r"""Return the kappa of two assessors: their disagreement relative to that expected from their shares of grades.

    .. math:: \kappa = 1 - \frac{\sum_{ij} w_{ij} \, o_{ij}}{\sum_{ij} w_{ij} \, p_i q_j},

    with the shares :math:`o_{ij}` of units that one grades i and the other j, and each one's shares of grades,
    :math:`p_i` and :math:`q_j`. NaN if all grades are equal.

    Parameters
    ----------
    x, y
        Grades of the same units, NaN if missing, shape (unit,).
    weights
        One of :data:`WEIGHTS`.

    Examples
    --------
    >>> round(weighted_kappa([0, 0, 1, 1, 2], [0, 1, 1, 1, 2], weights="none"), 4)
    0.6875
    """
    _known(weights, WEIGHTS, "weighting")
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if a.ndim != 1 or a.shape != b.shape:
        raise ReliabilityError(f"Kappa needs two grades for each unit, got shapes {a.shape} and {b.shape}.")
    both = ~np.isnan(a) & ~np.isnan(b)
    grades, code = np.unique([a[both], b[both]], return_inverse=True)
    p, q = (np.bincount(each, minlength=len(grades)).astype(float) for each in code.reshape(2, -1))
    between = {"none": "nominal", "linear": "linear", "quadratic": "squared"}[weights]
    observed = _gap(a[both], b[both], between).sum()
    expected = _expected(grades, p, q, between)
    return 1 - float(both.sum() * observed / expected) if expected else float("nan")


def pair_labels(values: ArrayLike, *, ties: bool = True) -> Floats:
    """Return scores as preferences: 1, -1 or 0 for each pair of units, shape (assessor, pair).

    Scores of different assessors may not be comparable, but the order of two units is. So alpha of these labels
    measures agreement on the order.

    Parameters
    ----------
    values
        Scores, NaN if missing, shape (assessor, unit).
    ties
        Whether a tie is a label of its own; else it is missing.

    Examples
    --------
    >>> scores = [[0.5, 0.1, 0.7, 0.5], [0.4, 0.2, 0.5, 0.7], [0.9, 0.5, 0.9, 0.7]]
    >>> round(krippendorff_alpha(pair_labels(scores)), 3)
    0.353
    """
    scores = np.atleast_2d(np.asarray(values, dtype=float))
    first, second = np.triu_indices(scores.shape[1], 1)
    labels = signs(scores[:, first] - scores[:, second])
    return labels if ties else np.where(labels == 0, np.nan, labels)


def _known(name: str, known: dict[str, str], what: str) -> None:
    if name not in known:
        raise ReliabilityError(f"No {what} {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
