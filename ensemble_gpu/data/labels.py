"""Labels: one a row, of any kind that can be compared."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from ensemble_gpu.arrays.namespace import NUMPY, Where, is_array, to_numpy
from ensemble_gpu.data.validation import check_length, features_of, refuse_mask
from ensemble_gpu.kernels.team import ALONE, Team

# Labels that a message lists.
MOST_CLASSES = 10
# Integers within so many values are looked up: sorting a million took longer than ten rounds.
SPAN = 1 << 16


def check_labels(
    y: Any, n_rows: int, where: Where, n_classes: int, name: str, team: Team = ALONE
) -> tuple[np.ndarray, Any]:
    """Distinct labels in order (host) and the index of every row's label, where y lives.

    At least `n_classes` different labels are required, of all workers together.
    """
    y = check_label_column(y, n_rows, where, name)
    if not isinstance(y, np.ndarray):
        classes, index = _device_labels(y, where)
    else:
        classes, numbers = _host_labels(y)
        # few classes in two bytes: a quarter of the memory, and NumPy sorts them by radix
        small = where is NUMPY and len(classes) < 2**15
        index = where.put(numbers.astype(np.int16 if small else np.int64))
    if not team.alone:
        classes, index = _labels_of_all(classes, index, where, team)
    if len(classes) < n_classes:
        raise ValueError(
            f"{name} must hold at least {n_classes} classes; got 1 class: {classes.tolist()!r}."
        )
    return classes, index


def _labels_of_all(
    classes: np.ndarray, index: Any, where: Where, team: Team
) -> tuple[np.ndarray, Any]:
    """The labels of all workers in order, and the index of every row's label among them."""
    labels = [label for own in team.labels(classes.tolist(), "y") for label in own]
    dtype = np.result_type(*(np.dtype(kind) for kind in team.each(classes.dtype.str)))
    every, _ = _host_labels(np.array(labels, dtype=dtype))
    place = {label: k for k, label in enumerate(every.tolist())}
    numbers = np.array([place[label] for label in classes.tolist()], dtype=np.int64)
    if where is NUMPY and len(every) < 2**15:
        numbers = numbers.astype(np.int16)
    return every, where.xp.take(where.put(numbers), index)


def check_label_column(y: Any, n_rows: int, where: Where, name: str) -> Any:
    """One label a row [n]: on a device integers or bool, else a NumPy array of any labels."""
    if y is None:
        raise ValueError(f"requires {name} to be passed, but the target {name} is None.")
    refuse_mask(y, name)
    on_device = is_array(y) and not isinstance(y, np.ndarray)
    if on_device and y.ndim != 1:
        raise ValueError(f"{name} must be 1-dimensional; got an array of shape {tuple(y.shape)}.")
    y = y if on_device else column_or_1d(y, warn=True)
    check_length(name, y.shape[0], features_of(name), n_rows)
    if on_device and not where.xp.isdtype(y.dtype, ("integral", "bool")):
        raise ValueError(
            f"Unknown label type: labels in {where} must be integers or bool; got dtype "
            f"{y.dtype}. Pass other labels as a NumPy array or a list."
        )
    if not on_device:
        _check_host_labels(y, name)
    return y


def _check_host_labels(y: np.ndarray, name: str) -> None:
    if y.dtype.kind == "O":
        if any(label is None or label != label for label in y.tolist()):
            raise ValueError(f"Input {name} contains NaN or None; every row needs a label.")
        if not _can_be_sorted(y):
            return
    if y.dtype.kind not in "biu":  # of integers scikit-learn finds the same in 0.2 ms
        assert_all_finite(y, input_name=name)
        check_classification_targets(y)


def _can_be_sorted(y: np.ndarray) -> bool:
    kinds = str | numbers.Number
    return y.dtype.kind != "O" or all(isinstance(label, kinds) for label in y.tolist())


def _host_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels that NumPy can sort, or any hashable objects, sorted by type and text."""
    if y.dtype.kind in "biu" and len(y):
        low, high = int(y.min()), int(y.max())
        if high - low < SPAN:
            return _labels_in_span(y, low, high)
    if y.dtype.kind in "iuf":
        classes = np.unique(y)
        return classes, np.searchsorted(classes, y)
    if _can_be_sorted(y):
        return np.unique(y, return_inverse=True)
    labels = y.tolist()
    distinct = sorted(set(labels), key=lambda label: (type(label).__name__, str(label)))
    number = {label: k for k, label in enumerate(distinct)}
    classes = np.empty(len(distinct), dtype=object)
    classes[:] = distinct
    return classes, np.array([number[label] for label in labels])


def _labels_in_span(y: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers or bool from low to high, without sorting them."""
    wide = y.dtype == np.uint64
    at = (y - np.uint64(low)).astype(np.int64) if wide else y.astype(np.int64) - low
    occurs = np.zeros(high - low + 1, dtype=bool)
    occurs[at] = True
    kind = np.dtype(np.uint8) if y.dtype.kind == "b" else y.dtype
    classes = np.flatnonzero(occurs).astype(kind) + kind.type(low)
    return classes.astype(y.dtype), (np.cumsum(occurs) - 1)[at]


def _device_labels(y: Any, where: Where) -> tuple[np.ndarray, Any]:
    xp = where.xp
    values = xp.astype(y, xp.int64)
    classes = np.sort(to_numpy(xp.unique_values(values)))
    index = xp.searchsorted(where.put(classes), values)
    return classes.astype(bool) if xp.isdtype(y.dtype, "bool") else classes, index


def check_label_kinds(y: Any, classes: np.ndarray, name: str) -> None:
    """Refuse labels of a kind that training had none of: all of them would count as wrong."""
    strange = kinds_of(y) - kinds_of(classes)
    if strange:
        some = ", ".join(map(repr, classes[:MOST_CLASSES].tolist()))
        rest = ", ..." if len(classes) > MOST_CLASSES else ""
        raise ValueError(
            f"{name} holds {' and '.join(sorted(strange))}; labels must be "
            f"{' or '.join(sorted(kinds_of(classes)))}, as in training: {some}{rest}."
        )


def kinds_of(labels: Any) -> set[str]:
    """Numbers, strings or other objects: what labels are, in words."""
    if not isinstance(labels, np.ndarray) or labels.dtype.kind in "biufc":
        return {"numbers"}
    if labels.dtype.kind != "O":
        return {"strings" if labels.dtype.kind in "UT" else f"dtype {labels.dtype}"}
    types = {type(label) for label in labels.tolist()}
    return {
        "strings" if issubclass(t, str)
        else "numbers" if issubclass(t, numbers.Number)
        else f"{t.__name__} objects"
        for t in types
    }  # fmt: skip


def classes_with_weight(
    classes: np.ndarray, index: Any, weights: Any, where: Where, team: Team = ALONE
) -> tuple[np.ndarray, Any]:
    """Leave out the classes that have no weight: a row of weight zero is as if absent."""
    xp = where.xp
    own = [bool(xp.any((index == c) & (weights > 0.0))) for c in range(len(classes))]
    heavy = np.flatnonzero(team.sum(own)).tolist()
    if len(heavy) < 2:
        raise ValueError(
            "y must hold at least 2 classes with sample_weight > 0 (times class_weight, where "
            "given); got 1 class: "
            f"{classes[heavy].tolist()!r}."
        )
    numbers = np.zeros(len(classes), dtype=np.int64)
    numbers[heavy] = np.arange(len(heavy))
    return classes[heavy], xp.take(where.put(numbers), index)
