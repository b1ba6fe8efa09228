"""Studies of pools: what a collection would have told with fewer judgments."""

from probeval.studies.pools.cuts import Cut, depth_cuts, fused_cuts, share_cuts, team_cuts
from probeval.studies.pools.outcomes import (
    DecisionOutcome,
    PoolOptions,
    PoolOutcomes,
    PoolRow,
    PoolTrend,
    ScoreMovement,
    TrendBar,
    compare_pools,
)
from probeval.studies.pools.reference import ReferencePool, choose_pool, first_unjudged
from probeval.studies.pools.study import CollectionPool, CutFacts, PoolFacts, PoolStudy, describe_pool

__all__ = [
    "CollectionPool",
    "Cut",
    "CutFacts",
    "DecisionOutcome",
    "PoolFacts",
    "PoolOptions",
    "PoolOutcomes",
    "PoolRow",
    "PoolStudy",
    "PoolTrend",
    "ReferencePool",
    "ScoreMovement",
    "TrendBar",
    "choose_pool",
    "compare_pools",
    "depth_cuts",
    "describe_pool",
    "first_unjudged",
    "fused_cuts",
    "share_cuts",
    "team_cuts",
]
