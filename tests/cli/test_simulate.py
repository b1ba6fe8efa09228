"""``simulate``: what it writes in each form, what it says, and how it fails."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from probeval.data import read_campaign, write_campaign
from probeval.relevance import synthetic_campaign
from probeval.simulation import SimulationProtocol, simulate


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    """Three small campaigns."""
    root = tmp_path_factory.mktemp("campaigns")
    for i, name in enumerate(("first", "second", "third")):
        made = synthetic_campaign(seed=i, systems=5, queries=6, depth=6, docs=15)
        write_campaign(replace(made, name=name, metadata=None), root / name)
    return [root / name for name in ("first", "second", "third")]


@pytest.fixture
def run(probeval, folders):
    def simulated(*more, quiet=True):
        defaults = {
            "--metric": "DCG@5",
            "--policy": "mtc:uniform",
            "--jobs": 1,
            "--batch": 5,
            "--checkpoints": "0,.1,.4",
        }
        given = [x for name, value in defaults.items() if name not in more for x in (name, value)]
        first = folders[0]
        return probeval(
            "simulate", first / "runs", "--qrels", first / "qrels.txt", *given, *more, *(["--quiet"] if quiet else [])
        )

    return simulated


def test_json_is_that_of_the_library(run, folders):
    said = run("--policy", "mtc:uniform", "--policy", "random:uniform", "--seeds", 2, "--format", "json", quiet=False)
    assert said.code == 0, said.err
    protocol = SimulationProtocol.of(
        "DCG@5", policies=["mtc:uniform", "random:uniform"], seeds=2, batch=5, checkpoints=[0, 0.1, 0.4]
    )
    expected = simulate(replace(read_campaign(folders[0]), name="runs"), protocol)
    document = json.loads(said.out)
    assert document["policies"][0]["points"][0]["rho"] is None  # all systems tied: it is not a number
    plain = json.loads(json.dumps(expected.to_dict()), parse_constant=lambda _: None)
    assert document == plain
    assert [c["policy"] for c in document["policies"]] == ["mtc", "mtc", "random", "random"]
    first, second = said.err.splitlines()
    assert first.startswith("runs: 5 of 5 systems are judged to depth 5; 6 queries, ")
    assert second == "Model uniform: it was asked for."


def test_the_method_of_scores(run):
    settings = ("--policy", "random:uniform", "--checkpoints", ".1", "--until", ".1", "--format", "json")
    moments, draws = (json.loads(run(*settings, *more).out) for more in ((), ("--method", "draws")))
    normal, drawn = (document["policies"][0]["points"][0]["confidence"] for document in (moments, draws))
    assert 0 < abs(normal - drawn) < 0.03


def test_stop_is_never_null(run):
    for stop, reached in (("confidence=.8", True), ("budget=0", True), ("budget=100000", False), ("", False)):
        trajectory = json.loads(run("--stop", stop, "--format", "json").out)["policies"][0]
        assert trajectory["stop"]["reached"] is reached
        assert isinstance(trajectory["stop"]["judged"], int)
        assert len(trajectory["points"]) == 3


def test_csv_has_a_row_a_course_and_checkpoint(run):
    said = run("--seeds", 2, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [(r["policy"], r["model"], int(r["seed"])) for r in rows] == [
        ("mtc", "uniform", s) for s in (0, 1) for _ in range(3)
    ]
    assert float(rows[0]["confidence"]) == 0.5


def test_two_tables_for_people(run):
    lines = run("--stop", "budget=7", "--until", ".5").out.splitlines()
    assert lines[0] == "DCG@5 at checkpoints; independent pairs: not calibrated"
    assert lines[1].split()[:4] == ["policy", "model", "seed", "judged"]
    at = lines.index("At the stop (budget=7), or at the end; independent pairs: not calibrated")
    assert len(lines) == at + 3
    assert lines[at + 2].split()[:6] == ["mtc", "uniform", "0", "-", "stopped", "7"]


def test_the_rules_as_a_table(run):
    lines = run("--until", ".5", "--rules", "gate=.9", "--test", "tukey").out.splitlines()
    title = "Significant differences by the rules (gate=0.9), against the tukey test of all judgments"
    at = lines.index(title)
    assert lines[at + 1].split()[3:] == ["judged", "decided", "precision", "recall", "f", "threshold"]
    assert title not in run("--until", ".5").out.splitlines()


def test_fitted_on_others(run, folders):
    fitted = ("--fit", folders[1], "--fit", folders[2])
    said = run("--policy", "mtc", "--model", "empirical", *fitted, "--format", "json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["policies"][0]["model"] == "empirical"
    own = run("--policy", "mtc", *fitted, "--fit", folders[0])
    assert (own.code, own.out) == (1, "")
    assert own.err == "Error: first has the judgments of the simulated campaign: leave it out of the fit.\n"


def test_same_seed_same_bytes(run):
    one, two, other = (run("--policy", "random:uniform", "--format", "json", "--seed", s) for s in (1, 1, 2))
    assert one.err == ""
    assert one.out == two.out != other.out


def test_a_picture(run, tmp_path):
    said = run("--plot", tmp_path / "c.png", quiet=False)
    assert said.code == 0
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert said.err.splitlines()[-1] == f"Picture: {tmp_path / 'c.png'}."


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--plot", "c.txt"), "c.txt: the name of a picture must end in .png, .svg, .pdf."),
        (("--checkpoints", "0,few"), "--checkpoints takes comma-separated numbers, got '0,few'."),
        (("--checkpoints", "0,5"), "Checkpoints, pilot and until are shares of the pool, from 0 to 1."),
        (("--until", "7"), "Checkpoints, pilot and until are shares of the pool, from 0 to 1."),
        (("--policy", "gian:uniform"), "Did you mean 'gain'?"),
        (("--policy", "mtc:none"), "uniform, empirical, independent, hierarchical or a card."),
        (("--policy", "mtc:nothing"), "lists those that ship; --import FILE adds your own."),
        (("--stop", "sure=.9"), "confidence, every, best, halfwidth, sd, error, budget, hours, cost, seconds, price."),
        (("--goal", "pair:a,b"), "No system 'a' to compare."),
        (("--method", "taylor"), "for ratios of weighted gains such as nDCG@10, not for DCG@5."),
        (("--noise", "2"), "Noise is the probability of a wrong grade, between 0 and 1; got 2."),
        (("--metric", "NDGC@5"), "Unknown metric 'NDGC@5'. Did you mean 'nDCG@5'?"),
    ],
)  # fmt: skip
def test_errors_are_one_line(run, more, message):
    said = run(*more)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Error: ")
    assert said.err.endswith(f"{message}\n")
    assert said.err.count("\n") == 1


def test_judgments_are_needed(probeval, folders):
    said = probeval("simulate", folders[0] / "runs", "--metric", "AP")
    assert (said.code, said.out) == (1, "")
    assert said.err == "Error: A simulation needs full judgments: give --qrels FILE.\n"
    assert probeval("simulate", folders[0] / "runs").code == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Dask says of itself
def test_a_scheduler_that_is_not_there(run):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    import dask

    assert distributed is not None
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        said = run("--scheduler", "tcp://127.0.0.1:9")
    assert said.code == 1
    assert said.err.endswith(
        "Error: No Dask scheduler answers at tcp://127.0.0.1:9. Start one, or work without a scheduler.\n"
    )


@pytest.fixture
def labels(folders, put):
    """A table of labels: the grades, and the same on another scale."""
    lines = (folders[0] / "qrels.txt").read_text().splitlines()
    rows = [(q, doc, int(grade)) for q, _, doc, grade in map(str.split, lines)]
    table = ["query\tdoc\tgpt4o_umbrela\tother", *(f"{q}\t{d}\t{g}\t{5 * g}" for q, d, g in rows)]
    return put("labels.tsv", "\n".join(table) + "\n")


def test_baselines_of_labels_as_a_newcomer_types_them(run, labels):
    names = ["random:labels", "random:calibrated", "random:ppi", "lara:calibrated", "random:labels:gpt4o_umbrela"]
    said = run("--labels", labels, *(x for n in names for x in ("--policy", n)), "--format", "json", quiet=False)
    assert said.code == 0, said.err
    policies = json.loads(said.out)["policies"]
    assert [f"{p['policy']}:{p['model']}" for p in policies] == names
    assert [p["points"][0]["tau"] for p in policies] == [policies[0]["points"][0]["tau"]] * 5
    assert [p["points"][0]["accuracy"] for p in policies] == [1] * 5
    assert [line for line in said.err.splitlines()[1:] if line.startswith("Model ")] == [
        "Model labels: the mean of 2 columns of labels, each rescaled from its own range to grades 0 to 2.",
        "Model calibrated: the mean of 2 columns of labels, each rescaled from its own range to grades 0 to 2.",
        "Model labels:gpt4o_umbrela: labels of gpt4o_umbrela are read as grades 0 to 2.",
    ]


@pytest.mark.parametrize(
    ("policy", "more", "message"),
    [
        ("random:labels:gpt4o", (), "No column 'gpt4o' in the labels: gpt4o_umbrela, other."),
        ("random:ppi:gpt4o_umbrella", (), "in the labels: gpt4o_umbrela, other. Did you mean 'gpt4o_umbrela'?"),
        ("random:ppi", ("--metric", "nDCG@5"), "ppi is for weighted sums of gains, such as DCG@10"),
        ("mtc:ppi", (), "ppi needs judgments in random order: random:ppi, not mtc:ppi."),
    ],
)
def test_baselines_of_labels_that_cannot_be(run, labels, policy, more, message):
    said = run("--labels", labels, "--policy", policy, *more)
    assert (said.code, said.out) == (1, "")
    assert message in said.err


@pytest.mark.parametrize("policy", ["random:labels", "random:calibrated:x", "random:ppi", "lara:calibrated"])
def test_baselines_of_labels_need_labels(run, policy):
    said = run("--policy", policy)
    assert (said.code, said.out) == (1, "")
    assert "needs labels by machines, and there are none: give --labels FILE." in said.err


def test_evaluate_by_labels(probeval, folders, labels):
    ask = ("evaluate", folders[0] / "runs", "--metric", "DCG@5", "--labels", labels, "--format", "json")
    truth = json.loads(probeval(*ask, "--qrels", folders[0] / "qrels.txt", "--model", "labels").out)
    for more in (("--model", "labels"), ("--model", "calibrated:other", "--scale", "graded:2"),
                 ("--model", "labels:gpt4o_umbrela", "--method", "ppi")):  # fmt: skip
        said = probeval(*ask, *more)
        assert said.code == 0, said.err
        found = json.loads(said.out)
        assert found["model"] == more[1]
        assert found["judged"] == 0
        for one, other in zip(found["systems"], truth["systems"], strict=True):
            assert one["mean"] == pytest.approx(other["mean"])
    said = probeval(*ask, "--model", "ppi")
    assert said.code == 1
    assert "use --model labels --method ppi." in said.err


def test_what_scores_are_relative_to_is_stated(run):
    assert "Ideal: " not in run(quiet=False).err
    assert re.search(
        r"^Ideal: [\d,]+ pairs of these 5 runs\.$", run("--metric", "nDCG@5", quiet=False).err, re.MULTILINE
    )


def test_a_rope_ends_it_sooner(run):
    plain, roped = (
        json.loads(run(*more, "--stop", "confidence=.95", "--format", "json").out)["policies"][0]["stop"]
        for more in ((), ("--rope", 0.05))
    )
    assert roped["reached"]
    assert roped["judged"] < plain["judged"]
    by_users = json.loads(run("--rope", "users=.5", "--format", "json").out)["policies"][0]["stop"]
    assert by_users["judged"] == 0  # half of the users notice a difference of .4: none is that large


def test_errors_are_learned_and_used(probeval, folders, tmp_path):
    file = tmp_path / "errors.json"
    first = folders[0]
    asked = (first / "runs", "--qrels", first / "qrels.txt", "--metric", "DCG@5", "--goal", "scores")
    learn = ("simulate", *asked, "--policy", "variance:uniform", "--stop", "sd=.001", "--batch", 20, "--jobs", 1)
    said = probeval(*learn, "--learn-errors", file)
    assert "DCG@5 by Uniform, 1 campaigns; the error is .05 at a stated sd of" in said.err
    again = probeval(*learn, "--learn-errors", file)
    assert again.code == 1
    assert "in both" in again.err
    used = probeval("next", *asked, "--model", "uniform", "--stop", "error=.9", "--errors", file, "--format", "json")
    stop = json.loads(used.out)["stop"]
    assert stop["reached"]
    assert set(stop["values"]) == {"error"}
    unknown = probeval("next", *asked, "--model", "uniform", "--stop", "error=.05")
    assert "no correction for DCG@5 by the model Uniform" in unknown.err
