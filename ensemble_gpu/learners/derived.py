"""Stumps on generators that were drawn once: their numbers are features, binned as features are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.learners.protocol import Outcome, shares
from ensemble_gpu.learners.stump import SplitConstraints, Stump, Stumps, StumpTables, Worth
from ensemble_gpu.model.additive import stump_values
from ensemble_gpu.model.derived import DerivedModel
from ensemble_gpu.model.generators import Generators, Grid


class _OnGenerators(StumpTables):
    """Stumps on fixed generators, in a model."""

    by_feature = False
    grid: Grid
    generators: Generators

    def added(self, stump: Stump, X: Any, where: Where) -> Any:
        z = self.generators.take(slice(stump.feature, stump.feature + 1))(
            self.grid(X, where), where
        )
        threshold = self.matrix.threshold(stump.feature, stump.bin)
        return stump_values(z[:, 0], threshold, stump.missing_leaf, stump.values, where)

    def round_info(self, stump: Stump) -> dict[str, Any]:
        return super().round_info(stump) | {"feature": None}

    def outcome(self, rounds: Sequence[Stump], start: np.ndarray, constant: np.ndarray) -> Outcome:
        own = super().outcome(rounds, start, constant)
        assert own.importances is not None
        model = DerivedModel.of(self.grid, self.generators, own.model)
        return Outcome(model, shares(own.importances @ self.generators.shares()))


class DerivedTables(_OnGenerators):
    """AdaBoost's stumps on fixed generators."""

    def __init__(
        self, matrix: BinnedMatrix, worth: Worth, grid: Grid, generators: Generators
    ) -> None:
        super().__init__(matrix, worth)
        self.grid, self.generators = grid, generators


class DerivedStumps(_OnGenerators, Stumps):
    """Stumps on fixed generators, for any loss."""

    def __init__(
        self, engine: Engine, matrix: BinnedMatrix, constraints: SplitConstraints, grid: Grid,
        generators: Generators,
    ) -> None:  # fmt: skip
        Stumps.__init__(self, engine, matrix, constraints)
        self.grid, self.generators = grid, generators
