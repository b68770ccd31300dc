"""Fits to replicates of a training set, and what they predict at the same points.

A replicate is a new training set from a generator, a bootstrap sample, or a random part of one data
set. Samples of one data set share its bins: features are binned once, and a fit takes the codes of
its rows (data/bins.py). Values of a parameter that one fit contains cost no further fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ensemble_gpu.arrays.namespace import is_array, locate, to_numpy
from ensemble_gpu.data.bins import PartBins, SharedBins
from ensemble_gpu.estimators.base import ArrayEstimator
from ensemble_gpu.estimators.reading import shared_bins
from ensemble_gpu.estimators.threads import fits_side_by_side, threads_of

ROUNDS = "n_estimators"


@dataclass(frozen=True)
class Varied:
    """A parameter and its values; without a name the estimator as it is."""

    name: str | None
    values: tuple[Any, ...]


@dataclass(frozen=True)
class TrainingSet:
    """Rows to fit, and the bins that they share with others."""

    X: Any
    y: Any
    bins: PartBins | None = None


@dataclass(frozen=True)
class Answers:
    """Predictions of a replicate [values, points], and of its members [values][members, points]."""

    whole: np.ndarray
    members: list[np.ndarray] | None


def all_answers(
    estimator: Any,
    varied: Varied,
    training: Callable[[int], TrainingSet],
    points: Callable[[int], Any],
    n_replicates: int,
    seeds: np.ndarray,
    members: bool,
) -> list[Answers]:
    """What the fits to replicates 0, 1, ... answer at their points."""

    def answers(r: int, alone: bool) -> Answers:
        return _fitted(estimator, varied, training(r), points(r), int(seeds[r]), alone, members)

    threads = threads_of(estimator, points(0)) if isinstance(estimator, ArrayEstimator) else 1
    return list(fits_side_by_side(answers, range(n_replicates), threads))


def _fitted(
    estimator: Any,
    varied: Varied,
    rows: TrainingSet,
    points: Any,
    seed: int,
    alone: bool,
    members: bool,
) -> Answers:
    source = clone(estimator)
    if "random_state" in source.get_params(deep=False):
        source.set_params(random_state=seed)
    if alone:
        source.set_params(n_jobs=1)
    if members:
        models = _each_fitted(source, varied, rows)
        return Answers(
            np.array([_answer(model.predict(points)) for model in models]),
            [_of_members(model, points) for model in models],
        )
    return Answers(np.array(_predicted(source, varied, rows, points)), None)


def _predicted(source: Any, varied: Varied, rows: TrainingSet, points: Any) -> list[np.ndarray]:
    """Predictions for each value of the parameter."""
    if varied.name == ROUNDS and hasattr(source, "_staged") and _contains(source, ROUNDS):
        source._check_values(ROUNDS, list(varied.values))
        wanted = sorted(set(varied.values))
        model = _fit(source.set_params(n_estimators=wanted[-1]), rows)
        last = model.n_estimators_  # fits may end before
        seen = sorted({min(n, last) for n in wanted})
        stages = dict(zip(seen, map(_answer, model.staged_predict(points, seen)), strict=True))
        return [stages[min(n, last)] for n in varied.values]
    return [_answer(model.predict(points)) for model in _each_fitted(source, varied, rows)]


def _each_fitted(source: Any, varied: Varied, rows: TrainingSet) -> list[Any]:
    name = varied.name
    if name is None:
        return [_fit(source, rows)]
    if not hasattr(source, "_staged") and _contains(source, name):
        with source._sharing(rows.bins):
            return source._fit_all(name, list(varied.values), rows.X, rows.y)
    return [_fit(clone(source).set_params(**{name: value}), rows) for value in varied.values]


def _contains(source: Any, name: str) -> bool:
    return isinstance(source, ArrayEstimator) and name in source._contained()


def _fit(model: Any, rows: TrainingSet) -> Any:
    if rows.bins is None:
        return model.fit(rows.X, rows.y)
    with model._sharing(rows.bins):
        return model.fit(rows.X, rows.y)


def _answer(found: Any) -> np.ndarray:
    return np.asarray(to_numpy(found) if is_array(found) else found)


def _of_members(model: Any, points: Any) -> np.ndarray:
    """What the members of an ensemble answer [members, points]: an average of them is its own."""
    forest: Any = getattr(model, "model_", None)
    learners: Any = getattr(model, "estimators_", None) or []
    average = getattr(forest, "average", False)
    if len(forest if average else learners) < 2:
        raise TypeError(
            "members=True needs an ensemble of two learners at least that averages them (a forest, "
            f"bagging); got {type(model).__name__}."
        )
    if average:
        stages = [_answer(F)[:, 0] for F in forest.staged(points)]
        sums = np.array([(t + 1) * stage for t, stage in enumerate(stages)])
        return np.diff(sums, axis=0, prepend=0.0)
    features = getattr(model, "estimators_features_", [None] * len(learners))
    host = np.asarray(to_numpy(points) if is_array(points) else points)
    found = [
        _answer(learner.predict(host if own is None else host[:, np.asarray(own)]))
        for learner, own in zip(learners, features, strict=True)
    ]
    return np.array(found, dtype=np.float64)


def bins_of_all(estimator: Any, X: Any, y: Any) -> SharedBins | None:
    """Bins of all rows, where the estimator has any."""
    if not isinstance(estimator, ArrayEstimator) or not hasattr(estimator, "max_bins"):
        return None
    return shared_bins(clone(estimator), X, y, None)


def taken(array: Any, at: np.ndarray) -> Any:
    """Rows at host positions, of an array or a frame."""
    if is_array(array):
        where = locate(array)
        return where.xp.take(array, where.xp.asarray(at, device=where.device), axis=0)
    return array.iloc[at] if hasattr(array, "iloc") else np.asarray(array)[at]


def samples(method: str, n: int, share: float, seeds: Sequence[int]) -> list[np.ndarray]:
    """Positions of the rows of each replicate: n drawn with replacement, or a share without."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng(int(seed))
        if method == "bootstrap":
            found.append(np.sort(rng.integers(n, size=n)))
        else:
            found.append(np.sort(rng.permutation(n)[: max(1, round((1.0 - share) * n))]))
    return found
