"""Reports of simulations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from os import PathLike
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pandas as pd

from probeval.data.files import read_bytes
from probeval.display import Table
from probeval.errors import DataError
from probeval.plots import plot_trajectory
from probeval.reports.page import Page, Part, Prose, Quote, Section
from probeval.reports.pages import reproduction
from probeval.reports.pictures import draw
from probeval.scores.scores import INDEPENDENT
from probeval.simulation import Bins, Point, ReplaySetup, Simulation, Trajectory, TrajectoryStep
from probeval.simulation.trajectory import LASTS

__all__ = ["read_simulation", "report_simulation"]

CHANCE = 0.05  # the least p of an accuracy that is below the stated confidence by no more than chance
FIGURE_COLUMNS = (
    "judged", "confidence", "accuracy", "tau", "tau_top15", "mae", "calibration_excess", "calibration_p", "coverage",
)  # fmt: skip
PICTURES = {
    "tau": "Kendall's tau with the order by full judgments.",
    "confidence": "Stated confidence. If calibrated, it agrees with accuracy on average.",
    "accuracy": "Share of pairs of systems in the order that full judgments give.",
}
STOPS = (
    "One row per trajectory, at its stop, or at its end if it did not stop. Accuracy: share of pairs of systems in the "
    "order that full judgments give; calibrated confidence equals it on average. p: probability that a perfectly "
    "calibrated model is right about no more pairs. To tau .9: judgments from which tau stays at .9 or more for 100 "
    "more, or to the last pair; - if it did not before the trajectory ended. Alarm: judgments at which the audit found "
    "that they contradict the model."
)
POINTS = (
    "At the checkpoints. Tau top15: tau among the 15 truly best systems. Calibration excess: distance of confidence "
    "from accuracy, minus that of a perfectly calibrated model, with its p. Coverage: share of systems whose 95% "
    "interval holds the true score."
)


def read_simulation(path: str | PathLike[str]) -> dict[str, Any]:
    """Read the JSON output of a simulation."""
    file = Path(path)
    try:
        document = json.loads(read_bytes(file))
        _ = [document[name] for name in ("metric", "systems", "pool", "offered", "stopping", "until", "noise")]
        _ = [(p["policy"], p["ending"], p["independent"], p["stop"]["accuracy_p"]) for p in document["policies"]]
        _ = [point["tau_ap"] for p in document["policies"] for point in p["points"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DataError(
            "expected the JSON output of probeval simulate, of this version of probeval.", path=file
        ) from None
    if not document["policies"]:
        raise DataError("the simulation has no policy.", path=file)
    return dict(document)


def report_simulation(
    result: Simulation | Mapping[str, Any], *, title: str = "Simulation", command: str = "", seed: int | None = None
) -> Page:
    """Return the report of a simulation, or of its JSON, whose curves are coarser (checkpoints only).

    The headline is the policy that stopped with every seed, with the fewest judgments, among those whose accuracy at
    the stop is not below the stated confidence by more than chance (docs/theory/calibration.md#accuracy-p).
    """
    document = result.to_dict() if isinstance(result, Simulation) else result
    trajectories = result if isinstance(result, Simulation) else _simulation(result)
    outcomes = _outcomes(document)
    headline, figures = _headline(document, outcomes)
    facts = {
        "measure": str(document["metric"]),
        "stopping rule": str(document["stopping"]) or "none",
        "trajectories end at": f"{document['until']:.0%} of the pool",
        **({"wrong grades": f"{document['noise']:.0%}"} if document["noise"] else {}),
        **({} if seed is None else {"seed": str(seed)}),
    }
    pictures = _pictures(trajectories, coarse=not isinstance(result, Simulation))
    return Page(
        kind="simulation",
        title=title,
        lead=f"{_setting(document)} {headline}",
        figures=figures,
        sections=(
            Section("stops", "Stopping points", (*_spread(outcomes), Table(_stops(document), STOPS))),
            Section("trajectory", "Trajectories", (*pictures, Table(_points(document), POINTS))),
            Section("paper", "Summary for a paper", (Quote(_paragraph(document, outcomes)),)),
            reproduction(facts, command),
        ),
    )


@dataclass(frozen=True)
class PolicyOutcome:
    """The trajectories of one policy, one per seed.

    Parameters
    ----------
    name
        The policy and its model.
    runs
        The trajectories, as plain data.
    pool
        The number of pairs.
    """

    name: str
    runs: tuple[Mapping[str, Any], ...]
    pool: int

    @property
    def stopped(self) -> tuple[Mapping[str, Any], ...]:
        """The trajectories that reached the stopping rule."""
        return tuple(run for run in self.runs if run["ending"] == "stopped")

    @property
    def always(self) -> bool:
        """Whether every trajectory reached the stopping rule."""
        return len(self.stopped) == len(self.runs)

    @property
    def judged(self) -> float:
        """The judgments at the stop, or at the end: the median over seeds."""
        return float(median(run["stop"]["judged"] for run in self.runs))

    def mean(self, figure: str) -> float:
        """The mean of a figure over seeds, at the stop or at the end."""
        return fmean(_number(run["stop"][figure]) for run in self.runs)

    @property
    def p(self) -> float:
        """The p of the accuracy at the stops: for several seeds twice their median, whatever their dependence."""
        each = [_number(run["stop"]["accuracy_p"]) for run in self.stopped]
        return each[0] if len(each) == 1 else min(1.0, 2 * median(each))

    @property
    def as_stated(self) -> bool:
        """Whether the accuracy is not below the stated confidence by more than chance; true if it has no p."""
        return not self.p < CHANCE

    @property
    def share(self) -> str:
        """The judgments as a share of the pool."""
        return f"{self.judged / self.pool:.1%} of the pool"

    @property
    def promise(self) -> str:
        """The accuracy at the stop against the stated confidence, with its p."""
        p = "p < 0.001" if self.p < 0.001 else f"p = {_three(self.p)}"
        return (
            f"accuracy {_three(self.mean('accuracy'))} at a stated confidence of {_three(self.mean('confidence'))}, {p}"
        )

    def sentences(self) -> list[str]:
        """Return how the trajectories ended: those that stopped, and the others by their ending."""
        found = []
        for ending, how in ENDINGS.items():
            runs = [run for run in self.runs if run["ending"] == ending]
            if not runs:
                continue
            n, stops = len(runs), [run["stop"] for run in runs]
            judged = [stop["judged"] for stop in stops]
            many = f"{judged[0]:,} judgments"
            if n > 1:
                many = f"a median of {_count(median(judged))} judgments ({min(judged):,} to {max(judged):,})"
            accuracy, stated, tau = (
                fmean(_number(s[name]) for s in stops) for name in ("accuracy", "confidence", "tau")
            )
            found.append(
                f"{self.name}{f', {n} of {len(self.runs)} seeds,' if len(self.runs) > 1 else ''} {how} {many}, "
                f"{median(judged) / self.pool:.1%} of the pool, with {'a mean' if n > 1 else 'an'} accuracy of "
                f"{_three(accuracy)} at a stated confidence of {_three(stated)} (tau {_three(tau)})"
            )
        return found


ENDINGS = {
    "stopped": "stopped after",
    "until": "ended without a stop after",
    "exhausted": "ended without a stop, every pair judged that could be, after",
}


def _outcomes(document: Mapping[str, Any]) -> tuple[PolicyOutcome, ...]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for run in document["policies"]:
        groups.setdefault(_label(run), []).append(run)
    return tuple(PolicyOutcome(name, tuple(runs), int(document["pool"])) for name, runs in groups.items())


def _headline(
    document: Mapping[str, Any], outcomes: Sequence[PolicyOutcome]
) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """Return the main result in a few sentences, and the key figures."""
    rule = document["stopping"]
    always = [o for o in outcomes if o.always]
    honest = [o for o in always if o.as_stated]
    if honest:
        first, *alike = _fewest(honest)
        text = _winner(rule, outcomes, first, alike)
        seeds = f", median of {len(first.runs)} seeds" if len(first.runs) > 1 else ""
        tied = f"; as many by {', '.join(o.name for o in alike)}" if alike else ""
        figure = ("fewest judgments to the stop", _count(first.judged), f"{first.name}, {first.share}{seeds}{tied}")
    elif always:
        first = _fewest(always)[0]
        listed = "; ".join(f"{o.name} needed {_count(o.judged)} judgments, {o.promise}" for o in always)
        text = f"No policy that reached the stopping rule {rule} is as accurate as it states: {listed}."
        figure = (
            "as accurate as stated",
            "none",
            f"of {len(always)} {_many(always, 'policy', 'policies')} that stopped",
        )
    else:
        first = max(outcomes, key=lambda o: o.mean("accuracy"))
        n, whole = sum(len(o.stopped) for o in outcomes), len(document["policies"])
        seeds = " with every seed" if whole > len(outcomes) else ""
        text = f"No policy reached the stopping rule {rule}{seeds}." if rule else "There was no stopping rule."
        figure = (
            "reached the stopping rule",
            f"{n} of {whole} trajectories" if n else "none",
            rule or "no rule was given",
        )
    note = f"{first.name} after {_count(first.judged)} judgments; stated confidence {_three(first.mean('confidence'))}"
    accuracy = ("accuracy", _three(first.mean("accuracy")), note)
    return text, (figure, accuracy, ("tau", _three(first.mean("tau")), _lasting(first)))


def _fewest(outcomes: Sequence[PolicyOutcome]) -> list[PolicyOutcome]:
    """Return the policies with the fewest judgments, the most accurate first."""
    least = min(o.judged for o in outcomes)
    return sorted((o for o in outcomes if o.judged == least), key=lambda o: -o.mean("accuracy"))


def _winner(rule: str, outcomes: Sequence[PolicyOutcome], first: PolicyOutcome, alike: Sequence[PolicyOutcome]) -> str:
    """Return the policy with the fewest judgments, and the others that bear on it."""
    many = f"{_count(first.judged)} judgments ({first.share})"
    if len(outcomes) == 1:
        return f"{first.name} reached the stopping rule {rule} after {many}, as accurate as it states: {first.promise}."
    text = f"Of the policies as accurate as they state, {first.name} reached the stopping rule {rule} with the fewest "
    text += f"judgments: {_count(first.judged)} ({first.share}), {first.promise}."
    text += f" As many were needed by {', '.join(o.name for o in alike)}." if alike else ""
    for o in outcomes:
        if not o.always:
            text += f" {o.name} did not reach it{' with every seed' if o.stopped else ''}."
        elif not o.as_stated and o.judged <= first.judged:
            text += f" {o.name} needed {_count(o.judged)}, but is less accurate than it states: {o.promise}."
    return text


def _lasting(outcome: PolicyOutcome) -> str:
    """Return from which judgment on tau stays at .9 or more."""
    runs = [run for run in outcome.runs if run["judgments_to_tau90"] is not None]
    if not runs:
        most = max(run["judged"] for run in outcome.runs)
        return f"did not stay at .9 for {LASTS} judgments in the {most:,} of the trajectory"
    first = _count(median(run["judgments_to_tau90"] for run in runs))
    how = f"stays at .9 for {LASTS} judgments, or to the last, from"
    if len(outcome.runs) == 1:
        return f"{how} {first} on"
    seeds = f" with {len(runs)} of {len(outcome.runs)} seeds" if len(runs) < len(outcome.runs) else ""
    return f"{how} a median of {first} on{seeds}"


def _many(things: Sequence[Any], one: str, several: str) -> str:
    return one if len(things) == 1 else several


def _three(value: float) -> str:
    """Return three decimals; a dash if it is not a number, as the accuracy of a single system."""
    return "-" if isnan(value) else f"{value:.3f}"


def _count(n: float) -> str:
    """Return a median of counts, with its half if it has one."""
    return f"{n:,.0f}" if n == int(n) else f"{n:,.1f}"


def _label(policy: Mapping[str, Any]) -> str:
    return f"{policy['policy']}:{policy['model']}"


def _number(value: Any) -> float:
    return nan if value is None else float(value)


def _setting(document: Mapping[str, Any]) -> str:
    runs = document["policies"]
    return (
        f"{len(runs)} {_many(runs, 'trajectory', 'trajectories')}: {document['systems']} systems compared by "
        f"{document['metric']} on a pool of {document['pool']:,} pairs, against full judgments."
    )


def _stops(document: Mapping[str, Any]) -> pd.DataFrame:
    rows = []
    for one in document["policies"]:
        stop, good = one["stop"], one["judgments_to_tau90"]
        share = f"{_number(stop['fraction']):.1%}"
        rows.append(
            {
                "policy": f"{_label(one)}; {INDEPENDENT}" if one["independent"] else _label(one),
                "seed": str(one["seed"]),
                "ending": {"until": f"ended at {share}", "exhausted": "all judged"}.get(one["ending"], "stopped"),
                "judged": int(stop["judged"]),
                "share": share,
                **{name: _number(stop[name]) for name in ("confidence", "accuracy")},
                "p": _number(stop["accuracy_p"]),
                "tau": _number(stop["tau"]),
                "to tau .9": "-" if good is None else f"{good:,}",
                "alarm": "-" if one["alarm"] is None else f"{one['alarm']:,}",
            }
        )
    return pd.DataFrame(rows)


def _spread(outcomes: Sequence[PolicyOutcome]) -> list[Prose]:
    """Return how the trajectories of each policy ended, if there are several."""
    if all(len(outcome.runs) == 1 for outcome in outcomes):
        return [Prose("One seed per policy: results vary with the seed.")]
    return [Prose(f"{'. '.join(outcome.sentences())}.") for outcome in outcomes]


def _points(document: Mapping[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "policy": _label(one),
                "seed": str(one["seed"]),
                **{n.replace("_", " "): int(p[n]) if n == "judged" else _number(p[n]) for n in FIGURE_COLUMNS},
            }
            for one in document["policies"]
            for p in one["points"]
        ]
    )


def _pictures(simulation: Simulation, *, coarse: bool) -> list[Part]:
    trajectories = simulation.trajectories
    labels = list(dict.fromkeys(trajectory.label for trajectory in trajectories))
    more = " Rings mark the stops." if any(t.ending == "stopped" for t in trajectories) else ""
    more += " Lines are medians over seeds, shades their range." if len(trajectories) > len(labels) else ""
    more += " Lines join the checkpoints and the stop." if coarse else ""
    return [
        draw(
            plot_trajectory(simulation, figure),
            key=f"trajectory-{figure}",
            alt=f"{figure} against judgments for {', '.join(labels)}",
            caption=f"{caption}{more}",
        )
        for figure, caption in PICTURES.items()
    ]


def _paragraph(document: Mapping[str, Any], outcomes: Sequence[PolicyOutcome]) -> str:
    assessor = "with its full judgments as assessor and truth"
    if document["noise"]:
        assessor = (
            f"with its full judgments as truth, and as an assessor whose grade is wrong with probability "
            f"{document['noise']:g}"
        )
    rule = f"the stopping rule {document['stopping']}" if document["stopping"] else "no stopping rule"
    ended = "; ".join(sentence for outcome in outcomes for sentence in outcome.sentences())
    return (
        f"We simulated the judging of a finished campaign ({document['systems']} systems, {document['pool']:,} pairs, "
        f"{document['metric']}), {assessor}, and {rule}: {ended}."
    )


def _simulation(document: Mapping[str, Any]) -> Simulation:
    """Return the trajectories of a document, with its checkpoints as steps."""
    setup = ReplaySetup(
        metric=document["metric"],
        pool=int(document["pool"]),
        offered=int(document["offered"]),
        systems=int(document["systems"]),
        stopping=document["stopping"],
        until=float(document["until"]),
        noise=float(document["noise"]),
    )
    none = Bins((), (), ())
    trajectories = []
    for one in document["policies"]:
        points = tuple(
            Point(judged=int(p["judged"]), bins=none, **{k: _number(v) for k, v in p.items() if k != "judged"})
            for p in one["points"]
        )
        stop = one["stop"]
        confidence, accuracy, tau = (_number(stop[name]) for name in ("confidence", "accuracy", "tau"))
        at = TrajectoryStep(int(stop["judged"]), confidence, accuracy, tau)
        steps = {p.judged: TrajectoryStep(p.judged, p.confidence, p.accuracy, p.tau) for p in points} | {at.judged: at}
        trajectories.append(
            Trajectory(
                setup=setup,
                policy=one["policy"],
                model=one["model"],
                seed=int(one["seed"]),
                steps=tuple(steps[n] for n in sorted(steps)),
                points=points,
                rules=(),
                stop=at if one["ending"] == "stopped" else None,
                reasons=tuple(stop["reasons"]),
                order=(),
                alarm=one["alarm"],
                independent=one["independent"],
            )
        )
    return Simulation(tuple(trajectories))
