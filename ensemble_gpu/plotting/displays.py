"""Pictures of what classifiers are worth: ROC, precision and recall, calibration, confusion.

Each is made by `from_estimator(estimator, X, y)` or `from_predictions(y, scores)`. A dict of
{name: estimator} or {name: scores} draws several classifiers in one picture. The numbers are
attributes, the matplotlib Axes are `ax_`, and `plot(ax)` draws again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ensemble_gpu.arrays.namespace import is_array, to_numpy
from ensemble_gpu.drawing.axes import GREY, axes_or_new, class_colours, pyplot, tidy
from ensemble_gpu.metrics import (
    average_precision,
    calibration_curve,
    confusion_matrix,
    precision_recall_curve,
    roc_auc,
    roc_curve,
)


def _named(given: Any, name: str | None) -> dict[str, Any]:
    """Classifiers or their predictions by name."""
    if not isinstance(given, Mapping):
        return {name or _default_name(given): given}
    if not given:
        raise ValueError("a dict of classifiers or predictions must not be empty.")
    if name is not None:
        raise ValueError(f"name is for a single classifier, a dict has names; got {name!r}.")
    return {str(key): value for key, value in given.items()}


def _default_name(given: Any) -> str:
    return type(given).__name__ if hasattr(given, "predict") else "classifier"


def _scores(estimator: Any, X: Any) -> Any:
    """What ranks rows: decision_function, else probabilities."""
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X)
    raise TypeError(
        f"estimator must have decision_function or predict_proba; got {type(estimator).__name__}."
    )


def _on_host(curve: Any) -> Any:
    """A named tuple of arrays, as NumPy arrays."""
    return type(curve)(*map(to_numpy, curve))


class _Display:
    """Numbers by name of the classifier, and how they are drawn."""

    ax_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw on matplotlib Axes; None makes them."""
        raise NotImplementedError


