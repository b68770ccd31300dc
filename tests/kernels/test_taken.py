"""Codes of some rows, taken from those of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.kernels.protocol import Layout
from tests.kernels.test_answers import PLACES


@pytest.mark.parametrize("n_edges", [5, 300], ids=["8 bits", "16 bits"])
def test_taken_codes_are_those_of_the_rows(n_edges):
    rng = np.random.default_rng(3)
    X, rows = rng.normal(size=(70, 11)), rng.permutation(70)[:40]
    X[rng.random(X.shape) < 0.1] = np.nan
    edges = [np.sort(rng.normal(size=n_edges - f)) for f in range(3)] + [
        np.sort(rng.normal(size=4)) for _ in range(8)
    ]
    one = Layout(np.array([0, 70]), np.zeros((1, 1), dtype=np.int64))
    two = Layout(np.array([0, 15, 40]), np.zeros((1, 2), dtype=np.int64))
    for make, place in PLACES:
        engine, there, at = make(), place.put(X), place.put(rows)
        every = engine.encode(there, edges, place.put(np.arange(70)), one)
        taken, made = engine.take(every, at, two), engine.encode(there, edges, at, two)
        assert taken.n_rows == 40
        np.testing.assert_array_equal(taken.counts, made.counts)
        for f in range(11):
            found, expected = (place.host(engine.column(codes, f)) for codes in (taken, made))
            np.testing.assert_array_equal(found, expected)
