"""Studies of pools: what campaigns would have found with fewer judgments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from probeval.api.campaigns import Campaigns, as_campaigns
from probeval.api.evidence import Remarks, as_scale
from probeval.campaign_studies import over_campaigns
from probeval.data import Collection, Scale, read_runs
from probeval.data.runs import ContradictionReport
from probeval.errors import DataError
from probeval.metrics import AnyMetric
from probeval.pools import (
    CampaignPool,
    Cut,
    PoolOptions,
    PoolStudy,
    ReferencePool,
    choose_pool,
    compare_pools,
    depth_cuts,
    describe_pool,
    share_cuts,
    team_cuts,
)
from probeval.pools.cuts import default_depths
from probeval.pools.study import PoolDescription
from probeval.reliability.paired import SAMPLES
from probeval.reporting import SILENT, Reporter
from probeval.scores.evaluate import as_metric

__all__ = ["METRICS", "pool_study"]

METRICS = ("AP", "nDCG", "RBP(p=0.98)")  # those of the published tables


def pool_study(
    campaigns: Campaigns,
    metrics: AnyMetric | Sequence[AnyMetric] = METRICS,
    *,
    depths: Sequence[int] | None = None,
    shares: Sequence[float] = (),
    leave_team_out: bool = False,
    every_system: bool = False,
    condensed: bool = False,
    tests: Sequence[str] = ("t",),
    alpha: float = 0.05,
    persistence: float = 0.98,
    across_teams: bool = False,
    scale: Scale | str | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    jobs: int = 1,
    scheduler: str | None = None,
    reporter: Reporter = SILENT,
) -> PoolStudy:
    """Cut the judgments of finished campaigns, and compare tests and scores with those by the whole pool.

    The reference is the judgments of the pool of the deeply judged systems; every cut is a part of these. See
    docs/theory/pools.md.

    Parameters
    ----------
    campaigns
        Folders with ``runs/`` and ``qrels.txt``, or collections; or a single one.
    metrics
        The measures; those of the published tables by default.
    depths
        Depths of pools. The deepest is that of the reference. By default the reference is the first of 50, 20, 10 and 5
        to which a quarter of the systems are deeply judged, and pools are cut to a tenth, two, three and four tenths
        and half of it, unless other cuts are named.
    shares
        Random shares of the reference's judgments, of each query alike.
    leave_team_out
        Whether to leave out the judgments that one team alone contributed, for each team in turn.
    every_system
        Whether all systems count, not only the deeply judged ones.
    condensed
        Whether lists without their unjudged documents are scored as well.
    tests, alpha, samples
        Tests of pairs of systems (:data:`probeval.reliability.TESTS`), without a correction for many pairs; the level
        of significance; the number of resamples of bootstrap and permutation.
    persistence
        The persistence p of the RBP residual, which is beside every test.
    across_teams
        Whether only systems of different teams are compared.
    scale
        The scale of the grades; inferred by default.
    seed
        The random seed, of shares and of resamples; the same seed gives the same result.
    jobs, scheduler
        The number of processes, or the address of a Dask scheduler.
    reporter
        Receives progress and remarks.

    Examples
    --------
    >>> import numpy as np, probeval
    >>> campaign = probeval.synthetic_campaign(np.random.default_rng(1), systems=6, queries=20, depth=20)
    >>> study = probeval.pool_study(campaign, "AP", depths=[5, 10, 20])
    >>> study.to_frame()[["cut", "discrimination", "concordance", "residual"]].round(2).values.tolist()
    [['depth 5', 0.2, 0.87, 0.81], ['depth 10', 0.27, 0.93, 0.73], ['depth 20', 0.2, 1.0, 0.67]]
    """
    options = PoolOptions(
        tests=tuple(dict.fromkeys([tests] if isinstance(tests, str) else tests)),
        alpha=alpha,
        persistence=persistence,
        condensed=condensed,
        across_teams=across_teams,
        samples=samples,
        seed=seed,
    )
    named: Any = metrics if isinstance(metrics, (list, tuple)) else [metrics]
    measures = list(dict.fromkeys(as_metric(metric) for metric in named))
    remarks = Remarks(reporter)
    given = [campaigns] if isinstance(campaigns, (Collection, str, PathLike)) else list(campaigns)
    collections = as_campaigns(given, reporter=reporter)
    grades = as_scale(scale)
    planned: dict[str, tuple[ReferencePool, list[Cut]]] = {}
    for collection in collections:
        pool = choose_pool(collection, depth=max(depths) if depths else None, scale=grades, every_system=every_system)
        _note_pool(collection, pool, remarks, every_system=every_system)
        wanted = depths or (() if shares or leave_team_out else default_depths(pool.depth))
        cuts = [*depth_cuts(pool, wanted), *share_cuts(pool, shares, seed=seed)]
        planned[collection.name] = pool, [*cuts, *(team_cuts(pool) if leave_team_out else [])]
    folders = {c.name: None if isinstance(g, Collection) else Path(g) for c, g in zip(collections, given, strict=True)}

    def pieces(collection: Collection) -> list[Callable[[], Any]]:
        pool, cuts = planned[collection.name]
        return [
            partial(_describe, collection, folders[collection.name], pool, cuts, options),
            *(partial(compare_pools, pool, cuts, metric, options) for metric in measures),
        ]

    found = over_campaigns(
        collections, pieces, jobs=jobs, scheduler=scheduler, reporter=reporter, title="Cutting pools"
    )
    parts = [CampaignPool.of(c.name, part[0], part[1:]) for c, part in zip(collections, found, strict=True)]
    return PoolStudy(tuple(parts), options, tuple(remarks.notes))


def _note_pool(collection: Collection, pool: ReferencePool, reporter: Reporter, *, every_system: bool) -> None:
    """Report what the reference leaves out."""
    left = len(collection.runs.queries) - len(pool.runs.queries)
    if left:
        reporter.say(f"{pool.campaign}: {left} queries of the runs have no judgment and are left out.")
    if not pool.deep and not every_system:
        reporter.say(
            f"{pool.campaign}: fewer than two systems are judged to depth {pool.depth} on every query, so all count, "
            "and the reference itself has unjudged documents. A lower --depth has more complete judgments."
        )


def _describe(
    collection: Collection, folder: Path | None, pool: ReferencePool, cuts: Sequence[Cut], options: PoolOptions
) -> PoolDescription:
    return describe_pool(collection, pool, cuts, options, _contradictions(collection, folder))


def _contradictions(collection: Collection, folder: Path | None) -> ContradictionReport | None:
    """Return how often submitted ranks contradict scores; None if they are not in the files."""
    if folder is None:
        return None
    try:
        return collection.runs.contradictions(read_runs(folder / "runs", order="rank"))
    except DataError:
        return None
