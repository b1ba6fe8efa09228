"""Every measure against a slow one, written from its formula: one list at a time, one rank at a time."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from probeval.data import ABSENT, POOLED, UNJUDGED, Scale
from probeval.errors import MetricError
from probeval.metrics import REGISTRY, Lists, Metric, parse
from probeval.metrics.mapping import load_mapping, measure_mapped

CLOSE = 1e-12
SCALES = (Scale.binary(), Scale.graded(2), Scale.graded(3, gain="exp"), Scale.graded(4), Scale((0, 2, 5)))
MEASURES = [
    "P@1", "P@3", "P(rel=2)@5", "P@20",
    "AP", "AP@3", "AP@20", "AP(rel=2)", 'AP(norm="min")@3', 'AP(norm="min")', 'AP(norm="perfect")@3',
    'AP(norm="perfect")',
    "RR", "RR@2", "RR(rel=3)", "Success@1", "Success(rel=2)@4",
    "CG", "CG@3", "CG@20", 'CG(norm="ideal")@3', 'CG(norm="none")', 'CG(gain="exp")@4',
    "DCG@3", "DCG", 'DCG(gain="exp", discount="jk")@4', 'DCG(norm="none")@20', 'DCG(norm="ideal")',
    'DCG(discount="jk")', "DCG(base=10)@4", 'DCG(discount="jk", base=3, norm="none")@5', "nDCG(base=1.5)@4",
    "SDCG@3", "SDCG@20", 'SDCG(gain="exp")@5',
    "nDCG", "nDCG@1", "nDCG@3", "nDCG@20", 'nDCG(gain="exp", discount="jk")@5', 'nDCG(norm="perfect")@3',
    "RBP", "RBP(p=0.5)", "RBP(rel=2)@4", "RBP(p=0)", 'RBP(norm="perfect")@3', 'RBP(norm="ideal")@3',
    'RBP(norm="ideal")', 'RBP(p=0.95, norm="ideal", gain="exp")@20',
    "INSQ", "INSQ(T=2.5)@4", "INSQ(T=3, rel=2)", "INST", "INST(T=2.5)", "INST(T=4, rel=2)", 'INST(T=0.5, gain="exp")',
    "Q", "Q@3", "Q(beta=0)", 'Q(norm="min")@3', 'Q(norm="perfect")@3', 'Q(beta=10, gain="exp")@20', 'Q(norm="min")',
    "ERR", "ERR@3", "ERR(max=5)@20", 'ERR(gain="linear")', 'ERR(norm="perfect")@3', 'ERR(norm="perfect")@20',
    'ERR(gain="linear", max=6, norm="perfect")',
    "EDCG", "EDCG@3", 'EDCG(gain="exp")@20',
    "GAP", "GAP@3", "GAP@20", 'GAP(norm="perfect")@3', 'GAP(norm="perfect")',
    "ADR", "ADR@3", "ADR@20", 'ADR(norm="perfect")@3',
    "Rprec", "Rprec(rel=2)", "R@3", "R(rel=2)@20", "F@3", "F(beta=2)@20", "F(beta=0, rel=2)@4",
    "SetP", "SetR", "SetF", "SetF(beta=0.5)", "Bpref", "Bpref(rel=2)", "infAP", "infAP(rel=2)", "Judged", "Judged@3",
    'PSat(mapping="CGl@5/broad")', 'PSat(mapping="GAP@5/fine")', 'PSat(mapping="AP@5/lmin20")',
    'PSucc(mapping="DCGe@5/broad")', 'PSucc(mapping="Ql@5/nl4")', 'PSucc(mapping="P@5/lmin40")',
]  # fmt: skip

NOT_JUDGED, IN_POOL = "?", "pool"  # beside grades, what a slow list may hold


def test_every_measure_and_every_norm_is_here():
    assert {parse(m).name for m in MEASURES} == set(REGISTRY)
    for name, definition in REGISTRY.items():
        norms = definition.parameters["norm"].choices if "norm" in definition.parameters else ()
        for norm in norms:
            assert any(parse(m).name == name and parse(m)["norm"] == norm for m in MEASURES), (name, norm)


# ---- the slow measures ----


def plain(metric: Metric, row: list, known: list[float], scale: Scale, depth: int) -> float:
    """The score of one list; ``known`` are the judged grades of its query, ``depth`` the longest list."""
    if metric.name in ("PSat", "PSucc"):
        mapping = load_mapping(metric["mapping"])
        x = plain(measure_mapped(mapping.name, scale), row, known, scale, depth)
        sat = sum(a * x**i for i, a in enumerate(mapping.coefficients))
        return sat if metric.name == "PSat" else float(sat > 0.5)
    top = scale.grades[-1]
    name, k = metric.name, metric.cutoff or depth
    said = dict(metric.parameters)
    row = row[:k]
    kind = said.get("gain") or scale.gain
    if said.get("rel") is not None and name in ("RBP", "INSQ", "INST"):

        def gain(r):
            return float(r >= said["rel"]) if isinstance(r, (int, float)) else 0.0
    else:

        def gain(r):
            return (float(r) if kind == "linear" else 2.0**r - 1) if isinstance(r, (int, float)) else 0.0

    g = [gain(r) for r in row]
    g_max = gain(top) or 1.0
    best = sorted(known, reverse=True)
    judged = [isinstance(r, (int, float)) for r in row]
    lowest = said.get("rel") or 1
    rel = [is_judged and r >= lowest for r, is_judged in zip(row, judged, strict=True)]
    n_rel = sum(r >= lowest for r in known)

    if name in ("P", "CG", "DCG", "SDCG", "nDCG", "RBP", "INSQ"):

        def weight(i):
            if name in ("P", "CG"):
                return 1.0
            if name == "RBP":
                return (1 - said["p"]) * said["p"] ** (i - 1)
            if name == "INSQ":
                return 1 / (i + 2 * said["T"] - 1) ** 2
            base = said["base"]
            return 1 / (math.log(i + base - 1, base) if said["discount"] == "log2" else max(1.0, math.log(i, base)))

        if name == "P":
            return sum(rel) / k
        total = sum(weight(i) * x for i, x in enumerate(g, start=1))
        norm = said.get("norm")
        if name == "INSQ":
            return total / g_max / _inverse_squares(2 * said["T"])
        if norm == "none":
            return total
        if norm is None:  # RBP as the field has it
            return total / g_max
        if norm == "perfect":
            return total / sum(weight(i) * g_max for i in range(1, k + 1))
        depth_of_ideal = metric.cutoff or len(best)
        return _over(total, sum(weight(i) * gain(r) for i, r in enumerate(best[:depth_of_ideal], start=1)))

    if name == "INST":
        return _inst([x / g_max for x in g], said["T"])
    if name == "AP":
        total = sum(sum(rel[: i + 1]) / (i + 1) for i in range(len(row)) if rel[i])
        return _over(total, {None: n_rel, "min": min(k, n_rel), "perfect": k}[said["norm"]])
    if name == "RR":
        return next((1 / i for i, hit in enumerate(rel, start=1) if hit), 0.0)
    if name == "Success":
        return float(any(rel))
    if name == "Q":
        beta, total = said["beta"], 0.0
        for i in range(1, len(row) + 1):
            if judged[i - 1] and row[i - 1] > 0:
                count = sum(is_judged and r > 0 for r, is_judged in zip(row[:i], judged[:i], strict=True))
                of_ideal = sum(map(gain, best[:i])) if said["norm"] != "perfect" else i * gain(top)
                total += (count + beta * sum(g[:i])) / (i + beta * of_ideal)
        above = sum(r > 0 for r in known)
        return _over(total, {None: above, "min": min(k, above), "perfect": k}[said["norm"]])
    if name in ("ERR", "EDCG"):
        kind = said["gain"] or scale.gain
        limit = g_max if said.get("max") is None else (2.0 ** said["max"] - 1 if kind == "exp" else said["max"])

        def cascade(gains):
            total, go_on = 0.0, 1.0
            for i, x in enumerate(gains, start=1):
                total += (1 / i if name == "ERR" else x) * go_on * x / (limit + 1)
                go_on *= 1 - x / (limit + 1)
            return total

        perfect = cascade([gain(top)] * k)
        return cascade(g) / (perfect if name == "EDCG" or said["norm"] == "perfect" else 1)
    if name == "GAP":
        place = {grade: at for at, grade in enumerate(scale.grades)}
        share = 1 / (len(scale) - 1)
        at = [place[r] if is_judged else 0 for r, is_judged in zip(row, judged, strict=True)]
        total = sum(sum(min(at[i], at[j]) for j in range(i + 1)) * share / (i + 1) for i in range(len(row)))
        if said["norm"] == "perfect":
            return total / k
        return _over(total, sum(place[r] * share for r in best[: metric.cutoff or len(best)]))
    if name == "ADR":
        total = 0.0
        for i in range(1, k + 1):
            # Past the end of the ideal list any judged document will do.
            due = top if said["norm"] == "perfect" else best[i - 1] if i <= len(best) else scale.grades[0]
            good = [is_judged and r >= due for r, is_judged in zip(row[:i], judged[:i], strict=True)]
            total += sum(good) / i
        return total / k
    if name == "Rprec":
        return _over(sum(rel[:n_rel]), n_rel)
    if name in ("R", "SetR"):
        return _over(sum(rel), n_rel)
    if name == "SetP":
        return _over(sum(rel), len(row))
    if name in ("F", "SetF"):
        precision = sum(rel) / k if name == "F" else _over(sum(rel), len(row))
        recall, beta = _over(sum(rel), n_rel), said["beta"]
        return _over((1 + beta**2) * precision * recall, beta**2 * precision + recall)
    if name == "Bpref":
        other, total = len(known) - n_rel, 0.0
        for i, hit in enumerate(rel):
            if hit:
                above = sum(is_judged and not r for r, is_judged in zip(rel[:i], judged[:i], strict=True))
                total += 1 - (min(above, n_rel) / min(other, n_rel) if above else 0)
        return _over(total, n_rel)
    if name == "infAP":
        total, eps = 0.0, 1e-5
        for i, hit in enumerate(rel):  # i documents stand above
            if hit and i == 0:
                total += 1
            elif hit:
                seen, pooled = sum(judged[:i]), sum(r == IN_POOL for r in row[:i])
                chance = (sum(rel[:i]) + eps) / (seen + 2 * eps)
                total += 1 / (i + 1) + i / (i + 1) * (seen + pooled) / i * chance
        return _over(total, n_rel)
    assert name == "Judged"
    return _over(sum(judged), len(row))


def _over(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def _inverse_squares(start: float) -> float:
    """1/start^2 + 1/(start+1)^2 + .. by direct summation and the midpoint rule for the rest (error below 1e-14)."""
    n = 20_000
    return math.fsum(1 / (start + i) ** 2 for i in range(n)) + 1 / (start + n - 0.5)


def _inst(g: list[float], wanted: float) -> float:
    view, found, seen, total = 1.0, 0.0, 0.0, 0.0
    for i, x in enumerate(g, start=1):
        found += x
        seen, total = seen + view, total + view * x
        base = i + wanted + (wanted - found)
        view *= ((base - 1) / base) ** 2
    start = len(g) + 2 * wanted - found  # nothing more is found: V goes on as an inverse square
    return total / (seen + view * start**2 * _inverse_squares(start))


# ---- random lists ----


def random_lists(rng: np.random.Generator, scale: Scale, n_systems: int = 3, n_queries: int = 4):
    """Lists of unequal length with unjudged documents, as the package has them and as rows of grades."""
    depth = int(rng.integers(1, 9))
    codes = np.full((n_systems, n_queries, depth), ABSENT, dtype=np.int16)
    rows: list[list[list]] = [[[] for _ in range(n_queries)] for _ in range(n_systems)]
    known: list[list[float]] = []
    for q in range(n_queries):
        # A query's judged documents, from none to many, sometimes without any relevant one.
        top = 1 if rng.random() < 0.15 else len(scale)
        judged = rng.integers(0, top, rng.integers(0, 12))
        known.append([scale.grades[c] for c in judged])
        for s in range(n_systems):
            docs = np.concatenate([judged, rng.choice([UNJUDGED, UNJUDGED, POOLED], 4)])
            drawn = rng.permutation(docs)[: rng.integers(0, depth + 1)]
            codes[s, q, : len(drawn)] = drawn
            words = {UNJUDGED: NOT_JUDGED, POOLED: IN_POOL}
            rows[s][q] = [words[c] if c < 0 else scale.grades[c] for c in drawn.tolist()]
    relevant_counts = np.array([[sum(r >= grade for r in of_query) for grade in scale.grades] for of_query in known])
    return Lists(scale, codes, relevant_counts), rows, known


@pytest.mark.parametrize("name", MEASURES)
def test_the_kernel_gives_what_the_formula_says(name):
    metric, rng = parse(name), np.random.default_rng(17)
    for trial in range(30):
        scale = SCALES[trial % len(SCALES)]
        if (metric.parameters.get("max") or math.inf) < scale.grades[-1]:
            continue
        lists, rows, known = random_lists(rng, scale)
        slow = [
            [plain(metric, row, known[q], scale, lists.depth) for q, row in enumerate(of_system)] for of_system in rows
        ]
        np.testing.assert_allclose(metric.scores(lists), slow, atol=CLOSE)


@pytest.mark.parametrize("name", MEASURES)
def test_a_leading_axis_of_draws_is_a_loop_over_draws(name):
    metric, rng = parse(name), np.random.default_rng(23)
    scale = Scale.graded(3)
    codes = rng.integers(-1, 4, (2, 5, 3, 4, 7)).astype(np.int16)
    counts = rng.integers(0, 4, (2, 5, 4, len(scale)))
    relevant_counts = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    whole = metric.scores(Lists(scale, codes, relevant_counts))
    assert whole.shape == (2, 5, 3, 4)
    for i in np.ndindex(2, 5):
        np.testing.assert_allclose(whole[i], metric.scores(Lists(scale, codes[i], relevant_counts[i])), atol=CLOSE)


# ---- the corners ----


@pytest.mark.parametrize("name", [m for m in MEASURES if not m.startswith("PSat")])
def test_a_query_without_a_list_scores_nothing(name):
    lists = Lists(Scale.graded(2), np.full((2, 1, 4), ABSENT, dtype=np.int16), np.array([[5, 3, 1]]))
    np.testing.assert_array_equal(parse(name).scores(lists), 0)


@pytest.mark.parametrize("name", [m for m in MEASURES if not m.startswith(("Judged", "ADR", "PSat"))])
def test_where_nothing_is_relevant_nothing_is_scored(name):
    lists = Lists.of_grades([[0, 0, float("nan"), 0]], Scale.graded(3))
    assert parse(name).scores(lists)[0, 0] == 0


@pytest.mark.parametrize(
    "name",
    [
        "P@4", "CG@4", "DCG@4", "SDCG@4", "nDCG@4", 'nDCG(norm="perfect")@4', 'RBP(norm="perfect")@4', "AP",
        'RBP(norm="ideal")@4', 'AP(norm="perfect")@4', 'AP(norm="min")@4', "RR", "Success@4", "R@4", "F@4", "Q",
        'Q(norm="min")@4', 'Q(norm="perfect")@4', 'ERR(norm="perfect")@4', "EDCG@4", "GAP", 'GAP(norm="perfect")@4',
        "ADR", 'ADR(norm="perfect")@4', "Rprec", "SetP", "SetR", "SetF", "Bpref", "infAP",
    ],
)  # fmt: skip
def test_a_list_of_all_top_grades_is_perfect_in_both_families(name):
    score = parse(name).scores(Lists.of_grades([[3, 3, 3, 3]], Scale.graded(3)))[0, 0]
    assert score == pytest.approx(1, abs=1e-5 if name == "infAP" else CLOSE)  # infAP is smoothed


@pytest.mark.parametrize("name", ["nDCG@3", 'Q(norm="min")@3', "GAP@3", 'RBP(norm="ideal")@3', 'CG(norm="ideal")@3'])
def test_the_families_part_where_there_is_little_to_find(name):
    # The best list that one fair document allows: as good as can be, and far from a list of top grades.
    lists = Lists.of_grades([[1, 0, 0]], Scale.graded(3))
    user = {"nDCG@3": 'nDCG(norm="perfect")@3', 'CG(norm="ideal")@3': "CG@3"}.get(
        name, name.replace("ideal", "perfect").replace("min", "perfect").replace("GAP@", 'GAP(norm="perfect")@')
    )
    assert parse(name).scores(lists)[0, 0] == pytest.approx(1)
    assert parse(user).scores(lists)[0, 0] < 0.5


def test_unjudged_is_not_zero():
    scale, nan = Scale.binary(), float("nan")
    known = [[1, 0, 0]]
    zero, unjudged = (Lists.of_grades([[x, 1]], scale, known=known) for x in (0, nan))
    pooled = Lists(scale, np.array([[[POOLED, 1]]], dtype=np.int16), zero.relevant_counts)
    for name, at_zero, at_unjudged, at_pooled in [
        ("Bpref", 0, 1, 1),  # above the relevant document stands a worse one, or one that nobody knows
        ("Judged", 1, 0.5, 0.5),
        ("AP", 0.5, 0.5, 0.5),
        # Of the one document above, judged non-relevant; outside the pool, hence not relevant; drawn, maybe relevant.
        ("infAP", 0.5 + 0.5 * 1e-5 / (1 + 2e-5), 0.5, 0.5 + 0.5 * 0.5),
    ]:
        found = [parse(name).scores(lists)[0, 0] for lists in (zero, unjudged, pooled)]
        assert found == pytest.approx([at_zero, at_unjudged, at_pooled], abs=CLOSE), name


@pytest.mark.parametrize("name", [m for m in MEASURES if parse(m).definition.cutoff == "optional"])
def test_a_cutoff_past_the_end_changes_only_what_it_divides_by(name):
    metric = parse(name)
    lists = Lists.of_grades([[2, 0, 1]], Scale.graded(2), known=[[2, 2, 1, 1, 0]])
    long, padded = (
        metric @ 6,
        Lists(lists.scale, np.append(lists.codes, [[[ABSENT] * 3]], axis=2), lists.relevant_counts),
    )
    np.testing.assert_allclose(long.scores(lists), long.scores(padded), atol=CLOSE)


# ---- weights ----


@pytest.mark.parametrize("name", MEASURES)
def test_a_linear_measure_is_its_gains_times_its_weights(name):
    metric, rng = parse(name), np.random.default_rng(3)
    scale = Scale.graded(3, gain="exp")
    lists, _, _ = random_lists(rng, scale)
    linear = (
        metric.name in ("P", "CG", "DCG", "SDCG", "RBP", "INSQ", "nDCG") and metric.parameters.get("norm") != "ideal"
    )
    assert metric.is_linear == linear
    if not linear:
        with pytest.raises(MetricError, match="not linear"):
            metric.weights(scale, lists.depth)
        return
    weights = metric.weights(scale, lists.depth)
    assert weights.shape == (lists.depth,)
    assert not np.any(weights[metric.cutoff or lists.depth :])
    np.testing.assert_allclose(lists.values(metric.gains(scale)) @ weights, metric.scores(lists), atol=CLOSE)


def test_weights_say_what_a_unit_of_gain_is_worth():
    scale = Scale.graded(2)
    np.testing.assert_allclose(parse("CG@4").weights(scale, 4), [1 / 8] * 4)
    np.testing.assert_allclose(parse("P@2").weights(scale, 4), [1 / 2, 1 / 2, 0, 0])
    np.testing.assert_allclose(parse("RBP(p=0.5)").weights(scale, 3), [1 / 4, 1 / 8, 1 / 16])
    np.testing.assert_allclose(parse('DCG(norm="none")@2').weights(scale, 3), [1, 1 / np.log2(3), 0])
    assert parse("DCG@10").weights(scale, 10).sum() == pytest.approx(1 / 2)
    with pytest.raises(MetricError, match="not a weighted sum"):
        parse("AP").rank_weights(3)
    with pytest.raises(MetricError, match="not a function of gains"):
        parse("AP").gains(scale)


# ---- refusals ----


@pytest.mark.parametrize("name", [n for n, d in REGISTRY.items() if d.cutoff == "required"])
def test_a_cutoff_that_is_needed_is_asked_for(name):
    with pytest.raises(MetricError, match=f"{name} needs a cutoff: {name}@10"):
        Metric(name).scores(Lists.of_grades([[1]], Scale.binary()))


@pytest.mark.parametrize("name", ["PSat", "PSucc"])
def test_a_mapping_that_is_needed_is_asked_for(name):
    with pytest.raises(MetricError, match=rf'{name} needs a mapping: {name}\(mapping="CGl@5/broad"\), for example'):
        Metric(name).scores(Lists.of_grades([[1]], Scale.binary()))


def test_err_refuses_a_top_grade_below_the_scales():
    lists = Lists.of_grades([[3, 0]], Scale.graded(3))
    with pytest.raises(MetricError, match="max must be at least the top grade, 3, got 2"):
        parse("ERR(max=2)").scores(lists)
    assert parse("ERR(max=3)").scores(lists)[0, 0] == parse("ERR").scores(lists)[0, 0] == 7 / 8


@pytest.mark.parametrize("k", [1, 3, 9])
def test_gap_of_a_user_with_one_line_is_ap_from_that_grade_on(k):
    lists = Lists.of_grades(np.random.default_rng(k).choice([0, 1, 2, 3, np.nan], size=(20, 8)), Scale.graded(3))
    for level, p in enumerate(np.eye(3), start=1):
        for norm, same in (("perfect", "perfect"), ("ideal", "min")):
            gap = parse(f'GAP(p={tuple(p.tolist())}, norm="{norm}")@{k}')
            ap = parse(f'AP(rel={level}, norm="{same}")@{k}')
            assert gap.scores(lists) == pytest.approx(ap.scores(lists))


def test_gap_is_the_mean_over_users_who_draw_different_lines():
    lists = Lists.of_grades([[1, 3, 0, 2, 3]], Scale.graded(3))
    p = (0.5, 0.3, 0.2)
    each = [parse(f'AP(rel={level}, norm="perfect")@5').scores(lists)[0, 0] for level in (1, 2, 3)]
    assert parse(f'GAP(p={p}, norm="perfect")@5').scores(lists)[0, 0] == pytest.approx(float(np.dot(p, each)))
    even = parse("GAP(p=(0.25, 0.25, 0.25, 0.25))@3").scores(Lists.of_grades([[4, 1, 2]], Scale.graded(4)))
    assert even == pytest.approx(parse("GAP@3").scores(Lists.of_grades([[4, 1, 2]], Scale.graded(4))))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("GAP(p=(0.5, 0.4))@5", "p must be numbers from 0 that sum to 1"),
        ("GAP(p=(1.5, -0.5))@5", "p must be numbers from 0 that sum to 1"),
        ("GAP(p=1)@5", "p must be numbers from 0 that sum to 1"),
        ("GAP(p=(a, b))@5", "Cannot read"),
        ("nDCG(base=1)@5", "base must be at least 1.01"),
    ],
)
def test_parameters_that_no_user_has(text, why):
    with pytest.raises(MetricError, match=re.escape(why)):
        parse(text)


def test_gap_needs_a_probability_for_every_grade():
    with pytest.raises(MetricError, match="the scale graded:3 has 3 grades above the lowest, got 2 for p"):
        parse("GAP(p=(0.5, 0.5))@5").scores(Lists.of_grades([[1]], Scale.graded(3)))
