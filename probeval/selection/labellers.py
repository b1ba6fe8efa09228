r"""Pairs for a labeller: those whose label, with its errors, is expected to tell most.

A label measures the gain of its pair with an error, :math:`y_d = G_d + e_d`. With :math:`r` the correlation of label
and relevance among the documents of a query, and :math:`s^2` the variance of gains there, the error has the variance
:math:`v = s^2 (1 - r^2) / r^2`, and the value of a label is that of the policy ``gain`` with this error,

.. math:: \frac{g_d' L g_d}{\text{Var}[G_d] + v}.

A judgment has :math:`v = 0`. A batch is chosen jointly, as for people: a label tells of other pairs what its error
leaves. See docs/theory/judging.md#labellers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from probeval.arrays import Bools, Floats
from probeval.data.observers import ObserverSpec
from probeval.errors import ModelError, SelectionError
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.observers.prior import PAIR, ObserverPriors
from probeval.relevance.observers.worth import LOGISTIC
from probeval.selection.batch import Batch, choose
from probeval.selection.context import SelectionContext
from probeval.selection.judging import JudgingState
from probeval.threads import one_thread
from probeval.ties import TIE

__all__ = [
    "LabellerContext",
    "choose_for_labeller",
    "label_correlation",
    "label_correlations",
    "label_errors",
    "label_noise",
    "labelled_by",
]

LEAST = 0.05  # the least correlation: below it, labels tell nothing, and the order of pairs stays the same


@dataclass(frozen=True, eq=False, repr=False)
class LabellerContext(SelectionContext):
    """The input of a policy where a pair is not judged but labelled, with an error.

    Parameters
    ----------
    noise
        The variance of the error, in units of gains.
    """

    noise: float = 0.0

    @cached_property
    def gain_variance(self) -> Floats:
        """The variance of each pair's label, shape (pair,)."""
        return self.gain_moments[1] + self.dependence.variance + self.noise


def choose_for_labeller(state: JudgingState, name: str, n: int, *, offered: Bools | None = None) -> Batch:
    """Return the next ``n`` pairs for a labeller: not judged, and not labelled by it.

    Parameters
    ----------
    state
        The state of the judging, with a policy that chooses jointly (``gain``) and a goal about scores.
    name
        The labeller, by its column of labels if it has one.
    offered
        The pairs that it can label, shape (pair,); all by default.
    """
    judging = state.judging
    if judging.policy.joint_value is None or not judging.goal.about_scores:
        raise SelectionError(
            f"Pairs for a labeller are chosen by the policy gain and a goal about scores, got {judging.policy} and "
            f"{judging.goal}. Leave out --labeller or --prices."
        )
    free = state.open & ~labelled_by(state, name)
    noise = label_noise(state, name)
    with one_thread():
        return choose(
            LabellerContext(state.context.estimate, noise),
            judging.policy,
            n,
            goal=judging.goal,
            offered=free if offered is None else free & offered,
        )


def label_noise(state: JudgingState, name: str) -> float:
    """The variance of the error of a labeller's labels, in units of gains."""
    return float(_error(state, np.array(max(label_correlation(state, name), LEAST))))


def label_errors(state: JudgingState, name: str) -> tuple[Floats, Floats]:
    """The probabilities of the variances that the errors of a labeller's labels may have, and these, shapes (setting,).

    That of labels that are noise is infinite.
    """
    weights, correlations = label_correlations(state, name)
    return weights, _error(state, correlations)


def _error(state: JudgingState, correlation: Floats) -> Floats:
    """Return the variance of the errors of labels with a correlation, in units of gains."""
    context = state.context
    mean, query = context.gain_moments[0], context.runs.pool.query
    sizes = np.maximum(np.bincount(query), 1)
    centred = mean - (np.bincount(query, weights=mean) / sizes)[query]
    within = float(np.mean(centred**2 + context.gain_variance))  # s^2: of the expected gains, and of what is uncertain
    seen = correlation**2
    return np.asarray(np.divide(within * (1 - seen), seen, out=np.full(seen.shape, np.inf), where=seen > TIE))


