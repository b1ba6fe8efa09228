"""Every run of two campaigns, topic by topic, against trec_eval, gdeval and cwl_eval.

trec_eval is called through pytrec_eval. ERR, RBP, INSQ and INST are computed here from their definitions: by rank, on
grades that this module reads itself, with the endless tails summed term by term.
"""

from __future__ import annotations

import gzip
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from probeval.data import Scale, as_judgments, as_runs, read_campaign
from probeval.metrics import Lists, bounds, parse
from probeval.studies import interpolated_precision

pytrec_eval = pytest.importorskip("pytrec_eval")

CLOSE = 1e-9
CAMPAIGNS = {"trec8-adhoc": (129, 50), "trec-dl2019-passage": (37, 43)}
TREC_EVAL = {
    "map": "AP", "map_cut_10": "AP@10", "ndcg": "nDCG", "ndcg_cut_10": "nDCG@10", "ndcg_cut_100": "nDCG@100",
    "P_10": "P@10", "P_100": "P@100", "recip_rank": "RR", "Rprec": "Rprec", "bpref": "Bpref", "recall_100": "R@100",
    "recall_1000": "R@1000", "infAP": "infAP", "set_P": "SetP", "set_recall": "SetR", "set_F": "SetF",
    "success_1": "Success@1", "success_10": "Success@10",
}  # fmt: skip


@dataclass(frozen=True)
class Campaign:
    """A campaign as this module reads it, and as the package does."""

    qrels: dict[str, dict[str, int]]
    runs: dict[str, dict[str, dict[str, float]]]
    lists: Lists
    queries: list[str]
    grades: np.ndarray  # (system, query, rank): the grade, NaN unjudged, -9 past the end

    def trec_eval(self, measures, level: int = 1) -> dict[str, np.ndarray]:
        """Scores by measure, shape (system, query), 0 where a run lacks a topic."""
        evaluator = pytrec_eval.RelevanceEvaluator(self.qrels, set(measures), relevance_level=level)
        found = [evaluator.evaluate(run) for run in self.runs.values()]
        return {m: np.array([[f[q][m] if q in f else 0.0 for q in self.queries] for f in found]) for m in measures}


@pytest.fixture(scope="module", params=CAMPAIGNS)
def campaign(request, data) -> Campaign:
    folder = data / request.param
    if not folder.is_dir():
        pytest.skip(f"{request.param} is not in the data folder")
    whole = read_campaign(folder)
    lists, queries = Lists.judged(whole.runs, whole.judgments, whole.judgments.scale())
    qrels: dict[str, dict[str, int]] = {}
    for query, _, doc, grade in _fields(folder / "qrels.txt.gz"):
        qrels.setdefault(query, {})[doc] = int(grade)
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for system in whole.runs.systems:
        for query, _, doc, _, score, _ in _fields(folder / "runs" / f"{system}.gz"):
            runs.setdefault(system, {}).setdefault(query, {})[doc] = float(score)
    assert (len(runs), len(queries)) == CAMPAIGNS[request.param]
    grades = np.full((len(runs), len(queries), 100), -9.0)
    for s, answers in enumerate(runs.values()):
        for q, query in enumerate(queries):
            scores = answers.get(query, {})
            order = sorted(scores, key=lambda doc: (np.float32(scores[doc]), doc), reverse=True)
            grades[s, q, : len(order)] = [qrels[query].get(doc, math.nan) for doc in order]
    return Campaign(qrels, runs, lists, list(queries), grades)


def _fields(path: Path):
    with gzip.open(path, "rt") as lines:
        for line in lines:
            yield line.split()


# ---- trec_eval ----


@pytest.mark.slow
def test_trec_eval_by_topic(campaign):
    theirs = campaign.trec_eval(TREC_EVAL)
    for name, metric in TREC_EVAL.items():
        ours = parse(metric).scores(campaign.lists)
        assert np.abs(ours - theirs[name]).max() < CLOSE, metric


@pytest.mark.slow
def test_trec_eval_at_a_higher_grade(campaign):
    names = {"map": "AP", "P_10": "P", "recip_rank": "RR", "Rprec": "Rprec", "bpref": "Bpref", "infAP": "infAP"}
    theirs = campaign.trec_eval(names, level=2)
    for name, metric in names.items():
        ours = parse(f"{metric}(rel=2)" + ("@10" if metric == "P" else "")).scores(campaign.lists)
        assert np.abs(ours - theirs[name]).max() < CLOSE, metric
        assert ours.any() == (len(campaign.lists.scale) > 2)  # binary judgments have no grade 2


