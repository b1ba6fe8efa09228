"""Held-out campaigns cell by cell: what is kept, what a change makes again, and that figures are those of simulate."""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from probeval.data import LabelTable, read_campaign, write_campaign
from probeval.data.evidence import read_label_table
from probeval.errors import DataError, ModelError
from probeval.relevance import synthetic_campaign
from probeval.simulation import SimulationProtocol, simulate, validate
from probeval.studies.evidence import (
    STUDIES,
    Cell,
    CellStore,
    Study,
    fingerprint,
    modules_reached,
    read_cells,
    read_plan,
    run_cells,
    work,
)

SETTINGS = {"batch": 10, "checkpoints": [0, 0.1, 0.2], "until": 0.2, "draws": 50}
PLAN = """
[campaigns]
first = 5
second = 5
third = 5

[[part]]
study = "judging"
measures = ["DCG", "nDCG@3"]
policies = ["gain", "mtc:independent"]
seeds = 2
[part.settings]
batch = 10
checkpoints = [0, 0.1, 0.2]
until = 0.2
draws = 50

[[part]]
study = "calibration"
measures = ["DCG"]
policies = ["independent"]
campaigns = ["second"]
[part.settings]
checkpoints = [0, 0.2]
draws = 50
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three small campaigns, labels of the third, and a plan."""
    root = tmp_path_factory.mktemp("evidence")
    for seed, name in enumerate(("first", "second", "third")):
        write_campaign(replace(synthetic_campaign(seed=seed, systems=4, queries=6, depth=5), name=name), root / name)
    judged = read_campaign(root / "third").judgments
    assert judged is not None
    labels = LabelTable(judged.pool, ("judge", "other"), np.stack([judged.grades(), judged.grades() % 2], axis=1))
    (root / "labels.csv").write_text(labels.to_csv())
    (root / "plan.toml").write_text(PLAN)
    return root


@pytest.fixture
def plan(folder):
    return read_plan(folder / "plan.toml")


def test_the_most_telling_cells_come_first(plan):
    cells = plan.cells()
    assert len(cells) == len(set(cells)) == 3 * 2 * 2 * 2 + 1
    assert [c.place for c in cells[:5]] == [
        ("judging", "first", "DCG@5", "gain", "", 0),
        ("judging", "second", "DCG@5", "gain", "", 0),
        ("judging", "third", "DCG@5", "gain", "", 0),
        ("calibration", "second", "DCG@5", "independent", "", 0),
        ("judging", "first", "DCG@5", "mtc:independent", "", 0),
    ]
    assert [c.seed for c in cells] == [0] * 13 + [1] * 12
    assert {c.measure for c in cells[7:13]} == {"nDCG@3"}


def test_what_is_left_out_is_not_learned_from(plan):
    plan = replace(plan, learned=("more",), together=(("first", "third"),), labelled=(("a", "third"), ("b", "")))
    assert (plan.past("first"), plan.graded("first")) == (("second", "more"), ("b",))
    assert (plan.past("second"), plan.graded("second")) == (("first", "third", "more"), ("a", "b"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("first = 5", "first = deep", "is no TOML: .*"),
        ("first = 5", 'first = "deep"', r"\[campaigns\] must have a line NAME = DEPTH .*"),
        ("[campaigns]", "[campaign]", "unknown key 'campaign'. Did you mean 'campaigns'.*"),
        ('policies = ["gain", "mtc:independent"]', "", r"a \[\[part\]\] needs policies."),
        ('"second"]', '"secnd"]', r"no campaign 'secnd' in \[campaigns\]. Did you mean 'second'.*"),
        ("seeds = 2", "seeds = 0", "seeds must be a number from 1, got 0."),
        ('measures = ["DCG"]', 'measures = "DCG"', "measures must be a list of names, .*"),
    ],
)
def test_a_plan_that_is_wrong_says_where(tmp_path, old, new, message):
    (tmp_path / "plan.toml").write_text(PLAN.replace(old, new, 1))
    with pytest.raises(DataError, match=f"plan.toml: {message}"):
        read_plan(tmp_path / "plan.toml")


def test_what_a_plan_names_must_exist(plan, tmp_path):
    part = plan.parts[0]
    with pytest.raises(DataError, match=r"No study 'judgin': .* Did you mean 'judging'"):
        run_cells(replace(plan, parts=(replace(part, study="judgin"),)), CellStore(tmp_path), version="0")
    with pytest.raises(DataError, match="no table of labels 'none'"):
        run_cells(replace(plan, parts=(replace(part, labels=("none:a",)),)), CellStore(tmp_path), version="0")
    with pytest.raises(ModelError, match=r"No model 'independant' to fit.*Did you mean 'independent'"):
        run_cells(
            replace(plan, parts=(replace(part, study="calibration", policies=("independant",)),)),
            CellStore(tmp_path),
            version="0",
        )
    with pytest.raises(DataError, match="there is no other campaign to learn from"):
        run_cells(replace(plan, campaigns=plan.campaigns[:1], parts=(part,)), CellStore(tmp_path), version="0")


