"""The data of the demo: two sets that ship with scikit-learn and a generated one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split


@dataclass(frozen=True)
class Data:
    """Rows to train on and rows to test on; the truth's own scores where it is known."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    feature_names: Sequence[str]
    truth: np.ndarray | None = None
    class_names: Sequence[str] = ()

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y))

    def __str__(self) -> str:
        n, p = self.X.shape
        return (
            f"{self.name}: {n:,} rows to train on, {len(self.y_test):,} to test on, "
            f"{p} features, {self.n_classes} classes"
        )


def shipped() -> list[Data]:
    """Breast cancer (two classes) and handwritten digits (ten), a quarter held out."""
    out = []
    for name, load in (("Breast cancer", load_breast_cancer), ("Handwritten digits", load_digits)):
        bunch = load()
        X, X_test, y, y_test = train_test_split(
            bunch.data, bunch.target, test_size=0.25, stratify=bunch.target, random_state=0
        )
        names = [str(f) for f in bunch.feature_names]
        classes = [str(c) for c in bunch.target_names]
        out.append(Data(name, X, y, X_test, y_test, names, class_names=classes))
    return out


def generated(n_train: int, n_test: int, seed: int = 0) -> Data:
    """Skewed features, pairs that interact, ten columns of noise, and labels drawn at random.

        P(y = 1 | x) = 1 / (1 + exp(-g(x))),  g = curves of ten columns + two interactions - 1.1

    About a third of the rows are positive. No model can beat the ranking by g itself, which is
    kept as `truth`.
    """
    rng = np.random.default_rng(seed)
    n = n_train + n_test
    normal = rng.normal(size=(n, 8))
    income = rng.lognormal(sigma=0.9, size=(n, 4))
    share = rng.beta(0.6, 1.8, size=(n, 3))
    count = rng.poisson(2.0, size=(n, 3)).astype(np.float64)
    noise = rng.standard_t(3, size=(n, 10))
    g = (
        1.1 * np.sin(2.0 * normal[:, 0])
        + 0.9 * np.tanh(2.0 * normal[:, 1])
        - 0.5 * normal[:, 2] ** 2
        + 0.6 * normal[:, 3]
        + 0.9 * np.log(income[:, 0])
        + 1.2 * (income[:, 1] > 1.5)
        - 0.5 * np.minimum(income[:, 2], 4.0)
        + 2.2 * share[:, 0]
        + 1.5 * np.abs(share[:, 1] - 0.4)
        + 0.35 * np.minimum(count[:, 0], 4.0)
        + 0.7 * normal[:, 4] * normal[:, 5]
        + 0.8 * (count[:, 1] > 2.0) * np.sign(normal[:, 6])
        - 1.1
    )
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-g))).astype(np.int64)
    names = [
        f"{kind} {j}"
        for kind, k in (("normal", 8), ("income", 4), ("share", 3), ("count", 3), ("noise", 10))
        for j in range(k)
    ]
    X = np.concatenate([normal, income, share, count, noise], axis=1)
    return Data("Generated", X[:n_train], y[:n_train], X[n_train:], y[n_train:], names, g[n_train:])
