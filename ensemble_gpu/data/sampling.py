"""Random choices: drawn on the host or by a hash, so one seed gives one model on every backend.

What is drawn are items: a row is one, a row of the whole weight w is w of them, as if it were there
w times (data/keys.py: `repetitions`). Items are numbered in the order of the rows' keys, hashes of
what the rows hold. So neither the order of the rows matters, nor whether equal rows are repeated or
weighted, and each of several equal rows is drawn for itself. Weights that are not whole (or whole
with a mean above 16) are part of the key, and the row is a single item of that weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ensemble_gpu.data.keys import repetitions, sorted_rows
from ensemble_gpu.kernels.host.keys import mix_in
from ensemble_gpu.kernels.protocol import Engine


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
    the weight of what is left of a row is the number of its items that are left.
    """

    rows: np.ndarray
    repeats: np.ndarray | None
    whole: bool


def items_of(keys: np.ndarray, weights: np.ndarray | None) -> Items:
    """Items of rows with these keys (of target and features) and weights, on the host."""
    repeats, factor = repetitions(weights)
    if weights is None or repeats is None:
        return Items(sorted_rows(keys), None, False)
    if factor is not None:
        keys = keys.copy()
        mix_in(keys, factor[:, None])
    # equal rows in order of weight, so that which of them has which items is no matter of order
    by_weight = np.argsort(weights, kind="stable")
    order = by_weight[sorted_rows(keys[by_weight])]
    return Items(np.repeat(order, repeats[order]), repeats, factor is None)


def count_items(n_rows: int, weights: np.ndarray | None) -> int:
    """How many rows there are, those of weight zero not; whole weights are repetitions of rows."""
    if weights is None:
        return n_rows
    if (weights == np.rint(weights)).all():
        return int(weights.sum())
    return int((weights > 0.0).sum())


def stratified_holdout(
    index: np.ndarray, items: Items, n_classes: int, fraction: float, random_state: Any
) -> np.ndarray:
    """Rows of about `fraction` of every class's items, leaving at least one item of each class.

    In the order of the items; a row is there as often as items of it are drawn.
    """
    generator = np.random.default_rng(draw_seed(random_state))
    label = index[items.rows]
    chosen = np.zeros(len(label), dtype=bool)
    for c in range(n_classes):
        at = np.flatnonzero(label == c)
        size = min(max(1, round(fraction * len(at))), len(at) - 1)
        chosen[generator.permutation(at)[:size]] = True
    if not chosen.any():
        raise ValueError(
            f"validation_fraction={fraction} of {len(label)} rows is no row; give more rows, a "
            "larger fraction, or X_val and y_val."
        )
    return items.rows[chosen]


def stratified_folds(
    index: np.ndarray, items: Items, n_classes: int, n_folds: int, seed: int
) -> list[np.ndarray]:
    """Rows of each fold, as of `stratified_holdout`: every class is shared out evenly."""
    generator = np.random.default_rng(seed)
    label = index[items.rows]
    fold = np.zeros(len(label), dtype=np.int64)
    for c in range(n_classes):
        at = generator.permutation(np.flatnonzero(label == c))
        fold[at] = np.arange(len(at)) % n_folds
    return [items.rows[fold == k] for k in range(n_folds)]


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
        if items.repeats is None:
            numbers = np.empty(n_rows, dtype=np.uint64)
            numbers[items.rows] = np.arange(n_rows, dtype=np.uint64)
        else:
            numbers = np.argsort(items.rows, kind="stable").astype(np.uint64)
            bounds = np.concatenate([[0], np.cumsum(items.repeats)]).astype(np.int64)
            self.bounds = engine.where.put(bounds)
        self.numbers = engine.where.put(numbers)

    def counts(self, seed: int, round_: int, share: float) -> Any:
        """How many items of each row are drawn: int64, or bool where rows are items."""
        key = _offset_and_limit(seed, round_, share)
        return self.engine.drawn(self.numbers, self.bounds, *key)
