"""Measures as values: their grammar, registry and properties.

``nDCG@10``, ``P(rel=2)@10``, ``RBP(p=0.8)``, ``DCG(gain="exp", discount="jk")@10``: the text parses to the value and
the value prints as the text. The computation is in the kernels (`linear`, `ratio`, `cascade`, `recall`).
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

import numpy as np

from probeval.arrays import Floats
from probeval.data.scale import Scale
from probeval.display import Described, Record, Table, fact_table
from probeval.errors import MetricError, did_you_mean
from probeval.extensions import Registry
from probeval.metrics.lists import Lists

__all__ = ["REGISTRY", "Metric", "MetricDefinition", "define", "parse"]

Value = str | float | int | tuple[float, ...] | None
Kernel = Callable[["Metric", Lists], Floats]
TOLERANCE = 1e-6  # of shares that sum to 1


@dataclass(frozen=True, repr=False)
class Parameter(Record):
    """A parameter of a measure: its allowed values and default, or that it must be given."""

    default: Value
    doc: str
    choices: tuple[Value, ...] = ()
    low: float | None = None
    high: float | None = None
    required: bool = False
    shares: bool = False  # several numbers that sum to 1
    always: bool = False  # in the name of the measure even at its default, which not all tools share

    def check(self, metric: str, name: str, value: Value) -> Value:
        """Return the value in canonical form, or raise an error."""
        if value is None or value == self.default:
            return self.default
        if self.choices:
            if value in self.choices:
                return value
            wanted = " or ".join(repr(c) for c in self.choices if c is not None)
        elif self.shares:
            shares = value if isinstance(value, (tuple, list)) else ()
            if shares and min(shares) >= 0 and abs(sum(shares) - 1) < TOLERANCE:
                return tuple(float(share) for share in shares)
            wanted = "numbers from 0 that sum to 1, as in (0.5, 0.3, 0.2)"
        elif isinstance(value, Real) and not isinstance(value, bool):
            number = float(value)  # 2, 2.0 and numpy's 2 are the same value and print alike
            low_ok = self.low is None or number >= self.low
            if low_ok and number < (math.inf if self.high is None else self.high):
                return int(number) if number.is_integer() else number
            wanted = f"at least {self.low:g}" + ("" if self.high is None else f" and below {self.high:g}")
        else:
            wanted = "a number"
        raise MetricError(f"{metric}: {name} must be {wanted}, got {value!r}.")


@dataclass(frozen=True)
class MetricDefinition:
    """A measure's entry in the registry.

    Parameters
    ----------
    name, summary
        The name and a one-line description.
    formula
        The formula in LaTeX.
    parameters
        The parameters by name, in printing order.
    cutoff
        Whether ``@k`` is ``"optional"``, ``"required"`` or ``"none"``; or the number of ranks, where it is fixed.
    kernel
        The function that scores every list.
    rank_weights
        For a weighted sum of gains: the weights of the first ranks, before normalisation.
    gains
        The gain of each grade, if the measure uses gains.
    ceiling
        For a measure of endless lists: the score if every unjudged document, also past the end, had the top grade.
    bounds
        The method of bounds over unjudged documents: ``"monotone"`` (higher grades never lower the score), ``"ratio"``
        (weighted gains over the ideal list's), ``"precision"`` (AP), ``"found"`` (a function of the numbers of relevant
        documents found and existing), or None without exact bounds.
    limits
        The least and the most that a score can be, before ``norm="none"`` lifts the most.
    module
        Where it is defined.
    """

    name: str
    summary: str
    formula: str
    parameters: Mapping[str, Parameter]
    cutoff: str | int
    kernel: Kernel
    rank_weights: Callable[[Metric, int], Floats] | None
    gains: Callable[[Metric, Scale], Floats] | None
    ceiling: Kernel | None
    bounds: Callable[[Metric], str | None]
    limits: tuple[float, float]

    module: str = ""

    @property
    def is_own(self) -> bool:
        """Whether the measure is one of the package's."""
        return self.module.partition(".")[0] == __name__.partition(".")[0]


MANY = 1000  # documents outside a list, which a score relative to the ideal list must notice
REGISTRY: Registry[MetricDefinition] = Registry("measure", __name__, group="probeval.metrics", error=MetricError)

