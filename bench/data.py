"""Sets to train on: generated ones with skew, noise and interactions, and scikit-learn's own.

The generated columns cycle through five kinds: normal, log-normal (skewed), uniform, counts (few
distinct values) and a normal rounded to two decimals (ties). A dozen columns carry a signal through
smooth, stepped and periodic functions, three pairs interact, the rest is noise; labels are drawn
from the resulting probabilities, so that no model is perfect. Targets of regression are the same
signal with noise whose spread grows with one column and that has a long upper tail, or counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

N_INFORMATIVE = 12
TEST_CELLS = 2_000_000
# On 5,000 rows the AUCs of two wide models differ by 0.0008 by chance (one standard deviation).
FEWEST_TEST_ROWS = 20_000


@dataclass(frozen=True)
class Shape:
    """Rows to train on, features and classes of a generated set."""

    rows: int
    features: int
    classes: int = 2

    def __str__(self) -> str:
        classes = "" if self.classes == 2 else f", {self.classes} classes"
        return f"{self.rows:,} x {self.features:,}{classes}"


@dataclass(frozen=True)
class Split:
    """Training and held-out rows, float32 in C order; integer labels or float32 targets."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def _columns(rng: np.random.Generator, rows: int, features: int) -> np.ndarray:
    X = rng.standard_normal((rows, features), dtype=np.float32)
    np.exp(X[:, 1::5], out=X[:, 1::5])
    X[:, 2::5] = rng.random(X[:, 2::5].shape, dtype=np.float32)
    X[:, 3::5] = rng.poisson(4.0, X[:, 3::5].shape)
    X[:, 4::5] = np.round(X[:, 4::5], 2)
    return X


def _signal(rng: np.random.Generator, X: np.ndarray, informative: np.ndarray) -> np.ndarray:
    """One score a row: a function of each informative column and three products of pairs."""
    score = np.zeros(len(X), dtype=np.float32)
    standard = {}
    for i, f in enumerate(informative):
        x = X[:, f]
        z = standard[i] = (x - x.mean()) / x.std()
        weight, bend = rng.uniform(0.3, 1.0), rng.uniform(1.0, 3.0)
        score += weight * (
            np.tanh(bend * z),
            np.sin(bend * z),
            (z > rng.uniform(-1.0, 1.0)).astype(np.float32),
            np.abs(z),
        )[i % 4].astype(np.float32)
    for a, b in ((0, 1), (2, 3), (4, 5)):
        score += 0.4 * np.clip(standard[a] * standard[b], -3.0, 3.0)
    return score


@lru_cache(maxsize=2)
def generated(shape: Shape, seed: int = 0) -> Split:
    """The set of this shape; held out: as many rows again as TEST_CELLS has room for."""
    rng = np.random.default_rng([seed, shape.features, shape.classes])
    held_out = max(FEWEST_TEST_ROWS, min(100_000, TEST_CELLS // shape.features))
    X = _columns(rng, shape.rows + held_out, shape.features)
    n_scores = 1 if shape.classes == 2 else shape.classes
    informative = min(N_INFORMATIVE, shape.features)
    scores = np.stack(
        [
            _signal(rng, X, rng.choice(shape.features, informative, replace=False))
            for _ in range(n_scores)
        ],
        axis=1,
    )
    scores -= scores.mean(axis=0)
    if shape.classes == 2:
        y = (rng.logistic(size=len(X)) < scores[:, 0] - 0.7).astype(np.int64)
    else:
        y = np.argmax(1.5 * scores + rng.gumbel(size=scores.shape), axis=1)
    n = shape.rows
    return Split(X[:n], y[:n], X[n:], y[n:])


@lru_cache(maxsize=2)
def regression(shape: Shape, seed: int = 0, *, counts: bool = False) -> Split:
    """A real target, or counts with a mean of about 2; `shape.classes` has no meaning."""
    rng = np.random.default_rng([seed, shape.features, 1])
    held_out = max(FEWEST_TEST_ROWS, min(100_000, TEST_CELLS // shape.features))
    X = _columns(rng, shape.rows + held_out, shape.features)
    informative = rng.choice(shape.features, min(N_INFORMATIVE, shape.features), replace=False)
    score = _signal(rng, X, informative)
    score -= score.mean()
    if counts:
        y = rng.poisson(np.exp(np.minimum(0.4 * score + 0.5, 3.0)))
    else:
        spread = 0.5 + 0.5 * np.abs(np.tanh(X[:, informative[0]]))
        tail = np.exp(rng.standard_normal(len(X))) - np.exp(0.5)
        y = score + spread * (rng.standard_normal(len(X)) + 0.5 * tail)
    y, n = y.astype(np.float32), shape.rows
    return Split(X[:n], y[:n], X[n:], y[n:])


SHIPPED = {
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
    "iris": datasets.load_iris,
}


def shipped(name: str) -> Split:
    """A set that comes with scikit-learn, half of it held out."""
    X, y = SHIPPED[name](return_X_y=True)
    parts = train_test_split(X.astype(np.float32), y, test_size=0.5, random_state=0, stratify=y)
    X_train, X_test, y_train, y_test = parts
    return Split(np.ascontiguousarray(X_train), y_train, np.ascontiguousarray(X_test), y_test)
