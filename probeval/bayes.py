"""Adapters for PyMC and ArviZ: the only module that distinguishes PyMC 5 with ArviZ 0 from PyMC 6 with ArviZ 1."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from os import cpu_count
from typing import Annotated, Any

import numpy as np

from probeval.arrays import Floats
from probeval.errors import ProbevalWarning

__all__ = ["NutsDiagnostics", "arviz_data", "diagnose", "draw_prior", "load", "quiet", "sample"]

RHAT, ESS, DIVERGENCES = 1.01, 400.0, 0.001  # beyond these limits the draws are unreliable

STATISTICS = ("diverging", "energy", "tree_depth", "depth", "step_size", "n_steps", "acceptance_rate", "lp")


@dataclass(frozen=True)
class NutsDiagnostics:
    """Sampler diagnostics: the largest R-hat and the least bulk ESS of all parameters, and the share of divergences.

    >>> NutsDiagnostics(rhat=1.03, ess=812.0, divergences=0.0).problems
    ('R-hat of 1.0300 (more than 1.01)',)
    """

    rhat: Annotated[float, "The largest R-hat of all parameters; more than 1.01 is unreliable."]
    ess: Annotated[float, "The least bulk effective sample size of all parameters; less than 400 is unreliable."]
    divergences: Annotated[float, "The share of draws that diverged; more than .001 is unreliable."]

    def __str__(self) -> str:
        return f"R-hat {self.rhat:.3f}, bulk ESS {self.ess:.0f}, {self.divergences:.2%} divergences"

    @property
    def problems(self) -> tuple[str, ...]:
        """Descriptions of the failed checks; empty if all pass."""
        checks = (
            (self.rhat <= RHAT, f"R-hat of {self.rhat:.4f} (more than {RHAT:g})"),
            (self.ess >= ESS, f"bulk ESS of {self.ess:.0f} (less than {ESS:.0f})"),
            (self.divergences <= DIVERGENCES, f"{self.divergences:.2%} divergences (more than {DIVERGENCES:.1%})"),
        )
        return tuple(text for passed, text in checks if not passed)


def sample(model: Any, *, chains: int, **options: Any) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Sample with NUTS; return the parameters and the sampler's statistics, each of shape (chain, draw, ..)."""
    pm, pytensor = load("pymc"), load("pytensor")
    if major(pm) < 6:  # PyMC 6 uses nutpie by default and needs no compiler
        if find_spec("nutpie") is not None:
            options["nuts_sampler"] = "nutpie"
        elif not pytensor.config.cxx:
            options["compile_kwargs"] = {"mode": "NUMBA"}
    with quiet(), model:
        data = pm.sample(
            chains=chains, cores=min(chains, cpu_count() or 1), compute_convergence_checks=False, **options
        )
    names = [rv.name for rv in (*model.free_RVs, *model.deterministics)]
    statistics = data["sample_stats"]
    return (
        {name: np.asarray(data["posterior"][name].values, dtype=np.float64) for name in names},
        {name: np.asarray(statistics[name].values) for name in STATISTICS if name in statistics},
    )


def draw_prior(model: Any, n: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Draw the parameters of a model from their prior, each of shape (draw, ..)."""
    pm = load("pymc")
    variables = [*model.free_RVs, *model.deterministics]
    with quiet():
        drawn = pm.draw(variables, draws=n, random_seed=int(rng.integers(2**31)))
    return {variable.name: np.asarray(values) for variable, values in zip(variables, drawn, strict=True)}


def diagnose(chains: Mapping[str, Floats], statistics: Mapping[str, Floats]) -> NutsDiagnostics:
    """Return R-hat, bulk ESS and divergences of the result of :func:`sample`; warn if the draws are unreliable."""
    az, xr = load("arviz"), load("xarray")
    with quiet():
        flat = [v.reshape(*v.shape[:2], -1) for v in chains.values()]
        every = xr.Dataset({"x": (("chain", "draw", "parameter"), np.concatenate(flat, axis=-1))})
        rhat, ess = float(az.rhat(every)["x"].max()), float(az.ess(every, method="bulk")["x"].min())
    diagnostics = NutsDiagnostics(rhat, ess, float(np.mean(statistics["diverging"])))
    if diagnostics.problems:
        warnings.warn(
            f"NUTS did not sample well: {', '.join(diagnostics.problems)}. Use more draws or a higher target_accept.",
            ProbevalWarning,
            stacklevel=3,
        )
    return diagnostics


def arviz_data(
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any],
    dims: Mapping[str, Sequence[str]],
    attributes: Mapping[str, Any],
) -> Any:
    """Return the groups that are not empty as an ArviZ data object; each has the library, its version and these.

    Values are numbers or text, so that the data can be saved as NetCDF.
    """
    az = load("arviz")
    filled = {group: dict(values) for group, values in groups.items() if values}
    every = {"inference_library": "probeval", "inference_library_version": version("probeval"), **attributes}
    with quiet():
        if major(az) < 1:
            data = az.from_dict(**filled, coords=dict(coords), dims=dict(dims))
        else:
            data = az.from_dict(filled, coords=dict(coords), dims=dict(dims))
    for group in filled:
        data[group].attrs.update(every)
    return data


def major(module: Any) -> int:
    return int(module.__version__.split(".")[0])


def load(name: str) -> Any:
    """Import an optional module, without its warnings and log messages."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(name)
    finally:
        logging.disable(before)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the sampler's log messages and warnings; :func:`diagnose` reports problems instead."""
    loggers = [logging.getLogger(name) for name in ("arviz", "pymc", "pytensor")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
