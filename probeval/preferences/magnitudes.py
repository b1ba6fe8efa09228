r"""Relevance as a number: magnitude estimation, and grades from 0 to 100.

See docs/theory/preferences.md#magnitudes.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from probeval.errors import DataError

__all__ = ["mean_numbers", "normalised_magnitudes"]

COLUMNS = ("query", "doc", "unit", "number")


def normalised_magnitudes(table: pd.DataFrame) -> pd.DataFrame:
    r"""Magnitudes on one scale: each unit's numbers divided by their geometric mean, times that of the query.

    .. math:: r_d = \exp(\log s_d - \mu_u + \mu), \qquad
       \mu_u = \text{mean } \log s \text{ of the unit}, \; \mu = \text{mean } \log s \text{ of the query}.

    Every assessor may use numbers of any size: only their ratios within a unit count.

    Parameters
    ----------
    table
        ``query``, ``doc``, ``unit`` (the documents that one assessor judged together) and ``number`` above 0.

    Returns
    -------
    :
        The table with a column ``magnitude``.

    Examples
    --------
    >>> rows = pd.DataFrame({"query": "q", "doc": list("abcabc"), "unit": [1, 1, 1, 2, 2, 2],
    ...                      "number": [10, 20, 40, 1, 2, 8]})
    >>> normalised_magnitudes(rows)["magnitude"].round(4).tolist()
    [3.5495, 7.0991, 14.1981, 2.8173, 5.6345, 22.5382]
    """
    missing = next((name for name in COLUMNS if name not in table), None)
    if missing is not None:
        raise DataError(f"no column {missing!r}: expected {', '.join(COLUMNS)}.")
    numbers = table["number"].to_numpy(dtype=float)
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))
    if wrong.size:
        row = int(wrong[0])
        raise DataError(f"the number in row {row + 1} must be above 0, got {numbers[row]:g}.")
    logs = table.assign(_log=np.log(numbers))
    unit = logs.groupby(["query", "unit"])["_log"].transform("mean")
    query = logs.groupby("query")["_log"].transform("mean")
    return table.assign(magnitude=np.exp(logs["_log"] - unit + query))


def mean_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """The mean of several assessors' numbers of each document, for numbers on one scale such as 0 to 100.

    Parameters
    ----------
    table
        ``query``, ``doc`` and ``number``.

    Returns
    -------
    :
        ``query``, ``doc``, ``number`` and ``answers``.

    Examples
    --------
    >>> rows = pd.DataFrame({"query": "q", "doc": ["a", "a", "b"], "number": [90, 70, 5]})
    >>> mean_numbers(rows)["number"].tolist()
    [80.0, 5.0]
    """
    return table.groupby(["query", "doc"], as_index=False).agg(number=("number", "mean"), answers=("number", "size"))