def label_correlation(state: JudgingState, name: str) -> float:
    """The correlation of a labeller's labels and relevance among the documents of a query.

    Of a labeller with labels, it is that of the posterior; of another, what is expected of its name, or of a machine
    never seen, if its labels are not noise.
    """
    found = _settings(state, name)
    return _expected(state, name) if found is None else float(found[0] @ found[1])


def label_correlations(state: JudgingState, name: str) -> tuple[Floats, Floats]:
    """The probabilities of the correlations that a labeller's labels may have with relevance, and these, (setting,).

    Labels that are noise have the correlation 0. Their probability is that of the posterior, or, for a labeller without
    labels, that of the prior.
    """
    found = _settings(state, name)
    if found is not None:
        return found
    noise = _priors(state).constants.noise
    return np.array([1 - noise, noise]), np.array([_expected(state, name), 0.0])


def _priors(state: JudgingState) -> ObserverPriors:
    """Return what the model knows of labellers."""
    model = state.judging.model
    if not isinstance(model, Hierarchical) or state.prediction.posterior is None:
        raise ModelError("Only the hierarchical model, by Laplace's method, tells what a label is worth.")
    return model.prior.observers


def _settings(state: JudgingState, name: str) -> tuple[Floats, Floats] | None:
    """Return the weights of the settings of the worth of a labeller's labels, and the correlations; None without."""
    priors, posterior = _priors(state), state.prediction.posterior
    evidence = None if posterior is None else posterior.design.evidence
    if posterior is None or evidence is None:
        return None
    for number, family in enumerate(evidence.families):
        if name in {member.name for member in family.members}:
            each = [
                _correlation(evidence.design, priors, setting.sds, setting.slopes[number], setting.own[number])
                for setting in evidence.worth.settings
            ]
            return posterior.weights, np.array(each)
    return None


def _expected(state: JudgingState, name: str) -> float:
    """Return the correlation that is expected of a labeller without labels, if these are not noise."""
    priors, posterior = _priors(state), state.prediction.posterior
    assert posterior is not None
    prior = priors.possible(ObserverSpec(name, scale="graded:3"))[0].prior
    design = posterior.design if posterior.design.evidence is None else posterior.design.evidence.design
    # Biases towards systems and teams are multiples of the effects that are expected of these.
    own = {PAIR: prior.own(PAIR).mean}
    for one in design.effects:
        biased = one.effect.scope == "campaign"
        own[one.name] = prior.log_bias.mean + one.log_sd.mean if biased else prior.own(one.name).mean
    return _correlation(
        design,
        priors,
        {effect.name: float(np.exp(effect.log_sd.mean)) for effect in design.effects},
        float(np.exp(prior.log_slope.mean)),
        {level: float(np.exp(log)) for level, log in own.items()},
    )


def _correlation(
    design: ModelDesign, priors: ObserverPriors, sds: Mapping[str, float], slope: float, own: Mapping[str, float]
) -> float:
    # Within a query constant effects drop out. Relevance has the variance sum_k sigma_k^2, of which an observer sees
    # S = sum_k rho_k sigma_k^2; its labels have lambda^2 S + sum_k o_k^2, and with relevance the covariance lambda S.
    within = [e for e in design.effects if e.effect.acts_on == "predictor" and not e.effect.constant]
    variance = {PAIR: LOGISTIC} | {e.name: sds[e.name] ** 2 for e in within if e.name in sds}
    scope = {e.name: e.effect.scope for e in within}
    seen = sum(
        v * (priors.share(PAIR) if name == PAIR else priors.share(name, scope[name])) for name, v in variance.items()
    )
    labels = slope**2 * seen + sum(own.get(name, 0.0) ** 2 for name in variance)
    return float(slope * seen / np.sqrt(labels * sum(variance.values())))


def labelled_by(state: JudgingState, name: str) -> Bools:
    """Which pairs have a label by this labeller, shape (pair,)."""
    labels = state.estimate.problem.labels
    if labels is None or name not in labels.sources:
        return np.zeros(len(state.judging.pool), dtype=bool)
    return ~np.isnan(labels.values[:, labels.sources.index(name)])
