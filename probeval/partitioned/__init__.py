"""Campaigns in partitions: evaluation as a map over blocks of queries and a reduction, here or by Dask."""

from __future__ import annotations

from probeval.partitioned.fit import PartitionedFit, fit_parts, look
from probeval.partitioned.scores import score_parts
from probeval.partitioned.state import Engine, PartitionedState

__all__ = ["Engine", "PartitionedFit", "PartitionedState", "fit_parts", "look", "score_parts"]
