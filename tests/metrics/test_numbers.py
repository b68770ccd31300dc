"""Metrics of numbers are scikit-learn's, on every library."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as peer

from ensemble_gpu import metrics
from tests.metrics.places import WHERE
from tests.metrics.test_ranking import RNG, WEIGHTS, N

Y, FOUND = RNG.gamma(2.0, size=N), RNG.gamma(2.0, size=N)
THEIRS = {
    "mse": peer.mean_squared_error, "rmse": peer.root_mean_squared_error,
    "mae": peer.mean_absolute_error, "r2": peer.r2_score,
    "poisson_deviance": peer.mean_poisson_deviance, "quantile_loss": peer.mean_pinball_loss,
}  # fmt: skip


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("place", WHERE)
def test_metrics_of_numbers_are_those_of_scikit_learn(place, name, weights):
    w = WEIGHTS[weights]
    found = getattr(metrics, name)(place.put(Y), place.put(FOUND), sample_weight=place.put(w))
    assert type(found) is float
    assert found == pytest.approx(THEIRS[name](Y, FOUND, sample_weight=w), rel=1e-12)


def test_the_loss_of_a_quantile_is_that_of_scikit_learn():
    for q in (0.0, 0.1, 0.95):
        expected = peer.mean_pinball_loss(Y, FOUND, alpha=q)
        assert metrics.quantile_loss(Y, FOUND, q) == pytest.approx(expected, rel=1e-12)


BAD = {
    "prediction has 300 rows, y has 2": lambda: metrics.mse([1, 2], FOUND),
    r"prediction must have shape \(n,\)": lambda: metrics.mae(Y, FOUND[:, None]),
    "y contains NaN": lambda: metrics.r2(np.full(N, np.nan), FOUND),
    "quantile must be between 0 and 1": lambda: metrics.quantile_loss(Y, FOUND, 2.0),
    "needs y >= 0 and predictions > 0": lambda: metrics.poisson_deviance(Y, -FOUND),
    "y must hold numbers": lambda: metrics.rmse(["a"] * N, FOUND),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()
