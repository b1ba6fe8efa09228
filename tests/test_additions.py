"""One of each kind of addition from a module outside the package: registered, used by its name, and taken out again."""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib
import numpy as np
import pytest
from typer.testing import CliRunner

import probeval
import probeval.selection
from probeval.campaign import KINDS, Campaign, export_formats, import_formats
from probeval.cli.app import app
from probeval.data import FORMATS, FileFormat, Judgments, Runs, Scale, read_labels, register_format, write_campaign
from probeval.errors import DataError, MetricError, ModelError
from probeval.metrics import REGISTRY, Lists, Metric, define, parse
from probeval.relevance import Effect, fit_hierarchical, load_card, register_effect, synthetic_campaign
from probeval.relevance.effects import EFFECTS, model_effects
from probeval.relevance.nuts.directions import SampledPairs
from probeval.scores import evaluate

OUTSIDE = '''
import numpy as np
from scipy.sparse import csr_array

from probeval.data import FileFormat, Judgments, LabelTable, Pool, Runs, register_format
from probeval.data.files import first_bytes
from probeval.metrics import Lists, Metric, define
from probeval.metrics.weights import REL
from probeval.relevance import Columns, Effect, register_effect

FEW = 2


@define(
    "TopTwo",
    "whether one of the first two documents is relevant",
    "1",
    parameters={"rel": REL},
    cutoff="required",
)
def TopTwo(metric: Metric, lists: Lists):
    return lists.relevant(metric.number("rel"))[..., :FEW].any(axis=-1).astype(float)


class BestRank(Effect):
    """A query can depend more or less on the best rank of a document."""

    name = "best_rank"
    scope = "query"
    typical = 0.2

    def columns(self, view):
        best = np.full(len(view.runs.pool), view.runs.depth)
        system, query, rank = np.nonzero(view.runs.retrieved)
        np.minimum.at(best, view.runs.pairs[system, query, rank], rank)
        return Columns.of(csr_array((best - best.mean())[:, None] / view.runs.depth))


def rows(path):
    return [line.split("|") for line in path.read_text().splitlines()[1:]]


def read_runs(path, options):
    systems, queries, docs, scores = zip(*rows(path))
    return Runs.rows(systems, queries, docs, [float(score) for score in scores], order=options.order)


def read_judgments(path, options):
    queries, docs, grades = zip(*rows(path))
    return Judgments.rows(queries, docs, [float(grade) for grade in grades])


def read_labels(path, options):
    queries, docs, labels = zip(*rows(path))
    pool = Pool.of(queries, docs)
    values = np.empty((len(pool), 1))
    values[pool.locate(queries, docs), 0] = [float(label) for label in labels]
    return LabelTable(pool, ("piped",), values)


def write_judgments(judgments, options):
    table = judgments.to_frame()
    return "#judgments\\n" + "".join(f"{r.query}|{r.doc}|{r.grade:g}\\n" for r in table.itertuples())


def begins(text):
    return lambda path: first_bytes(path).startswith(text)


effect = register_effect(BestRank())
formats = [
    register_format(FileFormat("piped", "piped runs", Runs, read_runs, matches=begins(b"#runs"))),
    register_format(
        FileFormat(
            "piped", "piped judgments", Judgments, read_judgments, matches=begins(b"#judgments"), write=write_judgments
        )
    ),
    register_format(
        FileFormat("piped-labels", "piped labels", LabelTable, read_labels, matches=begins(b"#labels"))
    ),
]
'''


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module outside the package that adds a measure, an effect and formats; all are taken out afterwards."""
    (tmp_path / "outside_additions.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("outside_additions")
    yield module
    del REGISTRY["TopTwo"], sys.modules["outside_additions"]
    EFFECTS.remove(module.effect)
    for added in module.formats:
        FORMATS.remove(added)
    with pytest.raises(MetricError, match="Unknown metric 'TopTwo@5'"):
        parse("TopTwo@5")
    assert "best_rank" not in {effect.name for effect in model_effects()}
    assert not {"piped", "piped-labels"} & import_formats().keys()


def in_another_process(code: str, given: bytes, folder: Path | None = None) -> str:
    """What code prints in a new process, given bytes on stdin; ``folder`` is where modules are looked for as well."""
    path = "" if folder is None else f"sys.path.insert(0, {str(folder)!r}); "
    done = subprocess.run(
        [sys.executable, "-c", f"import pickle, sys; {path}given = sys.stdin.buffer.read(); {code}"],
        input=given, capture_output=True, check=False,
    )  # fmt: skip
    return done.stdout.decode() + done.stderr.decode()


def test_a_measure_works_by_its_name(outside, small, tmp_path):
    measured = probeval.measure(small.runs, small.judgments, "TopTwo(rel=2)@5")
    grades = np.append(small.judgments.on(small.runs.pool).grades(), 0)
    expected = (grades[small.runs.pairs[:, :, :2]] >= 2).any(axis=-1).mean(axis=1)
    np.testing.assert_allclose(measured.to_frame().set_index("system").loc[list(small.runs.systems), "mean"], expected)
    relevance = load_card("text-hierarchical").model.predict(small.problem(depth=small.runs.depth))
    np.testing.assert_allclose(
        evaluate(small.runs, relevance, "TopTwo(rel=2)@5").to_frame().set_index("system")["mean"].sort_index(),
        expected,
        atol=1e-9,
    )
    write_campaign(small, tmp_path / "campaign")
    runs, qrels = (str(tmp_path / "campaign" / name) for name in ("runs", "qrels.txt"))
    done = CliRunner().invoke(app, ["evaluate", runs, "--qrels", qrels, "--metric", "TopTwo@5", "--model", "none"])
    assert done.exit_code == 0, done.output
    assert "TopTwo@5" in done.output


def test_a_measure_is_known_in_another_process(outside, small):
    sent = pickle.dumps(parse("TopTwo(rel=2)@5"))
    known = in_another_process("m = pickle.loads(given); print(m, pickle.dumps(m) == given)", sent)
    assert known == "TopTwo(rel=2)@5 True\n"
    assert pickle.loads(sent) == parse("TopTwo(rel=2)@5")
    measures = [parse("TopTwo@5"), parse("TopTwo(rel=2)@5")]
    work = [joblib.delayed(probeval.measure)(small.runs, small.judgments, metric) for metric in measures]
    for metric, found in zip(measures, joblib.Parallel(n_jobs=2)(work), strict=True):
        assert found.to_frame().equals(probeval.measure(small.runs, small.judgments, metric).to_frame())


def test_a_measure_without_a_module_takes_its_definition_along():
    mine = define("Mine", "all 1", "1", bounds=None)(lambda metric, lists: np.ones(lists.codes.shape[:-1]))
    try:
        sent = pickle.dumps(mine)
        assert in_another_process("print(pickle.loads(given).definition.summary)", sent) == "all 1\n"
        lock = threading.Lock()
        held = define("Mine", "held", "1")(lambda metric, lists: lock)
        with pytest.raises(MetricError, match="Mine cannot be sent to another process"):
            pickle.dumps(held)
    finally:
        del REGISTRY["Mine"]


def test_a_measure_whose_module_is_missing_there_says_so(tmp_path, monkeypatch):
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "only_here.py").write_text("def ones(metric, lists): return 1.0\n")
    monkeypatch.syspath_prepend(installed)
    define("Helped", "by its module", "1")(importlib.import_module("only_here").ones)  # pickled by reference
    try:
        sent = pickle.dumps(parse("Helped"))
    finally:
        del REGISTRY["Helped"], sys.modules["only_here"]
    said = in_another_process("pickle.loads(given)", sent)
    assert "Helped is defined outside probeval and cannot be restored in this process" in said
    assert "Make its module importable here." in said


def test_measures_of_the_package_are_not_replaced():
    with pytest.raises(MetricError, match="P is a measure of probeval"):
        define("P", "mine", "1")(lambda metric, lists: lists.codes)
    assert REGISTRY["P"].is_own
    assert isinstance(parse("P@10"), Metric)
    assert Lists


def test_an_effect_takes_part_in_fits_both_inferences_and_synthetic_campaigns(outside, tmp_path):
    made = {sd: synthetic_campaign(seed=3, systems=5, queries=8, depth=6, sds={"best_rank": sd}) for sd in (0.0, 3.0)}
    assert not np.array_equal(made[0.0].judgments.grade, made[3.0].judgments.grade)
    past = [replace(synthetic_campaign(seed=i, systems=5, queries=8, depth=6), name=f"past-{i}") for i in range(2)]
    model = fit_hierarchical(past, depth=6)
    assert model.prior.effects[-1] is outside.effect
    posterior = model.infer(past[0].problem(depth=6, scale=Scale.graded(2)))
    assert posterior.design.names[-1] == "best_rank"
    assert posterior.log_sds["best_rank"].sd < model.prior.log_sds["best_rank"].sd
    sampled = SampledPairs.of(posterior.design, past[0].problem(depth=6, scale=Scale.graded(2)).grades.codes)
    assert (sampled.coordinate_effect == posterior.design.position("best_rank")).any()
    code = "print([e.name for e in pickle.loads(given).effects][-1])"
    assert in_another_process(code, pickle.dumps(model.prior), tmp_path) == "best_rank\n"
    EFFECTS.remove(outside.effect)
    with pytest.raises(ModelError, match=r"No effect best_rank .* register it first: .*register_effect"):
        model.infer(past[0].problem(depth=6, scale=Scale.graded(2)))
    assert "best_rank" not in fit_hierarchical(past, depth=6).prior.log_sds  # nothing of it is kept
    register_effect(outside.effect)


def test_effects_that_cannot_be_are_refused(outside):
    with pytest.raises(ModelError, match="derived from Effect"):
        register_effect(outside.BestRank)
    with pytest.raises(ModelError, match="'team' is an effect of probeval"):
        register_effect(type("Mine", (outside.BestRank,), {"name": "team"})())
    with pytest.raises(ModelError, match="has no scope"):
        register_effect(type("Mine", (Effect,), {"name": "mine", "columns": None})())
    with pytest.raises(ModelError, match="must act on the predictor"):
        register_effect(type("Mine", (outside.BestRank,), {"name": "mine", "acts_on": "cutpoints"})())
    other = register_effect(outside.BestRank())  # the same name again
    assert [effect for effect in model_effects() if effect.name == "best_rank"] == [other]
    register_effect(outside.effect)


def test_a_file_format_is_read_wherever_files_are(outside, put):
    runs = probeval.read_runs(put("lists.txt", "#runs\nbm25|q1|d1|2\nbm25|q1|d2|1\ndense|q1|d2|5\n"))
    assert runs.systems == ("bm25", "dense")
    file = put("judged.txt", "#judgments\nq1|d1|2\nq1|d2|0\n")
    assert probeval.read_judgments(file).grades().tolist() == [2, 0]
    with pytest.raises(DataError, match=r"judged\.txt: the grade 2 is not on the scale"):
        probeval.read_judgments(file, scale=Scale.binary())
    assert read_labels(put("labels.txt", "#labels\nq1|d1|.5\n")).values.tolist() == [[0.5]]
    with pytest.raises(DataError, match="several files in the format piped in one call"):
        probeval.read_runs(file.parent / "lists.txt", file.parent / "lists.txt")
    other = put("trec.txt", "q1 Q0 d1 1 1 x\n")
    with pytest.raises(DataError, match="runs in the formats piped, trec in one call"):
        probeval.read_runs(file.parent / "lists.txt", other)
    assert probeval.read_judgments(put("named.dat", "\nq1|d1|1\n"), file_format="piped").grades().tolist() == [1]
    with pytest.raises(DataError, match=r"No format 'pipe': .*Did you mean 'piped'"):
        probeval.read_judgments(file, file_format="pipe")
    done = CliRunner().invoke(
        app, ["evaluate", str(file.parent / "lists.txt"), "--qrels", str(file), "--metric", "P@1", "--model", "none"]
    )
    assert done.exit_code == 0, done.output


def test_a_file_format_is_imported_and_exported_by_campaigns(outside, small, tmp_path):
    store = tmp_path / "mine.db"
    blind = replace(small, judgments=None)
    with Campaign.create(store, blind, name="mine", metric="P@5", scale=Scale.graded(2), model="uniform") as campaign:
        pairs = [campaign.pool.label(i) for i in range(3)]
        file = tmp_path / "judged.txt"
        file.write_text("#judgments\n" + "".join(f"{query}|{doc}|1\n" for query, doc in pairs))
        assert len(campaign.import_file("ann", file).judgments) == 3
        assert "piped" in export_formats()
        text = campaign.export("piped")
    assert text == file.read_text()
    done = CliRunner().invoke(app, ["campaign", "export", str(store), "--format", "piped"])
    assert done.output == text
    again = tmp_path / "again.txt"
    again.write_text("#judgments\n" + "|".join((*small.runs.pool.label(5), "2")) + "\n")
    done = CliRunner().invoke(app, ["campaign", "import", str(store), str(again), "--as", "piped"])
    assert done.exit_code == 0, done.output


def test_formats_that_cannot_be_are_refused(outside):
    read = outside.read_judgments
    with pytest.raises(DataError, match="'qrels' is a format of probeval"):
        register_format(FileFormat("qrels", "mine", Judgments, read))
    with pytest.raises(DataError, match="must hold Runs, Judgments, LabelTable or PairAnswers"):
        register_format(FileFormat("mine", "mine", dict, read))
    before = len(FORMATS)
    outside.formats[1] = register_format(replace(outside.formats[1], summary="again"))
    assert len(FORMATS) == before
    assert import_formats()["piped"].summary == "again"
    assert Runs in {known.holds for known in FORMATS}


def test_a_policy_works_by_its_name(small):
    selection = probeval.selection

    def middling(context, goal):
        mean, _ = context.gain_moments
        return -np.abs(mean - context.gains.mean())

    selection.register_policy(selection.Policy("middling", "expected gains in the middle of the scale", middling))
    try:
        model = load_card("text-hierarchical").model
        judging = selection.Judging.of(
            replace(small, judgments=None), model, "P@5", policy="middling", scale=Scale.graded(2), explore=0
        )
        state = judging.begin()
        worth = middling(state.context, state.goal)
        assert worth[state.next(3).pairs].tolist() == sorted(worth, reverse=True)[:3]
    finally:
        del selection.POLICIES["middling"]


def test_a_stopping_rule_works_by_its_name(small):
    selection = probeval.selection

    class Relevant(selection.StoppingRule):
        """Relevant documents found."""

        name = "found"
        summary = "relevant documents found"

        def value(self, state, rate):
            return float((state.judgments.grade > 0).sum())

    selection.register_rule(Relevant())
    try:
        stop = selection.Stopping.parse("found=3,budget=500")
        assert str(stop) == "found=3,budget=500"
        model = load_card("text-hierarchical").model
        begun = selection.Judging.of(replace(small, judgments=None), model, "P@5", scale=Scale.graded(2)).begin()
        found = np.flatnonzero(small.judgments.grade > 0)
        checks = [stop.check(begun.after(small.judgments.take(found[:n]))) for n in (2, 3)]
        assert [(check.reached, check.values["found"]) for check in checks] == [(False, 2.0), (True, 3.0)]
    finally:
        del selection.RULES["found"]


BEST_OF_THREE = '''
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pandas as pd

from probeval.campaign import KINDS, Answered, Kind, Settled
from probeval.data import as_answers
from probeval.errors import CampaignError


@dataclass(frozen=True, kw_only=True, repr=False)
class BestNamed(Answered):
    """An assessor named the best of three documents."""

    kind = "best named"
    asks = "best of three"
    best: str


@dataclass(frozen=True, kw_only=True, repr=False)
class BestSettled(Settled):
    """The best of three documents was settled."""

    kind = "best settled"
    asks = "best of three"
    best: str


class BestOfThree(Kind):
    """Which of three documents is best?"""

    name = "best of three"
    asks = {"triples": "best of three"}
    places = ("first", "second", "third")
    fields = {"best": 10}
    keys = {"1": "first", "2": "second", "3": "third"}
    answered = BestNamed
    settled = BestSettled
    template = Path(__file__).with_suffix(".html")

    def questions(self, candidates, setup):
        for query, pairs in groupby(candidates.pairs, itemgetter(0)):
            docs = [doc for _, doc in pairs]
            yield from (self.question(query, docs[at : at + 3]) for at in range(0, len(docs) - 2, 3))

    def values(self, given, setup):
        if given.get("best") not in self.places:
            raise CampaignError(f"The best is {', '.join(self.places)}; got {given.get('best')!r}.")
        return {"best": given["best"]}

    def parse(self, form):
        return {"best": form["best"]}

    def evidence(self, answers):
        rows = [
            {"query": answer.query, "left": self.best(answer), "right": doc, "choice": "left", "assessor": answer.by}
            for answer in answers
            for doc in answer.documents
            if doc != self.best(answer)
        ]
        return as_answers(pd.DataFrame(rows)) if rows else None

    def words(self, answer, first=None):
        return (self.best(answer),) * 2

    def best(self, answer):
        return answer.documents[self.places.index(answer.best)]


KINDS.add(BestOfThree.name, BestOfThree())
'''
TEMPLATE = """
{% extends frame %}
{% block documents %}
<div id="document">
  {% for place in places %}<article id="{{ place.name }}">{{ place.shown.text or place.id }}</article>{% endfor %}
