"""Models whose sums depend on every rounding, some thresholds at the ends of the floats."""

from __future__ import annotations

from functools import cache

import numpy as np

from ensemble_gpu import AdditiveModel, Forest
from ensemble_gpu.model.additive import Rounds
from ensemble_gpu.model.nodes import Nodes

N_FEATURES, N_OUTPUTS, N_STUMPS = 40, 1, 120  # runtimes add up one output in several parts
ENDS = [0.0, 5e-324, -5e-324, 1.5e-45, np.finfo(float).max, -np.finfo(float).max, np.inf, 1 / 3]


def _numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Of all sizes: sums of them in two orders differ on most rows."""
    return rng.normal(size=shape) * 10.0 ** rng.uniform(-9, 9, size=shape)


@cache
def stumps() -> dict[str, AdditiveModel | Forest]:
    """Stumps as tables, and as trees that are added and averaged."""
    rng = np.random.default_rng(5)
    feature = rng.integers(0, N_FEATURES, N_STUMPS)
    threshold = np.concatenate([ENDS, rng.normal(size=N_STUMPS - len(ENDS))])
    values = np.zeros((N_STUMPS, N_OUTPUTS, 3))
    values[:, :, :2] = _numbers(rng, (N_STUMPS, N_OUTPUTS, 2))
    missing, one = rng.integers(0, 3, N_STUMPS), np.ones(N_STUMPS)
    intercept = _numbers(rng, (N_OUTPUTS,))
    rounds = Rounds(feature, threshold, missing, values, one, one)

    root = 3 * np.arange(N_STUMPS)
    column = {name: np.full(3 * N_STUMPS, -1.0) for name in ("feature", "left", "right", "subset")}
    column["feature"][root], column["left"][root] = feature, root + 1
    column["right"][root] = root + 2
    limit, value = np.full(3 * N_STUMPS, np.nan), np.zeros((3 * N_STUMPS, N_OUTPUTS))
    limit[root] = threshold
    value[root + 1], value[root + 2] = values[:, :, 0], values[:, :, 1]
    missing_left = np.zeros(3 * N_STUMPS)
    missing_left[root] = missing == 0
    whole = np.ones(3 * N_STUMPS)
    nodes = Nodes(
        column["feature"], limit, missing_left, column["left"], column["right"], column["subset"],
        value, whole, whole, whole,
    )  # fmt: skip
    return {
        "tables": AdditiveModel(rounds, N_FEATURES, intercept),
        "sum": Forest(nodes, root, N_FEATURES, intercept=intercept, average=False),
        "mean": Forest(nodes, root, N_FEATURES, intercept=intercept),
    }


@cache
def many_rows() -> np.ndarray:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, N_FEATURES))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.02] = 0.0
    return X
