"""The regularisation path of the squared loss, and points of it as models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.data.parameters import check_choice, check_integer, check_not_negative, check_real
from ensemble_gpu.estimators.dense import DenseEstimator
from ensemble_gpu.estimators.reading import read
from ensemble_gpu.estimators.regressor import ArrayRegressor
from ensemble_gpu.paths.dictionaries import Columns, Features, Stumps
from ensemble_gpu.paths.homotopy import Limits, homotopy
from ensemble_gpu.plotting.axes import GREY, axes_or_new, class_colours, tidy

STUMPS, FEATURES = "stumps", "features"
FREE, MEAN, ZERO = "free", "mean", "zero"
# Coefficients that get a name in a picture.
NAMED = 5


@dataclass(frozen=True)
class Point:
    """A point of the path: coefficients of Path.columns, and the intercept."""

    alpha: float
    radius: float
    coefficients: np.ndarray
    intercept: float


@dataclass(frozen=True)
class Path:
    """b(alpha) = argmin |y - b0 - A b|^2 / (2 n) + alpha |b|_1 for all alpha at once.

    Between knots b is linear in alpha and in the radius |b|_1.

    alphas, radii : arrays [knots], descending and ascending
    columns : array [used], the columns of the dictionary that are active somewhere
    coefficients : array [knots, used]
    intercepts : array [knots]
    complete : bool, whether the last knot is least squares, alpha = 0
    dictionary : the columns; of stumps `dictionary.feature[columns]` and `.threshold[columns]`
    """

    alphas: np.ndarray
    radii: np.ndarray
    columns: np.ndarray
    coefficients: np.ndarray
    intercepts: np.ndarray
    complete: bool
    dictionary: Columns

    def __len__(self) -> int:
        return len(self.alphas)

    def __repr__(self) -> str:
        return (
            f"Path({len(self)} knots, alpha {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}, radius "
            f"up to {self.radii[-1]:.3g}, {len(self.columns)} columns)"
        )

    def at(self, *, radius: float | None = None, alpha: float | None = None) -> Point:
        """The point with |b|_1 = radius, or with the penalty alpha.

        A radius beyond the last of a complete path, and an alpha beyond the first, give its ends.
        """
        if (radius is None) == (alpha is None):
            raise ValueError(f"give radius or alpha; got radius={radius!r}, alpha={alpha!r}.")
        if radius is not None:
            check_real("radius", radius, 0.0)
            at, knots = float(radius), self.radii
        else:
            check_not_negative("alpha", alpha)
            at, knots = -float(alpha or 0.0), -self.alphas
        if at > knots[-1] and not self.complete:
            given = f"radius={radius!r}" if radius is not None else f"alpha={alpha!r}"
            raise ValueError(
                f"{given} is beyond the last knot (radius {self.radii[-1]:.6g}, alpha "
                f"{self.alphas[-1]:.6g}): the path was ended by max_active, max_radius, max_knots "
                "or columns that depend on each other."
            )
        at = min(max(at, float(knots[0])), float(knots[-1]))
        k = max(1, min(int(np.searchsorted(knots, at)), len(knots) - 1)) if len(knots) > 1 else 0
        if k == 0:
            return self._between(0, 0, 0.0)
        length = float(knots[k] - knots[k - 1])
        return self._between(k - 1, k, (at - float(knots[k - 1])) / length if length > 0 else 1.0)

    def _between(self, i: int, j: int, share: float) -> Point:
        def mixed(array: np.ndarray) -> Any:
            return array[i] if share == 0.0 else (1.0 - share) * array[i] + share * array[j]

        coefficients = mixed(self.coefficients)
        return Point(
            float(mixed(self.alphas)), float(np.abs(coefficients).sum()), coefficients,
            float(mixed(self.intercepts)),
        )  # fmt: skip

    def model(self, *, radius: float | None = None, alpha: float | None = None) -> Any:
        """The model at a point: an AdditiveModel of stumps, a LinearModel of features."""
        point = self.at(radius=radius, alpha=alpha)
        used = point.coefficients != 0.0
        columns = self.columns[used]
        return self.dictionary.model(columns, point.coefficients[used], point.intercept)

    def plot(self, *, ax: Any = None) -> Any:
        """Coefficients against the radius; the largest have names.

        Returns
        -------
        matplotlib Axes
        """
        ax = axes_or_new(ax)
        size = np.abs(self.coefficients).max(axis=0, initial=0.0)
        named = np.argsort(-size, kind="stable")[:NAMED]
        for j in range(len(self.columns)):
            if j not in named:
                ax.plot(self.radii, self.coefficients[:, j], color=GREY, alpha=0.5, linewidth=0.7)
        for j, colour in zip(named, class_colours(NAMED), strict=False):
            name = self._name(int(self.columns[j]))
            ax.plot(self.radii, self.coefficients[:, j], color=colour, linewidth=1.4, label=name)
        ax.axhline(0.0, color=GREY, linewidth=0.7)
        ax.set_xlabel("radius, sum of |coefficients|")
        ax.set_ylabel("coefficient")
        if len(named):
            ax.legend(frameon=False)
        tidy(ax)
        return ax

    def _name(self, column: int) -> str:
        stumps = self.dictionary
        if isinstance(stumps, Stumps):
            return f"feature {stumps.feature[column]} > {stumps.threshold[column]:.4g}"
        return f"feature {column}"


class _Reader(ArrayRegressor, DenseEstimator, BaseEstimator):
    """Reads X and y as an estimator's fit does."""

    def __init__(self, device: str | None = None) -> None:
        self.device = device


