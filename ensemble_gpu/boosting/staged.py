"""What every estimator with an AdditiveModel does besides: evaluate it in stages.

A subclass fits `n_features_in_`, `model_`, and `link_`: how the model's outputs become
predictions (model/link.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.estimators.base import ArrayEstimator


class StagedEstimator(ArrayEstimator):
    """An estimator whose `model_` is a sum, round by round."""

    link_: str

    def _staged(
        self, X: Any, rounds: Sequence[int] | None = None
    ) -> Iterator[tuple[Any, Where, Where]]:
        """As `_outputs`, after 1, 2, ... rounds, or after the chosen ones."""
        X, home, where, dtype = self._inputs(X)
        for F in self.model_.staged(X, rounds, self.n_jobs):
            yield where.xp.astype(F, dtype), home, where
