"""What half-spaces, balls and boxes share: generators that are drawn, and stumps on them.

Generators are drawn from a seed and the number of the round. Training rows among them are drawn by
what the rows hold (data/sampling.py), so that neither their order matters nor whether equal rows
are repeated or weighted. X is rounded to a grid and z is exact (model/generators.py). What is
promised: with the same seed the generators, z, the stumps and the model are the same to the last
bit on NumPy, torch, JAX, CuPy and array-api-strict, on every engine, for rows in any order.

once   N generators, drawn before the first round: their numbers are features, binned as features
       are (quantiles, at most max_bins), and rounds are the stump engine's.
round  N generators anew in every round, with evenly spaced thresholds, 127 to 254 of them: nothing
       has to be sorted. The best of them all is the round's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.products import single_threaded
from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.data.integers import integer_weights
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.parameters import check_choice, check_integer
from ensemble_gpu.data.sampling import items_of
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.host.gain import best_gain
from ensemble_gpu.kernels.protocol import ABSTAIN, EVEN_BINS, Codes, Cut, Engine, Layout
from ensemble_gpu.learners.protocol import (
    Candidate,
    LearnerRows,
    Outcome,
    RoundWeights,
    alphas_and_errors,
    shares,
)
from ensemble_gpu.learners.stump import (
    SplitConstraints,
    Stump,
    StumpLeaves,
    Stumps,
    StumpTables,
    Worth,
    worth_of_gains,
)
from ensemble_gpu.learners.votes import CUT, column_of
from ensemble_gpu.model.additive import AdditiveModel, Rounds, stump_values
from ensemble_gpu.model.derived import DerivedModel
from ensemble_gpu.model.generators import Generators, Grid, block_size

REDRAWS = ("once", "round")
# Codes of all generators and rows: 8 GiB.
MOST_CELLS = 1 << 33
# Bits of the values and of the total weight that means and deviations are computed from.
VALUE_BITS, WEIGHT_BITS = 15, 30


class Generated(BaseEstimator):
    """Stumps on numbers that are made of several features; a subclass draws the generators."""

    variants = ("real", "discrete", "gentle", "logit")
    # Whether generators are made of training rows.
    draws_rows: ClassVar[bool] = False

    n_candidates: int
    redraw: str
    n_features: int | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def check(self) -> None:
        """Raise where the parameters are wrong."""
        check_integer("n_candidates", self.n_candidates, 1)
        check_choice("redraw", self.redraw, REDRAWS)
        check_integer("n_features", self.n_features, 1, others=(None,))

    def _draw(self, rng: np.random.Generator, rows: DrawnFrom) -> Generators:
        """`n_candidates` generators."""
        raise NotImplementedError

    def source(self, rows: LearnerRows) -> Source:
        """What the generators of a fit are drawn from."""
        self.check()
        check_dense(rows.X, f"estimator {type(self).__name__}")
        n, p = rows.X.shape
        if n * self.n_candidates > MOST_CELLS:
            raise ValueError(
                f"n_candidates must be at most {MOST_CELLS // n} for {n} rows, so that their codes "
                f"take {MOST_CELLS >> 30} GiB at most; got {self.n_candidates}."
            )
        if self.n_features is not None and self.n_features > p:
            raise ValueError(
                f"n_features must be at most {p}, the features of X; got {self.n_features}."
            )
        return Source(self, rows)

    def gradient_learner(self, rows: LearnerRows) -> DerivedStumps | RedrawnStumps:
        """What the rounds of any loss go by."""
        source = self.source(rows)
        if self.redraw == "round":
            return RedrawnStumps(rows.engine, source)
        layout = Layout(np.array([0, rows.X.shape[0]]), np.zeros((1, 1), dtype=np.int64))
        generators = source.drawn(0)
        matrix = source.binned(generators, None, layout, rows.max_bins)
        n = len(generators)
        constraints = SplitConstraints(
            False, False, np.zeros(n, dtype=np.int64), n, rows.seed, np.zeros(n, dtype=bool)
        )
        return DerivedStumps(rows.engine, matrix, constraints, source.grid, generators)

    def _features(self, rng: np.random.Generator, p: int) -> np.ndarray:
        """Which features each generator uses: bool [N, p]."""
        if self.n_features is None or self.n_features >= p:
            return np.ones((self.n_candidates, p), dtype=bool)
        order = np.argsort(rng.random((self.n_candidates, p)), axis=1, kind="stable")
        used = np.zeros((self.n_candidates, p), dtype=bool)
        np.put_along_axis(used, order[:, : self.n_features], True, axis=1)
        return used


class AroundRows(Generated):
    """Generators around drawn training rows."""

    draws_rows = True

    def __init__(
        self, n_candidates: int = 500, *, redraw: str = "once", n_features: int | None = None
    ) -> None:
        self.n_candidates = n_candidates
        self.redraw = redraw
        self.n_features = n_features


@dataclass(frozen=True)
class DrawnFrom:
    """Rows to draw from: their coordinates where they are, and the row of each item."""

    grid: Grid
    u: Any
    items: np.ndarray | None
    where: Where

    def rows(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Coordinates [n, p] of n rows, on the host; NaN is missing."""
        assert self.items is not None
        at = self.items[rng.integers(0, len(self.items), n)].astype(np.int64)
        return self.where.host(self.where.xp.take(self.u, self.where.put(at), axis=0))


