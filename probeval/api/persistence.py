"""The persistence at which rank-biased precision is most like other measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated

from probeval.api.evidence import JudgedRuns, as_scale
from probeval.api.settings import MEASURE, Depth, GradeScale, Work
from probeval.errors import DataError
from probeval.metrics import AnyMetric
from probeval.records import About, task
from probeval.studies.persistence import STEP, PersistenceStudy, persistence_study

__all__ = ["PersistenceInputs", "persistence"]


METRICS = ("AP", "nDCG", "P@10", "RR")


@dataclass(frozen=True, eq=False, repr=False)
class PersistenceInputs(Work, JudgedRuns):
    """Find the persistence at which rank-biased precision orders systems most like each measure.

    It tells how deep a measure looks, in terms of the users of RBP, and how much unjudged documents leave open there.

    Examples
    --------
    >>> import probeval
    >>> campaign = probeval.synthetic_campaign(seed=1, systems=8, queries=20, depth=20)
    >>> probeval.persistence(campaign.runs, ["P@5", "AP"], qrels=campaign.judgments, step=0.1)
    <PersistenceStudy: the RBP nearest to 2 measures>
    """

    metrics: Annotated[Sequence[AnyMetric], replace(MEASURE, option="--metric", many=True)] = METRICS
    _: KW_ONLY
    step: Annotated[float, About("The distance between persistences, from .5 on.", least=0.001, most=0.25)] = STEP
    scale: GradeScale = None
    depth: Depth = None

    def run(self) -> PersistenceStudy:
        """The study."""
        if self.qrels is None:
            raise DataError("The study needs judgments: give --qrels FILE (qrels=).")
        named = as_scale(self.scale)
        collection = self.collection(scale=named, reporter=self.reporter)
        assert collection.judgments is not None
        return persistence_study(
            collection.runs, collection.judgments, self.metrics, scale=named, step=self.step, depth=self.depth
        )


persistence = task(PersistenceInputs, "persistence")
