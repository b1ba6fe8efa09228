r"""Policies: pure functions that value each pair for judging; the highest value is judged first.

Several are quadratic forms over comparisons: with :math:`\omega_{ab}` the weight of a comparison and :math:`x_{da}`
the effect of pair :math:`d` on system :math:`a`,

.. math:: \sum_{a<b} \omega_{ab} (x_{da} - x_{db})^2 = x_d' L x_d,

where :math:`L` is the graph Laplacian of the weights: all comparisons for all pairs in two matrix products.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, ndtri

from probeval.arrays import Bools, Floats
from probeval.errors import SelectionError, did_you_mean
from probeval.extensions import Registry
from probeval.scores.moments import weight_matrix
from probeval.selection.context import SelectionContext
from probeval.selection.fusion import FUSIONS, Fusion, fused_places
from probeval.selection.goals import Goal
from probeval.selection.labels import agreement_covariance, agreement_value
from probeval.streams import Purpose, stream
from probeval.ties import TIE

__all__ = [
    "EXPLORE",
    "EXPLORE_SIDES",
    "POLICIES",
    "Policy",
    "PolicyFunction",
    "as_policy",
    "comparison_weights",
    "covariance_for",
    "find_policy",
    "laplacian",
    "quadratic_value",
    "register_policy",
    "score_value",
]

PolicyFunction = Callable[[SelectionContext, Goal], Floats]
JointValue = Callable[[SelectionContext, Goal], Floats]
EXPLORE = 0.1  # share of judgments, for model-based policies; published policies do not explore
EXPLORE_SIDES = 0.25  # the same for goals that compare two sides; chosen in docs/theory/judging.md#both-sides
EXPLORE_LABELS = 0.5  # the same to see what labels are worth, where the model is what is in doubt; stated
SURE = 1 - 1e-6  # the highest confidence that draws can state
DECIDED = 0.95  # confidence from which a comparison is decided, in mtc-undecided
SLIP = 0.1  # the probability that a label is one level too low, and that it is one too high, before any judgment
DISCOUNT = 0.9  # per document, of a run's earlier documents in the bandit


@dataclass(frozen=True, repr=False)
class Policy:
    r"""A policy to choose pairs.

    Parameters
    ----------
    name, summary
        Its name, and one line on the pairs that it chooses.
    value
        The value of judging each pair, shape (pair,), as a function of the context and the goal. The highest comes
        first.
    explores
        The default share of exploratory judgments. If there are any, it is at least .25 for goals that compare two
        sides (:meth:`exploration`).
    at_random
        Whether its choices are random, so that no exploration is needed.
    joint_value
        For a policy whose batches are chosen jointly: the matrix :math:`M`, shape (system, system), of the value
        :math:`g_d' M g_d / \text{Var}[G_d]` of a pair whose covariances with the scores are :math:`g_d`
        (:func:`score_value`). None if pairs are chosen one by one.

    Examples
    --------
    >>> POLICIES["gain"].explores, POLICIES["mtc"].explores
    (0.1, 0.0)
    """

    name: str
    summary: str
    value: PolicyFunction
    explores: float = 0.0
    at_random: bool = False
    joint_value: JointValue | None = None

    def __call__(self, context: SelectionContext, goal: Goal) -> Floats:
        """Return the value of judging each pair, shape (pair,)."""
        return self.value(context, goal)

    def exploration(self, goal: Goal, systems: int) -> float:
        """Return the default share of exploratory judgments for a goal and a number of systems.

        >>> [POLICIES["gain"].exploration(Goal.parse(goal), 9) for goal in ("ranking", "best")]
        [0.1, 0.25]
        """
        if self.explores and goal.about_labels:
            return EXPLORE_LABELS
        return max(self.explores, EXPLORE_SIDES) if self.explores and goal.has_sides(systems) else self.explores

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Policy({self.name!r})"


def laplacian(weights: Floats) -> Floats:
    """Return the graph Laplacian of symmetric weights, shape (system, system)."""
    return np.diag(weights.sum(axis=1)) - weights


def _quadratic(columns: Floats, matrix: Floats) -> Floats:
    """Return the quadratic form of every row, shape (pair,)."""
    return np.asarray(((columns @ matrix) * columns).sum(axis=1))


def random(context: SelectionContext, goal: Goal) -> Floats:
    """Random order, drawn once for the whole campaign."""
    return stream(context.seed, Purpose.ORDER).random(len(context.runs.pool))


def depth(context: SelectionContext, goal: Goal) -> Floats:
    """Pooling: documents at rank 1 of any system first, then rank 2, and so on."""
    return -context.best_rank.astype(float)


def _fused(fusion: Fusion) -> Policy:
    """The policy that pools by a fused ranking: the first document of every query, then the second, and so on."""

    def value(context: SelectionContext, goal: Goal) -> Floats:
        return -fused_places(context.runs, fusion.name).astype(float)

    return Policy(fusion.name, f"the same number of every query: {fusion.summary} first", value)


def mtf(context: SelectionContext, goal: Goal) -> Floats:
    """Move to front (Cormack, Palmer and Clarke 1998): runs with irrelevant documents move back.

    Query by query, the next document of the run with the fewest irrelevant documents judged so far.
    """
    irrelevant = -_offered(context, lambda relevant, age: np.where(relevant, 0.0, 1.0))
    return _from_runs(context, irrelevant)


def bandit(context: SelectionContext, goal: Goal) -> Floats:
    r"""A non-stationary bandit (after Losada, Parapar and Barreiro 2017, MaxMean): runs are arms, relevance the reward.

    Query by query, the next document of the run with the highest mean of
    :math:`\text{Beta}(1 + \sum \rho^{t} r,\; 1 + \sum \rho^{t} (1 - r))` over its judged documents, the latest
    weighted most, as precision falls with rank.
    """
    good = _offered(context, lambda relevant, age: relevant * DISCOUNT**age)
    bad = _offered(context, lambda relevant, age: (1 - relevant) * DISCOUNT**age)
    return _from_runs(context, (1 + good) / (2 + good + bad))


def mtc(context: SelectionContext, goal: Goal) -> Floats:
    r"""Minimal test collections: :math:`\sum_{a<b} (1 - C_{ab})(1_{a \ni d} - 1_{b \ni d})^2`.

    These are the weights of Urbano and Schedl (2012).
    """
    return _separating(context, _doubt(context, goal))


def mtc_undecided(context: SelectionContext, goal: Goal) -> Floats:
    r"""Minimal test collections over the undecided comparisons: the sum of :func:`mtc` over :math:`C_{ab} < .95`.

    Equation (6) of Urbano and Schedl (2012) in full: comparisons whose sign is already known with high confidence no
    longer attract judgments. With all of them decided, all count again.
    """
    doubt = _doubt(context, goal)
    undecided = np.where(context.ranking.pair_confidence < DECIDED, doubt, 0.0)
    return _separating(context, undecided if undecided.any() else doubt)


def _doubt(context: SelectionContext, goal: Goal) -> Floats:
    """Return 1 less the confidence of each comparison of the goal, shape (system, system)."""
    doubt = (1 - context.ranking.pair_confidence) * goal.comparisons(context.ranking)
    np.fill_diagonal(doubt, 0.0)
    return np.asarray(doubt)


def _separating(context: SelectionContext, weights: Floats) -> Floats:
    """Return the weight of the comparisons in which one system alone retrieved the pair, shape (pair,)."""
    return _quadratic(np.asarray(context.retrieved.T.toarray()), laplacian(weights))


def mtc_thesis(context: SelectionContext, goal: Goal) -> Floats:
    r"""Minimal test collections, weights of Urbano (2013): :math:`\sum_{a<b} |W_{ad} - W_{bd}|`.

    For nDCG and ideal RBP, divided by the expected ideal score of the query.
    """
    metric, runs = context.metric, context.runs
    if metric.definition.rank_weights is None:
        raise SelectionError(f"mtc-thesis needs a weighted sum of gains such as DCG@10, not {metric}. Use gain.")
    at_rank = metric.rank_weights(max(runs.depth, 1))
    cut = np.arange(len(at_rank)) < (metric.cutoff or len(at_rank))
    weights = np.asarray(weight_matrix(runs, at_rank * cut).T.toarray())
    matters = goal.comparisons(context.ranking)
    if goal.orders_all:
        # Over all pairs: with values in rising order, the i-th of n adds (2i - n + 1) times itself.
        n = weights.shape[1]
        value = np.sort(weights, axis=1) @ (2.0 * np.arange(n) - n + 1)
    else:
        a, b = np.nonzero(np.triu(matters))
        value = np.abs(weights[:, a] - weights[:, b]).sum(axis=1)
    if metric.is_linear:
        return np.asarray(value)
    mean = context.gain_moments[0]
    ideal = np.zeros(len(runs.queries))
    for q in range(len(runs.queries)):
        best = np.sort(mean[runs.pool.query == q])[::-1][: len(at_rank)]
        ideal[q] = best @ (at_rank * cut)[: len(best)]
    return np.asarray(value / np.maximum(ideal[runs.pool.query], TIE))


def variance(context: SelectionContext, goal: Goal) -> Floats:
    r"""For absolute scores: :math:`\sum_{a \ni d} \text{Var}[\text{score}_a]`."""
    return np.asarray(context.retrieved.T @ np.diag(context.scores.covariance))


def uncertain(context: SelectionContext, goal: Goal) -> Floats:
    """Pairs with the largest variance of gain, regardless of their effect on systems."""
    return context.gain_variance


def lara(context: SelectionContext, goal: Goal) -> Floats:
    r"""Pairs with the most uncertain label (after Takehi, Voorhees, Sakai and Soboroff 2025): the entropy of the grade.

    With the model ``calibrated``, P(grade) is that of the pair's label. Hard labels have no probabilities of their own,
    so a grade is one level higher, or lower, with probability .1 each: with nothing judged, labels in the middle of the
    scale come first.
    """
    relevance = context.relevance
    n = len(relevance.levels)
    slip = SLIP * (np.eye(n, k=1) + np.eye(n, k=-1))
    moved = slip + np.diag(1 - slip.sum(axis=1))
    parts = (relevance.source.probabilities(block) for block in relevance.blocks(relevance.n_draws * n))
    return np.concatenate([entr((p.mean(axis=0) if p.ndim == 3 else p) @ moved).sum(axis=1) for p in parts])


def gain(context: SelectionContext, goal: Goal) -> Floats:
    r"""Expected information about the goal, including information about other pairs.

    See docs/theory/judging.md#gain.

    With :math:`g_{da} = \text{Cov}(G_d, \text{score}_a)` the value is :math:`g_d' L g_d / \text{Var}[G_d]`, over
    comparisons of weight :math:`\omega_{ab} = \phi(z_{ab}) / \text{Var}[D_{ab}]`. For absolute scores
    :math:`\sum_a \text{Var}[\text{score}_a]\, g_{da}^2 / \text{Var}[G_d]`; for relevant documents the expected gain.
    """
    if goal.kind == "relevant":
        return context.gain_moments[0]
    return quadratic_value(covariance_for(context, goal), context.gain_variance, score_value(context, goal))


def covariance_for(context: SelectionContext, goal: Goal) -> Floats:
    """Return the covariance of each pair's gain with what the goal is about.

    With scores, shape (pair, system), or with the agreement of labellers, shape (pair, source).
    """
    return agreement_covariance(context) if goal.about_labels else context.covariance


def quadratic_value(covariance: Floats, variance: Floats, matrix: Floats) -> Floats:
    r"""Return :math:`g_d' M g_d / \text{Var}[G_d]` of every pair, 0 for those that are known, shape (pair,)."""
    total = _quadratic(covariance, matrix)
    return np.divide(total, variance, out=np.zeros(len(total)), where=variance > TIE)


def score_value(context: SelectionContext, goal: Goal) -> Floats:
    """Return the matrix of the value of pairs in their covariances with the scores, shape (system, system).

    For labels, in those with their agreement, shape (source, source).
    """
    if goal.about_labels:
        return agreement_value(context, goal)
    if goal.compares:
        return context.kept(goal, lambda: laplacian(comparison_weights(context, goal)))
    return np.diag(np.maximum(np.diag(context.scores.covariance), 0.0))


def comparison_weights(context: SelectionContext, goal: Goal) -> Floats:
    r"""Return the weight of each comparison, :math:`\phi(z)/\text{Var}[D]`; 0 if the difference is certain.

    :math:`z` is that of a normal difference whose direction has the confidence of the comparison. A pair that is likely
    to be a tie within the rope has as little weight as one whose direction is likely.
    """
    sd = context.scores.difference_moments()[1]
    open_ = sd**2 > TIE
    confidence = context.ranking.pair_confidence
    if context.scores.family == "empirical":
        confidence = np.minimum(confidence, SURE)
    density = np.exp(-(ndtri(confidence) ** 2) / 2) / np.sqrt(2 * np.pi)
    weights = np.divide(density, sd**2, out=np.zeros_like(sd), where=open_)
    return np.asarray(weights * goal.comparisons(context.ranking))


def _offered(context: SelectionContext, value: Callable[[Floats, Floats], Floats]) -> Floats:
    """Return the sum of ``value`` over each run's judged documents, the latest with age 0, shape (system, query)."""
    runs, scale = context.runs, context.relevance.scale
    codes = np.append(context.relevance.judged, -1)[runs.pairs]  # (system, query, rank)
    seen: Bools = (codes >= 0) & runs.retrieved
    relevant = (np.append(scale.values, 0.0)[codes] > scale.values[0]).astype(float)
    age = seen.sum(axis=2, keepdims=True) - np.cumsum(seen, axis=2)
    return np.asarray(np.where(seen, value(relevant, age), 0.0).sum(axis=2))


