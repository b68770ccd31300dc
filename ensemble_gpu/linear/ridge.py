"""Ridge regression, where the arrays live: all penalties from one decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.data.parameters import check_not_negative
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.estimators.dense import DenseEstimator
from ensemble_gpu.estimators.reading import Reading, read
from ensemble_gpu.estimators.regressor import ArrayRegressor
from ensemble_gpu.learners.ridge import (
    Decomposition,
    coefficients,
    decompose,
    degrees_of_freedom,
    leverages,
    smooth,
)
from ensemble_gpu.model.linear import LinearModel


class RidgePath(NamedTuple):
    """Fits of several penalties, on the host.

    `coef` [penalties, p], `intercept`, `degrees_of_freedom` (the trace of the smoother) and
    `leave_one_out`, the weighted mean of (y_i - prediction of row i by the others)^2, [penalties].
    """

    l2: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    degrees_of_freedom: np.ndarray
    leave_one_out: np.ndarray


class RidgeRegressor(ArrayRegressor, DenseEstimator):
    """Least squares with a penalty on the coefficients, in closed form.

        min over b0, b of sum_i w_i (y_i - b0 - b x_i)^2 + l2 |b|^2

    Parameters
    ----------
    l2 : float >= 0, default=1.0
        The penalty; 0 is least squares (of the least norm, where there are several).
    device : {None, "cpu", "cuda", "auto"}, default=None
        Where to fit; None follows the input.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as in scikit-learn
    coef_ : ndarray [p]
    intercept_ : float
    model_ : LinearModel
    """

    model_: LinearModel

    def __init__(self, l2: float = 1.0, *, device: str | None = None) -> None:
        self.l2 = l2
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeRegressor:
        """Fit to X [n, p] and y [n], with weights >= 0.

        Returns
        -------
        self
        """
        with self._fitting():
            check_not_negative("l2", self.l2)
            self._check_parameters()
            self._forget()
            parts, rows, _ = self._decomposed(X, y, sample_weight)
            self._keep(parts, rows, float(self.l2))
        return self

    def _keep(self, parts: Decomposition, rows: Rows, l2: float) -> Any:
        """Fitted attributes for a penalty."""
        b, constant = map(parts.where.host, coefficients(parts, rows.target[:, None], l2))
        self.coef_, self.intercept_ = b[0].copy(), float(constant[0])
        self.model_ = LinearModel(b[None, :, :], constant[None, :], np.zeros(1))
        return self

    def _contained(self) -> tuple[str, ...]:
        """One decomposition serves all penalties."""
        return ("l2",)

    def _fit_all(self, name: str, values: list[Any], X: Any, y: Any, **weights: Any) -> list[Any]:
        for l2 in values:
            check_not_negative("l2", l2)
        self._check_parameters()
        self._forget()
        parts, rows, _ = self._decomposed(X, y, weights.get("sample_weight"))
        return [self._with(l2=l2)._keep(parts, rows, float(l2)) for l2 in values]

    def _decomposed(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Decomposition, Rows, Reading]:
        reading = read(self, X, y, sample_weight)
        rows, where = reading.rows, reading.where
        if reading.keep is not None:
            rows = rows.take(where.xp.nonzero(reading.keep)[0])
        return decompose(rows.X, rows.weights, where), rows, reading

    def path(self, X: Any, y: Any, l2: Sequence[float], sample_weight: Any = None) -> RidgePath:
        """Fits of all penalties `l2` from one decomposition; the estimator stays as it is."""
        penalties = np.array(l2, dtype=np.float64)
        if penalties.ndim != 1 or not len(penalties):
            raise ValueError(f"l2 must be a list of penalties >= 0; got {l2!r}.")
        for one in penalties.tolist():
            check_not_negative("l2", one)
        fresh = RidgeRegressor(device=self.device)
        parts, rows, reading = fresh._decomposed(X, y, sample_weight)
        where, y = reading.where, rows.target[:, None]
        found = [coefficients(parts, y, one) for one in penalties.tolist()]
        left_out = []
        for one in penalties.tolist():
            residual = (y - smooth(parts, y, one)) / (1.0 - leverages(parts, one))
            host = where.host(residual)[:, 0]
            weights = None if rows.weights is None else where.host(rows.weights)
            left_out.append(np.average(host * host, weights=weights))
        return RidgePath(
            penalties,
            np.array([where.host(b)[0] for b, _ in found]),
            np.array([float(constant[0]) for _, constant in found]),
            np.array([degrees_of_freedom(parts, one) for one in penalties.tolist()]),
            np.array(left_out),
        )

    def predict(self, X: Any) -> Any:
        """The predicted value of every row [n], in the namespace and on the device of X."""
        F, home, _ = self._outputs(X)
        return home.hand_over(F[:, 0])
