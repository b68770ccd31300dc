"""Linear smoothers as weak learners: h = S t, t the minus gradient at the rows.

What S needs of the rows (a decomposition, the nearest of every row) is found once; a round costs a
product. A sum of smooths is one smooth of a sum, so the model of all rounds is evaluated as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.learners.directions import AUTO, Direction, Directions, Part
from ensemble_gpu.learners.protocol import LearnerRows, Outcome
from ensemble_gpu.model.inputs import check_complete


class Smoother(Protocol):
    """A linear smoother of the rows that it was made from."""

    def fitted(self, t: Any) -> Any:
        """What is learnt from targets t [rows, outputs]; it has `predict(X)` [n, outputs]."""
        ...

    def smooth(self, learnt: Any) -> Any:
        """S t [rows, outputs], of what was learnt from t."""
        ...

    def model(self, learnt: Sequence[Any], alphas: np.ndarray, start: np.ndarray) -> Any:
        """The model start + sum_t alpha_t h_t."""
        ...


class Smooths(Directions):
    """A smoother, fitted to gradients; regressors of all outputs at once."""

    def __init__(
        self, estimator: Any, rows: LearnerRows, make: Callable[[LearnerRows], Smoother]
    ) -> None:
        who = f"estimator {type(estimator).__name__}"
        check_dense(rows.X, who)
        check_complete(rows.X, rows.where, who)
        data = Rows(rows.X, rows.target, rows.weights)
        super().__init__(estimator, data, rows.where, rows.n_outputs, AUTO, rows.seed)
        self.smoother = make(rows)

    def fitted(self, g: Any, number: int, part: Part) -> Any:
        if part.at is not None:
            raise ValueError(
                f"subsample must be 1 for estimator {type(self.estimator).__name__}, which smooths "
                "all rows."
            )
        return self.smoother.fitted(self.where.xp.permute_dims(-g, (1, 0)))

    def answers(self, learner: Any, X: Any, where: Where) -> Any:
        return self.smoother.smooth(learner) if X is self.X else super().answers(learner, X, where)

    def outcome(
        self, rounds: Sequence[Direction], start: np.ndarray, constant: np.ndarray
    ) -> Outcome:
        alphas = np.array([round_.alpha for round_ in rounds])
        learnt = [round_.learner for round_ in rounds]
        return Outcome(self.smoother.model(learnt, alphas, start if rounds else constant), None)
