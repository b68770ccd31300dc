"""Sparse rows on the CUDA engine: codes that the host has made are those of the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    use_engine,
)
from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.kernels.cuda.engine import CudaEngine
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.protocol import Layout
from tests.boosters import plain


def data(n: int = 40, p: int = 11) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, p)) < 0.4, rng.normal(size=(n, p)), 0.0)
    X[rng.random((n, p)) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("n_values", [5, 400], ids=["8 bits", "16 bits"])
@pytest.mark.parametrize("layout", [None, Layout(np.array([0, 500]), np.array([[0]]))], ids=str)
def test_codes_are_those_of_the_dense_rows(n_values: int, layout: Layout | None) -> None:
    X = data(500, 11)
    X[:, 2] = np.random.default_rng(1).integers(0, n_values, 500)
    engine, rows = CudaEngine(NUMPY), np.random.default_rng(2).permutation(500)
    edges = edges_of(engine.gaps(X, rows, None))
    dense, found = (engine.encode(a, edges, rows, layout) for a in (X, sparse.csr_matrix(X)))
    np.testing.assert_array_equal(found.data, dense.data)
    np.testing.assert_array_equal(found.counts, dense.counts)
    assert (found.n_rows, found.n_features, found.width) == (500, 11, dense.width)


@pytest.mark.parametrize(
    "estimator",
    [
        AdaBoostClassifier(n_estimators=2, max_bins=7, n_jobs=1, calibrate=False),
        BoostingClassifier(**plain(n_estimators=2, max_depth=2, max_bins=7, n_jobs=1)),
        DecisionTreeRegressor(max_depth=2, n_jobs=1),
        RandomForestClassifier(2, max_depth=2, random_state=0, n_jobs=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_fit_to_sparse_rows_is_the_fit_of_the_cpu_to_dense_ones(estimator: Any) -> None:
    X = data()
    y = np.nan_to_num(X[:, 0] - X[:, 1]) > 0.1
    y = y.astype(float) if estimator.__class__.__name__.endswith("Regressor") else y
    expected = estimator.fit(X, y)
    fingerprint, outputs = expected.model_.fingerprint(), expected.predict(X)
    with use_engine("cuda"):
        found = estimator.fit(sparse.csr_matrix(X), y)
        assert found.engine_ == "cuda"
        assert found.model_.fingerprint() == fingerprint
        np.testing.assert_array_equal(found.predict(sparse.csr_matrix(X)), outputs)
