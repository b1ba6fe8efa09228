"""Batches: once a pair is chosen, pairs that carry the same information are worth less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from probeval.arrays import Bools, Floats, Ints, frozen
from probeval.display import Brief
from probeval.errors import SelectionError
from probeval.selection.context import SelectionContext
from probeval.selection.goals import Goal
from probeval.selection.policies import JointValue, Policy, PolicyFunction, as_policy
from probeval.streams import Purpose, stream
from probeval.ties import TIE

__all__ = ["SHORT_LIST", "UNIFORM", "Batch", "check_exploration", "choose", "draw_probability", "in_turn"]

SHORT_LIST = 300  # pairs among which a batch is chosen
DIGITS = 10  # values that agree to this many digits are tied
UNIFORM = 0.2  # share of exploration that is uniform over open pairs; the rest follows their weight in the scores


@dataclass(frozen=True, eq=False, repr=False)
class Batch(Brief):
    """Pairs to judge next, and the probability of those that were drawn at random.

    Parameters
    ----------
    pairs
        The pairs in the order of judging: the policy's best first, with draws spread evenly among them, shape (n,).
    probability
        The probability of each draw among the pairs open to it, shape (n,); NaN for pairs of the policy's choice.

    Examples
    --------
    >>> Batch(np.array([3, 5]), np.array([np.nan, 0.01])).drawn.tolist()
    [False, True]
    """

    pairs: Ints
    probability: Floats

    @property
    def drawn(self) -> Bools:
        """Whether each pair was drawn at random, shape (n,)."""
        return ~np.isnan(self.probability)

    def __len__(self) -> int:
        return len(self.pairs)


def choose(
    context: SelectionContext,
    policy: str | Policy | PolicyFunction,
    n: int,
    *,
    goal: Goal,
    offered: Bools,
    explore: float = 0.0,
) -> Batch:
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
        The share of judgments spent on exploration: pairs drawn at random (:func:`draw_probability`). Without it, a
        model-based policy never checks pairs that the model is wrongly sure of. The picks of a policy that is random
        itself are draws too, uniform over the open pairs.
    """
    if n < 0:
        raise SelectionError(f"The number of pairs must not be negative, got {n}.")
    check_exploration(explore)
    policy = as_policy(policy)
    open_ = offered & ~context.judged
    n = min(n, int(open_.sum()))
    start = len(context.judgments)
    # Judgment j explores when the running share passes a whole number: evenly spread for any batch size.
    exploring = np.floor((start + 1 + np.arange(n)) * explore) > np.floor((start + np.arange(n)) * explore)
    if policy.at_random:
        exploring[:] = False
    pairs, probability = np.empty(n, dtype=np.int64), np.full(n, np.nan)
    for at in np.flatnonzero(exploring):
        pairs[at], probability[at] = _draw(context, open_, start + int(at))
        open_[pairs[at]] = False
    wanted = n - int(exploring.sum())
    if wanted and policy.joint_value is not None and goal.about_scores:
        pairs[~exploring] = _together(policy, policy.joint_value, context, goal, open_, wanted)
    elif wanted:
        pairs[~exploring] = _best(policy(context, goal), open_, wanted)
    if policy.at_random:  # a random order is a uniform draw from the pairs still open, one after another
        probability[:] = 1 / (open_.sum() - np.arange(n))
    return Batch(frozen(pairs), frozen(probability))


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


def draw_probability(context: SelectionContext, open_: Bools) -> Floats:
    r"""Return the probability that exploration draws each pair, shape (pair,); 0 for pairs that are not open.

    .. math:: p_d = \epsilon \frac{1}{|O|} + (1 - \epsilon) \frac{\bar w_d}{\sum_{e \in O} \bar w_e}, \quad d \in O,

    with :math:`\bar w_d` the mean over systems of the pair's weight in the level, and :math:`\epsilon` = .2. The
    level's estimate varies least if pairs are drawn by their weight; the uniform part reaches all others. See
    docs/theory/judging.md#exploration.
    """
    weight = np.where(open_, context.level_weights.mean(axis=0), 0.0)
    total = weight.sum()
    uniform = open_ / max(int(open_.sum()), 1)
    return np.asarray(uniform if total <= 0 else UNIFORM * uniform + (1 - UNIFORM) * weight / total)


def _draw(context: SelectionContext, open_: Bools, number: int) -> tuple[int, float]:
    """Draw the pair of one judgment by its number; return it and its probability."""
    pairs = np.flatnonzero(open_)
    probability = draw_probability(context, open_)[pairs]
    running = np.cumsum(probability)
    # The position of a uniform number in the running sum: pairs that leave the pool move few others.
    place = stream(context.seed, number, Purpose.EXPLORATION).random() * running[-1]
    at = min(int(np.searchsorted(running, place, "right")), len(pairs) - 1)
    return int(pairs[at]), float(probability[at])
