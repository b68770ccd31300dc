"""Nodes of several classes, whose rows are sorted instead of added up: the reference's trees."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import DecisionTreeClassifier, use_engine
from ensemble_gpu.kernels.cpu.trees.class_splits import SORTED_ROWS
from ensemble_gpu.kernels.cpu.trees.rows import SMALL
from ensemble_gpu.kernels.cpu.trees.sorting import FEWEST

N = 1500


def rows(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of many and few values, the last one with missing ones."""
    rng = np.random.default_rng(n_classes)
    X = np.stack([np.round(rng.normal(size=N), digits) for digits in (3, 1, 0, 2)], axis=1)
    y = (np.abs(X[:, 0] * 3 + X[:, 1] * X[:, 2]) + rng.normal(size=N)).astype(np.int64) % n_classes
    X[rng.random(N) < 0.05, 3] = np.nan
    return X, y


# exact sums of squares, and such that are not (EXACT_WEIGHT)
WEIGHTS = {
    "none": None,
    "small": lambda rng: rng.integers(1, 4, N).astype(np.float64),
    "wide": lambda rng: np.exp(5.0 * rng.normal(size=N)),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("max_features", [None, 2])
@pytest.mark.parametrize("n_classes", [3, 12, 40])
def test_trees_of_several_classes_are_the_references(n_classes, max_features, weights):
    X, y = rows(n_classes)
    make = WEIGHTS[weights]
    w = None if make is None else make(np.random.default_rng(0))
    sizes = []
    for engine in ("reference", "cpu"):
        with use_engine(engine):
            tree = DecisionTreeClassifier(max_features=max_features, random_state=0)
            tree.fit(X, y, sample_weight=w)
        sizes.append((tree.model_.fingerprint(), tree.model_.nodes.n_samples))
    (expected, n_rows), (found, _) = sizes
    assert found == expected
    # nodes of every kind: inserted, ranked, counted; and, of few classes, added up
    for least, most in ((2, FEWEST), (FEWEST + 1, SMALL), (SMALL + 1, SORTED_ROWS * n_classes)):
        assert ((n_rows >= least) & (n_rows <= most)).any()
    assert n_classes > 3 or n_rows.max() > SORTED_ROWS * n_classes
