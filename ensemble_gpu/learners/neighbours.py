"""The mean of the K nearest rows: a smoother with S_ij = 1 / K for the K nearest j of i."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.parameters import check_flag, check_integer
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.learners.smooth import Smooths
from ensemble_gpu.model.neighbours import Nearest, NeighbourModel, neighbour_means


def spread(X: Any, standardise: bool, where: Where) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the features (1 where it is 0), or zeros and ones."""
    xp, p = where.xp, X.shape[1]
    if not standardise:
        return np.zeros(p), np.ones(p)
    X = where.as_float64(X)
    deviation = where.host(xp.std(X, axis=0))
    return where.host(xp.mean(X, axis=0)), np.where(deviation > 0.0, deviation, 1.0)


class Neighbours(BaseEstimator):
    """A weak learner for `estimator=` of BoostingClassifier and BoostingRegressor.

    h(x) is the mean of -gradient over the K training rows nearest to x, itself included where x is
    one of them: a linear smoother of trace n / K. Sample weights are not taken into the mean.

    Parameters
    ----------
    n_neighbors : int, default=5
        K.
    standardise : bool, default=False
        Measure every feature in its standard deviations.
    """

    takes_any_array = True

    def __init__(self, n_neighbors: int = 5, *, standardise: bool = False) -> None:
        self.n_neighbors = n_neighbors
        self.standardise = standardise

    def gradient_learner(self, rows: LearnerRows) -> Smooths:
        """The nearest rows of every row are found once."""
        check_integer("n_neighbors", self.n_neighbors, 1, rows.X.shape[0])
        check_flag("standardise", self.standardise)
        return Smooths(self, rows, lambda rows: NeighbourSmoother(rows, self))


@dataclass(frozen=True)
class Held:
    """A round: the targets of the rows, and where they are looked up."""

    smoother: NeighbourSmoother
    values: Any

    def predict(self, X: Any) -> Any:
        return self.smoother.model([self], np.ones(1), np.zeros(self.values.shape[1]))(X)


class NeighbourSmoother:
    """The nearest of all rows."""

    def __init__(self, rows: LearnerRows, learner: Neighbours) -> None:
        self.where, self.k = rows.where, int(learner.n_neighbors)
        self.shift, self.scale = spread(rows.X, learner.standardise, rows.where)
        where = rows.where
        X = where.as_float64(rows.X) - where.put(self.shift)[None, :]
        self.X = X / where.put(self.scale)[None, :]
        found = Nearest(self.X, where).blocks(self.X, self.k)
        self.at = where.xp.concat([at for _, at, _ in found])

    def fitted(self, t: Any) -> Held:
        return Held(self, t)

    def smooth(self, learnt: Held) -> Any:
        return neighbour_means(self.at, learnt.values, self.where)

    def model(self, learnt: Sequence[Held], alphas: Any, start: np.ndarray) -> NeighbourModel:
        host = self.where.host
        values = [alpha * host(own.values) for alpha, own in zip(alphas, learnt, strict=True)]
        shape = (len(values), self.X.shape[0], len(start))
        return NeighbourModel(
            host(self.X), np.array(values).reshape(shape), n_neighbors=self.k, shift=self.shift,
            scale=self.scale, intercept=start,
        )  # fmt: skip
