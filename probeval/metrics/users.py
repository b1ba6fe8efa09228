"""Measures of users, by a published mapping from the score of a list to the share of satisfied users: PSat, PSucc.

See docs/theory/satisfaction.md#users-measures.
"""

from __future__ import annotations

import numpy as np

from probeval.arrays import Floats
from probeval.data.scale import Scale
from probeval.metrics.lists import Lists
from probeval.metrics.mapping import SatMapping, load_mapping, measure_mapped, published_mappings
from probeval.metrics.metric import Metric, Parameter, define

__all__ = ["PSat", "PSucc"]

MAPPING = Parameter(
    None, "the published mapping, which names its measure and scale", tuple(published_mappings()), required=True
)
RANKS = 5  # the users saw lists of five


def users_mapping(metric: Metric) -> SatMapping:
    """Return the mapping from scores to satisfied users."""
    return load_mapping(str(metric.checked()["mapping"]))


def mapped_measure(metric: Metric, scale: Scale) -> Metric:
    """Return the measure whose scores are mapped."""
    return measure_mapped(users_mapping(metric).name, scale)


def mapped_gains(metric: Metric, scale: Scale) -> Floats:
    """Return the gain of each grade under the mapped measure, shape (grade,); the scale's if it has none."""
    measure = mapped_measure(metric, scale)
    return scale.gains if measure.definition.gains is None else measure.gains(scale)


def bounds_of_users(metric: Metric, rises: bool) -> str | None:
    """Return the method of bounds; none if a higher score may satisfy fewer, or a higher grade may lower the score."""
    measure = mapped_measure(metric, Scale.binary())
    return "monotone" if rises and measure.definition.bounds(measure) != "ratio" else None


@define(
    "PSat",
    "the share of users who are satisfied with the list, by a published mapping from its score",
    r"sat(x)",
    parameters={"mapping": MAPPING},
    cutoff=RANKS,
    gains=mapped_gains,
    bounds=lambda metric: bounds_of_users(metric, users_mapping(metric).is_monotone),
)
def PSat(metric: Metric, lists: Lists) -> Floats:
    return users_mapping(metric)(mapped_measure(metric, lists.scale).scores(lists))


@define(
    "PSucc",
    "success: 1 if more than half of the users are satisfied with the list, else 0",
    r"1\big(sat(x) > \tfrac12\big)",
    parameters={"mapping": MAPPING},
    cutoff=RANKS,
    gains=mapped_gains,
    bounds=lambda metric: bounds_of_users(metric, users_mapping(metric).succeeds_from_a_score_on),
)
def PSucc(metric: Metric, lists: Lists) -> Floats:
    scores = mapped_measure(metric, lists.scale).scores(lists)
    return users_mapping(metric).succeeds(scores).astype(np.float64)
