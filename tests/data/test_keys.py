"""Keys of rows: what they tell apart, on every device; models that depend on no order of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from ensemble_gpu import (
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from ensemble_gpu.data.keys import row_keys, sorted_rows
from tests.datasets import random_data
from tests.places import PLACES, Place

ELSEWHERE = PLACES[1:]
TINY, LARGE = np.finfo(np.float64).tiny, np.finfo(np.float64).max

# Numbers at the ends of what a float64 can be, next to powers of two and far from 1.
EXTREME = np.array(
    [0.0, -0.0, 5e-324, -5e-324, TINY, -TINY, np.nextafter(TINY, 0.0), np.nextafter(TINY, 1.0),
     1e-310, 1e-300, -1e300, 1e300, LARGE, -LARGE, 2.0**1023, np.nextafter(2.0**1023, 0.0), np.nan,
     -np.nan, 1.0, np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0), 2.0**53, 2.0**53 + 2.0, 2.0**63,
     1.7e9, 1.7e9 + 1.0, 1e-20, 2e-20, np.pi, -np.pi],
)  # fmt: skip

# X of these is what a hash of roundings cannot tell apart.
SCALES = {
    "timestamps": lambda x: 1.7e9 + np.floor(1000.0 * x),
    "tiny": lambda x: 1e-20 * x,
    "huge": lambda x: 1e300 * x,
    "far apart": lambda x: np.exp(100.0 * x),
}


def test_keys_tell_rows_apart_and_are_the_same_for_equal_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3)).astype(np.float32)
    X[::7, 1] = np.nan
    y = rng.integers(2, size=5000)
    keys = row_keys(y, X)
    assert len(np.unique(keys)) == 5000
    np.testing.assert_array_equal(keys, row_keys(y, X.astype(np.float64)))
    np.testing.assert_array_equal(keys, row_keys(y, np.asfortranarray(X)))
    assert (keys != row_keys(1 - y, X)).all()
    zeros = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    first, second, third = row_keys(np.zeros(3), zeros)
    assert first == second != third


def key_of(x: Any) -> int:
    (key,) = row_keys(np.zeros(1), np.array([[x]]))
    return int(key)


@given(st.floats(allow_nan=True, allow_infinity=False), st.floats(allow_infinity=False))
def test_numbers_have_equal_keys_where_they_are_equal_and_only_there(x, other):
    plain = [0.0 if abs(v) < TINY else v for v in (x, other)]
    equal = plain[0] == plain[1] or all(v != v for v in plain)
    assert (key_of(x) == key_of(other)) == equal


@given(st.floats(width=32, allow_infinity=False))
def test_a_float32_has_the_key_of_its_float64_copy(x):
    assert key_of(np.float32(x)) == key_of(np.float64(np.float32(x)))


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_has_the_key_of_its_float64(n):
    assert key_of(np.int64(n)) == key_of(np.float64(n))
    nothing = np.zeros((1, 1))
    target = np.array([n])
    assert row_keys(target, nothing) == row_keys(target.astype(np.float64), nothing)


def test_neighbours_are_told_apart_however_large_or_small():
    for x in (1.7e9, 1e-20, 1e300, 1e-300, 1.0, 2.0**53, TINY):
        assert len({key_of(x), key_of(-x), key_of(np.nextafter(x, np.inf))}) == 3


def test_zeros_are_alike_and_so_are_all_kinds_of_nan():
    assert len({key_of(x) for x in (0.0, -0.0, 5e-324, -5e-324, np.nextafter(TINY, 0.0))}) == 1
    odd = np.array([0x7FF0000000000001, 0xFFF8000000000123], dtype=np.uint64).view(np.float64)
    assert len({key_of(x) for x in (np.nan, -np.nan, *odd)}) == 1
    assert key_of(np.nan) not in (key_of(0.0), key_of(1.5))


@pytest.mark.parametrize("place", ELSEWHERE, ids=str)
def test_keys_are_those_of_numpy_everywhere(place: Place):
    rng = np.random.default_rng(0)
    n = 20 * len(EXTREME)
    patterns = rng.integers(0, 2**64, size=n, dtype=np.uint64).view(np.float64)
    X = np.stack([np.tile(EXTREME, 20), np.nan_to_num(patterns), rng.normal(size=n)], axis=1)
    whole = rng.integers(-(2**62), 2**62, size=n)
    whole[:2] = 2**53 + 1, 2**53
    weights = rng.gamma(1.0, size=n)
    for target in (np.arange(n) % 3, whole, rng.permutation(np.nan_to_num(X[:, 0]))):
        found = row_keys(place.put(target), place.put(X))
        np.testing.assert_array_equal(found, row_keys(target, X))
        found = row_keys(place.put(target), place.put(X), weights)
        np.testing.assert_array_equal(found, row_keys(target, X, weights))
    with np.errstate(over="ignore"):
        narrow = np.clip(X, -1e38, 1e38).astype(np.float32)
    found = row_keys(place.put(whole), place.put(narrow))
    np.testing.assert_array_equal(found, row_keys(whole, narrow.astype(np.float64)))


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000, 30_000])
def test_rows_are_sorted_by_their_keys_equal_ones_in_their_own_order(n):
    rng = np.random.default_rng(n)
    keys = rng.integers(0, 2**64, size=n, dtype=np.uint64)
    few = keys[rng.integers(0, max(1, n // 100), size=n)]
    near = keys >> np.uint64(40)  # all in one bucket
    for some in (keys, few, near, np.zeros_like(keys), ~np.zeros_like(keys)):
        np.testing.assert_array_equal(sorted_rows(some), np.argsort(some, kind="stable"))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    "model",
    [
        BaggingClassifier(n_estimators=6, random_state=0),
        BaggingClassifier(KNeighborsClassifier(3), 6, random_state=0),
        BaggingRegressor(n_estimators=6, max_features=0.5, random_state=0),
        RandomForestClassifier(6, random_state=0),
        RandomForestRegressor(6, random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'estimator', '')}",
)
def test_a_model_does_not_depend_on_the_order_of_rows_of_any_size(model, scale):
    rng = np.random.default_rng(0)
    base = rng.random(size=(300, 4))
    X = SCALES[scale](base)
    y = (base[:, 0] + base[:, 1] > 1.0).astype(int)
    order = rng.permutation(300)
    first = model.fit(X, y).predict(X)
    bags = getattr(model, "estimators_samples_", [])
    other = model.fit(X[order], y[order]).predict(X)
    np.testing.assert_array_equal(first, other)
    again = getattr(model, "estimators_samples_", [])
    for rows, mixed in zip(bags, again, strict=True):
        np.testing.assert_array_equal(rows, np.sort(order[mixed]))


@pytest.mark.parametrize(
    "model",
    [
        BaggingClassifier(n_estimators=6, random_state=0),
        BaggingClassifier(KNeighborsClassifier(3), 6, random_state=0),
        RandomForestClassifier(6, random_state=0),
        RandomForestClassifier(6, class_weight={0: 2.0}, random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'estimator', '')}",
)
def test_equal_rows_of_different_weights_may_come_in_any_order(model):
    """They are told apart: one of them in the bag is not the other."""
    rng = np.random.default_rng(0)
    data = random_data(n=60)
    X, y = np.repeat(data.X, 5, axis=0), np.repeat(data.y, 5)
    y = np.where(rng.random(300) < 0.3, 1 - y, y)
    for weights in (rng.gamma(0.5, size=300), rng.integers(1, 9, size=300).astype(float)):
        order = rng.permutation(300)
        first = model.fit(X, y, weights).predict_proba(X)
        other = model.fit(X[order], y[order], weights[order]).predict_proba(X)
        np.testing.assert_allclose(first, other, rtol=1e-12, atol=1e-15)
