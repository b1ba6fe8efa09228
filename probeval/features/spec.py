"""The registry of features: names, meanings and data sources, and tables of features."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
import pandas as pd

from probeval.arrays import Bools, Floats, frozen
from probeval.data.pool import Pool
from probeval.errors import FeatureError, did_you_mean
from probeval.results import Result

__all__ = ["DEFINITIONS", "FeatureName", "FeatureTable", "factors", "feature_names", "needs", "shrinkage"]


@dataclass(frozen=True)
class FeatureDefinition:
    """The definition of a feature: its meaning and data sources.

    Parameters
    ----------
    name, summary
        The name (with ``[column]`` if it takes one) and a one-line description.
    needs
        ``"outputs"`` (the runs alone), ``"judgments"``, ``"metadata"``, ``"labels"``, ``"vectors"`` or ``"teams"``.
    deep
        Whether it also exists at another depth, as in ``fSYS@100``.
    shrinkage
        For a mean over judgments, the number of documents that fitted models add to it at its usual value.
    """

    name: str
    summary: str
    needs: tuple[str, ...]
    deep: bool = False
    shrinkage: float = 0.0

    @property
    def takes_column(self) -> bool:
        """Whether it is named with a column, as in ``f[domain]``."""
        return self.name.endswith("[column]")


DEFINITIONS = {
    d.name.removesuffix("[column]") + ("[]" if d.takes_column else ""): d
    for d in (
        FeatureDefinition("fSYS", "share of the systems with the document in their top k", ("outputs",), deep=True),
        FeatureDefinition("fTEAM", "share of the teams with the document in their top k", ("teams",), deep=True),
        FeatureDefinition(
            "wSYS",
            "fSYS with systems weighted by their agreement with the others: their authority",
            ("outputs",),
            deep=True,
        ),
        FeatureDefinition(
            "OV", "distinct pairs / (k systems queries): one number per campaign, 1 if no lists overlap", ("outputs",)
        ),
        FeatureDefinition("aRANK", "mean rank among the systems that retrieved the document", ("outputs",)),
        FeatureDefinition("bRANK", "best rank among the systems", ("outputs",)),
        FeatureDefinition("rSUM", "mean over all systems of 1/rank, 0 where not retrieved", ("outputs",), deep=True),
        FeatureDefinition(
            "rRF", "mean over all systems of 61/(60 + rank), 0 where not retrieved", ("outputs",), deep=True
        ),
        FeatureDefinition("pRANK", "percentile of rSUM among the documents of the query", ("outputs",), deep=True),
        FeatureDefinition(
            "zSCORE",
            "mean retrieval score, standardised within each list, of the systems that retrieved it",
            ("outputs",),
        ),
        FeatureDefinition("s[column]", "1 if the document's group is the query's own, else 0", ("metadata",)),
        FeatureDefinition(
            "f[column]", "share of the query's distinct documents in the document's group", ("metadata",)
        ),
        FeatureDefinition("label[column]", "a label by a machine, as given", ("labels",)),
        FeatureDefinition(
            "aSYS",
            "mean relevance of the judged documents of the systems that retrieved it",
            ("judgments",),
            shrinkage=64.0,
        ),
        FeatureDefinition(
            "dSYS", "aSYS less the mean relevance of all other judged documents", ("judgments",), shrinkage=64.0
        ),
        FeatureDefinition(
            "aDOC", "mean relevance of the query's other judged documents", ("judgments",), shrinkage=4.0
        ),
        FeatureDefinition("nDOC", "log(1 + the number of the query's other judged documents)", ("judgments",)),
        FeatureDefinition(
            "a[column]",
            "mean relevance of the query's other judged documents of its group",
            ("judgments", "metadata"),
            shrinkage=1.0,
        ),
        FeatureDefinition("aSIM", "the grade whose judged documents are most like it", ("judgments", "vectors")),
    )
}

NAME = re.compile(r"(?P<stem>[A-Za-z]+)(?:\[(?P<column>[^\]]+)\])?(?:@(?P<depth>[0-9]+))?")


@dataclass(frozen=True)
class FeatureName:
    """A parsed feature name: ``fSYS@100`` or ``f[domain]``.

    >>> FeatureName.parse("f[domain]").column
    'domain'
    """

    stem: str
    column: str | None = None
    depth: int | None = None

    @classmethod
    def parse(cls, text: str) -> FeatureName:
        """Parse a name; an error suggests the nearest one."""
        match = NAME.fullmatch(text)
        if match is None:
            raise FeatureError(
                f"Cannot read {text!r} as a feature: expected a name such as fSYS, fSYS@100 or f[domain]."
            )
        name = cls(match["stem"], match["column"], None if match["depth"] is None else int(match["depth"]))
        definition = DEFINITIONS.get(name.stem + ("[]" if name.column else ""))
        if definition is None:
            known = [d.name for d in DEFINITIONS.values()]
            raise FeatureError(f"Unknown feature {text!r}.{did_you_mean(name.stem, known)}")
        if name.depth is not None and not definition.deep:
            raise FeatureError(f"{definition.name} takes no depth, got {text!r}.")
        if name.depth == 0:
            raise FeatureError(f"A depth is a whole number from 1, got {text!r}.")
        return name

    @property
    def definition(self) -> FeatureDefinition:
        """The definition of the feature."""
        return DEFINITIONS[self.stem + ("[]" if self.column else "")]

    def __str__(self) -> str:
        return self.stem + (f"[{self.column}]" if self.column else "") + (f"@{self.depth}" if self.depth else "")


def needs(names: Iterable[str]) -> set[str]:
    """Return the data sources of features."""
    return {need for name in names for need in FeatureName.parse(name).definition.needs}


def factors(term: str) -> list[tuple[Callable[[Floats], Floats], str]]:
    """Parse a model term: ``log(fSYS):OV`` is the product of two features, the first as its logarithm."""
    parts: list[tuple[Callable[[Floats], Floats], str]] = []
    for part in re.split(r":(?![^\[]*\])", term):  # a colon within brackets belongs to a column's name
        inner = re.fullmatch(r"log\((.+)\)", part)
        parts.append((_log, inner[1]) if inner else (np.asarray, part))
    return parts


def _log(values: Floats) -> Floats:
    """Return the logarithm, NaN where it is undefined."""
    return np.log(np.where(values > 0, values, np.nan))


def feature_names(terms: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct features of model terms, in order."""
    return tuple(dict.fromkeys(name for term in terms for _, name in factors(term)))


