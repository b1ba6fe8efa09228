"""kill -9 at any moment: every acknowledged judgment is there afterwards, nothing is doubled, the log is whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from probeval.campaign import Campaign, Store, check_store
from tests.attack.cases import check_apart, check_some
from tests.campaign.conftest import on_both_databases
from tests.campaign.killed_writers import COPIES, check_acknowledged, killed_writer
from tests.campaign.power_cuts import POWER_CUTS


@on_both_databases
@pytest.mark.slow
def test_three_kills_of_a_writer_lose_nothing(make: Callable[..., Campaign], store: str):
    """Without a server; with one, see tests/web/test_load.py."""
    campaign, rng, acknowledged = make(), np.random.default_rng(0), list[str]()
    for _ in range(3):
        acknowledged += killed_writer(store, rng.uniform(0, 0.3))
        check_acknowledged(store, acknowledged)
    assert campaign.state.number == len(campaign.log())
    whole = Store(store, read_only=True)
    assert check_store(whole).faults == ()
    whole.close()


@pytest.mark.slow
def test_two_backups_that_are_killed():
    """The first of the 200 of make attack."""
    check_some(COPIES, 2)


@pytest.mark.validation
def test_two_hundred_backups_that_are_killed():
    check_apart("backups", COPIES.full)


@pytest.mark.slow
def test_what_a_power_cut_leaves():
    """Twenty images of the 2,000 of make attack."""
    check_some(POWER_CUTS, 20)


@pytest.mark.validation
def test_what_two_thousand_power_cuts_leave():
    check_apart("power cuts", POWER_CUTS.full)
