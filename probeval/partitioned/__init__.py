"""Campaigns in parts: evaluation as a map over parts of the queries and a reduction, here or by Dask."""

from __future__ import annotations

from probeval.partitioned.estimate import Engine, PartitionedEstimate
from probeval.partitioned.fit import PartitionedFit, fit_parts, look
from probeval.partitioned.parts import memory_parts, stored_parts
from probeval.partitioned.scores import score_parts

__all__ = [
    "Engine",
    "PartitionedEstimate",
    "PartitionedFit",
    "fit_parts",
    "look",
    "memory_parts",
    "score_parts",
    "stored_parts",
]
