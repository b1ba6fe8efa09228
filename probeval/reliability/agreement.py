r"""Agreement of assessors beyond chance: alpha (Krippendorff 2011) and weighted kappa (Cohen 1968).

See docs/theory/significance.md#alpha.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

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
    grades, code = np.unique(table[~np.isnan(table)], return_inverse=True)
    counts = np.zeros((table.shape[1], len(grades)))  # (unit, value)
    np.add.at(counts, (np.nonzero(~np.isnan(table))[1], code), 1.0)
    counts = counts[counts.sum(axis=1) > 1]
    given = counts.sum(axis=1)
    coincidences = np.einsum("uc,uk->ck", counts / (given - 1)[:, None], counts) - np.diag(
        (counts / (given - 1)[:, None]).sum(axis=0)
    )
    margin = coincidences.sum(axis=1)
    distance = _distance(grades, margin, level)
    expected = float(margin @ distance @ margin)
    return 1 - float((margin.sum() - 1) * (coincidences * distance).sum() / expected) if expected else float("nan")


def _distance(grades: Floats, margin: Floats, level: str) -> Floats:
    """Return the squared distance between values, shape (value, value)."""
    if level == "nominal":
        return 1.0 - np.eye(len(grades))
    if level == "ratio":
        if (grades < 0).any():
            raise ReliabilityError(f"Alpha at ratio level needs values from 0, got {grades[0]:g}. Use interval.")
        total = grades[:, None] + grades
        return np.asarray(np.divide(grades[:, None] - grades, total, out=np.zeros_like(total), where=total > 0) ** 2)
    # Ordinal: the position of a value is the middle of its occurrences.
    place = grades if level == "interval" else np.cumsum(margin) - margin / 2
    return np.asarray((place[:, None] - place) ** 2)


def weighted_kappa(x: ArrayLike, y: ArrayLike, *, weights: str = "quadratic") -> float:
    r"""Return the kappa of two assessors: their disagreement relative to that expected from their shares of grades.

    .. math:: \kappa = 1 - \frac{\sum_{ij} w_{ij} \, o_{ij}}{\sum_{ij} w_{ij} \, e_{ij}}

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
    gap = np.abs(a[both, None] - b[both])  # every grade of one beside every grade of the other
    gap = (gap > 0).astype(float) if weights == "none" else gap if weights == "linear" else gap**2
    expected = float(gap.mean()) if gap.size else 0.0
    return 1 - float(np.diag(gap).mean()) / expected if expected else float("nan")


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
    first, second = np.array(list(combinations(range(scores.shape[1]), 2)), dtype=np.int64).reshape(-1, 2).T
    labels = signs(scores[:, first] - scores[:, second])
    return labels if ties else np.where(labels == 0, np.nan, labels)


def _known(name: str, known: dict[str, str], what: str) -> None:
    if name not in known:
        raise ReliabilityError(f"No {what} {name!r}: {', '.join(known)}.{did_you_mean(name, known)}")
