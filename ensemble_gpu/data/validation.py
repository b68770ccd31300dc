"""User input to arrays: checks that name what was given and what is allowed."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

from ensemble_gpu.arrays.namespace import NUMPY, Where, is_array
from ensemble_gpu.arrays.sparse import canonical
from ensemble_gpu.kernels.team import ALONE, Team

FINITE_BLOCK = 1 << 16
# Offsets of outputs beyond this are no offsets.
LARGEST_OFFSET = 1e100


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


def check_sparse_numbers(X: Any, name: str) -> Any:
    """A sparse matrix as CSR of float32 or float64, as `check_numbers` has it."""
    kind = check_numbers(np.zeros(0, dtype=X.dtype), NUMPY, name).dtype
    return canonical(X).astype(kind, copy=False)


def refuse_mask(array: Any, name: str) -> None:
    """Raise where NumPy's masked array has masked values: a row cannot do without them."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError(
            f"{name} is a masked array with {int(np.ma.count_masked(array))} masked values; every "
            f"row needs one. Leave those rows out of X and {name}. (Masked cells of X are missing.)"
        )


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


def features_of(name: str) -> str:
    """The features that y, y_val, eval_set[1][1] (y of a set), sample_weight ... belongs to."""
    in_set = re.fullmatch(r"(eval_set\[\d+\])\[\d\]", name)
    if in_set:
        return f"{in_set[1]}[0]"
    return "X_val" if name.endswith("_val") else "X"


def check_length(name: str, length: int, other: str, n_rows: int) -> None:
    if length != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {other} has {n_rows} "
            f"rows, {name} has {length}."
        )


def check_weights(
    sample_weight: Any, n_rows: int, where: Where, name: str, team: Team = ALONE
) -> Any:
    """Weights as a float64 vector where X lives: finite, >= 0, not all zero; None stays None."""
    if sample_weight is None:
        return None
    refuse_mask(sample_weight, name)
    xp = where.xp
    if is_array(sample_weight) and not isinstance(sample_weight, np.ndarray):
        weights = sample_weight
    else:
        weights = where.put(_host_weights(sample_weight, n_rows, name))
    if weights.ndim != 1:
        raise ValueError(f"{name} must be 1D array or scalar; got shape {tuple(weights.shape)}.")
    check_length(name, weights.shape[0], features_of(name), n_rows)
    if not xp.isdtype(weights.dtype, ("real floating", "integral", "bool")):
        raise ValueError(f"{name} must hold real numbers >= 0; got dtype {weights.dtype}.")
    weights = xp.astype(weights, xp.float64)
    if not bool(xp.all(xp.isfinite(weights))):
        raise ValueError(f"{name} contains NaN or infinity; finite values >= 0 are allowed.")
    if bool(xp.any(weights < 0.0)):
        lowest = float(xp.min(weights))
        raise ValueError(f"{name} must be >= 0; the lowest value given is {lowest:g}.")
    if not team.any(bool(xp.any(weights > 0.0))):
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
    refuse_mask(y, name)
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
    check_length(name, y.shape[0], features_of(name), n_rows)
    if not xp.isdtype(y.dtype, ("real floating", "integral", "bool")):
        raise ValueError(f"{name} must hold real numbers; got dtype {y.dtype}.")
    y = xp.astype(y, xp.float64)
    if not bool(xp.all(xp.isfinite(y))):
        raise ValueError(f"Input {name} contains NaN or infinity; finite values are allowed.")
    return y


def check_offset(offset: Any, n_rows: int, n_outputs: int, where: Where, name: str) -> Any:
    """Finite float64 [rows, outputs] where X lives; None stays None.

    One output may come as [rows].
    """
    if offset is None:
        return None
    xp = where.xp
    if not is_array(offset) or isinstance(offset, np.ndarray):
        try:
            offset = where.put(np.asarray(offset, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers; {error}.") from error
    shape = tuple(offset.shape)
    allowed = [(n_rows, n_outputs)] + ([(n_rows,)] if n_outputs == 1 else [])
    if shape and shape[0] != n_rows:
        check_length(name, shape[0], features_of(name), n_rows)
    if shape not in allowed:
        raise ValueError(
            f"{name} must have shape {' or '.join(map(str, reversed(allowed)))}: a value a row"
            f"{'' if n_outputs == 1 else ' and class'}; got shape {shape}."
        )
    if not xp.isdtype(offset.dtype, ("real floating", "integral", "bool")):
        raise ValueError(f"{name} must hold real numbers; got dtype {offset.dtype}.")
    offset = xp.reshape(xp.astype(offset, xp.float64), (n_rows, n_outputs))
    if not bool(xp.all(xp.abs(offset) <= LARGEST_OFFSET)):
        raise ValueError(
            f"{name} contains NaN, infinity or values beyond +-{LARGEST_OFFSET:g}; finite values "
            "are allowed."
        )
    return offset
