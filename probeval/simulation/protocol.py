"""The settings of a simulation: measure, policies, stopping rules and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from math import ceil
from typing import Any

from probeval.data.collection import Collection
from probeval.data.scale import Gain, Scale
from probeval.display import Record
from probeval.errors import SelectionError, did_you_mean
from probeval.metrics import AnyMetric, Metric
from probeval.relevance import Card
from probeval.relevance.cards.added import as_predicting, model_name
from probeval.relevance.models.base import Predicts
from probeval.reliability.multiple import SIGNIFICANCE
from probeval.scores.compare import check_rope
from probeval.scores.evaluate import as_metric, check_method
from probeval.scores.ppi import check_linear
from probeval.selection import AnswerPrices, Goal, Policy, PolicyFunction, Stopping
from probeval.selection.batch import check_exploration
from probeval.selection.policies import as_policy
from probeval.selection.topics import check_stay, check_topics
from probeval.simulation.heldout import HeldOut
from probeval.simulation.machines import find_allocation
from probeval.simulation.significance_rules import RuleSettings

__all__ = ["SIMULATION_CHECKPOINTS", "Contender", "SimulationProtocol", "check_noise", "label_baselines"]

SIMULATION_CHECKPOINTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)  # of the pool
LATE = 0.1  # of the pool is judged when late batches begin
MODEL = "hierarchical"  # of every policy without one: the calibrated model
LABEL_BASELINES = ("random:labels", "random:calibrated", "random:ppi", "lara:calibrated")


@dataclass(frozen=True)
class Contender:
    """A policy and its model.

    The model ``ppi`` is no relevance model: it is ``labels``, with scores by the method ``ppi``.

    Parameters
    ----------
    policy, model
        The policy, and the name of the model.
    given
        The model itself; None to find it by its name.

    Examples
    --------
    >>> Contender.parse("mtc"), Contender.parse("gain:uniform")
    (Contender(policy=Policy('mtc'), model='hierarchical'), Contender(policy=Policy('gain'), model='uniform'))
    >>> ppi = Contender.parse("random:ppi:gpt4o")
    >>> ppi.relevance_model, ppi.method
    ('labels:gpt4o', 'ppi')
    """

    policy: Policy
    model: str
    given: Card | Predicts | None = field(default=None, repr=False)

    @classmethod
    def parse(
        cls,
        contender: str | Policy | PolicyFunction | Contender,
        *,
        model: str | Card | Predicts | None = None,
    ) -> Contender:
        """Parse ``POLICY`` or ``POLICY:MODEL``, or take a policy; ``model`` is the model if none is named.

        Without either it is the hierarchical one, whatever the policy. The published pairing is ``mtc:independent``.
        A model that uses labels may name their column: ``random:labels:COLUMN``. A model may also be given itself.
        """
        if isinstance(contender, Contender):
            return contender
        named = ""
        if isinstance(contender, str):
            contender, _, named = contender.partition(":")
        policy = as_policy(contender)
        if named:
            return cls(policy, named)
        if model is None or isinstance(model, str):
            return cls(policy, model or MODEL)
        return cls(policy, model_name(model), model if isinstance(model, Card) else as_predicting(model))

    def __hash__(self) -> int:
        return hash((self.policy, self.model))  # a model need not be hashable

    def __str__(self) -> str:
        return f"{self.policy}:{self.model}"

    @property
    def method(self) -> str | None:
        """The method of scores, as in :func:`probeval.scores.evaluate`."""
        return "ppi" if self.model.partition(":")[0] == "ppi" else None

    @property
    def relevance_model(self) -> str:
        """The name of the relevance model."""
        return self.model if self.method is None else f"labels{self.model.removeprefix('ppi')}"


def label_baselines(metric: AnyMetric, *, column: str | None = None) -> tuple[str, ...]:
    """Return the policies that show the value of labels without a model of relevance.

    Parameters
    ----------
    metric
        The measure; ``ppi`` is among them if it is linear.
    column
        The column of labels; None for the mean over all columns.

    Examples
    --------
    >>> label_baselines("nDCG@10", column="gpt4o")
    ('random:labels:gpt4o', 'random:calibrated:gpt4o', 'lara:calibrated:gpt4o')
    """
    linear, suffix = as_metric(metric).is_linear, f":{column}" if column else ""
    return tuple(name + suffix for name in LABEL_BASELINES if linear or Contender.parse(name).method != "ppi")


JSON_TYPES = (str, int, float, type(None))  # of settings; others are written by their names
READERS: dict[str, Callable[[Any], Any]] = {  # of settings that may be given by name
    "scale": lambda scale: Scale.parse(scale) if isinstance(scale, str) else scale,
    "goal": Goal.parse,
    "stop": Stopping.parse,
    "checkpoints": tuple,
    "refresh": lambda refresh: refresh or 1,
    "rules": lambda rules: None if rules is None else RuleSettings.parse(rules),
    "prices": lambda prices: None if prices is None else AnswerPrices.parse(prices),
    "allocations": tuple,
}


@dataclass(frozen=True, repr=False)
class SimulationProtocol(Record):
    """The settings of a simulation. :meth:`of` builds them from names.

    Parameters
    ----------
    metric
        The measure.
    policies
        The policies, each with the name of its model.
    depth, scale, gain
        The depth of the pool (None: the measure's cutoff, or whole runs without one), the grades (None: those of the
        judgments), and their gains (see :meth:`Scale.with_gain`; None: those of the scale).
    systems
        ``"judged"``: systems with more than .99 of their documents judged; ``"all"``: all systems, where pairs without
        a judgment have the lowest grade in the truth and are never offered.
    goal
        The goal of the judging.
    stop, rope
        The stopping rules, and the largest difference between systems that does not matter.
    batch, late_batch
        The number of pairs per batch; and, once a tenth of the pool is judged, the share of the pool per batch (None:
        ``batch`` throughout).
    checkpoints
        Shares of the pool at which all figures are computed.
    until
        The share of the pool at which trajectories end.
    explore
        The share of exploratory judgments; None: each policy's own.
    refresh
        The number of judgments between refits of the model.
    pilot
        The share of the pool judged at random before the policy starts.
    noise
        The probability that the assessor's grade is wrong.
    assessors, topics, stay
        The number of assessors, who judge in parallel; how topics are given to them: ``"free"``, ``"in-turn"`` (one
        after another, each to one assessor at a time) or ``"owned"`` (dealt evenly at the start); and the price of
        switching to another topic (:mod:`probeval.selection.topics`).
    method, family, draws
        The computation of scores, as in :class:`probeval.selection.Judging`.
    test, rules
        The test behind "significant" (:data:`probeval.reliability.SIGNIFICANCE`): of true differences, in
        ``accuracy_significant`` and for the rules of Urbano and Schedl (2012); and the settings of rule 4, with which
        tables show what these rules decide (None: its own settings, and no table).
    prices, allocations
        What an answer of each observer costs, if labels are bought: the columns of labels that have a price are hidden,
        and shown pair by pair as they are bought (None: all labels are there from the start, and cost nothing); and
        the rules that share the cost between people and machines (:data:`probeval.simulation.ALLOCATIONS`).
    seeds, seed
        The number of seeds, and the first seed.

    Examples
    --------
    >>> protocol = SimulationProtocol.of("DCG@10", policies=["gain", "random:uniform"], stop="budget=200")
    >>> [str(contender) for contender in protocol.policies]
    ['gain:hierarchical', 'random:uniform']
    >>> protocol.to_dict()["stop"]
    'budget=200'
    """

    metric: Metric
    policies: tuple[Contender, ...]
    depth: int | None = None
    scale: Scale | None = None
    gain: Gain | None = None
    systems: str = "judged"
    goal: Goal = field(default_factory=lambda: Goal.parse("ranking"))
    stop: Stopping = field(default_factory=lambda: Stopping.parse("confidence=.95"))
    rope: float = 0.0
    batch: int = 1
    late_batch: float | None = None
    checkpoints: tuple[float, ...] = SIMULATION_CHECKPOINTS
    until: float = 1.0
    explore: float | None = None
    refresh: int = 1
    pilot: float = 0.0
    noise: float = 0.0
    assessors: int = 1
    topics: str = "free"
    stay: float = 0.0
    method: str | None = None
    family: str | None = None
    draws: int = 1000
    test: str = "t"
    rules: RuleSettings | None = None
    prices: AnswerPrices | None = None
    allocations: tuple[str, ...] = ("gain",)
    seeds: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.seeds, self.batch, self.assessors) < 1 or not self.policies:
            raise SelectionError(
                "A simulation needs at least one policy, one seed and one assessor, and batches of at least one."
            )
        if self.late_batch is not None and not 0 < self.late_batch <= 1:
            raise SelectionError(f"A late batch is a share of the pool above 0, at most 1; got {self.late_batch:g}.")
        if any(not 0 <= share <= 1 for share in (*self.checkpoints, self.pilot)) or not 0 < self.until <= 1:
            raise SelectionError("Checkpoints, pilot and until are shares of the pool, from 0 to 1.")
        if self.explore is not None:
            check_exploration(self.explore)
        check_noise(self.noise)
        check_topics(self.topics)
        check_stay(self.stay)
        check_rope(self.rope)
        if self.test not in SIGNIFICANCE:
            raise SelectionError(
                f"No test {self.test!r}: {', '.join(SIGNIFICANCE)}.{did_you_mean(self.test, SIGNIFICANCE)}"
            )
        if self.method == "ppi":
            raise SelectionError("ppi goes with policies, one by one: random:ppi, not the method ppi for all of them.")
        if self.method is not None:
            check_method(self.metric, self.method)
        for name in self.allocations:
            find_allocation(name)
        if self.prices is not None and (self.assessors > 1 or self.topics != "free" or self.stay):
            raise SelectionError("With prices, one assessor judges at a time: use assessors 1, topics free and stay 0.")
        for contender in self.policies:
            if any(c.model == contender.model and c.given is not contender.given for c in self.policies):
                raise SelectionError(f"Two models are named {contender.model}. Give one of them another name.")
        for contender in (c for c in self.policies if c.method == "ppi"):
            check_linear(self.metric)
            if not contender.policy.at_random:
                raise SelectionError(f"ppi needs judgments in random order: random:{contender.model}, not {contender}.")
            if self.topics != "free" or self.stay:
                raise SelectionError("ppi needs judgments in random order, not by topic: use topics free and stay 0.")

    @classmethod
    def of(
        cls,
        metric: AnyMetric,
        *,
        policies: Sequence[str | Policy | PolicyFunction | Contender] = ("gain",),
        model: str | Card | Predicts | None = None,
        **settings: Any,
    ) -> SimulationProtocol:
        """Build from names.

        Policies are ``POLICY``, ``POLICY:MODEL`` or, for models of labels, ``POLICY:MODEL:COLUMN``, or policies
        themselves; the default model is ``model`` (a name, a card or a model), or the hierarchical one. The model is
        refitted after every batch unless ``refresh`` is given. Scale, goal, stop and rules may be texts, such as
        ``gate=.95,sd=.248`` for the rules. The rest is as above.
        """
        read = {name: READERS[name](value) if name in READERS else value for name, value in settings.items()}
        contenders = dict.fromkeys(Contender.parse(policy, model=model) for policy in policies)
        return cls(as_metric(metric), tuple(contenders), **read)

    def hold_out(self, collection: Collection) -> HeldOut:
        """Return the held-out collection, with the depth, systems, grades and gains of the protocol."""
        held = HeldOut.of(
            collection, depth=self.depth or self.metric.cutoff or collection.runs.depth, systems=self.systems
        )
        scale = held.scale if self.scale is None else held.collection.scale(self.scale)
        return replace(held, scale=scale if self.gain is None else scale.with_gain(self.gain))

    def batch_size(self, judged: int, pool: int) -> int:
        """Return the size of the next batch, with this many of the pool's pairs judged.

        Examples
        --------
        >>> protocol = SimulationProtocol.of("DCG@10", batch=10, late_batch=0.01)
        >>> protocol.batch_size(299, 3000), protocol.batch_size(300, 3000)
        (10, 30)
        """
        if self.late_batch is None or judged < LATE * pool:
            return self.batch
        return ceil(self.late_batch * pool - 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data for JSON."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        found = {name: value if isinstance(value, JSON_TYPES) else str(value) for name, value in found.items()}
        gain = self.gain if self.gain is None or isinstance(self.gain, str) else ",".join(map(str, self.gain))
        policies = [str(contender) for contender in self.policies]
        return {
            **found,
            "policies": policies,
            "checkpoints": list(self.checkpoints),
            "gain": gain,
            "allocations": list(self.allocations),
        }


def check_noise(noise: float) -> None:
    """Raise an error unless the noise is between 0 and 1."""
    if not 0 <= noise <= 1:
        raise SelectionError(f"Noise is the probability of a wrong grade, between 0 and 1; got {noise:g}.")
