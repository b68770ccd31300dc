"""Weights of the pairs that a stump orders right and wrong, for every threshold, query by query.

Rows of a query pass from right to left in order of their codes, and each code where some pass
costs a walk up the levels (kernels/host/levels.py: `ordered_pairs`). Threads share queries; their
sums are integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.layouts import by_column
from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.host.levels import ordered_pairs
from ensemble_gpu.kernels.jit import inner, kernel


@inner
def _orders_of(worker, start, stop, columns, row_starts, out):
    n = row_starts.shape[0] - 1
    for unit in range(start, stop):
        f, q = unit // n, unit % n
        a, b = row_starts[q], row_starts[q + 1]
        out[f, a:b] = np.argsort(columns[f, a:b], kind="mergesort")


@kernel
def code_orders(crew, columns, row_starts, out):
    """out[feature, row]: the rows of each query in order of their codes, as positions in it."""
    n = columns.shape[0] * (row_starts.shape[0] - 1)
    share(crew, n, _orders_of, (columns, row_starts, out))


@inner
def _side(q, s0, s1, weights, codes, order, segment, missing_left, missing, up, down, out):
    """Adds to out[0] and out[1] what changes at each code in the weights of pairs of query q."""
    starts = weights.starts
    r0, n = starts[s0], starts[s1] - starts[s0]
    for k in range(s1 - s0):
        up[k] = 0
        down[k] = 0
    right = wrong = np.int64(0)
    end = n
    while end > 0 and codes[order[end - 1]] == missing:
        end -= 1
    if missing_left and end < n:
        for t in range(end, n):
            i = r0 + order[t]
            up[segment[i] - s0] += weights.up[i]
            down[segment[i] - s0] += weights.down[i]
        plus, minus = ordered_pairs(
            s0, s1, weights.ups, weights.downs, up, down, weights.enter, weights.rise
        )
        right = np.int64(np.rint(plus * weights.scale[q]))
        wrong = np.int64(np.rint(minus * weights.scale[q]))
        out[0, 0] += right
        out[1, 0] += wrong
    t = 0
    while t < end:
        code = codes[order[t]]
        while t < end and codes[order[t]] == code:
            i = r0 + order[t]
            up[segment[i] - s0] += weights.up[i]
            down[segment[i] - s0] += weights.down[i]
            t += 1
        plus, minus = ordered_pairs(
            s0, s1, weights.ups, weights.downs, up, down, weights.enter, weights.rise
        )
        now = np.int64(np.rint(plus * weights.scale[q]))
        out[0, code] += now - right
        right = now
        now = np.int64(np.rint(minus * weights.scale[q]))
        out[1, code] += now - wrong
        wrong = now


class WeightArrays(NamedTuple):
    """A `PairWeights`."""

    starts: np.ndarray
    first: np.ndarray
    up: np.ndarray
    down: np.ndarray
    ups: np.ndarray
    downs: np.ndarray
    enter: np.ndarray
    rise: np.ndarray
    scale: np.ndarray


@inner
def _thresholds_of(worker, start, stop, weights, segment, most, columns, orders, has_missing, out):
    first = weights.first
    up, down = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    missing = out.shape[4] - 1
    for q in range(start, stop):
        s0, s1 = first[q], first[q + 1]
        a, b = weights.starts[s0], weights.starts[s1]
        for f in range(columns.shape[0]):
            codes, order = columns[f, a:b], orders[f, a:b]
            for side in range(1, -1, -1):
                if side == 1 or has_missing[f]:
                    _side(
                        q, s0, s1, weights, codes, order, segment, side == 0, missing, up, down,
                        out[worker, f, side],
                    )  # fmt: skip


@kernel
def threshold_weights(crew, weights, segment, most, columns, orders, has_missing, out):
    """out[worker, feature, side, right or wrong, code] changes of the weights of ordered pairs."""
    n = weights.first.shape[0] - 1
    share(
        crew, n, _thresholds_of,
        (weights, segment, most, columns, orders, has_missing, out),
    )  # fmt: skip


def ordered_weights(weights: Any, codes: Any, has_missing: np.ndarray, run: Any) -> np.ndarray:
    """`Engine.ordered_weights`: the orders of the rows by code are made once."""
    queries, columns = weights.queries, by_column(codes)
    if "query orders" not in codes.columns:
        longest = int(np.diff(queries.row_starts).max())
        kind = np.uint16 if longest <= 1 << 16 else np.uint32
        orders = np.empty(columns.shape, dtype=kind)
        run.call(code_orders, columns, queries.row_starts, orders)
        codes.columns["query orders"] = orders
    arrays = WeightArrays(
        queries.starts, queries.first, weights.up, weights.down, weights.ups, weights.downs,
        weights.enter, weights.rise, weights.scale,
    )  # fmt: skip
    shape = (run.threads, codes.n_features, 2, 2, codes.width)
    out = np.zeros(shape, dtype=np.int64)
    most = int(np.diff(queries.first).max())
    run.call(
        threshold_weights, arrays, queries.segment, most, columns, codes.columns["query orders"],
        has_missing, out,
    )  # fmt: skip
    total = np.cumsum(out.sum(axis=0), axis=-1)[..., :-1]
    return np.ascontiguousarray(np.moveaxis(total, 0, 2))
