"""The picture of the README: what the unjudged documents leave open, at three shares of judged pairs.

Run as ``python examples/bounds.py [FILE.png]``. The campaign is synthetic.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import probeval
from probeval.relevance import SyntheticCampaign

METRIC = "nDCG@10"
SHARES = (0.2, 0.5, 0.8)
BLUE, ORANGE = "#0072B2", "#D55E00"  # told apart by every common kind of colour vision


def draw(path: Path) -> None:
    rng = np.random.default_rng(0)
    campaign = SyntheticCampaign().draw(rng)
    full = probeval.measure(campaign.runs, campaign.judgments, METRIC).values.mean(axis=1)
    best_first = np.argsort(-full)
    shuffled = rng.permutation(len(campaign.judgments))
    names = [campaign.runs.systems[i].removeprefix("system-") for i in best_first]
    x = np.arange(len(names))

    figure, axes = plt.subplots(1, len(SHARES), figsize=(9.6, 3.4), sharey=True, layout="constrained")
    for ax, share in zip(axes, SHARES, strict=True):
        some = campaign.judgments.take(shuffled[: int(share * len(shuffled))])
        partial = probeval.measure(campaign.runs, some, METRIC, scale=probeval.Scale.graded(2))
        low, high, score = (v.mean(axis=1)[best_first] for v in (partial.lower, partial.upper, partial.values))
        ax.vlines(x, low, high, color=BLUE, lw=7, alpha=0.3, label="bounds: the score lies here for certain")
        ax.plot(x, score, "o", mfc="white", mec=BLUE, ms=5, label="usual score: unjudged = not relevant")
        ax.plot(x, full[best_first], "D", color=ORANGE, ms=4, label="score with every pair judged")
        ax.set_title(f"{share:.0%} of the pairs judged", fontsize=11)
        ax.set_xticks(x, names, fontsize=8)
        ax.set_ylim(0, 1)
        ax.grid(axis="y", color="#dddddd", lw=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(METRIC)
    axes[1].set_xlabel("system, best first by the full judgments (synthetic campaign)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "bounds.png")
    draw(target)
    print(f"Wrote {target}.")
