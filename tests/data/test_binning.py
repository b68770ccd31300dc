"""Edges and codes: the naive definition, the same on every engine and float width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.edges import SAMPLE_ROWS, edges_of, midpoints, sample_positions
from ensemble_gpu.kernels.protocol import Layout
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from tests.places import Place

few = st.sampled_from([-1.5, 0.0, 0.25, 1.0, 1e-30, 7.0, np.nan])
any_value = st.one_of(few, st.floats(-(2.0**100), 2.0**100, width=32), st.just(np.nan))
columns = hnp.arrays(np.float64, st.tuples(st.integers(1, 60), st.just(3)), elements=any_value)


def naive_edges(column: np.ndarray, max_bins: int) -> list[float]:
    """The definition at the top of kernels/edges.py, word by word."""
    values = sorted(column[~np.isnan(column)].tolist())
    m = len(values)
    changes = [i for i in range(1, m) if values[i] > values[i - 1]]
    if len(changes) < max_bins:
        cuts = changes
    else:
        cuts = []
        for j in range(1, max_bins):
            later = [i for i in changes if i >= j * m // max_bins]
            if later and later[0] not in cuts:
                cuts.append(later[0])
    return [float(midpoints(np.array(values[i - 1]), np.array(values[i]))) for i in cuts]


def edges_on(engine: str, X: np.ndarray, max_bins: int) -> list[np.ndarray]:
    rows = np.arange(len(X))
    made = CpuEngine(1) if engine == "cpu" else ReferenceEngine(locate(X))
    return edges_of(made.gaps(X, rows, max_bins))


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@given(X=columns, max_bins=st.integers(2, 20))
def test_edges_equal_the_naive_definition(engine, X, max_bins):
    for f, found in enumerate(edges_on(engine, X, max_bins)):
        np.testing.assert_array_equal(found, naive_edges(X[:, f], max_bins))
        assert found.dtype == np.float64


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@given(X=columns, max_bins=st.integers(2, 20))
def test_at_most_max_bins_bins_and_every_edge_separates_two_values(engine, X, max_bins):
    for f, found in enumerate(edges_on(engine, X, max_bins)):
        assert len(found) < max_bins
        assert (np.diff(found) > 0).all()
        values = np.unique(X[~np.isnan(X[:, f]), f])
        assert (np.diff(np.searchsorted(values, found, side="right")) > 0).all()


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@given(X=columns)
def test_float32_and_its_float64_copy_have_the_same_edges_and_codes(engine, X):
    narrow = X.astype(np.float32)
    wide = narrow.astype(np.float64)
    layout = Layout(np.array([0, len(X)]), np.zeros((1, 1), dtype=np.int64))
    made = CpuEngine(1) if engine == "cpu" else ReferenceEngine(locate(X))
    rows = np.arange(len(X))
    a, b = (edges_of(made.gaps(x, rows, 8)) for x in (narrow, wide))
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left, right)
    counts = [made.encode(x, a, rows, layout).counts for x in (narrow, wide)]
    np.testing.assert_array_equal(*counts)


def test_edges_are_the_same_on_every_device(place: Place):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(900, 2)), rng.integers(4, size=(900, 1))], axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    there = place.put(X)
    gaps = ReferenceEngine(locate(there)).gaps(there, place.put(np.arange(900)), 16)
    found = edges_of(gaps)
    for left, right in zip(found, edges_on("cpu", X, 16), strict=True):
        np.testing.assert_array_equal(left, right)


def test_more_rows_than_the_sample_give_the_same_edges_on_both_engines():
    X = np.random.default_rng(1).normal(size=(SAMPLE_ROWS + 12_345, 2))
    for left, right in zip(edges_on("cpu", X, 255), edges_on("reference", X, 255), strict=True):
        np.testing.assert_array_equal(left, right)
        assert len(left) == 254


def test_quantile_bins_hold_about_equal_shares():
    X = np.random.default_rng(2).normal(size=(10_000, 1))
    edges = edges_on("cpu", X, 10)[0]
    shares = np.bincount(np.searchsorted(edges, X[:, 0]))
    np.testing.assert_array_equal(shares, 1000)


@given(st.integers(1, 5000), st.integers(1, 700))
def test_sample_positions_are_one_row_from_each_of_equal_strata(n_rows, limit):
    positions = sample_positions(n_rows, limit)
    assert len(positions) == min(n_rows, limit)
    assert positions.dtype == np.int64
    assert (np.diff(positions) > 0).all()
    if n_rows > limit:
        strata = np.arange(limit + 1) * n_rows // limit
        assert (positions >= strata[:-1]).all()
        assert (positions < strata[1:]).all()
    else:
        np.testing.assert_array_equal(positions, np.arange(n_rows))


def test_sample_positions_do_not_resonate_with_periodic_rows():
    positions = sample_positions(8000, 1000)
    shares = np.bincount(positions % 8, minlength=8) / 1000
    assert (np.abs(shares - 1 / 8) < 0.04).all()


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_a_midpoint_separates_its_neighbours(a, b):
    below, above = min(a, b), max(a, b)
    middle = float(midpoints(np.array(below), np.array(above)))
    if below < above:
        assert below <= middle < above
