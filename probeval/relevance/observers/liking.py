r"""What labels follow beyond relevance: the length of the text, and the words that it shares with the query.

A judge that errs as people do follows a property of texts as far as grades do. So the correlation of labels with the
property is compared with that of grades, over all labelled pairs; grades of unjudged pairs are drawn from the
posterior, recalibrated by the label and the properties. See docs/theory/observers.md#liking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from probeval.arrays import Floats
from probeval.data.pool import Pool
from probeval.data.texts import WORD
from probeval.relevance.observers.agreement import ENOUGH, GradePosterior, correlation, interval
from probeval.streams import stream

__all__ = ["TextBias", "text_biases", "text_properties"]


@dataclass(frozen=True)
class TextBias:
    """How far labels follow a property of texts, and how far grades do."""

    source: str
    what: Annotated[
        str, "``length`` (the logarithm of the number of words) or ``overlap`` (the share of the query's words)."
    ]
    of_labels: Annotated[float, "The correlation of its labels with the property."]
    of_grades: Annotated[float, "The correlation of the grades with the property, over the same pairs."]
    difference: Annotated[float, "That of labels less that of grades."]
    lower: Annotated[float, "The lower end of its 95% interval."]
    upper: float
    verdict: Annotated[str, "``more`` or ``less`` than grades do, if the interval excludes 0; else ``undecided``."]

    @property
    def sentence(self) -> str:
        """The finding."""
        property_ = {"length": "the length of the text", "overlap": "words shared with the query"}[self.what]
        return (
            f"{self.source} follows {property_} {self.verdict} than people do: correlation {self.of_labels:+.2f}, that "
            f"of the "
            f"grades {self.of_grades:+.2f} (difference {self.lower:+.2f} to {self.upper:+.2f})."
        )


def text_properties(pool: Pool, docs: Mapping[str, str], queries: Mapping[str, str] | None) -> dict[str, Floats]:
    """Return the properties of the texts of a pool's pairs, NaN without a text, each of shape (pair,).

    >>> found = text_properties(Pool.of(["q"], ["d"]), {"d": "a cat, a dog"}, {"q": "cat food"})
    >>> {name: values.tolist() for name, values in found.items()}
    {'length': [2.0], 'overlap': [0.5]}
    """
    words = {doc: WORD.findall(docs[doc].lower()) for doc in pool.docs if doc in docs}
    length = np.array([np.log2(max(len(words[doc]), 1)) if doc in words else np.nan for doc in pool.docs])
    found = {"length": length[pool.doc]}
    if queries is not None:
        asked = [set(WORD.findall(queries.get(str(query), "").lower())) for query in pool.queries]
        has = {doc: set(each) for doc, each in words.items()}
        nothing = float("nan")
        found["overlap"] = np.array(
            [
                len(asked[q] & has[doc]) / len(asked[q]) if asked[q] and (doc := pool.docs[d]) in has else nothing
                for q, d in zip(pool.query.tolist(), pool.doc.tolist(), strict=True)
            ]
        )
    return found


def text_biases(
    posterior: GradePosterior,
    labels: Floats,
    names: Sequence[str],
    properties: Mapping[str, Floats],
    seed: Sequence[int],
) -> tuple[TextBias, ...]:
    """Return how far each source of labels follows each property of texts, and how far grades do.

    Parameters
    ----------
    posterior
        The posterior of the grades.
    labels, names
        The labels of the pool's pairs, shape (pair, source), and their sources.
    properties
        By name, shape (pair,).
    seed
        The seed of the draws.
    """
    values = {name: column[posterior.pairs] for name, column in properties.items()}
    values = {name: column for name, column in values.items() if np.nanstd(column) > 0}
    out = []
    for source, given in zip(names, labels[posterior.pairs].T, strict=True):
        columns = np.column_stack([given, *values.values()])
        known = ~np.isnan(columns).any(axis=1)
        if known[: posterior.judged].sum() < ENOUGH or not np.ptp(given[known]):
            continue
        drawn = posterior.draw(columns, stream(*seed))
        for what, column in values.items():
            mine = correlation(drawn.moments(column), posterior.values)
            its = weighted_correlation(given[known], column[known], drawn.weight)
            difference, lower, upper = interval(its - mine)
            verdict = "more" if lower > 0 else "less" if upper < 0 else "undecided"
            out.append(TextBias(source, what, its, float(mine.mean()), difference, lower, upper, verdict))
    return tuple(out)


def weighted_correlation(x: Floats, y: Floats, weight: Floats) -> float:
    """Return the correlation of two columns whose rows stand for several pairs each."""
    share = weight / weight.sum()
    x, y = x - share @ x, y - share @ y
    return float((share * x) @ y / np.sqrt((share @ x**2) * (share @ y**2)))
