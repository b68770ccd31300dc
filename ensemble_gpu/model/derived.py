"""A sum of stumps on derived features: F(x) = model(z(x)), z the generators' numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.model.additive import AdditiveModel, Rounds
from ensemble_gpu.model.base import Model, canonical_bytes, check_array
from ensemble_gpu.model.generators import Generators, Grid, cells
from ensemble_gpu.model.inputs import rows_at_work


class DerivedModel(Model):
    """An immutable sum of stumps on half-spaces', balls' or boxes' generators.

    Parameters
    ----------
    grid : Grid, what x is rounded to
    generators : Generators, those that stumps are on
    model : AdditiveModel of their numbers z
    """

    _format = b"ensemble_gpu.DerivedModel.1"

    grid: Grid
    generators: Generators
    model: AdditiveModel

    def __init__(self, grid: Grid, generators: Generators, model: AdditiveModel) -> None:
        p, n = len(grid.centre), model.n_features
        for name in ("centre", "scale"):
            check_array(f"grid.{name}", getattr(grid, name), (p,))
        if (grid.scale == 0.0).any():
            raise ValueError("grid.scale must not be 0.")
        for name, array in vars(generators).items():
            check_array(f"generators.{name}", array, (n, p))
        self._assign(grid=grid, generators=generators, model=model)

    @classmethod
    def of(cls, grid: Grid, generators: Generators, model: AdditiveModel) -> DerivedModel:
        """The model of stumps on some of the generators: the others are left out."""
        used, feature = np.unique(model.rounds.feature, return_inverse=True)
        rounds: Rounds = replace(model.rounds, feature=feature.astype(np.int64))
        own = AdditiveModel(rounds, len(used), model.intercept, model.ends)
        return cls(grid, generators.take(used), own)

    def __getstate__(self) -> dict[str, Any]:
        return {"grid": self.grid, "generators": self.generators, "model": self.model}

    @property
    def n_features(self) -> int:
        return len(self.grid.centre)

    @property
    def n_outputs(self) -> int:
        return self.model.n_outputs

    @property
    def n_rounds(self) -> int:
        return self.model.n_rounds

    @property
    def intercept(self) -> np.ndarray:
        return self.model.intercept

    @property
    def rounds(self) -> Rounds:
        """The stumps; their features are generators."""
        return self.model.rounds

    def __repr__(self) -> str:
        return (
            f"DerivedModel({self.n_rounds} rounds on {len(self.generators)} "
            f"{self.generators.kind}; {self.n_features} features, {self.n_outputs} output(s), "
            f"fingerprint {self.fingerprint()[:12]})"
        )

    def _canonical(self) -> Iterator[bytes]:
        yield canonical_bytes([self.n_features, len(self.generators)])
        yield canonical_bytes(self.grid.centre)
        yield canonical_bytes(self.grid.scale)
        yield from self.generators.canonical()
        yield self.model.fingerprint().encode()

    def first(self, n_rounds: int) -> DerivedModel:
        """The model of the first n rounds (of all, where there are fewer)."""
        return DerivedModel.of(self.grid, self.generators, self.model.first(n_rounds))

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, outputs], in the namespace and on the device of X.

        Rows are taken some at a time: z takes at most 64 MB.
        """
        X, source, where = rows_at_work(X, self.n_features)
        parts = [self.model(z, n_jobs) for z in self._blocks(X, where)]
        return source.hand_over(parts[0] if len(parts) == 1 else where.xp.concat(parts, axis=0))

    def staged(
        self, X: Any, rounds: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Iterator[Any]:
        """F after each round, starting with the first, or after the chosen ones (ascending)."""
        X, source, where = rows_at_work(X, self.n_features)
        blocks = [self.model.staged(z, rounds, n_jobs) for z in self._blocks(X, where)]
        for parts in zip(*blocks, strict=True):
            yield source.hand_over(where.xp.concat(list(parts), axis=0))

    def _blocks(self, X: Any, where: Where) -> Iterator[Any]:
        step = max(1, cells(where) // max(1, len(self.generators)))
        for first in range(0, max(1, X.shape[0]), step):
            rows = X[first : min(first + step, X.shape[0]), :]
            yield self.generators(self.grid(rows, where), where)
