"""Rows on the device, seen from the host: codes, weights, and the sums of weights over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.cuda import histogram
from ensemble_gpu.kernels.cuda.device import Device
from ensemble_gpu.kernels.cuda.launch import Shape
from ensemble_gpu.kernels.protocol import Codes, Layout

# The kernels add int32: an int64 is two words.
WORDS, WORD_BITS = 2, 32


class Rows:
    """The rows' codes and weights on the device, their parts, and the sums, as kernel arguments."""

    def __init__(
        self, device: Device, codes: Any, layout: Layout, width: int, blocks: int | None = None
    ) -> None:
        where, xp, plan = device.where, device.where.xp, device.plan
        blocks = plan.blocks if blocks is None else blocks
        self.device, self.codes, self.width, self.groups = device, codes, width, layout.n_groups
        self.lanes, self.stride = histogram.lanes_of(width), histogram.stride_of(width)
        cells = codes.shape[0] * self.lanes * self.stride
        parts = histogram.class_parts(layout.starts, blocks, plan.part_rows)
        self.grid = min(blocks, len(parts))
        self.q = where.zeros((layout.n_planes, layout.n_rows), xp.int32)
        self.sums = where.zeros((self.groups, cells), xp.int64)
        self.codes_ = device.handle(codes)
        self.parts_ = device.handle(where.put(parts))
        self.group_of_ = device.handle(where.put(layout.group_of.astype(np.int32)))
        self.q_, self.sums_ = device.handle(self.q), device.handle(self.sums)

    @property
    def shape(self) -> Shape:
        """For kernels that walk over the parts."""
        return Shape(self.grid, self.device.plan.threads, self.device.stream())

    @property
    def arguments(self) -> tuple[Any, Any, Any]:
        """What those kernels need of the rows, but for the weights."""
        return self.codes_, self.parts_, self.group_of_

    @property
    def words(self) -> Any:
        """q as [word, plane, row]: a view."""
        return self.device.where.xp.reshape(self.q, (WORDS, -1, self.q.shape[1]))

    def build(self) -> None:
        self.sums[...] = 0
        histogram.launch_build(self.shape, self.width, self.arguments, self.q_, self.sums_)

    def fetch(self, p: int) -> np.ndarray:
        """Sums [group, feature, code] of q, built and brought to the host."""
        self.build()
        return self.read(p)

    def read(self, p: int) -> np.ndarray:
        """The sums as they are, brought to the host."""
        sums = self.device.where.host(self.sums)
        return sums.reshape(self.groups, -1, self.stride)[:, :p, : self.width].copy()

    def fetch_words(self, p: int) -> np.ndarray:
        """The same as [word, group of a word, feature, code]."""
        sums = self.fetch(p)
        return sums.reshape(WORDS, -1, *sums.shape[1:])

    def fetch_wide(self, p: int) -> np.ndarray:
        """Sums of int64 from their words.

        The lower word is taken with its sign, so the upper one counts one more where it is
        negative: q = low + 2^32 high modulo 2^64.
        """
        words = self.words
        high = words[1]
        high -= words[0] >> (WORD_BITS - 1)
        lower, upper = self.fetch_words(p)
        return lower + (upper << WORD_BITS)


def in_words(q: Any, where: Where) -> Any:
    """An int64 array as int32 [word, ...]: a view, the lower word first."""
    xp = where.xp
    words = xp.reshape(xp.ascontiguousarray(q).view(xp.int32), (*q.shape, WORDS))
    return xp.permute_dims(words, (q.ndim, *range(q.ndim)))


def column(codes: Codes, feature: int, device: Device) -> Any:
    """The codes of one feature, int32.

    A word's bytes are its codes, the first lane first (GPUs and hosts are little-endian).
    """
    lanes, xp = histogram.lanes_of(codes.width), device.where.xp
    with device.active(f"codes of {codes.n_rows} rows", 4 * codes.n_rows):
        tile = codes.data[feature // lanes, :].view(xp.uint8 if lanes == 8 else xp.uint16)
        return xp.astype(xp.reshape(tile, (-1, lanes))[:, feature % lanes], xp.int32)
