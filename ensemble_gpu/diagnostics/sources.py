"""Where replicates of a training set come from, and the points at which they are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import is_array, to_numpy
from ensemble_gpu.data.bins import PartBins
from ensemble_gpu.diagnostics.replicates import (
    Answers,
    TrainingSet,
    bins_of_all,
    samples,
    taken,
)


@dataclass(frozen=True)
class Points:
    """Where replicates are judged: the truth (or y), the noise, and which replicates judge [R, n].

    `truth` are means and `noise` variances, or of classes the Bayes decisions 0, 1 and N.
    """

    truth: np.ndarray
    noise: np.ndarray
    judged: np.ndarray


class Source:
    """Training sets and points of the replicates, and labels as 0 and 1."""

    labels: np.ndarray | None

    def training(self, r: int) -> TrainingSet:
        raise NotImplementedError

    def points(self, r: int) -> Any:
        raise NotImplementedError

    def scored(self, found: list[Answers]) -> tuple[np.ndarray, Points]:
        """Answers [R, values, points] (anything where a replicate does not judge), and points."""
        raise NotImplementedError

    def numbers(self, answers: np.ndarray) -> np.ndarray:
        """Predictions as floats, labels as 0 and 1."""
        if self.labels is None:
            return np.asarray(answers, dtype=np.float64)
        return (answers == self.labels[1]).astype(np.float64)


class Drawn(Source):
    """Training sets that a function draws, judged at the same rows."""

    def __init__(
        self,
        make_data: Callable[[np.random.Generator], Any],
        seeds: np.ndarray,
        X_test: Any,
        y_test: Any,
        truth: Any,
        sigma: Any,
        classes: bool,
    ) -> None:
        if X_test is None:
            raise ValueError("X_test must be given where a function draws the training sets.")
        if (truth is None) == (y_test is None):
            raise ValueError("Give one of truth and y_test, the means of y at X_test or y itself.")
        self.make_data, self.seeds, self.X_test = make_data, seeds, X_test
        self.n, self.width = np.shape(_host(X_test))
        self.shape: tuple[int, ...] | None = None
        self.labels = None
        if classes:
            self.labels = _two(_host(self.training(0).y))
        self.truth, self.noise = self._truth(truth, y_test, sigma)

    def _truth(self, truth: Any, y_test: Any, sigma: Any) -> tuple[np.ndarray, np.ndarray]:
        unknown = np.full(self.n, np.nan)
        if truth is None:
            if sigma is not None:
                raise ValueError("sigma goes with truth; y_test holds its own noise.")
            return self.numbers(self._a_row("y_test", _host(y_test))), unknown
        given = truth(self.X_test) if callable(truth) else truth
        means = self._a_row("truth", np.asarray(_host(given), dtype=np.float64))
        if self.labels is None:
            spread = 0.0 if sigma is None else np.asarray(_host(sigma), dtype=np.float64)
            if not np.all(spread >= 0.0):
                raise ValueError(f"sigma must be >= 0; got {sigma!r}.")
            return means, np.broadcast_to(np.square(spread), (self.n,))
        if not ((means >= 0.0) & (means <= 1.0)).all():
            raise ValueError("truth must hold probabilities in [0, 1] for a classifier.")
        return (means > 0.5).astype(np.float64), np.minimum(means, 1.0 - means)

    def _a_row(self, name: str, values: np.ndarray) -> np.ndarray:
        if values.shape != (self.n,):
            raise ValueError(
                f"{name} must hold a value a row of X_test, {self.n}; got shape {values.shape}."
            )
        return values

    def training(self, r: int) -> TrainingSet:
        made = self.make_data(np.random.default_rng(int(self.seeds[r])))
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"make_data must return a pair (X, y); got {type(made).__name__}.")
        X, y = made
        shape, n = np.shape(_host(X)), np.shape(_host(y))
        self.shape = self.shape or shape
        if len(shape) != 2 or shape != self.shape or shape[1] != self.width or n != shape[:1]:
            raise ValueError(
                "make_data must return X of the same shape each time, with the features of X_test "
                f"({self.width}), and a value of y a row; got X of shape {shape} (the first: "
                f"{self.shape}) and y of shape {n}."
            )
        return TrainingSet(X, y)

    def points(self, r: int) -> Any:
        return self.X_test

    def scored(self, found: list[Answers]) -> tuple[np.ndarray, Points]:
        G = np.array([self.numbers(one.whole) for one in found])
        return G, Points(self.truth, self.noise, np.ones((len(found), self.n), dtype=bool))


class Sampled(Source):
    """Samples of one data set, judged by the rows that they leave out."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        seeds: np.ndarray,
        method: str,
        test_size: float,
        classes: bool,
    ) -> None:
        if y is None:
            raise ValueError("y must hold a target a row; got None.")
        self.X, self.y, self.host = X, y, _host(y)
        n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        if self.host.shape != (n,):
            raise ValueError(f"X has {n} rows, y has shape {self.host.shape}.")
        self.labels = _two(self.host) if classes else None
        self.at = samples(method, n, test_size, seeds.tolist())
        self.out = [np.setdiff1d(np.arange(n), at) for at in self.at]
        if any(len(out) == 0 for out in self.out):
            raise ValueError(f"No row is left out to judge by: test_size={test_size!r}, {n} rows.")
        self.bins = bins_of_all(estimator, X, y)

    def training(self, r: int) -> TrainingSet:
        at = self.at[r]
        bins = None if self.bins is None else PartBins(self.bins, at, None)
        return TrainingSet(taken(self.X, at), taken(self.y, at), bins)

    def points(self, r: int) -> Any:
        return taken(self.X, self.out[r])

    def scored(self, found: list[Answers]) -> tuple[np.ndarray, Points]:
        n, n_values = len(self.host), len(found[0].whole)
        G = np.zeros((len(found), n_values, n))
        judged = np.zeros((len(found), n), dtype=bool)
        for r, (one, out) in enumerate(zip(found, self.out, strict=True)):
            G[r][:, out] = self.numbers(one.whole)
            judged[r, out] = True
        enough = judged.sum(axis=0) >= 2
        if not enough.any():
            raise ValueError(
                f"No row is left out by two replicates: n_replicates={len(found)} are too few."
            )
        truth = self.numbers(self.host)[enough]
        points = Points(truth, np.full(len(truth), np.nan), judged[:, enough])
        return G[:, :, enough], points


def _host(array: Any) -> np.ndarray:
    return np.asarray(to_numpy(array) if is_array(array) else array)


def _two(y: np.ndarray) -> np.ndarray:
    labels = np.unique(y)
    if len(labels) != 2:
        raise ValueError(
            f"The 0-1 loss is decomposed for two classes; y holds {len(labels)}: "
            f"{labels[:5].tolist()!r}."
        )
    return labels
