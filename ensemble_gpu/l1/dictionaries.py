"""Dictionaries of functions h with values in [-1, 1], whose weighted sums fill the L1 ball.

A dictionary is symmetric: a coefficient may have either sign. For K outputs it holds every h for
every output, h e_k. It is asked for correlations sum_i q_i h(x_i) of integers q, for those h that
are in the sum and for the best ones; sums are integers of the engine, so that the choice is the
same to the last bit everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ensemble_gpu.boosting.problem import Problem
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT, Codes, Engine, Layout
from ensemble_gpu.l1.rows import Curvatures
from ensemble_gpu.learners.protocol import Outcome
from ensemble_gpu.learners.stump import Stump, StumpTables

# Planes of integers that are added up at a time.
PLANES = 32
# Functions with large |sums| that are handed on: the best of all features, or of pieces of them.
MOST_FOUND = 32
# A member of a dictionary: what tells it from the others.
Key = Any


@dataclass(frozen=True)
class Correlations:
    """Sums of q h, exact integers: of the keys that were asked for, and the largest |sums| found.

    `found` are keys with their sums, the largest |sum| first; of equals the first in the order of
    the dictionary.
    """

    own: np.ndarray
    found: list[tuple[Key, int]]


class Sample(Protocol):
    """Products of functions at some of the rows."""

    def products(self, new: Sequence[Key], keys: Sequence[Key], curves: Curvatures) -> np.ndarray:
        """sum_i curves[k, l, i] h_i h'_i, h of output k in `new`, h' of output l in `keys`.

        curves are integers, and so are the sums.
        """
        ...

    def cost(self, n: int) -> int:
        """Additions that the products of n functions with each other take."""
        ...


class Dictionary(Protocol):
    """Functions h(x) of the training rows.

    `exact`: the largest |sum| that is found is the largest of all; else the gap is a guess. A look
    at all rows costs about `width` additions a row.
    """

    exact: bool
    width: int

    def of_rows(self, problem: Problem) -> Dictionary:
        """The same functions where rows have the weights of this problem."""
        ...

    def correlations(self, q: Any, keys: Sequence[Key], F: Any) -> Correlations:
        """Of the int64 q [output, row], which are -w g at the outputs F."""
        ...

    def sample(self, rows: Any) -> Sample:
        """The same functions at some of the rows."""
        ...

    def moved(self, F: Any, keys: Sequence[Key], changes: np.ndarray) -> Any:
        """F [output, row] + sum of changes times h."""
        ...

    def outcome(
        self, keys: Sequence[Key], coefficients: np.ndarray, worth: np.ndarray, start: np.ndarray
    ) -> Outcome:
        """The model start + sum of coefficients times h."""
        ...


class StumpKey(NamedTuple):
    """h = +1 where the code of `feature` is above `bin`, else -1, in one output.

    Missing values have the answer `missing`: -1, 0 or +1.
    """

    output: int
    feature: int
    bin: int
    missing: int


class StumpDictionary:
    """All thresholds of all features (or of generators: half-spaces, balls, boxes).

    With S the sums of q in the codes of a feature and S_t those up to the threshold,

        sum_i q_i h_i = S - 2 S_t + missing S_missing

    Where missing values are told apart from the others, "missing or not" is a threshold too.
    """

    exact = True

    def __init__(self, engine: Engine, tables: StumpTables, *, learn: bool) -> None:
        self.engine, self.tables, self.matrix = engine, tables, tables.matrix
        self.codes, self.learn = self.matrix.codes, learn
        self.width = self.codes.n_features
        thresholds = self.matrix.n_thresholds(learn)
        absent = np.asarray(self.codes.counts[:, :, -1].any(axis=0))
        self.sides = (-1, 1) if learn and absent.any() else (0,)
        bins = np.arange(self.codes.width - 1)
        allowed = bins[None, :] < thresholds[:, None]
        # [side, feature, bin]; one side is enough where nothing is missing, and "everything" is
        # no threshold
        self.allowed = np.stack([allowed] * len(self.sides))
        if len(self.sides) == 2:
            edges = self.matrix.n_thresholds(False)
            self.allowed[0] &= absent[:, None] & (bins[None, :] < edges[:, None])

    def of_rows(self, problem: Problem) -> StumpDictionary:
        return self

    def correlations(self, q: Any, keys: Sequence[StumpKey], F: Any) -> Correlations:
        sums = self.engine.sums(self.codes, q)
        below = np.cumsum(sums[:, :, :-1], axis=2)
        total, gone = below[:, :, -1:], sums[:, :, -1:]
        scores = np.stack(
            [np.where(ok, total - 2 * below + side * gone, 0)
             for side, ok in zip(self.sides, self.allowed, strict=True)], axis=1,
        )  # fmt: skip
        return Correlations(_at(_places(keys), below, gone[:, :, 0]), self._largest(scores))

    def _largest(self, scores: np.ndarray) -> list[tuple[StumpKey, int]]:
        """The best threshold of each output, feature and piece of it, the largest |sum| first."""
        K, _, p, width = scores.shape
        pieces = min(width, max(1, MOST_FOUND // (K * p)))
        parts = []
        for bins in np.array_split(np.arange(width), pieces):
            part = np.swapaxes(scores[..., bins], 1, 2).reshape(K * p, -1)
            at = np.argmax(np.abs(part), axis=1)
            side, t = np.divmod(at, len(bins))
            parts.append((part[np.arange(K * p), at], side, bins[t]))
        best, sides, at = (np.stack(own, axis=1).reshape(-1) for own in zip(*parts, strict=True))
        order = np.argsort(-np.abs(best), kind="stable")[:MOST_FOUND]
        found = []
        for place in order[np.flatnonzero(best[order])].tolist():
            k, f = divmod(place // pieces, p)
            key = StumpKey(k, f, int(at[place]), self.sides[int(sides[place])])
            found.append((key, int(best[place])))
        return found

    def sample(self, rows: Any) -> StumpSample:
        return StumpSample(self.engine, self.codes, rows)

    def moved(self, F: Any, keys: Sequence[StumpKey], changes: np.ndarray) -> Any:
        """By one table a feature; changes are multiples of a number, so that sums are exact."""
        if not len(keys):
            return F
        K, p, width = F.shape[0], self.codes.n_features, self.codes.width
        k, f, t, missing = _places(keys)
        tables = np.zeros((K, p, width))
        np.add.at(tables, (k, f, 0), -changes)
        np.add.at(tables, (k, f, t + 1), 2.0 * changes)
        tables[:, :, : width - 1] = np.cumsum(tables[:, :, : width - 1], axis=2)
        tables[:, :, -1] = 0.0
        np.add.at(tables, (k, f, np.full(len(keys), width - 1)), missing * changes)
        return self.engine.add_tables(F, self.codes, np.unique(f), tables)

    def outcome(
        self, keys: Sequence[StumpKey], coefficients: np.ndarray, worth: np.ndarray,
        start: np.ndarray,
    ) -> Outcome:  # fmt: skip
        rounds = []
        for key, c, gain in zip(keys, coefficients.tolist(), worth.tolist(), strict=True):
            values = np.zeros((len(start), N_LEAVES))
            values[key.output, [LEFT, RIGHT]] = -c, c
            rounds.append(
                Stump(key.feature, key.bin, self._missing_leaf(key), values, abs(c), gain)
            )
        return self.tables.outcome(rounds, start, start)

    def _missing_leaf(self, key: StumpKey) -> int:
        """Where missing values go; to the fuller side if there were none to learn from."""
        counts = self.codes.counts[:, key.feature, :].sum(axis=0)
        if not self.learn:
            return ABSTAIN
        if counts[-1]:
            return LEFT if key.missing < 0 else RIGHT
        return LEFT if 2 * counts[: key.bin + 1].sum() >= counts.sum() else RIGHT


class StumpSample:
    """Codes of some rows: products are sums of integers in bins, as correlations are."""

    def __init__(self, engine: Engine, codes: Codes, rows: Any) -> None:
        where, xp = engine.where, engine.where.xp
        self.engine, self.missing = engine, codes.width - 1
        columns = [xp.take(engine.column(codes, f), rows) for f in range(codes.n_features)]
        self.columns = np.stack([where.host(column) for column in columns])
        numbers = xp.stack([where.as_float64(column) for column in columns], axis=1)
        Z = xp.where(numbers == float(self.missing), where.full(np.nan), numbers)
        n = rows.shape[0]
        layout = Layout(np.array([0, n]), np.zeros((1, 1), dtype=np.int64))
        edges = [np.arange(max(self.missing - 1, 0)) + 0.5] * codes.n_features
        at = xp.arange(n, dtype=xp.int64, device=where.device)
        self.codes = engine.encode(Z, edges, at, layout, codes.width)

    def cost(self, n: int) -> int:
        return n * self.codes.n_rows * self.codes.n_features

    def products(
        self, new: Sequence[StumpKey], keys: Sequence[StumpKey], curves: Curvatures
    ) -> np.ndarray:
        """A plane of integers for each new function and output that it meets."""
        out, planes = np.zeros((len(new), len(keys))), len(curves.outputs(0))
        places, step = _places(keys), max(1, PLANES // planes)
        for first in range(0, len(new), step):
            k, f, t, missing = _places(new[first : first + step])
            own = self.columns[f]
            h = np.where(own > t[:, None], 1, -1)
            h = np.where(own == self.missing, missing[:, None], h)
            q = np.stack([curves.of(output) for output in k.tolist()]) * h[:, None, :]
            q = q.astype(np.int64).reshape(len(k) * planes, -1)
            sums = self.engine.sums(self.codes, self.engine.where.put(q))
            sums = sums.reshape(len(k), planes, *sums.shape[1:])
            below = np.cumsum(sums[..., :-1], axis=3)
            if planes > 1:
                out[first : first + step] = _at(places, below, sums[..., -1])
            else:  # functions of other outputs are apart
                there = np.concatenate([0 * places[:1], places[1:]])
                found = _at(there, below, sums[..., -1])
                out[first : first + step] = np.where(places[0] == k[:, None], found, 0)
        return out


def _places(keys: Sequence[StumpKey]) -> np.ndarray:
    """Outputs, features, bins and answers for missing values: [4, keys]."""
    return np.array(keys, dtype=np.int64).reshape(-1, 4).T


def _at(places: np.ndarray, below: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """Sums of q h, from those up to each code [.., output, feature, code] and of missing values."""
    k, f, t, missing = places
    return below[..., k, f, -1] - 2 * below[..., k, f, t] + missing * gone[..., k, f]
