"""Exact Shapley values of sums of stumps: what a feature adds, minus what it adds in the mean.

    phi_f(x) = table_f(x_f) - E table_f,    base = intercept + sum over features of E table_f

E is the mean over the training rows, by their weights. A sum of functions of one feature each has
no interactions, so this is the Shapley value whatever the features' dependence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.explaining.background import Background
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.kernels.tables import PackedTables
from ensemble_gpu.model.additive import AdditiveModel


def table_means(model: AdditiveModel, background: Background) -> dict[int, np.ndarray]:
    """E table_f [outputs] of every feature that the model uses."""
    return {f: share @ values for f, values, share in background.spread(model)}


def centred(model: AdditiveModel, background: Background) -> tuple[PackedTables, np.ndarray]:
    """The tables of phi, and the base values."""
    packed, means = model.packed, table_means(model, background)
    own = np.array([means[f] for f in packed.features.tolist()])
    own = own.reshape(len(packed.features), model.n_outputs)
    values = packed.values - np.repeat(own, 1 << packed.steps, axis=0)
    # where the thresholds are found has nothing to do with the values: the layouts are the same
    tables = replace(packed, values=values, missing=packed.missing - own)
    return tables, model.intercept + own.sum(axis=0)


def explain_tables(
    model: AdditiveModel, background: Background, X: Any, n_jobs: int | None
) -> tuple[Any, np.ndarray]:
    """Values [n, features, outputs] where X is, and base values."""
    tables, base = centred(model, background)
    where: Where = locate(X)
    engine = engine_for(where, n_jobs)
    return engine.contributions(engine.view(X), tables), base
