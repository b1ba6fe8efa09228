"""Write docs/evidence-calibration.md and its pictures: `python examples/calibration_evidence.py DATA [SEEDS]`."""

import sys
from pathlib import Path

import pandas as pd

from probeval.data import read_campaign
from probeval.plots import plot_checkpoints, plot_reliability, save
from probeval.simulation import validate

DOCS = Path(__file__).parents[1] / "docs"
TEXT = ("trec8-adhoc", "trec-dl2019-passage", "clef-ehealth2018-irtask1", "trec-covid-round1", "touche2022-task2")
COLUMNS = {
    "confidence": "confidence",
    "accuracy": "accuracy",
    "tau": "tau",
    "calibration_excess": "excess",
    "calibration_p": "p",
    "coverage": "coverage",
    "centred_coverage": "centred",
    "level_z": "level z",
    "mae": "mean error",
}
HEAD = """# Evidence: is stated confidence true?

Written by `examples/calibration_evidence.py`, which runs what `probeval validate` runs. Each campaign is left out,
models learn from the others, and the campaign is judged in part, in {seeds} random orders. What the models then state
is held against all judgments of its pool. MIREX 2011 has no like among the others: models learn from half of its
queries and are tried on the other half. [What calibrated means](theory/calibration.md) explains every column: *excess*
is the calibration error beyond what a perfect model would show by chance, *p* the chance of so large an error for a
perfect model. `judged` is the share of the pool that is judged.

A campaign's judgments never enter the fit that is tried on it. But the form of the model (its terms, its effects, the
widths of its priors) was chosen while looking at these same four campaigns, so the figures are somewhat kinder than a
campaign that nobody has looked at would be.

"""


def table(frame: pd.DataFrame) -> str:
    head = [*frame.columns]
    rows = [[_cell(v) for v in row] for row in frame.itertuples(index=False)]
    return "\n".join("| " + " | ".join(map(str, r)) + " |" for r in [head, ["---"] * len(head), *rows]) + "\n"


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value).replace("|", "\\|")


def main(data: Path, seeds: int) -> None:
    shared = {"seeds": seeds, "n_jobs": 2, "say": lambda line: print(line, file=sys.stderr)}
    result = validate([read_campaign(data / name) for name in TEXT], depth=10, **shared)
    result += validate([read_campaign(data / "mirex2011")], depth=5, **shared)
    summary = result.marks().pivot_table(index="figure", columns="model", values="value")
    marks = result.marks().drop_duplicates("figure").set_index("figure")["mark"]
    summary = summary.loc[marks.index].assign(mark=marks).reset_index()
    page = HEAD.format(seeds=seeds) + "## Against the marks\n\n" + table(summary)
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
