"""What every estimator does with X: check it, find out where it lives, evaluate the model there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import NUMPY, Where, is_array, locate
from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.data.bins import PartBins, SharedBins
from ensemble_gpu.data.frames import check_columns
from ensemble_gpu.data.validation import (
    check_finite,
    check_numbers,
    check_shape,
    check_sparse_numbers,
    naming,
)

PLAIN = (np.dtype(np.float32), np.dtype(np.float64))

# How scikit-learn is asked to read X: our own checks of shape and values follow.
ANYTHING_NUMERIC: dict[str, Any] = {
    "dtype": "numeric", "ensure_all_finite": False, "ensure_2d": False, "allow_nd": True,
    "ensure_min_samples": 0, "ensure_min_features": 0,
}  # fmt: skip


class ArrayEstimator(BaseEstimator):
    """Inputs and outputs of an estimator: arrays in, arrays of the same library out.

    A subclass fits `n_features_in_` and `model_`, called with X to give outputs [n, outputs].
    """

    missing: str
    device: str | None
    n_jobs: int | None
    n_features_in_: int
    model_: Any

    # Fitted and called with arrays of any library and device (model/committee.py asks).
    takes_any_array = True

    # Bins that this fit shares with others.
    _bins: SharedBins | PartBins | None = None

    # What `missing` may be.
    _missing_options: tuple[str, ...] = ("abstain", "learn", "error")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.sparse = True
        return tags

    @contextmanager
    def _sharing(self, bins: SharedBins | PartBins | None) -> Iterator[None]:
        """Fits inside the block cut features at the bins given (None: at those of their rows)."""
        self._bins = bins
        try:
            yield
        finally:
            del self._bins

    def _reads_codes_alone(self) -> bool:
        """Whether a fit that is given the codes of its rows (PartBins) looks at no value of X."""
        return False

    def _contained(self) -> tuple[str, ...]:
        """Parameters of which one fit contains all values, with the others as they are."""
        return ()

    def _fit_all(self, name: str, values: list[Any], X: Any, y: Any, **weights: Any) -> list[Any]:
        """Estimators as fits with each of the values of a contained parameter would leave them."""
        raise NotImplementedError

    def _for_order(self) -> Any:
        """An estimator, perhaps cheaper, whose predictions have the same order and labels."""
        return self

    def _check_values(self, name: str, values: list[Any]) -> None:
        """Raise where one of the values is not allowed."""
        for value in values:
            self._with(**{name: value})._check_parameters()

    def _with(self, **attributes: Any) -> Any:
        """A copy of the fitted estimator with other parameters and another model."""
        other = copy(self)
        other.__dict__.pop("_bins", None)
        other.__dict__.update(attributes)
        return other

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """An error or Ctrl-C leaves the estimator as it was."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _forget(self) -> None:
        """Remove what an earlier fit has left."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _check_X(self, X: Any, *, reset: bool, name: str = "X") -> Any:
        """X as a float array where it lives; n_features_in_ and names set or compared."""
        if not reset and self._is_plain(X):
            self._check_finite(X, NUMPY, name)
            return X
        where = locate(X)
        if is_sparse(X):
            return self._check_sparse(X, reset=reset, name=name)
        if where is NUMPY:
            check_columns(X, name, self._about_labels if reset else "They were numbers in fit.")
            with naming(name):
                X = validate_data(self, X, reset=reset, **ANYTHING_NUMERIC)
        self._check_width(X, reset, name)
        X = check_numbers(X, where, name)
        self._check_finite(X, where, name)
        return X

    def _check_width(self, X: Any, reset: bool, name: str) -> None:
        check_shape(X, name)
        if reset:
            self.n_features_in_ = X.shape[1]
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{name} has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )

    def _check_sparse(self, X: Any, *, reset: bool, name: str) -> Any:
        """A sparse matrix as CSR of floats, every entry once (arrays/sparse.py)."""
        check_shape(X, name)
        with naming(name):
            validate_data(self, X, reset=reset, skip_check_array=True)
        self._check_width(X, reset, name)
        X = check_sparse_numbers(X, name)
        self._check_finite(X.data[:, None], NUMPY, name)
        return X

    def _check_finite(self, X: Any, where: Where, name: str) -> None:
        others = None
        if self.missing == "error":
            others = tuple(option for option in self._missing_options if option != "error")
        check_finite(X, where, name, others)

    @property
    def _about_labels(self) -> str:
        """What to do with columns that hold no numbers."""
        if hasattr(self, "categorical_features"):
            return (
                "Name columns of labels in categorical_features; turn others, such as dates, into "
                "numbers."
            )
        return "Turn them into numbers first (labels: sklearn.preprocessing.OrdinalEncoder)."

    def _is_plain(self, X: Any) -> bool:
        """A NumPy array that needs no conversion: the general checks would find nothing.

        They take longer than the prediction of a single row.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in PLAIN
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _inputs(self, X: Any) -> tuple[Any, Where, Where, Any]:
        """X as floats, where it came from, where to compute, the float dtype of the results."""
        if not hasattr(self, "model_"):
            check_is_fitted(self)
        home = locate(X)
        narrow = (is_array(X) or is_sparse(X)) and X.dtype == home.xp.float32
        X = self._check_X(to_workplace(X, "cpu" if self.device == "cpu" else None), reset=False)
        where = locate(X)
        return X, home, where, where.xp.float32 if narrow else where.xp.float64

    def _outputs(self, X: Any) -> tuple[Any, Where, Where]:
        """F(X) [n, outputs], where X came from, where F is."""
        X, home, where, dtype = self._inputs(X)
        return where.xp.astype(self.model_(X, n_jobs=self.n_jobs), dtype), home, where