@pytest.mark.slow
def test_figures_are_those_of_simulate_and_validate(plan, folder):
    collections = [read_campaign(folder / name) for name, _ in plan.campaigns]
    held, past = collections[1], [collections[0], collections[2]]
    for policy in ("gain", "mtc:independent"):
        cell = Cell("judging", "second", "DCG@5", policy, "", 3, json.dumps(SETTINGS))
        found = work.do_cell(plan, cell, "0").figures
        protocol = SimulationProtocol.of("DCG@5", policies=[policy], seed=3, **SETTINGS)
        (run,) = simulate(held, protocol, fit=past).trajectories
        assert found["points"]["tau"] == [round(p.tau, 6) for p in run.points]
        assert found["points"]["calibration_p"] == [round(p.calibration_p, 6) for p in run.points]
        assert found["stop"]["judged"] == run.end.judged
        assert found["stop"]["confidence"] == round(run.end.confidence, 6)
    cell = Cell("calibration", "second", "DCG@5", "independent", "", 3, '{"checkpoints": [0, 0.2], "draws": 50}')
    found = work.do_cell(plan, cell, "0").figures
    more = {"checkpoints": [0, 0.2], "draws": 50, "seeds": 1, "seed": 3, "depth": 5}
    runs = validate(collections, metrics=["DCG@5"], models=["independent"], **more).validation_runs
    assert found["points"]["mae"] == [round(p.mae, 6) for p in runs[1].points]
    assert found["bins"][1][2] == list(runs[1].points[1].bins.right)


@pytest.mark.slow
def test_labels_are_given_one_column_at_a_time(plan, folder):
    def confidence(labels):
        cell = Cell("judging", "third", "DCG@5", "gain", labels, 0, json.dumps(SETTINGS | {"checkpoints": [0]}))
        return work.do_cell(plan, cell, "0").figures["points"]["confidence"][0]

    third = read_campaign(folder / "third")
    column = read_label_table(folder / "labels.csv").take(["judge"])
    protocol = SimulationProtocol.of("DCG@5", policies=["gain"], **SETTINGS | {"checkpoints": [0]})
    past = [read_campaign(folder / name) for name in ("first", "second")]
    (run,) = simulate(replace(third, labels=column), protocol, fit=past).trajectories
    assert confidence("labels:judge") == round(run.points[0].confidence, 6)
    assert confidence("labels:judge") != confidence("shuffled:labels:judge")
    shuffled = work.sources_of(plan).labels("shuffled:labels:judge")
    assert shuffled.sources == ("shuffled_judge",)
    assert sorted(shuffled.values.ravel()) == sorted(column.values.ravel())
    assert (shuffled.values != column.values).any()


@pytest.mark.slow
def test_work_is_resumed_and_gives_the_same_bytes(plan, tmp_path):
    one, two = CellStore(tmp_path / "one"), CellStore(tmp_path / "two")
    part = replace(plan, parts=(replace(plan.parts[0], measures=("DCG",), seeds=1), plan.parts[1]))
    assert run_cells(part, one, version="1", hours=0).finished == ()
    found = run_cells(part, one, version="1", most=3)
    assert [(c.campaign, c.cells, c.done, c.now) for c in found.coverage if c.study == "judging"] == [
        ("first", 2, 1, 1), ("second", 2, 1, 1), ("third", 2, 1, 1),
    ]  # fmt: skip
    assert [x.cell for x in run_cells(part, one, version="1").finished] == [
        replace(c, settings="{}") for c in part.cells()
    ]
    run_cells(part, two, version="1")
    files = sorted((tmp_path / "one").glob("*.jsonl"))
    assert [f.name for f in files] == [
        "calibration-second.jsonl", "judging-first.jsonl", "judging-second.jsonl", "judging-third.jsonl",
    ]  # fmt: skip
    assert [f.read_bytes() for f in files] == [(tmp_path / "two" / f.name).read_bytes() for f in files]


@pytest.mark.slow
def test_several_processes_give_the_same_bytes(plan, tmp_path):
    part = replace(plan, parts=(replace(plan.parts[0], measures=("DCG",)),))
    stores = [CellStore(tmp_path / str(jobs)) for jobs in (1, 2)]
    for jobs, store in zip((1, 2), stores, strict=True):
        run_cells(part, store, version="1", jobs=jobs)
    assert stores[0].read() == stores[1].read()
    assert len(stores[0].read()) == 12


