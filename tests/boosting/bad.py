"""Bad fits: what is wrong with one, and what the message must say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.places import STRICT


def changed(array: np.ndarray, value: float) -> np.ndarray:
    array = np.array(array, dtype=np.float64)
    array.flat[3] = value
    return array


def on(device: int, array: Any) -> Any:
    return STRICT[device].put(array)


@dataclass(frozen=True)
class Bad:
    """Arguments of one bad fit; the message must contain every text of `says`."""

    says: tuple[str, ...]
    X: Any = None
    y: Any = None
    weights: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    error: type[Exception] = ValueError

    def fit(self, estimator: Any, X: np.ndarray, y: np.ndarray) -> None:
        """With the bad arguments; X and y are the good ones for the rest."""
        X_, y_ = X if self.X is None else self.X, y if self.y is None else self.y
        estimator.set_params(**self.params).fit(X_, y_, self.weights, **self.more)
