"""A measure is a value: its grammar, its registry, and what it can say of itself.

``nDCG@10``, ``P(rel=2)@10``, ``RBP(p=0.8)``, ``DCG(gain="exp", discount="jk")@10``: the text parses to the value and
the value prints as the text. The computation stands in the kernels (`linear`, `ratio`, `cascade`, `recall`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from types import MappingProxyType

from probeval.arrays import Floats
from probeval.data.scale import Scale
from probeval.errors import MetricError, did_you_mean
from probeval.metrics.lists import Lists

__all__ = ["REGISTRY", "Metric", "MetricDefinition", "define", "parse"]

Value = str | float | int | None
Kernel = Callable[["Metric", Lists], Floats]


@dataclass(frozen=True)
class Parameter:
    """What a parameter may be, and what it is when nothing is said."""

    default: Value
    doc: str
    choices: tuple[Value, ...] = ()
    low: float | None = None
    high: float | None = None

    def check(self, metric: str, name: str, value: Value) -> Value:
        """The value in its canonical form, or an error."""
        if value is None or value == self.default:
            return self.default
        if self.choices:
            if value in self.choices:
                return value
            wanted = " or ".join(repr(c) for c in self.choices if c is not None)
        elif isinstance(value, Real) and not isinstance(value, bool):
            number = float(value)  # 2, 2.0 and numpy's 2 are one value and print as one
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
        What it is called and what it says, in a line.
    formula
        The mathematics, in LaTeX.
    parameters
        By name, in the order in which they print.
    cutoff
        Whether ``@k`` is ``"optional"``, ``"required"`` or ``"none"``.
    kernel
        The score of every list.
    rank_weights
        For a weighted sum of gains: the weight of each of so many ranks, before any normalisation.
    gains
        The gain of each grade, where the measure uses gains.
    ceiling
        For a measure of endless lists: the score if all that is not judged, past the end too, had the top grade.
    bounds
        How the unjudged bound it: ``"monotone"`` (higher grades never lower it), ``"ratio"`` (weighted gains over
        the ideal list's), ``"precision"`` (AP), ``"found"`` (a function of how many relevant documents are found, out
        of how many), or None where no exact bound is offered.
    limits
        The least and the most that a score can be, before ``norm="none"`` lifts the most.
    """

    name: str
    summary: str
    formula: str
    parameters: Mapping[str, Parameter]
    cutoff: str
    kernel: Kernel
    rank_weights: Callable[[Metric, int], Floats] | None
    gains: Callable[[Metric, Scale], Floats] | None
    ceiling: Kernel | None
    bounds: Callable[[Metric], str | None]
    limits: tuple[float, float]


REGISTRY: dict[str, MetricDefinition] = {}

# What other tools call these, for the hint in an error.
ALIASES = {
    "map": "AP", "map_cut": "AP@10", "ndcg_cut": "nDCG@10", "ndcg_cut_10": "nDCG@10", "p_10": "P@10", "mrr": "RR",
    "recip_rank": "RR", "recall": "R@100", "precision": "P@10", "hit": "Success@10", "success_10": "Success@10",
    "set_p": "SetP", "set_recall": "SetR", "set_f": "SetF", "f1": "F@10", "r-prec": "Rprec", "iprec": "AP",
}  # fmt: skip


