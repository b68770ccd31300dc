"""What cross-validation has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.drawing.axes import BLUE, GREY, axes_or_new, tidy


@dataclass(frozen=True)
class CrossValidation:
    """Result of `cross_validate`.

    Attributes
    ----------
    metrics : names, the first of which decides
    greater_is_better : {metric: bool}
    folds : list of (train, test) positions
    rounds : int array, the rounds that were judged; None: the whole model alone
    scores : {metric: array [folds]}, [folds, rounds] where rounds were judged
    out_of_fold : predictions of every row by the models that have not seen it, probabilities [n, K]
        or numbers [n], on X's device; the mean over repeats, NaN where a row is in no test fold.
        After `best_round` rounds
    estimators : the folds' fitted estimators, or None
    apparent : {metric: array [folds]}, the same on the rows that were trained on, or None
    """

    metrics: tuple[str, ...]
    greater_is_better: dict[str, bool]
    folds: list[tuple[np.ndarray, np.ndarray]]
    rounds: np.ndarray | None
    scores: dict[str, np.ndarray]
    out_of_fold: Any = field(repr=False)
    estimators: list[Any] | None = field(default=None, repr=False)
    apparent: dict[str, np.ndarray] | None = None

    @property
    def mean(self) -> dict[str, Any]:
        """Mean over the folds: a number, or an array over rounds."""
        return {name: _plain(found.mean(axis=0)) for name, found in self.scores.items()}

    @property
    def std(self) -> dict[str, Any]:
        """Standard deviation over the folds (of a sample: divided by folds - 1)."""
        several = len(self.folds) > 1
        return {
            name: _plain(found.std(axis=0, ddof=1) if several else np.zeros_like(found[0]))
            for name, found in self.scores.items()
        }

    @property
    def standard_error(self) -> dict[str, Any]:
        """std / sqrt(folds): that of the mean."""
        return {name: found / np.sqrt(len(self.folds)) for name, found in self.std.items()}

    @property
    def best_round(self) -> int | None:
        """The first of the rounds with the best mean of the first metric; None without rounds."""
        if self.rounds is None:
            return None
        return int(self.rounds[_best(self.mean[self.metrics[0]], self._greater)])

    @property
    def _greater(self) -> bool:
        return self.greater_is_better[self.metrics[0]]

    def to_frame(self) -> Any:
        """A pandas frame: columns "test-<metric>-mean" and "-std", a row a round."""
        import pandas as pd

        columns = {}
        for name in self.metrics:
            columns[f"test-{name}-mean"] = np.atleast_1d(self.mean[name])
            columns[f"test-{name}-std"] = np.atleast_1d(self.std[name])
        index = None if self.rounds is None else pd.Index(self.rounds, name="rounds")
        return pd.DataFrame(columns, index=index)

    def plot(self, metric: str | None = None, ax: Any = None) -> Any:
        """Mean and standard error over rounds, and each fold faintly; returns matplotlib Axes."""
        name = self.metrics[0] if metric is None else metric
        if name not in self.metrics:
            raise ValueError(f"metric must be one of {list(self.metrics)!r}; got {metric!r}.")
        if self.rounds is None:
            raise ValueError("there is no curve to draw: give cross_validate rounds='all'.")
        ax = axes_or_new(ax)
        mean, error = self.mean[name], self.standard_error[name]
        for one in self.scores[name]:
            ax.plot(self.rounds, one, color=GREY, alpha=0.35, linewidth=0.8)
        ax.fill_between(self.rounds, mean - error, mean + error, color=BLUE, alpha=0.2, linewidth=0)
        best = _best(mean, self.greater_is_better[name])
        label = f"mean of {len(self.folds)} folds (best: {mean[best]:.4g})"
        ax.plot(self.rounds, mean, color=BLUE, label=label)
        at = int(self.rounds[best])
        ax.axvline(at, color=GREY, linestyle=":", linewidth=0.9, label=f"best round: {at}")
        ax.set_xlabel("rounds")
        ax.set_ylabel(name)
        ax.set_title("Cross-validation (band: standard error)")
        ax.legend(frameon=False)
        tidy(ax)
        return ax


def _plain(values: np.ndarray) -> Any:
    return float(values) if values.ndim == 0 else values


def _best(mean: np.ndarray, greater: bool) -> int:
    return int(np.argmax(mean) if greater else np.argmin(mean))
