"""Leaves by rows that walk side by side: those of the reference engine."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.kernels.cpu import engine as cpu_engine
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.cpu.walk import ABREAST
from ensemble_gpu.kernels.protocol import Layout
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from ensemble_gpu.kernels.tree_protocol import LEAF, CodeTree

P = 5


def random_tree(rng: np.random.Generator, n_splits: int, width: int) -> CodeTree:
    """A tree that grew by splitting any of its leaves, so that some are deep and some are not."""
    feature, left, right = [LEAF], [LEAF], [LEAF]
    for _ in range(n_splits):
        at = int(rng.choice(np.flatnonzero(np.array(feature) == LEAF)))
        feature[at], left[at], right[at] = int(rng.integers(P)), len(feature), len(feature) + 1
        for column in (feature, left, right):
            column += [LEAF, LEAF]
    n = len(feature)
    last_bin = np.where(np.array(feature) == LEAF, -1, rng.integers(0, width - 1, n))
    return CodeTree(
        np.array(feature), last_bin, rng.random(n) < 0.5, np.array(left), np.array(right),
        np.zeros((n, 0), dtype=np.uint64),
    )  # fmt: skip


@pytest.mark.parametrize("bins", [3, 250, 700])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_reach_the_leaves_of_the_reference_engine(bins, threads, monkeypatch):
    monkeypatch.setattr(cpu_engine, "LEAVES_PER_THREAD", 10)
    rng = np.random.default_rng(bins)
    edges = [np.arange(bins - 1) + 0.5] * P
    for n in (1, ABREAST, ABREAST + 1, 1000):
        X = rng.integers(0, bins, (n, P)).astype(np.float64)
        X[rng.random(X.shape) < 0.1] = np.nan
        layout = Layout(np.array([0, n]), np.zeros((1, 1), dtype=np.int64))
        both = CpuEngine(threads), ReferenceEngine(NUMPY)
        for n_splits in (0, 1, 2, 20):
            tree = random_tree(rng, n_splits, bins)
            found, expected = (
                engine.leaves(engine.encode(engine.view(X), edges, np.arange(n), layout), tree)
                for engine in both
            )
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, expected)
