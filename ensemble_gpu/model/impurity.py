"""Impurities of a node from the shares p_k of the classes in it.

    gini 1 - sum p_k^2      entropy -sum p_k log2 p_k      error 1 - max p_k

Each is 0 for a single class and largest for equal shares; for two classes, p the share of one:
2 p (1 - p), -p log2 p - (1 - p) log2 (1 - p), and min(p, 1 - p).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ensemble_gpu.kernels.host.criteria import times_log


def gini(p: np.ndarray) -> np.ndarray:
    return 1.0 - (p * p).sum(axis=-1)


def entropy(p: np.ndarray) -> np.ndarray:
    return -times_log(p).sum(axis=-1) / math.log(2.0)


def error(p: np.ndarray) -> np.ndarray:
    return 1.0 - p.max(axis=-1)


IMPURITIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gini": gini, "entropy": entropy, "log_loss": entropy, "error": error,
}  # fmt: skip


def impurity(p: Any, criterion: str = "gini") -> Any:
    """The impurity of shares of classes, as the trees of this package have it.

    Parameters
    ----------
    p : array [..., K], shares >= 0 that add up to 1
    criterion : {"gini", "entropy", "log_loss", "error"}

    Returns
    -------
    ndarray [...], or a float for a single node
    """
    if criterion not in IMPURITIES:
        raise ValueError(
            f"criterion must be one of {', '.join(map(repr, IMPURITIES))}; got {criterion!r}."
        )
    p = np.asarray(p, dtype=np.float64)
    if p.ndim == 0 or not p.shape[-1] or not (p >= 0.0).all():
        raise ValueError("p must hold shares >= 0, a last axis of one a class.")
    if not np.allclose(p.sum(axis=-1), 1.0, rtol=0.0, atol=1e-9):
        raise ValueError("p must add up to 1 along its last axis.")
    found = IMPURITIES[criterion](p)
    return float(found) if found.ndim == 0 else found
