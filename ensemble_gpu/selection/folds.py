"""Families of estimators, fitted to all folds and judged by the rows that are held out."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from ensemble_gpu.arrays.namespace import HOST
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
    squares_in_training,
    values_of_each,
)
from ensemble_gpu.selection.result import CrossValidation
from ensemble_gpu.selection.splits import Fold

# Rows whose predictions are made at once.
BLOCK = 8192


@dataclass(frozen=True)
class Judged:
    """The models of an estimator, one a fold, and what they are worth.

    `rounds` are those of the models that it is about (None: all).
    """

    models: list[Any]
    result: CrossValidation
    rounds: int | None = None

    def after(self, rounds: int | None) -> Judged:
        """The same after so many rounds (None: as it is)."""
        return self if rounds is None else replace(self, rounds=rounds)


@dataclass(frozen=True)
class Judging:
    """What estimators are judged by: metrics, numbers of rounds, and folds with their bins."""

    judged: Sequence[Judge]
    rounds: Any
    held: Held
    folds: Sequence[Fold]
    bins: Sequence[SharedBins | PartBins | None]

    @cached_property
    def tests(self) -> list[Held]:
        """The rows that each fold holds out."""
        return [self.held.take(fold.test) for fold in self.folds]

    def of_fold(
        self, family: Family, b: int, alone: bool
    ) -> tuple[list[Any], list[np.ndarray], list[int] | None]:
        """A family's models of fold b, a curve [rounds, metrics] of its test rows for each of the
        values, and the rounds.
        """
        bins, test = self.bins[b], self.tests[b]
        models = family.fitted(self.held.take(self.folds[b].train), bins, alone)
        with on_one_thread(models, alone):
            if family.stages:
                order = sorted(set(family.stages))
                curve = _curve(models[0], test, self.judged, order, bins)
                found = [curve[[order.index(n)]] for n in family.stages]
                return models * len(found), found, None
            wanted = _wanted(self.rounds, models[0])
            if wanted is None:
                outcome = outcomes_of_each(models, test)
                each = values_of_each(self.judged, outcome, test)
                return models, [np.array([own]) for own in each], None
            return models, [_curve(m, test, self.judged, wanted, bins) for m in models], wanted

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

    def apparent(self, found: Sequence[Judged]) -> list[dict[str, np.ndarray]]:
        """Metrics of the models on the rows that they were trained on."""
        together: dict[int, list[int]] = {}
        for k, one in enumerate(found):
            together.setdefault(id(one.models[0]), []).append(k)
        calls = [(own, b) for own in together.values() for b in range(len(self.folds))]

        def judged(call: tuple[list[int], int], alone: bool) -> list[list[float]]:
            own, b = call
            rows, model = self.held.take(self.folds[b].train), found[own[0]].models[b]
            with on_one_thread([model], alone):
                return _at_each(model, rows, self.judged, [found[k].rounds for k in own])

        got = np.empty((len(found), len(self.folds), len(self.judged)))
        threads = threads_of(found[0].models[0], self.held.X)
        results = fits_side_by_side(judged, calls, threads)
        for (own, b), result in zip(calls, results, strict=True):
            got[own, b] = result
        return [{judge.name: own[:, i] for i, judge in enumerate(self.judged)} for own in got]

    def out_of_fold(self, found: Judged, n_outputs: int | None) -> Any:
        """Mean prediction of every row by the models that have not seen it."""
        held, where = self.held, self.held.where
        xp = where.xp

        def predicted(b: int, alone: bool) -> Any:
            model = found.models[b]
            with on_one_thread([model], alone):
                stages = _stages([found.rounds], model)
                # sums of stumps that tables have judged; others have had all rows before
                blocks = self.tests[b].in_blocks(BLOCK)
                return xp.concat([next(outcomes(model, own, stages)).prediction for own in blocks])

        calls, threads = range(len(self.folds)), threads_of(found.models[0], held.X)
        parts = list(fits_side_by_side(predicted, calls, threads))
        tests = [fold.test for fold in self.folds]
        times = np.bincount(np.concatenate(tests), minlength=held.n)
        if where.kind == HOST and times.max() == 1:
            out = np.full((held.n, *parts[0].shape[1:]), np.nan)
            for test, part in zip(tests, parts, strict=True):
                out[test] = part
            return held.home.hand_over(out)
        padded = xp.concat([*parts, xp.zeros_like(parts[0][:1, ...])])
        places = _places(tests, times)
        taken = [xp.take(padded, where.put(place), axis=0) for place in places]
        total = sum(taken[1:], start=taken[0])
        if (times != 1).any():
            count = where.put(np.where(times > 0, times, np.nan))
            total = total / (count if n_outputs is None else count[:, None])
        return held.home.hand_over(total)


def _places(tests: Sequence[np.ndarray], times: np.ndarray) -> np.ndarray:
    """Where each row, which is in so many tests, is among all of them, one after the other.

    The first time that it is in one, the second, ... (at the end: no more).
    """
    rows, n = np.concatenate(tests), len(times)
    end = len(rows)
    layers = np.full((times.max(), n), end)
    if len(layers) == 1:
        layers[0, rows] = np.arange(end)
    else:
        by_row = np.argsort(rows, kind="stable")
        layers[np.arange(end) - np.repeat(times.cumsum() - times, times), rows[by_row]] = by_row
    return layers


def judged_families(
    families: Sequence[Family], judging: Judging, progress: Any, label: str
) -> list[list[Judged]]:
    """Fit and judge all folds of all families; of each family what its estimators are worth."""
    n_folds, found = len(judging.folds), []
    calls = [(family, b) for family in families for b in range(n_folds)]

    def judged(call: tuple[Family, int], alone: bool) -> Any:
        return judging.of_fold(*call, alone)

    threads = threads_of(families[0].source, judging.held.X)
    done = list(watched(fits_side_by_side(judged, calls, threads), len(calls), progress, label))
    for k, family in enumerate(families):
        models, curves, wanted = zip(*done[k * n_folds : (k + 1) * n_folds], strict=True)
        # Where the number of rounds depends on the rows, those that all folds have.
        common = None if wanted[0] is None else min(wanted, key=len)
        of_family = []
        for i, stage in enumerate(family.stages or [None] * len(family.values)):
            cut = [c[i] if common is None else c[i][: len(common)] for c in curves]
            result = judging.result(cut, common)
            rounds = result.best_round if stage is None else stage
            of_family.append(Judged([own[i] for own in models], result, rounds))
        found.append(of_family)
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


def _stages(wanted: Sequence[int | None], model: Any) -> list[int] | None:
    """Rounds that the model has: a fit that ended early stays as it is; None: the whole model."""
    known = [n for n in wanted if n is not None]
    return [min(n, model.n_estimators_) for n in known] if known else None


def _curve(
    model: Any, held: Held, judged: Sequence[Judge], wanted: list[int],
    bins: SharedBins | PartBins | None,
) -> np.ndarray:  # fmt: skip
    """Metrics [rounds, metrics] of held-out rows: from tables where they have them."""
    stages = _stages(wanted, model)
    assert stages is not None
    if isinstance(bins, PartBins):
        squares = squares_from_tables(model, held, judged, stages, bins)
        if squares is not None:
            return squares
    return np.array(list(values_of_each(judged, outcomes(model, held, stages), held)))


def _at_each(
    model: Any, rows: Held, judged: Sequence[Judge], rounds: Sequence[int | None]
) -> list[list[float]]:
    """Metrics after each of the numbers of rounds, in one pass."""
    order = sorted({n for n in rounds if n is not None})
    keys: list[int | None] = [*order] or [None]
    stages = _stages(order, model)
    squares = squares_in_training(model, rows, judged, stages)
    if squares is not None:
        passed: Iterable[list[float]] = squares.tolist()
    else:
        passed = values_of_each(judged, outcomes(model, rows, stages), rows)
    found = dict(zip(keys, passed, strict=True))
    return [found[n] for n in rounds]
