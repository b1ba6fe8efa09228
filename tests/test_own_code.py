"""Policies, measures, models and rules of one's own: in one process, in two, on Dask, and on the command line."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

import probeval
from probeval.campaign import KINDS as QUESTIONS
from probeval.campaign import Campaign, Refresher
from probeval.cli.app import app
from probeval.data import Collection, Scale, write_campaign
from probeval.errors import MetricError, ModelError, ProbevalError, ProbevalWarning, SelectionError
from probeval.extensions import carry, import_file
from probeval.metrics import REGISTRY, parse
from probeval.relevance import ADDED_MODELS, Uniform, load_card, register_model, synthetic_campaign
from probeval.relevance.cards.choose import choose_model
from probeval.selection import POLICIES, RULES, Judging, Policy, Stopping, StoppingTarget
from probeval.simulation import Contender, SimulationProtocol, forecast, plan, simulate, validate

OWN = '''
import numpy as np

from probeval.metrics import define
from probeval.relevance import RelevanceDistribution, register_model
from probeval.selection import StoppingRule, register_policy, register_rule
from probeval_own_helper import relevant


@define("TopTwo", "whether one of the first two documents is relevant", "1", cutoff="required")
def TopTwo(metric, lists):
    return lists.relevant(1.0)[..., :FEW].any(axis=-1).astype(float)


FEW = 2


def backwards(context, goal):
    """The last pair of the pool first."""
    return np.arange(len(context.runs.pool), dtype=float)


class FirstRanks:
    """Documents at the first rank are likely to be relevant; fitted, the share of relevant documents at any rank."""

    name = "first-ranks"

    def __init__(self, other=0.2):
        self.other = other

    def fit(self, collections, *, depth):
        return FirstRanks(float(np.mean([(c.judgments.grade > 0).mean() for c in collections])))

    def predict(self, problem, *, rng=None):
        scale = problem.scale
        first = np.zeros(len(problem.pool), dtype=bool)
        first[problem.runs.pairs[:, :, 0].ravel()] = True
        p = relevant(first, self.other)
        rest = p[:, None] * np.full(len(scale) - 1, 1 / (len(scale) - 1))
        return RelevanceDistribution.of(problem.pool, scale, np.column_stack([1 - p, rest]), judgments=problem.grades)


class Found(StoppingRule):
    """Relevant documents found."""

    name = "found"
    summary = "relevant documents found"

    def value(self, state, rate):
        return float((state.judgments.grade > 0).sum())


register_policy(backwards)
register_model(FirstRanks())
register_rule(Found())
'''
HELPER = """
import numpy as np


def relevant(first, other):
    return np.where(first, 0.8, other)
"""
ADDED = ((REGISTRY, "TopTwo"), (POLICIES, "backwards"), (ADDED_MODELS, "first-ranks"), (RULES, "found"))
QUICK = {"batch": 5, "checkpoints": (0.1,), "until": 0.4, "draws": 100, "seeds": 2}


@pytest.fixture(scope="module")
def dask() -> Iterator[Callable[[], str]]:
    """The address of a Dask scheduler, whose worker is another process that was there before the code."""
    started: list[Any] = []

    def address() -> str:
        if not started:
            distributed = pytest.importorskip("distributed", reason="Dask is not installed")
            started.append(distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None))
        return str(started[0].scheduler_address)

    yield address
    for cluster in started:
        cluster.close()


WAYS = [
    "serial",
    pytest.param("processes", marks=pytest.mark.slow),
    pytest.param("dask", marks=[pytest.mark.slow, pytest.mark.filterwarnings("ignore")]),  # what Dask says of itself
]


@pytest.fixture(params=WAYS)
def way(request, dask) -> dict[str, Any]:
    """The options of one way to work."""
    if request.param == "dask":
        return {"scheduler": dask()}
    return {"n_jobs": 1 if request.param == "serial" else 2}


@pytest.fixture
def own(tmp_path) -> Iterator[ModuleType]:
    """A file of one's own code, imported; its additions are taken out afterwards."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "probeval_own_helper.py").write_text(HELPER)
    yield import_file(tmp_path / "own.py")
    _forget(tmp_path)


def _forget(folder: Path) -> None:
    for registry, name in ADDED:
        registry.pop(name, None)
    for name in ("imported_own", "probeval_own_helper"):
        sys.modules.pop(name, None)
    sys.path.remove(str(folder.resolve()))


