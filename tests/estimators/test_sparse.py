"""Sparse X: the model and the predictions of the dense array, without ever being one."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    BoostingClassifier,
    BoostingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.kernels import sparse as kernels
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from tests.boosters import plain
from tests.datasets import fitted_state

N, P = 300, 11

ESTIMATORS = {
    "AdaBoost": AdaBoostClassifier(n_estimators=8),
    "AdaBoost learns missing": AdaBoostClassifier(n_estimators=8, missing="learn", max_bins=4),
    "AdaBoost of trees": AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3),
    "logistic stumps": BoostingClassifier(n_estimators=4, max_bins=None, max_depth=1),
    "logistic trees": BoostingClassifier(**plain(n_estimators=4, max_depth=3, max_bins=5)),
    "squared stumps": BoostingRegressor(n_estimators=4, max_depth=1),
    "absolute trees": BoostingRegressor("absolute", **plain(n_estimators=3, max_depth=3)),
    "tree": DecisionTreeClassifier(max_bins=3),
    "exact regression tree": DecisionTreeRegressor(max_bins=None, max_depth=5),
    "forest": RandomForestClassifier(4, random_state=0),
    "regression forest": RandomForestRegressor(4, random_state=0, splitter="random"),
    "bagging": BaggingClassifier(n_estimators=3, max_features=0.6, random_state=0),
    "bagged regression": BaggingRegressor(
        BoostingRegressor(n_estimators=3, max_depth=1),
        3,
        max_samples=0.5,
        bootstrap=False,
        random_state=0,
    ),
}


def matrix(dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Mostly zeros: columns of few values and of many, negative ones only, one empty, one full."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((N, P)) < 0.3, rng.normal(size=(N, P)), 0.0)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = -np.abs(X[:, 2])
    X[:, 3] = 0.0
    X[:, 4] = rng.normal(size=N)
    X[rng.random(N) < 0.1, 5] = np.nan
    X[:, 6] = np.where(rng.random(N) < 0.1, np.nan, 0.0)
    X[:, 7] = np.nan
    return X.astype(dtype)


def target(estimator: Any, X: np.ndarray) -> np.ndarray:
    value = np.nan_to_num(X[:, 0] + 2.0 * X[:, 1] - X[:, 2] + X[:, 5] + 0.3 * X[:, 4])
    return np.digitize(value, [-0.5, 0.5]) if is_classifier(estimator) else value


def fingerprints(estimator: Any) -> list[str]:
    own = getattr(estimator, "estimators_", [estimator])
    return [one.model_.fingerprint() for one in own]


FORMATS = [
    sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array, sparse.coo_array,
    sparse.lil_matrix, sparse.dok_array, sparse.bsr_array,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_sparse_matrix_gives_the_model_and_predictions_of_the_dense_one(name, engine):
    X = matrix()
    dense, given = ESTIMATORS[name], sparse.csr_matrix(X)
    y, weights = target(dense, X), np.random.default_rng(1).integers(0, 3, N)
    expected = dense.fit(X, y, weights)
    expected, outputs = fingerprints(expected), expected.predict(X)
    found = dense.fit(given, y, weights)
    assert fingerprints(found) == expected
    np.testing.assert_array_equal(found.predict(given), outputs)
    np.testing.assert_array_equal(found.predict(X), outputs)
    assert found.n_features_in_ == P


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
def test_every_format_and_type_is_taken_and_left_as_it_was(form, dtype):
    X = np.nan_to_num(matrix()).round().astype(dtype)
    y = target(ESTIMATORS["AdaBoost"], X.astype(float))
    given, before = form(X), form(X).toarray()
    for estimator in (
        AdaBoostClassifier(n_estimators=5),
        RandomForestClassifier(2, random_state=0),
    ):
        expected = estimator.fit(X, y)
        fingerprint, P = expected.model_.fingerprint(), expected.predict_proba(X)
        found = estimator.fit(given, y)
        assert found.model_.fingerprint() == fingerprint
        np.testing.assert_array_equal(found.predict_proba(given), P)
        assert found.predict_proba(given).dtype == P.dtype
    np.testing.assert_array_equal(given.toarray(), before)


def test_entries_that_are_stored_twice_are_added_and_stored_zeros_are_zeros():
    rows, columns = np.array([0, 0, 1, 2, 3]), np.array([0, 0, 1, 0, 1])
    values = np.array([1.0, 2.0, 0.0, np.nan, 5.0])
    twice = sparse.csr_array((4, 2))
    twice.indptr, twice.indices, twice.data = np.array([0, 2, 3, 4, 5]), columns, values
    y = np.array([0, 1, 0, 1])
    dense = np.array([[3.0, 0.0], [0.0, 0.0], [np.nan, 0.0], [0.0, 5.0]])
    expected = DecisionTreeClassifier().fit(dense, y).model_
    assert DecisionTreeClassifier().fit(twice, y).model_ == expected
    assert len(twice.data) == 5, "the user's matrix was changed"
    assert DecisionTreeClassifier().fit(sparse.coo_matrix((values, (rows, columns))), y).model_ == (
        expected
    )


@pytest.mark.parametrize("max_bins", [2, 3, 7, 50, None])
@pytest.mark.parametrize("n_rows", [1, 2, 40, N])
def test_bins_are_those_of_the_dense_columns(max_bins, n_rows):
    rng = np.random.default_rng(n_rows)
    X = matrix(seed=3)
    X[:, 8] = rng.integers(-3, 4, N)  # few values, zero in the middle
    rows = rng.permutation(N)[:n_rows]
    expected = ReferenceEngine(NUMPY).gaps(X, rows, max_bins)
    found = kernels.gaps(sparse.csr_matrix(X), rows, max_bins)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_edges_of_many_rows_come_from_the_sample_of_the_dense_matrix():
    n = 150_000  # more than a sample has
    X = sparse.random(n, 3, density=0.2, random_state=0, format="csr")
    expected = ReferenceEngine(NUMPY).gaps(X.toarray(), np.arange(n), 20)
    for a, b in zip(expected, kernels.gaps(X, np.arange(n), 20), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("max_depth", [None, 3])
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array])
def test_validation_rows_may_be_sparse(max_depth, form):
    X, X_val = matrix(), matrix(seed=8)
    estimator = BoostingClassifier(
        **plain(n_estimators=6, max_depth=max_depth, early_stopping=True)
    )
    y, y_val = target(estimator, X), target(estimator, X_val)
    expected = estimator.fit(X, y, X_val=X_val, y_val=y_val).validation_loss_
    found = estimator.fit(form(X), y, X_val=form(X_val), y_val=y_val)
    np.testing.assert_array_equal(found.validation_loss_, expected)


def test_held_out_rows_are_those_of_the_dense_matrix():
    X = matrix()
    estimator = BoostingClassifier(n_estimators=6, early_stopping=True, random_state=0, max_depth=1)
    y = target(estimator, X)
    expected = estimator.fit(X, y).validation_loss_
    np.testing.assert_array_equal(estimator.fit(sparse.csr_array(X), y).validation_loss_, expected)


@pytest.mark.slow
def test_predictions_out_of_bag_staged_and_of_leaves_are_those_of_the_dense_matrix():
    X = matrix()
    given = sparse.csr_matrix(X)
    forest = RandomForestClassifier(20, oob_score=True, random_state=0)
    y = target(forest, X)
    expected, leaves = forest.fit(X, y).oob_decision_function_, forest.apply(X)
    path = forest.decision_path(X)[0]
    np.testing.assert_array_equal(forest.fit(given, y).oob_decision_function_, expected)
    np.testing.assert_array_equal(forest.apply(given), leaves)
    assert (forest.decision_path(given)[0] != path).nnz == 0
    for estimator in (
        AdaBoostClassifier(n_estimators=5),
        BoostingClassifier(**plain(max_depth=2)),
    ):
        estimator.fit(X, y)
        for dense, found in zip(
            estimator.staged_predict_proba(X), estimator.staged_predict_proba(given), strict=True
        ):
            np.testing.assert_array_equal(dense, found)
        model = estimator.model_
        np.testing.assert_array_equal(model(sparse.coo_array(X)), model(X))
    bag = BaggingClassifier(n_estimators=30, oob_score=True, random_state=0)
    expected = bag.fit(X, y).oob_decision_function_
    np.testing.assert_array_equal(bag.fit(given, y).oob_decision_function_, expected)


def test_predictions_in_small_blocks_are_the_same(monkeypatch):
    from ensemble_gpu.arrays import sparse as arrays

    X = matrix()
    estimator = RandomForestClassifier(3, random_state=0)
    y = target(estimator, X)
    expected = estimator.fit(X, y).predict_proba(X)
    monkeypatch.setattr(arrays, "BLOCK_CELLS", 5)
    monkeypatch.setattr(kernels, "MOST_ENTRIES", 7)
    found = estimator.fit(sparse.csr_matrix(X), y).predict_proba(sparse.csr_matrix(X))
    np.testing.assert_array_equal(found, expected)


def test_learners_of_others_get_a_sparse_matrix():
    X = np.nan_to_num(matrix())
    y = target(ESTIMATORS["AdaBoost"], X)
    for estimator in (
        BaggingClassifier(LogisticRegression(), 3, max_features=0.5, random_state=0),
        AdaBoostClassifier(LogisticRegression(), n_estimators=3, random_state=0),
    ):
        found = estimator.fit(sparse.csr_matrix(X), y).predict_proba(sparse.csr_matrix(X))
        np.testing.assert_allclose(found, estimator.fit(X, y).predict_proba(X), atol=1e-5)


def test_a_bag_of_learners_that_refuse_missing_values_says_so_of_a_sparse_matrix():
    X = matrix()
    bag = BaggingClassifier(LogisticRegression(), 3)
    with pytest.raises(ValueError, match="X contains NaN, which LogisticRegression does not"):
        bag.fit(sparse.csr_matrix(X), target(bag, X))
    assert not fitted_state(bag)


def test_one_hot_columns_of_a_pipeline_are_taken_as_they_come():
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"town": rng.choice(list("abcdefghijklmnopqrst"), 500), "age": rng.normal(size=500)}
    )
    y = (frame["town"].isin(["a", "c", "k"]) | (frame["age"] > 1)).to_numpy()

    def pipeline(threshold: float) -> Any:
        columns = ColumnTransformer(
            [("town", OneHotEncoder(handle_unknown="ignore"), ["town"]),
             ("age", StandardScaler(), ["age"])],
            sparse_threshold=threshold,
        )  # fmt: skip
        return make_pipeline(
            columns,
            BoostingClassifier(**plain(n_estimators=30, max_depth=2)),
        )

    found, dense = pipeline(1.0).fit(frame, y), pipeline(0.0).fit(frame, y)
    assert sparse.issparse(found[:-1].transform(frame))
    assert found[-1].model_ == dense[-1].model_
    np.testing.assert_array_equal(found.predict_proba(frame), dense.predict_proba(frame))
    assert found.score(frame, y) > 0.9


@pytest.mark.long
@pytest.mark.parametrize(
    "estimator",
    [
        AdaBoostClassifier(n_estimators=10, n_jobs=1, calibrate=False),
        BoostingClassifier(**plain(n_estimators=2, max_depth=3, n_jobs=1)),
        RandomForestClassifier(2, random_state=0, n_jobs=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_no_dense_float_matrix_is_made(estimator):
    n, p = 20_000, 1_200
    X = sparse.random(n, p, density=0.01, random_state=0, format="csr")
    y = np.asarray(X[:, :120].sum(axis=1)).ravel() > 1.0
    small = sparse.random(200, p, density=0.01, random_state=0, format="csr")
    estimator.fit(small, np.arange(200) % 2)  # compiled by now
    tracemalloc.start()
    try:
        estimator.fit(X, y)
        fitted = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        estimator.predict_proba(X)
        predicted = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    codes = n * p  # bytes: a dense matrix of float32 would have four times as many
    assert fitted < 3.5 * codes
    assert predicted < codes


def test_a_gpu_is_not_silently_replaced(monkeypatch):
    from ensemble_gpu.arrays import devices

    monkeypatch.setattr(devices.gpu, "available", lambda: True)
    X = matrix()
    y = target(ESTIMATORS["AdaBoost"], X)
    with pytest.raises(TypeError, match="device='cuda' takes dense X; got csr_matrix"):
        AdaBoostClassifier(device="cuda").fit(sparse.csr_matrix(X), y)
    found = AdaBoostClassifier(n_estimators=2, device="auto").fit(sparse.csr_matrix(X), y)
    assert found.engine_ == "cpu"


def test_a_model_with_categories_takes_dense_rows():
    X = np.random.default_rng(0).integers(0, 4, (60, 2)).astype(float)
    y = X[:, 0] > 1
    tree = DecisionTreeClassifier(categorical_features=[0]).fit(X, y)
    for predict in (tree.predict, tree.model_):
        with pytest.raises(TypeError, match=r"model with categories.* takes dense X"):
            predict(sparse.csr_matrix(X))


def test_the_wrong_number_of_features_is_named():
    X = matrix()
    ada = AdaBoostClassifier(n_estimators=2).fit(sparse.csr_matrix(X), X[:, 0] > 0)
    with pytest.raises(ValueError, match=r"X has 4 features, but .* expecting 11"):
        ada.predict(sparse.csr_matrix(X[:, :4]))
    with pytest.raises(ValueError, match=r"\(rows, 11\)"):
        ada.model_(sparse.csr_matrix(X[:, :4]))
    with pytest.raises(ValueError, match="0 sample"):
        ada.predict(sparse.csr_matrix(X[:0]))


def test_names_of_a_frame_are_missed_in_a_sparse_matrix():
    import pandas as pd

    X = np.nan_to_num(matrix())
    frame = pd.DataFrame(X, columns=[f"x{f}" for f in range(P)])
    ada = AdaBoostClassifier(n_estimators=2).fit(frame, X[:, 0] > 0)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        ada.predict(sparse.csr_matrix(X))
