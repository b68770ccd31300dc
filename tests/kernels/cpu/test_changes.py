"""Sums that follow the rows are those of all rows, whatever has changed."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import BoostingRegressor
from ensemble_gpu.boosting import integers
from ensemble_gpu.kernels.cpu import changes
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.protocol import Codes, Layout


def coded(engine: CpuEngine, n: int, p: int, n_values: int) -> Codes:
    X = np.random.default_rng(p).integers(0, n_values, size=(n, p)).astype(np.float64)
    edges = [np.arange(0.5, n_values - 1) for _ in range(p)]
    return engine.encode(X, edges, np.arange(n), Layout(np.array([0, n]), np.zeros((1, 1), int)))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("p", "n_values"), [(3, 7), (8, 200), (13, 40), (9, 400)])
@pytest.mark.parametrize("planes", [1, 3])
def test_following_sums_are_the_sums_of_all_rows(planes, p, n_values, n_jobs, monkeypatch):
    monkeypatch.setattr(changes, "CELLS_PER_THREAD", 100)
    n, rng, engine = 9000, np.random.default_rng(0), CpuEngine(n_jobs)
    codes = coded(engine, n, p, n_values)
    follow = engine.following_sums(codes)
    top = 1 << 18
    g, h = rng.integers(-top, top, (planes, n)), rng.integers(0, top, (planes, n))
    counted = []
    pair_sums = engine.pair_sums
    monkeypatch.setattr(engine, "pair_sums", lambda *a: counted.append(1) or pair_sums(*a))
    for share, other_h in ((0, 0), (0.01, 0), (0.0, 0), (0.2, 0), (0.9, 0), (0.05, 1), (0.1, 0)):
        changed = rng.random((planes, n)) < share
        g = np.where(changed, rng.integers(-top, top, (planes, n)), g)
        if other_h:
            h[-1, 17] += 1
        packed = (g << 32) + h
        for found, expected in zip(follow(packed.copy()), pair_sums(codes, packed), strict=True):
            np.testing.assert_array_equal(found, expected)
    # the first time, where most rows have changed, and where an h has
    assert len(counted) == 3


def test_a_fit_is_the_same_whether_sums_follow_or_not(monkeypatch):
    monkeypatch.setattr(integers, "FINE_ROWS", 0)
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(800, 6)), rng.uniform(size=800)
    y = X[:, 0] + rng.standard_t(3, size=800)
    for quantile in (0.8, [0.2, 0.8]):
        model = BoostingRegressor("quantile", quantile=quantile, n_estimators=40, max_depth=1)
        following = model.fit(X, y, w).model_.fingerprint()
        with monkeypatch.context() as patched:
            patched.setattr(changes, "MOST_CHANGES", -1.0)
            assert model.fit(X, y, w).model_.fingerprint() == following
