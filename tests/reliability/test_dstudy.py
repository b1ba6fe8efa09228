"""D-studies: coefficients of other sizes by their formulas, and the queries that targets take."""

from __future__ import annotations

import numpy as np
import pytest

from probeval.errors import ReliabilityError
from probeval.reliability import MAPPINGS, Design, GStudy, Observed, dstudy, gstudy

NESTED = {"system": 0.04, "query": 0.2, "system x query": 0.3, "assessor:query": 0.02, "residual": 0.4}


def known(design: str, components: dict[str, float], **sizes: float) -> GStudy:
    return GStudy(Design.parse(design), sizes, "anova", "none", (), components)


def test_nested_coefficients_are_eqs_6_9_and_6_10():
    study = known("s x (h:q)", NESTED, system=7, query=60, assessor=3)
    s, q, sq, hq, e = NESTED.values()
    for n_q, n_h in ((60, 3), (100, 1), (10, 5)):
        relative = sq / n_q + e / (n_q * n_h)
        absolute = (q + sq) / n_q + (hq + e) / (n_q * n_h)
        assert study.coefficient("erho2", query=n_q, assessor=n_h).value == pytest.approx(s / (s + relative))
        assert study.coefficient("phi", query=n_q, assessor=n_h).value == pytest.approx(s / (s + absolute))


def test_crossed_assessors_leave_an_error_that_queries_do_not_reduce():
    names = Design.parse("s x q x h").names
    components = dict(zip(names, (0.1, 0.2, 0.05, 0.1, 0.02, 0.03, 0.2), strict=True))
    study = known("s x q x h", components, system=5, query=20, assessor=2)
    n_q, n_h = 20, 2
    relative = 0.1 / n_q + 0.02 / n_h + 0.2 / (n_q * n_h)
    absolute = relative + 0.2 / n_q + 0.05 / n_h + 0.03 / (n_q * n_h)
    assert study.coefficient("erho2").value == pytest.approx(0.1 / (0.1 + relative))
    assert study.coefficient("phi").value == pytest.approx(0.1 / (0.1 + absolute))
    assert study.queries_for("erho2", 0.95).value == np.inf  # with two assessors no number of queries is enough
    few = study.queries_for("erho2", 0.95, assessor=10).value
    assert study.coefficient("erho2", query=few, assessor=10).value >= 0.95
    assert study.coefficient("erho2", query=few - 1, assessor=10).value < 0.95


def test_parts_of_systems_are_what_is_measured():
    design = Design.parse("stemmer x model x q")
    components = dict(zip(design.names, (0.01, 0.02, 0.3, 0.03, 0.04, 0.05, 0.06), strict=True))
    study = known("stemmer x model x q", components, stemmer=3, model=4, query=10)
    assert study.coefficient("erho2").value == pytest.approx(0.06 / (0.06 + 0.15 / 10))
    assert study.coefficient("phi").value == pytest.approx(0.06 / (0.06 + 0.45 / 10))


def test_tables_and_documents():
    study = known("s x (h:q)", NESTED, system=7, query=60, assessor=3)
    plan = dstudy(study, queries=[50, 100], assessors=[1, 2], pool=40.0, targets=[("erho2", 0.8), ("tau", 0.5)])
    table = plan.to_frame()
    assert table[["query", "assessor", "judgments"]].to_numpy().tolist() == [
        [50, 1, 2000], [100, 1, 4000], [50, 2, 4000], [100, 2, 8000]
    ]  # fmt: skip
    np.testing.assert_allclose(table["tau"], table["erho2"] ** MAPPINGS["tau"])
    needed = plan.targets_frame()
    assert needed["measure"].tolist() == ["erho2", "tau", "erho2", "tau"]
    assert (needed["queries"].iloc[2:].to_numpy() < needed["queries"].iloc[:2].to_numpy()).all()
    enough = study.coefficient("erho2", query=needed["queries"].iloc[1], assessor=1).value ** MAPPINGS["tau"]
    assert 0.5 <= enough < 0.51
    document = plan.to_dict()
    assert document["points"][0]["assessor"] == 1
    assert document["needed"][0]["queries"]["value"] == int(needed["queries"].iloc[0])


def test_intervals_follow_the_size():
    scores = np.random.default_rng(1).normal(size=(10, 30)) + np.arange(10)[:, None] / 5
    for interval in ("analytic", "bootstrap"):
        study = gstudy(Observed.matrix(scores), interval=interval)
        table = dstudy(study, queries=[10, 30, 100]).to_frame()
        width = table["erho2_upper"] - table["erho2_lower"]
        assert (np.diff(width) < 0).all()
        for name in ("erho2", "phi"):
            found = study.queries_for(name, 0.9)
            assert found.lower <= found.value <= found.upper
            # The interval of a coefficient at the upper end reaches the target with its lower end.
            assert study.coefficient(name, query=found.upper).lower >= 0.9 - 1e-9


@pytest.mark.parametrize(("targets", "says"), [([("teu", 0.9)], "Did you mean 'tau'"), ([("phi", 0.0)], "between 0")])
def test_targets_that_are_none(targets, says):
    study = known("s x (h:q)", NESTED, system=7, query=60, assessor=3)
    with pytest.raises(ReliabilityError, match=says):
        dstudy(study, targets=targets)
