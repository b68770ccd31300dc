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
    Outcome,
    outcomes,
    outcomes_of_each,
    squares_from_tables,
    squares_in_training,
    values,
    values_of_each,
    values_of_parts,
)
from ensemble_gpu.selection.result import CrossValidation
from ensemble_gpu.selection.splits import Fold

# Rows whose predictions are made at once.
BLOCK = 8192


@dataclass(frozen=True)
class Judged:
    """The models of an estimator, one a fold, and what they are worth.

    `rounds` are those of the models that it is about (None: all), `own` [folds, metrics] what they
    are worth on their own rows, where that is known.
    """

    models: list[Any]
    result: CrossValidation
    rounds: int | None = None
    own: np.ndarray | None = None

    def after(self, rounds: int | None) -> Judged:
        """The same after so many rounds (None: as it is)."""
        return self if rounds is None else replace(self, rounds=rounds)


@dataclass(frozen=True)
class OfFold:
    """A family's models of a fold.

    `curves` [rounds, metrics] of the test rows for each of the values; of the models' own rows,
    where they are judged as well, `own` [metrics].
    """

    models: list[Any]
    curves: list[np.ndarray]
    rounds: list[int] | None = None
    own: list[np.ndarray] | None = None


@dataclass(frozen=True)
class Judging:
    """What estimators are judged by: metrics, numbers of rounds, and folds with their bins.

    `on_own_rows`: whole models by the rows that they were trained on as well.
    """

    judged: Sequence[Judge]
    rounds: Any
    held: Held
    folds: Sequence[Fold]
    bins: Sequence[SharedBins | PartBins | None]
    on_own_rows: bool = False

    @cached_property
    def tests(self) -> list[Held]:
        """The rows that each fold holds out."""
        return [self.held.take(fold.test) for fold in self.folds]

    def of_fold(self, family: Family, b: int, alone: bool) -> OfFold:
        """Fit a family to fold b and judge it."""
        bins, test, train = self.bins[b], self.tests[b], self.held.take(self.folds[b].train)
        models = family.fitted(train, bins, alone)
        with on_one_thread(models, alone):
            wanted = None if family.stages else _wanted(self.rounds, models[0])
            if wanted is not None:
                curves = [_curve(model, test, self.judged, wanted, bins) for model in models]
                return OfFold(models, curves, wanted)
            parts = self._whole(family, models, [test, train] if self.on_own_rows else [test], bins)
        of_test, of_train = parts[0], parts[1] if self.on_own_rows else None
        models = models * (len(of_test) // len(models))
        return OfFold(models, [row[None, :] for row in of_test], None, of_train)

    def _whole(
        self, family: Family, models: list[Any], parts: list[Held],
        bins: SharedBins | PartBins | None,
    ) -> list[list[np.ndarray]]:  # fmt: skip
        """Metrics of each part (test rows, then others) and of each of the family's values."""
        order = sorted(set(family.stages))
        stages = _stages(order, models[0])
        known: list[np.ndarray | None] = [None]
        if stages is not None:
            known = [squares_from_tables(models[0], parts[0], self.judged, stages, bins)]
        for own in parts[1:]:
            squares = [squares_in_training(model, own, self.judged, stages) for model in models]
            rows = [one for one in squares if one is not None]
            known.append(np.concatenate(rows) if len(rows) == len(models) else None)

        def outcomes_of(rows: Held) -> Iterable[Outcome]:
            single = stages is not None
            return outcomes(models[0], rows, stages) if single else outcomes_of_each(models, rows)

        asked = [part for part, rows in zip(parts, known, strict=True) if rows is None]
        passed = iter(values_of_parts(self.judged, outcomes_of, self.held, asked))
        found = [next(passed) if rows is None else rows for rows in known]
        if not order:
            return [list(rows) for rows in found]
        return [[rows[order.index(n)] for n in family.stages] for rows in found]

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

        def judged(call: tuple[Judged, int], alone: bool) -> np.ndarray | list[float]:
            one, b = call
            rows, model = self.held.take(self.folds[b].train), one.models[b]
            stages = _stages([one.rounds], model)
            with on_one_thread([model], alone):
                squares = squares_in_training(model, rows, self.judged, stages)
                if squares is not None:
                    return squares[0]
                return values(self.judged, next(outcomes(model, rows, stages)), rows)

        calls = [(one, b) for one in found if one.own is None for b in range(len(self.folds))]
        threads = threads_of(found[0].models[0], self.held.X)
        passed = fits_side_by_side(judged, calls, threads)
        known = (
            [next(passed) for _ in self.folds] if one.own is None else one.own for one in found
        )
        return [
            {judge.name: own[:, i] for i, judge in enumerate(self.judged)}
            for own in map(np.array, known)
        ]

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
        folds: list[OfFold] = done[k * n_folds : (k + 1) * n_folds]
        # Where the number of rounds depends on the rows, those that all folds have.
        wanted = [one.rounds for one in folds if one.rounds is not None]
        common = min(wanted, key=len) if wanted else None
        of_family = []
        for i, stage in enumerate(family.stages or [None] * len(family.values)):
            cut = [one.curves[i][: len(common) if common else None] for one in folds]
            result = judging.result(cut, common)
            rounds = result.best_round if stage is None else stage
            own = [one.own[i] for one in folds if one.own is not None]
            models = [one.models[i] for one in folds]
            of_family.append(Judged(models, result, rounds, np.array(own) if own else None))
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
    squares = squares_from_tables(model, held, judged, stages, bins)
    if squares is not None:
        return squares
    return np.array(list(values_of_each(judged, outcomes(model, held, stages), held)))
