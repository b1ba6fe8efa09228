r"""The audit: the level and each system's score from the pairs that exploration drew, and an alarm.

Exploration draws each of its pairs with a known probability (:func:`probeval.selection.batch.draw_probability`), so
these pairs tell what all others are worth, whatever the model. At draw :math:`t`, with the pairs :math:`J_t` judged,
:math:`O_t` open, and predicted gains :math:`f_t`,

.. math:: Z_t = \sum_{d \in J_t} w_d\, y_d + \sum_{d \in O_t} w_d\, f_t(d) + w_i \frac{y_i - f_t(i)}{p_t(i)}

is unbiased for the true score, and so is the difference of two systems' estimates for theirs. The alarm bets against
the model: were its predictions right, each residual would have mean 0 given all judgments before, and no bettor could
win. See docs/theory/judging.md#audit.

A system that arrives later changes nothing for the others: the pairs that it adds have no weight in their levels, so
the draws from before keep their probabilities. Its own level takes the draws made since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.sparse import csr_array

from probeval.arrays import Floats
from probeval.display import Record, Table
from probeval.results import Result
from probeval.selection.batch import Batch
from probeval.selection.bets import BETS, Residuals, e_process
from probeval.selection.judging import JudgingState
from probeval.ties import TIE

__all__ = ["FEWEST", "AuditReport", "AuditedDifference", "AuditedSystem", "Pick", "audit", "foresee", "unbiased"]

ALPHA = 0.05  # the probability of a false alarm, and of an interval without the truth, over all looks together
FEWEST = 10  # draws below which the sample tells nothing
TUNED_FOR = 50  # draws at which the confidence sequences are narrowest
NORMAL = 1.959964  # the 97.5% point of the normal distribution


@dataclass(frozen=True, repr=False)
class Pick(Record):
    """The model's prediction of a pair when it was chosen, before its judgment.

    Parameters
    ----------
    predicted, variance
        The expected gain of the pair and its variance.
    centre
        The mean expected gain of all pairs of the pool.
    known, fitted
        The number of judgments at the choice, and at the last fit of the model before it.
    probability
        The probability of the draw; None if the policy chose the pair. The rest is of draws only.
    open
        The weight of the open pairs: how much of the level was not known.
    scores
        The expected level of each system that was there, in the order of the runs
        (:func:`probeval.selection.context.level_weights`).
    """

    predicted: float
    variance: float
    centre: float
    known: int
    fitted: int
    probability: float | None = None
    open: float = 0.0
    scores: tuple[float, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Pick:
        """From plain data."""
        return cls(**{**data, "scores": tuple(data["scores"])})


def foresee(state: JudgingState, batch: Batch) -> tuple[Pick, ...]:
    """Return the predictions of the pairs of a batch, to be kept until their judgments.

    Examples
    --------
    >>> from probeval.relevance import FallbackModel, Uniform, synthetic_campaign
    >>> from probeval.selection import Judging
    >>> campaign = synthetic_campaign(seed=1, systems=4, queries=3, depth=5)
    >>> judging = Judging.of(campaign, FallbackModel([Uniform()]), "P@5", explore=0.5)
    >>> state = judging.state(campaign.judgments.take(np.arange(8)))
    >>> [None if p.probability is None else round(p.probability, 3) for p in foresee(state, state.next(4))]
    [None, 0.025, None, 0.025]
    """
    context, relevance = state.context, state.prediction.relevance
    gains, weights = context.gains, context.level_weights
    mean = context.gain_moments[0]
    within, given = relevance.take(batch.pairs).moments(gains)
    order = np.argsort(np.argsort(batch.pairs))
    variance = (given + (within.var(axis=0) if relevance.has_posterior else 0.0))[order]
    scores = tuple(float(score) for score in weights @ mean)
    level = np.asarray(weights.mean(axis=0))
    left = state.open.copy()
    out = []
    for at, pair in enumerate(batch.pairs):
        foreseen = Pick(
            predicted=float(mean[pair]),
            variance=float(variance[at]),
            centre=float(mean.mean()),
            known=len(state.judgments),
            fitted=state.learned,
        )
        if batch.drawn[at]:
            probability, weight = float(batch.probability[at]), float(level[left].sum())
            foreseen = replace(foreseen, probability=probability, open=weight, scores=scores)
            left[pair] = False
        out.append(foreseen)
    return tuple(out)


@dataclass(frozen=True)
class AuditedSystem:
    """The level of a system by the model and by the sample."""

    system: str
    model: Annotated[float, "By the model."]
    sample: Annotated[float | None, "By the sample; null with fewer than ten draws."]
    lower: Annotated[
        float | None,
        "The lower limit by the sample, which holds at every look; null with fewer than ten draws of the documents of "
        "the system since it is there.",
    ]
    upper: Annotated[float | None, "The upper limit by the sample."]


@dataclass(frozen=True)
class AuditedDifference:
    """The difference in level of two systems by the model and by the sample."""

    a: Annotated[str, "A system of the goal's closest comparison."]
    b: Annotated[str, "The other one."]
    model: Annotated[float, "The level of a minus that of b by the model."]
    sample: Annotated[
        float | None,
        "The same by the sample; null with fewer than ten draws of documents that count for one of the two more than "
        "for the other.",
    ]
    lower: Annotated[float | None, "The lower limit by the sample, which holds at every look."]
    upper: Annotated[float | None, "The upper limit by the sample."]


@dataclass(frozen=True, repr=False)
class AuditReport(Result):
    """The audit of a campaign: the level by the model and by the sample, and whether they part ways."""

    metric: Annotated[str, "The measure."]
    linear: Annotated[bool, "Whether the level is its mean score over systems; otherwise it is the mean weighted gain."]
    draws: Annotated[int, "The number of judged pairs that were drawn at random."]
    judged: Annotated[int, "The number of judged pairs that the alarm bets on."]
    first: Annotated[int, "The number of systems that the level is of: those that were there at the first draw."]
    model: Annotated[float, "The level by the model."]
    model_lower: Annotated[float, "The lower end of its 95% interval."]
    model_upper: Annotated[float, "The upper end of its 95% interval."]
    sample: Annotated[float | None, "The level by the sample; null with fewer than ten draws."]
    lower: Annotated[float | None, "The lower limit by the sample, which holds at every look; null with too few draws."]
    upper: Annotated[float | None, "The upper limit by the sample; null with too few draws."]
    evidence: Annotated[float, "The wealth of the bets against the model now: 1 at the start, an alarm at 20."]
    alarm: Annotated[int | None, "The number of judgments at which the alarm was raised; null if it was not."]
    finding: Annotated[str, "In what way the model is wrong, if there is an alarm; else empty."]
    systems: Annotated[tuple[AuditedSystem, ...], "One entry per system, in the order of the runs."]
    difference: Annotated[
        AuditedDifference | None, "The closest comparison, where the goal compares two sides; else null."
    ] = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AuditReport:
        """From plain data."""
        systems = tuple(AuditedSystem(**row) for row in data["systems"])
        found = data.get("difference")  # those of earlier versions have none
        data = {"first": len(systems), **data}  # nor this
        return cls(**{**data, "systems": systems, "difference": None if found is None else AuditedDifference(**found)})

    def _headline(self) -> str:
        return f"{self.draws:,} pairs drawn at random, {'no alarm' if self.alarm is None else 'alarm'}"

    def tables(self) -> tuple[Table, ...]:
        """One row per system."""
        return (Table(self.to_frame(), self._headline(), intervals=("sample", "lower", "upper")),)

    def sentences(self) -> tuple[str, ...]:
        """The levels, whether there is an alarm, and what to do."""
        of = f" of the first {self.first:,} systems" if self.first < len(self.systems) else ""
        level = f"level{of} {self.model:.3f} by the model"
        if self.sample is None or self.lower is None or self.upper is None:
            seen = f"Audit: {level}; {self.draws} of the judged pairs were drawn at random, too few to tell."
        else:
            seen = (
                f"Audit: {level} ({self.model_lower:.3f} to {self.model_upper:.3f}), {self.sample:.3f} by "
                f"{self.draws:,} pairs drawn at random ({self.lower:.3f} to {self.upper:.3f})."
            )
        sentences = (seen, *self._compared())
        if self.alarm is None:
            return sentences
        return (
            *sentences,
            f"Alarm, since {self.alarm:,} judgments: {self.finding}. Model and sample part ways.",
            "Check the scale, the labels and the documents of some judged pairs; judge more at random (--explore .3); "
            "until the alarm is understood, rely on the sample's levels, not on the model's scores.",
        )

    def _compared(self) -> tuple[str, ...]:
        """The difference of two systems by the model and by the sample, and whether these contradict each other."""
        found = self.difference
        if found is None or found.sample is None or found.lower is None or found.upper is None:
            return ()
        said = (
            f"{found.a} minus {found.b}: {found.model:+.4f} by the model, {found.sample:+.4f} by the pairs "
            f"drawn at random ({found.lower:+.4f} to {found.upper:+.4f})."
        )
        if found.lower <= found.model <= found.upper:
            return (said,)
        flattered = found.a if found.model > found.upper else found.b
        return (
            said,
            f"The draws contradict the model, which favours {flattered}: check whether labels do, and rely on "
            "the draws.",
        )


def audit(state: JudgingState, chosen: Sequence[tuple[int, Pick]]) -> AuditReport:
    """Compare the model with the sample.

    Parameters
    ----------
    state
        The judging now.
    chosen
        Pairs of the pool in the order in which they were chosen, with their predictions. Those without a grade yet are
        passed over.
    """
    context, relevance = state.context, state.prediction.relevance
    in_order = sorted(chosen, key=lambda each: _batch(each[1]))
    judged = [(pair, pick) for pair, pick in in_order if relevance.certain[pair]]
    drawn = [(pair, pick) for pair, pick in judged if pick.probability is not None]
    lowest, reach = float(context.gains.min()), float(np.ptp(context.gains)) or 1.0
    actual = context.gains[relevance.judged]  # of judged pairs only
    evidence, alarm, finding = _alarm(judged, actual, lowest, reach)
    weights = context.level_weights
    first = min((len(pick.scores) for _, pick in drawn), default=weights.shape[0])
    level = np.asarray(weights[:first].mean(axis=0))
    mean, sd = _stated(state, level)
    own = np.asarray(weights @ context.gain_moments[0])
    overall, sample = np.full((3, 1), np.nan), np.full((3, len(own)), np.nan)
    compared, apart = state.goal.closest(state.ranking), np.full((3, 1), np.nan)
    if len(drawn) >= FEWEST:
        z = unbiased(drawn, actual, weights)
        left = np.array([pick.open for _, pick in drawn])
        overall = _sequences(z[:, :first].mean(axis=1, keepdims=True), left, reach)
        there, pairs = ~np.isnan(z), [pair for pair, _ in drawn]  # when each system was there
        for arrived in np.unique(there, axis=1).T:
            mine = (there == arrived[:, None]).all(axis=0)
            if arrived.sum() >= FEWEST:
                sample[:, mine] = _sequences(z[np.ix_(arrived, mine)], left[arrived], reach)
        sample[1:, ((weights[:, pairs].toarray().T > 0) & there).sum(axis=0) < FEWEST] = np.nan
        if compared is not None:
            a, b = compared
            both = there[:, a] & there[:, b]
            only = np.abs(weights[[a]] - weights[[b]]).toarray()[0]  # what counts for one more than for the other
            if (only[pairs][both] > TIE).sum() >= FEWEST:
                apart = _sequences(z[both][:, [a]] - z[both][:, [b]], left[both], reach * only.sum() / level.sum())
    level_by_sample, lower, upper = map(_known, overall[:, 0])
    return AuditReport(
        metric=str(context.metric),
        linear=context.metric.is_linear,
        draws=len(drawn),
        judged=len(judged),
        first=first,
        model=mean,
        model_lower=mean - NORMAL * sd,
        model_upper=mean + NORMAL * sd,
        sample=level_by_sample,
        lower=lower,
        upper=upper,
        evidence=evidence,
        alarm=alarm,
        finding=finding,
        systems=tuple(
            AuditedSystem(name, float(own[a]), *map(_known, limits))
            for a, (name, *limits) in enumerate(zip(context.runs.systems, *sample, strict=True))
        ),
        difference=None if compared is None else _difference(context.runs.systems, compared, own, apart),
    )


def _difference(systems: Sequence[str], compared: tuple[int, int], own: Floats, sample: Floats) -> AuditedDifference:
    a, b = compared
    return AuditedDifference(systems[a], systems[b], float(own[a] - own[b]), *map(_known, sample[:, 0]))


def _known(value: float) -> float | None:
    """Return a number, None for NaN."""
    return None if np.isnan(value) else float(value)


def _alarm(
    judged: Sequence[tuple[int, Pick]], actual: Floats, lowest: float, reach: float
) -> tuple[float, int | None, str]:
    """Return the wealth now, the number of judgments at which it reached the alarm, and the winning finding.

    Half of the wealth is bet on all judged pairs, half on those drawn at random.
    """
    if not judged:
        return 1.0, None, ""
    picks = [pick for _, pick in judged]
    fitted = np.array([p.fitted for p in picks])
    drawn = np.array([p.probability is not None for p in picks])
    every = Residuals(
        (actual[[pair for pair, _ in judged]] - lowest) / reach,
        (np.array([p.predicted for p in picks]) - lowest) / reach,
        np.array([p.variance for p in picks]) / reach**2,
        (np.array([p.centre for p in picks]) - lowest) / reach,
        fitted,
    )
    fits, counts = np.unique(fitted, return_counts=True)
    wealth = e_process(every)
    at_random = e_process(Residuals(*(column[drawn] for column in every)))
    so_far = np.searchsorted(np.unique(fitted[drawn]), fits, "right")
    at_random = np.vstack([np.ones((1, len(BETS))), at_random])[so_far]
    shares = np.array([bet.weight for bet in BETS])
    both = (wealth + at_random) / 2 * shares
    total = both.sum(axis=1)
    raised = np.flatnonzero(total >= 1 / ALPHA)
    if not len(raised):
        return float(total[-1]), None, ""
    first = int(raised[0])
    return float(total[-1]), int(np.cumsum(counts)[first]), BETS[int(both[first].argmax())].finding


def _stated(state: JudgingState, level: Floats) -> tuple[float, float]:
    """Return the model's level and its standard deviation."""
    relevance, gains = state.prediction.relevance, state.context.gains
    draws, given = np.zeros(relevance.n_draws), 0.0
    for block in relevance.blocks(relevance.n_draws * len(relevance.levels)):
        mean, variance = relevance.part(block).moments(gains)
        draws += np.atleast_2d(mean) @ level[block.pairs]
        given += float(level[block.pairs] ** 2 @ variance)
    return float(draws.mean()), float(np.sqrt(draws.var() + given))


