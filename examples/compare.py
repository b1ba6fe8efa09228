"""The pictures of "Compare systems": all pairs of a synthetic campaign, and critical differences of ranks.

Run as ``python examples/compare.py [FILE.png]``: compare.png and, beside it, compare-ranks.png when not given.
"""

import sys
from pathlib import Path

import probeval
from probeval.plots import plot_critical, plot_tests, save
from probeval.reliability import compare

if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "compare.png")
    strong = {"team": 1.0, "system": 1.0}
    campaign = probeval.synthetic_campaign(seed=4, systems=14, queries=60, sds=strong)
    found = compare(probeval.measure(campaign.runs, campaign.judgments, "nDCG@10"), correction="holm")
    ranks = target.with_name(f"{target.stem}-ranks{target.suffix}")
    save(plot_tests(found), target, dpi=90)
    save(plot_critical(found), ranks, dpi=90)
    print(f"Wrote {target} and {ranks}.")
