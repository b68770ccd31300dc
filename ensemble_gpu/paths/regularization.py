"""regularization_path: reads rows, chooses the way for the loss, makes a Path of the knots."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.data.parameters import check_choice, check_integer, check_real
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.data.sampling import check_seed, draw_seed
from ensemble_gpu.estimators.classifier import ArrayClassifier
from ensemble_gpu.estimators.dense import DenseEstimator
from ensemble_gpu.estimators.reading import read
from ensemble_gpu.estimators.regressor import ArrayRegressor
from ensemble_gpu.paths.columns import Columns
from ensemble_gpu.paths.dictionaries import (
    STUMPS,
    DictionarySettings,
    check_dictionary,
    dictionary_of,
)
from ensemble_gpu.paths.homotopy import homotopy
from ensemble_gpu.paths.knots import Knots, Limits
from ensemble_gpu.paths.path import ABSOLUTE, HINGE, SQUARED, Path
from ensemble_gpu.paths.simplex import PiecewiseLinear, parametric_simplex

LOSSES = (SQUARED, ABSOLUTE, HINGE)
FREE, MEAN, ZERO = "free", "mean", "zero"
# Rows times columns of a linear programme: 32 MiB, kept twice (bench/regularised.py has the times).
MOST_CELLS = 1 << 22


class RegularizationPath(ArrayRegressor, DenseEstimator, BaseEstimator):
    """Reads X and y as a regressor's fit does; errors name it."""

    def __init__(self, device: str | None = None) -> None:
        self.device = device


class LabelledRegularizationPath(ArrayClassifier, DenseEstimator, BaseEstimator):
    """Reads X and y as a classifier's fit does; errors name it."""

    def __init__(self, device: str | None = None) -> None:
        self.device = device


def regularization_path(
    X: Any,
    y: Any,
    *,
    loss: str = SQUARED,
    dictionary: Any = STUMPS,
    sample_weight: Any = None,
    intercept: str = FREE,
    max_bins: int = 255,
    max_active: int | None = None,
    max_radius: float | None = None,
    max_knots: int | None = None,
    random_state: Any = 0,
    device: str | None = None,
) -> Path:
    """The L1 path of a loss, from 0 to the least loss, knot by knot.

        min over b0, b of sum_i w_i l(y_i, b0 + A_i b) / sum w + alpha |b|_1

    Parameters
    ----------
    X : rows [n, p] of numbers
    y : targets [n]; of the hinge loss two labels of any kind, the larger is +1
    loss : {"squared", "absolute", "hinge"}, default="squared"
        (y - F)^2 / 2 by a homotopy: the lasso. abs(y - F) and max(0, 1 - y F) by a parametric
        simplex on the host, for small problems: rows times columns up to 4,194,304.
    dictionary : {"stumps", "features"}, Pool, HalfSpaces, Balls or Boxes, default="stumps"
        The columns of A. "stumps": +1 where x_f > threshold and -1 elsewhere for all features and
        thresholds, which are never stored. "features": those of X. A `Pool` of
        ensemble_gpu.learners: the answers -1, 0, +1 of its members, with coefficients >= 0 unless
        it is `signed`. The others: all stumps on the numbers that they draw (redraw="once").
    sample_weight : weights w [n] >= 0 or None, default=None
        Whole weights are repetitions of rows.
    intercept : {"free", "mean", "zero"}, default="free"
        "free": not penalised (columns are centred). "mean": fixed at the mean of y (squared loss
        only). "zero": none.
    max_bins : int, default=255
        A feature has at most max_bins - 1 thresholds, at quantiles; fewer values have all.
    max_active, max_knots : int or None, default=None
        End at so many active columns, or knots.
    max_radius : float or None, default=None
        End at the first knot whose sum of |coefficients| is as large.
    random_state : int, RandomState instance or None, default=0
        Draws half-spaces, balls and boxes.
    device : {None, "cpu", "cuda", "auto"}, default=None
        Where to add up; None follows the input.

    Returns
    -------
    Path
        Columns join at the same knots on every array library unless two tie to twelve digits;
        floats agree to about 1e-10. Answers of a pool are added up as integers: the sums are the
        same to the last bit on every engine.
    """
    check_choice("loss", loss, LOSSES)
    check_dictionary(dictionary)
    check_choice("intercept", intercept, (FREE, MEAN, ZERO) if loss == SQUARED else (FREE, ZERO))
    check_integer("max_bins", max_bins, 2)
    for name, value in (("max_active", max_active), ("max_knots", max_knots)):
        check_integer(name, value, 1, others=(None,))
    check_real("max_radius", max_radius, 0.0, others=(None,))
    check_seed(random_state)
    rows, classes, names = _read(X, y, sample_weight, loss, device)
    centred = intercept == FREE and loss == SQUARED
    settings = DictionarySettings(int(max_bins), centred, draw_seed(random_state), names)
    A = dictionary_of(dictionary, rows, classes, settings)
    limits = Limits(max_active, max_radius, max_knots)
    if loss == SQUARED:
        target = A.rows.target
        start = 0.0 if intercept == ZERO else A.rows.mean(target)
        return _path(homotopy(A, target - start, limits), A, start, loss, classes)
    problem = _programme(A, loss, intercept == FREE)
    return _path(parametric_simplex(problem, limits), A, 0.0, loss, classes)


