"""Data for trees and forests: bundled, and generated as Breiman (1996) defines them."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)

BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
    "diabetes": load_diabetes,
}


def twonorm(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two unit normals in 20 dimensions, centred at (a, ..., a) and -(a, ..., a), a = 2 / 20^.5."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 20)) + (2.0 / np.sqrt(20.0)) * (2 * y - 1)[:, None], y


def ringnorm(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A normal of variance 4 at zero, and a unit normal at (a, ..., a), a = 2 / 20^.5."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    x = rng.normal(size=(n, 20))
    return np.where(y[:, None] == 0, 2.0 * x, x + 2.0 / np.sqrt(20.0)), y


def waveform(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes: mixtures of two of three triangular waves, with noise, at 21 places."""
    rng = np.random.default_rng(seed)
    place = np.arange(1, 22)
    waves = np.array([np.maximum(6 - np.abs(place - centre), 0) for centre in (11, 15, 7)])
    y = rng.integers(3, size=n)
    u = rng.random((n, 1))
    X = u * waves[y] + (1 - u) * waves[(y + 1) % 3] + rng.normal(size=(n, 21))
    return X, y


GENERATED = {"twonorm": twonorm, "ringnorm": ringnorm, "waveform": waveform}


@cache
def without_ties(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A data set whose columns have distinct values, so that few cuts are equal.

    They are float32, which scikit-learn works with; it does not cut between values closer than
    1e-7, so the noise is not too small.
    """
    if name in GENERATED:
        X, y = GENERATED[name](400, 0)
        return X.astype(np.float32).astype(np.float64), y
    X, y = BUNDLED[name](return_X_y=True)
    X, y = X[:600], y[:600]
    rng = np.random.default_rng(0)
    noise = rng.normal(size=X.shape) * 1e-2 * (X.std(axis=0) + 0.1)
    return (X + noise).astype(np.float32).astype(np.float64), y


def overlapping(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The same with a few labels changed: no two features part the classes equally well."""
    X, y = without_ties(name)
    if name == "diabetes":
        return X, y
    rng = np.random.default_rng(2)
    return X, np.where(rng.random(len(y)) < 0.2, rng.permutation(y), y)


def integer_weights(n: int, seed: int = 3) -> np.ndarray:
    """Whole weights, so different that cuts of different rows never score the same."""
    return np.random.default_rng(seed).integers(1, 1000, size=n).astype(np.float64)