</div>
{% endblock %}
{% block answer %}
<form method="post" action="{{ action }}" id="answer">
  {% include "hidden.html" %}
  {% for place in places %}
  <button name="best" value="{{ place.name }}" data-key="{{ loop.index }}">{{ place.name }}</button>
  {% endfor %}
</form>
{% endblock %}
{% block keys %}1, 2, 3 the best{% endblock %}
"""


@pytest.fixture
def best_of_three(tmp_path: Path) -> Iterator[Path]:
    """A kind of question outside the package: a file and a template."""
    file = tmp_path / "three.py"
    file.write_text(BEST_OF_THREE)
    file.with_suffix(".html").write_text(TEMPLATE)
    yield file
    KINDS.pop("best of three", None)
    sys.modules.pop("imported_three", None)


@pytest.mark.slow
def test_a_kind_of_question_is_a_file_and_a_template(best_of_three, small, tmp_path):
    pytest.importorskip("starlette")
    from probeval.web import Board, Document, Limiter, Roster, application
    from tests.web.asking import Client

    write_campaign(replace(small, judgments=None), tmp_path / "data")
    store = str(tmp_path / "mine.db")

    def asked(verb: str, *words: object, typed: str = "", imported: bool = False) -> Any:
        options = ["--import", str(best_of_three)] if imported else []
        given = ["campaign", *verb.split(), store, *map(str, words), "--format", "json", *options]
        done = CliRunner().invoke(app, given, input=typed)
        assert done.exit_code == 0, (done.exception, done.output)
        return json.loads(done.stdout)

    runs, scoring = tmp_path / "data" / "runs", ("--metric", "nDCG@5", "--scale", "graded:2", "--model", "uniform")
    made = asked("create", runs, *scoring, "--ask", "triples", "--overlap", 1, imported=True)
    assert (made["ask"], made["answers"]) == ("triples", 0)
    (task,) = asked("next", "--assessor", "ann", "--no-refresh")["next"]
    assert (task["asks"], len(task["documents"])) == ("best of three", 3)
    about = (task["query"], *task["documents"])
    recorded = asked("record", *about, "second", "--assessor", "ann", "--comment", "the newest")
    assert (recorded["event"], recorded["answer"]) == ("best named", task["documents"][1])
    assert asked("judge", "--assessor", "bob", "--no-refresh", typed="4\n3\ns\n2\nu\n")["answered"] == 2
    wrong = CliRunner().invoke(app, ["campaign", "record", store, *about, "fourth", "--assessor", "cy"])
    assert str(wrong.exception) == "The best is first, second, third; got 'fourth'."
    (waiting,) = asked("adjudicate")["disagreements"]
    assert waiting["answers"] == f"ann {task['documents'][1]}, bob {task['documents'][2]}"
    assert waiting["comments"] == "ann: the newest"

    with Campaign.open(store) as campaign:  # the same on the page
        page = application(
            campaign,
            roster=Roster(campaign, alone="cy"),
            board=Board(campaign),
            hosts=["judge.test"],
            documents={doc: Document(f"Text of {doc}") for doc in campaign.docs},
            requests=Limiter(rate=1e9, burst=1e9),
        )
        client = Client(page, "judge.test")
        shown = client.get("/")
        assert (shown.status, shown.text.count("Text of ")) == (200, 3)
        (own,) = campaign.next("cy")
        form = shown.form("/judge") | dict(zip(("first", "second", "third"), own.documents, strict=True))
        assert client.post("/judge", form | {"best": "fifth"}).status == 422
        assert client.post("/judge", form | {"best": "first"}).status == 200
        last = campaign.state.own["cy"].last
        assert (last.best, last.documents) == ("first", own.documents)
        assert "/adjudicate" in client.get("/overview").text
        assert client.get("/adjudicate").text.count('<button name="best"') == 3

    asked("adjudicate", *about, "second")
    assert asked("adjudicate")["disagreements"] == []
    assert asked("check")["faults"] == []
    with Campaign.open(store) as campaign:
        answers = campaign.collection.answers  # the best one is better than both others
        rows = answers.to_frame()
        settled = rows[(rows["query"] == task["query"]) & (rows["left"] == task["documents"][1])]
        assert sorted(settled["right"]) == sorted({*task["documents"]} - {task["documents"][1]})
        assert campaign.status().comparers == ()
        assert {event.kind for event in campaign.log()} >= {"best named", "best settled"}
    log = CliRunner().invoke(app, ["campaign", "export", store])
    assert '"best": "second"' in log.stdout
    code = (
        f"import sys; sys.argv = ['probeval', 'campaign', 'status', {store!r}]; from probeval.cli import main; main()"
    )
    told = in_another_process(code, b"")
    assert told.count("\n") == 1
    assert "of a kind of question of one's own: restore a backup, update probeval, or --import it." in told
