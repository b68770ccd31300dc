"""Families of estimators, fitted to all folds and judged by the rows that are held out."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ensemble_gpu.data.bins import PartBins, SharedBins
from ensemble_gpu.estimators.progress import TextBar
from ensemble_gpu.estimators.threads import fits_side_by_side, threads_of
from ensemble_gpu.selection.fitting import Family, on_one_thread
from ensemble_gpu.selection.judging import (
    Held,
    Judge,
    outcomes,
    outcomes_of_each,
    squares_from_tables,
    values,
)
from ensemble_gpu.selection.result import CrossValidation
from ensemble_gpu.selection.splits import Fold


@dataclass(frozen=True)
class Judged:
    """The models of an estimator, one a fold, and what they are worth."""

    models: list[Any]
    result: CrossValidation


@dataclass(frozen=True)
class Judging:
    """What estimators are judged by: metrics, numbers of rounds, and folds with their bins."""

    judged: Sequence[Judge]
    rounds: Any
    held: Held
    folds: Sequence[Fold]
    bins: Sequence[SharedBins | PartBins | None]

    def of_fold(
        self, family: Family, fold: Fold, bins: SharedBins | PartBins | None, alone: bool
    ) -> tuple[list[Any], list[np.ndarray], list[int] | None]:
        """A family's models of a fold, their curves [rounds, metrics] of its test rows, and the
        rounds.
        """
        models = family.fitted(self.held.take(fold.train), bins, alone)
        with on_one_thread(models, alone):
            test = self.held.take(fold.test)
            wanted = _wanted(self.rounds, models[0])
            if wanted is None:
                found = [
                    np.array([values(self.judged, outcome, test)])
                    for outcome in outcomes_of_each(models, test)
                ]
            else:
                found = [_curve(model, test, self.judged, wanted, bins) for model in models]
        return models, found, wanted

    def result(self, curves: Sequence[np.ndarray], wanted: list[int] | None) -> CrossValidation:
        """The curves of all folds as a result."""
        names = [judge.name for judge in self.judged]
        return CrossValidation(
            tuple(names),
            {judge.name: judge.greater_is_better for judge in self.judged},
            [(fold.train, fold.test) for fold in self.folds],
            None if wanted is None else np.array(wanted),
            {
                name: np.array([curve[:, i] if wanted else curve[0, i] for curve in curves])
                for i, name in enumerate(names)
            },
            None,
        )

    def apparent(
        self, found: Sequence[Judged], rounds: Sequence[int | None]
    ) -> list[dict[str, np.ndarray]]:
        """Metrics of the models on the rows that they were trained on, after so many rounds."""
        pairs = zip(found, rounds, strict=True)
        calls = [(one, n, b) for one, n in pairs for b in range(len(self.folds))]

        def judged(call: tuple[Judged, int | None, int], alone: bool) -> list[float]:
            one, n, b = call
            own, model = self.held.take(self.folds[b].train), one.models[b]
            with on_one_thread([model], alone):
                return values(self.judged, _last(model, own, n), own)

        threads = threads_of(found[0].models[0], self.held.X)
        got = np.array(list(fits_side_by_side(judged, calls, threads)))
        got = got.reshape(len(found), len(self.folds), len(self.judged))
        return [{judge.name: own[:, i] for i, judge in enumerate(self.judged)} for own in got]

    def out_of_fold(self, found: Judged, n_outputs: int | None) -> Any:
        """Mean prediction of every row by the models that have not seen it."""
        held, where = self.held, self.held.where
        xp = where.xp
        shape = (held.n,) if n_outputs is None else (held.n, n_outputs)
        total, times = where.zeros(shape, xp.float64), np.zeros(held.n)
        for model, fold in zip(found.models, self.folds, strict=True):
            prediction, _ = _last(model, held.take(fold.test), found.result.best_round)
            # rows that are not in the fold take the row of zeros at the end
            place = np.full(held.n, len(fold.test), dtype=np.int64)
            place[fold.test] = np.arange(len(fold.test))
            padded = xp.concat([prediction, xp.zeros_like(prediction[:1, ...])])
            total = total + xp.take(padded, where.put(place), axis=0)
            times[fold.test] += 1.0
        count = where.put(np.where(times > 0, times, np.nan))
        return held.home.hand_over(total / (count if n_outputs is None else count[:, None]))


def judged_families(
    families: Sequence[Family], judging: Judging, progress: Any, label: str
) -> list[list[Judged]]:
    """Fit and judge all folds of all families; of each family what its estimators are worth."""
    calls = [
        (family, fold, bins)
        for family in families
        for fold, bins in zip(judging.folds, judging.bins, strict=True)
    ]

    def judged(call: Any, alone: bool) -> Any:
        family, fold, bins = call
        return judging.of_fold(family, fold, bins, alone)

    threads = threads_of(families[0].source, judging.held.X)
    done = list(watched(fits_side_by_side(judged, calls, threads), len(calls), progress, label))
    n_folds, found = len(judging.folds), []
    for k, family in enumerate(families):
        models, curves, wanted = zip(*done[k * n_folds : (k + 1) * n_folds], strict=True)
        found.append([
            Judged([own[i] for own in models], judging.result([c[i] for c in curves], wanted[0]))
            for i in range(len(family.values))
        ])  # fmt: skip
    return found


def watched(results: Iterable[Any], total: int, progress: Any, label: str) -> Iterator[Any]:
    """The results; after each of them `progress` is told."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(
            f"progress must be True, None or a callable progress(done, total); got {progress!r}."
        )
    bar = TextBar(label) if progress is True else None
    try:
        for done, result in enumerate(results, 1):
            if bar is not None:
                bar.show(done, total, "fit")
            elif callable(progress):
                progress(done, total)
            yield result
    finally:
        if bar is not None:
            bar.close()


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


def _stages(wanted: Sequence[int], model: Any) -> list[int]:
    """Rounds that the model has: a fit that ended early stays as it is."""
    return [min(n, model.n_estimators_) for n in wanted]


def _curve(
    model: Any, held: Held, judged: Sequence[Judge], wanted: list[int],
    bins: SharedBins | PartBins | None,
) -> np.ndarray:  # fmt: skip
    """Metrics [rounds, metrics] of held-out rows: from tables where they have them."""
    stages = _stages(wanted, model)
    if isinstance(bins, PartBins):
        squares = squares_from_tables(model, held, judged, stages, bins)
        if squares is not None:
            return squares
    return np.array([values(judged, outcome, held) for outcome in outcomes(model, held, stages)])


def _last(model: Any, held: Held, at: int | None) -> tuple[Any, Any | None]:
    return next(outcomes(model, held, None if at is None else _stages([at], model)))