def test_what_a_change_touched_is_done_again(plan, folder, tmp_path, monkeypatch):
    store, done = CellStore(tmp_path), []
    part = replace(plan, parts=(replace(plan.parts[0], measures=("DCG",), policies=("mtc:independent",), seeds=1),))

    def do(cell, sources):
        done.append(cell.collection)
        return {"tau": 1.0}

    def now(study):
        monkeypatch.setattr(work, "STUDIES", {"judging": study})
        done.clear()
        return run_cells(part, store, version="1").of_now

    class Known(Study):
        def mathematics(self, *, priced=False):
            return self.question

        def parts(self, *, priced=False):
            return {"a": "1", "b": self.question}

    study = Known("judging", "1", do)
    assert (now(study), done) == (3, ["first", "second", "third"])
    assert (now(study), done) == (3, [])
    other = Known("judging", "2", do)
    monkeypatch.setattr(work, "STUDIES", {"judging": other})
    assert read_cells(part, store).changed == ("b",)
    (line,) = (tmp_path / "judging-first.jsonl").read_text().splitlines()
    (tmp_path / "judging-first.jsonl").write_text(line.replace('"mathematics":"1"', '"mathematics":"2"') + "\n")
    assert (now(other), done) == (3, ["second", "third"])
    part = replace(part, parts=(replace(part.parts[0], settings='{"batch": 5}'),))
    assert (now(other), done) == (3, ["first", "second", "third"])
    (tmp_path / "judging-first.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match=r"judging-first.jsonl:1: is no finished cell. Delete the line"):
        store.read()


def test_a_change_of_data_is_seen(plan, folder, tmp_path):
    file = tmp_path / "a" / "qrels.txt"
    file.parent.mkdir()
    file.write_text("q 0 d 1\n")
    before = fingerprint.fingerprint_of_files(tmp_path / "a")
    fingerprint.fingerprint_of_files.cache_clear()
    assert fingerprint.fingerprint_of_files(tmp_path / "a") == before
    file.write_text("q 0 d 2\n")
    fingerprint.fingerprint_of_files.cache_clear()
    assert fingerprint.fingerprint_of_files(tmp_path / "a") != before


def test_words_are_no_mathematics():
    text = '''
"""Words."""
from a import b
def f(x: int, y: "float" = 1.0) -> int:
    """Words."""
    # words
    if x > 3:
        raise ValueError(f"too large: {x}")
    return f"{x:.2f}" if y else x + 2
@dataclass(frozen=True)
class C(Base):
    """Words."""
    n: Annotated[int, "Words."]
'''
    other = (
        text.replace("Words", "Other words")
        .replace("# words", "")
        .replace("too large", "large")
        .replace('"float"', "int")
    )

    other = other.replace("frozen=True", "frozen=True, repr=False").replace("Base", "Base, Record")
    other = other.replace("from a import b", "from a import b\nfrom probeval.display import Record")

    def plain(code):
        return fingerprint._plain(ast.parse(code))

    assert plain(text) == plain(other)
    for old, new in (
        ("x + 2", "x + 3"),
        ("x > 3", "x >= 3"),
        ("ValueError", "TypeError"),
        ("1.0", "2.0"),
        (".2f", ".3f"),
    ):
        assert plain(text) != plain(text.replace(old, new))


def test_the_mathematics_is_what_a_cell_can_touch():
    reached = modules_reached((STUDIES["judging"].do.__module__,))
    wanted = ("selection.policies", "relevance.inference.laplace", "scores.draws", "metrics.ratio", "simulation.replay")
    assert {f"probeval.{name}" for name in wanted} <= set(reached)
    parts = {name.split(".")[1] for name in reached}
    assert not parts & {"cli", "api", "plots", "reports", "campaign", "web", "display", "results", "satisfaction"}
    assert len({study.mathematics() for study in STUDIES.values()}) == len(STUDIES)
    assert set(work.PRICED) <= set(reached)
    assert STUDIES["judging"].mathematics(priced=True) != STUDIES["judging"].mathematics()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "policy", "labels", "settings"),
    [
        ("judging", "gain", "", SETTINGS),
        ("judging", "gain", "labels:judge", SETTINGS),
        ("judging", "mtc:independent", "", SETTINGS),
        ("calibration", "hierarchical", "", {"checkpoints": [0, 0.2], "draws": 50}),
    ],
)
def test_no_code_that_runs_is_left_out_of_the_fingerprint(plan, study, policy, labels, settings):
    ran = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name != "<module>":
            ran.add(frame.f_globals.get("__name__", ""))

    cell = Cell(study, "third", "nDCG@5", policy, labels, 0, json.dumps(settings))
    sources = work.CellSources(plan)
    sys.setprofile(note)
    try:
        STUDIES[study].do(cell, sources)
    finally:
        sys.setprofile(None)
    mine = {name for name in ran if name.split(".")[0] == "probeval"}
    reached = set(modules_reached((STUDIES[study].do.__module__,), work.PRICED))
    assert "probeval.scores.draws" in mine
    assert sorted(mine - reached - fingerprint.WORDS) == []
