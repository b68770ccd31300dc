"""Gaps without sorting whole columns: those of sorted columns, whatever the values are like."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.kernels.cpu.gaps import gaps
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.reference.engine import ReferenceEngine


def columns(n: int) -> dict[str, np.ndarray]:
    """Values that buckets of equal width, or of equally many floats, would not tell apart."""
    random = np.random.default_rng(n)
    normal = random.normal(size=n)
    return {
        "normal": normal,
        "half precision": normal.astype(np.float16).astype(np.float64),
        "long tails": random.standard_cauchy(size=n),
        "very long tails": np.exp(20.0 * normal),
        "both signs, very long tails": np.sign(normal) * np.exp(20.0 * random.normal(size=n)),
        "mostly zero": np.where(random.uniform(size=n) < 0.9, 0.0, normal),
        "both zeros": np.where(normal < 0.0, -0.0, 0.0),
        "few integers": random.integers(0, 5, n).astype(np.float64),
        "more integers than bins": random.integers(0, 300, n).astype(np.float64),
        "one far away": np.where(np.arange(n) == 0, 1e300, normal),
        "a range without a float": 1.7e308 * np.sign(normal) * random.uniform(size=n),
        "subnormal": normal * 5e-324 * 1e3,
        "constant": np.ones(n),
        "missing": np.full(n, np.nan),
        "a value and missing": np.where(np.arange(n) == n // 2, 2.0, np.nan),
        "half missing": np.where(random.uniform(size=n) < 0.5, np.nan, normal),
        "sorted": np.sort(normal),
        "falling": -np.sort(normal),
    }


@pytest.mark.parametrize("max_bins", [2, 3, 16, 255, 1000, None])
@pytest.mark.parametrize("n", [1, 2, 3, 17, 300, 4000, 30_000])
def test_gaps_are_those_of_sorted_columns(n, max_bins):
    X, rows = np.stack(list(columns(n).values()), axis=1), np.arange(n)
    wanted = ReferenceEngine(NUMPY).gaps(X, rows, max_bins)
    for threads in (1, 2):
        found = gaps(X, rows, max_bins, Run(threads))
        for name, a, b in zip(columns(n), found, wanted, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)


def test_single_precision_columns_and_chosen_rows():
    X = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
    rows = np.arange(0, 5000, 3)
    for max_bins in (16, 255, None):
        wanted = ReferenceEngine(NUMPY).gaps(X[rows], np.arange(len(rows)), max_bins)
        found = gaps(X, rows, max_bins, Run(1))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
