"""The mean of the nearest rows as a smoother; it is not symmetric."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.data.parameters import check_flag, check_integer
from ensemble_gpu.learners.neighbours import Neighbours as NeighboursLearner
from ensemble_gpu.learners.neighbours import spread
from ensemble_gpu.model.neighbours import Nearest, NeighbourModel, neighbour_means
from ensemble_gpu.smoothers.protocol import Iterated, SmootherRows, check_memory


class Neighbours(NeighboursLearner):
    """The mean of the K nearest training rows: S_ij = 1 / K for the K nearest j of i.

    S is not symmetric, so that rounds are iterated, and its eigenvalues may be negative: residuals
    grow then in the end, and a warning says so. Takes no sample weights. Also a weak learner for
    `estimator=` of BoostingClassifier and BoostingRegressor.

    Parameters
    ----------
    n_neighbors : int, default=5
        K.
    standardise : bool, default=False
        Measure every feature in its standard deviations.
    """

    def prepared(self, rows: SmootherRows) -> Iterated:
        where, n = rows.where, rows.X.shape[0]
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_flag("standardise", self.standardise)
        if self.n_neighbors > n:
            raise ValueError(
                f"n_neighbors must be an integer from 1 to {n}, the number of rows; got "
                f"{self.n_neighbors!r}."
            )
        if rows.weights is not None:
            raise ValueError("Neighbours takes no sample_weight; leave it out.")
        check_memory(n, "KernelRidge(rank=1000)")
        shift, scale = spread(rows.X, bool(self.standardise), where)
        X = (rows.X - where.put(shift)[None, :]) / where.put(scale)[None, :]
        k = int(self.n_neighbors)
        at = where.xp.concat([found for _, found, _ in Nearest(X, where).blocks(X, k)])
        kept = where.host(X)

        def smooth(A: Any) -> Any:
            return neighbour_means(at, A, where)

        def model(targets: np.ndarray, start: float) -> NeighbourModel:
            return NeighbourModel(
                kept, targets[:, :, None], n_neighbors=k, shift=shift, scale=scale,
                intercept=np.array([start]),
            )  # fmt: skip

        return Iterated(smooth, model)
