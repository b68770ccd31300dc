"""Bags drawn by a counter-based hash: what is drawn, how often, and that it can be drawn again."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.kernels.host.draws import (
    below,
    bootstrap_counts,
    stream,
    subset_counts,
    unit,
    weighted_counts,
    weighted_subset_counts,
)
from tests.splitmix import M64, finaliser, numbers

SEEDS = st.integers(0, 2**32 - 1)


def plain_numbers(seed: int, tree: int, n: int) -> list[int]:
    """Those of a tree: splitmix64 from a state that seed and tree give."""
    of_seed = finaliser(seed * 0xD1B54A32D192ED03 & M64)
    return numbers(finaliser((of_seed + tree * 0x8CB92BA72F3D8DD7) & M64), n)


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """The statistic in standard deviations from its mean."""
    freedom = len(observed) - 1
    return (((observed - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2.0 * freedom)


@given(st.integers(0, M64), st.integers(1, 2**32 - 1))
def test_below_is_the_upper_half_of_the_product(x, n):
    assert int(below(np.uint64(x), n)) == x * n >> 64


@given(SEEDS, st.integers(0, 10**6), st.integers(1, 200), st.integers(0, 300))
def test_bootstrap_is_the_formula_in_plain_integers(seed, tree, n_rows, n_draws):
    rows = [x * n_rows >> 64 for x in plain_numbers(seed, tree, n_draws)]
    counts = bootstrap_counts(seed, tree, n_rows, n_draws)
    assert counts.dtype == np.int32
    np.testing.assert_array_equal(counts, np.bincount(rows, minlength=n_rows))


def test_the_first_bag_never_changes():
    """A saved seed must give the same bag in every later version."""
    assert int(stream(0, 0)) == 0x9E3779B97F4A7C15
    np.testing.assert_array_equal(bootstrap_counts(42, 7, 10, 10), [0, 1, 0, 1, 1, 2, 3, 1, 1, 0])
    np.testing.assert_array_equal(subset_counts(42, 7, 10, 4), [0, 1, 0, 0, 0, 1, 0, 1, 1, 0])


@given(SEEDS, st.integers(0, 1000), st.integers(1, 200), st.data())
def test_a_subset_has_exactly_the_rows_asked_for(seed, tree, n_rows, data):
    n_draws = data.draw(st.integers(0, n_rows))
    counts = subset_counts(seed, tree, n_rows, n_draws)
    assert counts.dtype == np.int32
    assert counts.shape == (n_rows,)
    assert counts.sum() == n_draws
    assert set(counts.tolist()) <= {0, 1}


def test_a_bootstrap_holds_sixty_three_per_cent_of_the_rows():
    """The share of distinct rows is 1 - (1 - 1/n)^n, with deviation about 0.31 / sqrt(n)."""
    n = 100_000
    shares = [(bootstrap_counts(0, tree, n, n) > 0).mean() for tree in range(20)]
    deviation = np.sqrt(np.exp(-1.0) * (1.0 - 2.0 * np.exp(-1.0)) / n)
    assert abs(np.mean(shares) - (1.0 - np.exp(-1.0))) < 4.0 * deviation / np.sqrt(20)
    assert 0.5 * deviation < np.std(shares) < 2.0 * deviation


def test_counts_of_a_bootstrap_follow_poisson():
    n = 200_000
    counts = np.bincount(bootstrap_counts(1, 0, n, n), minlength=6)[:6]
    expected = n * np.exp(-1.0) / np.array([1, 1, 2, 6, 24, 120])
    assert np.abs(counts - expected).max() < 5.0 * np.sqrt(n * 0.25)


def test_every_row_is_drawn_equally_often():
    n = 1000
    drawn = sum(bootstrap_counts(3, tree, n, n).astype(np.int64) for tree in range(500))
    assert abs(chi_square(drawn, np.full(n, 500.0))) < 5.0
    taken = sum(subset_counts(3, tree, n, 300).astype(np.int64) for tree in range(500))
    # without replacement the variance is that of one draw of 500 with chance 0.3
    assert abs((taken - 150.0).var() / (500 * 0.3 * 0.7) - 1.0) < 5.0 * np.sqrt(2.0 / n)


def test_every_subset_is_equally_likely():
    subsets = list(itertools.combinations(range(6), 3))
    seen = dict.fromkeys(subsets, 0)
    for tree in range(20_000):
        seen[tuple(np.flatnonzero(subset_counts(9, tree, 6, 3)).tolist())] += 1
    assert abs(chi_square(np.array(list(seen.values())), np.full(20, 1000.0))) < 5.0


@pytest.mark.parametrize("draw", [bootstrap_counts, subset_counts])
def test_seeds_and_trees_are_independent(draw):
    n, k = 20_000, 10_000
    bags = [draw(seed, tree, n, k) for seed, tree in itertools.product((0, 1, 2**31), range(4))]
    correlation = np.corrcoef(bags)[np.triu_indices(len(bags), 1)]
    assert np.abs(correlation).max() < 5.0 / np.sqrt(n)


@pytest.mark.parametrize("weights", ["gamma", "a few heavy rows", "one row", "equal"])
def test_weighted_draws_are_in_proportion_to_the_weights(weights):
    n, k = 400, 2_000_000
    rng = np.random.default_rng(0)
    w = {
        "gamma": rng.gamma(0.5, size=n) + 1e-3,
        "a few heavy rows": np.where(np.arange(n) % 100 == 99, 300.0, 1.0),
        "one row": (np.arange(n) == 17).astype(float),
        "equal": np.full(n, 0.1),
    }[weights]
    counts = weighted_counts(5, 2, w, k)
    assert counts.dtype == np.int32
    assert counts.sum() == k
    assert (counts[w == 0.0] == 0).all()
    expected = k * w / w.sum()
    if weights != "one row":
        assert abs(chi_square(counts, expected)) < 5.0


@given(
    SEEDS,
    st.lists(st.sampled_from([0.0, 5e-324, 1e-3, 1.0, 7.0, 1.7e308]), min_size=1, max_size=40),
    st.integers(0, 200),
)
def test_weighted_draws_are_those_of_a_plain_search(seed, weights, n_draws):
    w = np.array(weights)
    if not w.any():
        w[0] = 1.0
    counts = weighted_counts(seed, 0, w, n_draws)
    upper = np.cumsum(w / w.max())
    last = np.flatnonzero(w / w.max())[-1]
    numbers = [int(x) >> 11 for x in plain_numbers(seed, 0, n_draws)]
    u = np.array(numbers, dtype=np.float64) * 2.0**-53 * upper[-1]
    rows = np.minimum(np.searchsorted(upper, u, side="right"), last)
    np.testing.assert_array_equal(counts, np.bincount(rows, minlength=len(w)))


def test_weighted_subsets_hold_distinct_rows_and_none_without_weight():
    w = np.random.default_rng(1).gamma(1.0, size=300)
    w[::3] = 0.0
    for n_draws in (1, 50, 200, 250):
        counts = weighted_subset_counts(0, n_draws, w, n_draws)
        assert counts.max() == 1
        assert counts.sum() == min(n_draws, 200)
        assert not counts[::3].any()


@pytest.mark.slow
def test_the_first_row_of_a_weighted_subset_is_drawn_in_proportion():
    w = np.array([1.0, 2.0, 3.0, 4.0])
    n = 20_000
    first = sum(weighted_subset_counts(4, tree, w, 1).astype(np.int64) for tree in range(n))
    assert abs(chi_square(first, n * w / 10.0)) < 5.0
    pairs = sum(weighted_subset_counts(4, tree, w, 2).astype(np.int64) for tree in range(n))
    second = [sum(w[j] / 10 * w[i] / (10 - w[j]) for j in range(4) if j != i) for i in range(4)]
    expected = n * (w / 10.0 + np.array(second))
    assert np.abs(pairs - expected).max() < 5.0 * np.sqrt(n * 0.25)


def test_unit_numbers_are_below_one():
    assert unit(np.uint64(M64)) == 1.0 - 2.0**-53
    assert unit(np.uint64(0)) == 0.0


def test_bags_drawn_in_threads_are_those_drawn_one_after_the_other():
    alone = [bootstrap_counts(8, tree, 5000, 5000) for tree in range(16)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda tree: bootstrap_counts(8, tree, 5000, 5000), range(16)))
    np.testing.assert_array_equal(alone, together)
