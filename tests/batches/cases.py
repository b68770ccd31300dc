"""Rows for fits on batches, and the ways to cut them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from ensemble_gpu import Batches
from tests.datasets import fitted_state

N, P = 900, 10
# Uneven, of one row, empty, and the rest.
CUTS = (0, 1, 300, 300, 700, N)

_RNG = np.random.default_rng(7)
X = _RNG.normal(size=(N, P)).astype(np.float32)
X[:, 3] = np.round(X[:, 3])  # ties
X[:, 4] = 2.5  # constant
X[:, 5] = np.round(_RNG.exponential(size=N), 3)
Y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * _RNG.normal(size=N) > 0).astype(np.int64)
K = np.digitize(X[:, 0] - X[:, 3] + 0.5 * _RNG.normal(size=N), [-1.0, 0.5])
T = X[:, 0] + np.abs(X[:, 1]) + 0.1 * _RNG.normal(size=N)
WHOLE = _RNG.integers(0, 4, size=N).astype(np.float64)
FRACTIONS = np.where(_RNG.random(N) < 0.1, 0.0, _RNG.random(N) + 0.1)
MISSING = np.where(_RNG.random((N, P)) < 0.1, np.nan, X).astype(np.float32)


def cut(*arrays: Any, cuts: tuple[int, ...] = CUTS) -> list[tuple[Any, ...]]:
    """Batches of the rows between the cuts; arrays that are None are left out."""
    there = [array for array in arrays if array is not None]
    return [tuple(a[i:j] for a in there) for i, j in pairwise(cuts)]


def check_same(estimator: Any, data: Any, X: Any, y: Any, w: Any = None, **given: Any) -> Any:
    """The fit on batches leaves what the fit on arrays leaves."""
    of_arrays = clone(estimator).fit(X, y, w, **given)
    of_batches = clone(estimator).fit(data, **given)
    states = [fitted_state(one) for one in (of_batches, of_arrays)]
    for state, one in zip(states, (of_batches, of_arrays), strict=True):
        for name in ("feature_names_in_", "classes_"):  # objects, perhaps
            state[name] = np.asarray(getattr(one, name, ())).tolist()
    assert states[0] == states[1]
    assert of_batches.model_.fingerprint() == of_arrays.model_.fingerprint()
    return of_batches


def check_cut(estimator: Any, X: Any, y: Any, w: Any = None, **given: Any) -> Any:
    """The same of the usual batches."""
    return check_same(estimator, Batches(cut(X, y, w)), X, y, w, **given)
