"""Shell completion of option values; typer filters them by the text typed so far."""

from __future__ import annotations

__all__ = ["COMPLETIONS", "complete_convert"]


def complete_ask() -> list[str]:
    """What assessors may be asked about documents."""
    from probeval.campaign import KINDS

    return list(dict.fromkeys(ask for kind in KINDS.values() if kind.of_runs for ask in kind.asks))


def complete_convert() -> list[str]:
    """Every format in which judgments are written, and that of campaigns in partitions."""
    from probeval.api.convert import writers

    return [*writers(), "partitions"]


def complete_export() -> list[str]:
    """Every format in which a campaign is exported."""
    from probeval.campaign import export_formats

    return list(export_formats())


def complete_import() -> list[str]:
    """Every format that a campaign imports."""
    from probeval.campaign import import_formats

    return list(import_formats())


def complete_judgments() -> list[str]:
    """Every format of judgments."""
    from probeval.data import Judgments
    from probeval.data.formats import formats_of

    return list(formats_of(Judgments))


def complete_metric() -> list[str]:
    """Every measure; those with a cutoff at 10."""
    from probeval.metrics import REGISTRY

    return [name + ("" if definition.cutoff == "none" else "@10") for name, definition in REGISTRY.items()]


def complete_model() -> list[str]:
    """The names of models."""
    from probeval.relevance import ADDED_MODELS, card_names

    return ["none", "uniform", "empirical", "independent", "labels", "calibrated", *card_names(), *ADDED_MODELS]


def complete_policy() -> list[str]:
    """Every policy."""
    from probeval.selection import POLICIES

    return list(POLICIES)


def complete_scale() -> list[str]:
    """Common scales."""
    return ["binary", "graded:2", "graded:3", "graded:4", "fine", "fine:4", "fine:5", "real"]


def complete_stop() -> list[str]:
    """Every stopping rule, without its target."""
    from probeval.selection import RULES

    return [f"{name}=" for name in RULES]


def complete_tool() -> list[str]:
    """Every tool that takes pairs to judge."""
    from probeval.data import task_formats

    return list(task_formats())


# By the name of the field or parameter.
COMPLETIONS = {
    "ask": complete_ask,
    "export_format": complete_export,
    "file_format": complete_judgments,
    "import_format": complete_import,
    "metric": complete_metric,
    "metrics": complete_metric,
    "model": complete_model,
    "policy": complete_policy,
    "policies": complete_policy,
    "scale": complete_scale,
    "scales": complete_scale,
    "stop": complete_stop,
    "to": complete_convert,
    "tool": complete_tool,
}
