"""Effort on MIREX 2011 (Fine, CG@5) with every grade as likely: 2012 weights over all pairs of systems.

Urbano and Schedl (2012) reached mean confidence .90 after 1,304 judgments and .95 after 2,234. Recomputed here with
normal confidence and ties to the first in the order of the pool: 1,353 and 2,220.
"""

from __future__ import annotations

import pytest

from probeval.data import read_campaign
from probeval.relevance import Empirical, FallbackModel, Uniform
from probeval.simulation import HeldOut, SimulationProtocol, replay


@pytest.fixture(scope="module")
def held(data):
    if not (data / "mirex2011").is_dir():
        pytest.skip("mirex2011 is not in the data folder")
    found = HeldOut.of(read_campaign(data / "mirex2011"), depth=5)
    assert (len(found.pool), len(found.known), len(found.collection.runs.systems)) == (6322, 6322, 18)
    return found


def judged(held, model=None, *, until=0.36, **options):
    """The trajectory of mtc with the uniform prior, to a little past mean confidence .95."""
    model = FallbackModel([Uniform()]) if model is None else model
    # A prior that learns nothing need not learn again.
    protocol = SimulationProtocol.of("CG@5", explore=0, until=until, refresh=7000, checkpoints=(), **options)
    return replay(held, model, protocol, policy="mtc", name="uniform")


@pytest.mark.slow
def test_one_at_a_time(held):
    trajectory = judged(held)
    assert (trajectory.reaches(0.90), trajectory.reaches(0.95)) == (1353, 2220)
    assert trajectory.stop is not None
    assert trajectory.stop.judged == 2220
    assert trajectory.stop.judged == pytest.approx(2234, rel=0.01)  # published: 35% of the pool
    assert trajectory.stop.accuracy >= 0.95


def test_in_batches_of_twenty(held):
    assert judged(held, batch=20).reaches(0.95) == 2060


@pytest.mark.validation
def test_with_grades_in_ten_bins(held):
    assert judged(held, FallbackModel([Empirical({10: (0.1,) * 10})])).reaches(0.95) == 2036