def _batch(pick: Pick) -> tuple[int, int]:
    """Return what the draws of one batch have in common: the judgments and the systems that there were."""
    return pick.known, len(pick.scores)


def unbiased(drawn: Sequence[tuple[int, Pick]], actual: Floats, weights: csr_array) -> Floats:
    """Return the unbiased estimate :math:`Z_t` of every system's level after each draw, shape (draw, system).

    NaN for a system that was not there at the draw.

    Parameters
    ----------
    drawn
        Judged pairs that were drawn at random, in order.
    actual
        The gain of each pair of the pool, shape (pair,); only those of drawn pairs are used.
    weights
        The weight of each pair in each system's level, shape (system, pair).
    """
    pairs = [pair for pair, _ in drawn]
    residual = actual[pairs] - np.array([pick.predicted for _, pick in drawn])
    terms = weights[:, pairs].toarray().T * residual[:, None]
    # A draw excludes the earlier draws of its batch, so their gains are known to it.
    batch, begun = [_batch(pick) for _, pick in drawn], dict[tuple[int, int], int]()
    first = [begun.setdefault(each, at) for at, each in enumerate(batch)]
    before = np.cumsum(terms, axis=0) - terms
    chance = np.array([pick.probability for _, pick in drawn], dtype=float)
    scores = np.full((len(drawn), weights.shape[0]), np.nan)
    for at, (_, pick) in enumerate(drawn):
        scores[at, : len(pick.scores)] = pick.scores
    return np.asarray(scores + before - before[first] + terms / chance[:, None])


def _sequences(z: Floats, left: Floats, reach: float) -> Floats:
    r"""Return the weighted mean of each column, and limits that hold at all looks as draws grow in number.

    The weight ``left`` of the open pairs falls from draw to draw, and the variance with it, so later draws count more.
    The asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024):

    .. math:: \hat s \pm \text{se} \sqrt{2 \frac{n\rho^2 + 1}{n\rho^2} \log \frac{\sqrt{n\rho^2 + 1}}{\alpha}}.

    The standard error counts one more draw that is off by the whole scale, ``reach``: the first draws may happen to
    agree.
    """
    n, slack = len(z), float(left.mean()) * reach
    share = 1 / np.maximum(left, TIE) ** 2
    share /= share.sum()
    mean = share @ z
    error = np.sqrt((share**2 @ (z - mean) ** 2 + (slack / n) ** 2) * n / (n - 1))
    spread = -2 * np.log(ALPHA)
    tuned = n * (spread + np.log(spread) + 1) / TUNED_FOR
    width = error * np.sqrt(2 * (tuned + 1) / tuned * np.log(np.sqrt(tuned + 1) / ALPHA))
    return np.array([mean, mean - width, mean + width])
