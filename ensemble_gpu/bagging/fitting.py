"""One fit for both bagged estimators: parameters in, bags, a learner on each, what is left out."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.arrays.positions import encode
from ensemble_gpu.arrays.sparse import is_sparse, take_rows
from ensemble_gpu.bagging.columns import Columns, resolved
from ensemble_gpu.bagging.learners import (
    OneClass,
    fit_learner,
    in_threads,
    make_learner,
    take_features,
)
from ensemble_gpu.bagging.out_of_bag import forget_out_of_bag, mean_out_of_bag
from ensemble_gpu.bagging.settings import check_parameters
from ensemble_gpu.data.bags import Bags, draw_features, make_bags
from ensemble_gpu.data.keys import repetitions
from ensemble_gpu.data.parameters import count_features
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.data.sampling import draw_seed
from ensemble_gpu.estimators.base import ArrayEstimator
from ensemble_gpu.estimators.categorical import CategoricalEstimator
from ensemble_gpu.estimators.reading import read
from ensemble_gpu.estimators.shape import Shape
from ensemble_gpu.explaining.bags import check_bag, explain_bag
from ensemble_gpu.learners.foreign import tags_of, takes_weights
from ensemble_gpu.model.committee import check_reach


class Bagging(CategoricalEstimator):
    """`fit` of a bag of learners. A subclass has the default learner, and joins the predictions."""

    # Whether NaN is taken is the learner's choice: `_check_X`.
    missing = "abstain"
    _kind: str

    estimators_: list[Any]
    estimators_features_: list[np.ndarray]
    bags_: list[Bags]
    classes_: np.ndarray
    _fitted_for: Shape

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: float | int = 1.0,
        max_features: float | int = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: Any = False,
        warm_start: bool = False,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _tree(self) -> Any:
        """The learner where none is given."""
        raise NotImplementedError

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        """(target, weights) of the rows, validated."""
        raise NotImplementedError

    def _labels(self, target: Any, where: Where) -> np.ndarray | None:
        """Class of every row on the host; None for a regression."""
        raise NotImplementedError

    def _answer(self, learner: Any, X: Any) -> Any:
        """One learner's predictions of X [n, ...], to be averaged: float64."""
        raise NotImplementedError

    def _score_out_of_bag(
        self, answers: np.ndarray, seen: np.ndarray, target: np.ndarray, weights: Any
    ) -> None:
        """Set oob_score_ and the predictions from mean answers; `seen` are the rows with any."""
        raise NotImplementedError

    def _learner(self) -> Any:
        return self._tree() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = tags_of(self._learner())
        if learner is not None:
            tags.input_tags.allow_nan = learner.input_tags.allow_nan
            tags.input_tags.positive_only = learner.input_tags.positive_only
            tags.input_tags.sparse = learner.input_tags.sparse
        return tags

    def _check_X(self, X: Any, *, reset: bool, name: str = "X") -> Any:
        X = super()._check_X(X, reset=reset, name=name)
        tags = tags_of(self.estimator_)
        if tags is not None and not tags.input_tags.allow_nan:
            xp = locate(X).xp
            if bool(xp.any(xp.isnan(X.data if is_sparse(X) else X))):
                raise ValueError(
                    f"Input {name} contains NaN, which {type(self.estimator_).__name__} does not "
                    "accept: fill it in (sklearn.impute), or bag a learner that takes it."
                )
        return X

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit a clone of the learner on every bag.

        Parameters
        ----------
        X : array [n, p] of any array-API library, frame, matrix of scipy.sparse or list
        y : labels or numbers [n]
        sample_weight : weights >= 0. Integers (of mean at most 16) are repetitions of rows, and
            give the model of the repeated rows. Others multiply the counts; for a learner that
            takes no weights rows are drawn in proportion to them.

        Returns
        -------
        self
        """
        with self._fitting():
            self._check_parameters()
            more = self.warm_start and hasattr(self, "estimators_")
            if not more:
                self._forget()
            with gpu.current(locate(X), "bagging"):
                self._fit(X, y, sample_weight, more)
        return self

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _fit(self, X: Any, y: Any, w: Any, more: bool) -> None:
        self.estimator_ = self._learner()
        rows, columns = self._read(X, y, w)
        X, target, where = rows.X, rows.target, locate(rows.X)
        check_reach(self.estimator_, where)
        weights = None if rows.weights is None else where.host(rows.weights)
        learners, features, bags = [], [], []
        if not more:
            self._fitted_for = Shape.of(self)
        else:
            self._check_more()
            self._categories = self._fitted_for.categories  # equal, but may have other numbers
            learners, features, bags = (
                list(old) for old in (self.estimators_, self.estimators_features_, self.bags_)
            )
        new = range(len(learners), self.n_estimators)
        if new or self.oob_score:
            own = self._make_bags(X, target, weights, bags)
            labels = self._labels(target, where)
            calls = ((number, own, X, target, labels, columns) for number in new)
            for learner, drawn in in_threads(self._fit_one, calls, self.n_jobs):
                learners.append(learner)
                features.append(drawn)
                bags.append(own)
        self.estimators_, self.estimators_features_, self.bags_ = learners, features, bags
        self._set_out_of_bag(X, where.host(target), weights)

    def _read(self, X: Any, y: Any, w: Any) -> tuple[Rows, Columns]:
        """Rows where the learners work, and the learners' parameters about features."""
        reading = read(self, X, y, w)
        rows, self._categories = reading.encoded(self._feature_parameter("max_bins"))
        given = self.estimator_.get_params(deep=False)
        names = getattr(self, "feature_names_in_", None)
        return rows, resolved(given, self._categories, self.n_features_in_, names)

    def _feature_parameter(self, name: str) -> Any:
        return self.estimator_.get_params(deep=False).get(name)

    def _device_of_rows(self) -> str | None:
        """A GPU for device="auto" only where the learner can use one."""
        ours = isinstance(self.estimator_, ArrayEstimator)
        return self.device if ours or self.device == "cuda" else None

    def _check_more(self) -> None:
        """Raise where a warm start cannot go on."""
        n_fitted = len(self.estimators_)
        self._fitted_for.check(Shape.of(self))
        if self.n_estimators < n_fitted:
            raise ValueError(
                f"n_estimators must be at least the {n_fitted} that are fitted, with "
                f"warm_start=True; got {self.n_estimators}."
            )
        if self.n_estimators == n_fitted:
            warnings.warn(
                "warm_start=True and n_estimators is the number that is fitted: nothing is added.",
                UserWarning,
                stacklevel=4,
            )

    def _make_bags(self, X: Any, target: Any, weights: Any, earlier: list[Bags]) -> Bags:
        seed = earlier[0].seed if earlier else draw_seed(self.random_state)
        size = self.max_samples
        bags = make_bags(
            X,
            target,
            *repetitions(weights),
            seed=seed,
            replace=bool(self.bootstrap),
            max_samples=int(size) if isinstance(size, numbers.Integral) else float(size),
            takes_weights=takes_weights(self.estimator_),
        )
        if not self.oob_score:
            return bags
        if bags.rows is None:
            raise ValueError(
                f"oob_score={self.oob_score!r} needs rows out of the bag; bootstrap=False and "
                f"max_samples={size!r} leave none out. Use bootstrap=True or a smaller max_samples."
            )
        same = (old.rows is not None and np.array_equal(old.rows, bags.rows) for old in earlier)
        if not all(same):
            raise ValueError(
                "oob_score with warm_start=True needs the rows and weights of the earlier fits; X, "
                "y or sample_weight has changed. Use oob_score=False, or fit anew."
            )
        return bags

    def _fit_one(
        self,
        number: int,
        bags: Bags,
        X: Any,
        target: Any,
        labels: np.ndarray | None,
        columns: Columns,
    ) -> tuple[Any, np.ndarray]:
        """Learner `number` and its features: they depend on the seed, the number and the data."""
        features = draw_features(
            bags.seed,
            number,
            self.n_features_in_,
            count_features(self.max_features, self.n_features_in_),
            bool(self.bootstrap_features),
        )
        counts = bags.counts(number)
        absent = 0
        if labels is not None:
            classes = np.bincount(labels, weights=counts, minlength=len(self.classes_))
            absent = int((classes == 0.0).sum())
            if absent == len(classes) - 1:
                return OneClass(int(np.argmax(classes))).fit(X, target), features
        learner = make_learner(self.estimator_, bags.seed, number, columns.seen(features))
        with gpu.current(locate(X), "bagging"):
            X = take_features(X, features)
            return fit_learner(learner, X, target, bags, counts, absent=absent), features

    def _inputs(self, X: Any) -> tuple[Any, Where, Where, Any]:
        check_is_fitted(self)
        X, home, where, dtype = super()._inputs(X)
        return encode(X, self._categories.values, where), home, where, dtype

    def _answers(self, X: Any, method: Any) -> Any:
        """Of all learners, one after the other: `method(learner, its columns of X)`."""

        def answer(learner: Any, features: np.ndarray) -> Any:
            with gpu.current(locate(X), "bagging"):
                return method(learner, take_features(X, features))

        pairs = zip(self.estimators_, self.estimators_features_, strict=True)
        return in_threads(answer, pairs, self.n_jobs)

    def _explained(self, X: Any) -> tuple[Any, np.ndarray]:
        self._check_explainable()
        return explain_bag(self, X)

    def _check_explainable(self) -> None:
        check_bag(self)

    def _outputs_at(self, X: Any) -> Any:
        answers = list(self._answers(X, self._answer))
        mean = sum(answers[1:], start=answers[0]) / len(answers)
        return mean if mean.ndim == 2 else mean[:, None]

    def _mean_answer(self, X: Any) -> tuple[Any, Where, Where]:
        """Mean over the learners, where X came from, where the mean is."""
        X, home, where, dtype = self._inputs(X)
        check_reach(self.estimator_, where)
        total: Any = None
        for answer in self._answers(X, self._answer):
            total = answer if total is None else total + answer
        return where.xp.astype(total / len(self.estimators_), dtype), home, where

    def _set_out_of_bag(self, X: Any, target: np.ndarray, weights: Any) -> None:
        forget_out_of_bag(self)
        if not self.oob_score:
            return
        where = locate(X)

        def answer(number: int, rows: np.ndarray) -> np.ndarray:
            with gpu.current(where, "bagging"):
                left_out = take_rows(X, where.put(rows))
                left_out = take_features(left_out, self.estimators_features_[number])
                return where.host(self._answer(self.estimators_[number], left_out))

        answers, seen = mean_out_of_bag(answer, self.bags_, weights, self.n_jobs)
        self._score_out_of_bag(answers, seen, target, weights)

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Rows of every bag in ascending order, each as often as it was drawn."""
        return [
            np.repeat(np.arange(bags.n_rows), bags.counts(number))
            for number, bags in enumerate(self.bags_)
        ]
