"""What a comparison means for users, and for one new query: columns and rows of :func:`probeval.compare`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from probeval.api.users import agreement_of
from probeval.arrays import Floats
from probeval.data import Scale
from probeval.errors import SatisfactionError
from probeval.metrics import Measured, Metric
from probeval.results import plain
from probeval.satisfaction import Noticed, Satisfaction, load_mapping, mapping_for, predict_query
from probeval.scores import Scores

__all__ = ["effect_columns", "new_query_table", "readable_effects", "satisfaction_with"]

SHOWN = ("sat", "success")  # differences with an interval, as people read them


def satisfaction_with(
    scores: Measured | Scores, metric: Metric, scale: Scale, mapping: str | None
) -> Satisfaction | None:
    """Return users' satisfaction by the named mapping, or the published one of the measure.

    None without a mapping, and for a single query.
    """
    if len(scores.queries) < 2:
        return None
    try:
        mapped = mapping_for(metric, scale) if mapping is None else load_mapping(mapping)
        return Satisfaction.of(scores, mapped, agreement=agreement_of(metric, scale, mapping))
    except SatisfactionError:
        if mapping is not None:
            raise
        return None


def effect_columns(effects: Iterable[Noticed]) -> pd.DataFrame:
    """Return one row per pair: the changes in P(Sat) and P(Succ) with their intervals, and who notices."""
    rows = []
    for effect in effects:
        row = {"sat": effect.sat.mean, "sat_lower": effect.sat.lower, "sat_upper": effect.sat.upper}
        row |= {"p_sat": effect.p_better, "success": effect.success.mean}
        row |= {"success_lower": effect.success.lower, "success_upper": effect.success.upper}
        rows.append(row if effect.noticed is None else row | {"noticed": effect.noticed.mean})
    return pd.DataFrame(rows)


def readable_effects(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of :func:`effect_columns` that people read, each change with its interval in one text."""
    shown = {}
    for name in [name for name in (*SHOWN, "p_sat", "noticed") if name in pairs.columns]:
        if name in SHOWN:
            ends = zip(pairs[name], pairs[f"{name}_lower"], pairs[f"{name}_upper"], strict=True)
            shown[name] = [f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]" for mean, low, high in ends]
        else:
            shown[name] = pairs[name].tolist()
    return pd.DataFrame(shown, index=pairs.index)


def new_query_table(
    systems: Sequence[str],
    scores: Floats,
    *,
    users: Satisfaction | None,
    level: float,
    limits: tuple[float, float],
) -> pd.DataFrame:
    """Return the prediction for one new query, one row per system.

    The columns are the keys of :class:`~probeval.scores.documents.NewQuerySystem`.

    Parameters
    ----------
    systems
        The systems, in the order of the rows.
    scores
        Their scores on the queries, NaN if missing, shape (system, query), or draws, shape (draw, system, query).
    users
        Users' satisfaction with the same systems, if it is known.
    level, limits
        The probability, and the lowest and highest possible score.
    """
    draws = scores[None] if scores.ndim == 2 else scores
    rows = []
    for i, system in enumerate(systems):
        known = draws[:, i, ~np.isnan(draws[:, i]).any(axis=0)]
        row: dict[str, object] = {"system": system, **plain(predict_query(known, level=level, limits=limits))}
        if users is not None:
            sat = plain(users.new_query(system, level=level))
            row |= {"sat" if name == "mean" else f"sat_{name}": value for name, value in sat.items()}
        rows.append(row)
    return pd.DataFrame(rows)
