r"""Selection of the terms of ordinal models, by likelihood ratios.

See docs/theory/relevance-models.md#elimination.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import pandas as pd

from probeval.display import Record
from probeval.errors import ModelError
from probeval.features.spec import factors
from probeval.relevance.learning.diagnostics import cross_validate, diagnose, likelihood_ratios
from probeval.relevance.models.ordinal import OrdinalModel, TrainingData
from probeval.results import Result, key

__all__ = ["EliminatedTerm", "Elimination", "EliminationStep", "eliminate_terms"]


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


@dataclass(frozen=True)
class EliminatedTerm:
    """A term of the largest model, as in Urbano (2013, Table 7.1)."""

    term: str
    chi2: Annotated[float, "The likelihood ratio statistic when it was dropped, or at the end."]
    p: Annotated[float, "Its p-value."]
    dropped: Annotated[int | None, "The step that dropped it; null for a term that stays."]
    rmse: Annotated[float, "The held-out error of the model before it was dropped."]


@dataclass(frozen=True, eq=False, repr=False)
class Elimination(Result):
    """Models with fewer and fewer terms, until all that are left are significant.

    Parameters
    ----------
    steps
        The models, the largest first.
    """

    steps: tuple[EliminationStep, ...]
    alpha: Annotated[float, "The level of significance."]

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms that are left."""
        return tuple(self.steps[-1].ratios)

    @key.named("terms")
    def all_terms(self) -> tuple[EliminatedTerm, ...]:
        """One entry per term, in the order in which they leave; the others last."""
        last = self.steps[-1]
        left = [(i, step, step.dropped) for i, step in enumerate(self.steps, start=1) if step.dropped is not None]
        kept = [(None, last, term) for term in sorted(last.ratios, key=lambda term: last.ratios[term])]
        return tuple(
            EliminatedTerm(term, step.ratios[term], step.p_values[term], i, step.rmse)
            for i, step, term in (*left, *kept)
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per term, with the keys of :class:`EliminatedTerm` as columns."""
        return super().to_frame().astype({"dropped": "Int64"})

    def _headline(self) -> str:
        return f"{len(self.terms)} of {len(self.all_terms)} terms left at {self.alpha:g}: {', '.join(self.terms)}"


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
