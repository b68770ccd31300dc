"""User input to arrays: checks that name the parameter, what was given and what is allowed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

from ensemble_gpu.arrays.namespace import NUMPY, Where, is_array, to_numpy

FINITE_BLOCK = 1 << 16
# Labels that a message lists.
MOST_CLASSES = 10


def _is_one_of(value: Any, allowed: tuple[Any, ...]) -> bool:
    return any(value is a or (isinstance(value, str) and value == a) for a in allowed)


def _either(options: list[str]) -> str:
    *first, last = options
    return f"{', '.join(first)} or {last}" if first else last


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if not _is_one_of(value, allowed):
        options = ", ".join(repr(a) for a in allowed)
        raise ValueError(f"{name} must be one of {options}; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_flag_or_metric(name: str, value: Any) -> None:
    if not callable(value) and not isinstance(value, bool | np.bool_):
        raise ValueError(
            f"{name} must be True, False or a callable(y_true, y_pred) -> float; got {value!r}."
        )


def check_integer(
    name: str, value: Any, low: int, high: int | None = None, others: tuple[Any, ...] = ()
) -> None:
    """From `low` to `high`, or one of the `others`."""
    if _is_one_of(value, others):
        return
    allowed = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    allowed = _either([allowed, *map(repr, others)])
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {allowed}; got {value!r}.")
    if int(value) < low or (high is not None and int(value) > high):
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")


def check_amount(name: str, value: Any, low: int, others: tuple[Any, ...] = ()) -> None:
    """A number from `low`, a share in (0, 1] as a float, or one of the `others`."""
    if _is_one_of(value, others):
        return
    allowed = _either([f"an integer >= {low}", "a float in (0, 1]", *map(repr, others)])
    message = f"{name} must be {allowed}; got {value!r}."
    if isinstance(value, str) and any(isinstance(other, str) for other in others):
        raise ValueError(message)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(message)
    number = float(value)
    if not (number >= low if isinstance(value, numbers.Integral) else 0.0 < number <= 1.0):
        raise ValueError(message)


def check_real(name: str, value: Any, above: float, high: float = math.inf) -> None:
    """Above `above`, at most `high`, finite."""
    allowed = f"> {above:g}" if high == math.inf else f"in ({above:g}, {high:g}]"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number {allowed}; got {value!r}.")
    if not (above < float(value) <= high) or math.isinf(value):
        raise ValueError(f"{name} must be a finite number {allowed}; got {value!r}.")


def check_jobs(n_jobs: Any) -> None:
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        kind = ValueError if n_jobs == 0 else TypeError
        raise kind(
            "n_jobs must be None (all threads), an integer >= 1, or negative (-1: all threads); "
            f"got {n_jobs!r}."
        )


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Let scikit-learn's errors about an array of features say which one and what is allowed."""
    try:
        yield
    except ValueError as error:
        text = str(error).split("\n")[0]
        if "could not convert string" in text or "bytes/strings" in text:
            raise ValueError(
                f"{name} must hold numbers (floats, integers, bool; NaN is missing), not strings: "
                f"{text}"
            ) from error
        if text.startswith("Complex data"):
            raise ValueError(f"{text}: {name} must hold floats, integers or bool.") from error
        if name != "X":
            raise ValueError(f"{name}: {error}") from error
        raise
    except TypeError as error:
        if "argument must be a string" not in str(error):
            raise
        raise TypeError(
            f"{name} must hold numbers (floats, integers, bool; NaN is missing): {error}."
        ) from error


def check_shape(X: Any, name: str) -> None:
    """Two dimensions, a row and a column at least."""
    if X.ndim > 2:
        raise ValueError(
            f"Found array {name} with dim {X.ndim} (shape={tuple(X.shape)}), while dim <= 2 is "
            "required: rows, features."
        )
    if X.ndim < 2:
        raise ValueError(
            f"Expected 2D array {name} (rows, features), got {X.ndim}D array instead: shape "
            f"{tuple(X.shape)}. Reshape your data."
        )
    for axis, what in enumerate(("sample(s)", "feature(s)")):
        if X.shape[axis] == 0:
            raise ValueError(
                f"Found array {name} with 0 {what} (shape={tuple(X.shape)}) while a minimum of 1 "
                "is required."
            )


def check_numbers(X: Any, where: Where, name: str) -> Any:
    """X as float32 or float64: what float32 holds exactly becomes float32, the rest float64."""
    xp = where.xp
    if not xp.isdtype(X.dtype, ("real floating", "integral", "bool")):
        about = "Complex data not supported: " if xp.isdtype(X.dtype, "complex floating") else ""
        raise ValueError(
            f"{about}{name} has dtype {X.dtype}; floats, integers and bool are allowed."
        )
    if X.dtype in (xp.float32, xp.float64):
        return X
    small = [getattr(xp, name, None) for name in ("int8", "uint8", "int16", "uint16", "float16")]
    exact = xp.isdtype(X.dtype, "bool") or X.dtype in small
    return xp.astype(X, xp.float32 if exact else xp.float64)