def _read(
    X: Any, y: Any, sample_weight: Any, loss: str, device: str | None
) -> tuple[Rows, np.ndarray | None, Any]:
    """The rows that take part, labels of the hinge loss (targets are 0 and 1), feature names."""
    reader: LabelledRegularizationPath | RegularizationPath
    reader = LabelledRegularizationPath(device) if loss == HINGE else RegularizationPath(device)
    reader._check_parameters()
    reading = read(reader, X, y, sample_weight)
    classes = reader.classes_ if isinstance(reader, LabelledRegularizationPath) else None
    if classes is not None and len(classes) != 2:
        raise ValueError(f"loss='hinge' needs two classes; y has {len(classes)}.")
    rows = reading.rows
    if reading.keep is not None and not bool(reading.where.xp.all(reading.keep)):
        rows = rows.take(reading.where.xp.nonzero(reading.keep)[0])
    return rows, classes, getattr(reader, "feature_names_in_", None)


def _programme(A: Columns, loss: str, free: bool) -> PiecewiseLinear:
    """The explicit columns, times the signs of the labels for the hinge loss."""
    rows, host = A.rows, A.rows.where.host
    n, P = rows.X.shape[0], len(A.means)
    if n * P > MOST_CELLS:
        raise ValueError(
            f"loss={loss!r} is a linear programme of all columns: {n} rows x {P} columns are "
            f"{n * P} numbers, and at most {MOST_CELLS} are taken. Use fewer rows, a smaller "
            "max_bins or dictionary, or loss='squared'."
        )
    M = np.ones((n, P + free))
    for j in range(P):
        M[:, j + free] = host(A.column(j))
    weight = np.ones(n) if rows.weights is None else host(rows.weights)
    up, t = weight / weight.sum(), host(rows.target).astype(np.float64)
    if loss == ABSOLUTE:
        return PiecewiseLinear(M, t, up, up, free, A.signs)
    M *= np.where(t > 0.0, 1.0, -1.0)[:, None]
    return PiecewiseLinear(M, np.ones(n), up, np.zeros(n), free, A.signs)


def _path(
    found: Knots, A: Columns, start: float, loss: str, classes: np.ndarray | None
) -> Path:  # fmt: skip
    columns = np.unique(np.concatenate(found.columns))
    coefficients = np.zeros((len(found.alphas), len(columns)))
    for row, own, b in zip(coefficients, found.columns, found.coefficients, strict=True):
        row[np.searchsorted(columns, own)] = b
    radii = np.abs(coefficients).sum(axis=1)
    return Path(
        found.alphas, radii, columns, coefficients, start + found.intercepts, found.complete, A,
        loss, classes,
    )  # fmt: skip
