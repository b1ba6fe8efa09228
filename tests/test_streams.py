"""One seed, a generator for each purpose."""

from __future__ import annotations

import ast
import zlib
from pathlib import Path

import numpy as np
import pytest

import probeval
from probeval.streams import Purpose, stream

MODULES = sorted(Path(probeval.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize(
    ("keys", "numbers"),
    [
        ((), []),
        ((Purpose.SCORES,), [4]),
        ((25, Purpose.WEIGHTS), [25, 2]),
        (("trec8", Purpose.PILOT), [zlib.crc32(b"trec8"), 7]),
        (("café", 3, 1), [zlib.crc32("café".encode()), 3, 1]),
    ],
)
def test_a_seed_and_keys_give_the_generator_of_their_numbers(keys, numbers):
    np.testing.assert_array_equal(stream(7, *keys).random(5), np.random.default_rng([7, *numbers]).random(5))


def test_what_a_seed_means_stays():
    assert {p.name: p.value for p in Purpose} == {
        "ORDER": 0,
        "RANKING": 1,
        "WEIGHTS": 2,
        "PREDICTION": 3,
        "SCORES": 4,
        "SLIPS": 5,
        "NULL": 6,
        "PILOT": 7,
        "QUERY_SCORES": 8,
        "STUDY": 9,
        "FORECAST": 10,
        "TRUST": 11,
        "EXPLORATION": 12,
        "OUTSIDE": 13,
        "LISTS": 14,
        "COMPARISONS": 20,
        "QUESTIONS": 24,
        "SIDES": 25,
        "ANSWERS": 26,
        "SPLITS": 27,
        "AGREEMENT": 28,
        "WORTH": 30,
    }
    assert len(Purpose.__members__) == len(Purpose)  # no two names for one number


def test_generators_with_keys_come_from_here_alone():
    """Elsewhere a generator is given, or made from a single number in an example."""
    for path in MODULES:
        if path.name == "streams.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
                assert [ast.unparse(a) for a in node.args] == ["0"], f"{path}:{node.lineno}"
