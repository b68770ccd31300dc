"""What every estimator does with X: check it, find out where it lives, evaluate the model there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import NUMPY, Where, is_array, locate
from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.arrays.streamed import RowSource
from ensemble_gpu.data.bins import PartBins, SharedBins
from ensemble_gpu.data.frames import check_columns
from ensemble_gpu.data.validation import (
    check_finite,
    check_numbers,
    check_shape,
    check_sparse_numbers,
    naming,
)
from ensemble_gpu.saving.saved import Saved

if TYPE_CHECKING:
    from ensemble_gpu.explaining.everywhere import GlobalExplanation
    from ensemble_gpu.explaining.explanation import Explanation

PLAIN = (np.dtype(np.float32), np.dtype(np.float64))

# How scikit-learn is asked to read X: our own checks of shape and values follow.
ANYTHING_NUMERIC: dict[str, Any] = {
    "dtype": "numeric", "ensure_all_finite": False, "ensure_2d": False, "allow_nd": True,
    "ensure_min_samples": 0, "ensure_min_features": 0,
}  # fmt: skip


class ArrayEstimator(Saved, BaseEstimator):
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

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Found once a class: scikit-learn asks for them in every clone."""
        return super()._get_param_names()

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

    def _why_no_batches(self) -> str | None:
        """Why `fit` takes no Batches; None: it takes them."""
        return f"{type(self).__name__} looks at values of X, not at bins alone"

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
        if isinstance(X, RowSource):
            raise TypeError(
                f"{name} must be an array, a frame, a sparse matrix or a list; got "
                f"{type(X).__name__}, which only `fit` of some estimators takes. predict_batches "
                "predicts batch by batch into a file."
            )
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

    def explain(self, X: Any) -> Explanation:
        """Shapley values: what each feature adds to the outputs of every row of X.

        Exact for sums of stumps: the table of a feature, minus its mean over the training rows.
        For trees and forests the path-dependent values of TreeSHAP, exact too: where a feature is
        not known, a row goes both ways of its tests by the shares of the training weight there. The
        outputs are those of `model_`: what `decision_function` returns of boosted classifiers,
        predictions before the link of boosted regressors, probabilities of tree classifiers (of
        bags, their means).

        Parameters
        ----------
        X : rows as `predict` takes them

        Returns
        -------
        Explanation
            `values` [n, features, outputs] and `base_values` [outputs], of the library and on the
            device of X; `to_shap()` makes of it what the plots of the package shap take
        """
        from ensemble_gpu.explaining.explanation import Explanation

        check_is_fitted(self)
        X, home, where, _ = self._inputs(X)
        values, base = self._explained(X)
        data = X if is_sparse(X) else home.hand_over(X)
        return Explanation(
            home.hand_over(values), home.hand_over(where.put(base)), data, self._feature_names(),
            self._output_names(len(base)),
        )  # fmt: skip

    def explain_global(
        self,
        X: Any = None,
        y: Any = None,
        *,
        metric: Any = None,
        sample_weight: Any = None,
        n_repeats: int = 5,
        random_state: int = 0,
    ) -> GlobalExplanation:
        """Importances, shape functions and partial dependence of the model as a whole.

        Parameters
        ----------
        X : rows over which |Shapley value| is averaged; None: of stumps the training rows, whose
            weights the model knows; of trees there is no such mean then
        y, metric, sample_weight : with y, the permutation importance on X: how much worse the
            metric (a name of `ensemble_gpu.metrics`, or a callable metric(y, prediction); None:
            log-loss or RMSE) becomes when the values of a feature are shuffled
        n_repeats : int, shuffles of each feature
        random_state : int, draws them

        Returns
        -------
        GlobalExplanation
        """
        from ensemble_gpu.explaining.everywhere import explain_globally

        check_is_fitted(self)
        return explain_globally(
            self, X, y, metric=metric, sample_weight=sample_weight, n_repeats=n_repeats,
            random_state=random_state,
        )  # fmt: skip

    def _explained(self, X: Any) -> tuple[Any, np.ndarray]:
        """Values [n, features, outputs] of rows where they are worked on, and base values."""
        from ensemble_gpu.explaining.explain import explained

        background = getattr(self, "background_", None)
        return explained(self.model_, background, X, self.n_jobs, type(self).__name__)

    def _check_explainable(self) -> None:
        """Raise where `_explained` would."""
        from ensemble_gpu.explaining.explain import forests_and_tables

        background = getattr(self, "background_", None)
        forests_and_tables(self.model_, background, type(self).__name__)

    def _outputs_at(self, X: Any) -> Any:
        """Outputs [n, outputs] of rows where they are worked on, as `_inputs` gives them."""
        return self.model_(X, n_jobs=self.n_jobs)

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        n = self.n_features_in_
        return [f"x{f}" for f in range(n)] if names is None else [str(name) for name in names]

    def _output_names(self, n_outputs: int) -> list[Any] | None:
        """The classes, where each has an output."""
        classes = getattr(self, "classes_", ())
        return np.asarray(classes).tolist() if len(classes) == n_outputs > 1 else None

    def _outputs(self, X: Any) -> tuple[Any, Where, Where]:
        """F(X) [n, outputs], where X came from, where F is."""
        X, home, where, dtype = self._inputs(X)
        return where.xp.astype(self.model_(X, n_jobs=self.n_jobs), dtype), home, where
