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
from ensemble_gpu.kernels.tree_protocol import LEAF, CodeTree, subset_words

P = 5


def random_tree(rng: np.random.Generator, n_splits: int, width: int, words: int) -> CodeTree:
    """A tree that grew by splitting any of its leaves, so that some are deep and some are not.

    Where sets of categories have `words`, the features below P // 2 are split by them.
    """
    feature, left, right = [LEAF], [LEAF], [LEAF]
    for _ in range(n_splits):
        at = int(rng.choice(np.flatnonzero(np.array(feature) == LEAF)))
        feature[at], left[at], right[at] = int(rng.integers(P)), len(feature), len(feature) + 1
        for column in (feature, left, right):
            column += [LEAF, LEAF]
    n = len(feature)
    last_bin = np.where(np.array(feature) == LEAF, -1, rng.integers(0, width - 1, n))
    last_bin[np.array(feature) < (P // 2 if words else 0)] = -1
    return CodeTree(
        np.array(feature), last_bin, rng.random(n) < 0.5, np.array(left), np.array(right),
        rng.integers(0, 2**63, (n, words), dtype=np.uint64) << np.uint64(1),
    )  # fmt: skip


@pytest.mark.parametrize("bins", [3, 250, 700])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sets", [False, True], ids=["thresholds", "sets of categories"])
def test_rows_reach_the_leaves_of_the_reference_engine(bins, threads, sets, monkeypatch):
    monkeypatch.setattr(cpu_engine, "LEAVES_PER_THREAD", 10)
    words = subset_words(np.array([sets]), bins)
    rng = np.random.default_rng(bins)
    edges = [np.arange(bins - 1) + 0.5] * P
    for n in (1, ABREAST, ABREAST + 1, 1000):
        X = rng.integers(0, bins, (n, P)).astype(np.float64)
        X[rng.random(X.shape) < 0.1] = np.nan
        layout = Layout(np.array([0, n]), np.zeros((1, 1), dtype=np.int64))
        both = CpuEngine(threads), ReferenceEngine(NUMPY)
        for n_splits in (0, 1, 2, 20):
            tree = random_tree(rng, n_splits, bins, words)
            found, expected = (
                engine.leaves(engine.encode(engine.view(X), edges, np.arange(n), layout), tree)
                for engine in both
            )
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, expected)