class _RankedDisplay(_Display):
    """Curves of scores."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, pos_label: Any = None,
        name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Of a fitted classifier, or a dict of them: decision_function, else predict_proba."""
        scores = {key: _scores(one, X) for key, one in _named(estimator, name).items()}
        return cls.from_predictions(y, scores, sample_weight=sample_weight, pos_label=pos_label,
                                    ax=ax)  # fmt: skip

    @classmethod
    def from_predictions(
        cls, y: Any, scores: Any, *, sample_weight: Any = None, pos_label: Any = None,
        name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Of labels y [n] and scores [n] or [n, K], or a dict of them."""
        raise NotImplementedError


class RocDisplay(_RankedDisplay):
    """ROC curves with their areas, and the line of chance.

    Attributes
    ----------
    curves : {name: RocCurve}, as of metrics.roc_curve, on the host
    areas : {name: float}, as of metrics.roc_auc
    ax_ : matplotlib Axes
    """

    def __init__(self, curves: dict[str, Any], areas: dict[str, float]) -> None:
        self.curves, self.areas = curves, areas

    @classmethod
    def from_predictions(
        cls, y: Any, scores: Any, *, sample_weight: Any = None, pos_label: Any = None,
        name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Of labels y [n] and scores [n] or [n, K], or a dict of them."""
        named = _named(scores, name)
        given = {"sample_weight": sample_weight, "pos_label": pos_label}
        curves = {key: _on_host(roc_curve(y, one, **given)) for key, one in named.items()}
        areas = {key: roc_auc(y, one, **given) for key, one in named.items()}
        return cls(curves, areas).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on matplotlib Axes; None makes them."""
        self.ax_ = ax = axes_or_new(ax)
        ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.0, label="chance (0.5)")
        colours = class_colours(len(self.curves))
        for (name, curve), colour in zip(self.curves.items(), colours, strict=True):
            label = f"{name} (area {self.areas[name]:.4f})"
            ax.plot(curve.fpr, curve.tpr, color=colour, label=label)
        _unit_square(ax)
        ax.set_xlabel("false positive rate, FP / N")
        ax.set_ylabel("true positive rate, TP / P")
        ax.set_title("ROC")
        ax.legend(frameon=False, loc="lower right")
        return self


class PrecisionRecallDisplay(_RankedDisplay):
    """Precision over recall with the average precision, and the line of chance: the share P.

    Attributes
    ----------
    curves : {name: PrecisionRecallCurve}, as of metrics.precision_recall_curve, on the host
    averages : {name: float}, as of metrics.average_precision
    share : float, that of the positive rows
    ax_ : matplotlib Axes
    """

    def __init__(self, curves: dict[str, Any], averages: dict[str, float], share: float) -> None:
        self.curves, self.averages, self.share = curves, averages, share

    @classmethod
    def from_predictions(
        cls, y: Any, scores: Any, *, sample_weight: Any = None, pos_label: Any = None,
        name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Of labels y [n] and scores [n] or [n, K], or a dict of them."""
        named = _named(scores, name)
        given = {"sample_weight": sample_weight, "pos_label": pos_label}
        curves = {
            key: _on_host(precision_recall_curve(y, one, **given)) for key, one in named.items()
        }
        averages = {key: average_precision(y, one, **given) for key, one in named.items()}
        # the lowest threshold takes every row for positive
        share = float(next(iter(curves.values())).precision[0])
        return cls(curves, averages, share).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on matplotlib Axes; None makes them."""
        self.ax_ = ax = axes_or_new(ax)
        chance = f"chance ({self.share:.3g})"
        ax.axhline(self.share, color=GREY, linestyle="--", linewidth=1.0, label=chance)
        colours = class_colours(len(self.curves))
        for (name, curve), colour in zip(self.curves.items(), colours, strict=True):
            label = f"{name} (average {self.averages[name]:.4f})"
            ax.step(curve.recall, curve.precision, where="post", color=colour, label=label)
        _unit_square(ax)
        ax.set_xlabel("recall, TP / P")
        ax.set_ylabel("precision, TP / (TP + FP)")
        ax.set_title("Precision and recall")
        ax.legend(frameon=False, loc="best")
        return self


class CalibrationDisplay(_Display):
    """Share of positive rows over the mean probability of a bin, and the diagonal of calibration.

    Attributes
    ----------
    curves : {name: CalibrationCurve}, as of metrics.calibration_curve, on the host
    ax_ : matplotlib Axes
    """

    def __init__(self, curves: dict[str, Any]) -> None:
        self.curves = curves

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, strategy: str = "uniform",
        sample_weight: Any = None, pos_label: Any = None, name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Of a fitted classifier with predict_proba, or a dict of them."""
        p = {key: one.predict_proba(X) for key, one in _named(estimator, name).items()}
        return cls.from_predictions(
            y, p, n_bins=n_bins, strategy=strategy, sample_weight=sample_weight,
            pos_label=pos_label, ax=ax,
        )  # fmt: skip

    @classmethod
    def from_predictions(
        cls, y: Any, p: Any, *, n_bins: int = 10, strategy: str = "uniform",
        sample_weight: Any = None, pos_label: Any = None, name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Of labels y [n] and probabilities [n] or [n, K], or a dict of them."""
        curves = {}
        for key, one in _named(p, name).items():
            curve = calibration_curve(
                y, one, n_bins=n_bins, strategy=strategy, sample_weight=sample_weight,
                pos_label=pos_label,
            )  # fmt: skip
            curves[key] = _on_host(curve)
        return cls(curves).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on matplotlib Axes; None makes them."""
        self.ax_ = ax = axes_or_new(ax)
        ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.0, label="calibrated")
        colours = class_colours(len(self.curves))
        for (name, curve), colour in zip(self.curves.items(), colours, strict=True):
            ax.plot(curve.predicted, curve.observed, marker="o", ms=4, color=colour, label=name)
        _unit_square(ax)
        ax.set_xlabel("mean probability of the bin")
        ax.set_ylabel("share of positive rows")
        ax.set_title("Calibration")
        ax.legend(frameon=False, loc="upper left")
        return self


class ConfusionDisplay(_Display):
    """Tables of true and predicted labels, a panel a classifier; colours are shares of a row.

    Attributes
    ----------
    tables : {name: array [K, K]}, as of metrics.confusion_matrix, on the host
    labels : list
    ax_ : matplotlib Axes; an array of them for several classifiers
    """

    def __init__(self, tables: dict[str, np.ndarray], labels: list[Any]) -> None:
        self.tables, self.labels = tables, labels

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, labels: Any = None,
        name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Of a fitted classifier, or a dict of them: predict."""
        predicted = {key: one.predict(X) for key, one in _named(estimator, name).items()}
        return cls.from_predictions(y, predicted, sample_weight=sample_weight, labels=labels, ax=ax)

    @classmethod
    def from_predictions(
        cls, y: Any, predicted: Any, *, sample_weight: Any = None, labels: Any = None,
        name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Of labels y [n] and predicted ones [n], or a dict of them."""
        named = _named(predicted, name)
        if labels is None:
            every = [_label_list(one) for one in (y, *named.values())]
            labels = sorted(set().union(*every))
        tables = {
            key: to_numpy(confusion_matrix(y, one, sample_weight=sample_weight, labels=labels))
            for key, one in named.items()
        }
        return cls(tables, list(labels)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on matplotlib Axes, as many as classifiers; None makes them."""
        n = len(self.tables)
        if ax is None:
            side = min(2.4 + 0.5 * len(self.labels), 8.0)
            ax = pyplot().subplots(1, n, figsize=(side * n, side), layout="constrained")[1]
        self.ax_ = ax
        panels = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(panels) != n:
            raise ValueError(f"ax must hold {n} axes, one a classifier; got {len(panels)}.")
        for one, (name, table) in zip(panels, self.tables.items(), strict=True):
            self._draw(one, name, table)
        return self

    def _draw(self, ax: Any, name: str, table: np.ndarray) -> None:
        total = table.sum(axis=1, keepdims=True)
        share = np.divide(table, total, out=np.zeros(table.shape), where=total > 0)
        ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0)
        for (j, k), value in np.ndenumerate(table):
            text = f"{value:,}" if table.dtype.kind == "i" else f"{value:.4g}"
            colour = "white" if share[j, k] > 0.6 else "black"
            ax.text(k, j, f"{text}\n{share[j, k]:.1%}", ha="center", va="center", color=colour,
                    fontsize="small")  # fmt: skip
        names = [str(label) for label in self.labels]
        ax.set_xticks(range(len(names)), names)
        ax.set_yticks(range(len(names)), names)
        ax.set_xlabel("predicted")
        ax.set_ylabel("true")
        ax.set_title(f"{name} ({np.trace(table) / table.sum():.2%} right)", fontsize="medium")


def _label_list(labels: Any) -> list[Any]:
    return np.unique(to_numpy(labels) if is_array(labels) else np.asarray(labels)).tolist()


def _unit_square(ax: Any) -> None:
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(-0.01, 1.01)
    tidy(ax)
