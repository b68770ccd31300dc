"""What fit and predict take, and in what form answers come back."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ensemble_gpu import AdaBoostClassifier
from tests.datasets import random_data
from tests.places import DEVICE, PLACES, Place
from tests.products import every_pair

DATA = random_data(n=120)
WHOLE = np.clip(np.round(DATA.X * 2), -60, 60)  # whole numbers that int8 and float16 hold
NAMES = [f"column {f}" for f in range(6)]


def fitted(X, y=DATA.y, **params) -> AdaBoostClassifier:
    return AdaBoostClassifier(n_estimators=12, **params).fit(X, y)


@cache
def standard() -> str:
    return fitted(DATA.X).model_.fingerprint()


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        lambda X: [tuple(row) for row in X.tolist()],
        lambda X: X.astype(object),
        pd.DataFrame,
        lambda X: pd.DataFrame(X).astype("Float64"),
        lambda X: pl.DataFrame(X, schema=NAMES),
        lambda X: memoryview(X),
    ],
    ids=["list", "tuples", "object", "pandas", "pandas nullable", "polars", "memoryview"],
)
def test_what_converts_to_numpy_gives_the_model_of_numpy(convert):
    X = convert(DATA.X)
    estimator = fitted(X)
    assert estimator.model_.fingerprint() == standard()
    proba = estimator.predict_proba(X)
    assert isinstance(proba, np.ndarray)
    assert proba.dtype == np.float64
    np.testing.assert_array_equal(proba, fitted(DATA.X).predict_proba(DATA.X))


@pytest.mark.parametrize(
    "dtype",
    ["int8", "int16", "int32", "int64", "float16", "float32", "float64", "longdouble", "object"],
)
def test_whole_numbers_of_any_type_give_one_model(dtype):
    estimator = fitted(WHOLE.astype(dtype))
    assert estimator.model_ == fitted(WHOLE).model_


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_numbers_give_the_model_of_floats(dtype):
    X = WHOLE - WHOLE.min()
    assert fitted(X.astype(dtype)).model_ == fitted(X).model_


def test_bool_features_split_at_one_half():
    X = DATA.X > 0
    estimator = fitted(X)
    assert estimator.model_ == fitted(X.astype(float)).model_
    assert set(estimator.model_.rounds.threshold) == {0.5}


def test_large_integers_keep_their_differences():
    base = 2**40
    X = np.array([[base], [base + 1], [base + 2], [base + 3]])
    estimator = fitted(X, [0, 0, 1, 1])
    assert estimator.model_.rounds.threshold[0] == base + 1.5


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_feature_names_are_kept_and_compared(frame):
    X = frame({name: DATA.X[:, f] for f, name in enumerate(NAMES)})
    estimator = fitted(X)
    np.testing.assert_array_equal(estimator.feature_names_in_, NAMES)
    assert estimator.n_features_in_ == 6
    swapped = X[NAMES[::-1]]
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(swapped)


def test_feature_names_are_forgotten_by_a_fit_without_names():
    estimator = fitted(pd.DataFrame(DATA.X, columns=NAMES))
    place = DEVICE
    estimator.fit(place.put(DATA.X), place.put(DATA.y))
    assert not hasattr(estimator, "feature_names_in_")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_missing_values_of_a_frame_are_missing(frame):
    X = DATA.with_missing().X
    columns = {n: [None if np.isnan(v) else v for v in X[:, f]] for f, n in enumerate(NAMES)}
    assert fitted(frame(columns)).model_ == fitted(X).model_


LABELS = {
    "strings": np.where(DATA.y == 1, "yes", "no"),
    "object strings": np.where(DATA.y == 1, "yes", "no").astype(object),
    "bool": DATA.y == 1,
    "negative integers": np.where(DATA.y == 1, -3, -7),
    "minus and plus one": 2 * DATA.y - 1,
    "large integers": np.where(DATA.y == 1, 2**60 + 1, 2**60),
    "uint8": DATA.y.astype(np.uint8),
    "whole floats": DATA.y * 2.0,
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_as_they_were_given(kind):
    y = LABELS[kind]
    estimator = fitted(DATA.X, y)
    assert estimator.model_.fingerprint() == standard()
    predicted = estimator.predict(DATA.X)
    np.testing.assert_array_equal(estimator.classes_, np.unique(y))
    assert predicted.dtype == y.dtype
    np.testing.assert_array_equal(predicted, np.unique(y)[fitted(DATA.X).predict(DATA.X)])
    assert estimator.score(DATA.X, y) == fitted(DATA.X).score(DATA.X, DATA.y)


@pytest.mark.parametrize(
    "convert",
    [list, tuple, pd.Series, pl.Series, pd.Categorical],
    ids=["list", "tuple", "pandas", "polars", "categorical"],
)
def test_labels_in_containers_are_read(convert):
    y = LABELS["strings"]
    estimator = fitted(DATA.X, convert(y.tolist()))
    assert estimator.model_.fingerprint() == standard()
    assert set(estimator.predict(DATA.X)) == {"no", "yes"}


def test_missing_categories_of_labels_do_not_become_classes():
    y = pd.Categorical(np.where(DATA.y == 1, "b", "a"), categories=["a", "b", "never"])
    np.testing.assert_array_equal(fitted(DATA.X, pd.Series(y)).classes_, ["a", "b"])


def test_a_class_without_weight_is_not_a_class():
    y = DATA.y.copy()
    y[:10] = 5
    weights = np.ones(120)
    weights[:10] = 0.0
    estimator = AdaBoostClassifier(n_estimators=5).fit(DATA.X, y, weights)
    np.testing.assert_array_equal(estimator.classes_, [0, 1])


@pytest.mark.slow
@every_pair(
    "place, dtype, n_classes, variant",
    PLACES,
    ["float32", "float64"],
    [2, 4],
    ["real", "discrete"],
    ids=str,
)
def test_outputs_are_in_the_namespace_device_and_dtype_of_x(
    place: Place, dtype, n_classes, variant
):
    data = random_data(n_classes, n=60)
    X, y = place.put(data.X.astype(dtype)), place.put(data.y)
    estimator = fitted(X, y, variant=variant)
    columns = (60,) if n_classes == 2 else (60, n_classes)
    for method, shape in {
        "decision_function": columns,
        "predict_proba": (60, n_classes),
        "predict_log_proba": (60, n_classes),
    }.items():
        found = getattr(estimator, method)(X)
        place.check(found, dtype)
        assert found.shape == shape
    place.check(estimator.predict(X), "int64")
    assert estimator.predict(X).shape == (60,)
    place.check(next(estimator.staged_decision_function(X)), dtype)
    place.check(next(estimator.staged_predict_proba(X)), dtype)
    place.check(next(estimator.staged_predict(X)), "int64")
    assert 0.5 < estimator.score(X, y) <= 1.0


def test_integer_features_give_float64_answers(place: Place):
    X, y = place.put(WHOLE.astype(np.int64)), place.put(DATA.y)
    place.check(fitted(X, y).predict_proba(X), "float64")


def test_bool_features_and_labels_on_a_device(place: Place):
    X, y = place.put(DATA.X > 0), place.put(DATA.y == 1)
    estimator = fitted(X, y)
    assert estimator.classes_.tolist() == [False, True]
    place.check(estimator.predict(X), "bool")
    assert estimator.model_ == fitted(DATA.X > 0).model_


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integer_labels_of_any_width_on_a_device(place: Place, dtype):
    X, y = place.put(DATA.X), place.put(DATA.y.astype(dtype))
    estimator = fitted(X, y)
    assert estimator.model_.fingerprint() == standard()
    assert estimator.score(X, y) == fitted(DATA.X).score(DATA.X, DATA.y)


def test_string_labels_with_features_on_a_device_come_back_on_the_host():
    place = DEVICE
    estimator = fitted(place.put(DATA.X), LABELS["strings"])
    assert estimator.model_.fingerprint() == standard()
    assert isinstance(estimator.predict(place.put(DATA.X)), np.ndarray)


def test_a_model_trained_on_a_device_predicts_on_numpy_and_back():
    there = DEVICE
    trained_there = fitted(there.put(DATA.X), there.put(DATA.y))
    trained_here = fitted(DATA.X)
    np.testing.assert_array_equal(
        trained_there.predict_proba(DATA.X), trained_here.predict_proba(DATA.X)
    )
    found = trained_here.decision_function(there.put(DATA.X))
    there.check(found, "float64")
    np.testing.assert_array_equal(there.host(found), trained_here.decision_function(DATA.X))


def test_scalar_weights_are_equal_weights():
    found = AdaBoostClassifier(n_estimators=12).fit(DATA.X, DATA.y, 2.0)
    np.testing.assert_array_equal(found.model_.rounds.feature, fitted(DATA.X).model_.rounds.feature)
    np.testing.assert_allclose(
        found.model_.rounds.values, fitted(DATA.X).model_.rounds.values, rtol=1e-7
    )


@pytest.mark.parametrize("convert", [list, pd.Series, pl.Series], ids=["list", "pandas", "polars"])
def test_weights_in_containers_are_read(convert):
    weights = DATA.with_weights().weights
    expected = AdaBoostClassifier(n_estimators=5).fit(DATA.X, DATA.y, weights).model_
    found = AdaBoostClassifier(n_estimators=5).fit(DATA.X, DATA.y, convert(weights.tolist()))
    assert found.model_ == expected


@pytest.mark.parametrize("max_bins", [2, 16, 255, 256, 1000, None])
def test_max_bins_limits_the_thresholds_of_a_feature(max_bins):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 2))
    estimator = AdaBoostClassifier(n_estimators=300, max_bins=max_bins)
    estimator.fit(X, (np.sin(4 * X[:, 0]) + X[:, 1] > 0).astype(int))
    most = max(len(table.thresholds) for table in estimator.model_.tables.values())
    assert most <= (max_bins or 700) - 1
    assert most >= min(max_bins or 700, 16) // 2
