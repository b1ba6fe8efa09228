"""Model cards: the parameters of fitted models, their training data, evaluation and limits.

On disk a card is a folder with ``card.json`` and a README, never pickle. Bundled cards have names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from probeval.characters import readable
from probeval.data.collection import Collection
from probeval.data.files import read_bytes, write_bytes
from probeval.data.scale import Scale
from probeval.display import Table, fact_table
from probeval.errors import DataError, FeatureError, ModelError, ScaleError, did_you_mean
from probeval.features import FeatureName, feature_names
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.models.base import FallbackModel, FittedModel
from probeval.relevance.models.baseline import Empirical, Uniform
from probeval.relevance.models.hierarchical import Hierarchical
from probeval.relevance.models.ordinal import FittedOrdinal
from probeval.relevance.normal import Normal
from probeval.results import Result, key

__all__ = ["Card", "card_names", "load_card", "read_card", "write_card"]

# Schema 1 had another name for the cutpoint scale; 2 had no shrinkage of means, and terms standardised alike in all
# campaigns; 3 had biases of observers relative to relevance, and no constants of the model of labels.
SCHEMA = 4
READABLE = (1, 2, 3, 4)
# The order of the keys in card.json: what it is, then the numbers.
ORDER = (
    *("schema", "name", "title", "kind", "scale", "depth", "features", "models"),
    *("training", "evaluation", "limits", "made"),
)
ANY = "any"  # scale
FILE = "card.json"
SHELVES = (Path(__file__).parents[2] / "models", Path(__file__).parents[3] / "models")  # in a wheel; in a checkout
LARGEST, DEEPEST = 1e6, 1_000_000  # number of a model, and depth of a pool


@dataclass(frozen=True, repr=False)
class Card(Result):
    """A fitted model, with its training data, its evaluation and its limits.

    Parameters
    ----------
    models
        The models, from the most to the least informed.
    """

    name: Annotated[str, "Its name."]
    title: Annotated[str, "A description in one line."]
    models: Sequence[FittedModel | Hierarchical]
    scale: Annotated[str, "The scale of its grades by default."]
    depth: Annotated[int, "The depth of the pools that it was fitted on."]
    training: Annotated[
        Mapping[str, Any], "The campaigns that it was fitted on, counts, and a fingerprint of the qrels of each."
    ] = field(default_factory=dict)
    evaluation: Annotated[Mapping[str, Any], "How well it did, and on what."] = field(default_factory=dict)
    limits: Annotated[tuple[str, ...], "What it is not good for."] = ()
    made: Annotated[str, "How to make it again."] = ""

    @property
    def model(self) -> FallbackModel | Hierarchical:
        """The models of the card as one."""
        first = self.models[0]
        return (
            first
            if isinstance(first, Hierarchical)
            else FallbackModel([m for m in self.models if not isinstance(m, Hierarchical)])
        )

    @key
    def schema(self) -> int:
        """The version of this document; readers refuse a newer one."""
        return SCHEMA

    @key
    def kind(self) -> str:
        """The kind of its most informed model."""
        return self.models[0].kind

    @key
    def features(self) -> dict[str, str]:
        """What each feature that it looks at means."""
        names = feature_names(term for model in self.models for term in getattr(model, "terms", ()))
        return {name: FeatureName.parse(name).definition.summary for name in names}

    @key.named("models")
    def parameters(self) -> list[dict[str, Any]]:
        """Every number of its models, from the most to the least informed."""
        return [model.to_dict() for model in self.models]

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """The fingerprint of each training qrels, by campaign."""
        return dict(self.training.get("fingerprints", {}))

    def fitted_on(self, collection: Collection) -> str | None:
        """Return the training campaign that has the judgments of this collection, if any."""
        if collection.judgments is None:
            return None
        mine = collection.judgments.fingerprint()
        return next((name for name, print_ in self.fingerprints.items() if print_ == mine), None)

    def to_dict(self) -> dict[str, Any]:
        """The card as plain data, in the order of its file."""
        data = super().to_dict()
        return {name: data[name] for name in ORDER}

    @classmethod
    def from_dict(cls, data: Any) -> Card:
        """Return the card from plain data.

        Raises
        ------
        ModelError
            If it is not a card, damaged, or of another version.
        """
        if not isinstance(data, Mapping) or "schema" not in data:
            raise ModelError("not a model card: it names no schema.")
        if data["schema"] not in READABLE:
            raise ModelError(
                f"schema {data['schema']!r} is not known here (this version reads up to {SCHEMA}). Update probeval."
            )
        try:
            return cls(
                name=_text(data, "name"),
                title=_text(data, "title"),
                models=_models(data["models"]),
                scale=_scale(data),
                depth=_depth(data["depth"]),
                training=_facts_of(data, "training"),
                evaluation=_facts_of(data, "evaluation"),
                limits=tuple(map(str, data["limits"])),
                made=_text(data, "made"),
            )
        except KeyError as error:
            raise ModelError(f"a damaged model card: it lacks {error}. Get it again.") from None
        except (TypeError, ValueError, AttributeError, ArithmeticError, FeatureError, ScaleError) as error:
            what = " ".join(str(error).rstrip(".").split())
            raise ModelError(f"a damaged model card: {what}. Get it again.") from None

    def _headline(self) -> str:
        return f"{self.name}, {self.kind}, scale {self.scale}"

    def to_frame(self) -> pd.DataFrame:
        """The main facts: what, value."""
        about = {
            "title": self.title,
            "models": ", ".join(model.kind for model in self.models),
            "scale": self.scale,
            "depth of the pools": self.depth,
            "features": ", ".join(self.features) or "none",
            "fitted on": ", ".join(map(str, self.training.get("campaigns", {}))) or "-",
            "limits": " ".join(self.limits) or "-",
            "made": self.made or "-",
        }
        return fact_table(about)

    def tables(self) -> tuple[Table, ...]:
        """The main facts, the features, the parameters of each model, the training data and the evaluation."""
        features = pd.DataFrame({"feature": list(self.features), "meaning": list(self.features.values())})
        facts = {"Training": dict(_leaves(self.training)), "Evaluation": dict(_leaves(self.evaluation))}
        found = [
            Table(self.to_frame(), self._headline()),
            Table(features, "Features"),
            *(table for number, model in enumerate(self.models, start=1) for table in _parameters(number, model)),
            *(Table(fact_table(values), title) for title, values in facts.items()),
        ]
        return tuple(table for table in found if len(table.frame))

    def readme(self) -> str:
        """The README of the card, in Markdown."""
        lines = [f"# {self.name}", "", self.title, "", f"Scale: {self.scale}. Pools to depth {self.depth}.", ""]
        for number, model in enumerate(self.models, start=1):
            lines += [f"## Model {number}: {model.kind}", ""]
            if isinstance(model, FittedOrdinal):
                head, row = "| term | coefficient | centre | spread |", "| `{}` | {:.4f} | {:.4f} | {:.4f} |"
                columns = [model.terms, model.coefficients, model.centre, model.spread]
                if model.shrinkage:
                    head, row, columns = head + " shrinkage |", row + " {:g} |", [*columns, model.shrinkage]
                lines += [head, "|---" * len(columns) + "|"]
                lines += [row.format(*each) for each in zip(*columns, strict=True)]
                lines += ["", "| levels | cutpoints |", "|---|---|"]
                lines += [f"| {n} | {', '.join(f'{c:.4f}' for c in cuts)} |" for n, cuts in model.cutpoints.items()]
                lines += [""] + [f"- {note}" for note in model.notes]
            elif isinstance(model, Hierarchical):
                lines += _prior_lines(model.prior)
            elif isinstance(model, Empirical):
                lines += [f"- {n} levels: {', '.join(f'{p:.4f}' for p in model.share(n))}" for n in model.shares]
            lines += [""]
        if self.features:
            meanings = [f"- `{name}`: {meaning}" for name, meaning in self.features.items()]
            lines += ["## Features", "", *meanings, ""]
        for title, facts in (("Training", self.training), ("Evaluation", self.evaluation)):
            if facts:
                lines += [f"## {title}", "", *_facts(facts), ""]
        if self.limits:
            lines += ["## Limits", ""] + [f"- {limit}" for limit in self.limits] + [""]
        if self.made:
            lines += ["## How it was made", "", self.made, ""]
        return "\n".join(lines)


def _text(data: Mapping[str, Any], key: str) -> str:
    if not isinstance(data[key], str):
        raise TypeError(f"{key} must be text, got {data[key]!r:.60}")
    return readable(data[key])


def _scale(data: Mapping[str, Any]) -> str:
    name = _text(data, "scale")
    if name != ANY:
        Scale.parse(name)
    return name


def _depth(depth: Any) -> int:
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= DEEPEST:
        raise ValueError(f"a depth is a whole number from 1, got {depth!r:.60}")
    return depth


def _facts_of(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Facts for people: the campaigns and fingerprints among them are mappings."""
    facts = data[key]
    parts = [facts, *(facts[name] for name in ("campaigns", "fingerprints") if name in facts)]
    if not all(isinstance(part, Mapping) for part in parts):
        raise TypeError(f"{key} must be objects, got {facts!r:.60}")
    return {readable(key): _finite_facts(value) for key, value in facts.items()}