@pytest.fixture(scope="module")
def campaigns() -> list[Collection]:
    made = (synthetic_campaign(seed=i, systems=4, queries=5, depth=5, docs=20) for i in (1, 2))
    return [replace(c, name=f"campaign-{i}", metadata=None) for i, c in enumerate(made)]


def judged_again(campaign: Collection, metric: Any = "P@5", *, work: dict[str, Any], **settings: Any) -> Any:
    settings = {"policies": ["random"], "model": "uniform", **QUICK, **settings}
    return simulate(campaign, SimulationProtocol.of(metric, **settings), **work)


def test_a_policy(way, own, campaigns):
    by_name = judged_again(campaigns[0], policies=["backwards"], work=way)
    pool = by_name.trajectories[0].setup.pool
    for trajectory in by_name.trajectories:
        assert trajectory.order == tuple(range(pool - 1, pool - 1 - len(trajectory.order), -1))
    for given in (own.backwards, Policy("backwards", "mine", own.backwards)):
        assert repr(judged_again(campaigns[0], policies=[given], work=way).to_dict()) == repr(by_name.to_dict())
    judging = Judging.of(replace(campaigns[0], judgments=None), choose_model("uniform", campaigns[0]).model, "P@5",
                         policy=own.backwards, scale=Scale.graded(2))  # fmt: skip
    ahead = forecast(judging.begin(), paths=2, most=10, **way)
    assert ahead.judged.tolist() == forecast(judging.begin(), paths=2, most=10).judged.tolist()


def test_a_measure(way, own, campaigns):
    found = judged_again(campaigns[0], own.TopTwo @ 5, work=way)
    assert found.trajectories[0].setup.metric == "TopTwo@5"
    assert repr(found.to_dict()) == repr(judged_again(campaigns[0], "TopTwo@5", work={}).to_dict())
    options = {"models": ["uniform"], "checkpoints": [0.2], "seeds": 1, "draws": 50}
    validated = validate(campaigns, metrics=["TopTwo@5"], **options, **way).to_frame()
    assert validated["metric"].unique().tolist() == ["TopTwo@5"]
    uniform = choose_model("uniform", campaigns[0]).model
    planned = [
        plan(campaigns[0], uniform, metric=own.TopTwo @ 5, targets="confidence=.6", paths=2, **w).to_dict()
        for w in (way, {})
    ]
    assert planned[0] == planned[1]


def test_a_model(way, own, campaigns):
    by_name = judged_again(campaigns[0], policies=["random:first-ranks"], work=way)
    given = judged_again(campaigns[0], model=own.FirstRanks(), work=way)
    assert {t.label for t in by_name.trajectories} == {"random:first-ranks"}
    assert repr(given.to_dict()) == repr(by_name.to_dict())
    fitted = judged_again(campaigns[0], model="first-ranks", work={**way, "fit": campaigns[1:]})
    assert repr(fitted.to_dict()) != repr(by_name.to_dict())
    options = {"metrics": ["P@5"], "checkpoints": [0.2], "seeds": 1, "draws": 50}
    frames = [
        validate(campaigns, models=models, **options, **way).to_frame()
        for models in (["first-ranks"], [own.FirstRanks()], {"first-ranks": own.FirstRanks().fit})
    ]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])
    blind = replace(campaigns[0], judgments=None)
    settings = {"scale": "graded:2", "jobs": way.get("n_jobs", 1), "scheduler": way.get("scheduler")}
    plans = [
        probeval.plan(blind, "P@5", "confidence=.6", model=model, **settings).to_dict()
        for model in ("first-ranks", own.FirstRanks())
    ]
    assert plans[0] == plans[1]


def test_a_rule(way, own, campaigns):
    by_name = judged_again(campaigns[0], stop="found=3,budget=1000", work=way)
    assert all(t.reasons[0].startswith("found ") for t in by_name.trajectories if t.stop)
    assert any(t.stop for t in by_name.trajectories)
    given = judged_again(campaigns[0], stop=StoppingTarget(own.Found(), 3), work=way)
    assert [t.stop for t in given.trajectories] == [t.stop for t in by_name.trajectories]


