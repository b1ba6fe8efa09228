"""Studies of pools: what a campaign would have found with fewer judgments."""

from probeval.studies.pools.cuts import Cut, depth_cuts, share_cuts, team_cuts
from probeval.studies.pools.documents import (
    CampaignPoolDocument,
    CutDocument,
    PoolFacts,
    PoolRow,
    PoolStudyDocument,
    PoolTrend,
    TrendBar,
)
from probeval.studies.pools.outcomes import PoolOptions, PoolOutcomes, compare_pools
from probeval.studies.pools.reference import ReferencePool, choose_pool, first_unjudged
from probeval.studies.pools.study import CampaignPool, PoolStudy, describe_pool

__all__ = [
    "CampaignPool",
    "CampaignPoolDocument",
    "Cut",
    "CutDocument",
    "PoolFacts",
    "PoolOptions",
    "PoolOutcomes",
    "PoolRow",
    "PoolStudy",
    "PoolStudyDocument",
    "PoolTrend",
    "ReferencePool",
    "TrendBar",
    "choose_pool",
    "compare_pools",
    "depth_cuts",
    "describe_pool",
    "first_unjudged",
    "share_cuts",
    "team_cuts",
]
