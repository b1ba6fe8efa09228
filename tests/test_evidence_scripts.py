"""What the scripts of evidence share: finished work is kept, and processes share it."""

from __future__ import annotations

import fcntl
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "evidence.py"


@pytest.fixture(scope="module")
def evidence() -> ModuleType:
    spec = importlib.util.spec_from_file_location("evidence", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_work_is_done_once_and_found_again(evidence, tmp_path):
    done = []
    for keep in (evidence.Keep(tmp_path), evidence.Keep(tmp_path)):
        for _ in range(2):
            assert keep("piece", lambda: done.append("piece") or [1, 2]) == [1, 2]
    assert done == ["piece"]
    assert [p.name for p in tmp_path.iterdir()] == ["piece.pkl"]


def test_broken_work_is_done_again(evidence, tmp_path):
    keep = evidence.Keep(tmp_path)
    with pytest.raises(ZeroDivisionError):
        keep("piece", lambda: 1 / 0)
    assert "piece" not in keep
    assert keep("piece", lambda: 1) == 1


def test_what_another_process_does_comes_last(evidence, tmp_path, monkeypatch):
    keep, order = evidence.Keep(tmp_path), []

    def piece(name):
        return keep(name, lambda: order.append(name) or name)

    other = (tmp_path / "a.pkl.lock").open("w")
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(evidence.BusyError):
        piece("a")
    monkeypatch.setattr(evidence.time, "sleep", lambda seconds: pytest.fail("waited"))
    with pytest.raises(pytest.fail.Exception):
        evidence.do_all([lambda: piece("a"), lambda: piece("b")])
    assert order == ["b"]
    other.close()  # the process ended without a result
    assert evidence.do_all([lambda: piece("a"), lambda: piece("b")]) == ["a", "b"]
    assert order == ["b", "a"]


def test_a_campaign_is_never_learned_from_with_its_own_topics(evidence):
    everything = evidence.CAMPAIGNS | evidence.LEARNED
    for name in evidence.CAMPAIGNS:
        left = set(everything) - set(evidence.others(name))
        assert left == (set(evidence.COVID) if name in evidence.COVID else {name})


def test_a_target_without_a_figure_is_not_met(evidence):
    targets = evidence.Targets()
    targets.least("a", 0.95, 0.95)
    targets.most("b", float("nan"), 0.1)
    assert "1 of 2 targets are met." in str(targets)
    assert [row["met"] for row in targets.rows] == ["yes", "-"]
