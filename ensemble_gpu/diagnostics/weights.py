"""The weights that AdaBoost would give to rows next, from the outputs of its model alone.

    two classes                D_i = w_i exp(-y_i F(x_i)) / sum
    AdaBoost.MH                D_i = w_i sum_k exp(-Y_ik F_k(x_i)) / sum
    SAMME, F_k votes for k     D_i = w_i exp(sum_{k != y_i} F_k(x_i)) / sum

w_i are the weights that the fit began with: sample weights times class weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.data.class_weights import class_factors
from ensemble_gpu.diagnostics.margin_values import weights_of
from ensemble_gpu.model.link import VOTES


def first_weights(estimator: Any, own: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Shares D_1 of rows whose labels are classes_[own]."""
    weights = weights_of(sample_weight, len(own))
    given = getattr(estimator, "class_weight", None)
    D = weights * class_factors(given, estimator.classes_, own, weights, NUMPY)[own]
    return D / D.sum()


def next_weights(F: np.ndarray, own: np.ndarray, link: str, first: np.ndarray) -> np.ndarray:
    """Shares after a round whose model has the outputs F [n, K], for two classes (-F, F)."""
    rows = np.arange(len(own))
    mine = F[rows, own]
    if link == VOTES:
        exponents = (F.sum(axis=1) - mine)[:, None]
    elif F.shape[1] == 2:
        exponents = -mine[:, None]
    else:
        exponents = F.copy()
        exponents[rows, own] = -mine
    D = first * np.exp(exponents - exponents.max()).sum(axis=1)
    return D / D.sum()
