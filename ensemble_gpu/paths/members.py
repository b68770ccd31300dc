"""The answers of a pool as a dictionary: an eighth of a byte each, added up as integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT
from ensemble_gpu.learners.pool import Pool, PoolMembers
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.model.votes import VoteModel
from ensemble_gpu.paths.columns import EITHER, POSITIVE, PathRows

# Sums of integers stay below 2^SUM_BITS.
SUM_BITS = 62


class Members:
    """h_l(x_i) in {-1, 0, +1} of the members l; coefficients >= 0 unless the pool is signed."""

    def __init__(self, pool: Pool, given: LearnerRows, rows: PathRows, *, centred: bool) -> None:
        pool.check()
        self.rows, self.signs = rows, EITHER if pool.signed else POSITIVE
        self.members = PoolMembers(pool, given, right=False)
        self.means = np.zeros(len(self.members.members))
        if centred:
            self.means = self.correlations(rows.where.xp.ones_like(rows.target)) / rows.total

    def correlations(self, v: Any) -> np.ndarray:
        """A' W v, of W v rounded to integers: at least 62 - log2 n bits of the largest."""
        xp, v = self.rows.where.xp, self.rows.weighted(v)
        largest = float(xp.max(xp.abs(v)))
        if largest == 0.0:
            return np.zeros(len(self.means))
        bits = SUM_BITS - v.shape[0].bit_length() - math.frexp(largest)[1]
        q = xp.astype(xp.round(v * 2.0**bits), xp.int64)
        sums = self.members.edges(q).astype(np.float64) - self.means * float(xp.sum(q))
        return np.ldexp(sums, -bits)

    def column(self, j: int) -> Any:
        values = np.zeros(N_LEAVES)
        values[[LEFT, RIGHT, ABSTAIN]] = -1.0, 1.0, 0.0
        where = self.rows.where
        return where.xp.take(where.put(values - self.means[j]), self.members.answers(j))

    def name(self, j: int) -> str:
        return f"member {j}"

    def model(self, columns: np.ndarray, coefficients: np.ndarray, intercept: float) -> VoteModel:
        return VoteModel(
            [self.members.voter(j) for j in columns.tolist()], np.arange(len(columns)),
            coefficients, n_features=self.rows.X.shape[1], intercept=np.array([intercept]),
        )  # fmt: skip