def _from_runs(context: SelectionContext, priority: Floats) -> Floats:
    """Return values that take queries in turn, and the next documents of the runs with the highest priority."""
    runs = context.runs
    system, query, rank = np.nonzero(runs.retrieved)
    pair = runs.pairs[system, query, rank]
    # The queue of each query: highest priority first, then higher ranks, then the order of runs.
    order = np.lexsort((system, rank, -priority[system, query], query))
    order = order[~context.judged[pair[order]]]
    _, first = np.unique(pair[order], return_index=True)
    queue = pair[order][np.sort(first)]
    n_queries = len(runs.queries)
    size = np.bincount(runs.pool.query[queue], minlength=n_queries)
    place = np.arange(len(queue)) - np.repeat(np.cumsum(size) - size, size)
    done = np.bincount(runs.pool.query, weights=context.judged.astype(float), minlength=n_queries)
    value = np.full(len(runs.pool), -np.inf)
    value[queue] = -(done[runs.pool.query[queue]] + place)
    return value


OWN = {
    policy.name: policy
    for policy in (
        Policy("random", "pairs in an order drawn once", random, at_random=True),
        Policy("depth", "pooling: rank 1 of every system, then rank 2, and so on", depth),
        *map(_fused, FUSIONS.values()),
        Policy("mtf", "move to front: the next document of the run with the fewest irrelevant ones so far", mtf),
        Policy("bandit", "the next document of the run with the best recent record", bandit),
        Policy("mtc", "pairs that separate systems whose order is in doubt", mtc),
        Policy("mtc-undecided", "as mtc, but only for comparisons whose confidence is below .95", mtc_undecided),
        Policy("mtc-thesis", "pairs whose weight differs most between systems", mtc_thesis),
        Policy("variance", "pairs of systems whose scores are uncertain", variance),
        Policy("uncertain", "pairs whose gain is the least certain", uncertain),
        Policy("lara", "pairs with the most uncertain machine label", lara),
        Policy(
            "gain",
            "pairs whose judgment is expected to settle most for the goal",
            gain,
            explores=EXPLORE,
            joint_value=score_value,
        ),
    )
}


