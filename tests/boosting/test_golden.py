"""Models that were recorded once: whatever is rebuilt inside, the same data gives the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, use_engine

# Fingerprints of AdaBoost before it shared its loop with other losses.
RECORDED = {
    ("real", 2, "abstain"): "117ecd340584ff22",
    ("real", 4, "learn"): "61189194ce12a4ae",
    ("discrete", 2, "learn"): "f0766404d47dff50",
    ("discrete", 4, "abstain"): "3d99f215c936fe80",
    ("gentle", 2, "abstain"): "3ecaa3514cc2314d",
    ("gentle", 4, "learn"): "89043c1eb624a064",
}


def data(n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows made of integers, the same on every platform: X with NaN, labels, weights."""
    n, p = 900, 5
    cells = np.arange(n * p, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    X = ((cells >> np.uint64(40)) % np.uint64(4001)).astype(np.float64).reshape(n, p)
    noise = (cells[:n] >> np.uint64(33)) % np.uint64(10)
    y = (X[:, 0] // 500 + X[:, 1] // 900 + (noise < 2)).astype(np.int64) % n_classes
    X[noise == 3, 2] = np.nan
    X[noise == 5, 0] = np.nan
    return X, y, 1.0 + (noise % np.uint64(3)).astype(np.float64)


@pytest.mark.parametrize(("variant", "n_classes", "missing"), RECORDED)
def test_the_model_is_the_recorded_one(variant, n_classes, missing):
    X, y, weights = data(n_classes)
    clf = AdaBoostClassifier(variant=variant, missing=missing, n_estimators=60)
    fingerprint = clf.fit(X, y, weights).model_.fingerprint()
    assert fingerprint[:16] == RECORDED[variant, n_classes, missing]


def test_a_feature_that_spans_all_of_float64_gives_the_reference_model():
    X, y, _ = data(2)
    X[:, 1] = (X[:, 1] / 2000.0 - 1.0) * 1.79e308
    model = AdaBoostClassifier(n_estimators=20).fit(X, y).model_
    with use_engine("reference"):
        assert AdaBoostClassifier(n_estimators=20).fit(X, y).model_ == model
