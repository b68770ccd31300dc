"""Evaluation of an additive model on the CPU: one search and one look-up per feature a row."""

from __future__ import annotations

import math

import numpy as np

from ensemble_gpu.kernels.cpu.edges import (
    BLOCK_ROWS,
    GUIDED_ROWS,
    IN_ORDER,
    Guides,
    guided_count,
    guides_of,
    load_column,
    no_guides,
)
from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tables import PackedTables


@inner
def _evaluate_block(X, rows, features, guides, values, missing, out, start, stop):
    """out[i] = sum of values[feature, number of thresholds < x] in order of the features."""
    first = guides[1]
    n = stop - start
    x = np.empty(n, dtype=np.float64)
    place = np.empty(n, dtype=np.int32)
    sums = np.empty(n * out.shape[1])
    for k in range(out.shape[1]):
        for i in range(n):
            sums[k * n + i] = 0.0
    for u in range(features.shape[0]):
        own = values[first[u] :]
        absent = load_column(X, rows, features[u], start, x, math.nan)
        guided_count(x, guides, u, place)
        for k in range(out.shape[1]):
            total = sums[k * n : (k + 1) * n]
            if absent:
                for i in range(n):
                    known = own[np.uint32(place[i]), k]
                    total[i] += missing[u, k] if x[i] != x[i] else known
            else:
                for i in range(n):
                    total[i] += own[np.uint32(place[i]), k]
    for k in range(out.shape[1]):
        for i in range(n):
            out[start + i, k] = sums[k * n + i]


@inner
def _evaluate_blocks(worker, block, last_block, X, rows, features, guides, values, missing, out):
    for b in range(block, last_block):
        start, stop = b * BLOCK_ROWS, min(out.shape[0], (b + 1) * BLOCK_ROWS)
        _evaluate_block(X, rows, features, guides, values, missing, out, start, stop)


@kernel
def _evaluate(crew, X, rows, features, guides, values, missing, out):
    n_blocks = (out.shape[0] + BLOCK_ROWS - 1) // BLOCK_ROWS
    given = (X, rows, features, guides, values, missing, out)
    share(crew, n_blocks, _evaluate_blocks, given)


@inner
def _contribute_blocks(worker, block, last_block, X, rows, features, guides, values, missing, out):
    """out[i, feature] = values[feature, number of thresholds < x]."""
    first = guides[1]
    for b in range(block, last_block):
        start, stop = b * BLOCK_ROWS, min(out.shape[0], (b + 1) * BLOCK_ROWS)
        x = np.empty(stop - start, dtype=np.float64)
        place = np.empty(stop - start, dtype=np.int32)
        for u in range(features.shape[0]):
            own, f = values[first[u] :], features[u]
            load_column(X, rows, f, start, x, math.nan)
            guided_count(x, guides, u, place)
            for i in range(x.shape[0]):
                for k in range(out.shape[2]):
                    known = own[np.uint32(place[i]), k]
                    out[start + i, f, k] = missing[u, k] if x[i] != x[i] else known


@kernel
def _contribute(crew, X, rows, features, guides, values, missing, out):
    n_blocks = (out.shape[0] + BLOCK_ROWS - 1) // BLOCK_ROWS
    given = (X, rows, features, guides, values, missing, out)
    share(crew, n_blocks, _contribute_blocks, given)


def _guides(tables: PackedTables, n_rows: int) -> Guides:
    """The guides of a model, made once and kept with it."""
    make = guides_of if n_rows >= GUIDED_ROWS else no_guides
    if make not in tables.layouts:
        tables.layouts[make] = make(tables.thresholds, tables.first, tables.steps)
    return tables.layouts[make]


def evaluate(X: np.ndarray, tables: PackedTables, run: Run) -> np.ndarray:
    """Sum of the tables' values for each row and output; see PackedTables."""
    n = X.shape[0]
    out = np.empty((n, len(tables.intercept)))
    guides = _guides(tables, n)
    features, values, missing = tables.features, tables.values, tables.missing
    run.call(_evaluate, X, IN_ORDER, features, guides, values, missing, out)
    if tables.intercept.any():
        out += tables.intercept
    return out


def contributions(X: np.ndarray, tables: PackedTables, run: Run) -> np.ndarray:
    """The tables' values for each row, feature and output; see PackedTables."""
    n = X.shape[0]
    out = np.zeros((n, X.shape[1], len(tables.intercept)))
    guides = _guides(tables, n)
    features, values, missing = tables.features, tables.values, tables.missing
    run.call(_contribute, X, IN_ORDER, features, guides, values, missing, out)
    return out
