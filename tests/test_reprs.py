"""The repr of every public object is short, and notebooks show it as a table with a caption."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import probeval
from probeval.data import open_partitions, split, write_partitions
from probeval.display import Described, Record, Table
from probeval.reporting import Reporter
from probeval.results import Result

MOST_LINES, MOST_COLUMNS = 20, 100
PLAIN_TYPES = "str|int|float|bool|None|FigureName|SeedVerdict|BudgetName|BudgetVerdict|Policy|StoppingRule"
SHORT_FIELDS = re.compile(rf"({PLAIN_TYPES}|tuple\[Addition, \.\.\.\])( \| (None|UnsetType))*")
DOCUMENTED = re.compile(r"^Annotated\[(.*?), (?:[\"'].*|HIDDEN)\]$")
PROCESSES = {"Refresher", "Board", "Guard", "Limiter", "Roster", "key"}  # machinery, which nobody prints


def public_classes() -> Iterator[type]:
    """Every class that a part of the package offers, without errors, enumerations and types for annotations."""
    seen = set()
    for module in pkgutil.iter_modules(probeval.__path__):
        if module.name == "__main__":
            continue
        part = importlib.import_module(f"probeval.{module.name}")
        for name in getattr(part, "__all__", ()):
            value = getattr(part, name)
            if inspect.isclass(value) and value not in seen and value.__module__.startswith("probeval"):
                seen.add(value)
                abstract = inspect.isabstract(value) or getattr(value, "_is_protocol", False)
                if not abstract and not issubclass(value, (Exception, enum.Enum, dict)):
                    yield value


def results() -> dict[str, type]:
    """The public classes of ``probeval``, and the classes that its functions return."""
    found = {}
    for name in probeval.__all__:
        value = getattr(probeval, name)
        if inspect.isclass(value) and not inspect.isabstract(value) and not issubclass(value, (Exception, Reporter)):
            found[name] = value
        elif inspect.isfunction(value):
            returned = typing.get_type_hints(value, {**vars(importlib.import_module(value.__module__)), **late()})[
                "return"
            ]
            if inspect.isclass(returned) and returned.__module__.startswith("probeval"):
                found[returned.__name__] = returned
    return found


def late() -> dict[str, Any]:
    """The names that modules import for annotations alone."""
    found: dict[str, Any] = {}
    for module in ("relevance", "reliability", "reports", "simulation", "scores", "selection"):
        part = importlib.import_module(f"probeval.{module}")
        found |= {name: getattr(part, name) for name in part.__all__}
    return found


def test_every_public_class_has_a_short_repr():
    wrong = []
    for kind in public_classes():
        if kind.__name__ in PROCESSES or issubclass(kind, (Described, Record)):
            continue
        if kind.__repr__ is object.__repr__:
            wrong.append(f"{kind.__name__} needs a repr: see probeval.display")
        written = not dataclasses.is_dataclass(kind) or not hasattr(kind.__repr__, "__wrapped__")
        fields = [] if written else [f for f in dataclasses.fields(kind) if f.repr]
        kinds = {
            f.name: re.sub(r"^Annotated\[(.*?), (?:[\"'].*|HIDDEN)\]$", r"\1", " ".join(str(f.type).split()))
            for f in fields
        }
        long = [f"{name}: {of}" for name, of in kinds.items() if not SHORT_FIELDS.fullmatch(of)]
        if long:
            wrong.append(f"{kind.__name__} can be long ({', '.join(long)}): make it a Record with repr=False")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of each, with names that are long and hostile."""
    folder = tmp_path_factory.mktemp("reprs")
    names = [f"<system> {i} of a team & its settings{'-long' * 20}".replace(" ", "_") for i in range(4)]
    start = probeval.synthetic_campaign(seed=2, systems=4, queries=4, depth=4, docs=12)
    collection = dataclasses.replace(
        start, name="a" * 200, runs=dataclasses.replace(start.runs, systems=tuple(names), teams=None)
    )
    judgments = collection.judgments
    assert judgments is not None
    some = dataclasses.replace(collection, judgments=judgments.take(np.arange(10)))
    evaluation = probeval.evaluate(some, "P@4", model="uniform", draws=50)
    labels = folder / "labels.csv"
    labels.write_text("query,doc,gpt\nq1,d1,2\nq1,d2,1\n")
    metadata = folder / "metadata.csv"
    metadata.write_text("doc,site\nd1,a\nd2,b\n")
    runs = collection.runs
    new, old = (probeval.as_runs(runs.select([name])) for name in names[:2])
    study = probeval.gstudy(collection, "P@4")
    write_partitions(split(dataclasses.replace(start, metadata=None), 2), folder / "parts")
    made = [
        collection,
        probeval.Evidence(runs, qrels=judgments),
        runs,
        runs.pool,
        judgments,
        probeval.Scale.graded(3),
        probeval.parse("nDCG(gain=exp)@10"),
        probeval.read_labels(labels),
        probeval.read_metadata(metadata),
        probeval.measure(runs, judgments, "P@4"),
        evaluation,
        evaluation.scores,
        evaluation.ranking,
        evaluation.scores[names[0]],
        evaluation.scores.compare(*names[:2]),
        probeval.next_pairs(some, "P@4", n=3, model="uniform"),
        probeval.label(
            runs,
            base_url="http://127.0.0.1:9/v1",
            llm="l" * 200,
            docs={str(doc): "text" for doc in runs.pool.docs},
            queries={str(query): "text" for query in runs.queries},
            cache=":memory:",
            dry_run=True,
        ),
        probeval.predict(some, model="uniform"),
        probeval.examine([labels, metadata]),
        probeval.compare(collection, "P@4"),
        probeval.persistence(runs, ["P@4"], qrels=judgments, step=0.1),
        probeval.agree(judgments, judgments, "P@4", runs=runs),
        probeval.gate(new, old, "P@4", model="uniform", scale="graded:2"),
        study,
        probeval.dstudy(study),
        probeval.meta_study(collection, ["P@4"], tests=["t"], splits=2),
        probeval.aggregate(pd.DataFrame({"query": "q1", "doc": ["d1", "d1"], "grade": [0, 1], "worker": ["a", "b"]})),
        probeval.simulate(collection, "P@4", ["random:uniform"], batch=20, stop="budget=20", draws=20),
        probeval.plan(some, "P@4", model="uniform", target="confidence=.6"),
        probeval.report(evaluation, folder / "report.html"),
        probeval.load_card("text-jud"),
        probeval.reuse(runs.select(names[:3]), runs.select(names[3:]), "P@4", qrels=judgments, model="uniform"),
        probeval.reuse_study(collection, "P@4", model="uniform"),
        probeval.pool_study(collection, "P@4"),
        open_partitions(folder / "parts"),
    ]
    store = probeval.Campaign.create(folder / "c.db", some, metric="P@4", model="uniform", name="c" * 100)
    made += [store, store.status(), store.setup, store.state, store.judging_state(), *store.log()]
    page = next(one for one in made if type(one).__name__ == "Page")
    made += [page.sections[0], *page.sections[0].parts, evaluation.estimate.prediction]
    return {type(one).__name__: one for one in made}


