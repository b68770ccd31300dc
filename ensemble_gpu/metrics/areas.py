"""Rows in the order of their scores: areas under curves, and what each row adds to them.

Counts are integers wherever rows have no weights, so an area is exact: a quotient of two integers,
rounded once. Equal scores are one group, whatever their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import HOST, Where

# Scores that are sorted at a time where there are several vectors of them.
BLOCK = 1 << 22


@dataclass(frozen=True)
class Groups:
    """Weight above each threshold, of positive and negative rows; thresholds fall."""

    thresholds: Any
    plus: Any
    minus: Any


def _weights(positive: Any, weights: Any | None, where: Where) -> tuple[Any, Any]:
    """Weights of the positive rows and of the negative ones; integers where none are given."""
    xp = where.xp
    if weights is None:
        plus = xp.astype(positive, xp.int64)
        return plus, 1 - plus
    weights = weights / xp.max(weights)  # so that no sum overflows
    plus = weights * xp.astype(positive, xp.float64)
    return plus, weights - plus


def groups(positive: Any, scores: Any, weights: Any | None, where: Where) -> Groups:
    """TP and FP at every distinct score s, for the rule f >= s."""
    xp = where.xp
    plus, minus = _weights(positive, weights, where)
    order = xp.argsort(scores, descending=True)
    s = xp.take(scores, order)
    last = xp.ones(1, dtype=xp.bool, device=where.device)
    ends = xp.nonzero(xp.concat([s[1:] != s[:-1], last]))[0]

    def above(w: Any) -> Any:
        return xp.take(xp.cumulative_sum(xp.take(w, order)), ends)

    return Groups(xp.take(s, ends), above(plus), above(minus))


def step_area(positive: Any, scores: Any, weights: Any | None, where: Where) -> float:
    """sum_k (R_k - R_(k-1)) P_k: the average precision, without interpolation."""
    xp = where.xp
    found = groups(positive, scores, weights, where)
    plus, minus = where.as_float64(found.plus), where.as_float64(found.minus)
    gained = xp.concat([plus[:1], plus[1:] - plus[:-1]])
    total = plus + minus
    share = plus / xp.where(total > 0.0, total, xp.ones_like(total))
    return float(xp.sum(gained * share) / plus[-1])


def areas(positive: Any, scores: Any, weights: Any | None, where: Where) -> np.ndarray | None:
    """Mean of [s_i > s_j] + [s_i = s_j] / 2 over pairs, i positive, j negative, by w_i w_j.

    Of every vector of `scores` [M, n], float64; None where rows of a kind are missing.
    """
    xp = where.xp
    if where.kind == HOST and weights is None:
        n_plus = int(np.count_nonzero(positive))
        return _shares(n_plus, len(positive) - n_plus, partial(_compiled, positive, scores, n_plus))
    plus, minus = _weights(positive, weights, where)
    number = int if weights is None else float

    def in_blocks() -> list[Any]:
        block = max(1, BLOCK // scores.shape[1])
        return [
            value
            for start in range(0, scores.shape[0], block)
            for value in _twice(
                plus, minus, scores[start : min(start + block, scores.shape[0]), :], where
            )
        ]

    return _shares(number(xp.sum(plus)), number(xp.sum(minus)), in_blocks)


def _shares(n_plus: Any, n_minus: Any, twice: Callable[[], list[Any]]) -> np.ndarray | None:
    """Half of `twice` for each pair; None where there is none."""
    if n_plus == 0 or n_minus == 0:
        return None
    return np.array([value / (2 * n_plus * n_minus) for value in twice()])


def _compiled(positive: np.ndarray, scores: np.ndarray, n_positive: int) -> list[int]:
    from ensemble_gpu.kernels.cpu.ranks import pairs_in_order

    found = np.empty(len(scores), dtype=np.int64)
    scores = np.ascontiguousarray(scores).view()
    scores.flags.writeable = False  # one compiled kernel serves writable and read-only input
    pairs_in_order(scores, np.ascontiguousarray(positive), n_positive, found)
    return found.tolist()


def _twice(plus: Any, minus: Any, scores: Any, where: Where) -> list[Any]:
    """Twice the weight of the pairs in order, and once that of equal scores, a vector each."""
    xp = where.xp
    order, below, up_to = _placed(minus, scores, where)
    own = xp.take(plus, xp.reshape(order, (-1,)))
    sums = xp.sum(xp.reshape(own, scores.shape) * (below + up_to), axis=1)
    return where.host(sums).tolist()


def _placed(weight: Any, scores: Any, where: Where) -> tuple[Any, Any, Any]:
    """Ascending order of each vector [M, n], and the weight of the rows below each place.

    Below it, and below or beside it: of lower scores, and of scores that are not higher.
    """
    xp = where.xp
    m, n = scores.shape
    order = xp.argsort(scores, axis=1)
    first = xp.arange(m, dtype=order.dtype, device=where.device)[:, None] * n
    s = xp.reshape(xp.take(xp.reshape(scores, (-1,)), xp.reshape(order + first, (-1,))), (m, n))
    new = xp.ones((m, 1), dtype=xp.bool, device=where.device)
    new = xp.concat([new, s[:, 1:] != s[:, :-1]], axis=1)
    # groups are numbered through all vectors, so that one search finds the ends of all of them
    group = xp.cumulative_sum(xp.reshape(xp.astype(new, xp.int64), (-1,)))
    taken = xp.reshape(xp.take(weight, xp.reshape(order, (-1,))), (m, n))
    sums = xp.concat([xp.zeros_like(taken[:, :1]), xp.cumulative_sum(taken, axis=1)], axis=1)
    shift = xp.arange(m, dtype=xp.int64, device=where.device)[:, None]
    shift = xp.reshape(xp.broadcast_to(shift, (m, n)), (-1,))  # a vector has n + 1 sums

    def sums_at(side: str) -> Any:
        at = xp.astype(xp.searchsorted(group, group, side=side), xp.int64)
        return xp.reshape(xp.take(xp.reshape(sums, (-1,)), at + shift), (m, n))

    return order, sums_at("left"), sums_at("right")


def placements(positive: Any, scores: Any, where: Where) -> tuple[Any, Any]:
    """Share of the negative rows below each positive one [M, P], of the positive ones above [M, N].

    Rows of equal scores count a half; the means of both are the areas.
    """
    xp = where.xp
    plus, minus = _weights(positive, None, where)
    rows = (xp.nonzero(positive)[0], xp.nonzero(~positive)[0])
    n_plus, n_minus = rows[0].shape[0], rows[1].shape[0]

    def share(weight: Any, total: int, of: Any) -> Any:
        order, below, up_to = _placed(weight, scores, where)
        back = xp.argsort(order, axis=1)
        m, n = scores.shape
        start = xp.arange(m, dtype=back.dtype, device=where.device)[:, None] * n
        flat = xp.take(xp.reshape(below + up_to, (-1,)), xp.reshape(back + start, (-1,)))
        value = where.as_float64(xp.take(xp.reshape(flat, (m, n)), of, axis=1))
        return value / (2.0 * total)

    return share(minus, n_minus, rows[0]), 1.0 - share(plus, n_plus, rows[1])
