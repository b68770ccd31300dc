"""Fits to the folds: side by side, with common bins, and one for all values of some parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ensemble_gpu.arrays.namespace import is_array
from ensemble_gpu.data.bins import PartBins, SharedBins
from ensemble_gpu.estimators.reading import shared_bins
from ensemble_gpu.selection.judging import Held
from ensemble_gpu.selection.splits import Fold


@dataclass(frozen=True)
class Family:
    """Estimators of which one fit a fold gives all: they differ in the parameter `axis` alone.

    Without an axis it is the one estimator `source`. Of boosting the values may be `stages`,
    numbers of rounds: `source` has the most.
    """

    source: Any
    axis: str | None = None
    values: tuple[Any, ...] = (None,)
    stages: tuple[int, ...] = ()

    def fitted(self, held: Held, bins: SharedBins | PartBins | None, alone: bool) -> list[Any]:
        """An estimator for each of the values, fitted to all rows (`alone`: on one thread)."""
        model = clone(self.source)
        X, more = held.X if self._reads_values(held, bins) else held.stand_in, held.to_fit()
        sharing = nullcontext() if bins is None else model._sharing(bins)
        with on_one_thread([model], alone), sharing:
            if self.axis is None:
                models = [model.fit(X, held.y, **more)]
            else:
                models = model._fit_all(self.axis, list(self.values), X, held.y, **more)
        for one in models if alone else []:
            one.n_jobs = self.source.n_jobs
        return models

    def _reads_values(self, held: Held, bins: SharedBins | PartBins | None) -> bool:
        """Whether a fit looks at more of X than its shape: at more than its codes, that is."""
        codes = isinstance(bins, PartBins) and is_array(held.all_X) and held.all_X.ndim == 2
        return not codes or not self.source._reads_codes_alone()


def common_bins(source: Any, held: Held) -> SharedBins | None:
    """Bins from all rows, where the estimator has any."""
    if not hasattr(source, "_sharing") or not hasattr(source, "max_bins"):
        return None
    return shared_bins(clone(source), held.X, held.y, held.weights, held.qid)


def bins_of_folds(
    common: SharedBins | None, folds: Sequence[Fold], n: int
) -> list[SharedBins | PartBins | None]:
    """What the fit of each fold shares: tables too, where all rows but the test rows train."""
    if common is None:
        return [None] * len(folds)
    parts = [PartBins(common, fold.train, _held(fold, n)) for fold in folds]
    times = np.zeros(n, dtype=np.int64)
    for k, part in enumerate(parts, 1):
        times[part.train if part.held is None else part.held] += 1
        if part.held is None or times.max() > 1:
            break
        if times.min() == 1:
            common.partition = parts[:k]
            break
    return list(parts)


def _held(fold: Fold, n: int) -> np.ndarray | None:
    """The test rows, where every row is either trained on or held out, and is so once."""
    if len(fold.train) + len(fold.test) != n:
        return None
    seen = np.zeros(n, dtype=bool)
    seen[fold.train] = seen[fold.test] = True
    return fold.test if seen.all() else None


@contextmanager
def on_one_thread(estimators: Sequence[Any], alone: bool) -> Iterator[None]:
    """Inside, the estimators use a single thread, where they run `alone` on theirs."""
    before = [one.n_jobs for one in estimators] if alone else []
    for one in estimators if alone else []:
        one.n_jobs = 1
    try:
        yield
    finally:
        for one, n_jobs in zip(estimators, before, strict=False):
            one.n_jobs = n_jobs
