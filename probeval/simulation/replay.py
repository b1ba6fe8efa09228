"""Replay of a collection by a policy, with its full judgments as the assessor."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from probeval.arrays import Bools, Floats, Ints
from probeval.data.judgments import Judgments
from probeval.display import Record
from probeval.errors import ProbevalWarning
from probeval.relevance.models.base import Predicts
from probeval.results import UNSET
from probeval.selection import (
    AnswerPrices,
    Batch,
    Judging,
    JudgingState,
    Pick,
    Policy,
    PolicyFunction,
    audit,
    foresee,
    model_kind,
    stated_sd,
)
from probeval.selection.policies import as_policy
from probeval.simulation.heldout import HeldOut
from probeval.simulation.machines import SimulatedMachines, find_allocation
from probeval.simulation.points import Point, measure_point, right_verdicts, significant_pairs, tau_and_accuracy
from probeval.simulation.protocol import SimulationProtocol, check_noise
from probeval.simulation.significance_rules import RuleDecisions, RuleSettings, apply_rules
from probeval.simulation.team import SimulatedTeam
from probeval.simulation.trajectory import LASTS, ReplaySetup, Trajectory, TrajectoryStep, lasting_cost
from probeval.streams import Purpose, stream
from probeval.ties import TIE

__all__ = ["SimulatedAssessor", "replay"]

NULL = 1000  # truths drawn for the null distribution of calibration


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedAssessor(Record):
    """An assessor that gives the grades of the full judgments, with or without errors.

    Parameters
    ----------
    grades
        The grade given to each pair of the pool, shape (pair,).
    """

    grades: Floats

    @classmethod
    def of(cls, held: HeldOut, *, noise: float = 0.0, rng: np.random.Generator | None = None) -> SimulatedAssessor:
        """Build from the true grades; with probability ``noise`` a grade is replaced by another of the scale."""
        check_noise(noise)
        codes = held.codes.astype(np.int64)
        if noise:
            rng = np.random.default_rng(0) if rng is None else rng
            slips = rng.random(len(codes)) < noise
            other = rng.integers(1, len(held.scale), size=len(codes))
            codes = np.where(slips, (codes + other) % len(held.scale), codes)
        return cls(held.scale.judged_values[codes])

    def judge(self, held: HeldOut, pairs: Sequence[int] | Ints) -> Judgments:
        """Return the judgments of these pairs, in this order."""
        at = np.asarray(pairs, dtype=np.int64)
        return Judgments.coded(held.pool, at, self.grades[at])


def replay(
    held: HeldOut,
    model: Predicts,
    protocol: SimulationProtocol,
    *,
    policy: str | Policy | PolicyFunction,
    name: str,
    method: str | None = None,
    allocation: str = "gain",
    seed: int = 0,
) -> Trajectory:
    """Judge a collection again, batch by batch, and compare the estimates with the truth.

    The replay ends 100 judgments past the stop, if all checkpoints are passed and tau has stayed at .9 for 100
    judgments; otherwise when the share ``protocol.until`` of the pool, or every pair that can be, is judged. With
    prices, the 100 judgments are what they cost, checkpoints are not waited for, and it also ends when nothing is left
    to ask for.

    Parameters
    ----------
    held
        The collection, with known truth, depth and scale.
    model, name
        The relevance model and its name.
    protocol
        The settings; its policies, models and seeds are ignored here (see :func:`simulate`).
    policy, seed
        The policy, and the seed: the same seed gives the same trajectory.
    method
        The method of scores, as in :func:`probeval.scores.evaluate`.
    allocation
        With prices, the rule that shares the cost between people and machines.
    """
    stop, chooser = protocol.stop, as_policy(policy)
    pool = len(held.pool)
    targets = sorted(min(ceil(share * pool - 1e-9), len(held.known)) for share in protocol.checkpoints)
    most = min(ceil(protocol.until * pool - 1e-9), len(held.known))
    offered = np.zeros(pool, dtype=bool)
    offered[held.known] = True
    assessor = SimulatedAssessor.of(held, noise=protocol.noise, rng=stream(seed, held.collection.name, Purpose.SLIPS))
    machines = None if protocol.prices is None else SimulatedMachines.of(held, protocol.prices)
    allocate = find_allocation(allocation)
    unjudged = replace(held.collection, judgments=None)
    judging = Judging.of(
        unjudged if machines is None else replace(unjudged, labels=machines.shown),
        model,
        protocol.metric,
        policy=chooser,
        goal=protocol.goal,
        scale=held.scale,
        depth=held.depth,
        explore=protocol.explore,
        offered=offered,
        refresh=protocol.refresh,
        method=method,
        family=protocol.family,
        draws=protocol.draws,
        rope=protocol.rope,
        seed=seed,
    )
    team = SimulatedTeam(protocol.assessors, protocol.topics, protocol.stay, judging.pool.sizes)
    truth = held.truth(judging.metric)
    true = truth.mean(axis=1)
    significant = significant_pairs(truth, protocol.test)
    judged: list[int] = []
    judged_by: list[int] = []
    chosen: list[tuple[int, Pick]] = []
    steps: list[TrajectoryStep] = []
    points: list[Point] = []
    decisions: list[RuleDecisions] = []
    stopped: tuple[TrajectoryStep, tuple[str, ...]] | None = None
    at_stop: Point | None = None
    exhausted = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProbevalWarning)  # readers of files have already warned
        state = judging.begin()
        if protocol.pilot:
            shuffled = stream(seed, held.collection.name, Purpose.PILOT).permutation(held.known)
            judged += shuffled[: ceil(protocol.pilot * pool - 1e-9)].tolist()
            state = state.after(assessor.judge(held, judged))
        independent = state.scores.independent
        while True:
            step = _step(state, true, significant, len(judged), machines)
            steps.append(step)
            while targets and len(judged) >= targets[0]:
                points.append(_point(state, true, truth, seed, protocol.test))
                decisions.append(apply_rules(state, truth, settings=protocol.rules, test=protocol.test))
                targets.pop(0)
            if stopped is None:
                check = stop.check(state)
                if check.reached:
                    stopped = (step, check.reasons)
                    at_stop = _point(state, true, truth, seed, protocol.test)
            if len(judged) >= most and not targets:
                break
            if stopped is not None and _is_past(steps, stopped[0], protocol.prices) and (machines or not targets):
                break
            most_now = protocol.batch_size(len(judged), pool)
            size = _size(len(judged), most_now, targets, most, None if stopped else stop.left(len(judged)))
            if machines is None:
                batch = team.take(state, size)
            else:
                request = allocate(state, machines, size)
                if request is not None and not request.is_for_people and len(request.batch):
                    machines.buy(request.observer, request.batch.pairs)
                    state = state.labelled(machines.shown)
                    continue
                batch = [] if request is None else _by_one(state, request.batch)
            if not batch:
                exhausted = True
                break
            chosen += [(pair, pick) for _, pair, pick in batch]
            judged += [pair for _, pair, _ in batch]
            judged_by += [who for who, _, _ in batch]
            state = state.after(assessor.judge(held, judged))
        audited = audit(state, chosen)
    before = len(judged) - len(chosen)
    return Trajectory(
        setup=ReplaySetup(
            metric=str(judging.metric),
            pool=pool,
            offered=len(held.known),
            systems=len(judging.runs.systems),
            stopping=str(stop),
            until=protocol.until,
            noise=protocol.noise,
            test=protocol.test,
            rule_settings=str(protocol.rules or RuleSettings()),
            topics=protocol.topics,
            stay=protocol.stay,
            prices=UNSET if protocol.prices is None else str(protocol.prices),
            assessors=protocol.assessors,
            shows_rules=protocol.rules is not None,
            collection=held.collection.name,
            checkpoints=tuple(sorted(protocol.checkpoints)),
        ),
        policy=chooser.name,
        model=name,
        seed=seed,
        steps=tuple(steps),
        points=tuple(points),
        rules=tuple(decisions),
        stop=None if stopped is None else stopped[0],
        at_stop=at_stop,
        reasons=() if stopped is None else stopped[1],
        order=tuple(judged),
        queries=tuple(judging.pool.query[judged].tolist()),
        judged_by=(*[None] * before, *judged_by),
        is_exhausted=exhausted,
        allocation=UNSET if machines is None else allocation,
        probabilities=(*[None] * before, *(pick.probability for _, pick in chosen)),
        audit=audited,
        alarm=None if audited.alarm is None else before + audited.alarm,
        kind=model_kind(model),
        independent=independent,
    )


def _step(
    state: JudgingState, true: Floats, significant: Bools, judged: int, machines: SimulatedMachines | None
) -> TrajectoryStep:
    tau, _ = tau_and_accuracy(state.scores.mean, true)
    right = right_verdicts(state.ranking, true)
    accuracy, among = (float(x.mean()) if len(x) else float("nan") for x in (right, right[significant]))
    mae = float(np.abs(state.scores.mean - true).mean())
    labels = {} if machines is None else machines.count
    cost = float(judged) if machines is None else machines.prices.cost(judged, labels)
    sd, bought = stated_sd(state.scores), sum(labels.values())
    return TrajectoryStep(judged, state.ranking.confidence, accuracy, tau, among, sd, mae, bought, cost)


def _is_past(steps: Sequence[TrajectoryStep], stop: TrajectoryStep, prices: AnswerPrices | None) -> bool:
    """Whether the stop is past by the cost of 100 judgments, and tau has stayed at .9 for as long."""
    price = 1.0 if prices is None else prices.person
    return steps[-1].cost >= stop.cost + LASTS * price - TIE and lasting_cost(steps, price) is not None


def _by_one(state: JudgingState, batch: Batch) -> list[tuple[int, int, Pick]]:
    """Return the pairs of a batch as the work of one assessor, with their predictions."""
    return [(0, pair, pick) for pair, pick in zip(batch.pairs.tolist(), foresee(state, batch), strict=True)]


def _point(state: JudgingState, true: Floats, by_query: Floats, seed: int, test: str) -> Point:
    drawn = state.scores.joint.draws
    if drawn is None:
        drawn = state.scores.sample(NULL, stream(seed, len(state.judgments), Purpose.NULL))
    return measure_point(state.scores, true, draws=drawn, query_truth=by_query, rope=state.judging.rope, test=test)


def _size(judged: int, batch: int, targets: Sequence[int], most: int, left: int | None) -> int:
    """Return the size of the next batch, cut to meet checkpoints and budgets exactly."""
    limits = [batch, *(t - judged for t in targets[:1]), *([most - judged] if most > judged else [])]
    if left is not None and left > 0:
        limits.append(left)
    return max(1, min(limits))
