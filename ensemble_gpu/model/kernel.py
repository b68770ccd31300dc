"""Gaussian kernels: F(x) = c + sum over rounds t and rows i of a_ti exp(-|x - x_i|^2 / (2 s^2))."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.model.base import Model, canonical_bytes, check_array, check_length, read_only
from ensemble_gpu.model.inputs import rows_at_work
from ensemble_gpu.model.stages import stages

# Cells of a block of the kernel matrix: 32 MB.
BLOCK_CELLS = 1 << 22


def squared_distances(X: Any, Z: Any, where: Where) -> Any:
    """|x - z|^2 of float64 rows X [m, p] and Z [n, p]: [m, n], from one product."""
    xp = where.xp
    centre = xp.mean(Z, axis=0)[None, :]
    X, Z = X - centre, Z - centre
    x, z = (xp.sum(rows * rows, axis=1) for rows in (X, Z))
    apart = x[:, None] - 2.0 * xp.matmul(X, Z.T) + z[None, :]
    return xp.maximum(apart, where.full(0.0))


def gaussian(X: Any, Z: Any, width: float, where: Where) -> Any:
    """exp(-|x - z|^2 / (2 width^2)) of float64 rows X [m, p] and Z [n, p]: [m, n]."""
    return where.xp.exp(squared_distances(X, Z, where) * (-0.5 / (width * width)))


class KernelModel(Model):
    """An immutable sum of Gaussian kernels; call it with arrays of any library.

    Parameters
    ----------
    rows : array [n, p], the centres
    coefficients : array [rounds, n]
    width : float, s
    intercept : array [1]
    """

    _format = b"ensemble_gpu.KernelModel.1"
    n_outputs = 1

    rows: np.ndarray
    coefficients: np.ndarray
    width: float
    intercept: np.ndarray

    def __init__(self, rows: Any, coefficients: Any, width: float, intercept: Any) -> None:
        self._assign(
            rows=read_only(rows, np.float64),
            coefficients=read_only(coefficients, np.float64),
            width=float(width),
            intercept=read_only(intercept, np.float64),
        )
        check_array("rows", self.rows, (None, None))
        check_array("coefficients", self.coefficients, (None, len(self.rows)))
        check_array("intercept", self.intercept, (1,))
        if not 0.0 < self.width < np.inf:
            raise ValueError(f"width must be a positive number; got {self.width!r}.")

    def __getstate__(self) -> dict[str, Any]:
        names = ("rows", "coefficients", "width", "intercept")
        return {name: getattr(self, name) for name in names}

    def __len__(self) -> int:
        return self.coefficients.shape[0]

    @property
    def n_features(self) -> int:
        return self.rows.shape[1]

    def __repr__(self) -> str:
        n, p = self.rows.shape
        return f"KernelModel({n} centres, {p} features, width {self.width:g}, {len(self)} round(s))"

    def first(self, n_rounds: int) -> KernelModel:
        """The model of the first n rounds (of all, where there are fewer)."""
        check_length("n_rounds", n_rounds)
        return KernelModel(**{**self.__getstate__(), "coefficients": self.coefficients[:n_rounds]})

    def _canonical(self) -> Iterator[bytes]:
        yield canonical_bytes([*self.coefficients.shape, self.n_features])
        for array in (self.rows, self.coefficients, np.array([self.width]), self.intercept):
            yield canonical_bytes(array)

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, 1], in the namespace and on the device of X."""
        (F,) = self.staged(X, [len(self)])
        return F

    def staged(
        self, X: Any, rounds: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Iterator[Any]:
        """F after each round, starting with the first, or after the chosen ones (ascending)."""
        X, source, where = rows_at_work(X, self.n_features)
        added = [self.coefficients[a:b].sum(axis=0) for a, b in stages(rounds, len(self))]
        if not added:
            return
        F = where.xp.cumulative_sum(self._products(X, np.array(added), where), axis=1)
        F = F + where.put(self.intercept)[None, :]
        for k in range(len(added)):
            yield source.hand_over(F[:, k : k + 1] + 0.0)  # a copy: the caller may write to it

    def _products(self, X: Any, coefficients: np.ndarray, where: Where) -> Any:
        """Sums over the rows [n, stages], block by block."""
        xp, Z = where.xp, where.put(self.rows)
        a = where.put(np.ascontiguousarray(coefficients.T))
        size = max(1, BLOCK_CELLS // max(1, self.rows.shape[0]))
        blocks = []
        for start in range(0, X.shape[0], size):
            block = where.as_float64(X[start : min(start + size, X.shape[0]), :])
            blocks.append(xp.matmul(gaussian(block, Z, self.width, where), a))
        return blocks[0] if len(blocks) == 1 else xp.concat(blocks)