KINDS = {
    "policy": ["--policy", "backwards:uniform"],
    "measure": ["--policy", "random:uniform", "--metric", "TopTwo@5"],
    "model": ["--policy", "random:first-ranks"],
    "rule": ["--policy", "random:uniform", "--stop", "found=3"],
}


@pytest.fixture
def folder(tmp_path, campaigns) -> Iterator[Path]:
    """A campaign in files, beside a file of one's own code."""
    write_campaign(campaigns[0], tmp_path / "campaign")
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "probeval_own_helper.py").write_text(HELPER)
    return tmp_path


def command(folder: Path, *arguments: str) -> list[str]:
    files = [str(folder / "campaign" / name) for name in ("runs", "qrels.txt")]
    settings = ["--batch", "5", "--checkpoints", ".1", "--until", ".3", "--seeds", "2", "--quiet"]
    metric = [] if "--metric" in arguments else ["--metric", "P@5"]
    return ["simulate", files[0], "--qrels", files[1], *metric, *settings, *arguments]


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_line(folder, kind):
    asked = command(folder, "--jobs", "1", *KINDS[kind])
    assert isinstance(CliRunner().invoke(app, asked).exception, ProbevalError)
    try:
        for line in ([*asked, "--import", str(folder / "own.py")], ["--import", str(folder / "own.py"), *asked]):
            done = CliRunner().invoke(app, line)
            assert done.exit_code == 0, done.output
            assert "Means over 2 seeds" in done.output
    finally:
        _forget(folder)


@pytest.mark.slow
def test_the_command_line_in_two_processes(folder):
    asked = command(folder, "--import", "own.py", "--metric", "TopTwo@5", "--stop", "found=3", "--format", "csv")
    lines = ["--policy", "backwards:first-ranks", "--policy", "random:first-ranks", "--jobs"]
    here = {**os.environ, "PYTHONPATH": str(Path(probeval.__file__).parents[1])}
    outs = [
        subprocess.run(
            [sys.executable, "-m", "probeval", *asked, *lines, jobs],
            capture_output=True, text=True, cwd=folder, check=True, env=here,
        ).stdout
        for jobs in ("1", "2")
    ]  # fmt: skip
    assert outs[0] == outs[1]
    assert "backwards,first-ranks,0," in outs[0]


@pytest.mark.slow
def test_the_page_has_them_in_its_worker(own, campaigns, tmp_path):
    import time

    blind = replace(campaigns[0], judgments=None)
    settings = {"scale": Scale.graded(2), "model": "first-ranks", "policy": "backwards", "stopping": "found=3"}
    told: list[str] = []
    with Campaign.create(tmp_path / "own.db", blind, name="own", metric="TopTwo@5", **settings) as campaign:
        with Refresher(campaign, pause=0.05, tell=told.append):
            until = time.monotonic() + 300  # on a machine under load
            while campaign.snapshot is None and not told and time.monotonic() < until:
                time.sleep(0.1)
        assert told == []
        assert campaign.snapshot is not None
        assert campaign.snapshot.queue[0] == campaign.pool.label(len(campaign.pool) - 1)


def test_a_file_that_fails(put):
    for text, said in (
        ("x = 1\ny = 1 / 0\n", r"mine\.py:2: ZeroDivisionError: division by zero\."),
        ("x = (\n", r"mine\.py:1: SyntaxError: '\(' was never closed\."),
        ("from probeval.selection import register_policy\ndef gain(context, goal): ...\nregister_policy(gain)\n",
         r"mine\.py:3: gain is a policy of probeval\. Give yours another name\."),
        ("raise SystemExit(3)\n", r"mine\.py:1: SystemExit: 3\."),
        ("raise ValueError('two\\nlines\\x1b[2K')\n", r"mine\.py:1: ValueError: two\.$"),
        ("raise ValueError('\\x1b[2K')\n", r"mine\.py:1: ValueError: \\x1b\[2K\.$"),
        ("class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E\n", r"mine\.py:4: E\.$"),
        ("import sys\ndel sys.modules[__name__]\nraise GeneratorExit\n", r"mine\.py:3: GeneratorExit\.$"),
        ("x = '\0'\n", r"mine\.py: SyntaxError: "),
        ("def f():\n    f()\nf()\n", r"mine\.py:\d: RecursionError: "),
    ):  # fmt: skip
        file = put("mine.py", text)
        with pytest.raises(ProbevalError, match=said):
            import_file(file)
    with pytest.raises(ProbevalError, match=r"mine\.txt: expected a Python file, NAME\.py\."):
        import_file("mine.txt")
    with pytest.raises(ProbevalError, match=r"x\.py: no such file\."):
        import_file("x" * 300 + ".py")
    done = CliRunner().invoke(app, ["models", "--import", "missing.py"])
    assert str(done.exception) == "missing.py: no such file."