class Source:
    """The generators of a fit, round by round, and what they say about the training rows."""

    def __init__(self, learner: Generated, rows: LearnerRows) -> None:
        self.learner, self.seed = learner, rows.seed
        engine = self.engine = rows.engine
        X = engine.adopt(rows.X)
        where = self.where = engine.where
        self.grid = grid_of(X, None if rows.weights is None else engine.adopt(rows.weights), engine)
        self.u = self.grid(X, where)
        items = None
        if learner.draws_rows:
            keys = row_keys(rows.target, rows.X)
            weights = None if rows.weights is None else rows.where.host(rows.weights)
            items = items_of(keys, weights).rows
        self.rows = DrawnFrom(self.grid, self.u, items, where)

    def drawn(self, number: int) -> Generators:
        """The generators of a round."""
        rng = np.random.default_rng([self.seed, number])
        return self.learner._draw(rng, self.rows)

    def ordered(self, order: Any | None) -> Any:
        """The coordinates of the rows in an order (None: their own)."""
        return self.u if order is None else self.where.xp.take(self.u, order, axis=0)

    def binned(
        self, generators: Generators, order: Any | None, layout: Layout, max_bins: int
    ) -> BinnedMatrix:
        """Codes of all z: quantiles, some generators at a time."""
        engine, where, u = self.engine, self.where, self.ordered(order)
        n = u.shape[0]
        at = where.xp.arange(n, dtype=where.xp.int64, device=where.device)
        width = min(max_bins, max(n, 2)) + 1

        def encoded(block: Generators) -> tuple[Codes, list[np.ndarray]]:
            single, z = engine.single(), block(u, where)
            gaps = single.gaps(z, at, max_bins)
            return single.encode(z, edges_of(gaps), at, layout, width), gaps

        parts, found = zip(*self._by_block(encoded, generators, n), strict=True)
        gaps = [gap for own in found for gap in own]
        return BinnedMatrix(engine.join(parts, layout), edges_of(gaps), gaps)

    def _by_block(
        self, function: Callable[[Generators], Any], generators: Generators, n_rows: int
    ) -> list[Any]:
        """function(some generators) for all of them, as many side by side as there are workers."""
        step = block_size(n_rows, self.where)
        blocks = [
            generators.take(slice(first, first + step)) for first in range(0, len(generators), step)
        ]
        with single_threaded():
            if self.engine.n_workers == 1 or len(blocks) == 1:
                return [function(block) for block in blocks]
            with ThreadPoolExecutor(self.engine.n_workers) as pool:
                return list(pool.map(function, blocks))

    def even(self, generators: Generators, u: Any, layout: Layout) -> EvenMatrix:
        """Codes of all z: evenly spaced thresholds."""
        engine, where = self.engine, self.where

        def encoded(block: Generators) -> EvenMatrix:
            z = block(u, where)
            low, high = self._ends(z)
            step = np.ldexp(1.0, np.maximum(np.frexp(high - low)[1] - 8, 0))
            step = np.where((high - low) / step >= EVEN_BINS, 2.0 * step, step)
            codes = engine.single().encode_even(z, low, step, layout)
            return EvenMatrix(codes, low, step, np.floor((high - low) / step).astype(np.int64))

        parts = self._by_block(encoded, generators, u.shape[0])
        low, step, count = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("low", "step", "n_thresholds")
        )
        return EvenMatrix(engine.join([part.codes for part in parts], layout), low, step, count)

    def _ends(self, z: Any) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest z of every generator; 0 where all are missing."""
        where, xp = self.where, self.where.xp
        low, high = where.host(xp.min(z, axis=0)), where.host(xp.max(z, axis=0))
        if not np.isnan(low).any():  # a minimum of NaN and numbers is NaN
            return low, high
        absent, top = xp.isnan(z), where.full(np.inf)
        low = where.host(xp.min(xp.where(absent, top, z), axis=0))
        high = where.host(xp.max(xp.where(absent, -top, z), axis=0))
        none = low > high
        return np.where(none, 0.0, low), np.where(none, 0.0, high)


@dataclass(frozen=True)
class EvenMatrix:
    """Codes of evenly spaced thresholds, `n_thresholds` of each generator."""

    codes: Codes
    low: np.ndarray
    step: np.ndarray
    n_thresholds: np.ndarray

    def threshold(self, feature: int, last_bin: int) -> float:
        """Z <= threshold has a code up to last_bin; z is an integer."""
        return float(self.low[feature] + (last_bin + 1) * self.step[feature] - 0.5)


def grid_of(X: Any, weights: Any | None, engine: Engine) -> Grid:
    """Mean and standard deviation of every feature, from sums of integers.

    Values are rounded to 2^-15 of half their range around its middle first; missing ones are left
    out. A feature of one value has the scale 1.
    """
    where, xp = engine.where, engine.where.xp
    w = integer_weights(weights, WEIGHT_BITS, engine)
    centre, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    for j in range(X.shape[1]):
        x = where.as_float64(X[:, j])
        known = ~xp.isnan(x)
        if not bool(xp.any(known)):
            continue
        low = float(xp.min(xp.where(known, x, where.full(np.inf))))
        high = float(xp.max(xp.where(known, x, where.full(-np.inf))))
        middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        centre[j] = middle
        if half <= 0.0:
            continue
        v = xp.where(known, (x - middle) / half, where.full(0.0))
        v = xp.astype(xp.round(v * 2.0**VALUE_BITS), xp.int64)
        part = xp.astype(known, xp.int64) if w is None else w * xp.astype(known, xp.int64)
        count, first, second = (int(xp.sum(a)) for a in (part, part * v, part * v * v))
        mean = first / count
        spread = (second * count - first * first) / (count * count)
        centre[j] = middle + half * (mean * 2.0**-VALUE_BITS)
        scale[j] = half * (float(np.sqrt(spread)) * 2.0**-VALUE_BITS) or 1.0
    return Grid(centre, scale)


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

    def sides(self, stump: GeneratedStump, u: Any) -> Any:
        """Codes of the rows u: LEFT, RIGHT, or ABSTAIN where z is missing (a `column`)."""
        where, xp = self.source.where, self.source.where.xp
        z = stump.generator(u, where)[:, 0]
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
        self.engine = engine
        self.layout = Layout(np.array([0, source.u.shape[0]]), np.zeros((1, 1), dtype=np.int64))
        self.sums: tuple[np.ndarray, np.ndarray] | None = None

    def seek(self, gradients: Any) -> bool:
        engine, packed = self.engine, gradients.packed
        self.generators = self.source.drawn(gradients.round)
        self.matrix = self.source.even(self.generators, self.source.u, self.layout)
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
        return StumpLeaves(self.engine, self.sides(stump, self.source.u), CUT)

    def random_state(self) -> Any:
        return None

    def restore(self, random_state: Any) -> None:
        """Generators depend on the seed and the round's number only."""
