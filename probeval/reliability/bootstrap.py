"""Bootstrap of variance components: effects of each kind are resampled, scores rebuilt and decomposed again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probeval.arrays import Floats
from probeval.reliability.anova import effects
from probeval.reliability.observed import Observed

__all__ = ["bootstrap"]

BATCH = 4_000_000  # most scores in memory at once


def bootstrap(
    observed: Observed,
    components: Floats,
    decompose: Callable[[Floats], Floats],
    *,
    n: int,
    rng: np.random.Generator,
) -> Floats:
    r"""Return the components of ``n`` resampled sets of scores, shape (n, effect).

    Resampling rows or columns of scores is biased: copies of a query are dependent. Here the effects of every kind are
    drawn with replacement from those observed, scaled so that their variance is the component, and added up. No
    normality is assumed.

    Parameters
    ----------
    observed, components
        The scores, and their estimated components, shape (draw, effect). With several joint draws, each set of scores
        starts from another draw.
    decompose
        The function from scores of shape (draw, \*facets) to components of shape (draw, effect).
    """
    rows = np.arange(n) % len(observed.values)
    size = max(1, BATCH // observed.values[0].size)
    found = [decompose(_rebuilt(observed, components, rows[start : start + size], rng)) for start in range(0, n, size)]
    return np.concatenate(found)


def _rebuilt(observed: Observed, components: Floats, rows: np.ndarray, rng: np.random.Generator) -> Floats:
    """Return new scores from resampled effects, one set per draw, shape (row, *facets)."""
    parts = effects(observed.design, observed.values)
    gaps = np.isnan(observed.values[0])
    scores = np.zeros((len(rows), *gaps.shape))
    for i, part in enumerate(parts):
        flat = part.reshape(len(part), -1)
        flat = flat[:, ~np.isnan(flat[0])]
        spread = np.sqrt((flat**2).mean(axis=1))
        ratio = np.divide(np.sqrt(components[:, i]), spread, out=np.zeros_like(spread), where=spread > 0)
        drawn = rng.integers(flat.shape[1], size=(len(rows), part[0].size))
        scores += (flat[rows[:, None], drawn] * ratio[rows, None]).reshape(len(rows), *part.shape[1:])
    scores[:, gaps] = np.nan
    return scores