@dataclass(frozen=True)
class Metric:
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
        if self.cutoff is not None:
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
        """The same measure with other parameters."""
        return replace(self, parameters={**self.parameters, **parameters})

    def __matmul__(self, cutoff: int) -> Metric:
        """The same measure at a cutoff."""
        return replace(self, cutoff=cutoff)

    def __getitem__(self, parameter: str) -> Value:
        return self.parameters[parameter]

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[type[Metric], tuple[str, int | None, dict[str, Value]]]:
        return Metric, (self.name, self.cutoff, dict(self.parameters))  # a mapping proxy does not pickle

    def __str__(self) -> str:
        defaults = self.definition.parameters
        said = ", ".join(
            f"{name}={_spell(value)}" for name, value in self.parameters.items() if value != defaults[name].default
        )
        return self.name + (f"({said})" if said else "") + ("" if self.cutoff is None else f"@{self.cutoff}")

    __repr__ = __str__

    def number(self, parameter: str) -> float:
        """A parameter that is a number."""
        value = self.parameters[parameter]
        assert isinstance(value, (int, float))
        return float(value)

    def scores(self, lists: Lists) -> Floats:
        """The score of every list, shape (.., system, query)."""
        if self.definition.cutoff == "required" and self.cutoff is None:
            raise MetricError(f"{self.name} needs a cutoff: {self}@10, for example.")
        return self.definition.kernel(self, lists.top(self.cutoff))

    @property
    def is_linear(self) -> bool:
        """Whether the score is a weighted sum of the gains in the list, whatever else the query had to offer."""
        return self.definition.rank_weights is not None and self.parameters.get("norm") != "ideal"

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the most that a score can be; infinite where nothing limits it.

        >>> parse("nDCG@10").limits, parse("DCG(norm='none')@10").limits
        ((0.0, 1.0), (0.0, inf))
        """
        least, most = self.definition.limits
        return least, math.inf if self.parameters.get("norm") == "none" else most

    def rank_weights(self, depth: int) -> Floats:
        """The weight of each rank before any normalisation, 0 past the cutoff, shape (depth,)."""
        if self.definition.rank_weights is None:
            raise MetricError(f"{self} is not a weighted sum of gains.")
        weights = self.definition.rank_weights(self, depth)
        weights[self.cutoff or depth :] = 0
        return weights

    def weights(self, scale: Scale, depth: int) -> Floats:
        """What a unit of gain is worth at each rank, shape (depth,): the score is ``gains @ weights``.

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
        """The gain of each grade as the measure sees it, shape (grade,)."""
        if self.definition.gains is None:
            raise MetricError(f"{self} is not a function of gains.")
        return self.definition.gains(self, scale)


def define(
    name: str,
    summary: str,
    formula: str,
    *,
    parameters: Mapping[str, Parameter] | None = None,
    cutoff: str = "optional",
    rank_weights: Callable[[Metric, int], Floats] | None = None,
    gains: Callable[[Metric, Scale], Floats] | None = None,
    ceiling: Kernel | None = None,
    bounds: str | Callable[[Metric], str | None] | None = "monotone",
    limits: tuple[float, float] = (0.0, 1.0),
) -> Callable[[Kernel], Metric]:
    """Register a kernel as a measure; what is left is the measure itself, with every parameter at its default."""

    def register(kernel: Kernel) -> Metric:
        how = bounds if callable(bounds) else lambda _: bounds
        REGISTRY[name] = MetricDefinition(
            name, summary, formula, parameters or {}, cutoff, kernel, rank_weights, gains, ceiling, how, limits
        )
        return Metric(name)

    return register


def parse(text: str) -> Metric:
    """The measure that a text names.

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
    if isinstance(cutoff, (str, float)):
        raise MetricError(f"{text}: the cutoff must be a whole number from 1, got @{cutoff}.")
    return Metric(name, cutoff, parameters)


def _canonical(name: str) -> str | None:
    if name in REGISTRY:
        return name
    folded = {known.lower(): known for known in REGISTRY}
    return folded.get(name.lower()) if len(name) > 1 else None


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
        likely = [n for n in REGISTRY if len(n) > 1 or len(name) == 1]  # 'foo' is near 'F', and not meant for it
        near = did_you_mean(name, likely, suffix=cutoff and "@" + cutoff)
        return MetricError(f"Unknown metric {text!r}." + (near or f" Known: {', '.join(REGISTRY)}."))
    meant = f"{known.partition('@')[0]}@{cutoff}" if cutoff else known
    return MetricError(f"Unknown metric {text!r}. Did you mean {meant!r}?")
