"""Models that are refitted as judgments arrive: each refit starts from the previous one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from probeval.arrays import Floats
from probeval.bayes import NutsDiagnostics
from probeval.data.answers import PairAnswers
from probeval.data.judgments import Judgments
from probeval.data.problem import Problem
from probeval.display import Record
from probeval.features import feature_names, needs
from probeval.relevance.answers.fit import AnswerEvidence
from probeval.relevance.dependence import Dependence, Drawn, Linearised, Unrelated
from probeval.relevance.distribution import RelevanceDistribution
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.inference.laplace import LaplacePosterior
from probeval.relevance.models.base import Predicts
from probeval.relevance.models.hierarchical import Hierarchical

__all__ = ["OnlineModel", "Prediction", "follow"]


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Record):
    """The prediction of a model after some judgments.

    Parameters
    ----------
    relevance
        P(grade) of every pair; judged pairs are certain.
    posterior
        The posterior, if computed by Laplace's method: the start of the next refit.
    answers
        The answers about documents and the estimates of their assessors; None without answers.
    diagnostics
        The check of the sampler, if the posterior was sampled.
    """

    relevance: RelevanceDistribution
    posterior: LaplacePosterior | None = None
    answers: AnswerEvidence | None = None
    diagnostics: NutsDiagnostics | None = None

    def dependence(self, gains: Floats) -> Dependence:
        """Return the covariance of expected gains between pairs, given the gain of each grade."""
        if not self.relevance.has_posterior:
            return Unrelated(len(self.relevance.pool))
        if self.posterior is None:
            return Drawn.of(self.relevance, gains)
        return Linearised.of(self.posterior, self.relevance, gains)

    def given(self, judgments: Judgments) -> Prediction:
        """Return the prediction with these pairs certain, without refitting the model."""
        return replace(self, relevance=self.relevance.given(judgments))


@dataclass(frozen=True, eq=False, repr=False)
class OnlineModel(Record):
    """A model of one campaign, with the parts that do not change as judgments arrive.

    Parameters
    ----------
    model, problem
        The model, and the campaign.
    design
        The design of the hierarchical model; None if every prediction starts anew.
    """

    model: Predicts
    problem: Problem
    design: ModelDesign | None = None

    def after(
        self,
        judgments: Judgments | None,
        rng: np.random.Generator,
        *,
        answers: PairAnswers | None = None,
        last: Prediction | None = None,
    ) -> Prediction:
        """Return the prediction with these judgments and answers; ``last`` is the prediction with fewer.

        Without ``answers`` those of the problem count. The first prediction uses the model's own inference. Refits use
        Laplace's method, as a sampler would start over.
        """
        now = self.problem.with_judgments(judgments, answers)
        if isinstance(self.model, Hierarchical) and self.model.inference == "nuts" and last is None:
            sampled = self.model.infer(now, rng=rng)
            relevance = self.model.distribution(now, sampled, rng)
            checked = sampled.diagnostics()
            return Prediction(relevance, diagnostics=checked if isinstance(checked, NutsDiagnostics) else None)
        if self.design is None:
            return Prediction(self.model.predict(now, rng=rng))
        assert isinstance(self.model, Hierarchical)
        posterior = self.model.refit(now, self.design, last=None if last is None else last.posterior)
        # The slopes of expected grades, which a posterior by Laplace's method gives, do not exist for the consensus.
        kept = None if now.collection.consensus else posterior
        return Prediction(self.model.distribution(now, posterior, rng), kept, posterior.design.answers)


def follow(model: Predicts, problem: Problem) -> OnlineModel:
    """Return an online model of a campaign."""
    design = None
    # A design with features of judgments must be recomputed after every judgment.
    if isinstance(model, Hierarchical) and "judgments" not in needs(feature_names(model.terms)):
        design = model.design(problem)
    return OnlineModel(model, problem, design)
