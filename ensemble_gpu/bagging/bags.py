"""Which rows and features each learner sees, drawn from the rows in an order of their own.

Draws are of positions in the order of the rows' keys, hashes of what the rows hold. So the bags,
and with them the model, depend neither on the order of the rows nor on the array library, and
a row of weight 3 is drawn as three equal rows are: integer weights are repetitions, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import CUDA, NUMPY, Where, locate
from ensemble_gpu.bagging.draws import (
    bootstrap_counts,
    stream,
    subset_counts,
    weighted_counts,
    weighted_subset_counts,
)
from ensemble_gpu.kernels.cpu.memory import room
from ensemble_gpu.kernels.hashing import STEP, mixed

# Integer weights of up to this mean are drawn as repetitions: the draws cost time in proportion.
MOST_REPEATS = 16

# What is not a draw of rows takes its numbers from seeds that no user's seed reaches.
FOR_FEATURES, FOR_LEARNERS = 1 << 32, 2 << 32

SHARPNESS, MISSING, BLOCK = 2.0**52, 1 << 60, 64
FEW = 32  # rows of a bucket that are sorted one by one


@njit(cache=True, nogil=True)
def _mix_in(keys, x):
    """Rows in blocks, so that their chains of multiplications run side by side."""
    n_rows, n_columns = x.shape
    for start in range(0, n_rows, BLOCK):
        for f in range(n_columns):
            for i in range(start, min(start + BLOCK, n_rows)):
                value = np.float64(x[i, f])
                share = value / (1.0 + abs(value)) if value == value else 0.0
                digest = np.uint64(np.int64(share * SHARPNESS) + np.int64(1 << 53))
                digest = digest if value == value else np.uint64(MISSING)
                keys[i] = mixed((keys[i] + STEP) ^ digest)


@njit(cache=True, nogil=True)
def _add_up(rows, drawn, n_rows):
    counts = np.zeros(n_rows, dtype=np.int32)
    for i in range(len(rows)):
        counts[rows[i]] += drawn[i]
    return counts


def _mix_in_anywhere(keys: Any, x: Any, where: Where) -> Any:
    """`_mix_in` of one column in array-API calls."""
    xp = where.xp

    def number(value: int) -> Any:
        return where.full(value, xp.uint64)

    x = where.as_float64(x)
    known = xp.where(xp.isnan(x), xp.zeros_like(x), x)
    share = known / (xp.abs(known) + 1.0)
    digest = xp.astype(xp.astype(share * SHARPNESS, xp.int64) + (1 << 53), xp.uint64)
    digest = xp.where(xp.isnan(x), number(MISSING), digest)
    keys = (keys + number(int(STEP))) ^ digest
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> number(shift))) * number(factor)
    return keys ^ (keys >> number(31))


def row_keys(target: Any, X: Any) -> np.ndarray:
    """A hash of every row, the target first: uint64 [n] on the host.

    Every value x enters as the integer part of 2^52 x / (1 + |x|): three roundings that are the
    same on every device, and the same for a float32 and its float64 copy.
    """
    where = locate(X)
    if where is NUMPY:
        keys = room((X.shape[0],), np.uint64)
        keys[:] = 0
        _mix_in(keys, target[:, None])
        _mix_in(keys, X)
        return keys
    if where.kind == CUDA:
        target, X = gpu.adopt(target), gpu.adopt(X)
        where = locate(X)
    keys = _mix_in_anywhere(where.zeros(X.shape[0], where.xp.uint64), target, where)
    for f in range(X.shape[1]):
        keys = _mix_in_anywhere(keys, X[:, f], where)
    return where.host(keys)


@njit(cache=True, nogil=True)
def _sort_rows(keys, bits, ends, order):
    """Rows in ascending order of keys, equal ones in their own order.

    Hashes fall evenly into 2^bits buckets by their upper bits, about one a bucket: the rest is
    sorting a few. Equal keys are in order already.
    """
    shift = np.uint64(64 - bits)
    ends[:] = 0
    for i in range(keys.shape[0]):
        ends[keys[i] >> shift] += 1
    total = 0
    for b in range(ends.shape[0]):
        total += ends[b]
        ends[b] = total
    for i in range(keys.shape[0] - 1, -1, -1):
        b = keys[i] >> shift
        ends[b] -= 1  # in the end where the bucket begins
        order[ends[b]] = i
    for b in range(ends.shape[0]):
        start, stop = ends[b], ends[b + 1] if b + 1 < ends.shape[0] else keys.shape[0]
        if stop - start > FEW:
            own = order[start:stop].copy()
            order[start:stop] = own[np.argsort(keys[own], kind="mergesort")]
            continue
        for i in range(start + 1, stop):
            row, at = order[i], i
            while at > start and keys[order[at - 1]] > keys[row]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = row


def sorted_rows(keys: np.ndarray) -> np.ndarray:
    """Rows in ascending order of keys, equal ones in their own order: int32."""
    bits = max(1, len(keys).bit_length())
    order = np.empty(len(keys), dtype=np.int32)
    _sort_rows(keys, bits, room((1 << bits,), np.int32), order)
    return order


@dataclass(frozen=True)
class Bags:
    """Bags of rows for learners 0, 1, 2, ...

    `rows` lists the rows to draw from, a row of weight 3 three times; None where every bag holds
    them all, `repeats` times. With `chances` rows are drawn in proportion to them instead.
    A learner's weights are its counts times `factor`, where there is one.
    """

    seed: int
    replace: bool
    n_draws: int
    n_rows: int
    rows: np.ndarray | None
    repeats: np.ndarray | None
    chances: np.ndarray | None
    factor: np.ndarray | None

    def counts(self, learner: int) -> np.ndarray:
        """How often each row is in the bag: int32 [n_rows]."""
        if self.rows is None:
            ones = np.ones(self.n_rows, dtype=np.int32)
            return ones if self.repeats is None else self.repeats.astype(np.int32)
        if self.chances is not None:
            draw = weighted_counts if self.replace else weighted_subset_counts
            drawn = draw(self.seed, learner, self.chances, self.n_draws)
        else:
            draw = bootstrap_counts if self.replace else subset_counts
            drawn = draw(self.seed, learner, len(self.rows), self.n_draws)
        return _add_up(self.rows, drawn, self.n_rows)

    def weights(self, counts: np.ndarray) -> np.ndarray:
        return counts.astype(np.float64) if self.factor is None else counts * self.factor

    def in_order(self, counts: np.ndarray) -> np.ndarray:
        """Rows of a bag, each as often as it was drawn, in the order of the keys."""
        rows = np.arange(self.n_rows) if self.rows is None else self.rows
        first = np.ones(len(rows), dtype=bool)
        first[1:] = rows[1:] != rows[:-1]
        rows = rows[first]
        return np.repeat(rows, counts[rows])


def make_bags(
    X: Any,
    target: Any,
    weights: np.ndarray | None,
    *,
    seed: int,
    replace: bool,
    max_samples: float | int,
    takes_weights: bool,
) -> Bags:
    """Bags of `max_samples` of the rows, by the rules of `repetitions`."""
    n_rows = X.shape[0]
    repeats, factor = repetitions(weights)
    total = n_rows if repeats is None else int(repeats.sum())
    n_draws = max_samples if isinstance(max_samples, int) else max(1, int(max_samples * total))
    if not replace and n_draws > total:
        raise ValueError(
            f"max_samples must be at most the number of rows that have weight, {total}, with "
            f"bootstrap=False; got {max_samples!r}."
        )
    chances, rows = None, None
    if replace or n_draws < total:
        order = sorted_rows(row_keys(target, X))
        if factor is not None and not takes_weights:
            rows, chances = order, factor[order]
        else:
            rows = order if repeats is None else np.repeat(order, repeats[order])
    return Bags(
        seed=seed, replace=replace, n_draws=n_draws, n_rows=n_rows, rows=rows, repeats=repeats,
        chances=chances, factor=factor,
    )  # fmt: skip


def repetitions(weights: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """How often every row is there to be drawn, and by what its counts are to be multiplied.

    Integer weights are repetitions. Other weights are factors, and rows of weight zero are absent.
    """
    if weights is None:
        return None, None
    # the mean first: only what is small can be told to be an integer by its value
    if weights.mean() <= MOST_REPEATS and (weights == np.floor(weights)).all():
        return weights.astype(np.int64), None
    return (weights > 0.0).astype(np.int64), weights


def draw_features(
    seed: int, learner: int, n_features: int, n_draws: int, replace: bool
) -> np.ndarray:
    """Sorted indices of a learner's features; one drawn twice is there twice."""
    draw = bootstrap_counts if replace else subset_counts
    counts = draw(seed + FOR_FEATURES, learner, n_features, n_draws)
    return np.repeat(np.arange(n_features), counts)


def learner_seed(seed: int, learner: int, which: int) -> int:
    """A value for the `which`-th random_state of a learner."""
    number = mixed(np.uint64(stream(seed + FOR_LEARNERS, learner)) + np.uint64(which) * STEP)
    return int(number >> np.uint64(33))
