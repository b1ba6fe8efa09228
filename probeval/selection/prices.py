r"""Who is asked next: people, or a machine for labels, whichever is expected to tell more for its price.

A request is a batch of pairs for one observer. With :math:`K` the covariance of the gains of its pairs, :math:`G` their
covariances with the scores and :math:`M` the matrix of the goal, answers with errors of variance :math:`v` are worth

.. math:: V(v) = \text{tr}\big(M\, G' (K + vI)^{-1} G\big).

A judgment has :math:`v = 0`. The errors of labels are not known: their value is the mean of :math:`V(v)` over the
posterior of the labeller's worth, with :math:`V = 0` where its labels are noise, times the share of such values that
its labels so far brought. The request with the highest value per cost is made. A machine that is new is tested first:
people judge pairs that it labelled. See docs/theory/judging.md#prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np
from scipy.linalg import eigh

from probeval.arrays import Bools, Floats, Ints
from probeval.display import Record
from probeval.errors import SelectionError
from probeval.selection.batch import Batch, choose
from probeval.selection.context import SelectionContext
from probeval.selection.goals import Goal
from probeval.selection.judging import JudgingState
from probeval.selection.labellers import choose_for_labeller, label_errors, labelled_by
from probeval.selection.policies import covariance_for, score_value
from probeval.streams import Purpose
from probeval.threads import one_thread
from probeval.ties import TIE

__all__ = ["PERSON", "AnswerPrices", "Request", "expected_gain", "labels_at_once", "next_request"]

PERSON = "person"
TESTED = 10  # judgments of labelled pairs, before more labels of a machine are bought
AT_ONCE = 0.1  # of the pool: the most labels of one request, as each is chosen by what labels are found to be worth
FEWEST = 20  # labels of a request, in a small pool


@dataclass(frozen=True, repr=False)
class AnswerPrices(Record):
    """The price of an answer of each observer, in any unit: money, seconds, or judgments.

    Parameters
    ----------
    person
        The price of a judgment.
    machines
        The price of a label of each machine, by the column of its labels.

    Examples
    --------
    >>> AnswerPrices.parse("person=.25, gpt4o=.0015")
    AnswerPrices(person=0.25, machines={'gpt4o': 0.0015})
    >>> AnswerPrices().cost(120)
    120.0
    """

    person: float = 1.0
    machines: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        for name, price in self.all.items():
            if not (isfinite(price) and price > 0):
                raise SelectionError(f"The price of {name} must be a number above 0, got {price:g}.")

    @classmethod
    def parse(cls, text: str | Mapping[str, float] | AnswerPrices) -> AnswerPrices:
        """Read prices: ``person=1,NAME=.01``, or a mapping; a judgment costs 1 by default."""
        if isinstance(text, AnswerPrices):
            return text
        if isinstance(text, str):
            parts = [part.partition("=") for part in text.split(",")]
            text = {name.strip(): _number(name.strip(), price) for name, _, price in parts}
        rest = {name: float(price) for name, price in text.items() if name != PERSON}
        return cls(float(text.get(PERSON, 1.0)), rest or None)

    def __str__(self) -> str:
        return ",".join(f"{name}={price:g}" for name, price in self.all.items())

    @property
    def all(self) -> dict[str, float]:
        """The price of every observer, people first."""
        return {PERSON: self.person, **(self.machines or {})}

    def cost(self, judgments: float, labels: Mapping[str, int] | None = None) -> float:
        """Return what judgments and labels cost."""
        return judgments * self.person + sum(self.all[name] * n for name, n in (labels or {}).items())


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SelectionError(f"AnswerPrices are such as person=1,gpt4o=.01; got {name}={text.strip()}.") from None


@dataclass(frozen=True, eq=False, repr=False)
class Request(Record):
    """Pairs for one observer.

    Parameters
    ----------
    observer
        ``"person"``, or the name of a machine.
    batch
        The pairs.
    gains
        The expected gain per cost of the best request of each observer; empty if the pairs test a machine.
    tests
        The machine that the pairs test: people judge what it labelled. Empty if they test none.
    """

    observer: str
    batch: Batch
    gains: Mapping[str, float]
    tests: str = ""

    @property
    def is_for_people(self) -> bool:
        """Whether people are to judge the pairs."""
        return self.observer == PERSON

    def sentences(self) -> tuple[str, ...]:
        """Return why these pairs and this observer."""
        who = "people" if self.is_for_people else self.observer
        if self.tests:
            return (f"For people: these {len(self.batch):,} pairs tell what the labels of {self.tests} are worth.",)
        if not len(self.batch):
            return ()
        best = self.gains.get(self.observer, 0.0)
        others = [
            f"those of {'people' if name == PERSON else name} {gain / best:.2f} of that"
            for name, gain in self.gains.items()
            if name != self.observer and best > 0
        ]
        why = f": for the price their answers are expected to tell most, {' and '.join(others)}" if others else ""
        return (f"For {who}{why}.",)


def next_request(
    state: JudgingState, prices: AnswerPrices, n: int, *, available: Mapping[str, Bools] | None = None
) -> Request:
    """Return the pairs to ask for next, and whom: up to ``n`` judgments, or labels of about the same cost.

    Parameters
    ----------
    state
        The state of the judging, with a policy that chooses jointly (``gain``) and a goal about scores.
    prices
        The price of each observer.
    n
        The number of judgments of a request.
    available
        The pairs that each machine can label, by its name, shape (pair,); all by default.
    """
    test = _test(state, prices.machines or {}, n)
    if test is not None:
        return test
    batches = {PERSON: state.next(n)}
    for name in prices.machines or {}:
        most = labels_at_once(state, prices, name, n)
        batches[name] = choose_for_labeller(state, name, most, offered=(available or {}).get(name))
    gains = {
        name: expected_gain(state.context, state.goal, batch.pairs, *_errors(state, name))
        / (len(batch) * prices.all[name])
        for name, batch in batches.items()
        if len(batch)
    }
    for name in prices.machines or {}:
        if gains.get(name, 0.0) > gains.get(PERSON, 0.0):
            gains[name] *= _held_share(state, name, len(batches[name]))
    best = max(gains, key=lambda name: gains[name], default=PERSON)  # of equals the first: people
    return Request(best, batches[best], gains)


def _errors(state: JudgingState, name: str) -> tuple[Floats, Floats]:
    """Return the probabilities of the variances of an observer's errors, and these; judgments have none."""
    return (np.ones(1), np.zeros(1)) if name == PERSON else label_errors(state, name)


