"""The picture of "Study reliability": where variance comes from, with all judged and a third, and what queries bring.

Run as ``python examples/reliability.py [FILE.png]``. All campaigns are synthetic, of systems that differ much.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import probeval
from probeval.plots import plot_components, plot_dstudy, save
from probeval.relevance import FallbackModel
from probeval.relevance.learning.fit import text_models
from probeval.reliability import dstudy, gstudy
from probeval.scores import evaluate

METRIC = "nDCG@10"
EFFECTS = {"team": 1.6, "system": 1.6}


def campaign_of(seed: int) -> probeval.Collection:
    return replace(probeval.synthetic_campaign(seed=seed, sds=EFFECTS), name=str(seed))


def draw(path: Path) -> None:
    rng = np.random.default_rng(0)
    campaign = campaign_of(2)
    full = gstudy(probeval.measure(campaign.runs, campaign.judgments, METRIC))
    order = rng.permutation(len(campaign.judgments))
    some = campaign.judgments.take(order[: len(order) // 3])
    relevance = FallbackModel(text_models([campaign_of(seed) for seed in range(3, 7)], depth=10)).predict(
        replace(campaign, judgments=some).problem(depth=10)
    )
    part = gstudy(evaluate(campaign.runs.top(10), relevance, METRIC, method="draws", per_query=True, rng=rng))

    axes = Figure(figsize=(9.6, 3.6), layout="constrained").subplots(1, 2)
    plot_components({"all judged": full, "a third judged": part}, ax=axes[0])
    axes[0].set_xlabel("share of variance; lines: 95% interval for judging")
    plot_dstudy(dstudy(full), ax=axes[1])
    save(axes[0], path, dpi=90)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "variance-components.png")
    draw(target)
    print(f"Wrote {target}.")
