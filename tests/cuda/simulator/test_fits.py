"""Whole fits on the CUDA engine give the model of the CPU engine, fingerprint for fingerprint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, use_engine
from ensemble_gpu.boosting import rescale

ROUNDS = 3


def data(n_classes: int, missing: float, n: int = 36) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_classes)
    y = np.arange(n) % n_classes
    X = (y[:, None] * [0.7, -0.4, 0.1] + rng.normal(size=(n, 3))).astype(np.float32)
    hole = rng.random(X.shape) < missing
    X[hole] = np.nan
    return X, y, rng.gamma(1.0, size=n) * (rng.random(n) > 0.1)


def fitted(engine: str, X: np.ndarray, y: np.ndarray, weights: Any, **parameters: Any) -> Any:
    parameters = {
        "n_estimators": ROUNDS, "max_bins": 7, "n_jobs": 1, "calibrate": False, **parameters
    }  # fmt: skip
    with use_engine(engine):
        model = AdaBoostClassifier(**parameters).fit(X, y, sample_weight=weights)
    assert model.engine_ == engine
    return model


# Every variant with two classes and more, with missing values of either handling, and weights.
@pytest.mark.parametrize(
    ("variant", "n_classes", "missing", "handling", "weighted"),
    [
        ("real", 2, 0.0, "abstain", False),
        ("real", 2, 0.2, "abstain", True),
        ("real", 5, 0.2, "learn", True),
        ("real", 7, 0.9, "abstain", False),
        ("gentle", 2, 0.2, "learn", False),
        ("gentle", 5, 0.0, "abstain", True),
        pytest.param("gentle", 7, 0.9, "abstain", False, marks=pytest.mark.long),
        ("discrete", 2, 0.2, "abstain", True),
        ("discrete", 2, 0.2, "learn", False),
        ("discrete", 5, 0.2, "learn", True),
        ("discrete", 5, 0.0, "abstain", True),
    ],
)
def test_fit_equals_the_cpu_fit(
    variant: str, n_classes: int, missing: float, handling: str, weighted: bool
) -> None:
    X, y, weights = data(n_classes, missing)
    given = weights if weighted else None
    models = [
        fitted(engine, X, y, given, variant=variant, missing=handling) for engine in ("cuda", "cpu")
    ]
    assert models[0].n_estimators_ > 0
    assert models[0].model_.fingerprint() == models[1].model_.fingerprint()
    assert models[0].stop_reason_ == models[1].stop_reason_


@pytest.mark.parametrize("variant", ["real", "discrete"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_of_categories_equal_those_of_the_cpu_fit(variant: str, n_classes: int) -> None:
    X, y, weights = data(n_classes, 0.0)
    X[:, 1] = np.digitize(X[:, 1], [-1.0, -0.3, 0.2, 0.8])
    X[::7, 1] = np.nan
    models = [
        fitted(engine, X, y, weights, variant=variant, categorical_features=[1])
        for engine in ("cuda", "cpu")
    ]
    assert models[0].n_estimators_ > 0
    assert models[0].model_.fingerprint() == models[1].model_.fingerprint()
    assert models[0].scale_ == models[1].scale_


def test_fit_equals_the_cpu_fit_where_rows_are_requantised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rescale, "REQUANTISE_EVERY", 2)
    X, y, weights = data(2, 0.1)
    models = [fitted(engine, X, y, weights, n_estimators=8) for engine in ("cuda", "cpu")]
    assert models[0].n_estimators_ == 8
    assert models[0].model_.fingerprint() == models[1].model_.fingerprint()


def test_the_scale_of_probabilities_is_that_of_the_cpu_fit() -> None:
    X, y, _ = data(2, 0.1)
    models = [
        fitted(engine, X, y, None, calibrate=True, n_estimators=2) for engine in ("cuda", "cpu")
    ]
    assert models[0].scale_ == models[1].scale_ != 1.0


def test_fit_on_two_rows() -> None:
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    models = [fitted(engine, X, y, None) for engine in ("cuda", "cpu")]
    assert models[0].model_.fingerprint() == models[1].model_.fingerprint()


def test_fit_with_sixteen_bit_codes() -> None:
    X, y, _ = data(2, 0.05, n=280)
    models = [
        fitted(engine, X[:, :1], y, None, max_bins=None, n_estimators=2)
        for engine in ("cuda", "cpu")
    ]
    assert models[0].model_.fingerprint() == models[1].model_.fingerprint()


def test_predictions_equal_those_of_the_cpu() -> None:
    X, y, _ = data(5, 0.2)
    model = fitted("cpu", X, y, None, missing="learn")
    with use_engine("cuda"):
        ours = model.predict_proba(X)
    np.testing.assert_array_equal(ours, model.predict_proba(X))
