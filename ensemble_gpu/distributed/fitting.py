"""A fit to rows that several workers have: the entry for every launcher of workers."""

from __future__ import annotations

import secrets
from itertools import pairwise
from typing import Any

from ensemble_gpu.arrays.streamed import RowSource
from ensemble_gpu.bagging.forest import ForestEstimator
from ensemble_gpu.boosting.adaboost import AdaBoostClassifier
from ensemble_gpu.boosting.estimators import BoostingClassifier, BoostingRegressor
from ensemble_gpu.estimators.checkpoint import checkpoints_of
from ensemble_gpu.kernels.team import Journal, Reduce, Team, joined

BOOSTED = (AdaBoostClassifier, BoostingClassifier, BoostingRegressor)


def check_shareable(estimator: Any) -> None:
    """Raise where an estimator, or one of its parameters, is not for rows of several workers."""
    name = type(estimator).__name__
    if not isinstance(estimator, (*BOOSTED, ForestEstimator)):
        raise TypeError(
            "estimator must be AdaBoostClassifier, BoostingClassifier, BoostingRegressor, "
            f"RandomForestClassifier or RandomForestRegressor; got {name}."
        )
    refused = {
        "estimator": (None, "stumps and trees can be added up over workers"),
        "warm_start": (False, "a fit of several workers keeps no rounds for later ones"),
        "oob_score": (False, "no worker has the features of all rows"),
        "capacity": (None, "no worker has the features of all rows"),
    }
    for parameter, (allowed, reason) in refused.items():
        given = getattr(estimator, parameter, allowed)
        if given is not None if allowed is None else bool(given):
            raise ValueError(
                f"{parameter} must be {allowed!r} where several workers have the rows ({reason}); "
                f"got {given!r}."
            )
    if checkpoints_of(estimator.callbacks):
        raise ValueError(
            "callbacks must not hold a Checkpoint where several workers have the rows: a fit that "
            "loses a worker goes on by itself. Save the model when it is there."
        )


def fit(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    reduce: Reduce,
    numbers: list[int] | None = None,
    sizes: list[int] | None = None,
    journal: Journal | None = None,
    **more: Any,
) -> Any:
    """Fit an estimator to the rows of several workers, each of which calls this with its own.

    All end with the same model: that of one fit to all rows, bit for bit, in the order of ranks.

    Parameters
    ----------
    estimator : AdaBoostClassifier, BoostingClassifier, BoostingRegressor, RandomForestClassifier or
        RandomForestRegressor, with the same parameters for every worker
    X, y, sample_weight : the worker's own rows, one at least that has weight
    reduce : Reduce
        How workers meet: `ThreadReduce`, `SocketReduce`, `MPIReduce`, or anything with its methods.
        Where a fit ends with an error, its method `leave`, if it has one, tells the others (with
        MPI they would wait: let the program call Abort)
    numbers, sizes : lists of int
        Where a worker has several parts of all rows, in order, their numbers among the parts of all
        workers, and how many rows each has; None: its rows are the part of its rank
    journal : Journal
        Takes the rounds, or trees, as they are found, and has those of a fit that was broken off
    **more : what `estimator.fit` takes besides; validation rows are those of the first worker, and
        another one gives any rows of the same kind

    Returns
    -------
    estimator, fitted
    """
    check_shareable(estimator)
    if isinstance(X, RowSource):
        raise TypeError(
            f"X of a fit of several workers must be an array or a frame; got {type(X).__name__}, "
            "which is read by one worker."
        )
    if more.get("resume") is not None:
        raise ValueError(
            f"resume must be None in a fit of several workers; got {more['resume']!r}."
        )
    _check_parts(numbers, sizes, X.shape[0] if hasattr(X, "shape") else len(X))
    team = Team(reduce, numbers, sizes, journal)
    given = estimator.random_state
    try:
        if given is None:
            estimator.random_state = team.from_first(lambda: secrets.randbits(31))
        with joined(team):
            return estimator.fit(X, y, sample_weight, **more)
    except BaseException:
        getattr(reduce, "leave", lambda: None)()  # so that nobody waits for this worker
        raise
    finally:
        estimator.random_state = given


def _check_parts(numbers: list[int] | None, sizes: list[int] | None, n_rows: int) -> None:
    """Numbers and sizes of a worker's parts belong together."""
    if numbers is None and sizes is None:
        return
    if numbers is None or sizes is None or len(numbers) != len(sizes):
        raise ValueError(
            f"numbers and sizes must be lists of the same length, or None both; got {numbers!r} "
            f"and {sizes!r}."
        )
    if any(a >= b for a, b in pairwise(numbers)) or sum(sizes) != n_rows:
        raise ValueError(
            f"numbers must ascend and sizes add up to the {n_rows} rows of X; got {numbers!r} and "
            f"{sizes!r}."
        )
