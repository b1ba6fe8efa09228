"""Replays by models that never saw a campaign: `python examples/replays.py DATA KEEP` fits these models into KEEP.

Other scripts of evidence use the models and the replays that they find in the folder KEEP, and make those that are
missing.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from evidence import CAMPAIGNS, COVID, Keep, past_campaigns

from probeval.data import read_campaign
from probeval.relevance import fit_hierarchical
from probeval.simulation import MODELS, HeldOut, SimulationProtocol, replay
from probeval.simulation.trajectory import Trajectory

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
PROTOCOL = {"batch": 10, "late_batch": 0.01, "checkpoints": SHARES, "until": SHARES[-1], "draws": 500}


class Replays:
    """Campaigns, models and trajectories, each made once."""

    def __init__(self, data: Path, keep: Path) -> None:
        self.data, self.kept = data, Keep(keep)

    def held(self, name: str, depth: int | None = None) -> HeldOut:
        depth = depth or CAMPAIGNS[name]

        def hold():
            return HeldOut.of(replace(read_campaign(self.data / name), labels=None), depth=depth)

        return self.kept(f"held-{name}", hold)

    def model(self, name: str, kind: str = "hierarchical"):
        """Return a model that never saw the campaign; independent pairs are fitted at the campaign's own depth."""

        def fit():
            past = past_campaigns(self.data, name, labels=False)
            if kind == "hierarchical":
                return fit_hierarchical(past, depth=10)
            return MODELS[kind](past, depth=CAMPAIGNS[name])

        return self.kept(f"model-{kind}-{'trec-covid' if name in COVID else name}", fit)

    def judged_by(self, policy: str, name: str, measure: str, seed: int) -> Trajectory:
        """Return the replay by a policy and the hierarchical model, to 40% of the pool."""
        return self.replay(f"cell-{name}-{policy}-{measure}-{seed}", name, policy, measure, seed=seed)

    def replay(
        self, kept: str, name: str, policy: str, measure: str, *, kind: str = "hierarchical", seed: int = 0,
        held: Callable[[], HeldOut] | None = None, **settings,
    ) -> Trajectory:  # fmt: skip
        """Return a replay of a campaign, or of ``held``, a variant of it."""
        protocol = SimulationProtocol.of(f"{measure}@{CAMPAIGNS[name]}", **{**PROTOCOL, **settings})

        def judge():
            campaign = self.held(name) if held is None else held()
            return replay(campaign, self.model(name, kind), protocol, policy=policy, name=kind, seed=seed)

        return self.kept(kept, judge)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/replays.py DATA KEEP")
    replays = Replays(Path(sys.argv[1]), Path(sys.argv[2]))
    for campaign in CAMPAIGNS:
        print(campaign, replays.model(campaign))
