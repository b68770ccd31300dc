"""Pairs of codes counted on the device: the rows in order of one feature, each code a group."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda import histogram
from ensemble_gpu.kernels.cuda.device import Device
from ensemble_gpu.kernels.cuda.rows import WORDS, Rows, column, in_words
from ensemble_gpu.kernels.protocol import Codes, Layout

# Sums of pairs of codes that are on the device at once.
PAIR_BYTES = 2**28


def pair_counts(codes: Codes, feature: int, weights: Any | None, device: Device) -> np.ndarray:
    """counts[c, f, b] of the rows with code c in `feature` and code b in f, or their weights."""
    xp, width, n = device.where.xp, codes.width, codes.n_rows
    tiles, planes = codes.data.shape[0], 1 if weights is None else WORDS
    starts = [0, *np.cumsum(codes.counts.sum(axis=0)[feature]).tolist()]
    dtype = np.int32 if weights is None else np.int64
    counts = np.zeros((width, codes.n_features, width), dtype=dtype)
    a_code = 8 * planes * tiles * histogram.lanes_of(width) * histogram.stride_of(width)
    step = max(1, PAIR_BYTES // a_code)
    needed = (12 + 8 * tiles + 4 * planes) * n + a_code * min(step, width)
    with device.active(f"pairs of codes of {n} rows", needed):
        order = xp.argsort(column(codes, feature, device), stable=True)
        for first in range(0, width, step):
            ends = starts[first : first + step + 1]
            if ends[0] < ends[-1]:
                rows = order[ends[0] : ends[-1]]
                counts[first : first + step] = _counts(codes, rows, ends, weights, device)
    return counts


def _counts(
    codes: Codes, order: Any, ends: list[int], weights: Any | None, device: Device
) -> np.ndarray:
    """Counts [group, feature, code] of rows in order, group g those up to ends[g + 1]."""
    xp, groups = device.where.xp, len(ends) - 1
    planes = 1 if weights is None else WORDS
    group_of = np.arange(planes * groups).reshape(planes, groups)
    layout = Layout(np.array(ends) - ends[0], group_of)
    blocks = device.plan.blocks + groups  # so that a full code is shared by many
    in_order = xp.take(codes.data, order, axis=1)
    rows = Rows(device, in_order, layout, codes.width, blocks)
    if weights is None:
        rows.q[...] = 1
        return rows.fetch(codes.n_features)
    rows.q[...] = in_words(xp.take(weights, order), device.where)
    return rows.fetch_wide(codes.n_features)
