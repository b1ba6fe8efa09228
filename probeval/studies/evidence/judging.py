"""The study ``judging``: a held-out campaign judged again by a policy."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from probeval.data.collection import Collection
from probeval.simulation.protocol import Contender, SimulationProtocol
from probeval.simulation.simulate import simulate
from probeval.simulation.validate import MODELS
from probeval.studies.evidence.sources import CellSources, columns_of, rounded

if TYPE_CHECKING:
    from probeval.studies.evidence.plan import Cell

__all__ = ["judge"]

STOP = ("reached", "judged", "confidence", "accuracy", "accuracy_p", "tau")


def judge(cell: Cell, sources: CellSources) -> dict[str, Any]:
    """Judge a held-out campaign again by a policy, as :func:`probeval.simulation.simulate` does."""
    contender = Contender.parse(cell.policy)
    settings = json.loads(cell.settings)
    protocol = SimulationProtocol.of(cell.measure, policies=[contender], seed=cell.seed, **settings)
    collection = sources.held_out(cell)
    depth = protocol.depth or protocol.metric.cutoff or collection.runs.depth
    fit: list[Collection] = []
    if contender.model in MODELS:
        given = replace(contender, given=sources.fitted(cell, contender.model, depth))
        protocol = replace(protocol, policies=(given,))
    else:
        fit = sources.past(cell.collection, labels=bool(cell.labels))
    (run,) = simulate(collection, protocol, fit=fit).trajectories
    end = run.end
    return {
        "systems": run.setup.systems,
        "pool": run.setup.pool,
        "checkpoints": list(run.setup.checkpoints),
        "points": columns_of(run.points),
        "judgments_to_tau90": run.judgments_to_tau90,
        "ending": run.ending,
        "stop": {name: rounded(getattr(end, name)) for name in STOP},
    }
