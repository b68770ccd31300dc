"""Generators of derived features: half-spaces, balls and boxes are stumps on them.

x is first rounded to a grid, the same on every array library: coordinate j is the integer

    u_j = rint((x_j - centre_j) / scale_j 2^RESOLUTION), cut to +-2^limit

A generator makes one number z of u, by sums and products of integers that float64 holds exactly,
so that z does not depend on the order of the sums, on the library or on its matrix product:

half-space  z = w.u                    w integers;                  z <= t is a side of a plane
ball        z = sum_j a_j (u_j - c_j)^2   a_j 1 for features in use;   z <= t is a ball around c
box         z = max_j m_j |u_j - c_j|     m_j ~ 1 / half the width;    z <= t is a box around c

A value that is missing in a feature that the generator uses makes z missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from ensemble_gpu.arrays.namespace import HOST, Where
from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.model.base import canonical_bytes

# Every integer up to 2^53 is a float64.
EXACT = 53
# A standard deviation is 2^-RANGE of the coordinates' limit.
RANGE = 5
# Cells of z that are made at once: 64 MB of float64, on the host what fits its cache, 4 MB (1e4 x
# 1,000: a round of bench/learners.py in 27 ms, 36 ms with all of z at once).
CELLS, HOST_CELLS = 1 << 23, 1 << 19


@dataclass(frozen=True)
class Grid:
    """Where the coordinates of every feature begin, what 2^resolution of them are, their limit."""

    centre: np.ndarray
    scale: np.ndarray

    @property
    def limit_bits(self) -> int:
        """2^limit_bits is the largest coordinate: sums of squared differences are exact."""
        return (EXACT - 2 - max(1, len(self.centre)).bit_length()) // 2

    @property
    def weight_bits(self) -> int:
        """2^weight_bits is the largest weight of a coordinate: sums of products are exact."""
        return EXACT - self.limit_bits - max(1, len(self.centre)).bit_length()

    @property
    def unit(self) -> float:
        """Coordinates that a `scale` is."""
        return 2.0 ** (self.limit_bits - RANGE)

    def __call__(self, X: Any, where: Where) -> Any:
        """Coordinates float64 [n, p]; NaN is missing."""
        check_dense(X, "A learner of half-spaces, balls or boxes")
        xp, most = where.xp, where.full(2.0**self.limit_bits)
        u = (where.as_float64(X) - where.put(self.centre)[None, :]) / where.put(self.scale)[None, :]
        return xp.minimum(xp.maximum(xp.round(u * self.unit), -most), most)


@dataclass(frozen=True)
class Coordinates:
    """Coordinates v [p, n] of rows, 0 where they are missing; `absent` is 1 there (None: nowhere).

    float64; those of a feature lie side by side where a product is asked for often.
    """

    v: Any
    absent: Any | None

    @classmethod
    def of(cls, v: Any, where: Where) -> Coordinates:
        """Of coordinates [p, n] where NaN is missing."""
        xp = where.xp
        absent = xp.isnan(v)
        if not bool(xp.any(absent)):
            return cls(v, None)
        return cls(xp.where(absent, where.full(0.0), v), where.as_float64(absent))

    @property
    def n_rows(self) -> int:
        return int(self.v.shape[1])


@dataclass(frozen=True)
class Generators:
    """N generators: `used` [N, p] are the features that each depends on. A subclass makes z."""

    kind: ClassVar[str]

    used: np.ndarray

    def __len__(self) -> int:
        return len(self.used)

    def _arrays(self) -> Iterator[np.ndarray]:
        return (getattr(self, field.name) for field in fields(self))

    def take(self, at: Any) -> Any:
        """Those at the given positions."""
        own = {field.name: getattr(self, field.name)[at] for field in fields(self)}
        return replace(self, **own)

    @classmethod
    def joined(cls, parts: Sequence[Any]) -> Any:
        """All generators of the parts, one after the other."""
        own = zip(*(part._arrays() for part in parts), strict=True)
        return cls(*(np.concatenate(arrays) for arrays in own))

    def canonical(self) -> Iterator[bytes]:
        yield self.kind.encode()
        for array in self._arrays():
            yield canonical_bytes(array)

    def shares(self) -> np.ndarray:
        """What each feature contributes to a generator [N, p]; rows sum to 1."""
        return self.used / np.maximum(self.used.sum(axis=1, keepdims=True), 1)

    def __call__(self, u: Any, where: Where) -> Any:
        """z float64 [n, N] of coordinates u [n, p], NaN where they are missing."""
        return self.at(Coordinates.of(where.xp.permute_dims(u, (1, 0)), where), where)

    def at(self, rows: Coordinates, where: Where) -> Any:
        """z float64 [n, N] of rows; a generator's numbers lie side by side."""
        xp, z = where.xp, self._z(rows.v, where)
        if rows.absent is not None:
            touched = where.put(self.used.astype(np.float64)) @ rows.absent
            z = xp.where(touched > 0.0, where.full(np.nan), z)
        return xp.permute_dims(z, (1, 0))

    def _z(self, v: Any, where: Where) -> Any:
        """Z [N, n] of coordinates v [p, n]."""
        raise NotImplementedError


@dataclass(frozen=True)
class HalfSpaceGenerators(Generators):
    """z = w.u."""

    kind: ClassVar[str] = "half-spaces"

    w: np.ndarray

    def shares(self) -> np.ndarray:
        size = np.abs(self.w)
        return size / np.maximum(size.sum(axis=1, keepdims=True), 1.0)

    def _z(self, v: Any, where: Where) -> Any:
        return where.put(self.w) @ v


@dataclass(frozen=True)
class BallGenerators(Generators):
    """z = sum_j a_j (u_j - c_j)^2 = u^2.a - 2 u.(a c) + c^2.a, all terms exact."""

    kind: ClassVar[str] = "balls"

    c: np.ndarray

    def _z(self, v: Any, where: Where) -> Any:
        a = self.used.astype(np.float64)
        squares = (a * self.c * self.c).sum(axis=1)
        own = where.put(a) @ (v * v)
        cross = where.put(-2.0 * a * self.c) @ v
        return (own + cross) + where.put(squares)[:, None]


@dataclass(frozen=True)
class BoxGenerators(Generators):
    """z = max_j m_j |u_j - c_j|, integers m_j."""

    kind: ClassVar[str] = "boxes"

    c: np.ndarray
    m: np.ndarray

    def _z(self, v: Any, where: Where) -> Any:
        xp, z = where.xp, where.zeros((len(self), v.shape[1]), where.xp.float64)
        for j in np.flatnonzero(self.used.any(axis=0)).tolist():
            far = xp.abs(v[j, :][None, :] - where.put(self.c[:, j])[:, None])
            z = xp.maximum(z, far * where.put(self.m[:, j])[:, None])
        return z


def cells(where: Where) -> int:
    """Cells of z that are made at once."""
    return HOST_CELLS if where.kind == HOST else CELLS


def block_size(n_rows: int, where: Where) -> int:
    """Generators whose z of all rows are made at once, a multiple of 8."""
    return max(8, cells(where) // max(1, n_rows) // 8 * 8)
