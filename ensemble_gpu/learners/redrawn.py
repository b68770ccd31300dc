"""Stumps on generators that are drawn anew in every round: each has a generator of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.host.gain import best_gain
from ensemble_gpu.kernels.protocol import ABSTAIN, Cut, Engine, one_class
from ensemble_gpu.learners.even import EvenRows
from ensemble_gpu.learners.protocol import (
    Candidate,
    Outcome,
    RoundWeights,
    alphas_and_errors,
    shares,
)
from ensemble_gpu.learners.source import Source
from ensemble_gpu.learners.stump import StumpLeaves, Worth, worth_of_gains
from ensemble_gpu.learners.votes import CUT, column_of
from ensemble_gpu.model.additive import AdditiveModel, Rounds, stump_values
from ensemble_gpu.model.derived import DerivedModel
from ensemble_gpu.model.generators import Generators


@dataclass(frozen=True)
class GeneratedStump:
    """A round: a generator of its own, z <= threshold goes left, missing abstains."""

    name: ClassVar[str] = "stump"

    generator: Generators
    threshold: float
    values: np.ndarray
    alpha: float
    error: float
    perfect: bool = False
    weights: RoundWeights | None = None
    trail: Any = None


class RedrawnTables:
    """Stumps with a generator each, in a model."""

    name, by_feature = "stump", False

    def __init__(self, source: Source, worth: Worth = worth_of_gains) -> None:
        self.source, self.grid, self.worth = source, source.grid, worth

    def added(self, stump: GeneratedStump, X: Any, where: Where) -> Any:
        z = stump.generator(self.grid(X, where), where)
        return stump_values(z[:, 0], stump.threshold, ABSTAIN, stump.values, where)

    def round_info(self, stump: GeneratedStump) -> dict[str, Any]:
        return {"feature": None, "threshold": stump.threshold, "values": stump.values.copy()}

    def sides(self, stump: GeneratedStump, rows: EvenRows) -> Any:
        """Codes of the rows: LEFT, RIGHT, or ABSTAIN where z is missing (a `column`)."""
        where, xp = self.source.where, self.source.where.xp
        z = stump.generator.at(rows.rows, where)[:, 0]
        side = xp.where(z > stump.threshold, where.full(1, xp.int8), where.full(-1, xp.int8))
        return column_of(xp.where(xp.isnan(z), where.full(0, xp.int8), side), self.source.engine)

    def outcome(
        self, rounds: Sequence[GeneratedStump], start: np.ndarray, constant: np.ndarray
    ) -> Outcome:
        alpha, error = alphas_and_errors(rounds)
        n, intercept = len(rounds), start if rounds else constant
        values = np.array([stump.values for stump in rounds], dtype=np.float64)
        table = Rounds(
            np.arange(n),
            np.array([stump.threshold for stump in rounds], dtype=np.float64),
            np.full(n, ABSTAIN),
            values.reshape(n, len(intercept), -1) if n else np.zeros((0, len(intercept), 3)),
            alpha,
            error,
        )
        parts = [stump.generator for stump in rounds] or [self.source.drawn(0).take(slice(0, 0))]
        generators = type(parts[0]).joined(parts)
        worth = np.maximum(self.worth(alpha, error), 0.0)
        model = DerivedModel(self.grid, generators, AdditiveModel(table, n, intercept))
        return Outcome(model, shares(worth @ generators.shares()))


class RedrawnStumps(RedrawnTables):
    """The best stump on generators that are drawn anew in every round, for any loss."""

    def __init__(self, engine: Engine, source: Source) -> None:
        super().__init__(source)
        self.engine, self.rows = engine, EvenRows(source, None, one_class(source.u.shape[0]))
        self.sums: tuple[np.ndarray, np.ndarray] | None = None

    def seek(self, gradients: Any) -> bool:
        engine, packed = self.engine, gradients.packed
        self.generators = self.source.drawn(gradients.round)
        self.matrix = self.rows.matrix(self.generators)
        if gradients.format.planes == 2:
            sums = engine.sums(self.matrix.codes, packed)
            n_outputs = len(sums) // 2
            self.sums = sums[:n_outputs], np.ascontiguousarray(sums[n_outputs:])
        else:
            self.sums = engine.pair_sums(self.matrix.codes, packed)
        return bool(self.sums[0].any())

    def best(self, barred: list[int]) -> Candidate | None:
        assert self.sums is not None
        matrix, allowed = self.matrix, self.matrix.n_thresholds.copy()
        allowed[barred] = 0
        none = np.zeros(len(allowed), dtype=np.int64)
        split = best_gain(*self.sums, allowed, False, False, none)
        if split is None:
            return None
        at = split.feature
        generator = self.generators.take(slice(at, at + 1))
        threshold = matrix.threshold(at, split.bin)

        def made(values: np.ndarray, alpha: float, error: float, trail: Any) -> GeneratedStump:
            return GeneratedStump(generator, threshold, values, alpha, error, trail=trail)

        cut = Cut(split.bin, matrix.codes.width - 1, ABSTAIN)
        leaves = StumpLeaves(self.engine, self.engine.column(matrix.codes, at), cut)
        return Candidate(split.c, split.S, split.gain, leaves, made, [at])

    def leaves(self, stump: GeneratedStump) -> StumpLeaves:
        return StumpLeaves(self.engine, self.sides(stump, self.rows), CUT)

    def random_state(self) -> Any:
        return None

    def restore(self, random_state: Any) -> None:
        """Generators depend on the seed and the round's number only."""
