"""All attacks, by name."""

from __future__ import annotations

from tests.attack.cases import Attack, Outcome, run_attack
from tests.campaign.hostile_stores import STORES
from tests.campaign.killed_writers import COPIES
from tests.campaign.power_cuts import POWER_CUTS
from tests.data.hostile_files import FILES
from tests.data.hostile_partitions import PARTITIONS
from tests.relevance.hostile_cards import CARDS
from tests.web.crowds import KILLS, KILLS_ON_POSTGRES
from tests.web.hostile_requests import REQUESTS

ATTACKS: dict[str, Attack] = {
    "kills": KILLS,
    "kills on PostgreSQL": KILLS_ON_POSTGRES,
    "backups": COPIES,
    "requests": REQUESTS,
    "files": FILES,
    "cards": CARDS,
    "stores": STORES,
    "partitions": PARTITIONS,
    "power cuts": POWER_CUTS,
}


def run_named(name: str, number: int, *, seed: int = 1, first: int = 0) -> Outcome:
    """Try so many cases of the attack with this name."""
    return run_attack(ATTACKS[name], number, seed=seed, first=first)
