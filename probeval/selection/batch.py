"""Batches: once a pair is chosen, pairs that carry the same information are worth less."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from probeval.arrays import Bools, Floats, Ints, frozen
from probeval.display import Record
from probeval.errors import SelectionError
from probeval.selection.context import SelectionContext
from probeval.selection.goals import Goal
from probeval.selection.labels import agreement_weight
from probeval.selection.policies import (
    JointValue,
    Policy,
    PolicyFunction,
    as_policy,
    comparison_weights,
    covariance_for,
    quadratic_value,
)
from probeval.streams import Purpose, stream
from probeval.ties import TIE

__all__ = [
    "SHORT_LIST",
    "UNIFORM",
    "Batch",
    "check_exploration",
    "choose",
    "choose_by_topic",
    "draw_pair",
    "draw_pairs",
    "draw_probability",
    "exploratory",
    "in_turn",
]

SHORT_LIST = 300  # pairs among which the next of a batch are chosen, or ten times those
STEP = 20  # pairs that are chosen from a short list before it is renewed, or a quarter of those chosen so far
SHORT_TOPIC = 30  # pairs of a query, beside those wanted, among which they are chosen
DIGITS = 10  # values that agree to this many digits are tied
FAR = 0.5  # share of draws by topic from all open pairs; the rest is from topics that assessors judge now
EXACT = 32  # pairs taken between exact computations of all values, which are otherwise carried along
UNIFORM = 0.2  # share of draws for the level that is uniform over open pairs; the rest follows their weight in it
FROM_SIDES = 0.8  # share of draws for the difference between two sides, if the goal has them; the rest is for the level


@dataclass(frozen=True, eq=False, repr=False)
class Batch(Record):
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
        The share of judgments spent on exploration: pairs drawn at random, from both sides if the goal has two
        (:func:`draw_probability`). Without it, a model-based policy never checks pairs that the model is wrongly sure
        of. The picks of a policy that is random itself are draws too, uniform over the open pairs.
    """
    if n < 0:
        raise SelectionError(f"The number of pairs must not be negative, got {n}.")
    check_exploration(explore)
    policy = as_policy(policy)
    open_ = offered & ~context.judged
    n = min(n, int(open_.sum()))
    at, drawn = draw_pairs(context, goal, n, offered=open_, explore=0.0 if policy.at_random else explore)
    pairs, probability = np.empty(n, dtype=np.int64), np.full(n, np.nan)
    pairs[at], probability[at] = drawn.pairs, drawn.probability
    open_[drawn.pairs] = False
    exploring = np.isin(np.arange(n), at)
    wanted = n - len(at)
    if wanted and policy.joint_value is not None and goal.kind != "relevant":
        pairs[~exploring] = _together(policy, policy.joint_value, context, goal, open_, wanted)
    elif wanted:
        pairs[~exploring] = _best(policy(context, goal), open_, wanted)
    if policy.at_random:  # a random order is a uniform draw from the pairs still open, one after another
        probability[:] = 1 / (open_.sum() - np.arange(n))
    return Batch(frozen(pairs), frozen(probability))


def choose_by_topic(
    context: SelectionContext, policy: str | Policy | PolicyFunction, n: int, *, goal: Goal, offered: Bools
) -> tuple[Ints, Floats]:
    """Return the next ``n`` pairs of every query, the best of all first, and the value of each.

    The value of a pair is what its judgment is worth once the better pairs of its query are judged. Values of a policy
    that are below 0, an order and no gains, are counted from the lowest.

    Parameters
    ----------
    context, policy, goal, offered
        As in :func:`choose`.
    n
        The number of pairs per query, or all that are left.
    """
    policy = as_policy(policy)
    joint = policy.joint_value if goal.kind != "relevant" else None
    own, open_ = policy(context, goal), offered & ~context.judged
    lowest = float(own[open_].min(initial=0.0))
    pairs, values = [], []
    for q in range(len(context.runs.queries)):
        mine = context.runs.pool.pairs_of(q)
        inside = np.zeros(len(open_), dtype=bool)
        inside[mine] = open_[mine]
        best = _best(own, inside, SHORT_TOPIC + n)
        value = own[best[:n]] - lowest
        if joint is not None and n > 1 and len(best) > 1:
            best = np.sort(best)
            between = context.dependence.between(best)
            at, value = in_turn(
                covariance_for(context, goal)[best], context.gain_variance[best], between, n, joint(context, goal)
            )
            best = best[at]
        pairs.append(best[:n])
        values.append(np.minimum.accumulate(value))
    flat, worth = np.concatenate(pairs), np.concatenate(values)
    order = np.argsort(-_rounded(worth), kind="stable")
    return np.asarray(flat[order]), np.asarray(worth[order])


