"""What happens to each row alone, by array-API calls: for engines without a kernel for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.host.hashing import STEP
from ensemble_gpu.kernels.protocol import LEFT, N_LEAVES, RIGHT, Codes, Cut


def move(F: Any, column: Any, cut: Cut, values: np.ndarray, where: Where) -> Any:
    """F[output, row] + values[output, leaf of the row's code]."""
    xp = where.xp
    left, missing = column <= cut.bin, column == cut.missing_code
    planes = []
    for k in range(F.shape[0]):
        leaf = [where.full(v) for v in values[k]]
        added = xp.where(missing, leaf[cut.missing_leaf], xp.where(left, leaf[LEFT], leaf[RIGHT]))
        planes.append(F[k, :] + added)
    return xp.stack(planes)


def add_tables(engine: Any, F: Any, codes: Codes, used: np.ndarray, tables: np.ndarray) -> Any:
    """F[output, row] + sum over the used features f of tables[output, f, code of the row]."""
    where, xp = engine.where, engine.where.xp
    for f in used.tolist():
        column = xp.astype(engine.column(codes, f), xp.int64, copy=False)
        added = [xp.take(where.put(tables[k, f]), column) for k in range(F.shape[0])]
        F = F + xp.stack(added)
    return F


def pack(s: Any, h: Any, unit_s: float, unit_h: float, where: Where) -> Any:
    """rint(s / unit_s) 2^32 + rint(h / unit_h); below 2^51, so the sum of floats is exact."""
    xp = where.xp
    upper = xp.round(s * (1.0 / unit_s)) * 2.0**32
    return xp.astype(upper + xp.round(h * (1.0 / unit_h)), xp.int64)


def leaf_sums(q: Any, column: Any, cut: Cut, where: Where) -> np.ndarray:
    """sums[output, leaf] of the int64 q[output, row], on the host."""
    xp = where.xp
    left, missing = column <= cut.bin, column == cut.missing_code
    zero = where.full(0, xp.int64)
    parts = [xp.sum(xp.where(rows[None, :], q, zero), axis=1) for rows in (left, missing)]
    on_left, on_missing, total = where.host(xp.stack([*parts, xp.sum(q, axis=1)]))
    sums = np.zeros((q.shape[0], N_LEAVES), dtype=np.int64)
    sums[:, LEFT] = on_left
    sums[:, RIGHT] = total - on_left - on_missing
    sums[:, cut.missing_leaf] += on_missing
    return sums


def drawn(numbers: Any, bounds: Any | None, offset: int, limit: int, where: Where) -> Any:
    """How many items of each row are drawn: int64, or bool without bounds."""
    xp = where.xp

    def number(value: int) -> Any:
        return where.full(value, xp.uint64)

    x = numbers * number(int(STEP)) + number(offset)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> number(shift))) * number(factor)
    below = (x ^ (x >> number(31))) < number(limit)
    if bounds is None:
        return below
    running = xp.cumulative_sum(xp.astype(below, xp.int64))
    at = xp.take(xp.concat([where.zeros(1, xp.int64), running]), bounds)
    return at[1:] - at[:-1]
