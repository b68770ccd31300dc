"""The engines at the level of the protocol: same codes, sums, splits and weights, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.cpu import weights
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.protocol import (
    ABSTAIN,
    CONFIDENCE,
    GENTLE,
    LEFT,
    MAJORITY,
    RIGHT,
    Criterion,
    Layout,
    code_width,
)
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from tests.places import DEVICE, Place


@dataclass(frozen=True)
class Problem:
    """Codes to be, rows by class, weights: everything that an engine is given."""

    X: np.ndarray
    layout: Layout
    log_weights: np.ndarray | None
    edges: list[np.ndarray]
    log_tables: np.ndarray
    used: np.ndarray
    seed: int

    @property
    def rows(self) -> np.ndarray:
        return np.arange(self.layout.n_rows)

    @property
    def width(self) -> int:
        return code_width(self.edges)


def make_problem(
    seed: int, variant: str, n_classes: int, p: int, n: int, bins: int, weighted: bool
) -> Problem:
    rng = np.random.default_rng(seed)
    sizes = rng.multinomial(n - n_classes, np.full(n_classes, 1 / n_classes)) + 1
    layout = Layout(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        rule_for(variant, n_classes).group_of,
    )
    X = rng.integers(0, bins, size=(n, p)).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    edges = [np.arange(0.5, max(1, bins - rng.integers(3)) - 1) for _ in range(p)]
    log_weights = rng.integers(-5 << 30, 5 << 30, size=n) if weighted else None
    width = code_width(edges)
    log_tables = rng.integers(-3 << 30, 3 << 30, size=(layout.n_groups, p, width))
    used = np.flatnonzero(rng.random(p) < 0.6)
    log_tables[:, np.setdiff1d(np.arange(p), used)] = 0  # no stump, no factor
    return Problem(X, layout, log_weights, edges, log_tables, used, seed)


problems = st.builds(
    make_problem,
    seed=st.integers(0, 10_000),
    variant=st.sampled_from(["real", "discrete"]),
    n_classes=st.integers(2, 5),
    p=st.integers(1, 19),
    n=st.integers(8, 80),
    bins=st.integers(2, 12),
    weighted=st.booleans(),
)


class Running:
    """One engine on one problem; results as host arrays in the order of the protocol."""

    def __init__(self, engine: Any, problem: Problem, place: Place | None = None) -> None:
        put = place.put if place else (lambda array: array)
        self.host = place.host if place else np.asarray
        self.problem = problem
        self.codes = engine.encode(put(problem.X), problem.edges, put(problem.rows), problem.layout)
        self.histograms = engine.histograms(self.codes, problem.layout, put(problem.log_weights))

    def requantise(self) -> np.ndarray:
        return self.histograms.requantise(self.problem.log_tables, self.problem.used)

    @property
    def q(self) -> np.ndarray:
        return np.stack([self.host(q) for q in self.histograms.q])

    @property
    def sums(self) -> np.ndarray:
        """[group, feature, code]."""
        return self.histograms.add_up()


def cpu(problem: Problem, threads: int = 1) -> Running:
    return Running(CpuEngine(threads), problem)


def reference(problem: Problem) -> Running:
    return Running(ReferenceEngine(locate(problem.X)), problem)


def naive_codes(problem: Problem) -> np.ndarray:
    codes = np.empty(problem.X.shape, dtype=np.int64)
    for i, row in enumerate(problem.X):
        for f, x in enumerate(row):
            missing = np.isnan(x)
            codes[i, f] = problem.width - 1 if missing else sum(e < x for e in problem.edges[f])
    return codes


def naive_sums(problem: Problem, q: np.ndarray) -> np.ndarray:
    codes = naive_codes(problem)
    layout = problem.layout
    sums = np.zeros((layout.n_groups, problem.X.shape[1], problem.width), dtype=np.int64)
    for c in range(layout.n_classes):
        for i in range(layout.starts[c], layout.starts[c + 1]):
            for k in range(layout.n_planes):
                for f in range(problem.X.shape[1]):
                    sums[layout.group_of[k, c], f, codes[i, f]] += q[k, i]
    return sums


def criterion(problem: Problem, kind: int, learn: bool, scale: np.ndarray) -> Criterion:
    counts = np.array([len(e) for e in problem.edges], dtype=np.int64)
    chance = {CONFIDENCE: 0.5, GENTLE: 0.25, MAJORITY: 0.5}[kind]
    return Criterion(kind, chance * scale, learn, counts)


def kinds_of(problem: Problem) -> list[int]:
    paired = problem.layout.n_groups == 2 * problem.layout.n_planes
    return [CONFIDENCE, GENTLE, MAJORITY] if paired else [MAJORITY]


def assert_same_split(a: Any, b: Any) -> None:
    assert (a is None) == (b is None)
    if a is None:
        return
    assert (a.score, a.feature, a.bin, a.missing_leaf) == (
        b.score,
        b.feature,
        b.bin,
        b.missing_leaf,
    )
    np.testing.assert_array_equal(a.sums, b.sums)


@given(problems)
def test_codes_and_counts_equal_the_naive_definition(problem):
    truth = naive_codes(problem)
    for running in (cpu(problem), reference(problem)):
        data = running.codes.data
        if isinstance(data, tuple):
            found = np.asarray(data[0]).T
        else:
            found = data.transpose(1, 0, 2).reshape(len(truth), -1)[:, : truth.shape[1]]
        np.testing.assert_array_equal(found, truth)
        for c in range(problem.layout.n_classes):
            rows = truth[problem.layout.starts[c] : problem.layout.starts[c + 1]]
            for f in range(truth.shape[1]):
                expected = np.bincount(rows[:, f], minlength=problem.width)
                np.testing.assert_array_equal(running.codes.counts[c, f], expected)


@given(problems)
def test_histograms_after_requantise_equal_the_naive_sums(problem):
    a, b = cpu(problem), reference(problem)
    np.testing.assert_array_equal(a.requantise(), b.requantise())
    np.testing.assert_array_equal(a.q, b.q)
    truth = naive_sums(problem, a.q)
    np.testing.assert_array_equal(a.sums, truth)
    np.testing.assert_array_equal(b.sums, truth)


@given(problems)
def test_requantise_gives_the_power_of_the_sum_of_logs(problem):
    running = cpu(problem)
    exponent = running.requantise()
    codes, layout = naive_codes(problem), problem.layout
    for c in range(layout.n_classes):
        for k in range(layout.n_planes):
            g = layout.group_of[k, c]
            for i in range(layout.starts[c], layout.starts[c + 1]):
                fixed = 0 if problem.log_weights is None else int(problem.log_weights[i])
                fixed += sum(int(problem.log_tables[g, f, codes[i, f]]) for f in problem.used)
                power = fixed / 2**30 - int(exponent[g]) + fixedpoint.QUANTUM_BITS
                assert running.q[k, i] == pytest.approx(2.0**power, rel=1e-12, abs=0.51)


@given(problems)
def test_the_heaviest_row_of_a_group_uses_the_whole_quantum(problem):
    running = cpu(problem)
    running.requantise()
    layout = problem.layout
    for g in range(layout.n_groups):
        rows = [
            running.q[k, layout.starts[c] : layout.starts[c + 1]].max()
            for k in range(layout.n_planes)
            for c in range(layout.n_classes)
            if layout.group_of[k, c] == g
        ]
        assert 2 ** (fixedpoint.QUANTUM_BITS - 1) <= max(rows) <= 2**fixedpoint.QUANTUM_BITS


@given(problems, st.booleans())
def test_splits_of_the_cpu_engine_equal_the_reference(problem, learn):
    a, b = cpu(problem), reference(problem)
    a.requantise()
    b.requantise()
    scale = np.random.default_rng(problem.seed).uniform(0.1, 1.0, size=problem.layout.n_groups)
    for kind in kinds_of(problem):
        rule = criterion(problem, kind, learn, scale)
        found, expected = a.histograms.split(scale, rule), b.histograms.split(scale, rule)
        assert_same_split(found, expected)
        if found is None:  # no feature has an edge
            assert not any(len(e) for e in problem.edges)
            continue
        np.testing.assert_array_equal(found.largest, expected.largest)
        np.testing.assert_array_equal(found.sums.sum(axis=1), a.sums[:, 0].sum(axis=1))


@pytest.mark.slow
@given(problems, st.data())
def test_rescale_multiplies_the_touched_rows_and_keeps_the_sums_in_step(problem, data):
    a, b = cpu(problem), reference(problem)
    a.requantise()
    b.requantise()
    before = a.q.copy()
    rng = np.random.default_rng(problem.seed)
    feature = data.draw(st.integers(0, problem.X.shape[1] - 1))
    last_bin = data.draw(st.integers(0, problem.width - 2))
    kept = data.draw(st.sampled_from([LEFT, RIGHT]))
    leaf_of = np.where(np.arange(problem.width) <= last_bin, LEFT, RIGHT)
    leaf_of[-1] = data.draw(st.sampled_from([LEFT, RIGHT, ABSTAIN]))
    assume((leaf_of != kept).any())
    ratio = rng.uniform(0.0, 3.0, size=(problem.layout.n_groups, 3))
    for running in (a, b):
        running.histograms.rescale(feature, leaf_of, ratio, kept)
    np.testing.assert_array_equal(a.q, b.q)
    np.testing.assert_array_equal(a.sums, b.sums)
    np.testing.assert_array_equal(a.sums, naive_sums(problem, a.q))
    codes, layout = naive_codes(problem)[:, feature], problem.layout
    for c in range(layout.n_classes):
        rows = slice(layout.starts[c], layout.starts[c + 1])
        leaf = leaf_of[codes[rows]]
        for k in range(layout.n_planes):
            factor = np.where(leaf == kept, 1.0, ratio[layout.group_of[k, c], leaf])
            np.testing.assert_array_equal(a.q[k, rows], np.rint(before[k, rows] * factor))


@pytest.mark.parametrize("make", [cpu, reference])
def test_rescale_changes_nothing_where_every_row_is_in_the_kept_leaf(make):
    running = make(make_problem(0, "real", 2, 1, 8, 2, weighted=False))
    running.requantise()
    before, sums = running.q.copy(), running.sums.copy()
    leaf_of = np.full(running.problem.width, LEFT)
    running.histograms.rescale(0, leaf_of, np.array([[1.0, 2.0, 3.0]] * 2), LEFT)
    np.testing.assert_array_equal(running.q, before)
    np.testing.assert_array_equal(running.sums, sums)


@settings(max_examples=12)
@given(problems, st.sampled_from([2, 4, 7]), st.booleans())
def test_any_number_of_threads_gives_the_serial_results(problem, threads, learn):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "CELLS_PER_THREAD", 0)  # threads even for small data
        patch.setattr(weights, "PART_ROWS", 5)
        many = cpu(problem, threads)
        assert many.histograms.run.threads == threads
        alone = cpu(problem)
        np.testing.assert_array_equal(alone.requantise(), many.requantise())
        np.testing.assert_array_equal(alone.q, many.q)
        np.testing.assert_array_equal(alone.sums, many.sums)
        scale = np.ones(problem.layout.n_groups)
        rule = criterion(problem, kinds_of(problem)[0], learn, scale)
        assert_same_split(alone.histograms.split(scale, rule), many.histograms.split(scale, rule))
        leaf_of = np.where(np.arange(problem.width) <= 0, LEFT, RIGHT)
        leaf_of[-1] = ABSTAIN
        ratio = np.random.default_rng(problem.seed).uniform(0.0, 2.0, (problem.layout.n_groups, 3))
        for running in (alone, many):
            running.histograms.rescale(0, leaf_of, ratio, LEFT)
        np.testing.assert_array_equal(alone.q, many.q)
        np.testing.assert_array_equal(alone.sums, many.sums)


@pytest.mark.parametrize("p", [1, 8, 9])
@pytest.mark.parametrize("threads", [2, 4])
def test_threads_that_share_a_tile_spill_into_the_right_sums(p, threads):
    problem = make_problem(3, "real", 3, p, 100_000, 40, weighted=True)
    alone, many = cpu(problem), cpu(problem, threads)
    assert many.histograms.run.threads == threads
    alone.requantise()
    many.requantise()
    np.testing.assert_array_equal(alone.sums, many.sums)
    leaf_of = np.where(np.arange(problem.width) <= 17, LEFT, RIGHT)
    ratio = np.random.default_rng(0).uniform(0.0, 2.0, (problem.layout.n_groups, 3))
    for running in (alone, many):
        running.histograms.rescale(p - 1, leaf_of, ratio, RIGHT)
    np.testing.assert_array_equal(alone.sums, many.sums)
    np.testing.assert_array_equal(alone.q, many.q)


@pytest.mark.parametrize("bins", [256, 257, 3000])
def test_codes_wider_than_a_byte_give_the_reference_results(bins):
    problem = make_problem(5, "real", 2, 3, 4000, bins, weighted=True)
    a, b = cpu(problem), reference(problem)
    assert a.codes.data.dtype == np.uint16
    np.testing.assert_array_equal(a.requantise(), b.requantise())
    np.testing.assert_array_equal(a.sums, b.sums)
    scale = np.array([0.7, 1.0])
    rule = criterion(problem, CONFIDENCE, True, scale)
    assert_same_split(a.histograms.split(scale, rule), b.histograms.split(scale, rule))


def test_up_to_255_bins_take_a_byte_a_cell():
    problem = make_problem(5, "real", 2, 3, 4000, 255, weighted=False)
    assert cpu(problem).codes.data.dtype == np.uint8


def test_the_reference_engine_on_a_device_gives_the_same_sums():
    place = DEVICE
    problem = make_problem(6, "real", 4, 5, 200, 9, weighted=True)
    there = Running(ReferenceEngine(locate(place.put(problem.X))), problem, place)
    here = cpu(problem)
    np.testing.assert_array_equal(there.requantise(), here.requantise())
    np.testing.assert_array_equal(there.sums, here.sums)
    scale = np.linspace(0.5, 1.0, problem.layout.n_groups)
    rule = criterion(problem, GENTLE, True, scale)
    assert_same_split(there.histograms.split(scale, rule), here.histograms.split(scale, rule))


@pytest.mark.parametrize("make", [cpu, reference])
def test_a_row_that_fell_to_zero_comes_back_after_requantise(make):
    problem = make_problem(7, "real", 2, 2, 40, 4, weighted=False)
    running = make(problem)
    nothing, none = np.zeros_like(problem.log_tables), np.zeros(0, dtype=np.int64)
    running.histograms.requantise(nothing, none)
    fresh = running.q.copy()
    leaf_of = np.array([LEFT, LEFT] + [RIGHT] * (problem.width - 2))
    down, up = np.ones((2, 3)), np.ones((2, 3))
    down[:, LEFT], up[:, LEFT] = 2.0**-40, 2.0**40
    running.histograms.rescale(0, leaf_of, down, RIGHT)
    running.histograms.rescale(0, leaf_of, up, RIGHT)
    lost = running.q == 0
    assert lost.any()
    running.histograms.requantise(nothing, none)
    np.testing.assert_array_equal(running.q, fresh)
    assert (running.q[lost] > 0).all()


@pytest.mark.parametrize("make", [cpu, reference])
def test_nothing_to_split_is_no_split(make):
    problem = make_problem(8, "real", 2, 2, 20, 1, weighted=False)
    running = make(problem)
    running.requantise()
    scale = np.ones(2)
    rule = Criterion(CONFIDENCE, 0.5 * scale, False, np.zeros(2, dtype=np.int64))
    assert running.histograms.split(scale, rule) is None


@pytest.mark.parametrize("make", [cpu, reference])
def test_ties_go_to_the_lowest_feature_then_the_lowest_bin(make):
    column = np.array([0.0, 1.0, 2.0, 3.0] * 4)[:, None]
    # Class 0 and class 1 are symmetric about the middle: bins 0 and 2 tie, on both features.
    X = np.concatenate([np.full((16, 1), 5.0), column, column], axis=1)
    layout = Layout(np.array([0, 8, 16]), rule_for("real", 2).group_of)
    X[:8, 1:] = np.array([0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0])[:, None]
    X[8:, 1:] = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 3.0, 3.0])[:, None]
    edges = [np.zeros(0), np.array([0.5, 1.5, 2.5]), np.array([0.5, 1.5, 2.5])]
    problem = Problem(X, layout, None, edges, np.zeros((2, 3, 5), np.int64), np.zeros(0, int), 0)
    running = make(problem)
    running.requantise()
    split = running.histograms.split(np.ones(2), criterion(problem, CONFIDENCE, False, np.ones(2)))
    assert (split.feature, split.bin) == (1, 0)