def draw_pairs(
    context: SelectionContext, goal: Goal, n: int, *, offered: Bools, explore: float, near: Bools | None = None
) -> tuple[Ints, Batch]:
    """Return the exploratory ones of the next ``n`` judgments: their positions, and the pairs drawn for them.

    The pairs ``near``, of topics that assessors judge now, are drawn more often (:func:`draw_probability`).
    """
    start, open_ = len(context.judgments), offered & ~context.judged
    positions = exploratory(start, n, explore)
    pairs, probability = np.empty(len(positions), dtype=np.int64), np.empty(len(positions))
    for i, at in enumerate(positions):
        pairs[i], probability[i] = draw_pair(context, goal, open_, start + int(at), near)
        open_[pairs[i]] = False
    return positions, Batch(frozen(pairs), frozen(probability))


def exploratory(start: int, n: int, explore: float) -> Ints:
    """Return which of the next ``n`` judgments explore, after ``start`` of them: evenly spread for any batch size.

    Judgment :math:`j` explores when the running share passes a whole number.

    >>> exploratory(5, 20, 0.1)
    array([ 4, 14])
    """
    check_exploration(explore)
    number = start + np.arange(n)
    return np.flatnonzero(np.floor((number + 1) * explore) > np.floor(number * explore))


def check_exploration(explore: float) -> None:
    """Raise an error unless the share of exploration is between 0 and 1."""
    if not 0 <= explore <= 1:
        raise SelectionError(f"The share of exploration must be between 0 and 1, got {explore:g}.")


def _best(value: Floats, open_: Bools, n: int) -> Ints:
    """Return the ``n`` open pairs with the highest values, ties in the order of the pool."""
    pairs = np.flatnonzero(open_)
    rounded = _rounded(value[pairs])
    if n == 1:
        return np.asarray(pairs[[np.argmax(rounded)]])
    return np.asarray(pairs[np.argsort(-rounded, kind="stable")[:n]])


def _rounded(value: Floats) -> Floats:
    """Return values without floating-point noise, so that equal values compare equal."""
    finite = np.abs(value[np.isfinite(value)])
    top = float(finite.max(initial=0.0))
    return np.round(value / top, DIGITS) if top > 0 else value