def test_one_of_each_is_made(made: dict[str, Any]):
    missing = set(results()) - set(made)
    assert not missing, f"add these to the objects of this test: {missing}"


def test_every_repr_is_short_and_every_table_has_a_caption(made: dict[str, Any]):
    for name, one in made.items():
        lines = repr(one).splitlines()
        assert 0 < len(lines) <= MOST_LINES, name
        assert max(map(len, lines)) <= MOST_COLUMNS, repr(one)
        html = one._repr_html_()
        assert {"table", "caption"} <= set(re.findall(r"<([a-z]+)", html)), name
        assert "<system>" not in html, name


def test_a_headline_of_several_lines_is_one_line():
    class Long(Result):
        def to_frame(self) -> pd.DataFrame:
            return pd.DataFrame({"n": range(500)})

        def to_dict(self) -> dict[str, int]:
            return {}

        def _headline(self) -> str:
            return "a line\n" * 500

    assert "\n" not in repr(Long())
    assert len(repr(Long())) == MOST_COLUMNS
    assert repr(Long()).startswith("<Long: a line a line")
    assert Long()._repr_html_().count("<tr") < 100


def test_a_brief_dataclass_leaves_out_what_is_long_or_as_usual():
    @dataclasses.dataclass(frozen=True, repr=False)
    class One(Record):
        name: str
        values: Any
        frame: Any
        few: tuple[int, ...] = (1, 2)
        hidden: str = dataclasses.field(default="x", repr=False)

    one = One("a\nb", np.zeros((3, 1000)), pd.DataFrame({"n": [1, 2]}))
    assert repr(one) == r"One(name='a\nb', values=<3 x 1,000 values>, frame=<2 x 1 values>)"
    assert repr(One("a", 1, 2, few=(1,))) == "One(name='a', values=1, frame=2, few=(1,))"
    assert len(repr(One("a" * 500, list(range(99)), {}))) <= MOST_COLUMNS
    assert "<caption>One</caption>" in one._repr_html_()
    assert Table(pd.DataFrame({"n": [1]}), "a title").markdown().startswith("**a title**")
