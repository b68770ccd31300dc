"""Fits of many rows: one compiled pass a round, or array calls, give the same model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import BoostingClassifier, BoostingRegressor
from ensemble_gpu.boosting.integers import FINE_ROWS
from ensemble_gpu.kernels.cpu.engine import CpuEngine

N = FINE_ROWS + 700
STUMP: dict[str, Any] = {"max_depth": 1}
TREE: dict[str, Any] = {"max_depth": 3, "min_samples_leaf": 5}
LEAFY: dict[str, Any] = {"max_depth": None, "max_leaf_nodes": 6}


def rows(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """0 classes: counts."""
    rng = np.random.default_rng(n_classes)
    X = np.round(rng.normal(size=(N, 4)), 2)
    value = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=N)
    X[rng.random(X.shape) < 0.03] = np.nan
    if n_classes == 0:
        return X, rng.poisson(np.exp(0.5 * value)).astype(np.float64)
    return X, np.searchsorted(np.quantile(value, np.arange(1, n_classes) / n_classes), value)


def outputs(model: Any, X: np.ndarray) -> np.ndarray:
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


def fitted(n_classes: int, weights: np.ndarray | None, **settings: Any) -> np.ndarray:
    X, y = rows(n_classes)
    estimator = BoostingClassifier if n_classes else BoostingRegressor
    told = {"subsample": 1.0, "max_features": None, "n_estimators": 4, "random_state": 1}
    model = estimator(**{**told, "early_stopping": False, "n_jobs": 2, **settings})
    return outputs(model.fit(X, y, sample_weight=weights), X)


def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuEngine, "gradient_pass", lambda self, work: None)
    monkeypatch.setattr(CpuEngine, "derivatives", lambda self, loss, y, F: loss.derivatives(y, F))


CASES = [
    (2, {"loss": "logistic", **STUMP}),
    (2, {"loss": "logistic", **TREE}),
    (2, {"loss": "logistic", "step": "line_search", **TREE}),
    (2, {"loss": "exponential", **LEAFY}),
    (3, {"loss": "exponential", **TREE}),
    (2, {"loss": "squared", **TREE}),
    (3, {"loss": "logistic", **STUMP}),
    (3, {"loss": "logistic", **LEAFY}),
    (0, {"loss": "squared", **LEAFY}),
    (0, {"loss": "squared", "subsample": 0.5, **STUMP}),
    (0, {"loss": "poisson", **TREE}),
    (0, {"loss": "huber", "step": "newton", **TREE}),
]


@pytest.mark.parametrize(("n_classes", "settings"), CASES)
def test_a_fit_by_the_pass_is_the_fit_by_array_calls(n_classes, settings, monkeypatch):
    ours = fitted(n_classes, None, **settings)
    without_kernels(monkeypatch)
    np.testing.assert_array_equal(ours, fitted(n_classes, None, **settings))


@pytest.mark.parametrize("shape", [STUMP, TREE], ids=["stump", "tree"])
@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("kind", ["whole", "fractional", "some zero"])
def test_weights_and_draws_are_those_of_array_calls(shape, share, kind, monkeypatch):
    rng = np.random.default_rng(5)
    weights = rng.integers(1, 4, N).astype(np.float64) if kind == "whole" else rng.random(N)
    weights[:500] *= kind != "some zero"
    ours = fitted(2, weights, subsample=share, **shape)
    without_kernels(monkeypatch)
    np.testing.assert_array_equal(ours, fitted(2, weights, subsample=share, **shape))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_look_at_the_training_loss_changes_nothing(n_classes):
    plain = fitted(n_classes, None, **TREE)
    looked = fitted(n_classes, None, callbacks=[lambda info: info.training_loss], **TREE)
    np.testing.assert_array_equal(plain, looked)