def _together(
    policy: Policy, joint_value: JointValue, context: SelectionContext, goal: Goal, open_: Bools, n: int
) -> Ints:
    """Choose a batch jointly, in steps: before each, the short list of the highest values is renewed.

    The pairs with the highest values of their own tell much the same. In a large pool they are all of one system.
    See docs/theory/judging.md#batches.
    """
    if n == 1:
        return _best(policy(context, goal), open_, 1)
    open_, matrix = open_.copy(), joint_value(context, goal)
    covariance, variance = covariance_for(context, goal), context.gain_variance
    taken, known = (np.empty(0, dtype=np.int64) for _ in range(2))  # known: those taken that tell anything
    while True:
        step = min(max(STEP, len(taken) // 4), n - len(taken))  # few steps for large batches
        short = np.sort(_best(quadratic_value(covariance, variance, matrix), open_, max(SHORT_LIST, 10 * step)))
        between = _given(_covariances(context, np.append(known, short)), len(known))[0]
        at, values = in_turn(covariance[short], variance[short], between, step, matrix)
        taken, open_[short[at]] = np.append(taken, short[at]), False
        if len(taken) == n:
            return taken
        more = short[at[values > 0]]
        covariance, variance = condition(context, covariance, variance, known, more)
        known = np.append(known, more)


def condition(
    context: SelectionContext, covariance: Floats, variance: Floats, known: Ints, more: Ints
) -> tuple[Floats, Floats]:
    r"""Condition every pair's covariance with the scores, and its variance, on more pairs than those known before.

    With :math:`K` the covariance of gains given ``known``, :math:`X` the pairs ``more`` and :math:`K_{XX} = RR'`, the
    columns :math:`V = K_{\cdot X} R^{-T}` are the :math:`v` of :func:`in_turn`, one pair after another:
    :math:`g \leftarrow g - V R^{-1} g_X`, and :math:`\text{Var}[G_d]` falls by :math:`\sum_x V_{dx}^2`.
    :math:`K_{\cdot X}` is the first covariance times columns that are 0 except at ``known`` and ``more``, so that no
    earlier :math:`V` is kept.
    """
    among, slopes = _given(_covariances(context, np.append(known, more)), len(known))
    columns = np.zeros((len(variance), len(more)))
    columns[more, np.arange(len(more))] = 1.0
    columns[known] = -slopes
    root = cholesky(among, lower=True)
    v = solve_triangular(root, context.dependence.times(columns).T, lower=True)
    fall = v.T @ solve_triangular(root, covariance[more], lower=True)
    return covariance - fall, np.maximum(variance - (v**2).sum(axis=0), 0.0)


def _covariances(context: SelectionContext, pairs: Ints) -> Floats:
    """Return the covariance of the gains of some pairs, their own variances included, shape (n, n)."""
    out = context.dependence.between(pairs)
    np.fill_diagonal(out, context.gain_variance[pairs])
    return out


def _given(matrix: Floats, n: int) -> tuple[Floats, Floats]:
    """Return the covariance of all but the first ``n`` given these, and their slopes on these, shape (n, rest)."""
    slopes = np.asarray(np.linalg.solve(matrix[:n, :n], matrix[:n, n:]), dtype=float)
    return matrix[n:, n:] - matrix[n:, :n] @ slopes, slopes


def in_turn(
    covariance: Floats, variance: Floats, between: Floats, n: int, value: Floats, *, cost: Floats | float = 1.0
) -> tuple[Ints, Floats]:
    r"""Repeatedly take the pair of the highest value, and condition the others on it; return them and their values.

    With :math:`x` taken, :math:`g_d` falls by :math:`\text{Cov}(G_d, G_x)\, g_x / \text{Var}[G_x]` and
    :math:`\text{Var}[G_d]` by :math:`\text{Cov}(G_d, G_x)^2 / \text{Var}[G_x]`. Covariances between pairs are not
    conditioned as a matrix: those with the next pair taken are the first ones, less the products with the columns
    :math:`v = \text{Cov}(G_d, G_x)/\text{sd}[G_x]` of the pairs taken before.

    Parameters
    ----------
    covariance, variance, between
        Of each pair's gain: its covariance with the scores, its variance, and its covariance with other pairs' gains;
        shapes (pair, system), (pair,) and (pair, pair).
    n
        The number of pairs to take.
    value
        The matrix :math:`M` of the value :math:`g_d' M g_d / \text{Var}[G_d]` of a pair, shape (system, system).
    cost
        What each pair costs, shape (pair,): values are divided by it.
    """
    n = min(n, len(variance))
    covariance, variance = covariance.copy(), variance.copy()
    total = np.zeros(len(variance))
    free = np.ones(len(variance), dtype=bool)
    taken = np.zeros((n, len(variance)))  # v of the pairs taken so far
    out, values = np.empty(n, dtype=np.int64), np.empty(n)
    for k in range(n):
        if k % EXACT == 0:
            total = ((covariance @ value) * covariance).sum(axis=1)
        worth = np.divide(total, variance, out=np.zeros(len(total)), where=variance > TIE) / cost
        at = int(_best(worth, free, 1)[0])
        free[at] = False
        out[k], values[k] = at, worth[at]
        if variance[at] <= TIE:
            continue
        with_it = np.where(free, between[at] - taken[:k, at] @ taken[:k], 0.0)
        slope, g = with_it / variance[at], covariance[at].copy()
        toward = value @ g
        total += slope * (slope * float(g @ toward) - 2 * (covariance @ toward))
        covariance -= np.multiply.outer(slope, g)
        taken[k] = with_it / np.sqrt(variance[at])
        variance = np.maximum(variance - slope * with_it, 0.0)
    return out, values


def draw_probability(context: SelectionContext, goal: Goal, open_: Bools, near: Bools | None = None) -> Floats:
    r"""Return the probability that exploration draws each pair, shape (pair,); 0 for pairs that are not open.

    .. math:: p_d = \epsilon \frac{1}{|O|} + (1 - \epsilon) \frac{\bar w_d}{\sum_{e \in O} \bar w_e}, \quad d \in O,

    with :math:`\bar w_d` the mean over systems of the pair's weight in the level, and :math:`\epsilon` = .2. The
    level's estimate varies least if pairs are drawn by their weight; the uniform part reaches all others. For the goal
    trust, the weight is how much the pair may change the agreement of labels (:func:`agreement_weight`). If the goal
    compares two sides, most draws are for their difference instead: half of these are from each side, by the pair's
    weight in the difference (:func:`side_weights`). With pairs ``near``, of topics that assessors judge now, half of
    the probability is kept for these. See docs/theory/judging.md#exploration and docs/theory/judging.md#topics.
    """
    uniform = open_ / max(int(open_.sum()), 1)
    weighted = agreement_weight(context) if goal.about_labels else context.level_weights.mean(axis=0)
    level = _shares(weighted, open_)
    every = UNIFORM * uniform + (1 - UNIFORM) * level if level.any() else uniform
    weight = context.kept((goal, "sides"), lambda: side_weights(context, goal))
    sides = [side for side in (_shares(np.maximum(sign * weight, 0.0), open_) for sign in (1, -1)) if side.any()]
    if sides:
        every = (1 - FROM_SIDES) * every + FROM_SIDES * np.mean(sides, axis=0)
    if near is None or not every[near].any():
        return np.asarray(every)
    return np.asarray(FAR * every + (1 - FAR) * np.where(near, every, 0.0) / every[near].sum())


def side_weights(context: SelectionContext, goal: Goal) -> Floats:
    r"""Return the weight of each pair's gain in the difference between the goal's two sides, shape (pair,).

    It is :math:`\sum_{ab} \omega_{ab} (w_{ad} - w_{bd})` over the systems :math:`a` of one side and :math:`b` of the
    other, with :math:`\omega` of :func:`probeval.selection.policies.comparison_weights`: positive if relevance of the
    pair speaks for one side, negative if it speaks for the other. 0 for goals without two sides.
    """
    if not goal.has_sides(len(context.runs.systems)):
        return np.zeros(len(context.runs.pool))
    side, weights = goal.sides(context.ranking), comparison_weights(context, goal).sum(axis=1)
    if not weights.any():  # all is decided
        weights = goal.comparisons(context.ranking).sum(axis=1)
    return np.asarray((side * weights) @ context.level_weights)


def _shares(weight: Floats, open_: Bools) -> Floats:
    """Return the weights of open pairs as shares of their sum; 0 if it is 0."""
    inside = np.where(open_, weight, 0.0)
    return np.asarray(inside / (inside.sum() or 1.0))


def draw_pair(
    context: SelectionContext, goal: Goal, open_: Bools, number: int, near: Bools | None = None
) -> tuple[int, float]:
    """Draw the pair of one judgment by its number; return it and its probability."""
    pairs = np.flatnonzero(open_)
    probability = draw_probability(context, goal, open_, near)[pairs]
    running = np.cumsum(probability)
    # The position of a uniform number in the running sum: pairs that leave the pool move few others.
    place = stream(context.seed, number, Purpose.EXPLORATION).random() * running[-1]
    at = min(int(np.searchsorted(running, place, "right")), len(pairs) - 1)
    return int(pairs[at]), float(probability[at])
