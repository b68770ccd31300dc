"""The held-out rows of early stopping, and the rows that a round of boosting draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.sampling import (
    Draws,
    Items,
    drawn_items,
    items_of,
    stratified_folds,
    stratified_holdout,
)
from ensemble_gpu.kernels.cpu import engine as cpu_engine
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from tests.splitmix import M64, STEP, finaliser

CPU = CpuEngine(1)


def in_order(n: int) -> Items:
    """Rows whose keys are in their own order."""
    return Items(np.arange(n), None, False)


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=4),
    st.floats(0.01, 0.9),
    st.integers(0, 2**31 - 1),
)
def test_every_class_keeps_a_row_and_gives_its_share(sizes, fraction, seed):
    index = np.repeat(np.arange(len(sizes)), sizes)
    if all(size == 1 for size in sizes):
        with pytest.raises(ValueError, match="validation_fraction"):
            stratified_holdout(index, in_order(len(index)), len(sizes), fraction, seed)
        return
    chosen = stratified_holdout(index, in_order(len(index)), len(sizes), fraction, seed)
    assert (np.diff(chosen) > 0).all()
    for c, size in enumerate(sizes):
        held = int((index[chosen] == c).sum())
        assert held < size
        assert held == min(max(1, round(fraction * size)), size - 1)


def test_one_seed_gives_one_sample_and_another_seed_another():
    index = np.repeat([0, 1], 100)
    first = stratified_holdout(index, in_order(200), 2, 0.2, 7)
    np.testing.assert_array_equal(first, stratified_holdout(index, in_order(200), 2, 0.2, 7))
    assert not np.array_equal(first, stratified_holdout(index, in_order(200), 2, 0.2, 8))


def a_few_rows(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X and y with many equal rows."""
    rng = np.random.default_rng(seed)
    return rng.integers(3, size=(n, 3)).astype(np.float64), rng.integers(3, size=n)


def contents(X: np.ndarray, y: np.ndarray, rows: np.ndarray) -> list[list[float]]:
    return np.column_stack([X, y])[rows].tolist()


def test_rows_are_held_out_by_what_they_hold_and_not_by_their_order():
    X, y = a_few_rows()
    mixed = np.random.default_rng(1).permutation(len(y))
    items, again = (items_of(row_keys(t, a), None) for a, t in ((X, y), (X[mixed], y[mixed])))
    held = stratified_holdout(y, items, 3, 0.2, 5)
    other = stratified_holdout(y[mixed], again, 3, 0.2, 5)
    assert contents(X, y, held) == contents(X[mixed], y[mixed], other)
    for fold, same in zip(
        stratified_folds(y, items, 3, 5, 0),
        stratified_folds(y[mixed], again, 3, 5, 0),
        strict=True,
    ):
        assert contents(X, y, fold) == contents(X[mixed], y[mixed], same)


def test_equal_rows_are_held_out_one_by_one():
    X, y = np.zeros((100, 2)), np.repeat([0, 1], 50)
    held = stratified_holdout(y, items_of(row_keys(y, X), None), 2, 0.3, 0)
    assert len(np.unique(held)) == 30


def test_folds_share_out_every_class_and_hold_each_item_once():
    X, y = a_few_rows()
    weights = np.random.default_rng(2).integers(0, 4, size=300).astype(np.float64)
    items = items_of(row_keys(y, X), weights)
    folds = stratified_folds(y, items, 3, 5, 0)
    counts = sum(np.bincount(fold, minlength=300) for fold in folds)
    np.testing.assert_array_equal(counts, weights)
    for c in range(3):
        sizes = [(y[fold] == c).sum() for fold in folds]
        assert max(sizes) - min(sizes) <= 1


