"""Estimates and progress of long work: on a terminal only."""

from __future__ import annotations

import io
import sys

import pytest

from probeval import synthetic_campaign
from probeval.api.estimates import evaluation_estimate, plan_estimate
from probeval.cli.output import Messages
from probeval.metrics import parse
from probeval.reporting import TimeEstimate


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def collection():
    return synthetic_campaign(seed=1, systems=4, queries=5, depth=10, observers=1)


def said(monkeypatch, stream, *, quiet=False, seconds=40.0):
    monkeypatch.setattr(sys, "stderr", stream)
    messages = Messages(quiet=quiet)

    def work() -> int:
        messages.expect(TimeEstimate(seconds, "49,528 pairs, 1,000 draws"))
        messages.say("A remark.")
        return 7

    assert messages.warned(work) == 7
    assert messages._spinner is None
    return stream.getvalue()


def test_a_terminal_gets_the_estimate_and_the_time(monkeypatch):
    text = said(monkeypatch, Terminal())
    assert "About 40 s: 49,528 pairs, 1,000 draws." in text
    assert "A remark." in text
    assert "0:00:0" in text


def test_short_work_is_not_announced(monkeypatch):
    assert "About" not in said(monkeypatch, Terminal(), seconds=3.0)


def test_a_pipe_gets_remarks_alone(monkeypatch):
    assert said(monkeypatch, io.StringIO()) == "A remark.\n"


def test_quiet_is_silent(monkeypatch):
    assert said(monkeypatch, Terminal(), quiet=True) == ""


def test_estimates_grow_with_the_work(collection):
    linear, drawn = parse("P@10"), parse("AP")
    one, two = (evaluation_estimate(collection, drawn, depth=10, method=None, draws=n) for n in (1000, 2000))
    moments = evaluation_estimate(collection, linear, depth=10, method=None, draws=1000)
    pairs = len(collection.runs.top(10).pool)
    assert one.work == f"{pairs:,} pairs, 1,000 draws"
    assert moments.work == f"{pairs:,} pairs"
    assert moments.seconds < one.seconds < two.seconds
    plans = [
        plan_estimate(collection, queries=[5], depths=[10], options=1, paths=8, jobs=jobs).seconds for jobs in (1, 2)
    ]
    assert plans[0] == pytest.approx(2 * plans[1])
    twice = plan_estimate(collection, queries=[5, 5], depths=[10], options=1, paths=8, jobs=1)
    assert twice.seconds == pytest.approx(2 * plans[0])


def test_a_progress_bar_has_room_for_a_rate_beside_it(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    messages = Messages(quiet=False)
    messages.beside("nothing goes on yet")
    for number in messages.track(range(3), "Labelling"):
        messages.beside(f"{number + 7}.5 labels/s, cost 0.{number}")
    messages.beside("it is over")
    text = stream.getvalue()
    assert "Labelling" in text
    assert "9.5 labels/s, cost 0.2" in text
    assert "nothing" not in text
    assert "over" not in text


def test_a_pipe_gets_no_progress(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    messages = Messages(quiet=False)
    for _ in messages.track(range(3), "Labelling"):
        messages.beside("1 label/s")
    assert stream.getvalue() == ""
