"""A pass of gradient boosting over the rows: F moves, and its gradients become integers.

Rows are taken in blocks that stay in the cache from F to the packed integers; threads share them.
kernels/gradient_pass.py has the formula, kernels/cpu/losses.py the derivatives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.losses import (
    BLOCK,
    SHIFT,
    SHIFT_BITS,
    differentiate,
    differentiate_jointly,
    evaluate,
    space,
)
from ensemble_gpu.kernels.cpu.sharing import LINE, share
from ensemble_gpu.kernels.fixedpoint import tables
from ensemble_gpu.kernels.gradient_pass import GradientPass
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import PACK_BITS

# The bits of |x|: in the order of the numbers, NaN above them all.
SIZE = np.int64(0x7FFFFFFFFFFFFFFF)


class Part(NamedTuple):
    """How each row takes part: with its weight, if it was drawn; an empty array: as all do."""

    weights: np.ndarray
    taken: np.ndarray


class Units(NamedTuple):
    """1 / unit of -g and of h, and what they have to stay below to be packed."""

    per_s: float
    per_h: float
    most_g: float
    most_h: float


def settings_of(work: GradientPass) -> tuple[Any, ...]:
    """index, table, part, units, digits, packed of the kernels."""
    index, table = work.move or (np.zeros(0, dtype=np.int64), np.zeros((1, 0)))
    weights = np.zeros(0) if work.weights is None else work.weights
    taken = np.zeros(0, dtype=np.bool_) if work.taken is None else work.taken
    # nothing is below the bounds of units that are not known yet, 0
    per, most = zip(*((1.0 / u if u else 1.0, u * 2.0**PACK_BITS) for u in work.units), strict=True)
    return (
        index,
        np.ascontiguousarray(table),
        Part(weights, taken),
        Units(*per, *most),
        tables(),
        work.packed,
    )


def tops_for(workers: int) -> np.ndarray:
    """Bits of the largest |g| and h that each worker has seen, a cache line each."""
    return np.zeros((workers, LINE), dtype=np.int64)


@inner
def move(n, F, index, table):
    for i in range(n):
        F[i] += table[index[i]]


@inner
def _weigh(n, a, part, x):
    """Times the weight of rows a ... a + n - 1 in this round."""
    if part.weights.shape[0] > 0:
        for i in range(n):
            x[i] *= part.weights[a + i]
    if part.taken.shape[0] > 0:
        for i in range(n):
            x[i] *= np.float64(part.taken[a + i])


@inner
def _largest(n, bits, top):
    for i in range(n):
        top = max(top, bits[i] & SIZE)
    return top


@inner
def _pack(n, g, h, units, work, out):
    """out = rint(-g / unit) 2^32 + rint(h / unit); both are below 2^51 (SHIFT)."""
    s, lower, s_bits, lower_bits = work.shifted, work.power, work.bits, work.power_bits
    for i in range(n):
        s[i] = g[i] * -units.per_s + SHIFT
        lower[i] = h[i] * units.per_h + SHIFT
    for i in range(n):
        upper = (s_bits[i] - SHIFT_BITS) << np.int64(32)
        out[i] = upper + (lower_bits[i] - SHIFT_BITS)


@inner
def finish(n, a, g, h, flat, part, units, work, packed, tops):
    """Weigh the derivatives of a block of one output, note the largest, pack them if they fit."""
    if flat:
        for i in range(n):
            h[i] = 1.0
    _weigh(n, a, part, g)
    _weigh(n, a, part, h)
    top = np.empty(2, dtype=np.int64)
    top[0] = _largest(n, g.view(np.int64), np.int64(0))
    top[1] = _largest(n, h.view(np.int64), np.int64(0))
    largest = top.view(np.float64)
    if largest[0] < units.most_g and largest[1] < units.most_h:
        _pack(n, g, h, units, work, packed[a : a + n])
    tops[0], tops[1] = max(tops[0], top[0]), max(tops[1], top[1])


@inner
def _pass_rows(worker, start, stop, loss, y, F, index, table, part, units, digits, packed, tops):
    kind, parameters, flat = loss
    g, h, work = np.empty(BLOCK), np.empty(BLOCK), space()
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        for k in range(F.shape[0]):
            own = F[k, a:b]
            if index.shape[0] > 0:
                move(b - a, own, index[a:b], table[k])
            target = y[min(k, y.shape[0] - 1), a:b]
            differentiate(kind, parameters[k], b - a, target, own, digits, work, g, h)
            finish(b - a, a, g, h, flat, part, units, work, packed[k], tops[worker])


@kernel
def gradient_pass(crew, loss, y, F, index, table, part, units, digits, packed, tops):
    """The pass for outputs that have a target each, or for one output: y[output, row].

    loss = (kind, parameters[output, 2], whether every h is 1); F moves by table[output, index[row]]
    unless `index` is empty.
    """
    share(
        crew, F.shape[1], _pass_rows,
        (loss, y, F, index, table, part, units, digits, packed, tops),
    )  # fmt: skip


@inner
def _pass_joint_rows(worker, start, stop, flat, y, F, index, table, part, units, digits, packed,
                     tops):  # fmt: skip
    g, h, work = np.empty((F.shape[0], BLOCK)), np.empty((F.shape[0], BLOCK)), space()
    for a in range(start, stop, BLOCK):
        b = min(a + BLOCK, stop)
        if index.shape[0] > 0:
            for k in range(F.shape[0]):
                move(b - a, F[k, a:b], index[a:b], table[k])
        differentiate_jointly(b - a, y[a:b], F[:, a:b], digits, work, g, h)
        for k in range(F.shape[0]):
            finish(b - a, a, g[k], h[k], flat, part, units, work, packed[k], tops[worker])


@kernel
def joint_gradient_pass(crew, flat, y, F, index, table, part, units, digits, packed, tops):
    """The pass for outputs that share the target y[row], a class."""
    share(
        crew, F.shape[1], _pass_joint_rows,
        (flat, y, F, index, table, part, units, digits, packed, tops),
    )  # fmt: skip


@inner
def _total(n, x):
    """The sum of the first n numbers of a block, by halves: an order that is vectorised."""
    for i in range(n, BLOCK):
        x[i] = 0.0
    half = BLOCK // 2
    while half > 0:
        for i in range(half):
            x[i] += x[half + i]
        half //= 2
    return x[0]


@inner
def _look_at_blocks(worker, first, last, loss, y, F, index, table, part, digits, out, sums):
    kind, parameters = loss
    value, work = np.empty(BLOCK), space()
    for block in range(first, last):
        a, b = block * BLOCK, min((block + 1) * BLOCK, F.shape[1])
        sums[block] = 0.0
        for k in range(F.shape[0]):
            own = out[k, a:b]
            for i in range(b - a):
                own[i] = F[k, a + i]
            move(b - a, own, index[a:b], table[k])
            target = y[min(k, y.shape[0] - 1), a:b]
            evaluate(kind, parameters[k], b - a, target, own, digits, work, value)
            _weigh(b - a, a, part, value)
            sums[block] += _total(b - a, value)


@kernel
def loss_pass(crew, loss, y, F, index, table, part, digits, out, sums):
    """`LossPass`: F moves to `out`, and sums[block] = sum of w l(y, out) over the rows of a block.

    loss = (kind, parameters[output, 2]).
    """
    share(
        crew, sums.shape[0], _look_at_blocks,
        (loss, y, F, index, table, part, digits, out, sums),
    )  # fmt: skip
