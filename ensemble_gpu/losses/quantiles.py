"""The loss of several quantiles at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.losses.base import REGRESSION, Loss
from ensemble_gpu.losses.regression import ONE_QUANTILE, Quantile, check_quantile, either_side


@dataclass(frozen=True)
class Quantiles(Loss):
    """l = sum over k of the quantile loss of F_k at tau_k = quantiles[k], tau_1 < tau_2 < ...

    y and F are [K, rows]; so are the value, a term each, and the subgradient. The link sorts the
    outputs of a row, so that predictions never cross, and that cannot raise the loss: to exchange
    F_1 > F_2 changes it by (tau_1 - tau_2) (F_1 - F_2) < 0, wherever y is (Chernozhukov,
    Fernandez-Val & Galichon 2010).
    """

    quantiles: tuple[float, ...]

    name = "quantile"
    task = REGRESSION
    link_name = "increasing"
    has_hessian = False
    straight = has_leaf_step = True
    kernel = "either side"

    def __post_init__(self) -> None:
        given = list(self.quantiles)
        allowed = f"{ONE_QUANTILE}, or an increasing list of such numbers"
        for tau in given:
            check_quantile(tau, given, allowed)
        if not given or any(a >= b for a, b in pairwise(given)):
            raise ValueError(f"{allowed}; got {given!r}.")

    @property
    def n_outputs(self) -> int:
        return len(self.quantiles)

    def output(self, k: int) -> Quantile:
        return Quantile(self.quantiles[k], exp=self.exp)

    def _levels(self, F: Any) -> Any:
        """tau for every output; of one output F may be [rows]."""
        levels = locate(F).put(np.array(self.quantiles))
        levels = locate(F).xp.astype(levels, F.dtype)
        return levels[:, None] if F.ndim == 2 else levels[0]

    def value(self, y: Any, F: Any) -> Any:
        r, tau = y - F, self._levels(F)
        return locate(F).xp.maximum(tau * r, (tau - 1.0) * r)

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        tau = self._levels(F)
        return either_side(y, F, -tau, 1.0 - tau), locate(F).xp.ones_like(F)

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """All of them, for y [rows]."""
        each = [self.output(k).best_constant(y, weights) for k in range(self.n_outputs)]
        return np.concatenate(each)
