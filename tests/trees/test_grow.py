"""How a tree grows: a gain that is but rounding is no gain, and the least real one is."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.data.rows import Rows, bin_rows
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from ensemble_gpu.kernels.tree_protocol import VARIANCE, Sample, SplitRule
from ensemble_gpu.trees.grow import Grown, Limits, grow

ENGINES = {"cpu": CpuEngine(1), "reference": ReferenceEngine(NUMPY)}
# As boosting grows trees: any gain at all is worth a split.
ANY_GAIN = float(np.finfo(np.float64).smallest_subnormal)


def grown(engine: str, x: np.ndarray, h: np.ndarray, g: np.ndarray, n_features: int = 1) -> Grown:
    """A tree on the moments (h, g) of rows with one feature twice, of which n are drawn a node."""
    own = ENGINES[engine]
    X = np.stack([x, x], axis=1).astype(np.float64)
    codes = bin_rows(own, Rows(X, g, None), None, 255, n_ranges=None).matrix.codes
    none = np.zeros(2, dtype=np.int64)
    rule = SplitRule(VARIANCE, 1, none, none.astype(bool), False, False)
    grower = own.grower(codes, Sample(None, None, np.stack([h, g], axis=1), 2), rule)
    limits = Limits(None, None, 2, ANY_GAIN, n_features)
    return grow(grower, rule, limits, grower.total(), len(x), np.uint64(0), 0, False)


@pytest.mark.parametrize("n_features", [1, 2], ids=["whole levels", "node by node"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_gain_of_rounding_alone_splits_no_node(engine, n_features):
    """G / H is 1 / 3 in every row, so that no split gains; n / 3 and its parts are rounded."""
    rounded_up = 0
    for n in range(2, 60):
        x, h = np.arange(n), np.full(n, 3, dtype=np.int64)
        cuts = [k / 3.0 + (n - k) / 3.0 > n / 3.0 for k in range(1, n)]
        rounded_up += any(cuts)
        assert len(grown(engine, x, h, h // 3, n_features).feature) == 1
    assert rounded_up > 10


@pytest.mark.parametrize("n_features", [1, 2], ids=["whole levels", "node by node"])
@pytest.mark.parametrize("bits", [8, 16, 22])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_small_gain_splits_a_node(engine, bits, n_features):
    """Rows of G = A and of A + 1: the gain is n / 4, about A^-2 / 4 of the score n A^2."""
    x = np.arange(16)
    g = 2**bits + x // 8
    tree = grown(engine, x, np.ones(16, dtype=np.int64), g, n_features)
    assert (tree.bin[0], len(tree.feature)) == (7, 3)
    assert tree.gain[0] == pytest.approx(4.0, rel=0.5)