def check_finite(X: Any, where: Where, name: str, would_take: tuple[str, ...] | None) -> None:
    """Refuse infinity always, and NaN unless `would_take` is None.

    It is what `missing` could be instead of "error". Blocks of rows keep copies small.
    """
    xp = where.xp
    for start in range(0, X.shape[0], FINITE_BLOCK):
        block = X[start : min(start + FINITE_BLOCK, X.shape[0]), :]
        if bool(xp.all(xp.isfinite(block))):
            continue
        if bool(xp.any(xp.isinf(block))):
            allowed = "finite values" if would_take else "finite values and NaN (missing)"
            raise ValueError(f"Input {name} contains infinity; {allowed} are allowed.")
        if would_take:
            options = " or ".join(f"missing={option!r}" for option in would_take)
            raise ValueError(
                f"Input {name} contains NaN, which missing='error' refuses; {options} takes it."
            )


def check_labels(
    y: Any, n_rows: int, where: Where, n_classes: int, name: str
) -> tuple[np.ndarray, Any]:
    """Distinct labels in order (host) and the index of every row's label, where y lives.

    At least `n_classes` different labels are required.
    """
    y = check_label_column(y, n_rows, where, name)
    if not isinstance(y, np.ndarray):
        classes, index = _device_labels(y, where)
    else:
        classes, numbers = _host_labels(y)
        # few classes in two bytes: a quarter of the memory, and NumPy sorts them by radix
        small = where is NUMPY and len(classes) < 2**15
        index = where.put(numbers.astype(np.int16 if small else np.int64))
    if len(classes) < n_classes:
        raise ValueError(
            f"{name} must hold at least {n_classes} classes; got 1 class: {classes.tolist()!r}."
        )
    return classes, index


def _features_of(name: str) -> str:
    """The features that y, y_val, sample_weight or sample_weight_val belongs to."""
    return "X_val" if name.endswith("_val") else "X"


def check_label_column(y: Any, n_rows: int, where: Where, name: str) -> Any:
    """One label a row [n]: on a device integers or bool, else a NumPy array of any labels."""
    if y is None:
        raise ValueError(f"requires {name} to be passed, but the target {name} is None.")
    on_device = is_array(y) and not isinstance(y, np.ndarray)
    if on_device and y.ndim != 1:
        raise ValueError(f"{name} must be 1-dimensional; got an array of shape {tuple(y.shape)}.")
    y = y if on_device else column_or_1d(y, warn=True)
    check_length(name, y.shape[0], _features_of(name), n_rows)
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
    if y.dtype.kind not in "biu":  # integers are labels; to be told so takes scikit-learn 0.2 ms
        assert_all_finite(y, input_name=name)
        check_classification_targets(y)


def _can_be_sorted(y: np.ndarray) -> bool:
    kinds = str | numbers.Number
    return y.dtype.kind != "O" or all(isinstance(label, kinds) for label in y.tolist())


