"""Parts of a store: what goes in comes out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from probeval.arrays import objects
from probeval.campaign.archive import pack, unpack
from probeval.data import Collection, Vectors, text_vectors


@pytest.mark.parametrize("kind", ["dense", "words"])
def test_vectors_come_back(small: Collection, kind: str):
    given = (
        Vectors(objects(["d1", "d2"]), np.array([[0.1, 2.0], [3.0, -4.0]]))
        if kind == "dense"
        else text_vectors({"d1": "red wine", "d2": "red, red beer"})
    )
    parts = pack(replace(small, vectors=given))
    found = unpack("small", parts.get).vectors
    assert found is not None
    assert found.docs.tolist() == given.docs.tolist()
    assert isinstance(found.values, csr_array) == isinstance(given.values, csr_array)
    dense = [v.values.toarray() if isinstance(v.values, csr_array) else v.values for v in (found, given)]
    np.testing.assert_array_equal(*dense)


def test_a_store_without_vectors_has_none(small: Collection):
    parts = pack(small)
    assert "vectors" not in parts
    assert unpack("small", parts.get).vectors is None
