"""The tables of an additive model, as engines evaluate them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class PackedTables:
    """An additive model's tables, one after the other, ready for evaluation.

    Used feature u has the column `features[u]`; its thresholds lie at `first[u]` and are padded
    with inf to 2^steps[u] - 1, so that a search takes steps[u] halvings without a branch.
    `values[first[u] + number of thresholds < x]` is added, `missing[u]` where x is NaN; the
    intercept last, because leaf values of gradient models sum exactly and it may not. `layouts` is
    for the engine: what it has made of them.
    """

    features: np.ndarray
    first: np.ndarray
    steps: np.ndarray
    thresholds: np.ndarray
    values: np.ndarray
    missing: np.ndarray
    intercept: np.ndarray
    layouts: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
