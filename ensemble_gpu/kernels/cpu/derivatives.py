"""Derivatives of the logistic loss in one pass: the hot call of the commonest fit.

The same operations in the same order as `losses.Logistic.derivatives`, hence the same bits; other
losses run as they are written, by array calls.
"""

from __future__ import annotations

from ensemble_gpu.kernels.cpu.exponential import exp_one
from ensemble_gpu.kernels.jit import kernel


@kernel
def logistic(y, F, most, powers, digits, g, h):
    """E = e^min(y F, most), g = y / (-1 - E), h = E g g."""
    for i in range(y.shape[0]):
        E = exp_one(min(y[i] * F[i], most), powers, digits)
        slope = y[i] / (-1.0 - E)
        g[i] = slope
        h[i] = E * slope * slope
