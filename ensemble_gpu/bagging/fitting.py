"""One fit for both bagged estimators: parameters in, bags, a learner on each, what is left out."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import Where, check_same_place, locate
from ensemble_gpu.bagging.bags import Bags, draw_features, make_bags
from ensemble_gpu.bagging.learners import (
    OneClass,
    check_learner,
    check_reach,
    fit_learner,
    in_threads,
    make_learner,
    tags_of,
    take_features,
    takes_weights,
)
from ensemble_gpu.bagging.out_of_bag import mean_out_of_bag
from ensemble_gpu.data.validation import check_flag, check_integer, check_real
from ensemble_gpu.estimators.base import ArrayEstimator


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        check_integer(name, value, 1)
    else:
        check_real(name, value, 0.0, 1.0)


class Bagging(ArrayEstimator):
    """`fit` of a bag of learners. A subclass says which learner, and how answers are joined."""

    # X stays where it is, and whether NaN is taken is the learner's choice: `_check_X`.
    device = None
    missing = "abstain"
    _kind: str

    estimators_: list[Any]
    estimators_features_: list[np.ndarray]
    bags_: list[Bags]
    classes_: np.ndarray

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
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _tree(self) -> Any:
        """The learner where none is given."""
        raise NotImplementedError

    def _read_target(self, y: Any, n_rows: int, w: Any, place: Where) -> tuple[Any, Any]:
        """(target, weights) of the rows, validated."""
        raise NotImplementedError

    def _labels(self, target: Any, where: Where) -> np.ndarray | None:
        """Class of every row on the host; None for a regression."""
        raise NotImplementedError

    def _answer(self, learner: Any, X: Any) -> Any:
        """What one learner says of X [n, ...], to be averaged: float64."""
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
        return tags

    def _check_X(self, X: Any, *, reset: bool, name: str = "X") -> Any:
        X = super()._check_X(X, reset=reset, name=name)
        tags = tags_of(self.estimator_)
        if tags is not None and not tags.input_tags.allow_nan:
            xp = locate(X).xp
            if bool(xp.any(xp.isnan(X))):
                raise ValueError(
                    f"Input {name} contains NaN, which {type(self.estimator_).__name__} does not "
                    "accept: fill it in (sklearn.impute), or bag a learner that takes it."
                )
        return X

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit a clone of the learner on every bag.

        Parameters
        ----------
        X : array [n, p] of any array-API library, frame or list
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
        check_integer("n_estimators", self.n_estimators, 1)
        for name in ("max_samples", "max_features"):
            _check_share(name, getattr(self, name))
        for name in ("bootstrap", "bootstrap_features", "warm_start"):
            check_flag(name, getattr(self, name))
        if not callable(self.oob_score) and not isinstance(self.oob_score, bool | np.bool_):
            raise ValueError(
                "oob_score must be True, False or a callable(y_true, y_pred) -> float; got "
                f"{self.oob_score!r}."
            )
        if self.n_jobs is not None and (
            isinstance(self.n_jobs, bool)
            or not isinstance(self.n_jobs, numbers.Integral)
            or self.n_jobs == 0
        ):
            kind = ValueError if self.n_jobs == 0 else TypeError
            raise kind(
                "n_jobs must be None (one learner at a time, or as joblib's context says), an "
                f"integer >= 1, or negative (-1: as many as processors); got {self.n_jobs!r}."
            )
        if self.estimator is not None:
            check_learner(self.estimator, self._kind)

    def _fit(self, X: Any, y: Any, w: Any, more: bool) -> None:
        check_same_place(locate(X), y=y, sample_weight=w)
        X, y, w = map(to_workplace, (X, y, w))
        self.estimator_ = self._learner()
        X = self._check_X(X, reset=not more)
        where = locate(X)
        check_reach(self.estimator_, where)
        labels_before = getattr(self, "classes_", None)
        target, weights = self._read_target(y, X.shape[0], w, where)
        learners = list(self.estimators_) if more else []
        features = list(self.estimators_features_) if more else []
        if more and not self._wants_more(len(learners), labels_before):
            return
        weights = None if weights is None else where.host(weights)
        bags = self._make_bags(X, target, weights, more)
        new = range(len(learners), self.n_estimators)
        labels = self._labels(target, where)
        calls = ((number, bags, X, target, labels) for number in new)
        for learner, columns in in_threads(self._fit_one, calls, self.n_jobs):
            learners.append(learner)
            features.append(columns)
        self.estimators_, self.estimators_features_ = learners, features
        self.bags_ = [*(self.bags_ if more else []), *(bags for _ in new)]
        self._set_out_of_bag(X, where.host(target), weights)

    def _wants_more(self, n_fitted: int, labels_before: np.ndarray | None) -> bool:
        """Whether a warm start has learners to add; raise where it cannot."""
        if labels_before is not None and not np.array_equal(labels_before, self.classes_):
            raise ValueError(
                "warm_start=True needs the labels of the first fit, "
                f"{labels_before.tolist()!r}; y holds {self.classes_.tolist()!r}."
            )
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
        return self.n_estimators > n_fitted

    def _make_bags(self, X: Any, target: Any, weights: Any, more: bool) -> Bags:
        if more:
            seed = self.bags_[0].seed
        else:
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        size = self.max_samples
        bags = make_bags(
            X,
            target,
            weights,
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
        earlier = self.bags_ if more else []
        same = (old.rows is not None and np.array_equal(old.rows, bags.rows) for old in earlier)
        if not all(same):
            raise ValueError(
                "oob_score with warm_start=True needs the rows and weights of the earlier fits; X, "
                "y or sample_weight has changed. Use oob_score=False, or fit anew."
            )
        return bags

    def _n_drawn_features(self) -> int:
        if not isinstance(self.max_features, numbers.Integral):
            return max(1, int(self.max_features * self.n_features_in_))
        if self.max_features > self.n_features_in_:
            raise ValueError(
                f"max_features must be at most the number of features, {self.n_features_in_}; got "
                f"{self.max_features!r}."
            )
        return int(self.max_features)

    def _fit_one(
        self, number: int, bags: Bags, X: Any, target: Any, labels: np.ndarray | None
    ) -> tuple[Any, np.ndarray]:
        """Learner `number` and its features: they depend on the seed, the number and the data."""
        features = draw_features(
            bags.seed,
            number,
            self.n_features_in_,
            self._n_drawn_features(),
            bool(self.bootstrap_features),
        )
        counts = bags.counts(number)
        absent = 0
        if labels is not None:
            classes = np.bincount(labels, weights=counts, minlength=len(self.classes_))
            absent = int((classes == 0.0).sum())
            if absent == len(classes) - 1:
                return OneClass(int(np.argmax(classes))).fit(X, target), features
        learner = make_learner(self.estimator_, bags.seed, number)
        with gpu.current(locate(X), "bagging"):
            X = take_features(X, features)
            return fit_learner(learner, X, target, bags, counts, absent=absent), features

    def _answers(self, X: Any, method: Any) -> Any:
        """Of all learners, one after the other: `method(learner, its columns of X)`."""

        def answer(learner: Any, features: np.ndarray) -> Any:
            with gpu.current(locate(X), "bagging"):
                return method(learner, take_features(X, features))

        pairs = zip(self.estimators_, self.estimators_features_, strict=True)
        return in_threads(answer, pairs, self.n_jobs)

    def _mean_answer(self, X: Any) -> tuple[Any, Where, Where]:
        """Mean over the learners, where X came from, where the mean is."""
        X, place, here, dtype = self._inputs(X)
        check_reach(self.estimator_, here)
        total: Any = None
        for answer in self._answers(X, self._answer):
            total = answer if total is None else total + answer
        return here.xp.astype(total / len(self.estimators_), dtype), place, here

    def _set_out_of_bag(self, X: Any, target: np.ndarray, weights: Any) -> None:
        for name in [name for name in vars(self) if name.startswith("oob_") and name[-1] == "_"]:
            delattr(self, name)
        if not self.oob_score:
            return
        where = locate(X)

        def answer(number: int, rows: np.ndarray) -> np.ndarray:
            with gpu.current(where, "bagging"):
                left_out = where.xp.take(X, where.put(rows), axis=0)
                left_out = take_features(left_out, self.estimators_features_[number])
                return where.host(self._answer(self.estimators_[number], left_out))

        answers, seen = mean_out_of_bag(answer, self.bags_, self.n_jobs)
        self._score_out_of_bag(answers, seen, target, weights)

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """Rows of every bag in ascending order, each as often as it was drawn."""
        return [
            np.repeat(np.arange(bags.n_rows), bags.counts(number))
            for number, bags in enumerate(self.bags_)
        ]
