"""Rounds are replayed on the CUDA engine: the state that the run had, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, Checkpoint, use_engine
from tests.boosting.replaying import FITS, plans, problem, whole_and_resumed

NAMES = ["real", "SAMME", "gram, features drawn", "newton, rows and features drawn", "trees",
         "a stump a class", "a tree a class"]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_replayed_rounds_leave_the_state_that_the_run_had(name: str) -> None:
    estimator, n_classes = FITS[name]
    estimator = type(estimator)(**estimator.get_params(deep=False)).set_params(max_bins=6)
    data = problem(n_classes, n=24)
    with use_engine("cuda"):
        make = plans(estimator, *data)
        whole, resumed = whole_and_resumed(make, 4)
    assert resumed[1].fingerprint() == whole[1].fingerprint()


@pytest.mark.long
@pytest.mark.parametrize(
    "estimator",
    [
        AdaBoostClassifier(calibrate=False, max_bins=7),
        BoostingClassifier(max_depth=2, max_bins=7, learning_rate=0.3, min_samples_leaf=1),
    ],
    ids=["rescale", "trees"],
)
def test_a_checkpoint_of_the_cpu_is_resumed(estimator: Any, tmp_path: Path) -> None:
    """The data are known again by their codes, however they lie in memory."""
    X, y = problem(2, 24)
    path = tmp_path / "run.safetensors"
    with use_engine("cpu"):
        clone(estimator).set_params(n_estimators=2, callbacks=[Checkpoint(path)]).fit(X, y)
        whole = clone(estimator).set_params(n_estimators=3).fit(X, y)
    with use_engine("cuda"):
        resumed = clone(estimator).set_params(n_estimators=3).fit(X, y, resume=path)
    assert resumed.engine_ == "cuda"
    assert resumed.model_.fingerprint() == whole.model_.fingerprint()
