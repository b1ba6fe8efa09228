"""The public face of the hierarchical model: predictions with a posterior, under which pairs are dependent.

See docs/theory/hierarchical.md#hier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from probeval.data.problem import Problem
from probeval.display import Record
from probeval.errors import ModelError, did_you_mean
from probeval.features.standards import Standards, sample_positions
from probeval.relevance.answers.fit import fit_with_answers
from probeval.relevance.answers.observations import observe
from probeval.relevance.consensus import ConsensusDraws
from probeval.relevance.distribution import Probabilities, RelevanceDistribution
from probeval.relevance.effects.prior import HierarchicalPrior
from probeval.relevance.inference.design import ModelDesign, standards_of
from probeval.relevance.inference.laplace import LaplacePosterior, fit_laplace
from probeval.relevance.inference.posterior import Posterior
from probeval.relevance.models.base import Finding
from probeval.relevance.observers.family import distinguishes
from probeval.relevance.observers.measure import with_labels
from probeval.threads import one_thread

__all__ = ["Hierarchical", "Inference"]

Inference = Literal["laplace", "nuts"]
DRAWS = 200  # posterior draws: the Monte Carlo error of a score is below a hundredth of its sd
LEAST_DRAWS = 50  # for pools of any size
CELLS = 10_000_000  # draws times pairs, above which fewer draws are made
UNKNOWN = 1.0  # sd of a log sd above which a prior is uninformative


@dataclass(frozen=True, repr=False)
class Hierarchical(Record):
    """The hierarchical model with a prior learned from past campaigns.

    Parameters
    ----------
    prior
        The predictive distribution over past campaigns.
    draws
        The number of posterior draws of a prediction; fewer for more than 50,000 pairs.
    inference
        The inference method: ``"laplace"`` takes seconds, ``"nuts"`` minutes but without a normal approximation.
    later
        The systems that had no part in the judging: they may be better or worse than the first ones would suggest, so
        the prior of their quality is wider.
    """

    prior: HierarchicalPrior
    draws: int = DRAWS
    inference: Inference = "laplace"
    later: tuple[str, ...] = ()
    kind = "hierarchical"

    def __post_init__(self) -> None:
        known = get_args(Inference)
        if self.inference not in known:
            raise ModelError(
                f"No inference {self.inference!r}: {', '.join(known)}.{did_you_mean(self.inference, known)}"
            )

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of the model."""
        return self.prior.terms

    def design(self, problem: Problem, *, worth_factor: float = 1.0) -> ModelDesign:
        """Return the design of a campaign, independent of its judgments; labels, if any, are part of it.

        ``worth_factor`` divides the errors of labels, to see what depends on their worth.
        """
        design = self.unlabelled(problem)
        if problem.labels is None or not distinguishes(problem.labels):
            return design
        at = sample_positions(len(design.pool.queries))
        sample = None
        if len(at) < len(design.pool.queries):
            some = problem.part(at)
            assert some.labels is not None
            sample = self.unlabelled(some, standards=design.standards), some.labels
        with one_thread():
            return with_labels(design, self.prior.observers, problem.labels, sample=sample, worth_factor=worth_factor)

    def unlabelled(self, problem: Problem, *, standards: Standards | None = None) -> ModelDesign:
        """Return the design of a campaign, or of some of its queries, before its labels are seen."""
        prior = self.prior.with_stated()
        standards = standards_of(prior, problem, self.later) if standards is None else standards
        return ModelDesign.of(prior, problem, standards=standards)

    def infer(
        self,
        problem: Problem,
        *,
        inference: Inference | None = None,
        rng: np.random.Generator | None = None,
        **options: Any,
    ) -> Posterior:
        """Return the posterior given the campaign's judgments.

        Parameters
        ----------
        problem
            Runs, and optionally judgments, metadata, labels and answers.
        inference
            ``"laplace"`` or ``"nuts"``; the model's own by default.
        rng
            The generator of the sampler's seed; seed 0 by default.
        options
            For ``"nuts"``: ``draws``, ``tune``, ``chains``, ``target_accept``, ``progress``.
        """
        model = self if inference is None else replace(self, inference=inference)
        design = self.design(problem)
        if model.inference == "laplace":
            if options:
                raise ModelError(f"{', '.join(options)}: for a sampler. Use inference='nuts'.")
            return self.refit(problem, design)
        if problem.collection.has_answers:
            raise ModelError("Answers about documents are fitted by inference='laplace' only: leave 'nuts' out.")
        from probeval.relevance.nuts.fit import fit_nuts  # PyMC is slow to load

        rng = np.random.default_rng(0) if rng is None else rng
        return fit_nuts(design, problem.grades.codes, rng=rng, **options)

    def refit(self, problem: Problem, design: ModelDesign, *, last: LaplacePosterior | None = None) -> LaplacePosterior:
        """Return the posterior by Laplace's method for an existing design; from the ``last`` one it is faster.

        ``design`` is that before answers, which the problem may have more of than before.
        """
        judged, collection = problem.grades.codes, problem.collection
        with one_thread():
            # Without any so far, answers that are asked for are part of the model all the same.
            if collection.answers is not None or collection.magnitudes is not None:
                observations = observe(design.pool, collection.answers, collection.magnitudes)
                return fit_with_answers(design, judged, observations, last=last)
            return fit_laplace(design, judged, start=None if last is None else last.start)

    def predict(self, problem: Problem, *, rng: np.random.Generator | None = None) -> RelevanceDistribution:
        """Return P(grade) of every pair, with a posterior axis; judged pairs are certain."""
        rng = np.random.default_rng(0) if rng is None else rng
        return self.distribution(problem, self.infer(problem, rng=rng), rng)

    def distribution(self, problem: Problem, posterior: Posterior, rng: np.random.Generator) -> RelevanceDistribution:
        """Return the distribution of relevance under a posterior, from joint draws of its parameters."""
        design = posterior.design
        n = self.number_of_draws(len(design.pool))
        with one_thread():
            draws: Probabilities = posterior.draw(n, rng)
            if problem.collection.consensus:
                draws = ConsensusDraws.of(posterior.draw(n, rng), problem.labels, design.scale)
            return RelevanceDistribution.of(design.pool, design.scale, draws, judgments=problem.grades)

    def number_of_draws(self, pairs: int) -> int:
        """Return the number of posterior draws of a prediction for so many pairs."""
        return min(self.draws, max(CELLS // max(pairs, 1), LEAST_DRAWS))

    def check(self) -> list[Finding]:
        """Return priors that are too wide to be informative."""
        wide = [name for name, n in self.prior.log_sds.items() if n.sd > UNKNOWN]
        return [Finding(f"The variance of {k} effects is hardly known.", "Learn from more campaigns.") for k in wide]

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"kind": self.kind, "prior": self.prior.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Hierarchical:
        """Return the model from plain data."""
        return cls(HierarchicalPrior.from_dict(data["prior"]))
