"""The true error of absolute scores, learned from replays of past collections."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from probeval.errors import SelectionError
from probeval.selection.errors import ErrorCorrection, learn_curve
from probeval.simulation.trajectory import Trajectory

__all__ = ["learn_errors"]


def learn_errors(trajectories: Iterable[Trajectory]) -> tuple[ErrorCorrection, ...]:
    """Return the true error at each stated standard deviation, one correction per measure and kind of model.

    Replays of several collections count equally, and so do those of several seeds of one.

    Parameters
    ----------
    trajectories
        Replays of past collections (:func:`simulate`), by one policy or several, from no judgments to many.

    Examples
    --------
    >>> from probeval.relevance import synthetic_campaign
    >>> from probeval.simulation import SimulationProtocol, simulate
    >>> campaign = synthetic_campaign(seed=1, systems=5, queries=6, depth=5)
    >>> protocol = SimulationProtocol.of("DCG@5", policies=["variance:uniform"], batch=5, stop="sd=.001")
    >>> (correction,) = learn_errors(simulate(campaign, protocol).trajectories)
    >>> correction.metric, correction.model, 0 < correction.sd_for(0.01) < correction.sd_for(0.05)
    ('DCG@5', 'Uniform', True)
    """
    groups: dict[tuple[str, str], list[Trajectory]] = {}
    for one in trajectories:
        groups.setdefault((one.setup.metric, one.kind), []).append(one)
    if not groups:
        raise SelectionError("Errors are learned from replays of past collections; got none.")
    found = []
    for (metric, kind), members in groups.items():
        traces = [(np.array([s.sd for s in t.steps]), np.array([s.mae for s in t.steps])) for t in members]
        collections = tuple(dict.fromkeys(t.setup.collection for t in members))
        found.append(ErrorCorrection(metric, kind, collections, *learn_curve(traces)))
    return tuple(found)
