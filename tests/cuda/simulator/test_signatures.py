"""The table of signatures is what the launchers really pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.kernels.cuda import (
    answers,
    binning,
    evaluate,
    histogram,
    requantise,
    rowwise,
    score,
)
from ensemble_gpu.kernels.cuda.engine import CudaEngine
from ensemble_gpu.kernels.cuda.trees import best, partition, splits, sums
from ensemble_gpu.kernels.cuda.trees import evaluate as forests
from ensemble_gpu.kernels.cuda.trees.words import MOST_CELLS
from ensemble_gpu.kernels.protocol import LEFT, RIGHT, Codes, Cut
from ensemble_gpu.kernels.tables import PackedTables
from ensemble_gpu.kernels.tree_protocol import (
    GINI,
    LEAF,
    CodeTree,
    Frontier,
    PackedForest,
    Sample,
    SplitRule,
    Splits,
)
from tests.cuda.signatures import KERNELS, SIGNATURES, Argument, Array
from tests.cuda.simulator.problems import (
    criterion,
    cuda_engine,
    log_tables,
    prepare,
    problem,
    scale,
)

MODULES = (
    answers, best, binning, evaluate, forests, histogram, partition, requantise, rowwise, score,
    splits, sums,
)  # fmt: skip


def argument(value: Any) -> Argument:
    """How the compiler would see an argument of a launch."""
    if isinstance(value, np.generic):
        return value.dtype.name
    layout = "C" if value.is_c_contiguous() else "F" if value.is_f_contiguous() else "A"
    return Array(value.dtype.name, value.ndim, layout)


def users_matrices(X: np.ndarray) -> list[np.ndarray]:
    return [
        x.astype(dtype, order="K")
        for dtype in (np.float32, np.float64)
        for x in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2])
    ]


LEAF_ONLY = PackedForest(
    np.zeros(1, dtype=np.int64), np.full(1, LEAF), np.zeros(1), np.zeros(1, dtype=bool),
    np.full(1, LEAF), np.full(1, LEAF), np.full(1, LEAF), np.zeros((0, 0), dtype=np.uint64),
    np.zeros((1, 2)), 1.0, np.zeros(2),
)  # fmt: skip


def grow(engine: CudaEngine, codes: Codes) -> None:
    """Every launch of a tree: few and many sums of a feature, small and large nodes, categories."""
    n, p = codes.n_rows, codes.n_features
    for n_stats in (2, MOST_CELLS // codes.width, MOST_CELLS):
        for random in (False, True):
            categorical, signs = np.zeros(p, dtype=bool), np.arange(p) % 2
            rule = SplitRule(GINI, 1, signs, categorical, False, random)
            label, weights = np.zeros(n, dtype=np.int64), np.ones((n, 1), dtype=np.int64)
            grower = engine.grower(codes, Sample(None, label, weights, n_stats, label), rule)
            grower.total()
            root = np.zeros(1, dtype=np.int64)
            for tried in (None, np.zeros((1, 1), dtype=np.int64)):
                grower.split(frontier(root, n_stats, tried))
            for words in (0, 1):
                grower.rows.is_leaf[:] = True
                grower.partition(root, replace(Splits.none(1, n_stats, words), feature=root))
            # nothing has been moved: say that the left child is small
            grower.rows.start[2:], grower.rows.stop[1:] = [2, 2, 2], [2, n, n, n]
            grower.pure(root)
            grower.nodes()
            grower.split(frontier(np.array([1, 2]), n_stats, None))
    tree = CodeTree(*(np.zeros(1, dtype=np.int64) for _ in range(5)), np.zeros((1, 0)))
    engine.leaves(codes, tree)
    engine.leaves(codes, replace(tree, subset=np.zeros((1, 1), dtype=np.uint64)))


def frontier(nodes: np.ndarray, n_stats: int, features: np.ndarray | None) -> Frontier:
    n = len(nodes)
    sums, keys = np.ones((n, n_stats), dtype=np.int64), np.zeros(n, dtype=np.uint64)
    return Frontier(nodes, sums, features, np.zeros((n, 2)), keys)


@pytest.mark.parametrize("bins", [5, 260])
def test_every_launch_has_a_signature_of_the_table(
    bins: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: dict[str, set[tuple[Argument, ...]]] = {}
    names = {id(kernel): name for name, kernel in KERNELS.items()}

    def record(kernel: Any, grid: int, block: int, stream: Any, *args: Any) -> None:
        launched.setdefault(names[id(kernel)], set()).add(tuple(argument(a) for a in args))

    for module in MODULES:
        monkeypatch.setattr(module, "launch", record)
    given = problem(n=300, bins=bins, weighted=bins > 255, missing=0.02)
    tables = PackedTables(
        np.array([0]), np.array([0]), np.array([1]), np.zeros(2), np.zeros((2, 1)),
        np.zeros((1, 1)), np.zeros(1),
    )  # fmt: skip
    for X in users_matrices(given.X):
        engine = cuda_engine()
        engine.encode(X, given.edges, given.rows, given.layout)
        engine.evaluate(X, tables)
    strided = np.zeros((300, 6), dtype=np.float32)[:, ::2]
    engine.encode(strided, given.edges, given.rows, given.layout)
    codes, histograms = prepare(engine, given)
    histograms.requantise(*log_tables(given, codes))
    histograms.split(scale(2), criterion(given, codes, True))
    leaf_of = np.repeat([LEFT, RIGHT], [1, codes.width - 1])
    histograms.rescale(1, leaf_of, np.ones((2, 3)), LEFT)
    for weights in (None, np.ones(300, dtype=np.int64)):
        engine.pair_counts(codes, 1, weights)
    for planes in (1, 3):
        for F in (np.ones((planes, 300)), np.ones((300, planes)).T):
            column = engine.column(codes, 0)
            engine.move(F, column, Cut(1, codes.width - 1, LEFT), np.ones((planes, 3)))
            packed = engine.pack(F, F, 1.0, 1.0)
            engine.sums(codes, packed)
            engine.pair_sums(codes, packed)
            for x in (F, F.T, F[0], F[:, ::2], F.astype(np.float32)):
                engine.exp(x)

    signs = np.sign(np.arange(70) % 3 - 1).astype(np.int8)
    for q in (np.ones((1, 70), dtype=np.int32), -np.ones((2, 70), dtype=np.int64)):
        engine.answer_sums(engine.pack_answers([np.stack([signs, -signs], axis=1)], 70), q)

    grow(engine, codes)
    for X in users_matrices(given.X):
        engine.evaluate_forest(X, LEAF_ONLY)
        engine.apply_forest(X, LEAF_ONLY)

    wide = bins > 255
    assert set(launched) == {n for n in KERNELS if n.removesuffix("_wide") + "_wide" not in KERNELS
                             or n.endswith("_wide") == wide}  # fmt: skip
    for name, signatures in launched.items():
        assert signatures <= set(SIGNATURES[name]), name


def test_every_kernel_is_in_the_table() -> None:
    kernels = {
        name
        for module in MODULES
        for name, value in vars(module).items()
        if type(value) is type(histogram.build) and not value._device
    }
    assert kernels == set(KERNELS) == set(SIGNATURES)
