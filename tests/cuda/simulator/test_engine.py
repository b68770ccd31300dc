"""Every kernel against the CPU engine and the reference engine, bit for bit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.kernels.cuda import histogram
from ensemble_gpu.kernels.cuda.launch import LaunchPlan
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT, Codes, Layout
from ensemble_gpu.kernels.tables import PackedTables
from tests.cuda.simulator.problems import (
    assert_equal_states,
    criterion,
    cuda_engine,
    engines,
    log_tables,
    prepare,
    problem,
    scale,
    state,
)

PLANS = [
    LaunchPlan(threads=1, blocks=1, part_rows=1000, feature_threads=1, feature_blocks=1),
    LaunchPlan(threads=8, blocks=3, part_rows=7, feature_threads=2, feature_blocks=5),
    LaunchPlan(threads=2, blocks=9, part_rows=1, feature_threads=32, feature_blocks=1),
]
CASES: list[Any] = [
    {"variant": "real"},
    {"variant": "gentle", "weighted": True},
    {"variant": "discrete", "missing": 0.0},
    {"variant": "real", "n_classes": 5, "weighted": True},
    pytest.param({"variant": "gentle", "n_classes": 7, "p": 2}, marks=pytest.mark.long),
    {"variant": "discrete", "n_classes": 7},
    {"missing": 1.0},
    {"n": 2, "missing": 0.0},
    {"p": 1, "n": 33},
    {"p": 35, "n": 12, "bins": 3},  # five tiles: two passes over the rows
    {"n": 300, "p": 2, "bins": 290, "missing": 0.1},  # codes of 16 bits
]


def split_of(histograms: Any, groups: int, wanted: Any) -> Any:
    """A split as plain values."""
    split = histograms.split(scale(groups), wanted)
    if split is None:
        return None
    return [np.asarray(v).tolist() for v in split]


def sums_by_class(histograms: Any, codes: Codes) -> np.ndarray:
    """Sums [class, feature, code] of two classes: class 0 is the negative group."""
    now = state(cuda_engine(), codes, histograms)
    assert now is not None
    return now.sums[[1, 0]]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_weights_sums_and_splits_are_those_of_the_other_engines(case: dict[str, Any]) -> None:
    given = problem(**case)
    rng = np.random.default_rng(3)
    groups = given.layout.n_groups
    ratio = rng.uniform(0.3, 1.6, size=(groups, 3))
    found = []
    for engine in engines():
        codes, histograms = prepare(engine, given)
        exponents = histograms.requantise(*log_tables(given, codes)).tolist()
        fresh = state(engine, codes, histograms)
        sides = [criterion(given, codes, learn) for learn in (False, True)]
        splits = [split_of(histograms, groups, side) for side in sides]
        leaf_of = np.full(codes.width, RIGHT)
        leaf_of[:2] = LEFT
        leaf_of[-1] = ABSTAIN
        histograms.rescale(codes.n_features - 1, leaf_of, ratio, RIGHT)
        histograms.rescale(0, leaf_of, 1.0 / ratio, LEFT)
        splits.append(split_of(histograms, groups, criterion(given, codes, True)))
        found.append((exponents, codes.counts, splits, fresh, state(engine, codes, histograms)))
    for other in found[1:]:
        assert found[0][0] == other[0]
        np.testing.assert_array_equal(found[0][1], other[1])
        assert found[0][2] == other[2]
    assert_equal_states([f[3] for f in found])
    assert_equal_states([f[4] for f in found])


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.threads}x{plan.blocks}")
def test_launch_shape_changes_nothing(plan: LaunchPlan) -> None:
    given = problem(n=25, p=9, n_classes=3)
    states, splits = [], []
    for engine in engines(plan):
        codes, histograms = prepare(engine, given)
        histograms.requantise(*log_tables(given, codes))
        leaf_of = np.repeat([LEFT, RIGHT], [2, codes.width - 2])
        ratio = np.linspace(0.5, 1.5, 18).reshape(6, 3)
        histograms.rescale(8, leaf_of, ratio, LEFT)
        splits.append(split_of(histograms, 6, criterion(given, codes, True)))
        states.append(state(engine, codes, histograms))
    assert splits[0] == splits[1] == splits[2]
    assert_equal_states(states)


@pytest.mark.parametrize("layout", ["C", "F", "A"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [5, 280])
def test_codes_do_not_depend_on_dtype_or_strides(layout: str, dtype: Any, bins: int) -> None:
    given = problem(n=290 if bins > 255 else 30, p=2, bins=bins)
    X = np.asarray(given.X, dtype=dtype, order="F" if layout == "F" else "C")
    if layout == "A":
        X = np.repeat(X, 2, axis=1)[::-1][::-1, ::2]
    engine = cuda_engine()
    codes = engine.encode(X, given.edges, given.rows, given.layout)
    lanes = histogram.lanes_of(codes.width)
    unpacked = codes.data.view(np.uint8 if lanes == 8 else np.uint16)
    as_lanes = unpacked.reshape(-1, len(given.X), lanes)
    expected = [
        np.where(np.isnan(x), codes.width - 1, np.searchsorted(e, x))
        for x, e in zip(given.X[given.rows].T, given.edges, strict=True)
    ]
    np.testing.assert_array_equal(as_lanes[0, :, :2].T, expected)


@pytest.mark.parametrize("bins", [5, 300])
def test_taken_codes_are_those_of_the_rows(bins: int) -> None:
    rng = np.random.default_rng(3)
    X, rows = rng.normal(size=(40, 10)), rng.permutation(40)[:23]
    edges = [np.sort(rng.normal(size=bins if f == 0 else 4)) for f in range(10)]
    one = Layout(np.array([0, 40]), np.zeros((1, 1), dtype=np.int64))
    two = Layout(np.array([0, 9, 23]), np.zeros((1, 2), dtype=np.int64))
    engine = cuda_engine()
    every = engine.encode(X, edges, np.arange(40), one)
    taken, made = engine.take(every, rows, two), engine.encode(X, edges, rows, two)
    np.testing.assert_array_equal(taken.counts, made.counts)
    for f in range(10):
        found, expected = (np.asarray(engine.column(codes, f)) for codes in (taken, made))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("bins", [3, 260])
@pytest.mark.parametrize("factor", [0.0, 0.5, 1e-9])
def test_no_sum_overflows_at_the_largest_q(bins: int, factor: float) -> None:
    """q = 2^31 - 1 in every row, all rows of a feature in one cell: the worst that can come."""
    given = problem(n=270 if bins > 255 else 60, p=2, bins=bins, missing=0.0)
    given.X[:, 0] = 1.0
    given = replace(given, edges=[np.zeros(0), given.edges[1]])
    codes, histograms = prepare(cuda_engine(), given)
    largest = 2**31 - 1
    histograms.rows.q[...] = largest
    histograms.rows.build()
    np.testing.assert_array_equal(sums_by_class(histograms, codes), codes.counts * largest)
    kept = np.full(codes.width, LEFT)
    histograms.rescale(0, kept, np.full((2, 3), factor), RIGHT)
    expected = codes.counts * round(largest * factor)
    np.testing.assert_array_equal(sums_by_class(histograms, codes), expected)
    assert histograms.largest.max() == round(largest * factor)


def test_rows_that_round_up_and_down_in_one_cell_add_up() -> None:
    """Two touched leaves with ratios on both sides of one: differences of both signs."""
    given = problem(n=64, p=1, missing=0.5, bins=3)
    found = []
    for engine in engines():
        codes, histograms = prepare(engine, given)
        histograms.requantise(*log_tables(given, codes))
        leaf_of = np.array([LEFT] * (codes.width - 2) + [RIGHT, ABSTAIN])
        ratio = np.array([[1.9, 1.0, 0.1], [0.2, 1.0, 1.7]])
        for _ in range(2):
            histograms.rescale(0, leaf_of, ratio, RIGHT)
            ratio = 1.0 / ratio
        found.append(state(engine, codes, histograms))
    assert_equal_states(found)


def test_all_rows_in_the_kept_leaf_change_nothing() -> None:
    given = problem()
    engine = cuda_engine()
    codes, histograms = prepare(engine, given)
    histograms.requantise(*log_tables(given, codes))
    before = state(engine, codes, histograms)
    histograms.rescale(1, np.full(codes.width, LEFT), np.full((2, 3), 7.0), LEFT)
    assert_equal_states([before, state(engine, codes, histograms)])


def test_no_threshold_means_no_split() -> None:
    given = problem(missing=0.0)
    codes, histograms = prepare(cuda_engine(), given)
    histograms.requantise(*log_tables(given, codes))
    wanted = replace(criterion(given, codes, False), n_thresholds=np.zeros(3, dtype=np.int64))
    assert histograms.split(scale(2), wanted) is None


def test_of_tied_features_and_bins_the_first_wins() -> None:
    """Four equal columns: every split ties with itself three times over."""
    given = problem(n=40, p=1, missing=0.0)
    given = replace(given, X=np.repeat(given.X, 4, axis=1), edges=given.edges * 4)
    codes, histograms = prepare(cuda_engine(), given)
    histograms.requantise(*log_tables(given, codes))
    split = histograms.split(scale(2), criterion(given, codes, True))
    assert split.feature == 0
    assert split.missing_leaf == LEFT


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_evaluation_is_that_of_the_other_engines(outputs: int, order: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.asarray(rng.normal(size=(23, 4)), order=order)
    X[rng.random(X.shape) < 0.2] = np.nan
    thresholds = np.concatenate(
        [np.sort(rng.normal(size=7)), [np.inf], rng.normal(size=1), [np.inf]]
    )
    tables = PackedTables(
        np.array([2, 0]), np.array([0, 8]), np.array([3, 1]), thresholds,
        rng.normal(size=(10, outputs)), rng.normal(size=(2, outputs)), rng.normal(size=outputs),
    )  # fmt: skip
    results = [engine.evaluate(X, tables) for engine in engines()]
    assert results[0].dtype == np.float64
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_a_model_without_tables_is_its_intercept() -> None:
    none = np.zeros(0, dtype=np.int64)
    tables = PackedTables(none, none, none, np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2)),
                          np.array([1.5, -2.0]))  # fmt: skip
    out = cuda_engine().evaluate(np.zeros((3, 2)), tables)
    np.testing.assert_array_equal(out, [[1.5, -2.0]] * 3)


@pytest.mark.parametrize("blocks", [1, 4, 12])
def test_parts_cover_every_row_once_and_stay_within_a_class(blocks: int) -> None:
    starts = np.array([0, 5, 6, 40])
    parts = histogram.class_parts(starts, blocks, part_rows=3)
    assert np.concatenate([np.arange(a, b) for _, a, b in parts]).tolist() == list(range(40))
    assert len(parts) <= max(blocks, 3)
    for c, start, stop in parts:
        assert starts[c] <= start < stop <= starts[c + 1]


def test_too_many_rows_are_refused() -> None:
    layout = Layout(np.array([0, 2**31]), np.array([[0]]))
    rows = np.broadcast_to(np.int64(0), (2**31,))
    with pytest.raises(ValueError, match="at most 2146435072 rows"):
        cuda_engine().encode(np.zeros((1, 1)), [np.zeros(0)], rows, layout)


def test_more_bins_than_16_bits_hold_are_refused() -> None:
    edges = np.arange(2.0**16)
    with pytest.raises(ValueError, match="at most 65535 bins a feature; got 65537"):
        cuda_engine().encode(np.zeros((1, 1)), [edges], np.zeros(1, dtype=np.int64), None)


@pytest.mark.parametrize("threads", [0, 3, 1024])
def test_a_launch_plan_takes_powers_of_two_only(threads: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        LaunchPlan(threads, 1, 1, 1, 1)


def test_launching_leaves_the_warning_filters_alone() -> None:
    before = list(warnings.filters)
    prepare(cuda_engine(), problem(n=4, p=1))
    assert list(warnings.filters) == before
