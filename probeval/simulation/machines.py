r"""Machines that label in a simulation, at a price, and the rules that share the cost between them and people.

The labels of a finished campaign are hidden, and shown pair by pair as they are bought. The square-root rule is that of
two-phase sampling, as planners of evaluations with a machine as the judge have it: with labels of price :math:`c` and
judgments of price :math:`C`, and :math:`r` the correlation of the two, the variance of a mean is lowest if there are

.. math:: \sqrt{\frac{1 - r^2}{r^2} \cdot \frac{c}{C}}

judgments per label, both of pairs drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from probeval.arrays import Bools, Ints
from probeval.data.evidence import LabelTable
from probeval.errors import SelectionError, did_you_mean
from probeval.selection import PERSON, AnswerPrices, Batch, JudgingState, Request, next_request
from probeval.selection.labellers import LEAST, choose_for_labeller, label_correlation
from probeval.selection.prices import labels_at_once
from probeval.simulation.heldout import HeldOut
from probeval.streams import Purpose, stream

__all__ = ["ALLOCATIONS", "SimulatedMachines", "find_allocation"]


@dataclass(eq=False)
class SimulatedMachines:
    """Labels of a finished campaign that can be bought.

    Parameters
    ----------
    prices
        The price of each observer.
    labels
        All labels, on the pool; None without any.
    bought
        The labels bought so far of each machine, by its name, shape (pair,).
    """

    prices: AnswerPrices
    labels: LabelTable | None
    bought: dict[str, Bools] = field(default_factory=dict)

    @classmethod
    def of(cls, held: HeldOut, prices: AnswerPrices) -> SimulatedMachines:
        """Return machines that have sold nothing; each needs a column of labels."""
        labels = held.collection.problem(depth=held.depth, scale=held.scale).labels
        there = () if labels is None else labels.sources
        for name in prices.machines or {}:
            if name not in there:
                raise SelectionError(
                    f"{name} has a price and no labels to buy: a simulated machine is a column of labels, "
                    f"{', '.join(there) or 'and there are none'}.{did_you_mean(name, there)}"
                )
        return cls(prices, labels, {name: np.zeros(len(held.pool), dtype=bool) for name in prices.machines or {}})

    @property
    def count(self) -> dict[str, int]:
        """The number of labels bought of each machine."""
        return {name: int(bought.sum()) for name, bought in self.bought.items()}

    @property
    def total(self) -> int:
        """The number of labels bought."""
        return sum(self.count.values())

    @property
    def available(self) -> dict[str, Bools]:
        """The pairs that each machine can still label, by its name, shape (pair,)."""
        if self.labels is None:
            return {}
        values = dict(zip(self.labels.sources, self.labels.values.T, strict=True))
        return {name: ~np.isnan(values[name]) & ~bought for name, bought in self.bought.items()}

    def buy(self, name: str, pairs: Ints) -> None:
        """Buy the labels of some pairs."""
        self.bought[name][pairs] = True

    @property
    def shown(self) -> LabelTable | None:
        """The labels that are known now: those bought, and those of columns without a price; None without any."""
        if self.labels is None:
            return None
        values, shares = self.labels.values.copy(), dict(self.labels.probabilities)
        for at, name in enumerate(self.labels.sources):
            if name in self.bought:
                values[~self.bought[name], at] = np.nan
                if name in shares:
                    shares[name] = np.where(self.bought[name][:, None], shares[name], np.nan)
        there = [name for at, name in enumerate(self.labels.sources) if not np.isnan(values[:, at]).all()]
        return replace(self.labels, values=values, probabilities=shares).take(there) if there else None


Allocation = Callable[[JudgingState, SimulatedMachines, int], Request | None]


def _by_worth(state: JudgingState, machines: SimulatedMachines, n: int) -> Request | None:
    return next_request(state, machines.prices, n, available=machines.available)


def _people(state: JudgingState, machines: SimulatedMachines, n: int) -> Request | None:
    return Request(PERSON, state.next(n), {})


def _labels(state: JudgingState, machines: SimulatedMachines, n: int) -> Request | None:
    for name, there in machines.available.items():
        if there.any():
            most = labels_at_once(state, machines.prices, name, n)
            return Request(name, choose_for_labeller(state, name, most, offered=there), {})
    return None


def _square_root(state: JudgingState, machines: SimulatedMachines, n: int) -> Request | None:
    labelled = np.zeros(len(state.judging.pool), dtype=bool)
    for name, there in machines.available.items():
        bought, judged = machines.bought[name], state.scores.judged
        r_squared = max(label_correlation(state, name), LEAST) ** 2
        wanted = np.sqrt((1 - r_squared) / r_squared * machines.prices.all[name] / machines.prices.person)
        if there.any() and judged >= min(wanted, 1.0) * bought.sum():
            return Request(name, _drawn(state, there, labels_at_once(state, machines.prices, name, n)), {})
        labelled |= bought
    offered = state.open & labelled
    return Request(PERSON, _drawn(state, offered if offered.any() else state.open, n), {})


def _drawn(state: JudgingState, offered: Bools, n: int) -> Batch:
    """Return pairs drawn at random."""
    open_ = np.flatnonzero(offered)
    rng = stream(state.judging.seed, len(state.judgments), int(offered.sum()), Purpose.ORDER)
    pairs = rng.permutation(open_)[:n]
    return Batch(pairs, np.full(len(pairs), np.nan))  # no draws for the audit: they are not from all open pairs


ALLOCATIONS: Mapping[str, tuple[str, Allocation]] = {
    "gain": ("whoever is expected to tell more for the price", _by_worth),
    "people": ("people alone", _people),
    "labels": ("machines alone", _labels),
    "square-root": (
        "labels and judgments of random pairs, by the square root of their prices and errors",
        _square_root,
    ),
}


def find_allocation(name: str) -> Allocation:
    """Return the rule of this name, which shares the cost between people and machines."""
    if name not in ALLOCATIONS:
        raise SelectionError(f"No allocation {name!r}: {', '.join(ALLOCATIONS)}.{did_you_mean(name, ALLOCATIONS)}")
    return ALLOCATIONS[name][1]
