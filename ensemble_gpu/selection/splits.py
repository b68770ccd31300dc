"""Which rows are held out: folds as positions on the host, made once and checked.

`cv` is a number of folds, a splitter of scikit-learn (StratifiedKFold, GroupKFold, RepeatedKFold,
TimeSeriesSplit, LeaveOneOut, ...) or a list of (train, test) positions. Of y only the labels are
read on the host.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state

from ensemble_gpu.arrays.namespace import is_array, locate, to_numpy


@dataclass(frozen=True)
class Fold:
    """Positions of the rows to train on and of those that are held out."""

    train: np.ndarray
    test: np.ndarray


def n_rows(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape is not None else len(X)


def take_rows(array: Any, at: np.ndarray) -> Any:
    """The rows at host positions, of an array, a frame, a sparse matrix or a list; None stays."""
    if array is None:
        return None
    if type(array) is np.ndarray:
        return array[at]
    if is_array(array):
        where = locate(array)
        return where.xp.take(array, where.xp.asarray(at, device=where.device), axis=0)
    return _safe_indexing(array, at)


def host_labels(y: Any) -> np.ndarray:
    """Y on the host: what decides into which fold a row falls."""
    return np.asarray(to_numpy(y) if is_array(y) else y).ravel()


def make_folds(
    cv: Any, y: Any, n: int, *, stratified: bool, groups: Any = None, random_state: Any = 0
) -> list[Fold]:
    """Folds of n rows; `stratified`: y are labels, and each fold has its share of each."""
    if y is None:
        raise ValueError("y must hold a target a row; got None.")
    labels = host_labels(y)
    if len(labels) != n:
        raise ValueError(f"X has {n} rows, y has {len(labels)}; they must be as many.")
    groups = None if groups is None else host_labels(groups)
    if groups is not None and len(groups) != n:
        raise ValueError(f"X has {n} rows, groups has {len(groups)}; they must be as many.")
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        cv = _splitter(int(cv), labels, n, stratified, groups, random_state)
    if hasattr(cv, "split") and not isinstance(cv, str):
        with warnings.catch_warnings():  # whether groups were heeded is checked below
            warnings.filterwarnings("ignore", "The groups parameter is ignored")
            pairs = list(cv.split(np.zeros((n, 1)), labels, groups))
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = list(cv)
    else:
        raise TypeError(
            "cv must be a number of folds, a splitter with split(X, y, groups), or a list of "
            f"(train, test) positions; got {cv!r}."
        )
    folds = [_checked(pair, i, n) for i, pair in enumerate(pairs)]
    if not folds:
        raise ValueError("cv must have at least one fold; got none.")
    if stratified:
        classes, index = np.unique(labels, return_inverse=True)
        for i, fold in enumerate(folds):
            _check_classes(fold, i, classes, index)
    if groups is not None:
        for i, fold in enumerate(folds):
            _check_groups(fold, i, groups)
    return folds


def _splitter(
    n_folds: int, labels: np.ndarray, n: int, stratified: bool, groups: Any, random_state: Any
) -> Any:
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds; got {n_folds}.")
    if n_folds > n:
        raise ValueError(f"cv must be at most the number of rows, {n}; got {n_folds} folds.")
    shuffled = {"n_splits": n_folds, "shuffle": True, "random_state": random_state}
    if groups is not None:
        if len(np.unique(groups)) < n_folds:
            raise ValueError(
                f"cv must be at most the number of groups, {len(np.unique(groups))}; got {n_folds} "
                "folds."
            )
        return StratifiedGroupKFold(**shuffled) if stratified else GroupKFold(**shuffled)
    if not stratified:
        return _drawn(n_folds, n, random_state)
    values, counts = np.unique(labels, return_counts=True)
    if counts.min() < n_folds:
        few = values[counts.argmin()]
        raise ValueError(
            f"y has {counts.min()} rows of label {few.item()!r}, fewer than the {n_folds} folds of "
            "cv: every fold needs one."
        )
    return StratifiedKFold(**shuffled)


def _drawn(n_folds: int, n: int, random_state: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """scikit-learn's KFold with shuffle=True, in half the time."""
    order = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    check_random_state(random_state).shuffle(order)
    fold = np.empty(n, dtype=np.int32)
    for k, rows in enumerate(np.array_split(order, n_folds)):
        fold[rows] = k
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def _checked(pair: Any, i: int, n: int) -> Fold:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise TypeError(f"cv[{i}] must be a pair (train, test) of positions; got {pair!r}.")
    parts = []
    for part, name in zip(pair, ("train", "test"), strict=True):
        at = np.asarray(to_numpy(part) if is_array(part) else part)
        if at.dtype == bool and at.shape == (n,):
            at = np.flatnonzero(at)
        if at.ndim != 1 or len(at) == 0 or at.dtype.kind not in "iu":
            raise ValueError(
                f"cv[{i}]: {name} must be positions of at least one row; got {at.dtype} of shape "
                f"{at.shape}."
            )
        if at.min() < 0 or at.max() >= n:
            raise ValueError(
                f"cv[{i}]: {name} must hold positions 0 to {n - 1}; got {at.min()} to {at.max()}."
            )
        parts.append(at.astype(np.int64, copy=False))
    train, test = parts
    inside = np.zeros(n, dtype=bool)
    inside[train] = True
    both = test[inside[test]]
    if len(both):
        raise ValueError(
            f"cv[{i}]: train and test share {len(both)} rows, such as row {both.min()}; held-out "
            "rows must not be trained on."
        )
    return Fold(train, test)


def _check_classes(fold: Fold, i: int, classes: np.ndarray, index: np.ndarray) -> None:
    missing = classes[np.bincount(index[fold.train], minlength=len(classes)) == 0].tolist()
    if missing:
        raise ValueError(
            f"cv[{i}]: no row to train on has label {missing!r}; every fold must "
            "train on all labels. Use fewer folds, or folds that are stratified."
        )


def _check_groups(fold: Fold, i: int, groups: np.ndarray) -> None:
    both = np.intersect1d(groups[fold.train], groups[fold.test])
    if len(both):
        raise ValueError(
            f"cv[{i}]: group {both[0].item()!r} is on both sides; rows of a group must be held out "
            "together. Use GroupKFold or another splitter that takes groups."
        )
