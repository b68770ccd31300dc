"""Predictions of every row by the learners whose bags lack it: a test set that costs no rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ensemble_gpu.bagging.learners import in_threads
from ensemble_gpu.data.bags import Bags


def check_some_out(rows: np.ndarray) -> None:
    """Raise unless there are rows to score: which rows are, bool."""
    if not rows.any():
        raise ValueError("oob_score needs rows out of the bag: every row is in every bag.")


def forget_out_of_bag(estimator: Any) -> None:
    """Remove the score and the predictions of an earlier fit."""
    for name in [name for name in vars(estimator) if name.startswith("oob_") and name[-1] == "_"]:
        delattr(estimator, name)


def mean_out_of_bag(
    answer: Callable[[int, np.ndarray], np.ndarray],
    bags: list[Bags],
    weights: np.ndarray | None,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean answer for every row [n, ...], NaN for rows in every bag; and which rows have one.

    `answer(learner, rows)` are a learner's predictions of some rows, on the host. Some row that has
    weight must be out of some bag.
    """
    n_rows = bags[0].n_rows

    def left_out(learner: int) -> tuple[np.ndarray, Any]:
        rows = np.flatnonzero(bags[learner].counts(learner) == 0)
        return rows, answer(learner, rows) if len(rows) else None

    total: Any = None
    n_answers = np.zeros(n_rows)
    for rows, answers in in_threads(left_out, ((k,) for k in range(len(bags))), n_jobs):
        if answers is None:
            continue
        total = np.zeros((n_rows, *answers.shape[1:])) if total is None else total
        total[rows] += answers
        n_answers[rows] += 1.0
    seen = n_answers > 0.0
    check_some_out(seen if weights is None else seen & (weights > 0.0))
    if not seen.all():
        warnings.warn(
            f"{int((~seen).sum())} of {n_rows} rows are in every bag and have no out-of-bag "
            "prediction; oob_score_ leaves them out. Use more estimators.",
            UserWarning,
            stacklevel=5,
        )
    total[~seen] = np.nan
    shape = (n_rows, *(1 for _ in total.shape[1:]))
    return total / np.maximum(n_answers, 1.0).reshape(shape), seen