@pytest.mark.slow
def test_interpolated_precision_by_topic(campaign):
    levels = [f"iprec_at_recall_{level / 10:.2f}" for level in range(11)]
    theirs = campaign.trec_eval(levels)
    ours = interpolated_precision(campaign.lists)
    for i, level in enumerate(levels):
        assert np.abs(ours[..., i] - theirs[level]).max() < CLOSE, level


def random_topic(rng, grades) -> tuple[dict[str, int], dict[str, float]]:
    """Judgments with at least one relevant document, and a run over these and unjudged documents."""
    judged = {f"d{i}": int(rng.choice(grades)) for i in range(rng.integers(1, 11))} | {"d99": 1}
    docs = [d for d in [*judged, "u1", "u2", "u3"] if rng.random() < 0.8] or ["u1"]
    return judged, {d: float(x) for d, x in zip(docs, rng.permutation(len(docs)), strict=True)}


def ours_and_theirs(judged, run, names, *, told=None) -> list[tuple[float, float]]:
    """Our score and trec_eval's, which is told other judgments where ``told`` gives them."""
    got = pytrec_eval.RelevanceEvaluator({"q": told or judged}, set(names)).evaluate({"q": run})["q"]
    lists, _ = Lists.judged(as_runs({"a": {"q": run}}), as_judgments({"q": judged}), Scale.graded(2))
    return [(float(parse(metric).scores(lists)[0, 0]), got[name]) for name, metric in names.items()]


def test_short_lists_with_unjudged_documents():
    rng = np.random.default_rng(8)
    for _ in range(300):
        for ours, theirs in ours_and_theirs(*random_topic(rng, [0, 1, 2]), TREC_EVAL):
            assert ours == pytest.approx(theirs, abs=1e-12)


def test_interpolated_precision_rounds_as_trec_eval_does():
    # A level of recall asks for (long)(level * R + .9) documents, in floating point: .3 of 7 is 2, not 3.
    names = [f"iprec_at_recall_{level / 10:.2f}" for level in range(11)]
    rng = np.random.default_rng(11)
    for n_relevant in [7] * 10 + list(range(1, 41)):
        grades = rng.permutation([1] * n_relevant + [0] * 2 * n_relevant)
        judged = {f"d{i}": int(grade) for i, grade in enumerate(grades)}
        run = {f"d{i}": float(-i) for i in range(len(grades))}
        theirs = pytrec_eval.RelevanceEvaluator({"q": judged}, set(names)).evaluate({"q": run})["q"]
        lists = Lists.of_grades([grades], Scale.binary())
        assert interpolated_precision(lists)[0, 0] == pytest.approx([theirs[name] for name in names], abs=1e-12)


def test_grade_minus_one_is_pooled_but_not_judged():
    rng = np.random.default_rng(9)
    for _ in range(300):
        for ours, theirs in ours_and_theirs(*random_topic(rng, [-1, 0, 1, 2]), TREC_EVAL):
            assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.slow
def test_a_lower_grade_is_junk_where_trec_eval_takes_it_for_not_judged():
    # trec_eval reads every negative grade as "in the pool, not judged". Assessors who write -2 mean junk: they saw the
    # document. Only Bpref and infAP tell the two apart; on these we give what trec_eval gives for grade 0.
    rng = np.random.default_rng(10)
    apart = 0
    for _ in range(150):
        judged, run = random_topic(rng, [-2, -1, 0, 1])
        as_unjudged = {doc: max(grade, -1) for doc, grade in judged.items()}
        as_lowest = {doc: 0 if grade == -2 else grade for doc, grade in judged.items()}
        raw, unjudged, lowest = (
            [theirs for _, theirs in ours_and_theirs(judged, run, TREC_EVAL, told=told)]
            for told in (judged, as_unjudged, as_lowest)
        )
        assert raw == unjudged
        ours = [score for score, _ in ours_and_theirs(judged, run, TREC_EVAL)]
        assert ours == pytest.approx(lowest, abs=1e-12)
        apart += raw != lowest
    assert apart > 50


# ---- gdeval and cwl_eval: sums by rank, from the definitions ----


def gain_of(campaign: Campaign, unjudged: float = 0.0) -> np.ndarray:
    """The grade over the top grade at each rank; past the end 0."""
    top = campaign.lists.scale.grades[-1]
    grades = np.where(np.isnan(campaign.grades), unjudged * top, campaign.grades)
    return np.where(grades < 0, 0.0, grades) / top


