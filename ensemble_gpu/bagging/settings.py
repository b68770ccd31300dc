"""The parameters of bagging: what they may be."""

from __future__ import annotations

import numbers
from typing import Any

from ensemble_gpu.arrays.devices import DEVICES, check_device
from ensemble_gpu.bagging.learners import check_learner
from ensemble_gpu.data.parameters import (
    check_amount,
    check_choice,
    check_flag,
    check_flag_or_metric,
    check_integer,
)


def check_parameters(bagging: Any) -> None:
    """Raise where a parameter is not what it may be."""
    check_integer("n_estimators", bagging.n_estimators, 1)
    for name in ("max_samples", "max_features"):
        check_amount(name, getattr(bagging, name), 1)
    for name in ("bootstrap", "bootstrap_features", "warm_start"):
        check_flag(name, getattr(bagging, name))
    check_choice("device", bagging.device, DEVICES)
    check_device(bagging.device)
    check_flag_or_metric("oob_score", bagging.oob_score)
    if bagging.n_jobs is not None and (
        isinstance(bagging.n_jobs, bool)
        or not isinstance(bagging.n_jobs, numbers.Integral)
        or bagging.n_jobs == 0
    ):
        kind = ValueError if bagging.n_jobs == 0 else TypeError
        raise kind(
            "n_jobs must be None (one learner at a time, or as joblib's context says), an "
            f"integer >= 1, or negative (-1: as many as processors); got {bagging.n_jobs!r}."
        )
    if bagging.estimator is not None:
        check_learner(bagging.estimator, bagging._kind)