def shrinkage(term: str) -> float:
    """Return the number of documents by which a term is shrunk: the most of its features.

    >>> shrinkage("aDOC"), shrinkage("log(fSYS)")
    (4.0, 0.0)
    """
    return max(FeatureName.parse(name).definition.shrinkage for name in feature_names([term]))


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable(Result):
    """Features of every pair of a pool.

    Parameters
    ----------
    pool
        The pairs.
    names
        The features.
    values
        Shape (pair, feature); NaN where a feature is missing, which is not zero.
    numbers
        For each mean over judgments, the number of judged documents in it, shape (pair,).
    """

    pool: Pool
    names: tuple[str, ...]
    values: Floats
    numbers: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))

    def _headline(self) -> str:
        return f"{len(self.pool):,} pairs, {', '.join(self.names)}"

    def __getitem__(self, name: str) -> Floats:
        if name not in self.names:
            raise FeatureError(f"No feature {name!r} in the table.{did_you_mean(name, self.names)}")
        return self.values[:, self.names.index(name)]

    @cached_property
    def missing(self) -> dict[str, int]:
        """The number of pairs without each feature, for features with missing values."""
        counts = np.isnan(self.values).sum(axis=0)
        return {name: int(n) for name, n in zip(self.names, counts, strict=True) if n}

    @property
    def complete(self) -> Bools:
        """Mask of the pairs with all features, shape (pair,)."""
        return np.logical_not(np.isnan(self.values).any(axis=1))

    def design(self, terms: Iterable[str]) -> Floats:
        """Return the columns of model terms (features, logarithms, products), shape (pair, term)."""
        columns = [np.prod([transform(self[name]) for transform, name in factors(term)], axis=0) for term in terms]
        return np.stack(columns, axis=1) if columns else np.empty((len(self.pool), 0))

    def numbers_of(self, terms: Iterable[str]) -> Floats:
        """Return the number of judged documents in each term, infinite if it has no such mean, shape (pair, term)."""
        endless = np.full(len(self.pool), np.inf)
        columns = [np.min([self.numbers.get(n, endless) for n in feature_names([term])], axis=0) for term in terms]
        return np.stack(columns, axis=1) if columns else np.empty((len(self.pool), 0))

    def to_frame(self) -> pd.DataFrame:
        """One row per pair: query, doc, and one column per feature."""
        return pd.concat([self.pool.to_frame(), pd.DataFrame(self.values, columns=list(self.names))], axis=1)

    def to_dict(self) -> list[dict[str, str | float]]:
        """One entry per pair as plain data for JSON: query, doc and every feature by its name."""
        return cast("list[dict[str, str | float]]", self.to_frame().to_dict("records"))

    def sentences(self) -> tuple[str, ...]:
        """The number of pairs without each feature."""
        return tuple(f"{n:,} pairs lack {name}." for name, n in self.missing.items())