def _held_share(state: JudgingState, name: str, n: int) -> float:
    r"""Return the share of the expected gain that labels of a machine bring: at most 1, and 1 before it has labels.

    Errors that a labeller makes alike on many pairs are not in :math:`V`, so further labels tell less than it says. As
    a test, ``n`` of its labels (half of them, if there are fewer) are taken away and the model is fitted without. The
    share is the fall of :math:`\text{tr}(M\, \text{Cov}[\text{scores}])` that they bring, divided by :math:`V`.
    """
    labels, there = state.estimate.problem.labels, np.flatnonzero(labelled_by(state, name) & state.open)
    n = min(n, len(there) // 2)
    if labels is None or n < 1:
        return 1.0
    taken = state.context.stream(Purpose.WORTH).permutation(there)[:n]
    values, shares = labels.values.copy(), dict(labels.probabilities)
    values[taken, labels.sources.index(name)] = np.nan
    if name in shares:
        shares[name] = shares[name].copy()
        shares[name][taken] = np.nan
    before = state.labelled(replace(labels, values=values, probabilities=shares))
    expected = expected_gain(before.context, state.goal, taken, *label_errors(before, name))
    fall = score_value(before.context, state.goal) * (before.scores.covariance - state.scores.covariance)
    return float(np.clip(fall.sum() / expected, 0.0, 1.0)) if expected > 0 else 1.0


def labels_at_once(state: JudgingState, prices: AnswerPrices, name: str, n: int) -> int:
    """Return the most labels of a machine in one request: the cost of ``n`` judgments, or .1 of the pool."""
    most = max(round(AT_ONCE * len(state.judging.pool)), FEWEST)
    return max(min(round(n * prices.person / prices.all[name]), most), 1)


def _test(state: JudgingState, machines: Iterable[str], n: int) -> Request | None:
    """Return the pairs whose judgments tell what the labels of a new machine are worth; None if all are tested."""
    for name in machines:
        labelled = labelled_by(state, name)
        left = TESTED - int((labelled & state.prediction.relevance.certain).sum())
        offered = state.open & labelled
        if left > 0 and offered.any():
            with one_thread():
                batch = choose(
                    state.context, state.judging.policy, min(n, left), goal=Goal.parse("trust"), offered=offered
                )
            return Request(PERSON, batch, {}, name)
    return None


def expected_gain(
    context: SelectionContext,
    goal: Goal,
    pairs: Ints,
    weights: Floats,
    errors: Floats,
) -> float:
    r"""Return the value :math:`V` of the answers about some pairs: judgments, or labels with errors.

    Parameters
    ----------
    context, goal, pairs
        The state, the goal, and the pairs.
    weights, errors
        The probabilities of the variances that the errors of answers may have, and these, infinite for noise, shapes
        (setting,).
    """
    between = context.dependence.between(pairs)
    np.fill_diagonal(between, context.gain_variance[pairs])
    # K = Q diag(k) Q', so V(v) = sum_i [Q'G M G'Q]_ii / (k_i + v): one decomposition for all variances.
    spread, axes = eigh(between)
    turned = axes.T @ covariance_for(context, goal)[pairs]
    along = ((turned @ score_value(context, goal)) * turned).sum(axis=1)
    seen = np.maximum(spread, 0.0)[:, None] + errors
    each = np.divide(along[:, None], seen, out=np.zeros(seen.shape), where=(seen > TIE) & np.isfinite(seen))
    return float(each.sum(axis=0) @ weights)
