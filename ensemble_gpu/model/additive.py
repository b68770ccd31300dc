"""A sum of stumps is one table per feature.

    F(x) = intercept + sum over features f of table_f[number of thresholds of f < x_f]

with a separate value where x_f is missing. Whatever the number of rounds, a prediction costs one
look-up per used feature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY, Where
from ensemble_gpu.arrays.sparse import column
from ensemble_gpu.kernels.host.tables import add_stumps, stump_answers
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.kernels.sparse import evaluate
from ensemble_gpu.kernels.tables import PackedTables
from ensemble_gpu.model.base import Model, canonical_bytes, check_array, check_length, check_range
from ensemble_gpu.model.inputs import rows_at_work
from ensemble_gpu.model.stages import checked_ends, joined_ends, last_of, stages

# Stages that are evaluated together, and the numbers that they may hold at a time.
MOST_STAGES, STAGE_CELLS = 16, 1 << 21


@dataclass(frozen=True)
class Rounds:
    """Round t: x[feature] <= threshold takes values[t, :, LEFT], else RIGHT, NaN `missing_leaf`.

    `values[t, output, leaf]` holds zeros for ABSTAIN.
    """

    feature: np.ndarray
    threshold: np.ndarray
    missing_leaf: np.ndarray
    values: np.ndarray
    alpha: np.ndarray
    error: np.ndarray

    def __len__(self) -> int:
        return len(self.feature)

    def between(self, start: int, stop: int) -> Rounds:
        """Rounds start + 1 ... stop."""
        return Rounds(*(array[start:stop] for array in vars(self).values()))


@dataclass(frozen=True)
class Table:
    """The shape function of one feature: values[i] between thresholds i - 1 and i."""

    thresholds: np.ndarray
    values: np.ndarray
    missing: np.ndarray

    def __call__(self, x: Any) -> np.ndarray:
        """Contribution of host values x: [n, outputs]."""
        x = np.asarray(x, dtype=np.float64)
        out = self.values[np.searchsorted(self.thresholds, x)]
        return np.where(np.isnan(x)[:, None], self.missing, out)


@dataclass(frozen=True)
class JoinedTables:
    """The tables of the features in use, one after the other.

    Table u belongs to `feature[u]` and has the thresholds start[u] ... start[u + 1] - 1; its
    values, one more, are the rows from start[u] + u on.
    """

    feature: np.ndarray
    start: np.ndarray
    thresholds: np.ndarray
    values: np.ndarray
    missing: np.ndarray


def _check_rounds(rounds: Rounds, n_features: int, n_outputs: int) -> None:
    """Raise where a kernel could leave the arrays, or a table would not be one."""
    n = len(rounds)
    for name in ("feature", "missing_leaf"):
        check_array(f"rounds.{name}", getattr(rounds, name), (n,))
    check_array("rounds.values", rounds.values, (n, n_outputs, N_LEAVES))
    for name in ("threshold", "alpha", "error"):
        if getattr(rounds, name).shape != (n,):
            raise ValueError(f"rounds.{name} must have {n} entries, one a round.")
    if np.isnan(rounds.threshold).any():
        raise ValueError("rounds.threshold must be numbers; got NaN.")
    check_range("rounds.feature", rounds.feature, 0, n_features - 1)
    check_range("rounds.missing_leaf", rounds.missing_leaf, 0, N_LEAVES - 1)


def _tables(rounds: Rounds, n_outputs: int) -> dict[int, Table]:
    """The table of every feature that a round uses: one sort by (feature, threshold) for all."""
    order = np.lexsort((rounds.threshold, rounds.feature))
    feature, threshold = rounds.feature[order], rounds.threshold[order]
    new_feature = np.diff(feature, prepend=-1) != 0
    new = new_feature.copy()
    new[1:] |= threshold[1:] != threshold[:-1]
    table_of = np.cumsum(new_feature) - 1
    owner, place = np.empty((2, len(order)), dtype=np.int64)
    owner[order], place[order] = table_of, np.cumsum(new) - 1
    place += owner  # each table has one interval more than thresholds
    thresholds, used = threshold[new], feature[new_feature]
    start = np.concatenate([[0], np.cumsum(np.bincount(table_of[new]))]).astype(np.int64)
    first = start + np.arange(len(start))
    values = np.zeros((first[-1], n_outputs))
    missing = np.zeros((len(used), n_outputs))
    add_stumps(owner, place, first, rounds.values, rounds.missing_leaf, values, missing)
    values, missing = values + 0.0, missing + 0.0
    return {
        f: Table(thresholds[start[u] : start[u + 1]], values[first[u] : first[u + 1]], missing[u])
        for u, f in enumerate(used.tolist())
    }


def stump_values(
    x: Any, threshold: float, missing_leaf: int, values: np.ndarray, where: Where
) -> Any:
    """What a stump with values[output, leaf] adds to rows whose feature is x: [n, outputs]."""
    xp, by_leaf = where.xp, values[:, [LEFT, RIGHT, missing_leaf]]
    if where is NUMPY and x.dtype in (np.float32, np.float64):
        out = np.empty((x.shape[0], values.shape[0]))
        x = x.view()
        x.flags.writeable = False  # one compiled kernel serves writable and read-only input
        stump_answers(x, threshold, np.ascontiguousarray(by_leaf), out)
        return out
    x = where.as_float64(x)
    right = xp.astype(x > threshold, xp.int64)
    leaf = xp.where(xp.isnan(x), where.full(ABSTAIN, xp.int64), right)
    return xp.take(where.put(by_leaf.T), leaf, axis=0)


def _batches(spans: list[tuple[int, int]], most: int) -> Iterator[list[tuple[int, int]]]:
    """Spans of several stumps, up to `most` together; the others, which read a feature, alone."""
    batch: list[tuple[int, int]] = []
    for span in spans:
        alone = span[1] - span[0] <= 1
        if batch and (alone or len(batch) == most):
            yield batch
            batch = []
        if alone:
            yield [span]
        else:
            batch.append(span)
    if batch:
        yield batch


class AdditiveModel(Model):
    """An immutable sum of stumps on the host; call it with arrays of any library.

    Parameters
    ----------
    rounds : Rounds
    n_features : int
    intercept : array of n_outputs values
    ends : array of int, optional
        Where several stumps are a round (of bags that were averaged, of classes): how many there
        are after each round.
    """

    _format = b"ensemble_gpu.AdditiveModel.1"

    rounds: Rounds
    n_features: int
    intercept: np.ndarray
    ends: np.ndarray | None
    tables: Mapping[int, Table]

    def __init__(
        self,
        rounds: Rounds,
        n_features: int,
        intercept: np.ndarray,
        ends: np.ndarray | None = None,
    ) -> None:
        intercept = np.array(intercept, dtype=np.float64)
        check_array("intercept", intercept, (None,))
        _check_rounds(rounds, n_features, len(intercept))
        tables = _tables(rounds, len(intercept))
        owned = [intercept, *(a for t in tables.values() for a in vars(t).values())]
        for array in [*owned, *vars(rounds).values()]:
            array.setflags(write=False)
        self._assign(rounds=rounds, n_features=n_features, intercept=intercept)
        self._assign(tables=MappingProxyType(tables), ends=checked_ends(ends, len(rounds)))

    def __getstate__(self) -> dict[str, Any]:
        names = ("rounds", "n_features", "intercept", "ends")
        return {name: getattr(self, name) for name in names}

    def in_rounds(self, ends: np.ndarray) -> AdditiveModel:
        """The same stumps, the first ends[0] rounds as one round, those up to ends[1] as next."""
        ends = joined_ends(self.ends, ends)
        return AdditiveModel(self.rounds, self.n_features, self.intercept, ends)

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    @property
    def n_rounds(self) -> int:
        return len(self.rounds) if self.ends is None else len(self.ends)

    def __repr__(self) -> str:
        cells = sum(len(t.thresholds) for t in self.tables.values())
        return (
            f"AdditiveModel({self.n_rounds} rounds on {len(self.tables)} of {self.n_features} "
            f"features, {cells} thresholds, {self.n_outputs} output(s), "
            f"fingerprint {self.fingerprint()[:12]})"
        )

    def _canonical(self) -> Iterator[bytes]:
        yield canonical_bytes([self.n_features, self.n_outputs, len(self.rounds), *self.tables])
        for array in [self.intercept, *vars(self.rounds).values()]:
            yield canonical_bytes(array)
        for table in self.tables.values():
            for array in vars(table).values():
                yield canonical_bytes(array)
        if self.ends is not None:
            yield canonical_bytes(self.ends)

    def shape_function(self, feature: int) -> Table:
        """What feature `feature` adds to F; all zeros where no stump uses it."""
        if not 0 <= feature < self.n_features:
            raise ValueError(
                f"feature must be an integer from 0 to {self.n_features - 1}; got {feature!r}."
            )
        zero = np.zeros(self.n_outputs)
        return self.tables.get(feature, Table(np.zeros(0), zero[None, :], zero))

    def first(self, n_rounds: int) -> AdditiveModel:
        """The model of the first n rounds (of all, where there are fewer)."""
        check_length("n_rounds", n_rounds)
        last = last_of(self.ends, min(n_rounds, self.n_rounds))
        ends = None if self.ends is None else self.ends[:n_rounds]
        return AdditiveModel(self.rounds.between(0, last), self.n_features, self.intercept, ends)

    @property
    def joined(self) -> JoinedTables:
        """The tables as arrays, in the order in which they are added up."""
        tables, k = self.tables.values(), self.n_outputs
        sizes = [len(t.thresholds) for t in tables]
        return JoinedTables(
            np.array(list(self.tables), dtype=np.int64),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([np.zeros(0), *(t.thresholds for t in tables)]),
            np.concatenate([np.zeros((0, k)), *(t.values for t in tables)]),
            np.array([t.missing for t in tables]).reshape(len(tables), k),
        )

    @cached_property
    def packed(self) -> PackedTables:
        """The tables in one piece, for the kernels."""
        steps = [max(1, len(t.thresholds).bit_length()) for t in self.tables.values()]
        sizes = [1 << s for s in steps]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        thresholds = np.full(first[-1], np.inf)
        values = np.zeros((first[-1], self.n_outputs))
        for start, table in zip(first, self.tables.values(), strict=False):
            thresholds[start : start + len(table.thresholds)] = table.thresholds
            values[start : start + len(table.values)] = table.values
        missing = np.array([t.missing for t in self.tables.values()])
        return PackedTables(
            np.array(list(self.tables), dtype=np.int64),
            first[:-1],
            np.array(steps, dtype=np.int64),
            thresholds,
            values,
            missing.reshape(len(steps), self.n_outputs),
            self.intercept,
        )

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, outputs], in the namespace and on the device of X.

        X is an array of any array-API library, a matrix of scipy.sparse or a list of rows; NaN is
        missing. (Namespaces without float64 get their widest float.)
        """
        X, home, where = rows_at_work(X, self.n_features)
        engine = engine_for(where, n_jobs)
        return home.hand_over(evaluate(engine, X, self.packed))

    def staged(
        self, X: Any, rounds: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Iterator[Any]:
        """F after each round, starting with the first; one float64 array [n, outputs] a stage.

        With `rounds`, ascending numbers of rounds, only after those: the stumps between two of
        them are added as one table a feature, however many they are.
        """
        X, source, where = rows_at_work(X, self.n_features)
        total = where.zeros((X.shape[0], self.n_outputs), where.xp.float64)
        intercept = where.put(self.intercept)[None, :]  # last, as in PackedTables
        spans = [
            (last_of(self.ends, before), last_of(self.ends, after))
            for before, after in stages(rounds, self.n_rounds)
        ]
        most = min(MOST_STAGES, max(1, STAGE_CELLS // max(1, X.shape[0] * self.n_outputs)))
        for together in _batches(spans, most):
            for added in self._added(X, together, where, n_jobs):
                total = total if added is None else total + added
                yield source.hand_over(total + intercept)

    def _added(
        self, X: Any, spans: list[tuple[int, int]], where: Where, n_jobs: int | None
    ) -> Iterator[Any]:
        """What the stumps first + 1 ... last of each span add (None: there are none).

        Those of several spans are outputs of one model, whose features are searched once.
        """
        first, last = spans[0][0], spans[-1][1]
        if last == first:
            yield None
            return
        if last == first + 1:
            yield self._one_round(X, first, where)
            return
        if len(spans) == 1 and last - first == len(self.rounds):
            whole = replace(self.packed, intercept=np.zeros(self.n_outputs))
            yield evaluate(engine_for(where, n_jobs), X, whole)
            return
        between, K = self.rounds.between(first, last), self.n_outputs
        span_of = np.repeat(np.arange(len(spans)), [stop - start for start, stop in spans])
        values = np.zeros((last - first, len(spans), *between.values.shape[1:]))
        values[np.arange(last - first), span_of] = between.values
        apart = replace(between, values=values.reshape(last - first, len(spans) * K, -1))
        F = AdditiveModel(apart, self.n_features, np.zeros(len(spans) * K))(X, n_jobs)
        for s in range(len(spans)):
            yield F[:, s * K : (s + 1) * K]

    def _one_round(self, X: Any, t: int, where: Where) -> Any:
        rounds = self.rounds
        x, threshold = column(X, int(rounds.feature[t])), float(rounds.threshold[t])
        missing_leaf = int(rounds.missing_leaf[t])
        return stump_values(x, threshold, missing_leaf, rounds.values[t], where)
