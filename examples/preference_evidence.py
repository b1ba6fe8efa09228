"""Write docs/evidence-preferences.md: `python examples/preference_evidence.py DATA KEEP [SEEDS [CAMPAIGN ...]]`.

Replays are kept in the folder KEEP, so that a broken run resumes where it stopped; the other scripts of evidence can
share its models. Without names of campaigns, all of SETTINGS are judged.
"""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import CAMPAIGNS, DOCS, do_all, table
from replays import Replays

from probeval.data import PairAnswers
from probeval.relevance.models.base import Predicts
from probeval.selection import Judging, JudgingState
from probeval.selection.pairs import SECONDS
from probeval.selection.policies import comparison_weights
from probeval.simulation import HeldOut, QuestionTrajectory, SimulatedAssessor, SimulatedComparer, replay_questions

SLOPES = (0.5, 1.5, 4.0)
SEEDS = 3
SETTINGS = {
    "trec-dl2019-passage": {"batch": 100, "hours": 4.0},
    "clef-ehealth2018-irtask1": {"batch": 250, "hours": 12.0},
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
instead of grading them? {campaigns} judged again, with questions chosen by
[their gain per second](theory/judging.md#question-gain). Grades are the true ones. A preference between documents with
true grades $g_l$ and $g_r$ is given by a simulated assessor,

$$P(l) = F(\\lambda (g_l - g_r) - \\log 3), \\qquad P(r) = F(\\lambda (g_r - g_l) - \\log 3),$$

and otherwise "equal", with $F$ the logistic function: half of the answers about documents of one grade are "equal". Of
documents one grade apart the better one is preferred with probability {better}, and the other one with
{worse}, if $\\lambda$ is {slopes}. A grade takes {grade:g} seconds, a preference {preference:g}. The model of relevance
is fitted to all other campaigns, as in [the evidence of judging](evidence-judging.md).

*hours*, *grades* and *preferences* are those after which Kendall's tau with the true ranking by DCG@10 stays at .9
for 100 more answers, with {seeds}. *reached* is the number of seeds that got there within the time tried: {tried}.
*tau* is after 1, 2 and 4 hours of answers, or at the end if that came earlier. *confidence* and *accuracy* are
those at the end: the mean confidence of the comparisons of systems, and the share of them in the true order.

"""

GRADED, COMPARED, BATCH = 60, 100, 40
EXPECTED = """## Expected and realised falls

The value of a question is the expected fall of a weighted sum of the variances of differences between systems. Is
that what happens? On {name}, with {graded} documents drawn at random graded and {compared} preferences at
$\\lambda$ = {slope:g}, a batch of each kind is answered, and the model fitted again.

"""


TRIED = """## Tried before

- One seed tells little. Grades alone took 1.0 hours with seed 0 and 2.1 with seed 1 on trec-dl2019-passage, with a
  fit every 50 answers. With an earlier version of the model of answers, preferences at $\\lambda$ = 4 took .8 hours
  and the mix .8, with a fit every 50 answers, and the mix at $\\lambda$ = 1.5 took 2.7.
- With that version 2,000 preferences at $\\lambda$ = .5 left tau at .55 on clef-ehealth2018-irtask1, where it was at
  first: the model took such an assessor, the only one, for a careless one. Grades alone took 8.3 hours (seed 0) and 9.7
  hours (seed 1), with a fit every 100 answers.
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

    def falls(self, name: str) -> list[dict]:
        """Return the expected fall of uncertainty by a batch of each kind, and the fall once it is answered."""
        return self.kept(f"falls-{name}", partial(falls, self.held(name), self.model(name), f"DCG@{CAMPAIGNS[name]}"))


def falls(held: HeldOut, model: Predicts, metric: str) -> list[dict]:
    """Return the expected and the realised fall of the sum of variances, weighted as in the gain, from one state."""
    known = np.zeros(len(held.pool), dtype=bool)
    known[held.known] = True
    judging = Judging.of(
        replace(held.collection, judgments=None), model, metric, scale=held.scale, depth=held.depth, offered=known,
        explore=0.0,
    )  # fmt: skip
    grader, comparer = SimulatedAssessor.of(held), SimulatedComparer.of(held, slope=SLOPES[1])
    graded = np.random.default_rng(0).permutation(held.known)[:GRADED].tolist()
    state = judging.state(grader.judge(held, graded), answers=PairAnswers.none())
    given = comparer.answer(held.pool, state.questions(COMPARED, ask="preferences"))
    state = state.after(grader.judge(held, graded), answers=given)
    weights = comparison_weights(state.context, state.goal)

    def uncertainty(at: JudgingState) -> float:
        return float((weights * at.scores.difference_moments()[1] ** 2).sum() / 2)

    rows = []
    for ask in ("grades", "preferences"):
        asked = state.questions(BATCH, ask=ask)
        more = graded + asked.left[~asked.compares].tolist()
        answers = given.with_more(comparer.answer(held.pool, asked, asked=COMPARED))
        after = state.after(grader.judge(held, more), answers=answers)
        rows.append(
            {
                "questions": f"{BATCH} {ask}",
                "uncertainty": uncertainty(state),
                "expected fall": float((asked.value * asked.seconds).sum()),
                "fall": uncertainty(state) - uncertainty(after),
            }
        )
    return rows


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
        campaigns=f"{names[0]} is" if len(names) == 1 else f"{' and '.join(names)} are",
        seeds="seed 0" if seeds == 1 else f"seeds 0 to {seeds - 1} on average",
        tried=", ".join(
            "{hours:g} hours of {name}, with a fit every {batch} answers".format(name=name, **SETTINGS[name])
            for name in names
        ),
    )
    expected = EXPECTED.format(name=names[0], graded=GRADED, compared=COMPARED, slope=SLOPES[1])
    return f"{lead}{table(pd.DataFrame(rows))}\n\n{expected}{table(pd.DataFrame(work.falls(names[0])))}\n\n{TRIED}"


if __name__ == "__main__":
    if len(sys.argv) < 3 or not set(sys.argv[4:]) <= set(SETTINGS):
        sys.exit("usage: python examples/preference_evidence.py DATA KEEP [SEEDS [CAMPAIGN ...]]")
    data, keep, *rest = sys.argv[1:]
    seeds = int(rest[0]) if rest else SEEDS
    found = page(Work(Path(data), Path(keep)), seeds, rest[1:] or list(SETTINGS))
    (DOCS / "evidence-preferences.md").write_text(found)
