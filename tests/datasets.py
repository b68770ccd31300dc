"""Small data sets, ordinary and adversarial, that several rooms test with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu import AdaBoostClassifier


@dataclass(frozen=True)
class Data:
    """Host arrays; `weights` may be None."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None

    def with_missing(self, share: float = 0.15) -> Data:
        """NaN in about a share of the cells; the first column keeps all its values."""
        X = self.X.copy()
        hole = np.random.default_rng(1).random(X.shape) < share
        hole[:, 0] = False
        X[hole] = np.nan
        return replace(self, X=X)

    def with_weights(self) -> Data:
        weights = np.random.default_rng(2).gamma(1.0, size=len(self.y))
        weights[::17] = 0.0
        return replace(self, weights=weights)


def random_data(n_classes: int = 2, n: int = 250, p: int = 6, seed: int = 0) -> Data:
    """Overlapping classes; float32 values, so that a float32 copy is exact."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    centres = rng.normal(size=(n_classes, p))
    X = (centres[y] + 1.2 * rng.normal(size=(n, p))).astype(np.float32).astype(np.float64)
    X[:, -1] = np.round(X[:, -1])  # ties
    return Data(X, y)


def _duplicates() -> Data:
    data = random_data(n=60)
    rows = np.random.default_rng(3).integers(60, size=300)
    y = data.y[rows]
    y[:40] = 1 - y[:40]  # the same row with both labels
    return Data(data.X[rows], y)


def _constant_columns() -> Data:
    data = random_data()
    data.X[:, [0, 3]] = [1.5, -2.0]
    return data


def _all_missing_column() -> Data:
    data = random_data().with_missing()
    data.X[:, 2] = np.nan
    return data


def _ties() -> Data:
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, size=(240, 5)).astype(np.float64)
    X[:, 4] = X[:, 1]  # two equal features: the first must win
    return Data(X, rng.integers(2, size=240))


def _one_row_leaves() -> Data:
    rng = np.random.default_rng(5)
    X = np.zeros((120, 4))
    for f in range(4):
        X[f, f] = 1.0  # a threshold of feature f cuts off one row
    y = rng.integers(2, size=120)
    y[:4] = [0, 1, 0, 1]
    return Data(X, y)


def _extreme_weights() -> Data:
    data = random_data()
    exponents = np.random.default_rng(6).uniform(-300, 300, size=len(data.y))
    return replace(data, weights=10.0**exponents)


def _tiny_weights() -> Data:
    return replace(random_data(), weights=np.full(250, 5e-324))


def _huge_weights() -> Data:
    return replace(random_data(), weights=np.linspace(1.0, 1.7, 250) * 1e308)


def _one_against_many() -> Data:
    data = random_data()
    return replace(data, y=(np.arange(250) == 17).astype(np.int64))


def _extreme_values() -> Data:
    data = random_data()
    data.X[:, 1] = (data.X[:, 1] * 1e35).astype(np.float32)
    data.X[:, 2] *= np.float32(1e-40)
    data.X[:, 2] = data.X[:, 2].astype(np.float32)
    data.X[:, 3] = np.where(data.X[:, 3] > 0, 0.0, -0.0)
    return data


ADVERSARIAL = {
    "duplicates": _duplicates,
    "constant columns": _constant_columns,
    "an all-missing column": _all_missing_column,
    "ties": _ties,
    "one-row leaves": _one_row_leaves,
    "weights from 1e-300 to 1e300": _extreme_weights,
    "the smallest weights": _tiny_weights,
    "the largest weights": _huge_weights,
    "one row against all others": _one_against_many,
    "extreme values": _extreme_values,
}


def fit(data: Data, **params: Any) -> AdaBoostClassifier:
    params = {"n_estimators": 20, **params}
    return AdaBoostClassifier(**params).fit(data.X, data.y, data.weights)


def fingerprint(data: Data, **params: Any) -> str:
    return fit(data, **params).model_.fingerprint()


def fitted_state(estimator: Any) -> dict[str, Any]:
    """Fitted attributes by name; arrays as bytes, the model as its fingerprint."""
    state = {}
    for name, value in vars(estimator).items():
        if name.endswith("_"):
            array = getattr(value, "tobytes", None)
            state[name] = array() if array else repr(value)
    return state
