"""Several pairs at once: the second of two that say the same is worth less once the first is taken."""

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
DIGITS = 10  # values that agree to so many digits are tied


def choose(
    context: SelectionContext,
    policy: str | Policy | PolicyFunction,
    n: int,
    *,
    goal: Goal,
    offered: Bools,
    explore: float = 0.0,
) -> Ints:
    """The next ``n`` pairs to judge, the best first; fewer where fewer are left. Ties go to the first in the pool.

    Parameters
    ----------
    context
        What is known.
    policy, goal
        How to choose, and to what end.
    n
        How many.
    offered
        The pairs that may be chosen, shape (pair,); judged ones never are.
    explore
        The share of judgments that are given to exploration: pairs at random, from the queries least judged so far.
        A policy that trusts its model looks only where the model says there is something to learn.
    """
    if n < 0:
        raise SelectionError(f"So many pairs cannot be chosen: {n}.")
    check_exploration(explore)
    policy = as_policy(policy)
    open_ = offered & ~context.judged
    n = min(n, int(open_.sum()))
    if n == 0:
        return np.empty(0, dtype=np.int64)
    start = len(context.judgments)
    # Judgment j explores when the running share passes a whole number: evenly spread, whatever the batches.
    exploring = np.floor((start + 1 + np.arange(n)) * explore) > np.floor((start + np.arange(n)) * explore)
    if policy.at_random:
        exploring[:] = False
    strays = _explore(context, open_, int(exploring.sum()))
    open_[strays] = False
    wanted = n - len(strays)
    if wanted == 0:
        chosen = np.empty(0, dtype=np.int64)
    elif policy.joint_value is None or not goal.about_scores:
        chosen = _best(policy(context, goal), open_, wanted)
    else:
        chosen = _together(policy, policy.joint_value, context, goal, open_, wanted)
    out = np.empty(n, dtype=np.int64)
    out[exploring], out[~exploring] = strays, chosen
    return out


def check_exploration(explore: float) -> None:
    """Refuse a share of exploration that is none."""
    if not 0 <= explore <= 1:
        raise SelectionError(f"The share of exploration is between 0 and 1, got {explore:g}.")


def _best(value: Floats, open_: Bools, n: int) -> Ints:
    """The ``n`` open pairs of the highest value, ties in the order of the pool."""
    pairs = np.flatnonzero(open_)
    return np.asarray(pairs[np.argsort(-_rounded(value[pairs]), kind="stable")[:n]])


def _rounded(value: Floats) -> Floats:
    """Values without the noise of rounding, so that ties are ties."""
    finite = np.abs(value[np.isfinite(value)])
    top = float(finite.max(initial=0.0))
    return np.round(value / top, DIGITS) if top > 0 else value


def _together(
    policy: Policy, joint_value: JointValue, context: SelectionContext, goal: Goal, open_: Bools, n: int
) -> Ints:
    """A batch chosen jointly, among the pairs that are worth most by themselves."""
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
    r"""Take the pair of the highest value, take what it would say out of the others, and again.

    With :math:`x` taken, :math:`g_d` falls by :math:`\text{Cov}(G_d, G_x)\, g_x / \text{Var}[G_x]` and
    :math:`\text{Var}[G_d]` by :math:`\text{Cov}(G_d, G_x)^2 / \text{Var}[G_x]`.

    Parameters
    ----------
    covariance, variance, between
        Of each pair's gain: with the scores, its own, and with the other pairs' gains; shapes (pair, system), (pair,)
        and (pair, pair).
    n
        How many to take.
    value
        What pairs with such covariances and variances are worth.
    """
    free = np.ones(len(variance), dtype=bool)
    out = []
    for _ in range(min(n, len(variance))):
        at = int(_best(value(covariance, variance), free, 1)[0])
        free[at] = False
        out.append(at)
        if variance[at] <= TIE:
            continue
        said = np.where(free, between[:, at] / variance[at], 0.0)
        covariance = covariance - np.outer(said, covariance[at])
        variance = np.maximum(variance - said * between[:, at], 0.0)
        between = between - np.outer(said, between[at])
    return np.array(out, dtype=np.int64)


def _explore(context: SelectionContext, open_: Bools, n: int) -> Ints:
    """Pairs at random, from the queries of which the smallest share is judged."""
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
