"""Answers of members in array-API calls: an int8 a cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT, Answers

# Cells that are multiplied by weights at once.
CELLS = 1 << 20


def pack_answers(blocks: Iterable[Any], n_rows: int, where: Where) -> Answers:
    """int8 [member, row]."""
    xp = where.xp
    matrix = xp.concat([xp.permute_dims(block, (1, 0)) for block in blocks], axis=0)
    abstains = bool(xp.any(matrix == 0))
    return Answers(matrix, n_rows, matrix.shape[0], abstains)


def answer_sums(answers: Answers, q: Any, where: Where) -> np.ndarray:
    xp, step = where.xp, max(1, CELLS // max(1, answers.n_rows))
    none = where.full(0, xp.int64)
    q = xp.astype(q, xp.int64)
    out = np.zeros((q.shape[0], 2, answers.n_members), dtype=np.int64)
    for first in range(0, answers.n_members, step):
        last = min(first + step, answers.n_members)
        block = answers.data[first:last, :]
        for side, chosen in enumerate((block < 0, block > 0)):
            for plane in range(q.shape[0]):
                sums = xp.sum(xp.where(chosen, q[plane, :][None, :], none), axis=1)
                out[plane, side, first:last] = where.host(sums)
    return out


def answer(answers: Answers, member: int, where: Where) -> Any:
    xp, found = where.xp, answers.data[member, :]
    left, right, neither = (where.full(code, xp.int64) for code in (LEFT, RIGHT, ABSTAIN))
    return xp.where(found == 0, neither, xp.where(found > 0, right, left))


def quantised(logs: Any, bits: int, where: Where) -> tuple[Any, int]:
    """q = rint(2^(L - E + bits)) of fixed-point logarithms L, and E = floor(max L) + 1."""
    xp = where.xp
    exponent = (int(where.host(xp.max(logs))) >> fixedpoint.FRACTION_BITS) + 1
    down = exponent - (logs >> fixedpoint.FRACTION_BITS)
    return quantise(logs, down, where.put(fixedpoint.tables(bits)), where), exponent


def quantise(logs: Any, down: Any, powers: Any, where: Where) -> Any:
    """The digits of L looked up, times 2^(bits - down): int32 (kernels/fixedpoint.py)."""
    xp = where.xp
    bits, mask = fixedpoint.DIGIT_BITS, fixedpoint.DIGIT_MASK
    high = xp.take(powers[0, :], (logs >> (2 * bits)) & mask)
    middle = xp.take(powers[1, :], (logs >> bits) & mask)
    low = xp.take(powers[2, :], logs & mask)
    kept = down < fixedpoint.N_POWERS
    power = xp.take(powers[3, :], xp.where(kept, down, where.full(0, xp.int64)))
    q = xp.round(high * middle * low * power)
    return xp.astype(xp.where(kept, q, where.full(0.0)), xp.int32)
