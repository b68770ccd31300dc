"""Linear functions: F_k(x) = c_k + sum over rounds t of (a_tk + b_tk x)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.model.base import Model, canonical_bytes, check_array, check_length, read_only
from ensemble_gpu.model.inputs import check_complete, rows_at_work
from ensemble_gpu.model.spline import Shape
from ensemble_gpu.model.stages import stages


class LinearModel(Model):
    """An immutable linear function; call it with arrays of any library.

    Parameters
    ----------
    coefficients : array [rounds, outputs, p]
    constants : array [rounds, outputs]
    intercept : array [outputs]
    """

    _format = b"ensemble_gpu.LinearModel.1"

    coefficients: np.ndarray
    constants: np.ndarray
    intercept: np.ndarray

    def __init__(self, coefficients: Any, constants: Any, intercept: Any) -> None:
        self._assign(
            coefficients=read_only(coefficients, np.float64),
            constants=read_only(constants, np.float64),
            intercept=read_only(intercept, np.float64),
        )
        check_array("coefficients", self.coefficients, (None, None, None))
        check_array("constants", self.constants, self.coefficients.shape[:2])
        check_array("intercept", self.intercept, self.coefficients.shape[1:2])

    def __getstate__(self) -> dict[str, Any]:
        names = ("coefficients", "constants", "intercept")
        return {name: getattr(self, name) for name in names}

    def __len__(self) -> int:
        return self.coefficients.shape[0]

    @property
    def n_outputs(self) -> int:
        return self.coefficients.shape[1]

    @property
    def n_features(self) -> int:
        return self.coefficients.shape[2]

    def __repr__(self) -> str:
        return (
            f"LinearModel({self.n_features} features, {self.n_outputs} output(s), {len(self)} "
            "round(s))"
        )

    def shape_function(self, feature: int) -> Shape:
        """What feature `feature` adds to F of one output: the line b x."""
        return Shape(np.array([0.0, 1.0]), np.array([0.0, self.coefficients[:, 0, feature].sum()]))

    def first(self, n_rounds: int) -> LinearModel:
        """The model of the first n rounds (of all, where there are fewer)."""
        check_length("n_rounds", n_rounds)
        return LinearModel(self.coefficients[:n_rounds], self.constants[:n_rounds], self.intercept)

    def _canonical(self) -> Iterator[bytes]:
        yield canonical_bytes(self.coefficients.shape)
        for array in (self.coefficients, self.constants, self.intercept):
            yield canonical_bytes(array)

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, outputs], in the namespace and on the device of X."""
        (F,) = self.staged(X, [len(self)])
        return F

    def staged(
        self, X: Any, rounds: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Iterator[Any]:
        """F after each round, starting with the first, or after the chosen ones (ascending)."""
        X, source, where = rows_at_work(X, self.n_features)
        X = where.as_float64(X)
        check_complete(X, where, "a linear model")
        for _, last in stages(rounds, len(self)):
            b = self.coefficients[:last].sum(axis=0)
            c = self.constants[:last].sum(axis=0) + self.intercept
            yield source.hand_over(line(X, b, c, where))


def line(X: Any, coefficients: np.ndarray, constant: np.ndarray, where: Where) -> Any:
    """Constant + X coefficients' [n, outputs] of float64 X."""
    b = where.put(np.ascontiguousarray(coefficients.T))
    return where.xp.matmul(X, b) + where.put(constant)[None, :]