# Names of measures in other tools, for hints in errors.
ALIASES = {
    "map": "AP", "map_cut": "AP@10", "ndcg_cut": "nDCG@10", "ndcg_cut_10": "nDCG@10", "p_10": "P@10", "mrr": "RR",
    "recip_rank": "RR", "recall": "R@100", "precision": "P@10", "hit": "Success@10", "success_10": "Success@10",
    "set_p": "SetP", "set_recall": "SetR", "set_f": "SetF", "f1": "F@10", "r-prec": "Rprec", "iprec": "AP",
}  # fmt: skip


@dataclass(frozen=True)
class Metric(Described):
    """An effectiveness measure with its parameters and cutoff.

    Examples
    --------
    >>> from probeval.metrics import nDCG, P, parse
    >>> nDCG(gain="exp") @ 10
    nDCG(gain="exp")@10
    >>> parse("P(rel=2)@10") == P(rel=2) @ 10
    True
    >>> (P @ 10).is_linear, (nDCG @ 10).is_linear
    (True, False)
    """

    name: str
    cutoff: int | None = None
    parameters: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        definition = self.definition
        for given in self.parameters:
            if given not in definition.parameters:
                takes = ", ".join(definition.parameters) or "no parameter"
                hint = did_you_mean(given, definition.parameters)
                raise MetricError(f"{self.name} takes {takes}; got {given!r}.{hint}")
        complete = {
            name: parameter.check(self.name, name, self.parameters.get(name))
            for name, parameter in definition.parameters.items()
        }
        object.__setattr__(self, "parameters", MappingProxyType(complete))
        if isinstance(definition.cutoff, int):
            if self.cutoff not in (None, definition.cutoff):
                raise MetricError(f"{self.name} is of the first {definition.cutoff} documents, got @{self.cutoff}.")
            object.__setattr__(self, "cutoff", definition.cutoff)
        elif self.cutoff is not None:
            if definition.cutoff == "none":
                raise MetricError(f"{self.name} takes no cutoff, got @{self.cutoff}.")
            if not isinstance(self.cutoff, Integral) or isinstance(self.cutoff, bool) or self.cutoff < 1:
                raise MetricError(f"{self.name}: the cutoff must be a whole number from 1, got @{self.cutoff}.")
            object.__setattr__(self, "cutoff", int(self.cutoff))

    @property
    def definition(self) -> MetricDefinition:
        """The measure's entry in the registry."""
        if self.name not in REGISTRY:
            raise _unknown(self.name)
        return REGISTRY[self.name]

    def __call__(self, **parameters: Value) -> Metric:
        """Return the measure with other parameters."""
        return replace(self, parameters={**self.parameters, **parameters})

    def __matmul__(self, cutoff: int) -> Metric:
        """Return the measure at a cutoff."""
        return replace(self, cutoff=cutoff)

    def __getitem__(self, parameter: str) -> Value:
        return self.parameters[parameter]

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Callable[..., Metric], tuple[Any, ...]]:
        content = (self.name, self.cutoff, dict(self.parameters))  # a mapping proxy does not pickle
        return (Metric, content) if self.definition.is_own else (_received, (*content, REGISTRY.carried(self.name)))

    def __str__(self) -> str:
        defaults = self.definition.parameters
        shown = ", ".join(
            f"{name}={_spell(value)}"
            for name, value in self.parameters.items()
            if value != defaults[name].default or defaults[name].always
        )
        cutoff = "" if self.cutoff in (None, self.definition.cutoff) else f"@{self.cutoff}"
        return self.name + (f"({shown})" if shown else "") + cutoff

    __repr__ = __str__

    def _headline(self) -> str:
        return str(self)

    def tables(self) -> tuple[Table, ...]:
        """The meaning of the measure, its cutoff and its parameters."""
        about: dict[str, object] = {"measures": self.definition.summary}
        if self.cutoff is not None:
            about["cutoff"] = self.cutoff
        return (Table(fact_table(about | dict(self.parameters)), str(self)),)

    def number(self, parameter: str) -> float:
        """Return a numeric parameter."""
        value = self.parameters[parameter]
        assert isinstance(value, (int, float))
        return float(value)

    def completed(self, cutoff: int = 10) -> Metric:
        """Return the measure with what it lacks: the cutoff, and the first choice of parameters that it needs.

        >>> parse("P").completed(), parse("PSat").completed()
        (P@10, PSat(mapping="CGl@5/broad"))
        """
        missing = {n: p.choices[0] for n, p in self.definition.parameters.items() if p.required and self[n] is None}
        lacks_cutoff = self.definition.cutoff == "required" and self.cutoff is None
        return replace(self, cutoff=cutoff if lacks_cutoff else self.cutoff, parameters={**self.parameters, **missing})

    def checked(self) -> Metric:
        """Return the measure; raise an error if it lacks a cutoff or a parameter that it needs."""
        example = self.completed()
        if example != self:
            lacks = "cutoff" if example.cutoff != self.cutoff else next(n for n in self.parameters if self[n] is None)
            raise MetricError(f"{self.name} needs a {lacks}: {example}, for example.")
        return self

    def scores(self, lists: Lists) -> Floats:
        """Return the score of every list, shape (.., system, query)."""
        return self.definition.kernel(self.checked(), lists.top(self.cutoff))

    @property
    def is_linear(self) -> bool:
        """Whether the score is a weighted sum of the gains in the list, independent of documents outside it."""
        return self.definition.rank_weights is not None and self.parameters.get("norm") != "ideal"

    def needs_ideal(self, scale: Scale) -> bool:
        """Whether the score depends on documents outside the list: on the query's ideal list, or on its recall base.

        >>> [parse(m).needs_ideal(Scale.graded(2)) for m in ("nDCG@10", "AP", "R@5", "DCG@10", "P@10", "RR")]
        [True, True, True, False, False, False]
        """
        if self.is_linear:
            return False
        return not self._same_with(scale, 0, MANY)

    def counts_all(self, scale: Scale) -> bool:
        """Whether the score depends on the number of all relevant documents, however many: it has a recall base.

        An ideal list takes no more of them than it has ranks.

        >>> [parse(m).counts_all(Scale.graded(2)) for m in ("AP@10", "R@10", "Rprec", "nDCG@10", "DCG@10")]
        [True, True, True, False, False]
        """
        return not self.is_linear and not self._same_with(scale, MANY, 2 * MANY)

    def _same_with(self, scale: Scale, few: int, many: int) -> bool:
        """Return whether lists have the same scores with few and with many relevant documents outside them."""
        top = len(scale) - 1
        found = np.array([[top, 0, top], [1, 0, 1], [1, 1, 0]], dtype=np.int16)[:, None]  # (system, query, rank)
        counts = np.array([[3, 2, *[0] * (top - 1)]])
        one, other = (self.scores(Lists(scale, found, counts + more)) for more in (few, many))
        return np.array_equal(one, other)

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and highest possible score; infinite without a limit.

        >>> parse("nDCG@10").limits, parse("DCG(norm='none')@10").limits
        ((0.0, 1.0), (0.0, inf))
        """
        least, most = self.definition.limits
        return least, math.inf if self.parameters.get("norm") == "none" else most

    def rank_weights(self, depth: int) -> Floats:
        """Return the weight of each rank before normalisation, 0 past the cutoff, shape (depth,)."""
        if self.definition.rank_weights is None:
            raise MetricError(f"{self} is not a weighted sum of gains.")
        weights = self.definition.rank_weights(self, depth)
        weights[self.cutoff or depth :] = 0
        return weights

    def weights(self, scale: Scale, depth: int) -> Floats:
        """Return the weight of a unit of gain at each rank, shape (depth,): the score is ``gains @ weights``.

        See docs/theory/measures.md#lin.
        """
        if not self.is_linear:
            raise MetricError(f"{self} is not linear in the gains, so its ranks have no fixed weights.")
        weights = self.rank_weights(depth)
        norm = self.parameters.get("norm")
        if norm == "none":
            return weights
        top = float(self.gains(scale).max()) or 1.0
        return weights / (top * self.rank_weights(self.cutoff or depth).sum() if norm == "perfect" else top)

    def gains(self, scale: Scale) -> Floats:
        """Return the gain of each grade under this measure, shape (grade,)."""
        if self.definition.gains is None:
            raise MetricError(f"{self} is not a function of gains.")
        return self.definition.gains(self, scale)


def define(
    name: str,
    summary: str,
    formula: str,
    *,
    parameters: Mapping[str, Parameter] | None = None,
    cutoff: str | int = "optional",
    rank_weights: Callable[[Metric, int], Floats] | None = None,
    gains: Callable[[Metric, Scale], Floats] | None = None,
    ceiling: Kernel | None = None,
    bounds: str | Callable[[Metric], str | None] | None = "monotone",
    limits: tuple[float, float] = (0.0, 1.0),
) -> Callable[[Kernel], Metric]:
    """Register a kernel as a measure, and return the measure with every parameter at its default.

    A measure from outside the package works by its name from then on, and takes its definition along to other
    processes. The name of a measure of the package is refused; ``del REGISTRY[name]`` takes a measure out again.
    """
    module = str(sys._getframe(1).f_globals.get("__name__", ""))

    def register(kernel: Kernel) -> Metric:
        how = bounds if callable(bounds) else lambda _: bounds
        definition = MetricDefinition(
            name, summary, formula, parameters or {}, cutoff, kernel, rank_weights, gains, ceiling, how, limits, module
        )
        REGISTRY.add(name, definition, own=definition.is_own)
        return Metric(name)

    return register


def _received(name: str, cutoff: int | None, parameters: dict[str, Value], definition: bytes) -> Metric:
    """A measure from outside, here or in another process."""
    REGISTRY.receive(name, definition)
    return Metric(name, cutoff, parameters)


def parse(text: str) -> Metric:
    """Parse a measure.

    >>> parse('DCG(gain="exp", discount="jk")@10')
    DCG(gain="exp", discount="jk")@10
    >>> parse("NDGC@10")
    Traceback (most recent call last):
    probeval.errors.MetricError: Unknown metric 'NDGC@10'. Did you mean 'nDCG@10'?
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _unreadable(text) from None
    cutoff: Value = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        cutoff = _constant(node.right, text)
        node = node.left
    parameters = {}
    if isinstance(node, ast.Call):
        names = [k.arg for k in node.keywords]
        if node.args or None in names or len(set(names)) < len(names):
            raise _unreadable(text)
        parameters = {str(k.arg): _constant(k.value, text) for k in node.keywords}
        node = node.func
    if isinstance(node, ast.Tuple):
        raise MetricError(
            f"Cannot read {text!r} as a metric: it names {len(node.elts)}. Name one; give several as separate metrics."
        )
    if not isinstance(node, ast.Name):
        raise _unreadable(text)
    name = _canonical(node.id)
    if name is None:
        raise _unknown(text)
    if isinstance(cutoff, (str, float, tuple)):
        raise MetricError(f"{text}: the cutoff must be a whole number from 1, got @{cutoff}.")
    return Metric(name, cutoff, parameters)


