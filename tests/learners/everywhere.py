"""One model on every engine and device, for any number of threads and any order of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ensemble_gpu import use_engine
from tests.places import DEVICE


def the_same_everywhere(boosted: Callable[..., Any], X: np.ndarray, y: np.ndarray) -> Any:
    """The model of `boosted(...)`, an estimator with these parameters, wherever it is fitted."""
    model = boosted().fit(X, y).model_
    assert boosted(n_jobs=1).fit(X, y).model_ == model
    with use_engine("reference"):
        assert boosted().fit(X, y).model_ == model
    there = DEVICE.put(X)
    other = boosted().fit(there, DEVICE.put(y))
    assert other.model_ == model
    DEVICE.check(other.decision_function(there), "float64")
    np.testing.assert_array_equal(DEVICE.host(model(there)), model(X))
    order = np.random.default_rng(1).permutation(len(y))
    assert boosted().fit(X[order], y[order]).model_ == model
    return model
