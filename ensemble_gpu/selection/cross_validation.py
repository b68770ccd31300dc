"""Cross-validation in one pass: bins are cut once, every round is judged from one fit a fold."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from ensemble_gpu.estimators.reading import shared_bins
from ensemble_gpu.metrics import CLASSIFICATION
from ensemble_gpu.plotting.axes import BLUE, GREY, axes_or_new, tidy
from ensemble_gpu.selection.judging import (
    Held,
    Judge,
    judges,
    outcomes,
    read_held,
    task_of,
    values,
)
from ensemble_gpu.selection.splits import Fold, make_folds

BINS = ("shared", "fold")


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


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    qid: Any = None,
    cv: Any = 5,
    groups: Any = None,
    metrics: Any = None,
    rounds: Any = None,
    bins: str = "shared",
    return_estimators: bool = False,
    return_apparent: bool = False,
    random_state: Any = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> CrossValidation:
    """Mean over folds b of R_b, the metric on fold b of the model of the other folds.

    One fit a fold judges all numbers of rounds: what the first rounds predict is part of what all
    of them do. The rows' labels are read on the host to make the folds; X stays where it is.

    Parameters
    ----------
    estimator : classifier, regressor or ranker of this package, or of scikit-learn; it is not
        changed
    X, y : rows and targets, of any library and device that the estimator takes
    sample_weight : weights of the rows, in training and in metrics; of a ranker also of queries
    qid : of a ranker: the query of each row. Queries are held out as a whole, unless `groups` says
        what is
    cv : int, splitter of scikit-learn or list of (train, test) positions
        A number of folds: drawn by random_state, stratified by label for classifiers (and by
        groups). Repeated, time-ordered and leave-one-out folds are scikit-learn's RepeatedKFold,
        TimeSeriesSplit and LeaveOneOut.
    groups : label of the group of each row; groups are held out as a whole
    metrics : names (as of early stopping), callables metric(y, prediction) -> float, or a list
        None: log-loss, RMSE, or NDCG@10. The first decides.
    rounds : None, "all" or ascending list of int
        Numbers of rounds that are judged, of boosting. early_stopping is off then: the held-out
        rows choose the rounds. None: the whole model.
    bins : {"shared", "fold"}
        "shared": features are binned once, at edges from all rows: held-out features (not labels)
        take part in placing thresholds. "fold": each fold bins its own training rows, as a separate
        fit would. Without meaning for estimators without bins.
    return_estimators : whether the folds' estimators are kept
    return_apparent : whether the rows that were trained on are judged as well
    random_state : seed of the folds
    progress : called with (folds done, folds) after every fold

    Returns
    -------
    CrossValidation
    """
    if bins not in BINS:
        raise ValueError(f"bins must be one of {BINS!r}; got {bins!r}.")
    task = task_of(estimator, qid)
    judged = judges(metrics, task)
    held, classes = read_held(X, y, sample_weight, task, qid)
    folds = make_folds(
        cv, y, held.n, stratified=task == CLASSIFICATION, groups=qid if groups is None else groups,
        random_state=random_state,
    )  # fmt: skip
    source = prepared(estimator, rounds)
    common = common_bins(source, held) if bins == "shared" else None
    return judged_folds(
        source,
        held,
        folds,
        common,
        Judging(
            judged,
            rounds,
            None if classes is None else len(classes),
            return_estimators,
            return_apparent,
            progress,
        ),
    )


@dataclass(frozen=True)
class Judging:
    """What is asked of the folds: see `cross_validate`; n_outputs: None for a regression."""

    judged: Sequence[Judge]
    rounds: Any
    n_outputs: int | None
    return_estimators: bool
    return_apparent: bool
    progress: Callable[[int, int], Any] | None = None


def judged_folds(
    source: Any, held: Held, folds: Sequence[Fold], common: Any, asked: Judging
) -> CrossValidation:
    """Fit and judge every fold; `common` are the bins that fits share (None: none)."""
    judged, rounds, progress = asked.judged, asked.rounds, asked.progress
    models, curves, wanted = [], [], None
    for done, fold in enumerate(folds):
        model = fitted(source, held, fold, common)
        wanted = _wanted(rounds, model)
        curves.append(_curve(model, held.take(fold.test), judged, wanted))
        models.append(model)
        if progress is not None:
            progress(done + 1, len(folds))
    scores = {
        judge.name: np.array([curve[:, i] if wanted else curve[0, i] for curve in curves])
        for i, judge in enumerate(judged)
    }
    result = CrossValidation(
        tuple(judge.name for judge in judged),
        {judge.name: judge.greater_is_better for judge in judged},
        [(fold.train, fold.test) for fold in folds],
        None if wanted is None else np.array(wanted),
        scores,
        None,
    )
    at = result.best_round
    return CrossValidation(
        result.metrics, result.greater_is_better, result.folds, result.rounds, result.scores,
        _out_of_fold(models, folds, held, asked.n_outputs, at),
        models if asked.return_estimators else None,
        apparent_risk(models, folds, held, judged, at) if asked.return_apparent else None,
    )  # fmt: skip


def prepared(estimator: Any, rounds: Any) -> Any:
    """A copy to fit; where rounds are judged, without early stopping."""
    source = clone(estimator)
    if rounds is None:
        return source
    if not hasattr(source, "_staged"):
        raise ValueError(
            "rounds is for boosting, whose predictions come in stages; "
            f"{type(estimator).__name__} has none. rounds must be None for it."
        )
    if "early_stopping" in source.get_params(deep=False):
        source.set_params(early_stopping=False)
    return source


def common_bins(source: Any, held: Held) -> Any:
    """Bins from all rows, where the estimator has any."""
    if not hasattr(source, "_sharing") or not hasattr(source, "max_bins"):
        return None
    return shared_bins(clone(source), held.X, held.y, held.weights, held.qid)


def fitted(source: Any, held: Held, fold: Fold, common: Any) -> Any:
    """A copy of the estimator, fitted to the fold's training rows."""
    model = clone(source)
    part = held.take(fold.train)
    with nullcontext() if common is None else model._sharing(common):
        return model.fit(part.X, part.y, **part.to_fit())


