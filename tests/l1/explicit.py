"""The dictionary of all stumps as a matrix, and minima over it by a solver of another kind."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import minimize


def stumps(X, learn=False):
    """-1 and +1 between all distinct values, 0 for NaN; `learn`: NaN on either side, and alone."""
    columns = []
    for x in X.T:
        gone = np.isnan(x)
        values = np.unique(x[~gone])
        for low, high in pairwise(values):
            h = np.where(x > 0.5 * (low + high), 1.0, -1.0)
            sides = (-1.0, 1.0) if learn and gone.any() else (0.0,)
            columns += [np.where(gone, side, h) for side in sides]
        if learn and gone.any():
            columns.append(np.where(gone, 1.0, -1.0))
    return np.array(columns).T


def value(loss, y, w, start, A, a, n_outputs=1):
    """R and its derivatives with respect to a [outputs, columns], flat."""
    a = a.reshape(n_outputs, -1)
    F = start[:, None] + a @ A.T  # [outputs, rows]
    joint = n_outputs > 1 and y.ndim == 1
    argument = F.T if joint else (F if y.ndim == 2 else F[0])
    R, g = loss.value(y, argument), loss.gradient(y, argument)
    g = g.T if joint else np.atleast_2d(g)
    R = R.sum(axis=0) if R.ndim == 2 else R
    return w @ R, ((w * g) @ A).ravel()


def least(loss, y, w, start, A, n_outputs=1, radius=None, alpha=0.0):
    """The minimum in the ball, or of R + alpha |a|_1, over a = u - v with u, v >= 0."""
    P = A.shape[1] * n_outputs

    def objective(x):
        R, g = value(loss, y, w, start, A, x[:P] - x[P:], n_outputs)
        return R + alpha * x.sum(), np.concatenate([g, -g]) + alpha

    bounds = [(0.0, None)] * (2 * P)
    if radius is None:
        options = {"maxiter": 20_000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-10}
        found = minimize(objective, np.zeros(2 * P), jac=True, bounds=bounds,
                         method="L-BFGS-B", options=options)  # fmt: skip
    else:
        room = {"type": "ineq", "fun": lambda x: radius - x.sum(), "jac": lambda x: -np.ones(2 * P)}
        found = minimize(objective, np.full(2 * P, radius / (4.0 * P)), jac=True, bounds=bounds,
                         constraints=[room], method="SLSQP",
                         options={"maxiter": 1000, "ftol": 1e-14})  # fmt: skip
    return float(found.fun)
