"""The picture and the numbers of the README: campaigns ranked by labels of a machine, then judged where it tells most.

Run as ``python examples/story.py [FILE.png]`` (``docs/_static/story.png``). The campaigns are those of ``probeval
demo``: synthetic, with effects and labels as real campaigns show them. They illustrate, and prove nothing. All seeds
from 0 to 4 are shown; the picture is of seed 0.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import probeval
from probeval.cli.demo import draw_campaign
from probeval.plots import plot_milestones, save
from probeval.relevance import choose_model
from probeval.reports import Milestone, milestone, milestone_table
from probeval.selection import Judging
from probeval.simulation import tau_and_accuracy
from probeval.streams import stream

METRIC, BATCH, MOST = "nDCG@10", 10, 60
SEEDS = range(5)


def judge(seed: int) -> tuple[list[Milestone], list[float]]:
    """What is stated after each batch, and the tau with the order that full judgments give."""
    campaign = draw_campaign(stream(seed))
    blind, scale = replace(campaign, judgments=None), campaign.judgments.scale()
    choice = choose_model(None, blind, scale=scale)
    judging = Judging.of(blind, choice.model, METRIC, scale=scale, seed=seed)
    true = probeval.measure(campaign.runs, campaign.judgments, METRIC).values.mean(axis=1)
    grades = campaign.judgments.on(judging.pool).grades()
    state, judged, marks, taus = judging.begin(), [], [], []
    while True:
        marks.append(milestone(state))
        taus.append(tau_and_accuracy(state.scores.mean, true)[0])
        if len(judged) >= MOST:
            return marks, taus
        judged += state.next(BATCH).pairs.tolist()
        at = np.array(judged)
        state = state.after(probeval.Judgments.coded(judging.pool, at, grades[at]))


def main(path: Path) -> None:
    trajectories = [judge(seed) for seed in SEEDS]
    print("seed  judged  confidence  erho2   phi  expected tau   tau")
    for seed, (marks, taus) in zip(SEEDS, trajectories, strict=True):
        for mark, tau in ((marks[0], taus[0]), (marks[-1], taus[-1])):
            figures = f"{mark.confidence:10.2f}  {mark.erho2:5.2f}  {mark.phi:4.2f}  {mark.expected_tau:12.2f}"
            print(f"{seed:4d}  {mark.judged:6d}  {figures}  {tau:4.2f}")
    for at, when in ((0, "before"), (-1, "after")):
        said = np.mean([marks[at].expected_tau for marks, _ in trajectories])
        taus = [tau[at] for _, tau in trajectories]
        print(f"{when}: expected tau {said:.2f}, tau {np.mean(taus):.2f} ({min(taus):.2f} to {max(taus):.2f})")
    save(plot_milestones(milestone_table(trajectories[0][0])), path, dpi=110)
    print(f"Wrote {path}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "story.png"))
