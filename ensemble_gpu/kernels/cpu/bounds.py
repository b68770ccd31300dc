"""Lower bounds on the scores of blocks of thresholds: most blocks need not be looked into.

The cost of a threshold is f(l) + f(T - l), summed over planes, where l = (l+, l-) are the sums left
of it and T those of all rows, and f is sqrt(W+ W-), W+ W- / (W+ + W-) or min(W+, W-). Each f is
concave, so the cost is. Left of the thresholds of a block lies at least what lies left of the
block, (a+, a-), and at most what lies left of its end, (b+, b-). Over that rectangle a concave
function is lowest in a corner: two corners are the costs of splits at the ends of the block, the
others put the block's rows of one group left and those of the other group right.

A block of the share w of the weight bounds the cost from below by about w^2 / 2 of what it is, and
scores of rounds that learn something differ by more. For few rows that is most rounds; where it
does not help, it is tried ever more rarely.

    blocks   edges[group, place] sums left of each block and of the end, costs[2, place] of splits
             there, of all planes and of one, bounds[place], number of blocks of each feature (-1:
             it is scored as a whole, having missing values), totals[group], lowest cost that a
             worker knows and blocks scored by it, habit (rounds until the next trial, between two)

Block k of feature f has the place f stride + k.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.protocol import CONFIDENCE, GENTLE

# Thresholds of a block.
BLOCK = 16
# Codes of a feature below which bounds cost as much as scores.
LEAST_WIDTH = 48
# Bounds pay where they leave less than this share of the blocks: 8,000 x 28 took 75,000 cycles a
# round with half of them left, of which 13,000 were the bounds, and 40,000 without bounds.
WORTH_SHARE = 0.2
RAREST = 256
# More than the rounding of costs and of bounds, of the costs and of the weight of all rows.
MARGIN = 2.0**-40


def block_space(
    workers: int, groups: int, n_features: int, width: int, pairs: bool
) -> tuple[Any, ...]:
    """Space for `blocks`; `pairs`: groups come in pairs, so that there are bounds."""
    rarely = 1 if pairs and width >= LEAST_WIDTH else 0
    n = -(-width // BLOCK) + 1 if rarely else 0
    return (
        np.zeros((groups, n_features * n), dtype=np.int64), np.zeros((2, n_features * n)),
        np.zeros(n_features * n), np.zeros(n_features, dtype=np.int64),
        np.zeros(groups, dtype=np.int64), np.zeros(workers), np.zeros(workers, dtype=np.int64),
        np.array([0, rarely], dtype=np.int64),
    )  # fmt: skip


@inner
def note_bounding(blocks):
    """When to try bounds again: at once if they left few blocks, else after ever more rounds."""
    n_blocks, scored, habit = blocks[3], blocks[6], blocks[7]
    if habit[0] >= 0 or habit[1] == 0:  # they were not tried
        return
    every, left = 0, 0
    for f in range(n_blocks.shape[0]):
        every += max(0, n_blocks[f])
    for worker in range(scored.shape[0]):
        left += scored[worker]
    if left <= WORTH_SHARE * every and every > 0:
        habit[0], habit[1] = 0, 1
    else:
        habit[1] = min(2 * habit[1], RAREST)
        habit[0] = habit[1]


@inner
def _sum_blocks(column, n, edges):
    """edges[k] = sum left of block k of n thresholds, and of the end, to the last of them."""
    run = np.int64(0)
    full = n // BLOCK
    for k in range(full):
        edges[k] = run
        part = np.int64(0)
        for t in range(BLOCK):
            part += column[k * BLOCK + t]
        run += part
    edges[full] = run
    for t in range(full * BLOCK, n):
        run += column[t]
    for k in range(full + 1, edges.shape[0]):
        edges[k] = run


@inner
def _cost(kind, p, m):
    """f(W+, W-) of one leaf."""
    if kind == CONFIDENCE:
        return math.sqrt(p * m)
    if kind == GENTLE:
        return p * m / (p + m) if p + m > 0.0 else 0.0
    return min(p, m)


@inner
def _pair_bounds(kind, n, plus, minus, a, b, total_a, total_b, at_edge, bound, own):
    """Add the costs at edges and the bounds of one plane, to those of the planes before.

    `own` is space for the costs of this plane alone.
    """
    for k in range(n):
        p, m = plus * float(a[k]), minus * float(b[k])
        rest_p, rest_m = plus * float(total_a - a[k]), minus * float(total_b - b[k])
        own[k] = _cost(kind, p, m) + _cost(kind, rest_p, rest_m)
        at_edge[k] += own[k]
    for k in range(n - 1):
        p, m = plus * float(a[k]), minus * float(b[k])
        rest_p, rest_m = plus * float(total_a - a[k]), minus * float(total_b - b[k])
        end_p, end_m = plus * float(a[k + 1]), minus * float(b[k + 1])
        rest_end_p = plus * float(total_a - a[k + 1])
        rest_end_m = minus * float(total_b - b[k + 1])
        corner = _cost(kind, end_p, m) + _cost(kind, rest_end_p, rest_m)
        other = _cost(kind, p, end_m) + _cost(kind, rest_p, rest_end_m)
        bound[k] += min(min(own[k], own[k + 1]), min(corner, other))


@inner
def _bound_features(worker, first, last, sums, scale, criterion, blocks):
    """Edges, costs at edges and bounds of some features; the lowest of those costs."""
    edges, both, bounds, n_blocks, totals, upper, _, _ = blocks
    n_thresholds, kind, _, _ = criterion
    width, stride = sums.shape[3], bounds.shape[0] // n_blocks.shape[0]
    weight = 0.0
    for g in range(scale.shape[0]):
        weight += scale[g] * float(totals[g])
    start, stop = first * stride, last * stride
    for f in range(first, last):
        n = n_thresholds[f]
        n_blocks[f] = (n + BLOCK - 1) // BLOCK
        for g in range(sums.shape[0]):
            column = sums[g, f // 8, f % 8]
            if column[width - 1] != 0:
                n_blocks[f] = -1
            _sum_blocks(column, n, edges[g, f * stride : (f + 1) * stride])
    at_edge, own, bound = both[0, start:stop], both[1, start:stop], bounds[start:stop]
    for i in range(stop - start):
        at_edge[i] = 0.0
        bound[i] = 0.0
    for plane in range(scale.shape[0] // 2):
        a, b = edges[2 * plane, start:stop], edges[2 * plane + 1, start:stop]
        plus, minus = scale[2 * plane], scale[2 * plane + 1]
        all_a, all_b = totals[2 * plane], totals[2 * plane + 1]
        _pair_bounds(kind, stop - start, plus, minus, a, b, all_a, all_b, at_edge, bound, own)
    low = upper[worker]
    for f in range(first, last):
        for k in range(f * stride, f * stride + n_blocks[f]):
            low = min(low, both[0, k])
            bounds[k] -= MARGIN * (bounds[k] + weight)
    upper[worker] = low


@inner
def bound_blocks(crew, sums, scale, criterion, blocks):
    """Fill `blocks`; returns a cost that some split has, or more than that.

    Where bounds are not tried in this round, no feature has blocks.
    """
    _, _, _, n_blocks, totals, upper, scored, habit = blocks
    habit[0] -= 1
    if habit[0] >= 0 or habit[1] == 0:
        for f in range(n_blocks.shape[0]):
            n_blocks[f] = -1
        return math.inf
    for g in range(sums.shape[0]):
        total = np.int64(0)
        for code in range(sums.shape[3]):
            total += sums[g, 0, 0, code]
        totals[g] = total
    for worker in range(upper.shape[0]):
        upper[worker], scored[worker] = math.inf, 0
    share(crew, n_blocks.shape[0], _bound_features, (sums, scale, criterion, blocks))
    best = upper[0]
    for worker in range(1, upper.shape[0]):
        best = min(best, upper[worker])
    return best