def _host_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels that NumPy can sort, or any hashable objects, sorted by type and text."""
    if _can_be_sorted(y):
        return np.unique(y, return_inverse=True)
    labels = y.tolist()
    distinct = sorted(set(labels), key=lambda label: (type(label).__name__, str(label)))
    place = {label: k for k, label in enumerate(distinct)}
    classes = np.empty(len(distinct), dtype=object)
    classes[:] = distinct
    return classes, np.array([place[label] for label in labels])


def _device_labels(y: Any, where: Where) -> tuple[np.ndarray, Any]:
    xp = where.xp
    values = xp.astype(y, xp.int64)
    classes = np.sort(to_numpy(xp.unique_values(values)))
    index = xp.searchsorted(where.put(classes), values)
    return classes.astype(bool) if xp.isdtype(y.dtype, "bool") else classes, index


def check_label_kinds(y: Any, classes: np.ndarray, name: str) -> None:
    """Refuse labels of a kind that training had none of: all of them would count as wrong."""
    strange = _kinds(y) - _kinds(classes)
    if strange:
        some = ", ".join(map(repr, classes[:MOST_CLASSES].tolist()))
        rest = ", ..." if len(classes) > MOST_CLASSES else ""
        raise ValueError(
            f"{name} holds {' and '.join(sorted(strange))}; labels must be "
            f"{' or '.join(sorted(_kinds(classes)))}, as in training: {some}{rest}."
        )


def _kinds(labels: Any) -> set[str]:
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


def weighty_classes(
    classes: np.ndarray, index: Any, weights: Any, where: Where
) -> tuple[np.ndarray, Any]:
    """Leave out the classes that have no weight: a row of weight zero is as if absent."""
    xp = where.xp
    heavy = [c for c in range(len(classes)) if bool(xp.any((index == c) & (weights > 0.0)))]
    if len(heavy) < 2:
        raise ValueError(
            "y must hold at least 2 classes with sample_weight > 0; got 1 class: "
            f"{classes[heavy].tolist()!r}."
        )
    numbers = np.zeros(len(classes), dtype=np.int64)
    numbers[heavy] = np.arange(len(heavy))
    return classes[heavy], xp.take(where.put(numbers), index)


def check_length(name: str, length: int, other: str, n_rows: int) -> None:
    if length != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {other} has {n_rows} "
            f"rows, {name} has {length}."
        )


def check_weights(sample_weight: Any, n_rows: int, where: Where, name: str) -> Any:
    """Weights as a float64 vector where X lives: finite, >= 0, not all zero; None stays None."""
    if sample_weight is None:
        return None
    xp = where.xp
    if is_array(sample_weight) and not isinstance(sample_weight, np.ndarray):
        weights = sample_weight
    else:
        weights = where.put(_host_weights(sample_weight, n_rows, name))
    if weights.ndim != 1:
        raise ValueError(f"{name} must be 1D array or scalar; got shape {tuple(weights.shape)}.")
    check_length(name, weights.shape[0], _features_of(name), n_rows)
    if not xp.isdtype(weights.dtype, ("real floating", "integral", "bool")):
        raise ValueError(f"{name} must hold real numbers >= 0; got dtype {weights.dtype}.")
    weights = xp.astype(weights, xp.float64)
    if not bool(xp.all(xp.isfinite(weights))):
        raise ValueError(f"{name} contains NaN or infinity; finite values >= 0 are allowed.")
    if bool(xp.any(weights < 0.0)):
        lowest = float(xp.min(weights))
        raise ValueError(f"{name} must be >= 0; the lowest value given is {lowest:g}.")
    if not bool(xp.any(weights > 0.0)):
        raise ValueError(f"{name} is zero for every row; at least one must be > 0.")
    return weights


def _host_weights(weights: Any, n_rows: int, name: str) -> np.ndarray:
    if isinstance(weights, numbers.Number):
        return np.full(n_rows, weights)
    try:
        array = check_array(
            weights, ensure_2d=False, dtype=None, ensure_all_finite=False, ensure_min_samples=0,
            input_name=name,
        )  # fmt: skip
        return array.astype(object).astype(np.float64) if array.dtype.kind in "OUST" else array
    except (TypeError, ValueError) as error:
        text = str(error).split("\n")[0]
        raise type(error)(f"{name} must hold real numbers >= 0: {text}.") from error


def check_target(y: Any, n_rows: int, where: Where, name: str) -> Any:
    """A finite float64 vector where X lives."""
    if y is None:
        raise ValueError(f"requires {name} to be passed, but the target {name} is None.")
    xp = where.xp
    if not is_array(y) or isinstance(y, np.ndarray):
        if np.asarray(y).dtype.kind == "c":
            raise ValueError(f"Complex data not supported: {name} must hold real numbers.")
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name=name)
        try:
            y = np.asarray(y, dtype=np.float64) if y.dtype.kind in "OUST" else y
        except (ValueError, TypeError) as error:
            raise ValueError(f"{name} must hold numbers; {error}.") from error
        y = where.put(y)
    if y.ndim != 1:
        raise ValueError(f"{name} must be 1-dimensional; got an array of shape {tuple(y.shape)}.")
    check_length(name, y.shape[0], _features_of(name), n_rows)
    if not xp.isdtype(y.dtype, ("real floating", "integral", "bool")):
        raise ValueError(f"{name} must hold real numbers; got dtype {y.dtype}.")
    y = xp.astype(y, xp.float64)
    if not bool(xp.all(xp.isfinite(y))):
        raise ValueError(f"Input {name} contains NaN or infinity; finite values are allowed.")
    return y


def check_signs(monotonic_cst: Any, n_features: int, names: Any | None) -> np.ndarray:
    """monotonic_cst as an int64 array of -1, 0, +1, one for each feature."""
    if monotonic_cst is None:
        return np.zeros(n_features, dtype=np.int64)
    given = monotonic_cst
    if isinstance(given, dict):
        if names is None:
            raise ValueError("monotonic_cst is a dict of names, but X had no feature names.")
        unknown = [name for name in given if name not in list(names)]
        if unknown:
            raise ValueError(
                f"monotonic_cst names features that X does not have: {unknown!r}; X has "
                f"{list(names)!r}."
            )
        given = [given.get(name, 0) for name in names]
    signs = np.asarray(given)
    if signs.shape != (n_features,):
        raise ValueError(
            f"monotonic_cst must have one value for each of the {n_features} features; got shape "
            f"{signs.shape}."
        )
    if signs.dtype.kind not in "iuf" or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(f"monotonic_cst must hold -1, 0 or +1; got {given!r}.")
    return signs.astype(np.int64)


def check_max_features(m: Any) -> None:
    check_amount("max_features", m, 1, ("sqrt", "log2", None))


def count_features(max_features: Any, p: int) -> int:
    """How many features to draw of p: max(1, whole part of share p) where a share is given."""
    if max_features is None:
        return p
    if max_features == "sqrt":
        return max(1, math.isqrt(p))
    if max_features == "log2":
        return max(1, p.bit_length() - 1)
    if isinstance(max_features, numbers.Integral):
        if int(max_features) > p:
            raise ValueError(
                f"max_features must be at most the number of features, {p}; got {max_features!r}."
            )
        return int(max_features)
    return max(1, int(max_features * p))
