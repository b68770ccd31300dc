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

from ensemble_gpu.boosting.gram import MEMORY, PAIR, ROUND, TABLE_CELL, integer_targets
from ensemble_gpu.data.bins import PartBins, rows_by_code
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.host.gram import subtract
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
    width, p = codes.width, codes.n_features
    used = np.unique(rounds.feature).tolist()
    if model.n_outputs != 1 or model.ends is not None or len(used) * 4 * width * width * p > MEMORY:
        return None
    targets = integer_targets(engine.adopt(y)[None, :], None, engine)
    W = rows_by_code(codes)
    off = float(targets.intercept[0] - model.intercept[0])
    S = engine.sums(codes, targets.residuals)[:1] * targets.quantum + off * W
    r = engine.where.host(targets.residuals)[0] * targets.quantum + off
    left, errors = float(np.sum(r * r)), np.empty(len(rounds))
    tables = {j: part.held_table(max_bins, j) for j in used}
    edges = edges_of(part.gaps(max_bins))
    for t, (j, threshold, missing_leaf) in enumerate(
        zip(rounds.feature.tolist(), rounds.threshold.tolist(), rounds.missing_leaf.tolist(),
            strict=True)
    ):  # fmt: skip
        last = min(int(np.searchsorted(edges[j], threshold)), width - 2)
        v = rounds.values[t][:, [LEFT, RIGHT, missing_leaf]]
        of_leaf, weight = _by_leaf(S[0, j], last), _by_leaf(W[j], last)
        left -= float((v[0] * (2.0 * of_leaf - v[0] * weight)).sum())
        errors[t] = left / codes.n_rows
        subtract(S, W, tables[j], last, bool(W[j, -1]), v)
    return np.maximum(errors, 0.0)


def _by_leaf(sums: np.ndarray, last: int) -> np.ndarray:
    """Sums over the codes of the left leaf, of the right one, and of missing values."""
    return np.array([sums[: last + 1].sum(), sums[last + 1 : -1].sum(), sums[-1]])
