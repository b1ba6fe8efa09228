"""Write docs/evidence-calibration.md and its pictures: `python examples/calibration_evidence.py DATA [SEEDS]`."""

import sys
from dataclasses import replace
from pathlib import Path

from evidence import CAMPAIGNS, DOCS, LEARNED, table

from probeval.data import read_campaign
from probeval.plots import plot_checkpoints, plot_reliability, save
from probeval.reporting import Reporter
from probeval.simulation import validate

COLUMNS = {
    "confidence": "confidence",
    "accuracy": "accuracy",
    "tau": "tau",
    "tau_top15": "top 15",
    "calibration_excess": "excess",
    "calibration_p": "p",
    "coverage": "coverage",
    "centred_coverage": "centred",
    "level_z": "level z",
    "mae": "mean error",
}
HEAD = """# Evidence: is confidence calibrated?

Written by `examples/calibration_evidence.py`, which does the same as `probeval validate`. Each campaign is held out
in turn, models are fitted to the others, and part of the campaign is judged, in {seeds} random orders. The models'
confidence and intervals are then compared with all judgments of its pool. No other campaign is similar to MIREX 2011:
models are fitted to half of its queries and tested on the other half. [What calibrated means](theory/calibration.md)
explains every column: *excess* is the calibration error beyond that of a perfect model, *p* the probability of so
large an error for a perfect model. `judged` is the share of the pool that is judged.

The judgments of a campaign are never used in the fit that is tested on it. But the form of the model (its terms, its
effects, the widths of its priors) was selected on these same campaigns, so the figures are somewhat better than
they would be on a new campaign.

"""


class Printer(Reporter):
    """Prints remarks."""

    def say(self, text: str) -> None:
        """Print a remark on stderr."""
        print(text, file=sys.stderr)


def main(data: Path, seeds: int) -> None:
    shared = {"seeds": seeds, "n_jobs": 2, "reporter": Printer()}
    past = [replace(read_campaign(data / name), labels=None) for name in CAMPAIGNS | LEARNED]
    result = validate(past, depth=10, **shared)
    result += validate([read_campaign(data / "mirex2011")], depth=5, **shared)
    summary = result.marks().pivot_table(index="figure", columns="model", values="value")
    marks = result.marks().drop_duplicates("figure").set_index("figure")["mark"]
    summary = summary.loc[marks.index].assign(mark=marks).reset_index()
    page = HEAD.format(seeds=seeds) + "## Against the thresholds\n\n" + table(summary)
    page += "\n## Reliability\n\n![Accuracy against stated confidence](_static/reliability.png)\n\n" + table(
        result.reliability()
    )
    page += "\n## By campaign\n\n![Figures against the share judged](_static/reliability-checkpoints.png)\n"
    means = result.to_frame()
    for (campaign, metric), part in means.groupby(["campaign", "metric"], sort=False):
        shown = part[["model", "checkpoint", *COLUMNS]].rename(columns={"checkpoint": "judged", **COLUMNS})
        page += f"\n### {campaign}, {metric}\n\n" + table(shown)
    (DOCS / "evidence-calibration.md").write_text(page, encoding="utf-8")
    save(plot_reliability(result), DOCS / "_static" / "reliability.png", dpi=100)
    save(plot_checkpoints(result), DOCS / "_static" / "reliability-checkpoints.png", dpi=80)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python examples/calibration_evidence.py DATA [SEEDS]")
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 5)
