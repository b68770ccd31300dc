"""Rows at which an export may go wrong: every threshold, and the floats next to it."""

from __future__ import annotations

import numpy as np

from ensemble_gpu import AdditiveModel
from ensemble_gpu.kernels.tree_protocol import LEAF

UNSEEN = [-1.0, 3.0, 99.0, 1e9, np.inf]


def thresholds(model) -> dict[int, np.ndarray]:
    """Every number that a feature is compared with."""
    if isinstance(model, AdditiveModel):
        return {f: table.thresholds for f, table in model.tables.items()}
    nodes = model.nodes
    found = {}
    for f in range(model.n_features):
        own = (nodes.feature == f) & (nodes.feature != LEAF) & (nodes.subset < 0)
        found[f] = np.unique(nodes.threshold[own])
    return found | dict(model.categories)


def edge_rows(model, X: np.ndarray, dtype=np.float64) -> np.ndarray:
    """Rows of X, one of whose cells is a threshold, an ulp of it away, missing or unknown."""
    rows = [X[:64].astype(dtype)]
    rng = np.random.default_rng(0)
    for f, numbers in thresholds(model).items():
        near = numbers.astype(dtype)
        down, up = (np.nextafter(near, dtype(side)) for side in (-np.inf, np.inf))
        extremes = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, *UNSEEN], dtype=dtype)
        cells = np.concatenate([near, down, up, extremes])
        part = X[rng.integers(0, len(X), len(cells))].astype(dtype)
        part[:, f] = cells
        rows.append(part)
    return np.concatenate([*rows, np.full((1, X.shape[1]), np.nan, dtype)])
