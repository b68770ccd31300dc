"""Random choices: drawn on the host or by a hash, so one seed gives one model on every backend.

What is drawn are items: a row is one, a row of the whole weight w is w of them, as if it were there
w times (data/keys.py: `repetitions`). Items are numbered in the order of the rows' keys, hashes of
what the rows hold. So neither the order of the rows matters, nor whether equal rows are repeated or
weighted, and each of several equal rows is drawn for itself. Weights that are not whole (or whole
with a mean above 16) are part of the key, and the row is a single item of that weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ensemble_gpu.data.keys import repetitions, sorted_rows
from ensemble_gpu.data.numbering import numbered
from ensemble_gpu.kernels.host.keys import mix_in
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.team import ALONE, Team, along_runs


def check_seed(random_state: Any) -> None:
    """Raise unless the parameter is one that can be drawn from; draws nothing."""
    _source(random_state)


def draw_seed(random_state: Any) -> int:
    """A seed from the parameter `random_state`."""
    return int(_source(random_state).randint(np.iinfo(np.int32).max))


def _source(random_state: Any) -> np.random.RandomState:
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be None, an integer from 0 to 2^32 - 1 or a RandomState instance; "
            f"got {random_state!r}."
        ) from error


@dataclass(frozen=True)
class Items:
    """What is drawn from: `rows[k]` is the row of item k.

    Row i is `repeats[i]` items (None: every row is one). `whole`: these are the rows' weights, and
    the weight of what is left of a row is the number of its items that are left. `numbers` are
    those of the items among the items of all workers (None: 0, 1, ...: there are no others).
    """

    rows: np.ndarray
    repeats: np.ndarray | None
    whole: bool
    numbers: np.ndarray | None = None


def items_of(
    keys: np.ndarray,
    weights: np.ndarray | None,
    team: Team = ALONE,
    rows: np.ndarray | None = None,
) -> Items:
    """Items of rows with these keys (of target and features) and weights, on the host.

    `rows` are the places of the rows among those of the worker (None: they are all its rows).
    """
    repeats, factor = repetitions(weights, team)
    if factor is not None:
        keys = keys.copy()
        mix_in(keys, factor[:, None])
    items = _sorted_items(keys, weights, repeats, factor is None)
    if team.alone:
        return items
    ties = team.positions(np.arange(len(keys)) if rows is None else rows)[:, None]
    if weights is not None:
        by_weight = np.ascontiguousarray(weights, dtype=np.float64).view(np.int64)
        ties = np.stack([by_weight, ties[:, 0]], axis=1)
    first, _ = numbered(keys, ties, repeats, team)
    return replace(items, numbers=first[items.rows] + along_runs(items.rows))


def _sorted_items(
    keys: np.ndarray, weights: np.ndarray | None, repeats: np.ndarray | None, whole: bool
) -> Items:
    if weights is None or repeats is None:
        return Items(sorted_rows(keys), None, False)
    # equal rows in order of weight, so that which of them has which items is no matter of order
    by_weight = np.argsort(weights, kind="stable")
    order = by_weight[sorted_rows(keys[by_weight])]
    return Items(np.repeat(order, repeats[order]), repeats, whole)


def count_items(n_rows: int, weights: np.ndarray | None, team: Team = ALONE) -> int:
    """How many rows there are, those of weight zero not; whole weights are repetitions of rows."""
    if weights is None:
        return team.count(n_rows)
    if not team.any(bool((weights != np.rint(weights)).any())):
        return team.count(int(weights.sum()))
    return team.count(int((weights > 0.0).sum()))


def _within_class(
    index: np.ndarray, items: Items, c: int, team: Team
) -> tuple[np.ndarray, np.ndarray, int]:
    """Places of the items of class c, their numbers among those of all workers, how many."""
    at = np.flatnonzero(index[items.rows] == c)
    if team.alone or items.numbers is None:
        return at, np.arange(len(at)), len(at)
    bits = team.count(len(items.rows)).bit_length()
    keys = items.numbers[at].astype(np.uint64) << np.uint64(64 - bits)  # spread as hashes are
    return at, *numbered(keys, np.zeros((len(at), 0), dtype=np.int64), None, team)


def stratified_holdout(
    index: np.ndarray, items: Items, n_classes: int, fraction: float, random_state: Any
) -> np.ndarray:
    """Rows of about `fraction` of every class's items, leaving at least one item of each class.

    In the order of the items; a row is there as often as items of it are drawn.
    """
    return items.rows[held_items(index, items, n_classes, fraction, random_state)]


def held_items(
    index: np.ndarray,
    items: Items,
    n_classes: int,
    fraction: float,
    random_state: Any,
    team: Team = ALONE,
) -> np.ndarray:
    """Whether each item is one of `stratified_holdout`: bool."""
    generator = np.random.default_rng(draw_seed(random_state))
    chosen, found = np.zeros(len(items.rows), dtype=bool), False
    for c in range(n_classes):
        at, numbers, n = _within_class(index, items, c, team)
        size = min(max(1, round(fraction * n)), n - 1)
        drawn = np.zeros(n, dtype=bool)
        drawn[generator.permutation(n)[:size]] = True
        chosen[at], found = drawn[numbers], found or size > 0
    if not found:
        raise ValueError(
            f"validation_fraction={fraction} of {team.count(len(items.rows))} rows is no row; give "
            "more rows, a larger fraction, or X_val and y_val."
        )
    return chosen


def stratified_folds(
    index: np.ndarray, items: Items, n_classes: int, n_folds: int, seed: int
) -> list[np.ndarray]:
    """Rows of each fold, as of `stratified_holdout`: every class is shared out evenly."""
    fold = fold_of_items(index, items, n_classes, n_folds, seed)
    return [items.rows[fold == k] for k in range(n_folds)]


def fold_of_items(
    index: np.ndarray, items: Items, n_classes: int, n_folds: int, seed: int, team: Team = ALONE
) -> np.ndarray:
    """The fold of each item."""
    generator = np.random.default_rng(seed)
    fold = np.zeros(len(items.rows), dtype=np.int64)
    for c in range(n_classes):
        at, numbers, n = _within_class(index, items, c, team)
        drawn = np.empty(n, dtype=np.int64)
        drawn[generator.permutation(n)] = np.arange(n) % n_folds
        fold[at] = drawn[numbers]
    return fold


def drawn_items(seed: int, round_: int, numbers: Any, share: float, engine: Engine) -> Any:
    """Whether each item (uint64 numbers) is drawn in a round, with probability `share`: bool.

    A counter-based hash of seed, round and number: the same on every device.
    """
    return engine.drawn(numbers, None, *_offset_and_limit(seed, round_, share))


def _offset_and_limit(seed: int, round_: int, share: float) -> tuple[int, int]:
    offset = seed * 0xD1B54A32D192ED03 + round_ * 0x8CB92BA72F3D8DD7
    return offset % 2**64, int(share * 2.0**64)


class Draws:
    """Rows drawn anew each round, where the rows are.

    The items of row i have the numbers `numbers[bounds[i] : bounds[i + 1]]`; without bounds each
    row is one item.
    """

    def __init__(self, items: Items, n_rows: int, engine: Engine) -> None:
        self.engine, self.whole = engine, items.whole
        self.bounds: Any = None
        own = np.arange(len(items.rows)) if items.numbers is None else items.numbers
        if items.repeats is None:
            numbers = np.empty(n_rows, dtype=np.uint64)
            numbers[items.rows] = own
        else:
            numbers = own[np.argsort(items.rows, kind="stable")].astype(np.uint64)
            bounds = np.concatenate([[0], np.cumsum(items.repeats)]).astype(np.int64)
            self.bounds = engine.where.put(bounds)
        self.numbers = engine.where.put(numbers)

    def counts(self, seed: int, round_: int, share: float) -> Any:
        """How many items of each row are drawn: int64, or bool where rows are items."""
        key = _offset_and_limit(seed, round_, share)
        return self.engine.drawn(self.numbers, self.bounds, *key)
