"""Evaluate a campaign in Python: write it, read it back, score it, and see what the unjudged leave open.

The campaign is synthetic: no real systems, queries or documents.
"""

import tempfile
from pathlib import Path

import numpy as np

import probeval
from probeval.relevance import SyntheticCampaign


def main() -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        probeval.write_campaign(SyntheticCampaign().draw(rng), Path(folder) / "campaign")
        campaign = probeval.read_campaign(Path(folder) / "campaign")

    for name in ("nDCG@10", "AP", "RBP(p=0.8)"):
        print(name)
        table = probeval.measure(campaign.runs, campaign.judgments, name).to_frame()
        print(table.round(4).head(3).to_string(index=False), end="\n\n")

    half = campaign.judgments.take(rng.permutation(len(campaign.judgments))[: len(campaign.judgments) // 2])
    # The scale is named: half of the judgments may lack the top grade.
    partial = probeval.measure(campaign.runs, half, "nDCG@10", scale=probeval.Scale.graded(2))
    print("nDCG@10 with half of the judgments")
    print(partial.to_frame().round(4).head(3).to_string(index=False), end="\n\n")

    pairs = partial.to_dict()["pairs"]
    settled = sum(pair["p_better"] is not None for pair in pairs)
    print(f"{settled} of {len(pairs)} comparisons are settled whatever the other half says.")


if __name__ == "__main__":
    main()