def test_what_cannot_travel_says_so():
    import threading

    lock = threading.Lock()
    with pytest.raises(ProbevalError, match=r"Code of your own cannot be sent to another process: TypeError: .*lock"):
        carry(lambda: lock)
    work = carry(lambda: 1)
    with pytest.raises(ProbevalError, match="cannot be restored in another process"):
        replace(work, work=pickle.dumps(0)[:-1])()


def test_registries_travel_by_name():
    for registry in (POLICIES, REGISTRY, RULES, ADDED_MODELS, QUESTIONS):
        assert pickle.loads(pickle.dumps(registry)) is registry


def test_models_that_cannot_be_are_refused(own, campaigns):
    for name, said in (("text-jud", "text-jud is a model of probeval"), ("uniform", "is a model"), ("a:b", "a colon")):
        with pytest.raises(ModelError, match=said):
            register_model(own.FirstRanks(), name=name)
    with pytest.raises(ModelError, match=r"A model is an object, got the class FirstRanks: write FirstRanks\(\)"):
        register_model(own.FirstRanks)
    with pytest.raises(ModelError, match=r"No model 'first-rank'\. Did you mean 'first-ranks'"):
        validate(campaigns, models=["first-rank"])
    with pytest.raises(ModelError, match=r"No model 'first-rank'\. Did you mean 'first-ranks'"):
        choose_model("first-rank", campaigns[0])
    assert choose_model(Uniform(), campaigns[0]).name == "Uniform"  # probabilities alone are enough
    assert choose_model("first-ranks", campaigns[0]).model is ADDED_MODELS["first-ranks"]
    two = [Contender.parse("random", model=own.FirstRanks(other)) for other in (0.1, 0.3)]
    with pytest.raises(SelectionError, match=r"Two models are named first-ranks\. Give one of them another name\."):
        SimulationProtocol.of("P@5", policies=two)
    card = load_card("text-out")
    assert Contender.parse("random", model=card) == Contender(POLICIES["random"], "text-out", card)


POINTS = """
[probeval.policies]
backwards = own_package:backwards
broken = own_package:nothing

[probeval.metrics]
TopTwo = own_package:TopTwo

[probeval.models]
ranks = own_package:FirstRanks

[probeval.stopping]
found = own_package:Found
"""


def test_entry_points_of_installed_packages(tmp_path, monkeypatch, campaigns):
    registered = OWN.partition("register_policy(backwards)")[0].replace("probeval_own_helper", "own_helper")
    (tmp_path / "own_package.py").write_text(registered)
    (tmp_path / "own_helper.py").write_text(HELPER)
    described = tmp_path / "own-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    for registry in (POLICIES, REGISTRY, ADDED_MODELS, RULES):
        monkeypatch.setattr(registry, "_is_loaded", False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert parse("toptwo@5") == parse("TopTwo@5")
            assert choose_model("ranks", campaigns[0]).name == "ranks"
            assert str(Stopping.parse("found=3")) == "found=3"
            assert "own_package" in sys.modules
            POLICIES.find("gain")  # one of the package loads nothing
            assert "backwards" not in POLICIES
        with pytest.warns(ProbevalWarning) as told:
            assert POLICIES.find("backwards").summary == "The last pair of the pool first"
        assert [str(w.message) for w in told] == [
            "probeval.policies: broken = own_package:nothing of own was left out: AttributeError: module 'own_package' "
            "has no attribute 'nothing'."
        ]
        assert POLICIES.find("nothing") is None  # told once
    finally:
        for registry, name in (*ADDED, (ADDED_MODELS, "ranks")):
            registry.pop(name, None)
        for name in ("own_package", "own_helper"):
            sys.modules.pop(name, None)
    with pytest.raises(MetricError, match="Unknown metric 'TopTwo@5'"):
        parse("TopTwo@5")
