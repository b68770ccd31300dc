"""An estimator's parameters: checks that name the parameter, what was given, what is allowed."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np


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


def check_real(
    name: str, value: Any, above: float, high: float = math.inf, others: tuple[Any, ...] = ()
) -> None:
    """Above `above`, at most `high`, finite, or one of the `others`."""
    if _is_one_of(value, others):
        return
    allowed = f"> {above:g}" if high == math.inf else f"in ({above:g}, {high:g}]"
    allowed = _either([allowed, *map(repr, others)])
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number {allowed}; got {value!r}.")
    if not (above < float(value) <= high) or math.isinf(value):
        raise ValueError(f"{name} must be a finite number {allowed}; got {value!r}.")


def check_not_negative(
    name: str, value: Any, high: float = math.inf, others: tuple[Any, ...] = ()
) -> None:
    """From 0 to `high`, finite, or one of the `others`."""
    if _is_one_of(value, others):
        return
    allowed = ">= 0" if high == math.inf else f"from 0 to {high:g}"
    allowed = _either([allowed, *map(repr, others)])
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number {allowed}; got {value!r}.")
    if not 0.0 <= float(value) <= high or math.isinf(value):
        raise ValueError(f"{name} must be a finite number {allowed}; got {value!r}.")


def check_jobs(n_jobs: Any, none: str = "all threads") -> None:
    """None (for the message: what it means), or an integer that is not 0."""
    if n_jobs is None:
        return
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        kind = ValueError if n_jobs == 0 else TypeError
        raise kind(
            f"n_jobs must be None ({none}), an integer >= 1, or negative (-1: all threads); got "
            f"{n_jobs!r}."
        )


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


def check_max_features(m: Any, others: tuple[Any, ...] = ()) -> None:
    check_amount("max_features", m, 1, ("sqrt", "log2", *others, None))


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