def regularization_path(
    X: Any,
    y: Any,
    *,
    dictionary: str = STUMPS,
    intercept: str = FREE,
    max_bins: int = 255,
    max_active: int | None = None,
    max_radius: float | None = None,
    max_knots: int | None = None,
    device: str | None = None,
) -> Path:
    """The L1 path of the squared loss, from 0 to least squares, knot by knot.

        min over b0, b of |y - b0 - A b|^2 / (2 n) + alpha |b|_1

    Parameters
    ----------
    X : rows [n, p] of numbers
    y : targets [n]
    dictionary : {"stumps", "features"}, default="stumps"
        The columns of A: +1 where x_f > threshold and -1 elsewhere for all features and thresholds,
        which are never stored, or the features themselves.
    intercept : {"free", "mean", "zero"}, default="free"
        "free": not penalised (columns are centred). "mean": fixed at the mean of y. "zero": none.
    max_bins : int, default=255
        A feature has at most max_bins - 1 thresholds, at quantiles; fewer values have all.
    max_active, max_knots : int or None, default=None
        End at so many active columns, or knots.
    max_radius : float or None, default=None
        End at the first knot whose sum of |coefficients| is as large.
    device : {None, "cpu", "cuda", "auto"}, default=None
        Where to add up; None follows the input.

    Returns
    -------
    Path
        Columns join at the same knots on every array library unless two tie to twelve digits;
        floats agree to about 1e-10.
    """
    check_choice("dictionary", dictionary, (STUMPS, FEATURES))
    check_choice("intercept", intercept, (FREE, MEAN, ZERO))
    check_integer("max_bins", max_bins, 2)
    for name, value in (("max_active", max_active), ("max_knots", max_knots)):
        check_integer(name, value, 1, others=(None,))
    check_real("max_radius", max_radius, 0.0, others=(None,))
    reader = _Reader(device)
    reader._check_parameters()
    reading = read(reader, X, y, None)
    where, target = reading.where, reading.rows.target
    rows, centred = where.as_float64(reading.rows.X), intercept == FREE
    A: Columns
    if dictionary == FEATURES:
        A = Features(rows, where, centred=centred)
    else:
        A = Stumps(rows, where, max_bins=int(max_bins), centred=centred)
    start = 0.0 if intercept == ZERO else float(where.xp.mean(target))
    found = homotopy(A, target - start, Limits(max_active, max_radius, max_knots))
    columns = np.unique(np.concatenate(found.columns)) if found.columns else np.zeros(0, np.int64)
    coefficients = np.zeros((len(found.alphas), len(columns)))
    for row, own, b in zip(coefficients, found.columns, found.coefficients, strict=True):
        row[np.searchsorted(columns, own)] = b
    intercepts = start - coefficients @ A.means[columns]
    return Path(
        found.alphas, found.radii, columns, coefficients, intercepts, found.complete, A
    )  # fmt: skip
