"""K nearest neighbours, where the arrays live: all K up to the largest at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.data.parameters import check_flag, check_integer
from ensemble_gpu.estimators.classifier import ArrayClassifier
from ensemble_gpu.estimators.dense import DenseEstimator
from ensemble_gpu.estimators.reading import read
from ensemble_gpu.estimators.regressor import ArrayRegressor
from ensemble_gpu.learners.neighbours import spread
from ensemble_gpu.model.neighbours import NeighbourModel, means_of_each

PARAMETERS = """
    Distances are Euclidean, from a matrix product in blocks of 32 MB; of equally distant rows the
    first are taken. `fit` keeps the rows.

    Parameters
    ----------
    n_neighbors : int, default=5
        K.
    standardise : bool, default=False
        Measure every feature in its standard deviations.
    device : {None, "cpu", "cuda", "auto"}, default=None
        Where to read the rows; None follows the input.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : as in scikit-learn
    model_ : NeighbourModel
    """


class _Neighbours(DenseEstimator):
    """`fit`, and predictions of every K."""

    n_neighbors: int
    standardise: bool
    model_: NeighbourModel

    def fit(self, X: Any, y: Any) -> Any:
        """Keep the rows X [n, p] and y [n].

        Returns
        -------
        self
        """
        with self._fitting():
            self._check_parameters()
            self._forget()
            reading = read(self, X, y, None)
            rows, where = reading.rows, reading.where
            check_integer("n_neighbors", self.n_neighbors, 1)
            self._check_enough(int(self.n_neighbors), rows.X.shape[0], "n_neighbors")
            shift, scale = spread(rows.X, bool(self.standardise), where)
            values = self._values(where.host(rows.target))
            kept = where.host(where.as_float64(rows.X))
            self.model_ = NeighbourModel(
                (kept - shift) / scale, values[None, :, :], n_neighbors=int(self.n_neighbors),
                shift=shift, scale=scale, intercept=np.zeros(values.shape[1]),
            )  # fmt: skip
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("standardise", self.standardise)

    def _contained(self) -> tuple[str, ...]:
        """The nearest rows are the first of more."""
        return ("n_neighbors",)

    def _fit_all(self, name: str, values: list[Any], X: Any, y: Any, **weights: Any) -> list[Any]:
        for k in values:
            check_integer("n_neighbors", k, 1)
        self.n_neighbors = max(values)
        self.fit(X, y, **weights)
        state = self.model_.__getstate__()
        return [
            self._with(n_neighbors=k, model_=NeighbourModel(**{**state, "n_neighbors": k}))
            for k in values
        ]  # fmt: skip

    def _outputs_of_each(self, models: Sequence[Any], X: Any) -> Iterator[tuple[Any, Where]]:
        """Outputs [n, outputs] of estimators that differ in n_neighbors, from one search."""
        F, _, where = self._path(X, max(one.n_neighbors for one in models))
        for one in models:
            yield F[one.n_neighbors - 1, ...], where

    def _check_enough(self, k: int, n_rows: int, name: str) -> None:
        if k > n_rows:
            raise ValueError(
                f"{name} must be an integer from 1 to {n_rows}, the number of rows (n_samples = "
                f"{n_rows}); got {k}."
            )

    def _values(self, target: np.ndarray) -> np.ndarray:
        """What a row adds to the mean [n, outputs]."""
        raise NotImplementedError

    def _of_each(self, X: Any, n_neighbors: Any, own: bool) -> tuple[list[Any], Where]:
        """Means [b, K, outputs] of blocks of rows for 1 ... K neighbours, and where they are."""
        model, where = self.model_, locate(X)
        k = model.n_neighbors if n_neighbors is None else n_neighbors
        check_integer("n_neighbors", k, 1)
        self._check_enough(int(k), model.rows.shape[0] - own, "n_neighbors")
        held = where.put(model.values.sum(axis=0))
        blocks = model.nearest(where).blocks(model.measured(X, where), int(k), own)
        return [means_of_each(at, held, where) for _, at, _ in blocks], where

    def _path(self, X: Any, n_neighbors: Any) -> tuple[Any, Where, Where]:
        """Outputs [K, n, outputs] of X."""
        X, home, _, _ = self._inputs(X)
        blocks, where = self._of_each(X, n_neighbors, own=False)
        xp = where.xp
        return xp.permute_dims(xp.concat(blocks), (1, 0, 2)), home, where

    def _left_out(self, n_neighbors: Any) -> np.ndarray:
        """Outputs [K, n, outputs] of the training rows, each without itself."""
        check_is_fitted(self)
        model = self.model_
        blocks, _ = self._of_each(model.rows * model.scale + model.shift, n_neighbors, own=True)
        return np.concatenate(blocks).transpose(1, 0, 2)

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[Any, Any]:
        """Distances and positions [n, K] of the nearest training rows, nearest first."""
        X, home, where, dtype = self._inputs(X)
        model = self.model_
        k = model.n_neighbors if n_neighbors is None else n_neighbors
        check_integer("n_neighbors", k, 1)
        self._check_enough(int(k), model.rows.shape[0], "n_neighbors")
        found = list(model.nearest(where).blocks(model.measured(X, where), int(k)))
        xp = where.xp
        at, distance = xp.concat([a for _, a, _ in found]), xp.concat([d for _, _, d in found])
        return home.hand_over(xp.astype(xp.sqrt(distance), dtype)), home.hand_over(at)


class NeighboursRegressor(ArrayRegressor, _Neighbours):
    __doc__ = (
        """The mean of y over the K nearest training rows.

    A linear smoother of trace n / K: at x the expected squared error is sigma^2 + (f(x) - mean of
    f over the neighbours)^2 + sigma^2 / K.
