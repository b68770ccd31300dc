"""Evaluation of an additive model on the GPU: one search and one look-up per feature a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.launch import Shape, launch

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _search(x, thresholds, first, steps):
    """Number of thresholds < x among the 2^steps - 1 that start at `first`."""
    low = np.int64(first)
    step = np.int32(1 << steps)
    while step > 1:
        step = np.int32(step >> 1)
        if thresholds[low + step - 1] < x:
            low += step
    return low


# --- kernels ---------------------------------------------------------------------------------


@kernel()
def evaluate(X, features, thresholds, values, missing, out):
    """out[i, k] += table values of row i, in the order of the features.

    features[u] = (column, first threshold, halvings). The output is the outer loop, so that its
    sum stays in a register; it is one number for two classes.
    """
    i = np.int32(cuda.grid(1))
    while i < X.shape[0]:
        k = np.int32(0)
        while k < out.shape[1]:
            total = out[i, k]
            u = np.int32(0)
            while u < features.shape[0]:
                x = np.float64(X[i, features[u, 0]])
                if x != x:
                    total += missing[u, k]
                else:
                    total += values[_search(x, thresholds, features[u, 1], features[u, 2]), k]
                u = np.int32(u + 1)
            out[i, k] = total
            k = np.int32(k + 1)
        i = np.int32(i + cuda.gridsize(1))


# --- launchers -------------------------------------------------------------------------------


def launch_evaluate(
    shape: Shape, X: Any, features: Any, thresholds: Any, values: Any, missing: Any, out: Any
) -> None:
    launch(evaluate, *shape, X, features, thresholds, values, missing, out)
