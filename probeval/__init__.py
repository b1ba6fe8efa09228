"""probeval: probabilistic relevance and low-cost evaluation of retrieval systems.

Runs and the judgments at hand go in; every score comes out with its uncertainty. One function per task:

=====================  ===================================================
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from probeval.api import (
        Evaluation,
        Evidence,
        Gate,
        NextPairs,
        Reuse,
        SystemComparisons,
        aggregate,
        agree,
        as_collection,
        compare,
        convert,
        dstudy,
        evaluate,
        examine,
        fit,
        gate,
        gstudy,
        label,
        meta_study,
        next_pairs,
        partition,
        persistence,
        plan,
        pool_study,
        predict,
        report,
        reuse,
        reuse_study,
        simulate,
    )
    from probeval.campaign import Campaign
    from probeval.data import (
        Collection,
        Judgments,
        Pool,
        Runs,
        Scale,
        as_judgments,
        as_runs,
        read_campaign,
        read_judgments,
        read_labels,
        read_metadata,
        read_runs,
        write_campaign,
    )
    from probeval.errors import (
        CampaignError,
        DataError,
        FeatureError,
        LabellingError,
        MetricError,
        ModelError,
        ProbevalError,
        ProbevalWarning,
        ReliabilityError,
        SatisfactionError,
        ScaleError,
        ScoreError,
        SelectionError,
        StoreError,
    )
    from probeval.metrics import Measured, Metric, measure, parse
    from probeval.relevance import load_card, synthetic_campaign
    from probeval.reporting import Reporter

__version__ = "0.2.0"

# Where each public name lives: it is imported when it is first used, so that `import probeval` stays light.
_HOMES = {
    "probeval.api": (
        "Evaluation",
        "Evidence",
        "Gate",
        "NextPairs",
        "Reuse",
        "SystemComparisons",
        "aggregate",
        "agree",
        "as_collection",
        "compare",
        "convert",
        "dstudy",
        "evaluate",
        "examine",
        "fit",
        "gate",
        "gstudy",
        "label",
        "meta_study",
        "next_pairs",
        "partition",
        "persistence",
        "plan",
        "pool_study",
        "predict",
        "report",
        "reuse",
        "reuse_study",
        "simulate",
    ),
    "probeval.campaign": ("Campaign",),
    "probeval.data": (
        "Collection",
        "Judgments",
        "Pool",
        "Runs",
        "Scale",
        "as_judgments",
        "as_runs",
        "read_campaign",
        "read_judgments",
        "read_labels",
        "read_metadata",
        "read_runs",
        "write_campaign",
    ),
    "probeval.errors": (
        "CampaignError",
        "DataError",
        "FeatureError",
        "LabellingError",
        "MetricError",
        "ModelError",
        "ProbevalError",
        "ProbevalWarning",
        "ReliabilityError",
        "SatisfactionError",
        "ScaleError",
        "ScoreError",
        "SelectionError",
        "StoreError",
    ),
    "probeval.metrics": ("Measured", "Metric", "measure", "parse"),
    "probeval.relevance": ("load_card", "synthetic_campaign"),
    "probeval.reporting": ("Reporter",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Campaign",
    "CampaignError",
    "Collection",
    "DataError",
    "Evaluation",
    "Evidence",
    "FeatureError",
    "Gate",
    "Judgments",
    "LabellingError",
    "Measured",
    "Metric",
    "MetricError",
    "ModelError",
    "NextPairs",
    "Pool",
    "ProbevalError",
    "ProbevalWarning",
    "ReliabilityError",
    "Reporter",
    "Reuse",
    "Runs",
    "SatisfactionError",
    "Scale",
    "ScaleError",
    "ScoreError",
    "SelectionError",
    "StoreError",
    "SystemComparisons",
    "__version__",
    "aggregate",
    "agree",
    "as_collection",
    "as_judgments",
    "as_runs",
    "compare",
    "convert",
    "dstudy",
    "evaluate",
    "examine",
    "fit",
    "gate",
    "gstudy",
    "label",
    "load_card",
    "measure",
    "meta_study",
    "next_pairs",
    "parse",
    "partition",
    "persistence",
    "plan",
    "pool_study",
    "predict",
    "read_campaign",
    "read_judgments",
    "read_labels",
    "read_metadata",
    "read_runs",
    "report",
    "reuse",
    "reuse_study",
    "simulate",
    "synthetic_campaign",
    "write_campaign",
]


def __getattr__(name: str) -> typing.Any:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'probeval' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted({*globals(), *__all__})
