"""Batches: once a pair is chosen, pairs that carry the same information are worth less."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probeval.arrays import Bools, Floats, Ints
from probeval.errors import SelectionError
from probeval.selection.context import SelectionContext
from probeval.selection.goals import Goal
from probeval.selection.policies import JointValue, Policy, PolicyFunction, as_policy
from probeval.streams import Purpose, stream
from probeval.ties import TIE

__all__ = ["SHORT_LIST", "check_exploration", "choose", "in_turn"]

SHORT_LIST = 300  # pairs among which a batch is chosen
DIGITS = 10  # values that agree to this many digits are tied


def choose(
    context: SelectionContext,
    policy: str | Policy | PolicyFunction,
    n: int,
    *,
    goal: Goal,
    offered: Bools,
    explore: float = 0.0,
) -> Ints:
    """Return the next ``n`` pairs to judge, best first, or all that are left. Ties go to the first in the pool.

    Parameters
    ----------
    context
        The current state: lists, judgments, prediction and scores.
    policy, goal
        The policy and the goal of the judging.
    n
        The number of pairs.
    offered
        The pairs that may be chosen, shape (pair,); judged ones never are.
    explore
        The share of judgments spent on exploration: random pairs from the queries with the smallest judged share.
        Without it, a model-based policy never checks pairs that the model is wrongly sure of.
    """
    if n < 0:
        raise SelectionError(f"The number of pairs must not be negative, got {n}.")
    check_exploration(explore)
    policy = as_policy(policy)
    open_ = offered & ~context.judged
    n = min(n, int(open_.sum()))
    if n == 0:
        return np.empty(0, dtype=np.int64)
    start = len(context.judgments)
    # Judgment j explores when the running share passes a whole number: evenly spread for any batch size.
    exploring = np.floor((start + 1 + np.arange(n)) * explore) > np.floor((start + np.arange(n)) * explore)
    if policy.at_random:
        exploring[:] = False
    explored = _explore(context, open_, int(exploring.sum()))
    open_[explored] = False
    wanted = n - len(explored)
    if wanted == 0:
        chosen = np.empty(0, dtype=np.int64)
    elif policy.joint_value is None or not goal.about_scores:
        chosen = _best(policy(context, goal), open_, wanted)
    else:
        chosen = _together(policy, policy.joint_value, context, goal, open_, wanted)
    out = np.empty(n, dtype=np.int64)
    out[exploring], out[~exploring] = explored, chosen
    return out


def check_exploration(explore: float) -> None:
    """Raise an error unless the share of exploration is between 0 and 1."""
    if not 0 <= explore <= 1:
        raise SelectionError(f"The share of exploration must be between 0 and 1, got {explore:g}.")


def _best(value: Floats, open_: Bools, n: int) -> Ints:
    """Return the ``n`` open pairs with the highest values, ties in the order of the pool."""
    pairs = np.flatnonzero(open_)
    return np.asarray(pairs[np.argsort(-_rounded(value[pairs]), kind="stable")[:n]])


def _rounded(value: Floats) -> Floats:
    """Return values without floating-point noise, so that equal values compare equal."""
    finite = np.abs(value[np.isfinite(value)])
    top = float(finite.max(initial=0.0))
    return np.round(value / top, DIGITS) if top > 0 else value


def _together(
    policy: Policy, joint_value: JointValue, context: SelectionContext, goal: Goal, open_: Bools, n: int
) -> Ints:
    """Choose a batch jointly among the pairs with the highest values of their own."""
    first = policy(context, goal)
    if n == 1:
        return _best(first, open_, 1)
    pairs = np.sort(_best(first, open_, max(SHORT_LIST, 10 * n)))
    at = in_turn(
        context.covariance[pairs],
        context.gain_variance[pairs],
        context.dependence.between(pairs),
        n,
        lambda covariance, variance: joint_value(covariance, variance, context, goal),
    )
    return np.asarray(pairs[at])


def in_turn(
    covariance: Floats, variance: Floats, between: Floats, n: int, value: Callable[[Floats, Floats], Floats]
) -> Ints:
    r"""Repeatedly take the pair of the highest value, and condition the others on it.

    With :math:`x` taken, :math:`g_d` falls by :math:`\text{Cov}(G_d, G_x)\, g_x / \text{Var}[G_x]` and
    :math:`\text{Var}[G_d]` by :math:`\text{Cov}(G_d, G_x)^2 / \text{Var}[G_x]`.

    Parameters
    ----------
    covariance, variance, between
        Of each pair's gain: its covariance with the scores, its variance, and its covariance with other pairs' gains;
        shapes (pair, system), (pair,) and (pair, pair).
    n
        The number of pairs to take.
    value
        The value of pairs, given covariance and variance.
    """
    free = np.ones(len(variance), dtype=bool)
    out = []
    for _ in range(min(n, len(variance))):
        at = int(_best(value(covariance, variance), free, 1)[0])
        free[at] = False
        out.append(at)
        if variance[at] <= TIE:
            continue
        slope = np.where(free, between[:, at] / variance[at], 0.0)
        covariance = covariance - np.outer(slope, covariance[at])
        variance = np.maximum(variance - slope * between[:, at], 0.0)
        between = between - np.outer(slope, between[at])
    return np.array(out, dtype=np.int64)


def _explore(context: SelectionContext, open_: Bools, n: int) -> Ints:
    """Return random pairs from the queries with the smallest judged share."""
    if n == 0:
        return np.empty(0, dtype=np.int64)
    query = context.runs.pool.query
    n_queries = len(context.runs.queries)
    size = np.maximum(np.bincount(query, minlength=n_queries), 1)
    done = np.bincount(query, weights=context.judged.astype(float), minlength=n_queries)
    key = stream(context.seed, Purpose.ORDER).random(len(query))
    out: list[int] = []
    pairs = np.flatnonzero(open_)
    for _ in range(n):
        share = (done / size)[query[pairs]]
        at = int(np.lexsort((key[pairs], np.round(share, 9)))[0])
        out.append(int(pairs[at]))
        done[query[pairs[at]]] += 1
        pairs = np.delete(pairs, at)
    return np.array(out, dtype=np.int64)
