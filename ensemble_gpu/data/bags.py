"""Which rows and features each learner sees, drawn from the rows in an order of their own.

Draws are of positions in the order of the rows' keys, hashes of what the rows hold. So the bags,
and with them the model, depend neither on the order of the rows nor on the array library, and
a row of weight 3 is drawn as three equal rows are: integer weights are repetitions, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.data.keys import row_keys, sorted_rows
from ensemble_gpu.data.numbering import numbered
from ensemble_gpu.kernels.host.draws import (
    add_up,
    bootstrap_counts,
    stream,
    subset_counts,
    weighted_counts,
    weighted_subset_counts,
)
from ensemble_gpu.kernels.host.hashing import STEP, mixed
from ensemble_gpu.kernels.team import ALONE, Team, along_runs

# What is not a draw of rows takes its numbers from seeds that no user's seed reaches.
FOR_FEATURES, FOR_LEARNERS, FOR_VALIDATION = 1 << 32, 2 << 32, 3 << 32


@dataclass(frozen=True)
class Bags:
    """Bags of rows for learners 0, 1, 2, ...

    `rows` lists the rows to draw from, a row of weight 3 three times; None where every bag holds
    them all, `repeats` times. With `chances` rows are drawn in proportion to them instead.
    A learner's weights are its counts times `factor`, where there is one. `numbers` are the places
    of `rows` among the `n_items` of all workers (None: there are no others).
    """

    seed: int
    replace: bool
    n_draws: int
    n_rows: int
    rows: np.ndarray | None
    repeats: np.ndarray | None
    chances: np.ndarray | None
    factor: np.ndarray | None
    numbers: np.ndarray | None = None
    n_items: int | None = None

    def counts(self, learner: int) -> np.ndarray:
        """How often each row is in the bag: int32 [n_rows]."""
        if self.rows is None:
            ones = np.ones(self.n_rows, dtype=np.int32)
            return ones if self.repeats is None else self.repeats.astype(np.int32)
        if self.chances is not None:
            draw = weighted_counts if self.replace else weighted_subset_counts
            drawn = draw(self.seed, learner, self.chances, self.n_draws)
        else:
            draw = bootstrap_counts if self.replace else subset_counts
            drawn = draw(self.seed, learner, self.n_items or len(self.rows), self.n_draws)
        return add_up(
            self.rows, drawn if self.numbers is None else drawn[self.numbers], self.n_rows
        )

    def weights(self, counts: np.ndarray) -> np.ndarray:
        return counts.astype(np.float64) if self.factor is None else counts * self.factor

    def in_order(self, counts: np.ndarray) -> np.ndarray:
        """Rows of a bag, each as often as it was drawn, in the order of the keys."""
        rows = np.arange(self.n_rows) if self.rows is None else self.rows
        first = np.ones(len(rows), dtype=bool)
        first[1:] = rows[1:] != rows[:-1]
        rows = rows[first]
        return np.repeat(rows, counts[rows])


def make_bags(
    X: Any,
    target: Any,
    repeats: np.ndarray | None,
    factor: np.ndarray | None,
    *,
    seed: int,
    replace: bool,
    max_samples: float | int,
    takes_weights: bool,
    team: Team = ALONE,
    at: np.ndarray | None = None,
    keys: np.ndarray | None = None,
) -> Bags:
    """Bags of `max_samples` of the rows; `repeats` is how often each can be drawn (None: once).

    `at` are the places of the rows among those of the worker (None: they are all its rows), `keys`
    those of the rows where they are known.
    """
    n_rows = X.shape[0]
    total = team.count(n_rows if repeats is None else int(repeats.sum()))
    n_draws = max_samples if isinstance(max_samples, int) else max(1, int(max_samples * total))
    if not replace and n_draws > total:
        raise ValueError(
            f"max_samples must be at most the number of rows that have weight, {total}, with "
            f"bootstrap=False; got {max_samples!r}."
        )
    chances, rows, numbers = None, None, None
    if replace or n_draws < total:
        keys = row_keys(target, X, factor) if keys is None else keys
        order = sorted_rows(keys)
        if factor is not None and not takes_weights:
            rows, chances = order, factor[order]
        else:
            rows = order if repeats is None else np.repeat(order, repeats[order])
        if not team.alone:
            ties = team.positions(np.arange(n_rows) if at is None else at)[:, None]
            first, _ = numbered(keys, ties, repeats, team)
            numbers = first[rows] + along_runs(rows)
    return Bags(
        seed=seed, replace=replace, n_draws=n_draws, n_rows=n_rows, rows=rows, repeats=repeats,
        chances=chances, factor=factor, numbers=numbers, n_items=None if team.alone else total,
    )  # fmt: skip


def draw_features(
    seed: int, learner: int, n_features: int, n_draws: int, replace: bool
) -> np.ndarray:
    """Sorted indices of a learner's features; one drawn twice is there twice."""
    draw = bootstrap_counts if replace else subset_counts
    counts = draw(seed + FOR_FEATURES, learner, n_features, n_draws)
    return np.repeat(np.arange(n_features), counts)


def draw_parts(seed: int, learner: int, n: int, sizes: Sequence[int]) -> list[np.ndarray]:
    """Disjoint sets of the numbers below n, of these sizes: bool [n] each."""
    left, parts = np.arange(n), []
    for k, size in enumerate(sizes):
        number = learner * len(sizes) + k
        chosen = subset_counts(seed + FOR_VALIDATION, number, len(left), size) > 0
        part = np.zeros(n, dtype=bool)
        part[left[chosen]] = True
        parts.append(part)
        left = left[~chosen]
    return parts


def learner_seed(seed: int, learner: int, which: int) -> int:
    """A value for the `which`-th random_state of a learner."""
    first = stream(seed + FOR_LEARNERS, learner)
    with np.errstate(over="ignore"):  # integers modulo 2^64
        number = mixed(np.uint64(first) + np.uint64(which) * STEP)
    return int(number >> np.uint64(33))