def test_whole_weights_are_repetitions_where_rows_are_held_out_and_drawn():
    X, y = a_few_rows(120)
    weights = np.random.default_rng(3).integers(0, 4, size=120)
    items = items_of(row_keys(y, X), weights.astype(np.float64))
    many_X, many_y = X.repeat(weights, 0), y.repeat(weights)
    many = items_of(row_keys(many_y, many_X), None)
    held = stratified_holdout(y, items, 3, 0.3, 4)
    other = stratified_holdout(many_y, many, 3, 0.3, 4)
    assert contents(X, y, held) == contents(many_X, many_y, other)
    counts = Draws(items, 120, CPU).counts(7, 2, 0.4)
    drawn = Draws(many, len(many_y), CPU).counts(7, 2, 0.4)
    once = sorted(contents(X, y, np.arange(120).repeat(counts)))
    assert once == sorted(contents(many_X, many_y, np.flatnonzero(drawn)))


def test_rows_of_fractional_weight_are_drawn_whole_and_told_apart_by_it():
    X, y = np.zeros((40, 1)), np.repeat([0, 1], 20)
    weights = np.linspace(0.1, 2.0, 40)
    mixed = np.random.default_rng(0).permutation(40)
    first = items_of(row_keys(y, X), weights)
    again = items_of(row_keys(y[mixed], X[mixed]), weights[mixed])
    assert not first.whole
    held = stratified_holdout(y, first, 2, 0.3, 1)
    other = stratified_holdout(y[mixed], again, 2, 0.3, 1)
    np.testing.assert_array_equal(weights[held], weights[mixed][other])


def test_draws_do_not_depend_on_the_place_or_the_number_of_threads(place, monkeypatch):
    monkeypatch.setattr(cpu_engine, "DRAWS_PER_THREAD", 10)
    X, y = a_few_rows(90)
    for weights in (None, np.random.default_rng(3).integers(0, 4, size=90).astype(np.float64)):
        items = items_of(row_keys(y, X), weights)
        here = Draws(items, 90, CPU).counts(7, 2, 0.4)
        reference = ReferenceEngine(locate(place.put(np.zeros(1))))
        found = Draws(items, 90, reference).counts(7, 2, 0.4)
        place.check(found, "bool" if weights is None else "int64")
        np.testing.assert_array_equal(place.host(found), here)
        shared = Draws(items, 90, CpuEngine(2)).counts(7, 2, 0.4)
        np.testing.assert_array_equal(shared, here)


# Of the first forty rows those that seed 7 draws in round 3 with probability 0.3.
DRAWN = [3, 14, 15, 18, 21, 22, 24, 26, 27, 32, 35, 38]


def oracle(seed: int, round_: int, rows: range, share: float) -> list[bool]:
    """A hash of (seed, round, row) below the share of 2^64."""
    state = seed * 0xD1B54A32D192ED03 + round_ * 0x8CB92BA72F3D8DD7
    return [finaliser((state + row * STEP) & M64) < int(share * 2**64) for row in rows]


@given(
    st.integers(0, 2**31 - 1),
    st.integers(0, 10**6),
    st.integers(0, 10**9),
    st.floats(1e-6, 1.0, exclude_max=True),
)
def test_drawn_items_are_those_of_splitmix64_in_plain_integers(seed, round_, first, share):
    rows = range(first, first + 200)
    numbers = np.arange(first, first + 200, dtype=np.uint64)
    found = drawn_items(seed, round_, numbers, share, CPU)
    assert found.tolist() == oracle(seed, round_, rows, share)


def test_the_rows_drawn_from_a_seed_stay_the_same_for_good(place):
    numbers = place.put(np.arange(40, dtype=np.uint64))
    found = drawn_items(7, 3, numbers, 0.3, ReferenceEngine(locate(numbers)))
    place.check(found, "bool")
    assert np.flatnonzero(place.host(found)).tolist() == DRAWN


def test_the_share_of_drawn_rows_is_the_one_asked_for():
    drawn = drawn_items(0, 0, np.arange(100_000, dtype=np.uint64), 0.2, CPU)
    assert abs(drawn.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 100_000)
