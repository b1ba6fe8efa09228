r"""Assessors: the parameters of each one's answers, and the kind of assessor that each is.

As workers of a crowd are (:mod:`probeval.relevance.aggregation.workers`), an assessor is attentive, careless (answers
do not depend on relevance) or reversed, with the same prior shares. Given the kind, the slope, the shift and the width
of each question have normal priors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from probeval.arrays import Floats, Ints
from probeval.relevance.aggregation.workers import KINDS
from probeval.relevance.answers.observations import Observations

__all__ = ["SIGNS", "Assessors", "Nodes", "parameter_scores"]

SIGNS = tuple(kind.sign for kind in KINDS)


class Nodes(NamedTuple):
    """The distribution of the relevance in question of some answers: values and weights, shapes (node, answer)."""

    values: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Assessors:
    """Estimates of the assessors: given each kind, the parameters; and the probability of the kind.

    Parameters
    ----------
    parameters
        Log slope, shift and log width, shape (kind, assessor, question, parameter).
    kinds
        The probability of each kind, shape (kind, assessor).
    """

    parameters: Floats
    kinds: Floats

    @classmethod
    def typical(cls, observations: Observations) -> Assessors:
        """Return assessors of whom nothing is known."""
        means = np.array([question.prior[0] for question in observations.questions])
        n = len(observations.assessors)
        shares = np.array([kind.share for kind in KINDS])
        return cls(
            np.broadcast_to(means, (len(KINDS), n, *means.shape)).copy(),
            np.broadcast_to(shares[:, None], (len(KINDS), n)).copy(),
        )

    def joined(self, before: Assessors, names: tuple[str, ...], earlier: tuple[str, ...]) -> Assessors:
        """Return these assessors with the estimates of an earlier fit where it has the same ones."""
        parameters, kinds = self.parameters.copy(), self.kinds.copy()
        place = {name: i for i, name in enumerate(earlier)}
        for i, name in enumerate(names):
            if name in place:
                parameters[:, i], kinds[:, i] = before.parameters[:, place[name]], before.kinds[:, place[name]]
        return Assessors(parameters, kinds)


def parameter_scores(
    observations: Observations, number: int, mine: Ints, parameters: Floats, sign: float, relevance: Nodes
) -> tuple[Floats, Floats]:
    """Return the expected scores of each assessor's parameters, and the mean of their squares, of one question.

    Parameters
    ----------
    mine
        The observations of the question.
    parameters
        Shape (assessor, parameter).
    relevance
        The relevance in question of these observations.
    """
    who = observations.assessor[mine]
    curve = observations.questions[number].curve(observations.answer[mine], relevance.values, parameters[who], sign)
    weighed = relevance.weights[..., None] * curve.score
    gradient, information = np.zeros(parameters.shape), np.zeros((*parameters.shape, parameters.shape[1]))
    np.add.at(gradient, who, weighed.sum(axis=0))
    np.add.at(information, who, np.einsum("xnp,xnr->npr", weighed, curve.score))
    return gradient, information
