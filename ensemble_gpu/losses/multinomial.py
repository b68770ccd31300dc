"""The logistic loss of K classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import exponentials, softmax
from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import NUMPY, locate
from ensemble_gpu.kernels.host.scalar import log
from ensemble_gpu.losses.base import CLASSIFICATION, Loss
from ensemble_gpu.losses.margin import EPSILON


@dataclass(frozen=True)
class Multinomial(Loss):
    """l(y, F) = ln sum_k e^F_k - F_y, minus the log-likelihood of p = softmax(F): that is the link.

    y [n] is an integer class in 0 ... K-1, F is [n, K]; the value is [n]. Derivatives [n, K] are
    p_k - 1[y = k] and the diagonal p_k (1 - p_k). F* = ln p up to a constant; calibrated (argmax
    F* is the Bayes rule).

    `curvature` is 1/2: the largest eigenvalue of the whole Hessian diag(p) - p p' (at two
    classes of p = 1/2). The diagonal alone stays below 1/4, but a round moves all K outputs at
    once, and for that only 1/2 bounds the second derivative along the step.

    `n_classes` is K for `best_constant`; None takes it from the largest y.
    """

    n_classes: int | None = None

    name = "multinomial"
    task = CLASSIFICATION
    link_name = "votes"
    calibrated = True
    curvature = 0.5
    longest_step = 8.0
    kernel = "multinomial"

    def value(self, y: Any, F: Any) -> Any:
        where = locate(F)
        xp = where.xp
        top, _, total = exponentials(F, self.exp)
        behind = xp.where(_own(y, F), top - F, where.full(0.0, F.dtype))
        return xp.log(total[:, 0]) + xp.sum(behind, axis=1)

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        p = softmax(F, self.exp)
        return p - locate(F).xp.astype(_own(y, F), F.dtype), p * (1.0 - p)

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Ln of the classes' shares, of 2^-52 at least."""
        K = int(y.max()) + 1 if self.n_classes is None else self.n_classes
        shares = [weighted_mean((y == k).astype(np.float64), weights, NUMPY) for k in range(K)]
        return np.array([log(max(share, EPSILON)) for share in shares])

    def check_target(self, y: np.ndarray, name: str = "y") -> None:
        K = self.n_classes
        allowed = "0, 1, ..." if K is None else f"0 ... {K - 1}"
        if y.dtype.kind not in "iu":
            raise ValueError(f"y must hold integer classes {allowed}; got dtype {y.dtype}.")
        if y.min() < 0 or (K is not None and y.max() >= K):
            raise ValueError(
                f"y must hold integer classes {allowed}; got values from {y.min()} to {y.max()}."
            )


def _own(y: Any, F: Any) -> Any:
    """[n, K], true at the class of the row."""
    where = locate(F)
    classes = where.xp.arange(F.shape[1], dtype=y.dtype, device=where.device)
    return y[:, None] == classes[None, :]
