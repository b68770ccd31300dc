"""The model as a whole: importances, shape functions, partial dependence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import to_numpy
from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.explaining.background import Background, pieces
from ensemble_gpu.explaining.dependence import (
    PartialDependence,
    forest_dependence,
    table_dependence,
    usual_grid,
)
from ensemble_gpu.explaining.explain import forests_and_tables
from ensemble_gpu.explaining.permutation import Permutation, permutation_importance
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """What one feature adds to the outputs, centred: its Shapley value as a function of it.

    Attributes
    ----------
    feature : int
    name : str
    thresholds : array [m], ascending
    values : array [m + 1, outputs]; values[i] between thresholds i - 1 and i (which is included)
    missing : array [outputs], where the feature is missing
    weight : array [m + 1], of the training rows in each piece
    missing_weight : float
    """

    feature: int
    name: str
    thresholds: np.ndarray
    values: np.ndarray
    missing: np.ndarray
    weight: np.ndarray
    missing_weight: float

    def __call__(self, x: Any) -> np.ndarray:
        """The values [n, outputs] for host values x [n]."""
        x = np.asarray(x, dtype=np.float64)
        found = self.values[np.searchsorted(self.thresholds, x)]
        return np.where(np.isnan(x)[:, None], self.missing, found)

    def plot(self, *, ax: Any = None) -> Any:
        """Steps, an output a line, over bars of the training weight; matplotlib Axes."""
        from ensemble_gpu.explaining.pictures import plot_shape

        return plot_shape(self, ax=ax)


@dataclass(frozen=True, eq=False)
class GlobalExplanation:
    """What `explain_global` returns.

    Attributes
    ----------
    feature_names : list of str
    output_names : list of classes, or None
    base_values : array [outputs] where they are known from training, or None
    mean_abs : array [features, outputs], mean of |Shapley value|; None where no rows were given
        and the model does not know those of training
    gain : array [features], `feature_importances_`; None where the estimator has none
    permutation : Permutation, where y was given; else None
    shapes : {feature: ShapeFunction} of sums of stumps, those that are used
    """

    feature_names: list[str] = field(repr=False)
    output_names: list[Any] | None
    base_values: np.ndarray | None
    mean_abs: np.ndarray | None
    gain: np.ndarray | None
    permutation: Permutation | None
    shapes: Mapping[int, ShapeFunction] = field(repr=False)
    estimator: Any = field(repr=False)

    def to_frame(self) -> Any:
        """A pandas frame of the importances: a row a feature, in their order."""
        import pandas as pd

        columns: dict[str, np.ndarray] = {}
        if self.mean_abs is not None:
            several = self.mean_abs.shape[1] > 1
            for k, column in enumerate(self.mean_abs.T):
                name = (self.output_names or range(len(self.mean_abs.T)))[k]
                columns[f"mean_abs[{name}]" if several else "mean_abs"] = column
        if self.gain is not None:
            columns["gain"] = self.gain
        if self.permutation is not None:
            columns["permutation"] = self.permutation.mean
            columns["permutation_std"] = self.permutation.std
        return pd.DataFrame(columns, index=pd.Index(self.feature_names, name="feature"))

    def partial_dependence(
        self, feature: int | str, grid: Any = None, *, X: Any = None
    ) -> PartialDependence:
        """The mean output by the value of a feature (number or name).

        Over the training rows of stumps and the training weights of trees; with X, over its rows,
        by brute force. The grid are values; None: the thresholds of the model.
        """
        f = self._number(feature)
        name = self.feature_names[f]
        forests, tables, constant = _sum_of(self.estimator)
        if grid is None:
            grid = usual_grid(f, forests, tables)
        grid = np.asarray(grid, dtype=np.float64)
        if grid.ndim != 1 or not len(grid):
            raise ValueError(f"grid must be an array [points] of values; got shape {grid.shape}.")
        if X is not None:
            values = _by_brute_force(self.estimator, X, f, grid)
        elif tables is not None:
            values = table_dependence(tables, self.estimator.background_, f, grid)
        elif forests:
            values = constant + sum(forest_dependence(forest, f, grid) for forest in forests)
        else:
            raise ValueError(
                "X must be given for the partial dependence of "
                f"{type(self.estimator).__name__}; got None."
            )
        return PartialDependence(f, name, grid, values, self.output_names)

    def _number(self, feature: int | str) -> int:
        n = len(self.feature_names)
        if isinstance(feature, str) and feature in self.feature_names:
            return self.feature_names.index(feature)
        whole = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
        if whole and 0 <= int(feature) < n:
            return int(feature)
        raise ValueError(
            f"feature must be from 0 to {n - 1}, or one of {self.feature_names!r}; got {feature!r}."
        )

    def plot(self, importance: str | None = None, *, most: int = 20, ax: Any = None) -> Any:
        """Bars of "mean_abs" (summed over outputs), "gain" or "permutation"; matplotlib Axes.

        None: the first of these that is there.
        """
        from ensemble_gpu.explaining.pictures import plot_importances

        found = {
            "mean_abs": None if self.mean_abs is None else self.mean_abs.sum(axis=1),
            "gain": self.gain,
            "permutation": None if self.permutation is None else self.permutation.mean,
        }
        there = [name for name, values in found.items() if values is not None]
        importance = there[0] if importance is None and there else importance
        if importance not in there:
            raise ValueError(f"importance must be one of {there!r}; got {importance!r}.")
        values = found[importance]
        assert values is not None
        label = {"mean_abs": "mean |Shapley value|", "gain": "share of the gain"}.get(
            importance, "permutation importance"
        )
        return plot_importances(self.feature_names, values, label, most=most, ax=ax)


def explain_globally(
    estimator: Any, X: Any, y: Any, *, metric: Any, sample_weight: Any, n_repeats: int,
    random_state: int,
) -> GlobalExplanation:  # fmt: skip
    """`ArrayEstimator.explain_global`, whose docstring has the parameters."""
    estimator._check_explainable()
    if X is None and y is not None:
        raise ValueError("y was given, and needs X; X is None.")
    if y is None and (metric is not None or sample_weight is not None):
        raise ValueError("metric and sample_weight are for the permutation importance: give y.")
    background: Background | None = getattr(estimator, "background_", None)
    shapes: Mapping[int, ShapeFunction] = {}
    names, mean_abs, base = estimator._feature_names(), None, None
    if background is not None:
        shapes = shape_functions(estimator.model_, background, names)
        mean_abs = _training_mean_abs(estimator.model_, shapes)
        base = estimator.model_.intercept + sum(
            share @ values for _, values, share in background.spread(estimator.model_)
        )
    if X is not None:
        explanation = estimator.explain(X)
        mean_abs, base = explanation.mean_abs, to_numpy(explanation.base_values)
    permutation = None
    if y is not None:
        permutation = permutation_importance(
            estimator, X, y, metric, sample_weight, n_repeats, random_state
        )
    n_outputs = 0 if base is None else len(base)
    return GlobalExplanation(
        names, estimator._output_names(n_outputs or _outputs_of(estimator)), base, mean_abs,
        getattr(estimator, "feature_importances_", None), permutation, MappingProxyType(shapes),
        estimator,
    )  # fmt: skip


def shape_functions(
    model: AdditiveModel, background: Background, names: list[str]
) -> dict[int, ShapeFunction]:
    """Of the features that the model uses."""
    found = {}
    for f, thresholds, weight, missing in background:
        if f not in model.tables:
            continue
        values = pieces(model.tables[f], thresholds)
        share = np.append(weight, missing)
        values = values - (share / share.sum()) @ values
        found[f] = ShapeFunction(
            f, names[f], thresholds, values[:-1], values[-1], weight, missing
        )  # fmt: skip
    return found


def _training_mean_abs(model: AdditiveModel, shapes: Mapping[int, ShapeFunction]) -> np.ndarray:
    """Mean |phi| over the training rows [features, outputs], from the weights of the pieces."""
    found = np.zeros((model.n_features, model.n_outputs))
    for f, shape in shapes.items():
        share = np.append(shape.weight, shape.missing_weight)
        found[f] = (share / share.sum()) @ np.abs(np.vstack([shape.values, shape.missing]))
    return found


def _sum_of(estimator: Any) -> tuple[list[Forest], AdditiveModel | None, np.ndarray]:
    """An estimator's model as a sum; nothing for one that has no model of its own."""
    if not hasattr(estimator, "model_"):
        return [], None, np.zeros(0)
    background = getattr(estimator, "background_", None)
    return forests_and_tables(estimator.model_, background, type(estimator).__name__)


def _outputs_of(estimator: Any) -> int:
    if hasattr(estimator, "model_"):
        return int(estimator.model_.n_outputs)
    return len(estimator.classes_) if hasattr(estimator, "classes_") else 1


def _by_brute_force(estimator: Any, X: Any, feature: int, grid: np.ndarray) -> np.ndarray:
    """Mean outputs over the rows of X with the feature set to each value."""
    check_dense(X, "partial dependence")
    X, _, where, _ = estimator._inputs(X)
    xp, found = where.xp, []
    for value in grid.tolist():
        column = xp.zeros_like(X[:, feature : feature + 1]) + value
        rows = xp.concat([X[:, :feature], column, X[:, feature + 1 :]], axis=1)
        outputs = estimator._outputs_at(rows)
        found.append(where.host(xp.mean(where.as_float64(outputs), axis=0)))
    return np.stack(found)
