"""Rounds are replayed on the CUDA engine: the state that the run had, bit for bit."""

from __future__ import annotations

import pytest

from ensemble_gpu import use_engine
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
