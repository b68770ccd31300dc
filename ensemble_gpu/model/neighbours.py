"""The nearest training rows, and the model that averages what they hold.

    F(x) = c + sum over rounds t of the mean over i in N_K(x) of v_ti

N_K(x) are the K rows with the least Euclidean distance to x; of equally distant ones the first.
|x - x_i|^2 = |x|^2 - 2 x x_i + |x_i|^2 of all rows is one matrix product, block by block; from its
K least and a few more, which rounding might have put in the wrong order, the K are chosen by
sums of squared differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.smallest import smallest
from ensemble_gpu.model.base import (
    Model,
    canonical_bytes,
    check_array,
    check_length,
    read_only,
)
from ensemble_gpu.model.inputs import check_complete, rows_at_work
from ensemble_gpu.model.stages import stages

# Cells of a block of distances: 32 MB.
BLOCK_CELLS = 1 << 22
# Rows beyond the K nearest whose distances are computed exactly.
MORE = 8


class Nearest:
    """Finds the nearest of rows X [n, p], which lie in `where`."""

    def __init__(self, X: Any, where: Where) -> None:
        xp = where.xp
        self.where, self.X = where, where.as_float64(X)
        self.centre = _centre(self.X, where)
        self.centred = self.X - self.centre
        self.twice = -2.0 * self.centred.T
        self.norms = xp.sum(self.centred * self.centred, axis=1)[None, :]

    def blocks(self, Q: Any, k: int, own: bool = False) -> Iterator[tuple[slice, Any, Any]]:
        """(rows, positions [b, k], squared distances [b, k]) of blocks of Q, nearest first.

        `own`: Q are the rows themselves, and none is its own neighbour.
        """
        n, size = self.X.shape[0], max(1, BLOCK_CELLS // self.X.shape[0])
        for start in range(0, Q.shape[0], size):
            rows = slice(start, min(start + size, Q.shape[0]))
            few = min(n, k + MORE)
            yield rows, *self._nearest(self.where.as_float64(Q[rows, :]), start, k, few, own)

    def _nearest(self, Q: Any, start: int, k: int, few: int, own: bool) -> tuple[Any, Any]:
        xp, where, p = self.where.xp, self.where, self.X.shape[1]
        Q = Q - self.centre
        b = Q.shape[0]
        distance = xp.matmul(Q, self.twice) + self.norms  # but for |x|^2, which all share
        far = where.full(np.inf)
        if own:
            each = xp.arange(self.X.shape[0], device=where.device)[None, :]
            me = xp.arange(start, start + b, device=where.device)[:, None]
            distance = xp.where(each == me, far, distance)
        at = smallest(distance, few, where)
        apart = xp.reshape(xp.take(self.centred, xp.reshape(at, (-1,)), axis=0), (b, few, p))
        apart = apart - Q[:, None, :]
        exact = xp.sum(apart * apart, axis=2)
        if own:
            exact = xp.where(at == me, far, exact)
        order = xp.argsort(exact, axis=1, stable=True)[:, :k]
        return xp.take_along_axis(at, order, axis=1), xp.take_along_axis(exact, order, axis=1)


def _centre(X: Any, where: Where) -> Any:
    """About the middle of the rows [1, p]: distances there lose the fewest digits.

    A multiple of the power of two below a feature's range, so that whole numbers stay whole, and
    distances between them exact.
    """
    xp = where.xp
    low, high = (where.host(f(X, axis=0)) for f in (xp.min, xp.max))
    spread = high - low
    unit = np.ldexp(1.0, np.frexp(np.where(spread > 0.0, spread, 1.0))[1] - 1)
    middle = np.rint((0.5 * low + 0.5 * high) / unit) * unit
    return where.put(np.where(spread > 0.0, middle, low)[None, :])


def held_by(at: Any, values: Any, where: Where) -> Any:
    """What neighbours at [b, k] hold of values [n, outputs]: [b, k, outputs]."""
    found = where.xp.take(values, where.xp.reshape(at, (-1,)), axis=0)
    return where.xp.reshape(found, (*at.shape, values.shape[1]))


def neighbour_means(at: Any, values: Any, where: Where) -> Any:
    """The linear smoother (S v)(x) = mean over i in N_K(x) of v_i: [b, outputs]."""
    return where.xp.mean(held_by(at, values, where), axis=1)


def means_of_each(at: Any, values: Any, where: Where) -> Any:
    """The same for 1, 2, ... k neighbours at once: [b, k, outputs]."""
    xp, k = where.xp, at.shape[1]
    numbers = xp.astype(xp.arange(1, k + 1, device=where.device), xp.float64)
    return xp.cumulative_sum(held_by(at, values, where), axis=1) / numbers[None, :, None]


class NeighbourModel(Model):
    """An immutable mean over nearest rows; call it with arrays of any library.

    Parameters
    ----------
    rows : array [n, p], as distances are measured
    values : array [rounds, n, outputs]: what each row adds in a round
    n_neighbors : int, K
    shift, scale : arrays [p]: distances are those of (x - shift) / scale
    intercept : array [outputs]
    """

    _format = b"ensemble_gpu.NeighbourModel.1"

    rows: np.ndarray
    values: np.ndarray
    n_neighbors: int
    shift: np.ndarray
    scale: np.ndarray
    intercept: np.ndarray

    def __init__(
        self, rows: Any, values: Any, *, n_neighbors: int, shift: Any, scale: Any, intercept: Any
    ) -> None:
        arrays = {
            "rows": rows, "values": values, "shift": shift, "scale": scale, "intercept": intercept,
        }  # fmt: skip
        self._assign(
            n_neighbors=int(n_neighbors),
            **{name: read_only(array, np.float64) for name, array in arrays.items()},
        )
        check_array("rows", self.rows, (None, None))
        n, p = self.rows.shape
        check_array("values", self.values, (None, n, None))
        for name in ("shift", "scale"):
            check_array(name, getattr(self, name), (p,))
        check_array("intercept", self.intercept, self.values.shape[2:])
        if not 1 <= self.n_neighbors <= n:
            raise ValueError(f"n_neighbors must be from 1 to {n}; got {self.n_neighbors!r}.")

    def __getstate__(self) -> dict[str, Any]:
        names = ("rows", "values", "n_neighbors", "shift", "scale", "intercept")
        return {name: getattr(self, name) for name in names}

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def n_features(self) -> int:
        return self.rows.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.values.shape[2]

    def __repr__(self) -> str:
        n, p = self.rows.shape
        return (
            f"NeighbourModel({self.n_neighbors} of {n} rows; {p} features, {self.n_outputs} "
            f"output(s), {len(self)} round(s))"
        )

    def first(self, n_rounds: int) -> NeighbourModel:
        """The model of the first n rounds (of all, where there are fewer)."""
        check_length("n_rounds", n_rounds)
        return NeighbourModel(**{**self.__getstate__(), "values": self.values[:n_rounds]})

    def _canonical(self) -> Iterator[bytes]:
        yield canonical_bytes([*self.values.shape, self.n_features, self.n_neighbors])
        for array in (self.rows, self.values, self.shift, self.scale, self.intercept):
            yield canonical_bytes(array)

    def measured(self, X: Any, where: Where) -> Any:
        """X as distances are measured."""
        check_complete(where.as_float64(X), where, "a model of neighbours")
        shift, scale = (where.put(array)[None, :] for array in (self.shift, self.scale))
        return (where.as_float64(X) - shift) / scale

    def nearest(self, where: Where) -> Nearest:
        """Finds the nearest rows of X in `where`, to which the rows are copied."""
        return Nearest(where.put(self.rows), where)

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, outputs], in the namespace and on the device of X."""
        (F,) = self.staged(X, [len(self)])
        return F

    def staged(
        self, X: Any, rounds: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Iterator[Any]:
        """F after each round, starting with the first, or after the chosen ones (ascending)."""
        X, source, where = rows_at_work(X, self.n_features)
        at = self._neighbours(X, where)
        total = where.zeros((X.shape[0], self.n_outputs), where.xp.float64)
        total = total + where.put(self.intercept)[None, :]
        for first, last in stages(rounds, len(self)):
            if last > first:
                held = where.put(self.values[first:last].sum(axis=0))
                total = total + neighbour_means(at, held, where)
            yield source.hand_over(total + 0.0)  # a copy: the caller may write to it

    def _neighbours(self, X: Any, where: Where) -> Any:
        search = self.nearest(where)
        blocks = [at for _, at, _ in search.blocks(self.measured(X, where), self.n_neighbors)]
        return where.xp.concat(blocks) if len(blocks) != 1 else blocks[0]