POLICIES: Registry[Policy] = Registry(
    "policy",
    __name__,
    group="probeval.policies",
    error=SelectionError,
    take=lambda name, policy: register_policy(policy),
    own=OWN,
)


def find_policy(name: str) -> Policy:
    """Return the policy with this name."""
    found = POLICIES.find(name)
    if found is None:
        raise SelectionError(f"No policy {name!r}: {', '.join(POLICIES)}.{did_you_mean(name, POLICIES)}")
    return found


def as_policy(policy: str | Policy | PolicyFunction) -> Policy:
    """Return a policy from a policy, its name, or a plain function."""
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str):
        return find_policy(policy)
    name = getattr(policy, "__name__", type(policy).__name__).replace("_", "-")
    return Policy(name, (inspect.getdoc(policy) or name).splitlines()[0].rstrip("."), policy)


def register_policy(policy: Policy | PolicyFunction) -> Policy:
    """Add a policy under its name, for judging, simulations and the command line.

    A plain function of a :class:`SelectionContext` and a :class:`Goal` gets its own name, and the first line of its
    docstring as summary. An earlier one from outside with the same name is replaced.

    Raises
    ------
    SelectionError
        If the name is that of a policy of the package, or has a colon, which separates a policy from its model.
    """
    made = as_policy(policy)
    if not made.name or ":" in made.name:
        raise SelectionError(f"The name of a policy must not be empty or have a colon, got {made.name!r}.")
    POLICIES.add(made.name, made)
    return made
