"""Studies of pools: what collections would have told with fewer judgments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from probeval.api.campaigns import CampaignFolders, as_campaigns
from probeval.api.evidence import Remarks, as_scale
from probeval.api.settings import GradeScale, Samples, Scheduler, Seed, Work
from probeval.data import Collection, read_runs
from probeval.data.runs import ContradictionReport
from probeval.errors import DataError
from probeval.metrics import AnyMetric
from probeval.records import About, parse_counts, parse_shares, part, task
from probeval.reliability.paired import SAMPLES, TESTS
from probeval.reporting import SILENT, Reporter
from probeval.scores.evaluate import as_metric
from probeval.selection import FUSIONS
from probeval.studies.collections import over_collections
from probeval.studies.pools import (
    CollectionPool,
    Cut,
    PoolOptions,
    PoolStudy,
    ReferencePool,
    choose_pool,
    compare_pools,
    depth_cuts,
    describe_pool,
    fused_cuts,
    share_cuts,
    team_cuts,
)
from probeval.studies.pools.cuts import default_depths
from probeval.studies.pools.study import PoolDescription

__all__ = ["PoolStudyInputs", "pool_study"]

METRICS = ("AP", "nDCG", "RBP(p=0.98)")  # those of the published tables
PAIR_TESTS = tuple(TESTS)


@dataclass(frozen=True, eq=False, repr=False)
class PoolStudyInputs(Work):
    """Cut the judgments of finished campaigns, and compare tests and scores with those by the whole pool.

    The reference is the judgments of the pool of the deeply judged systems; every cut is a part of these. See
    docs/theory/pools.md. By default the reference is the first of 50, 20, 10 and 5 to which a quarter of the systems
    are deeply judged, and pools are cut to a tenth, two, three and four tenths and half of it, unless other cuts are
    named.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=6, queries=20, depth=20)
    >>> study = probeval.pool_study(campaign, "AP", depths=[5, 10, 20])
    >>> study.to_frame()[["cut", "discrimination", "concordance", "residual"]].round(2).values.tolist()
    [['depth 5', 0.2, 0.87, 0.81], ['depth 10', 0.27, 0.93, 0.73], ['depth 20', 0.2, 1.0, 0.67]]
    """

    campaigns: CampaignFolders
    metrics: Annotated[
        AnyMetric | Sequence[AnyMetric],
        About(
            "A measure. Default: AP, nDCG and RBP(p=0.98).", metavar="METRIC", option="--metric", kind=str, many=True
        ),
    ] = METRICS
    _: KW_ONLY
    depths: Annotated[
        Sequence[int] | None,
        About(
            "Depths of pools; the deepest is the reference. Default: as deep as judged, and parts of that.",
            metavar="N,N,..",
            option="--depth",
            kind=str,
            parse=parse_counts,
        ),
    ] = None
    shares: Annotated[
        Sequence[float],
        About(
            "Random shares of the reference's judgments, such as .1,.5.",
            metavar="F,F,..",
            option="--share",
            kind=str,
            parse=parse_shares,
            default=None,
        ),
    ] = ()
    take: Annotated[
        Sequence[int] | None,
        About(
            "Numbers of documents per query, the first of a fused ranking of all systems.",
            metavar="N,N,..",
            kind=str,
            parse=parse_counts,
        ),
    ] = None
    fusions: Annotated[
        Sequence[str],
        About("With --take: a fused ranking. Default: take.", option="--fusion", choices=tuple(FUSIONS), many=True),
    ] = ("take",)
    leave_team_out: Annotated[bool, About("Leave out what one team alone contributed, each team in turn.")] = False
    every_system: Annotated[
        bool, About("Count all systems, not only those that are deeply judged.", option="--all-systems")
    ] = False
    condensed: Annotated[bool, About("Score lists without their unjudged documents as well.")] = False
    tests: Annotated[
        Sequence[str],
        About("The test of each pair of systems. Default: t.", option="--test", choices=PAIR_TESTS, many=True),
    ] = ("t",)
    alpha: Annotated[float, About("The level of significance of each pair.", least=0.0001, most=0.9999)] = 0.05
    persistence: Annotated[float, About("The persistence p of the RBP residual.", least=0.01, most=0.9999)] = 0.98
    across_teams: Annotated[bool, About("Compare only systems of different teams.")] = False
    scale: GradeScale = None
    samples: Samples = SAMPLES
    seed: Seed = 0
    jobs: Annotated[int, About("The number of processes.", least=1)] = 1
    scheduler: Scheduler = None

    def run(self) -> PoolStudy:
        """The study."""
        tests = [self.tests] if isinstance(self.tests, str) else self.tests
        options = part(self, PoolOptions, tests=tuple(dict.fromkeys(tests)))
        named: Any = self.metrics if isinstance(self.metrics, (list, tuple)) else [self.metrics]
        measures = list(dict.fromkeys(as_metric(metric) for metric in named))
        remarks = Remarks(SILENT)  # they are among the sentences of the study
        one = isinstance(self.campaigns, (Collection, str, PathLike))
        given: Any = [self.campaigns] if one else list(self.campaigns)  # type: ignore[arg-type]
        collections = as_campaigns(given, reporter=self.reporter)
        planned = {c.name: self._planned(c, remarks) for c in collections}
        folders = {
            c.name: None if isinstance(g, Collection) else Path(g) for c, g in zip(collections, given, strict=True)
        }

        def pieces(collection: Collection) -> list[Callable[[], Any]]:
            pool, cuts = planned[collection.name]
            return [
                partial(_describe, collection, folders[collection.name], pool, cuts, options),
                *(partial(compare_pools, pool, cuts, metric, options) for metric in measures),
            ]

        found = over_collections(
            collections, pieces, jobs=self.jobs, scheduler=self.scheduler, reporter=self.reporter, title="Cutting pools"
        )
        parts = [CollectionPool.of(c.name, done[0], done[1:]) for c, done in zip(collections, found, strict=True)]
        return PoolStudy(tuple(parts), options, tuple(remarks.notes))

    def _planned(self, collection: Collection, reporter: Reporter) -> tuple[ReferencePool, list[Cut]]:
        """The pool of a collection, and its cuts."""
        depths, scale = self.depths, as_scale(self.scale)
        pool = choose_pool(
            collection, depth=max(depths) if depths else None, scale=scale, every_system=self.every_system
        )
        _note_pool(collection, pool, reporter, every_system=self.every_system)
        others = self.shares or self.take or self.leave_team_out
        wanted = depths or (() if others else default_depths(pool.depth))
        cuts = [*depth_cuts(pool, wanted), *share_cuts(pool, self.shares or (), seed=self.seed)]
        cuts += fused_cuts(pool, self.take or (), self.fusions)
        return pool, [*cuts, *(team_cuts(pool) if self.leave_team_out else [])]


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


pool_study = task(PoolStudyInputs, "pool_study")
