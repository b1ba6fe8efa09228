r"""Selection of the terms of ordinal models, by likelihood ratios.

See docs/theory/relevance-models.md#elimination.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from probeval.display import Record
from probeval.errors import ModelError
from probeval.features.spec import factors
from probeval.relevance.learning.diagnostics import cross_validate, diagnose, likelihood_ratios
from probeval.relevance.models.ordinal import OrdinalModel, TrainingData

__all__ = ["Elimination", "EliminationStep", "eliminate_terms"]


@dataclass(frozen=True, repr=False)
class EliminationStep(Record):
    """A model on the way, and the term that it loses.

    Parameters
    ----------
    ratios
        The likelihood ratio statistic of each term given the others.
    p_values
        Its p-value by the chi-squared distribution with one degree of freedom.
    rmse
        The root mean squared error of expected relevance on held-out queries.
    dropped
        The term that the next step is without; None at the end.
    """

    ratios: dict[str, float]
    p_values: dict[str, float]
    rmse: float
    dropped: str | None = None


@dataclass(frozen=True, repr=False)
class Elimination(Record):
    """Models with fewer and fewer terms, until all that are left are significant.

    Parameters
    ----------
    steps
        The models, the largest first.
    alpha
        The level of significance.
    """

    steps: tuple[EliminationStep, ...]
    alpha: float

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms that are left."""
        return tuple(self.steps[-1].ratios)

    def to_frame(self) -> pd.DataFrame:
        """One row per term, as in Urbano (2013, Table 7.1), in the order in which they leave; the others last.

        ``term``, ``chi2`` and ``p`` when it was dropped (or at the end), ``dropped`` (the step, missing for terms that
        stay), and the held-out ``rmse`` of the model before it was dropped.
        """
        rows = [
            {"term": s.dropped, "chi2": s.ratios[s.dropped], "p": s.p_values[s.dropped], "dropped": i, "rmse": s.rmse}
            for i, s in enumerate(self.steps, start=1)
            if s.dropped is not None
        ]
        last = self.steps[-1]
        kept = sorted(last.ratios, key=lambda term: last.ratios[term])
        rows += [
            {"term": t, "chi2": last.ratios[t], "p": last.p_values[t], "dropped": None, "rmse": last.rmse} for t in kept
        ]
        table = pd.DataFrame(rows, columns=["term", "chi2", "p", "dropped", "rmse"])
        return table.astype({"dropped": "Int64"})

    def to_dict(self) -> dict[str, Any]:
        """The level and the table as plain data."""
        rows = self.to_frame().astype({"dropped": object}).to_dict("records")
        return {"alpha": self.alpha, "terms": [{**row, "dropped": _step(row["dropped"])} for row in rows]}


def _step(number: Any) -> int | None:
    return None if pd.isna(number) else int(number)


def eliminate_terms(model: OrdinalModel, data: TrainingData, *, alpha: float = 0.0001) -> Elimination:
    r"""Drop the least significant term of a model, one after another, until all that are left are significant.

    The likelihood ratio of a term given the others is :math:`2 (\ell - \ell_{-t})`, chi-squared with one degree of
    freedom if the term has no effect. A term is not dropped while a product of it is in the model.

    Pairs of a query are not independent, so p-values are too small; the default level is that of the published
    selection. The held-out error of each step shows what a term is worth on other queries.

    Parameters
    ----------
    model
        The model with all terms.
    data
        Judged pairs with these terms.
    alpha
        The level of significance.
    """
    if not 0 < alpha < 1:
        raise ModelError(f"The level of significance is between 0 and 1, got {alpha:g}.")
    from scipy.stats import chi2

    steps: list[EliminationStep] = []
    while True:
        ratios = {term: max(ratio, 0.0) for term, ratio in likelihood_ratios(model, data).items()}
        p_values = {term: float(chi2.sf(ratio, 1)) for term, ratio in ratios.items()}
        step = EliminationStep(ratios, p_values, diagnose(cross_validate(model, data), data).rmse)
        free = [term for term in ratios if not _is_part(term, model.terms)]
        weakest = min(free, key=lambda term: ratios[term])
        if p_values[weakest] <= alpha or len(model.terms) == 1:
            return Elimination((*steps, step), alpha)
        steps.append(replace(step, dropped=weakest))
        data = data.without(model.terms.index(weakest))
        model = replace(model, terms=data.terms)


def _is_part(term: str, terms: tuple[str, ...]) -> bool:
    """Whether one of the terms is a product of this one."""
    mine = set(factors(term))
    return any(mine < set(factors(other)) for other in terms)
