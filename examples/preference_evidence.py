"""Write docs/evidence-preferences.md: `python examples/preference_evidence.py DATA KEEP [SEEDS [CAMPAIGN ...]]`.

Replays are kept in the folder KEEP, so that a broken run resumes where it stopped; the other scripts of evidence can
share its models. Without names of campaigns, all of SETTINGS are judged.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import CAMPAIGNS, DOCS, do_all, table
from replays import Replays

from probeval.selection.pairs import SECONDS
from probeval.simulation import QuestionTrajectory, replay_questions

SLOPES = (0.5, 1.5, 4.0)
SEEDS = 1
SETTINGS = {
    "trec-dl2019-passage": {"batch": 75, "hours": 3.0},
    "clef-ehealth2018-irtask1": {"batch": 400, "hours": 10.0},
}
GRADES = ("grades", "gain")
WAYS = (("preferences", "gain"), ("mixed", "gain"), ("preferences", "random"))
LOOKS = (1.0, 2.0, 4.0)  # hours at which tau is shown
NAMES = {
    ("grades", "gain"): "grades",
    ("preferences", "gain"): "preferences",
    ("mixed", "gain"): "mixed",
    ("preferences", "random"): "preferences, random pairs",
}
LEAD = """# Evidence: preferences and grades

Written by `examples/preference_evidence.py`. How long does it take to rank systems if assessors compare documents
instead of grading them? Two campaigns are judged again, with questions chosen by [their gain per
second](theory/judging.md#question-gain). Grades are the true ones. A preference between documents with true grades
$g_l$ and $g_r$ is given by a simulated assessor: $P(l) = F(\\lambda (g_l - g_r) - \\log 3)$, $P(r) = F(\\lambda (g_r
- g_l) - \\log 3)$, else "equal", with $F$ the logistic function, so that half of the answers about documents of one
grade are "equal". Of documents one grade apart the better one is preferred with probability {better}, and the other
one with {worse}, if $\\lambda$ is {slopes}. A grade takes {grade:g} seconds, a preference {preference:g}. The model
of relevance is fitted to all other campaigns, as in [the evidence of judging](evidence-judging.md); it is not told
$\\lambda$.

*hours*, *grades* and *preferences* are those after which Kendall's tau with the true ranking by DCG@10 stays at .9
for 100 more answers: means over the {seeds}. *reached* is the number of seeds that got there within the time tried:
{tried}. *tau* is after 1, 2 and 4 hours of answers. *confidence* and *accuracy* are those at the end: the mean
confidence of the comparisons of systems, and the share of them in the true order.

"""


class Work(Replays):
    def by_questions(self, name: str, way: tuple[str, str], slope: float, seed: int) -> QuestionTrajectory:
        """Return a replay by questions of one kind."""
        ask, policy = way

        def judge() -> QuestionTrajectory:
            return replay_questions(
                self.held(name),
                self.model(name),
                f"DCG@{CAMPAIGNS[name]}",
                ask=ask,
                policy=policy,
                slope=slope,
                seed=seed,
                **SETTINGS[name],
            )

        return self.kept(f"questions-{name}-{ask}-{policy}-{slope:g}-{seed}", judge)


def mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def row(name: str, way: tuple[str, str], slope: float | None, runs: list[QuestionTrajectory]) -> dict:
    """Return the means over seeds of one way of asking."""
    ends = [run.reached for run in runs if run.reached is not None]
    return {
        "campaign": name,
        "lambda": "-" if slope is None else f"{slope:g}",
        "questions": NAMES[way],
        "reached": f"{len(ends)} of {len(runs)}",
        "hours": mean([end.seconds / 3600 for end in ends]),
        "grades": mean([end.grades for end in ends]),
        "preferences": mean([end.comparisons for end in ends]),
        **{f"tau {hours:g} h": mean([run.after(hours).tau for run in runs]) for hours in LOOKS},
        "confidence": mean([run.steps[-1].confidence for run in runs]),
        "accuracy": mean([run.steps[-1].accuracy for run in runs]),
    }


def page(work: Work, seeds: int, names: list[str]) -> str:
    cells = [
        (name, way, slope, seed)
        for seed in range(seeds)
        for name in names
        for way, slope in ((GRADES, SLOPES[0]), *((way, slope) for slope in SLOPES for way in WAYS))
    ]
    do_all([partial(work.by_questions, *cell) for cell in cells])
    rows = []
    for name in names:
        for slope, way in ((None, GRADES), *((slope, way) for slope in SLOPES for way in WAYS)):
            runs = [work.by_questions(name, way, SLOPES[0] if slope is None else slope, seed) for seed in range(seeds)]
            rows.append(row(name, way, slope, runs))
    worse, better = (
        ", ".join(f"{1 / (1 + np.exp(-(sign * slope - np.log(3)))):.2f}" for slope in SLOPES) for sign in (-1, 1)
    )
    lead = LEAD.format(
        better=better,
        worse=worse,
        slopes=", ".join(f"{slope:g}" for slope in SLOPES),
        grade=SECONDS["grade"],
        preference=SECONDS["preference"],
        seeds="seed 0" if seeds == 1 else f"seeds 0 to {seeds - 1}",
        tried=", ".join(
            "{hours:g} hours of {name}, with a fit every {batch} answers".format(name=name, **SETTINGS[name])
            for name in names
        ),
    )
    return f"{lead}{table(pd.DataFrame(rows))}\n"


if __name__ == "__main__":
    if len(sys.argv) < 3 or not set(sys.argv[4:]) <= set(SETTINGS):
        sys.exit("usage: python examples/preference_evidence.py DATA KEEP [SEEDS [CAMPAIGN ...]]")
    data, keep, *rest = sys.argv[1:]
    seeds = int(rest[0]) if rest else SEEDS
    found = page(Work(Path(data), Path(keep)), seeds, rest[1:] or list(SETTINGS))
    (DOCS / "evidence-preferences.md").write_text(found)
