"""Sampling of the hierarchical model given judgments, and labels if there are any."""

from __future__ import annotations

import numpy as np

from probeval.arrays import Codes
from probeval.bayes import sample
from probeval.errors import ModelError
from probeval.relevance.inference.design import ModelDesign
from probeval.relevance.nuts.directions import SampledPairs
from probeval.relevance.nuts.posterior import NutsPosterior, pymc_model
from probeval.relevance.nuts.with_labels import LabelledPosterior, labelled_model

__all__ = ["fit_nuts"]


def fit_nuts(
    design: ModelDesign,
    judged: Codes,
    *,
    rng: np.random.Generator,
    draws: int = 2000,
    tune: int = 1000,
    chains: int = 2,
    target_accept: float = 0.9,
    progress: bool = False,
) -> NutsPosterior:
    """Sample the model given the judged pairs (grades as positions on the scale, negative where unjudged).

    Labels, if there are any, are part of the sampled model, each family with its most probable sign. Warns if R-hat,
    the effective sample size or divergences show that the draws are unreliable.

    Parameters
    ----------
    design, judged
        The campaign, and the judgments, shape (pair,).
    rng
        The generator of the sampler's seed.
    draws, tune, chains, target_accept
        Draws per chain, tuning draws before them, the number of chains, and the target acceptance rate. With hundreds
        of effects, R-hat below 1.01 needs twice 2,000 draws.
    progress
        Whether to show a progress bar.
    """
    if draws < 4 or chains < 1 or tune < 0:
        raise ModelError(f"NUTS needs at least a chain of 4 draws, got {chains} of {draws} after {tune}.")
    sampled = SampledPairs.of(design, judged)
    model, make = pymc_model(sampled), NutsPosterior
    if design.measured:
        model, make = labelled_model(sampled), LabelledPosterior
    parameters, statistics = sample(
        model,
        draws=draws,
        tune=tune,
        chains=chains,
        target_accept=target_accept,
        random_seed=int(rng.integers(2**31)),
        progressbar=progress,
    )
    for name, size in sampled.sizes.items():
        parameters.setdefault(name, np.zeros((*parameters["log_sd"].shape[:2], size)))
    posterior = make(sampled, parameters, statistics)
    posterior.diagnostics()
    return posterior
