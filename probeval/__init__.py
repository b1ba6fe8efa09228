"""probeval: probabilistic relevance and low-cost evaluation of retrieval systems.

Given runs and any number of judgments, it returns every score with its uncertainty.
"""

from typing import Any

from probeval.data import (
    Collection,
    Judgments,
    Pool,
    Runs,
    Scale,
    as_judgments,
    as_runs,
    read_campaign,
    read_judgments,
    read_runs,
    write_campaign,
)
from probeval.errors import DataError, MetricError, ProbevalError, ScaleError
from probeval.metrics import Measured, Metric, measure, parse

__version__ = "0.2.0"

__all__ = [
    "Collection",
    "DataError",
    "Judgments",
    "Measured",
    "Metric",
    "MetricError",
    "Pool",
    "ProbevalError",
    "Runs",
    "Scale",
    "ScaleError",
    "__version__",
    "as_judgments",
    "as_runs",
    "measure",
    "parse",
    "read_campaign",
    "read_judgments",
    "read_runs",
    "synthetic_campaign",
    "write_campaign",
]


def __getattr__(name: str) -> Any:
    """Load names lazily whose modules are slow to import."""
    if name == "synthetic_campaign":
        from probeval.relevance.synthetic import synthetic_campaign

        return synthetic_campaign
    raise AttributeError(f"module 'probeval' has no attribute {name!r}")
