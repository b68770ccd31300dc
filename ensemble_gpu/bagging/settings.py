"""The parameters of bagging: what they may be."""

from __future__ import annotations

from typing import Any

from ensemble_gpu.arrays.devices import DEVICES, check_device
from ensemble_gpu.data.parameters import (
    check_amount,
    check_choice,
    check_flag,
    check_flag_or_metric,
    check_integer,
    check_jobs,
)
from ensemble_gpu.data.sampling import check_seed
from ensemble_gpu.learners.foreign import check_learner


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
    check_jobs(bagging.n_jobs, "one learner at a time, or as joblib's context says")
    check_seed(bagging.random_state)
    if bagging.estimator is not None:
        check_learner(bagging.estimator, (bagging._kind, None), "a decision tree")
