"""The picture of "Rank before judging": a campaign by a model of four past ones, with nothing judged and with a third.

Run as ``python examples/ranking.py [FILE.png]``. All campaigns are synthetic.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import probeval
from probeval.plots import ORANGE, plot_ranking, save
from probeval.relevance import FallbackModel, SyntheticCampaign
from probeval.relevance.learning.fit import text_models
from probeval.scores import evaluate

METRIC = "DCG@10"
SCALE = probeval.Scale.graded(2)


def draw(path: Path) -> None:
    rng = np.random.default_rng(0)
    campaign = SyntheticCampaign().draw(rng)
    true = probeval.measure(campaign.runs, campaign.judgments, METRIC).to_frame().set_index("system")["mean"]
    order = rng.permutation(len(campaign.judgments))
    some = campaign.judgments.take(order[: len(order) // 3])
    past = [replace(probeval.synthetic_campaign(seed=seed), name=str(seed)) for seed in range(1, 5)]
    model = FallbackModel(text_models(past, depth=10))

    axes = Figure(figsize=(9.6, 3.8), layout="constrained").subplots(1, 2, sharex=True)
    for ax, judgments in zip(axes, (None, some), strict=True):
        relevance = model.predict(replace(campaign, judgments=judgments).problem(depth=10, scale=SCALE))
        ranking = evaluate(campaign.runs.top(10), relevance, METRIC).ranking()
        plot_ranking(ranking, ax=ax)
        ax.plot(
            [true[system] for system in ranking.order], range(len(true)), "D", color=ORANGE, ms=4, label="true score"
        )
    axes[1].legend(loc="lower right", frameon=False, fontsize=9)
    save(axes[0], path, dpi=90)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "ranking.png")
    draw(target)
    print(f"Wrote {target}.")
