"""What generators are drawn from, and what they say about the training rows.

Training rows among generators are drawn by what the rows hold (data/sampling.py), so that neither
their order matters nor whether equal rows are repeated or weighted. X is rounded to a grid and z is
exact (model/generators.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.products import single_threaded
from ensemble_gpu.data.integers import integer_weights
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.sampling import items_of
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.protocol import Codes, Engine, Layout
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.model.generators import Coordinates, Generators, Grid, block_size

# Bits of the values and of the total weight that means and deviations are computed from.
VALUE_BITS, WEIGHT_BITS = 15, 30


@dataclass(frozen=True)
class DrawnFrom:
    """Rows to draw from: their coordinates where they are, and the row of each item."""

    grid: Grid
    u: Any
    items: np.ndarray | None
    where: Where

    def rows(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Coordinates [n, p] of n rows, on the host; NaN is missing."""
        assert self.items is not None
        at = self.items[rng.integers(0, len(self.items), n)].astype(np.int64)
        return self.where.host(self.where.xp.take(self.u, self.where.put(at), axis=0))


class Draws(Protocol):
    """A learner that draws `n_candidates` generators; of training rows, if it `draws_rows`."""

    @property
    def n_candidates(self) -> int: ...

    @property
    def draws_rows(self) -> bool: ...

    def _draw(self, rng: np.random.Generator, rows: DrawnFrom) -> Generators: ...


class Source:
    """The generators of a fit, round by round, and what they say about the training rows."""

    def __init__(self, learner: Draws, rows: LearnerRows) -> None:
        self.learner, self.seed = learner, rows.seed
        engine = self.engine = rows.engine
        X = engine.adopt(rows.X)
        where = self.where = engine.where
        self.grid = grid_of(X, None if rows.weights is None else engine.adopt(rows.weights), engine)
        self.u = self.grid(X, where)
        items = None
        if learner.draws_rows:
            keys = row_keys(rows.target, rows.X)
            weights = None if rows.weights is None else rows.where.host(rows.weights)
            items = items_of(keys, weights).rows
        self.rows = DrawnFrom(self.grid, self.u, items, where)

    def drawn(self, number: int) -> Generators:
        """The generators of a round."""
        rng = np.random.default_rng([self.seed, number])
        return self.learner._draw(rng, self.rows)

    def coordinates(self, order: Any | None) -> Coordinates:
        """Those of the rows in an order (None: their own)."""
        where, xp = self.where, self.where.xp
        v = xp.permute_dims(self.u, (1, 0))
        return Coordinates.of(v if order is None else xp.take(v, order, axis=1), where)

    def binned(
        self, generators: Generators, order: Any | None, layout: Layout, max_bins: int
    ) -> BinnedMatrix:
        """Codes of all z: quantiles, some generators at a time."""
        engine, where, rows = self.engine, self.where, self.coordinates(order)
        n = rows.n_rows
        at = where.xp.arange(n, dtype=where.xp.int64, device=where.device)
        width = min(max_bins, max(n, 2)) + 1

        def encoded(block: Generators) -> tuple[Codes, list[np.ndarray]]:
            single, z = engine.single(), block.at(rows, where)
            gaps = single.gaps(z, at, max_bins)
            return single.encode(z, edges_of(gaps), at, layout, width), gaps

        blocks = [part for _, part in self.blocks(generators, n)]
        parts, found = zip(*self.side_by_side(encoded, blocks), strict=True)
        gaps = [gap for own in found for gap in own]
        return BinnedMatrix(engine.join(parts, layout), edges_of(gaps), gaps)

    def blocks(self, generators: Generators, n_rows: int) -> list[tuple[int, Generators]]:
        """Some generators at a time, a multiple of 8, and the number of the first of them."""
        step = block_size(n_rows, self.where)
        firsts = range(0, len(generators), step)
        return [(first, generators.take(slice(first, first + step))) for first in firsts]

    def side_by_side(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """function(item) for all of them, as many side by side as there are workers."""
        with single_threaded():
            if self.engine.n_workers == 1 or len(items) == 1:
                return [function(item) for item in items]
            with ThreadPoolExecutor(self.engine.n_workers) as pool:
                return list(pool.map(function, items))


def grid_of(X: Any, weights: Any | None, engine: Engine) -> Grid:
    """Mean and standard deviation of every feature, from sums of integers.

    Values are rounded to 2^-15 of half their range around its middle first; missing ones are left
    out. A feature of one value has the scale 1.
    """
    where, xp = engine.where, engine.where.xp
    w = integer_weights(weights, WEIGHT_BITS, engine)
    centre, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for j in range(X.shape[1]):
        x = where.as_float64(X[:, j])
        known = ~xp.isnan(x)
        if not bool(xp.any(known)):
            continue
        low = float(xp.min(xp.where(known, x, where.full(np.inf))))
        high = float(xp.max(xp.where(known, x, where.full(-np.inf))))
        middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        centre[j] = middle
        if half <= 0.0:
            continue
        v = xp.where(known, (x - middle) / half, where.full(0.0))
        v = xp.astype(xp.round(v * 2.0**VALUE_BITS), xp.int64)
        part = xp.astype(known, xp.int64) if w is None else w * xp.astype(known, xp.int64)
        count, first, second = (int(xp.sum(a)) for a in (part, part * v, part * v * v))
        mean = first / count
        spread = (second * count - first * first) / (count * count)
        centre[j] = middle + half * (mean * 2.0**-VALUE_BITS)
        scale[j] = half * (float(np.sqrt(spread)) * 2.0**-VALUE_BITS) or 1.0
    return Grid(centre, scale)
