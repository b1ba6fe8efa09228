"""Models from outside the package, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from probeval.data.collection import Collection
from probeval.errors import ModelError
from probeval.extensions import Registry
from probeval.relevance.cards.card import card_names
from probeval.relevance.models.base import FallbackModel, Predicts

__all__ = ["ADDED_MODELS", "as_predicting", "find_added", "fit_model", "model_name", "register_model"]

TAKEN = ("none", "uniform", "empirical", "independent", "hierarchical", "labels", "calibrated", "ppi")

ADDED_MODELS: Registry[Predicts] = Registry(
    "model",
    __name__,
    group="probeval.models",
    error=ModelError,
    take=lambda name, model: register_model(model() if isinstance(model, type) else model, name=name),
)


def register_model(model: Any, *, name: str | None = None) -> Predicts:
    """Add a model under a name, for evaluations, simulations and the command line.

    Parameters
    ----------
    model
        An object with ``predict(collection, *, depth, scale, rng)``. If it also has ``fit(collections, *, depth)``,
        which returns a fitted model, validation and ``--fit`` fit it on past campaigns.
    name
        The name; by default the model's attribute ``name``, or the name of its class. An earlier model from outside
        with this name is replaced.

    Raises
    ------
    ModelError
        If the name is that of a model of the package, or has a colon.

    Examples
    --------
    >>> from probeval.relevance import Uniform
    >>> register_model(Uniform(), name="flat").predict is not None
    True
    >>> del ADDED_MODELS["flat"]
    """
    made = as_predicting(model)
    called = model_name(model) if name is None else name
    if not called or ":" in called:
        raise ModelError(f"The name of a model must not be empty or have a colon, got {called!r}.")
    if called in TAKEN or called in card_names():
        raise ModelError(f"{called} is a model of probeval. Give yours another name.")
    ADDED_MODELS.add(called, made)
    return made


def find_added(name: str) -> Predicts | None:
    """Return the model from outside with this name; None for the names and the cards of other models."""
    if name in ADDED_MODELS:
        return ADDED_MODELS[name]
    if ":" in name or name in TAKEN or name in card_names() or Path(name).exists():
        return None
    return ADDED_MODELS.find(name)


def as_predicting(model: Any) -> Predicts:
    """Return a model that predicts every pair: the model itself, or one that has probabilities of some pairs.

    >>> as_predicting(0.5)
    Traceback (most recent call last):
    probeval.errors.ModelError: A model is an object with predict(collection, *, depth, scale, rng), got float.
    """
    if isinstance(model, type):
        raise ModelError(f"A model is an object, got the class {model.__name__}: write {model.__name__}().")
    if callable(getattr(model, "predict", None)):
        return cast("Predicts", model)
    if callable(getattr(model, "probabilities", None)):
        return FallbackModel([model])
    raise ModelError(
        f"A model is an object with predict(collection, *, depth, scale, rng), got {type(model).__name__}."
    )


def model_name(model: object) -> str:
    """Return the name of a model in results: its attribute ``name``, or its class."""
    name = getattr(model, "name", None)
    return name if isinstance(name, str) else type(model).__name__


def fit_model(model: Predicts, collections: Sequence[Collection], *, depth: int) -> Predicts:
    """Return the model fitted on past campaigns; a model without ``fit`` as it is."""
    fit = getattr(model, "fit", None)
    return as_predicting(fit(collections, depth=depth) if callable(fit) else model)
