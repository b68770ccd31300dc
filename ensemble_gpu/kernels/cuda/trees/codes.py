"""Codes for trees: those of a row side by side, because the rows of a deep node lie far apart.

codes[row, tile] is a word of eight codes of 8 bits or four of 16.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda import histogram
from ensemble_gpu.kernels.cuda._numba import cuda
from ensemble_gpu.kernels.cuda.device import Device
from ensemble_gpu.kernels.protocol import Codes

_BY_ROW = threading.Lock()


@cuda.jit(device=True)
def code_of(codes, row, feature, lane_bits):
    """The code of a feature: one of the 2^lane_bits lanes of a word."""
    lane = feature & ((1 << lane_bits) - 1)
    mask = (1 << (64 >> lane_bits)) - 1
    word = codes[row, feature >> lane_bits]
    return np.int32((word >> np.uint64(lane << (6 - lane_bits))) & np.uint64(mask))


@dataclass(frozen=True)
class RowCodes:
    """Codes [row, tile] as an array and as a kernel argument."""

    array: Any
    handle: Any
    lane_bits: int


def by_row(codes: Codes, device: Device) -> RowCodes:
    """The codes of a row side by side, made once."""
    with _BY_ROW:
        if "rows" not in codes.columns:
            array = device.where.xp.ascontiguousarray(codes.data.T)
            lane_bits = histogram.lanes_of(codes.width).bit_length() - 1
            codes.columns["rows"] = RowCodes(array, device.handle(array), lane_bits)
        return codes.columns["rows"]