def _wanted(rounds: Any, model: Any) -> list[int] | None:
    """The rounds to judge."""
    if rounds is None:
        return None
    last = int(model._n_rounds)
    if isinstance(rounds, str):
        if rounds != "all":
            raise ValueError(f"rounds must be None, 'all' or a list of integers; got {rounds!r}.")
        return list(range(1, last + 1))
    wanted = [int(n) for n in rounds if isinstance(n, numbers.Integral)]
    whole = len(wanted) == len(list(rounds)) and sorted(set(wanted)) == wanted
    if not wanted or not whole or wanted[0] < 1 or wanted[-1] > last:
        raise ValueError(
            f"rounds must ascend from 1 to at most {last}, the rounds of the estimator; got "
            f"{rounds!r}."
        )
    return wanted


def _stages(wanted: Sequence[int] | None, model: Any) -> list[int] | None:
    """Rounds that the model has: a fit that ended early stays as it is."""
    return None if wanted is None else [min(n, model.n_estimators_) for n in wanted]


def _curve(model: Any, held: Held, judged: Sequence[Judge], wanted: list[int] | None) -> np.ndarray:
    """Metrics [rounds, metrics] of held-out rows."""
    stages = _stages(wanted, model)
    return np.array([values(judged, outcome, held) for outcome in outcomes(model, held, stages)])


def _last(model: Any, held: Held, at: int | None) -> tuple[Any, Any | None]:
    return next(outcomes(model, held, _stages(None if at is None else [at], model)))


def apparent_risk(
    models: Sequence[Any], folds: Sequence[Fold], held: Held, judged: Sequence[Judge],
    at: int | None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Metrics of every fold's model on the rows that it was trained on, after `at` rounds."""
    found = []
    for model, fold in zip(models, folds, strict=True):
        own = held.take(fold.train)
        found.append(values(judged, _last(model, own, at), own))
    return {judge.name: np.array(found)[:, i] for i, judge in enumerate(judged)}


def _out_of_fold(
    models: Sequence[Any], folds: Sequence[Fold], held: Held, n_outputs: int | None, at: int | None
) -> Any:
    """Mean prediction of every row by the models that have not seen it."""
    where = held.where
    xp = where.xp
    shape = (held.n,) if n_outputs is None else (held.n, n_outputs)
    total, times = where.zeros(shape, xp.float64), np.zeros(held.n)
    for model, fold in zip(models, folds, strict=True):
        prediction, _ = _last(model, held.take(fold.test), at)
        # rows that are not in the fold take the row of zeros at the end
        place = np.full(held.n, len(fold.test), dtype=np.int64)
        place[fold.test] = np.arange(len(fold.test))
        padded = xp.concat([prediction, xp.zeros_like(prediction[:1, ...])])
        total = total + xp.take(padded, where.put(place), axis=0)
        times[fold.test] += 1.0
    count = where.put(np.where(times > 0, times, np.nan))
    return held.home.hand_over(total / (count if n_outputs is None else count[:, None]))
