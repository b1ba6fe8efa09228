"""PyMC and ArviZ as the package uses them: the only place that knows PyMC 5 with ArviZ 0 from PyMC 6 with ArviZ 1."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from os import cpu_count
from typing import Any

import numpy as np

from probeval.arrays import Floats

__all__ = ["arviz_data", "load", "quiet", "sample"]

STATISTICS = ("diverging", "energy", "tree_depth", "depth", "step_size", "n_steps", "acceptance_rate", "lp")


def sample(model: Any, *, chains: int, **options: Any) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The parameters and the sampler's statistics, each of shape (chain, draw, ..)."""
    pm, pytensor = load("pymc"), load("pytensor")
    if major(pm) < 6:  # from 6 on PyMC takes nutpie by itself, and needs no compiler
        if find_spec("nutpie") is not None:
            options["nuts_sampler"] = "nutpie"
        elif not pytensor.config.cxx:
            options["compile_kwargs"] = {"mode": "NUMBA"}
    with quiet(), model:
        data = pm.sample(
            chains=chains, cores=min(chains, cpu_count() or 1), compute_convergence_checks=False, **options
        )
    names = [rv.name for rv in model.free_RVs]
    statistics = data["sample_stats"]
    return (
        {name: np.asarray(data["posterior"][name].values, dtype=np.float64) for name in names},
        {name: np.asarray(statistics[name].values) for name in STATISTICS if name in statistics},
    )


def arviz_data(groups: dict[str, dict[str, Any]], coords: dict[str, Any], dims: dict[str, list[str]]) -> Any:
    """ArviZ data of these groups."""
    az = load("arviz")
    with quiet():
        if major(az) < 1:
            return az.from_dict(**groups, coords=coords, dims=dims)
        return az.from_dict(groups, coords=coords, dims=dims)


def major(module: Any) -> int:
    return int(module.__version__.split(".")[0])


def load(name: str) -> Any:
    """A module that ``import probeval`` leaves out, without what it says on being imported."""
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
    """Keep the sampler's own notes and warnings to itself: :meth:`NutsFit.diagnostics` says what matters."""
    loggers = [logging.getLogger(name) for name in ("pymc", "pytensor")]
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
