"""Squared errors of rows held out after every round of stumps, without a pass over the rows.

With the residuals r_i of the held-out rows, S[f, b] their sums over the rows with code b in feature
f, and W[f, b] the numbers of these rows, a stump on feature j with the values v_l changes

    sum r_i^2  by  - sum_l v_l (2 S_l - v_l W_l),    S[f, b]  by  - sum_l v_l C_jl[f, b]

S_l and W_l are those of the leaf, from the codes of j; C_jl are rows of the table of j
(boosting/gram.py), here that of the held-out rows. A round costs O(p bins). All sums over rows are
of integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.boosting.gram import PAIR, ROUND, TABLE_CELL, integer_targets
from ensemble_gpu.data.bins import PartBins
from ensemble_gpu.data.pair_tables import rows_by_code
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.host.gram import StumpsByCode, squares_left
from ensemble_gpu.kernels.protocol import LEFT, RIGHT
from ensemble_gpu.model.additive import AdditiveModel

# Nanoseconds to predict and judge a row once more.
STAGE = 2.0


def pays(model: AdditiveModel, part: PartBins, n_stages: int) -> bool:
    """Whether tables of the held-out rows cost less than their predictions in `n_stages`."""
    if part.held is None:
        return False
    n, p = len(part.held), model.n_features
    width = max((len(table.thresholds) for table in model.tables.values()), default=0) + 2
    table = TABLE_CELL * width * width * p + PAIR * n * p
    return len(model.tables) * table + ROUND * len(model.rounds) < n_stages * (ROUND + STAGE * n)


def mean_squares(
    model: AdditiveModel, part: PartBins, max_bins: int | None, y: Any
) -> np.ndarray | None:
    """Mean of (y_i - F_t(x_i))^2 of the held-out rows after rounds t = 1, 2, ...

    None where the model has several outputs, rounds of several stumps, or too many tables.
    """
    rounds, engine = model.rounds, part.bins.engine
    codes = part.held_codes(max_bins)
    width = codes.width
    used = np.unique(rounds.feature).tolist()
    if model.n_outputs != 1 or model.ends is not None:
        return None
    targets = integer_targets(engine.adopt(y)[None, :], None, engine)
    W = rows_by_code(codes)
    off = float(targets.intercept[0] - model.intercept[0])
    S = engine.sums(codes, targets.residuals)[:1] * targets.quantum + off * W
    r = engine.where.host(targets.residuals)[0] * targets.quantum + off
    left = float(np.sum(r * r))
    held = part.held_tables(max_bins)
    if not all(held.tables.has(j) for j in used):
        return None
    errors = np.empty(len(rounds))
    squares_left(S, W, held.by_slot, _by_code(model, part.gaps(max_bins), width), left, errors)
    return np.maximum(errors / codes.n_rows, 0.0)


def _by_code(model: AdditiveModel, gaps: list[np.ndarray], width: int) -> StumpsByCode:
    """The rounds with codes in place of thresholds."""
    rounds, edges = model.rounds, edges_of(gaps)
    last = np.empty(len(rounds), dtype=np.int64)
    for j in np.unique(rounds.feature).tolist():
        own = rounds.feature == j
        last[own] = np.searchsorted(edges[j], rounds.threshold[own])
    values = np.empty((len(rounds), 1, 3))
    values[:, :, :2] = rounds.values[:, :, [LEFT, RIGHT]]
    values[:, 0, 2] = rounds.values[np.arange(len(rounds)), 0, rounds.missing_leaf]
    return StumpsByCode(rounds.feature, np.minimum(last, width - 2), values)