"""
        + PARAMETERS
    )

    def __init__(
        self, n_neighbors: int = 5, *, standardise: bool = False, device: str | None = None
    ) -> None:
        self.n_neighbors = n_neighbors
        self.standardise = standardise
        self.device = device

    def _values(self, target: np.ndarray) -> np.ndarray:
        return target.astype(np.float64)[:, None]

    def predict(self, X: Any) -> Any:
        """The mean of the K nearest rows [n], in the namespace and on the device of X."""
        F, home, _ = self._outputs(X)
        return home.hand_over(F[:, 0])

    def predict_each(self, X: Any, n_neighbors: int | None = None) -> Any:
        """Predictions [K, n] of 1, 2, ... K neighbours at once; None: K as in `fit`."""
        F, home, _ = self._path(X, n_neighbors)
        return home.hand_over(F[:, :, 0])

    def leave_one_out(self, n_neighbors: int | None = None) -> np.ndarray:
        """Predictions [K, n] of each training row by the others, for 1, 2, ... K neighbours."""
        return self._left_out(n_neighbors)[:, :, 0]


class NeighboursClassifier(ArrayClassifier, _Neighbours):
    __doc__ = """The vote of the K nearest training rows; of classes with equal votes the first.
""" + PARAMETERS.replace("feature_names_in_ :", "feature_names_in_, classes_ :")

    _fewest_classes = 1

    def __init__(
        self, n_neighbors: int = 5, *, standardise: bool = False, device: str | None = None
    ) -> None:
        self.n_neighbors = n_neighbors
        self.standardise = standardise
        self.device = device

    def _values(self, target: np.ndarray) -> np.ndarray:
        return (target[:, None] == np.arange(len(self.classes_))).astype(np.float64)

    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes [n, classes] among the K nearest rows."""
        F, home, _ = self._outputs(X)
        return home.hand_over(F)

    def predict(self, X: Any) -> Any:
        """The label that most of the K nearest rows have."""
        F, home, where = self._outputs(X)
        return home.hand_over(self._take_labels(where.xp.argmax(F, axis=1), where))

    def predict_each(self, X: Any, n_neighbors: int | None = None) -> Any:
        """Labels [K, n] of 1, 2, ... K neighbours at once; None: K as in `fit`."""
        F, home, where = self._path(X, n_neighbors)
        index = where.xp.argmax(F, axis=2)
        flat = self._take_labels(where.xp.reshape(index, (-1,)), where)
        return home.hand_over(flat.reshape(index.shape) if isinstance(flat, np.ndarray)
                              else where.xp.reshape(flat, index.shape))  # fmt: skip

    def leave_one_out(self, n_neighbors: int | None = None) -> np.ndarray:
        """Labels [K, n] of each training row by the others, for 1, 2, ... K neighbours."""
        return self.classes_[self._left_out(n_neighbors).argmax(axis=2)]
