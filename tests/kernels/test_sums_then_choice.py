"""Sums, then choice: sums of parts of the rows add up, and the choice among them is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.data.matrix import sort_by_class
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.protocol import Criterion, Layout
from ensemble_gpu.kernels.reference.score import choose
from ensemble_gpu.kernels.select import engine_for, use_engine

VARIANTS = ["real", "discrete", "gentle"]


def engine(name: str) -> Any:
    with use_engine(name):
        return engine_for(NUMPY)


def problem(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(5)
    X = np.round(generator.normal(size=(300, 11)), 1)
    X[generator.random(X.shape) < 0.1] = np.nan
    return X, generator.integers(0, n_classes, 300)


def histograms(engine: Any, X: Any, y: Any, edges: Any, group_of: np.ndarray) -> Any:
    """Weights at their start, all equal; rows sorted by class."""
    by_class = sort_by_class(y, group_of.shape[1], None, NUMPY)
    layout = Layout(by_class.starts, group_of)
    codes = engine.encode(X, edges, by_class.rows, layout)
    made = engine.histograms(codes, layout, None)
    shape = (layout.n_groups, codes.n_features, codes.width)
    made.requantise(np.zeros(shape, dtype=np.int64), np.zeros(0, dtype=np.int64))
    return made


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_sums_of_two_workers_give_the_split_of_all_rows(name, variant, n_classes, learn):
    X, y = problem(n_classes)
    rule, own = rule_for(variant, n_classes), engine(name)
    gaps = own.gaps(X, np.arange(len(X)), 255)
    edges = edges_of(gaps)
    whole = histograms(own, X, y, edges, rule.group_of)
    n_thresholds = np.array([len(e) for e in edges]) + learn
    groups = int(rule.group_of.max()) + 1
    scale = np.linspace(0.5, 1.0, groups)
    criterion = Criterion(rule.kind, rule.chance * scale, learn, n_thresholds)
    split = whole.split(scale, criterion)
    parts = [
        histograms(own, X[rows], y[rows], edges, rule.group_of)
        for rows in (slice(0, 110), slice(110, 300))
    ]
    sums = sum(part.add_up() for part in parts)
    np.testing.assert_array_equal(sums, whole.add_up())
    chosen = choose(sums, split.largest, scale, criterion, NUMPY)
    assert (chosen.feature, chosen.bin, chosen.missing_leaf) == (
        split.feature, split.bin, split.missing_leaf,
    )  # fmt: skip
    assert chosen.score == split.score
    np.testing.assert_array_equal(chosen.sums, split.sums)