def _canonical(name: str) -> str | None:
    """The name as it is registered; case matters for single letters only."""
    for _ in range(2):
        if name in REGISTRY:
            return name
        folded = {known.lower(): known for known in REGISTRY}
        if len(name) > 1 and name.lower() in folded:
            return folded[name.lower()]
        REGISTRY.load()  # perhaps an installed package has it
    return None


def _constant(node: ast.expr, text: str) -> Value:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return sign * node.value
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and sign == 1:
        return node.value
    if isinstance(node, ast.Name) and sign == 1:
        return node.id
    if isinstance(node, ast.Tuple) and sign == 1:
        numbers = [_constant(part, text) for part in node.elts]
        if all(isinstance(number, (int, float)) for number in numbers):
            return tuple(float(number) for number in numbers)  # type: ignore[arg-type]
    raise _unreadable(text)


def _spell(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _unreadable(text: str) -> MetricError:
    return MetricError(f"Cannot read {text!r} as a metric: expected a name, (parameters) and @cutoff, as in nDCG@10.")


def _unknown(text: str) -> MetricError:
    name, _, cutoff = text.partition("@")
    name = name.partition("(")[0].strip()
    known = ALIASES.get(name.lower())
    glued = re.fullmatch(r"(\D+?)_?(\d+)", name)
    if known is None and glued and not cutoff:  # P10, ndcg_20
        name, cutoff = glued.groups()
        known = ALIASES.get(name.lower(), _canonical(name))
    if known is None:
        likely = [n for n in REGISTRY if len(n) > 1 or len(name) == 1]  # 'foo' is near 'F' but does not mean it
        near = did_you_mean(name, likely, suffix=cutoff and "@" + cutoff)
        return MetricError(f"Unknown metric {text!r}." + (near or f" Known: {', '.join(REGISTRY)}."))
    meant = f"{known.partition('@')[0]}@{cutoff}" if cutoff else known
    return MetricError(f"Unknown metric {text!r}. Did you mean {meant!r}?")