def _finite_facts(value: Any) -> Any:
    """Facts as JSON can have them: numbers that are not finite are left out, and all texts can be encoded."""
    if isinstance(value, Mapping):
        return {readable(key): _finite_facts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite_facts(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return readable(value) if isinstance(value, str) else value


def _models(data: Sequence[Mapping[str, Any]]) -> list[FittedModel | Hierarchical]:
    if not data:
        raise ValueError("it has no model")
    return [_model(each) for each in data]


def _model(data: Mapping[str, Any]) -> FittedModel | Hierarchical:
    if data["kind"] == "uniform":
        return Uniform()
    if data["kind"] == "empirical":
        shares = {int(n): _numbers(s) for n, s in data["shares"].items()}
        if not shares or any(len(s) != n or min(s) < 0 or sum(s) <= 0 for n, s in shares.items()):
            raise ValueError("a scale needs a share for each of its levels")
        return Empirical(shares)
    if data["kind"] == "ordinal":
        return _ordinal(data)
    if data["kind"] == "hierarchical":
        return Hierarchical.from_dict(data)
    raise ValueError(f"no kind of model {data['kind']!r}")


def _ordinal(data: Mapping[str, Any]) -> FittedOrdinal:
    columns = {c: _numbers(data[c]) for c in ("centre", "spread", "coefficients")}
    if "shrinkage" in data:
        columns["shrinkage"] = _numbers(data["shrinkage"])
    if any(len(c) != len(data["terms"]) for c in columns.values()):
        raise ValueError("as many numbers as terms are needed")
    if min(columns["spread"], default=1.0) < 1 / LARGEST:
        raise ValueError(f"a spread is at least {1 / LARGEST:g}")
    if min(columns.get("shrinkage", (0.0,))) < 0:
        raise ValueError("a shrinkage is a number of documents")
    for name in feature_names(data["terms"]):
        FeatureName.parse(name)
    cutpoints = {int(n): _numbers(c) for n, c in data["cutpoints"].items()}
    if not cutpoints or any(len(c) != n - 1 or list(c) != sorted(set(c))[::-1] for n, c in cutpoints.items()):
        raise ValueError("a scale needs falling cutpoints, one fewer than its levels")
    covariance = tuple(map(_numbers, data["covariance"]))
    size = sum(map(len, cutpoints.values())) + len(data["terms"])
    if covariance and {len(covariance), *map(len, covariance)} != {size}:
        raise ValueError(f"{size} cutpoints and coefficients need a covariance of that size")
    return FittedOrdinal(
        terms=tuple(data["terms"]),
        **columns,
        cutpoints=cutpoints,
        covariance=covariance,
        log_likelihood=_log_likelihood(data["log_likelihood"]),
        notes=tuple(map(str, data["notes"])),
    )


def _log_likelihood(value: Any) -> float:
    number = float("nan") if value is None else float(value)
    if math.isinf(number):
        raise ValueError("a log-likelihood is finite")
    return number


def _numbers(values: Iterable[Any]) -> tuple[float, ...]:
    numbers = tuple(map(float, values))
    if not all(abs(number) <= LARGEST for number in numbers):
        raise ValueError(f"a number is not finite, or beyond {LARGEST:g}")
    return numbers


def _prior_lines(prior: HierarchicalPrior) -> list[str]:
    """Return the lines of the README on the prior for a new campaign."""
    lines = ["The prior for a campaign not yet seen: the predictive over past ones.", ""]
    lines += ["| coefficient of | mean | sd |", "|---|---|---|"]
    rows = zip(prior.terms, prior.coefficients, strict=True)
    lines += [f"| `{term}` | {n.mean:.3f} | {n.sd:.3f} |" for term, n in rows]
    lines += ["", "| effect of | median sd | 95% of campaigns |", "|---|---|---|"]
    for kind, n in prior.log_sds.items():
        median, low, high = _median(n)
        lines.append(f"| {kind} | {median:.3f} | {low:.3f} to {high:.3f} |")
    lines += [
        "",
        f"First cutpoint {prior.first_cut.mean:.3f} (sd {prior.first_cut.sd:.3f}); gaps by number of levels:",
        "",
    ]
    lines += [f"- {n}: {', '.join(f'{g.mean:.3f} (sd {g.sd:.3f})' for g in gaps)}" for n, gaps in prior.gaps.items()]
    lines.append(f"- any other: {prior.gap.mean:.3f} (sd {prior.gap.sd:.3f})")
    observers = prior.observers
    if observers.by_kind:
        lines += [
            "",
            "Observers: the slope of labels on relevance, in standard deviations of the labels per logit; the",
            "standard deviation of their bias towards systems, in those of the labels per logit of the effect of",
            "systems; and the probability that their scale is reversed.",
            "",
            "| observer | slope | 95% | bias | reversed |",
            "|---|---|---|---|---|",
        ]
        for name, known in (*observers.by_kind.items(), *observers.by_name.items()):
            (slope, low, high), bias = _median(known.log_slope), math.exp(known.log_bias.mean)
            about = f"{slope:.3f} | {low:.3f} to {high:.3f} | {bias:.2f} | {known.reversed:.4f}"
            lines.append(f"| {name} | {about} |")
        lines += ["", "Constants of the model of labels:", ""]
        lines += [f"- {k}: {c['value']} ({c['origin']})" for k, c in observers.constants.to_dict().items()]
    return lines


def _parameters(number: int, model: FittedModel | Hierarchical) -> Iterator[Table]:
    """The parameters of a model as tables."""
    title = f"Model {number}: {model.kind}"
    if isinstance(model, FittedOrdinal):
        columns = {"term": model.terms, "coefficient": model.coefficients, "centre": model.centre}
        columns |= {"spread": model.spread} | ({"shrinkage": model.shrinkage} if model.shrinkage else {})
        yield Table(pd.DataFrame(columns), title, {"shrinkage": 0})
        yield Table(_by_levels(model.cutpoints, "cutpoints"), f"{title}, cutpoints by the number of levels")
    elif isinstance(model, Empirical):
        yield Table(_by_levels(model.shares, "shares"), title)
    elif isinstance(model, Hierarchical):
        prior = model.prior
        coefficients = [(term, n.mean, n.sd) for term, n in zip(prior.terms, prior.coefficients, strict=True)]
        yield Table(pd.DataFrame(coefficients, columns=["coefficient of", "mean", "sd"]), title)
        effects = [(kind, *_median(n)) for kind, n in prior.log_sds.items()]
        columns_of_sds = ["effect of", "median sd", "lower", "upper"]
        yield Table(pd.DataFrame(effects, columns=columns_of_sds), f"{title}, effects, with 95% of campaigns")
        cuts = [("first cutpoint", prior.first_cut), ("other gaps", prior.gap)]
        cuts[1:1] = [(f"gap {i} of {n} levels", g) for n, gaps in prior.gaps.items() for i, g in enumerate(gaps, 1)]
        rows = [(name, n.mean, n.sd) for name, n in cuts]
        yield Table(pd.DataFrame(rows, columns=["of", "mean", "sd"]), f"{title}, cutpoints")
        known = {**prior.observers.by_kind, **prior.observers.by_name}.items()
        slopes = [(name, *_median(o.log_slope), math.exp(o.log_bias.mean), o.reversed) for name, o in known]
        columns_of_slopes = ["observer", "slope", "lower", "upper", "bias", "reversed"]
        yield Table(pd.DataFrame(slopes, columns=columns_of_slopes), f"{title}, observers")
        if slopes:
            constants = [
                (name, str(c["value"]), c["origin"]) for name, c in prior.observers.constants.to_dict().items()
            ]
            columns_of_constants = ["constant", "value", "origin"]
            yield Table(pd.DataFrame(constants, columns=columns_of_constants), f"{title}, constants of labels")


def _by_levels(values: Mapping[int, Sequence[float]], what: str) -> pd.DataFrame:
    return pd.DataFrame(
        {"levels": list(values), what: [", ".join(f"{x:.4f}" for x in each) for each in values.values()]}
    )


def _median(log: Normal) -> tuple[float, float, float]:
    """The median and the central 95% of a number whose logarithm is normal."""
    return math.exp(log.mean), math.exp(log.mean - 1.96 * log.sd), math.exp(log.mean + 1.96 * log.sd)


def _leaves(facts: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Facts without nesting: their names one after another, and their values as text."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{name}, ")
        else:
            yield f"{before}{name}", f"{value:.4g}" if isinstance(value, float) else str(value)


def _facts(facts: Mapping[str, Any], indent: str = "") -> list[str]:
    lines = []
    for name, value in facts.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}- {name}:", *_facts(value, indent + "  ")]
        else:
            lines.append(f"{indent}- {name}: {value:.4g}" if isinstance(value, float) else f"{indent}- {name}: {value}")
    return lines


def write_card(card: Card, folder: Path) -> None:
    """Write ``card.json`` and its README into a folder."""
    text = json.dumps(card.to_dict(), indent=1, ensure_ascii=False)
    write_bytes(folder / FILE, (text + "\n").encode())
    write_bytes(folder / "README.md", card.readme().encode())


def read_card(path: Path) -> Card:
    """Read a card from its folder or file."""
    file = path / FILE if path.is_dir() else path
    try:
        return Card.from_dict(json.loads(read_bytes(file)))
    except DataError as error:
        raise ModelError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file}: not a model card: {error}.") from None
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None


def _shelf() -> dict[str, Path]:
    """Return the bundled cards by name."""
    found: dict[str, Path] = {}
    for shelf in SHELVES:
        for file in sorted(shelf.glob(f"*/{FILE}")):
            found.setdefault(file.parent.name, file)
    return found


def card_names() -> list[str]:
    """Return the names of the bundled cards."""
    return sorted(_shelf())


def load_card(name: str, *, others: Iterable[str] = ()) -> Card:
    """Load a bundled card by name, or any card by the path of its folder or file; ``others`` are models without one."""
    shelf = _shelf()
    if name in shelf:
        return read_card(shelf[name])
    path = Path(name)
    if path.exists():
        return read_card(path)
    raise ModelError(
        f"No model {name!r}.{did_you_mean(name, [*shelf, *others])} 'probeval models' lists those that ship; --import "
        "FILE adds your own."
    )