@pytest.mark.parametrize("top", [None, 4])
@pytest.mark.slow
def test_err_at_20_is_gdevals(campaign, top):
    highest = top or campaign.lists.scale.grades[-1]
    grades = np.where(campaign.grades > 0, campaign.grades, 0.0)  # NaN is not above 0
    score, go_on = np.zeros(grades.shape[:2]), np.ones(grades.shape[:2])
    for i in range(20):
        satisfied = (2 ** grades[..., i] - 1) / 2**highest
        score += go_on * satisfied / (i + 1)
        go_on = go_on * (1 - satisfied)
    metric = parse("ERR@20" if top is None else f"ERR(max={top})@20")
    assert np.abs(metric.scores(campaign.lists) - score).max() < CLOSE


def weighted(campaign: Campaign, weight) -> tuple[np.ndarray, np.ndarray]:
    """Score and residual: the weight of judged ranks times their gains, and the weight of all other ranks."""
    gain = gain_of(campaign)
    score, judged = np.zeros(gain.shape[:2]), np.zeros(gain.shape[:2])
    for i in range(gain.shape[2]):
        w = weight(i + 1)
        score += w * gain[..., i]
        judged += w * (campaign.grades[..., i] >= 0)  # neither NaN nor past the end
    return score, 1 - judged


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
@pytest.mark.slow
def test_rbp_and_its_residual_are_cwls(campaign, p):
    score, residual = weighted(campaign, lambda i: (1 - p) * p ** (i - 1))
    metric = parse(f"RBP(p={p})")
    low, high = bounds(metric, campaign.lists)
    assert np.abs(metric.scores(campaign.lists) - score).max() < CLOSE
    assert np.abs(low - score).max() < CLOSE
    assert np.abs(high - (score + residual)).max() < CLOSE


def inverse_squares(start: np.ndarray | float, terms: int = 3000) -> np.ndarray:
    """1/start^2 + 1/(start+1)^2 + .. summed directly, and past ``terms`` by the midpoint rule (error below 1e-11)."""
    total = np.zeros_like(np.asarray(start, dtype=float))
    for n in range(terms):
        total += 1 / (start + n) ** 2
    return total + 1 / (start + terms - 0.5)


@pytest.mark.parametrize("wanted", [1, 3, 2.5])
@pytest.mark.slow
def test_insq_and_its_residual_are_cwls(campaign, wanted):
    total = inverse_squares(2.0 * wanted)
    score, residual = weighted(campaign, lambda i: 1 / (i + 2 * wanted - 1) ** 2 / total)
    metric = parse(f"INSQ(T={wanted})")
    _, high = bounds(metric, campaign.lists)
    assert np.abs(metric.scores(campaign.lists) - score).max() < CLOSE
    assert np.abs(high - (score + residual)).max() < CLOSE


def inst(gain: np.ndarray, wanted: float, *, endless_gain: int) -> np.ndarray:
    """sum V g / sum V with C(i) = ((i + T + T_i - 1)/(i + T + T_i))^2, by rank, and on past the end."""
    view, found = np.ones(gain.shape[:2]), np.zeros(gain.shape[:2])
    seen, score = np.zeros(gain.shape[:2]), np.zeros(gain.shape[:2])
    i = 0
    for i in range(1, gain.shape[2] + 1):
        found = found + gain[..., i - 1]
        seen, score = seen + view, score + view * gain[..., i - 1]
        left = wanted - found
        view = view * ((i + wanted + left - 1) / (i + wanted + left)) ** 2
    if not endless_gain:  # from here on C runs through ((n - 1)/n)^2, so V is an inverse square
        start = i + 2 * wanted - found
        return score / (seen + view * start**2 * inverse_squares(start))
    for i in range(gain.shape[2] + 1, gain.shape[2] + 3001):
        found = found + 1
        seen, score = seen + view, score + view
        left = wanted - found
        view = view * ((i + wanted + left - 1) / (i + wanted + left)) ** 2
    return score / seen


@pytest.mark.parametrize("wanted", [1, 3, 2.5])
@pytest.mark.slow
def test_inst_is_cwls_and_its_bounds_are_all_lowest_and_all_top(campaign, wanted):
    metric = parse(f"INST(T={wanted})")
    low, high = bounds(metric, campaign.lists)
    lowest = inst(gain_of(campaign), wanted, endless_gain=0)
    past = campaign.grades == -9
    best = inst(np.where(past, 1.0, gain_of(campaign, unjudged=1.0)), wanted, endless_gain=1)
    assert np.abs(metric.scores(campaign.lists) - lowest).max() < CLOSE
    assert np.abs(low - lowest).max() < CLOSE
    assert np.abs(high - best).max() < CLOSE
