"""Rows of a child that nobody adds up: enough by the sums, or counted where that is in doubt."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ensemble_gpu import BoostingClassifier, BoostingRegressor
from ensemble_gpu.kernels.cpu.trees.pair_runs import Counting, counting_of, counting_of_kept
from ensemble_gpu.kernels.cpu.trees.rows import Rows
from ensemble_gpu.kernels.jit import kernel
from ensemble_gpu.kernels.select import use_engine

N = 20_500  # rows from which moments are packed


@kernel
def kept(count, min_rows, categorical, rows, f):
    return counting_of(counting_of_kept(count, min_rows, categorical, rows), f)


SETS = np.array([False, True])


def rows_of(g: list[int], h: list[int]) -> Rows:
    n, order = len(g), np.arange(len(g), dtype=np.uint32)
    values = (np.array(g) * 2**32 + np.array(h)).reshape(-1, 1)
    codes = np.zeros((n, 8), dtype=np.uint8)
    return Rows(codes, order, np.zeros(0, dtype=np.uint8), values, 256)


COUNTED = Counting(17, 1, True, 0)


def test_a_sum_of_so_much_is_surely_of_so_many_rows():
    found = Counting(*kept(COUNTED, 20, SETS, rows_of([-5, 7, 0], [3, 1, 9]), 0))
    assert found == Counting(0, 0, True, 20 * 9)


def test_rows_of_categories_are_counted_along():
    assert Counting(*kept(COUNTED, 20, SETS, rows_of([-5, 7, 0], [3, 1, 9]), 1)) == COUNTED


@pytest.mark.parametrize(
    ("count", "h"), [(COUNTED, [3, 0, 9]), (Counting(0, 0, True, 0), [3, 1, 9])]
)
def test_rows_of_no_weight_are_counted_along_and_where_nobody_asks_none_is(count, h):
    assert Counting(*kept(count, 20, SETS, rows_of([-5, 7, 0], h), 0)) == count


def data(case: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict]:
    """Eight features; of the last two, one sets 12 rows apart that have to stay with others, and
    one sets 40 light rows apart that may go.
    """
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 8)).round(1)
    y, w, params = (X[:, 0] + rng.normal(size=N) > 0).astype(int), np.ones(N), {}
    X[:, 6:] = 0.0
    X[:12, 6] = 1.0
    X[100:140, 7] = 1.0
    w[100:140] = 0.2
    y[:12] = y[100:140] = 1
    if case == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    if case == "categories":
        X[:, 3] = rng.integers(0, 9, N)
        params["categorical_features"] = [3]
    if case == "monotone":
        params["monotonic_cst"] = [1, -1, 0, 1, 0, 0, 0, 0]
    if case == "drawn":
        params |= {"max_features": 0.5, "subsample": 0.8}
    return X, y, w, params


CASES = ["plain", "missing", "categories", "monotone", "drawn", "zeros", "squared"]


@cache
def trees_of(case: str, engine: str, n_jobs: int) -> str:
    X, y, w, params = data(case)
    rounds = 30 if case == "zeros" else 4  # at a rate of 1 rows are soon fitted to the last digit
    common = {
        "n_estimators": rounds, "min_samples_leaf": 25, "max_depth": None, "max_leaf_nodes": 12,
        "early_stopping": False, "random_state": 1, "n_jobs": n_jobs, "min_hessian": 0.0,
        "max_features": None, "subsample": 1.0, "learning_rate": 1.0, **params,
    }  # fmt: skip
    with use_engine(engine):
        if case == "squared":
            return BoostingRegressor(**common).fit(X, y + X[:, 1], w).model_.fingerprint()
        if case == "zeros":
            y = (X[:, 0] > 0).astype(int)
        return BoostingClassifier(**common).fit(X, y, w).model_.fingerprint()


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_trees_are_those_of_the_reference_engine_which_counts_all_rows(case, n_jobs):
    assert trees_of(case, "cpu", n_jobs) == trees_of(case, "reference", 1)


def test_few_rows_stay_and_light_ones_may_go():
    X, y, w, _ = data("plain")
    X = X[:, 6:]
    clf = BoostingClassifier(
        n_estimators=1, max_depth=1, min_samples_leaf=25, min_hessian=0.0, early_stopping=False,
        subsample=1.0, max_features=None, n_jobs=1,
    )  # fmt: skip
    p = clf.fit(X, y, w).predict_proba(X)[:, 1]
    assert p[100] > p[200]
    assert p[0] == p[200]
