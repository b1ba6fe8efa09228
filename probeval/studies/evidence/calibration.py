"""The study ``calibration``: a held-out campaign judged in random order, and the confidence along the way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from probeval.errors import ModelError, did_you_mean
from probeval.simulation.validate import MODELS, ValidationRun, validate
from probeval.studies.evidence.sources import CellSources, columns_of, rounded

if TYPE_CHECKING:
    from probeval.studies.evidence.plan import Cell

__all__ = ["calibrate"]


def calibrate(cell: Cell, sources: CellSources) -> dict[str, Any]:
    """Judge a held-out campaign in random order, as :func:`probeval.simulation.validate` does."""
    settings = json.loads(cell.settings)
    depth = settings.pop("depth", None) or sources.plan.depths[cell.collection]
    model = sources.fitted(cell, cell.policy, depth) if cell.policy in MODELS else None
    if model is None:
        raise ModelError(f"No model {cell.policy!r} to fit: {', '.join(MODELS)}.{did_you_mean(cell.policy, MODELS)}")
    found = validate(
        [sources.held_out(cell)], metrics=[cell.measure], models={cell.policy: model}, depth=depth, seeds=1,
        seed=cell.seed, **settings,
    )  # fmt: skip
    (run,) = found.validation_runs
    return {
        "systems": run.systems,
        "pool": run.pool,
        "checkpoints": list(found.checkpoints),
        "points": columns_of(run.points),
        "bins": _bins(run),
    }


def _bins(run: ValidationRun) -> list[list[list[float]]]:
    """Return the pairs, the sums of confidence and of right verdicts by bin, at each checkpoint."""
    return [
        [[rounded(x) for x in part] for part in (point.bins.pairs, point.bins.stated, point.bins.right)]
        for point in run.points
    ]
