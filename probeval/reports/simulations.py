"""Reports of simulations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from probeval.data.files import read_bytes
from probeval.errors import DataError
from probeval.plots import plot_trajectory
from probeval.reports.page import Page, Prose, Quote, Section, Table
from probeval.reports.pages import reproduction
from probeval.reports.pictures import draw
from probeval.simulation import Bins, Point, Simulation, Trajectory, TrajectoryStep

__all__ = ["read_simulation", "report_simulation"]

SHOWN = ("judged", "confidence", "accuracy", "tau", "mae", "calibration_excess", "calibration_p", "coverage")
PICTURES = {
    "tau": "Kendall's tau with the order by full judgments; a ring marks the stop.",
    "confidence": "Stated confidence. If calibrated, it agrees with accuracy.",
    "accuracy": "Share of pairs of systems in the true order.",
}


def read_simulation(path: str | PathLike[str]) -> dict[str, Any]:
    """Read the JSON output of a simulation."""
    file = Path(path)
    try:
        document = json.loads(read_bytes(file))
        _ = [(p["policy"], p["stop"]["judged"], p["points"]) for p in document["policies"]]
    except (ValueError, KeyError, TypeError):
        raise DataError("expected the JSON output of a simulation.", path=file) from None
    if not document["policies"]:
        raise DataError("the simulation has no policy.", path=file)
    return dict(document)


def report_simulation(
    result: Simulation | Mapping[str, Any], *, title: str = "Simulation", command: str = "", seed: int | None = None
) -> Page:
    """Return the report of a simulation, or of its JSON, whose curves are coarser (checkpoints only)."""
    document = result.to_dict() if isinstance(result, Simulation) else result
    trajectories = result if isinstance(result, Simulation) else _simulation(result)
    table = _stops(document)
    first = table.sort_values(["judged", "policy"], kind="stable").iloc[0]
    lead = (
        f"{len(table)} {'trajectory' if len(table) == 1 else 'trajectories'}: {document['systems']} systems compared "
        f"by {document['metric']} on a pool of {document['pool']:,} pairs, against full judgments."
    )
    facts = {"measure": str(document["metric"]), **({} if seed is None else {"seed": str(seed)})}
    return Page(
        kind="simulation",
        title=title,
        lead=lead,
        figures=(
            (
                "fewest judgments to the stop",
                f"{first['judged']:,}",
                f"{first['policy']}, {first['share']} of the pool",
            ),
            ("accuracy there", f"{first['accuracy']:.3f}", f"stated confidence {first['confidence']:.3f}"),
            ("tau there", f"{first['tau']:.3f}", f"tau .9 lasts from {first['to tau .9']} judgments"),
        ),
        sections=(
            Section("stops", "Stopping points", (*_spread(table), Table.of(table, STOPS))),
            Section("trajectory", "Trajectories", (*_pictures(trajectories), Table.of(_points(document), POINTS))),
            Section("paper", "Summary for a paper", (Quote(_paragraph(document, table)),)),
            reproduction(facts, command),
        ),
    )


STOPS = (
    "One row per trajectory. Accuracy: share of pairs of systems in the order that full judgments give; calibrated "
    "confidence equals it on average. To tau .9: judgments from which tau stays at .9 for 100 more."
)
POINTS = (
    "At the checkpoints. Calibration excess: distance of confidence from accuracy, less that of a perfectly calibrated "
    "model, with its p. Coverage: share of systems whose 95% interval holds the true score."
)


def _label(policy: Mapping[str, Any]) -> str:
    return f"{policy['policy']}:{policy['model']}"


def _number(value: Any) -> float:
    return nan if value is None else float(value)


def _stops(document: Mapping[str, Any]) -> pd.DataFrame:
    rows = []
    for one in document["policies"]:
        stop, good = one["stop"], one["judgments_to_tau90"]
        rows.append(
            {
                "policy": _label(one),
                "seed": str(one.get("seed", "")),
                "stopped": "yes" if stop["reached"] else "no: all judged",
                "judged": int(stop["judged"]),
                "share": f"{_number(stop['fraction']):.1%}",
                **{name: _number(stop[name]) for name in ("confidence", "accuracy", "tau")},
                "to tau .9": "never" if good is None else f"{good:,}",
                "alarm": "none" if one.get("alarm") is None else f"{one['alarm']:,}",
            }
        )
    return pd.DataFrame(rows)


def _spread(table: pd.DataFrame) -> list[Prose]:
    """Return the range over seeds, if several."""
    sentences = []
    for policy, rows in table.groupby("policy", sort=False):
        if len(rows) > 1:
            judged, accuracy = rows["judged"], rows["accuracy"]
            sentences.append(
                f"{policy}: {judged.median():,.0f} judgments at the median of {len(rows)} seeds "
                f"({judged.min():,} to {judged.max():,}), accuracy {accuracy.mean():.3f} "
                f"({accuracy.min():.3f} to {accuracy.max():.3f})."
            )
    return [Prose(" ".join(sentences) or "One seed per policy: results vary with the seed.")]


def _points(document: Mapping[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "policy": _label(one),
                "seed": str(one.get("seed", "")),
                **{n.replace("_", " "): int(p[n]) if n == "judged" else _number(p[n]) for n in SHOWN},
            }
            for one in document["policies"]
            for p in one["points"]
        ]
    )


def _pictures(simulation: Simulation) -> list[Any]:
    names = ", ".join(dict.fromkeys(trajectory.label for trajectory in simulation.trajectories))
    found = []
    for figure, caption in PICTURES.items():
        axes = plot_trajectory(simulation, figure)
        axes.legend(frameon=False, fontsize=8, loc="lower right")
        found.append(
            draw(axes, key=f"trajectory-{figure}", alt=f"{figure} against judgments for {names}", caption=caption)
        )
    return found


def _paragraph(document: Mapping[str, Any], table: pd.DataFrame) -> str:
    outcomes = "; ".join(
        f"{row['policy']} {'stopped after' if row['stopped'] == 'yes' else 'did not stop within'} {row['judged']:,} "
        f"judgments ({row['share']}), with an accuracy of {row['accuracy']:.3f} at a stated confidence of "
        f"{row['confidence']:.3f} (tau {row['tau']:.3f})"
        for _, row in table.iterrows()
    )
    return (
        f"We simulated the judging of a finished campaign ({document['systems']} systems, {document['pool']:,} pairs, "
        f"{document['metric']}), with its full judgments as assessor and truth: {outcomes}."
    )


def _simulation(document: Mapping[str, Any]) -> Simulation:
    """Return the trajectories of a document, with its checkpoints as steps."""
    none = Bins((), (), ())
    trajectories = []
    for one in document["policies"]:
        points = tuple(
            Point(judged=int(p["judged"]), bins=none, **{k: _number(v) for k, v in p.items() if k != "judged"})
            for p in one["points"]
        )
        stop = one["stop"]
        at = TrajectoryStep(int(stop["judged"]), *(_number(stop[name]) for name in ("confidence", "accuracy", "tau")))
        steps = {p.judged: TrajectoryStep(p.judged, p.confidence, p.accuracy, p.tau) for p in points} | {at.judged: at}
        trajectories.append(
            Trajectory(
                policy=one["policy"],
                model=one["model"],
                metric=document["metric"],
                seed=int(one.get("seed", 0)),
                pool=int(document["pool"]),
                offered=int(document["pool"]),
                systems=int(document["systems"]),
                steps=tuple(steps[n] for n in sorted(steps)),
                points=points,
                rules=(),
                stop=at if stop["reached"] else None,
                reasons=tuple(stop.get("reasons", ())),
                order=(),
                alarm=one.get("alarm"),
            )
        )
    return Simulation(tuple(trajectories))
