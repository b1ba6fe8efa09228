"""Pictures of users: what scores mean to them, who notices a difference, and a synthetic campaign in their eyes.

Run as ``python examples/satisfaction.py [FOLDER]``; it writes satisfaction.png, agreement.png and users.png.
"""

import sys
from pathlib import Path

import numpy as np

import probeval
from probeval.plots import plot_agreement, plot_mappings, plot_satisfaction, save
from probeval.relevance import load_card
from probeval.satisfaction import Satisfaction, load_agreement, load_mapping
from probeval.scores import evaluate

SHOWN = ("CGl@5/broad", "CGe@5/broad", "DCGl@5/broad", "DCGl@5/fine", "P@5/lmin40")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    save(plot_mappings([load_mapping(name) for name in SHOWN]), folder / "satisfaction.png", dpi=100)
    save(plot_agreement(load_agreement("DCGl@5/broad")), folder / "agreement.png", dpi=100)

    campaign = probeval.synthetic_campaign(seed=0)
    shuffled = np.random.default_rng(1).permutation(len(campaign.judgments))
    tenth = campaign.judgments.take(shuffled[: len(shuffled) // 10])
    known = probeval.Collection("a tenth judged", campaign.runs, tenth)
    relevance = load_card("text-jud").model.predict(known.problem(depth=5, scale=probeval.Scale.graded(2)))
    scores = evaluate(campaign.runs.top(5), relevance, "DCG@5", method="draws", per_query=True, n=300)
    users = Satisfaction.of(scores, load_mapping("DCGl@5/broad"), agreement=load_agreement("DCGl@5/broad"))
    save(plot_satisfaction(users), folder / "users.png", dpi=100)
    best, worst = users.to_frame()["system"].iloc[[0, -1]]
    print(users.compare(str(best), str(worst)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
