"""The best step of every leaf by itself, for losses that are functions of residuals r = y - F.

    c minimises sum over the leaf's rows of w_i l(y_i, F_i + c)

straight lines   The absolute and the quantile loss fall with a slope -tau up to F + c = y and rise
                 with 1 - tau beyond (up to a factor), so the slope of the sum is the weight of the
                 rows with r_i < c minus tau of all weight W. It turns at the lowest r_i such that
                 the rows with r <= r_i weigh at least tau W: a weighted quantile.
Huber            The slope is sum w_i clip(c - r_i, -delta, delta). It vanishes within delta of the
                 median, so rows are counted along a ruler there, from the sums of which the slope
                 at each mark follows exactly; c lies between the two marks where it changes sign.
                 Seen from 0, it is as far beyond the first of them as Newton's step with the
                 largest second derivative between the two: not beyond the minimum.

Either way the sum falls all the way from 0 to c, so no learning rate in (0, 1] lets the training
loss rise. All rows take part, also where the learner was found on a draw of them. Sums are those of
integers, and order statistics are values of the data: both are the same on every engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.boosting.gradients import Gradients
from ensemble_gpu.data.integers import integer_weights
from ensemble_gpu.kernels.residuals import Ruler, Slots
from ensemble_gpu.learners.protocol import Candidate, Leaves, Slotted
from ensemble_gpu.losses import Huber

# Sums of weights stay below 2^WEIGHT_BITS, times places on the ruler below 2^63.
WEIGHT_BITS = 32
# Marks to a delta, and the bits of a place between two marks.
MARKS, PLACE_BITS = 64, 14


class LeafSteps:
    """The best step in every leaf of a candidate."""

    def __init__(self, gradients: Gradients) -> None:
        self.gradients, self.engine = gradients, gradients.engine
        xp, where = self.engine.where.xp, self.engine.where
        self.weights = integer_weights(gradients.problem.weights, WEIGHT_BITS, self.engine)
        ones = where.zeros(gradients.n_rows, xp.int64) + 1
        self.counted = ones if self.weights is None else self.weights

    def __call__(self, candidate: Candidate) -> np.ndarray:
        """c[output, leaf]; 0 in a leaf of which the learner says nothing, or that has no weight."""
        problem, leaves = self.gradients.problem, candidate.leaves
        W = self._sums(leaves, self.counted)
        steps = np.zeros_like(candidate.c)
        for k, c in enumerate(candidate.c):
            y = problem.y[k, :] if problem.y.ndim == 2 else problem.y
            chosen = (c != 0.0) & (W > 0)
            if chosen.any():
                steps[k, chosen] = self._output_steps(k, y, leaves, chosen, W[chosen])
        return candidate.allowed(steps) if candidate.allowed else steps

    def _sums(self, leaves: Leaves, q: Any) -> np.ndarray:
        """Sums [leaf] of the integers q."""
        parts = self.gradients.by_block(lambda rows: leaves.sums(q[None, rows], rows)[0])
        return self.engine.team.sum(np.sum(parts, axis=0))

    def _output_steps(
        self, k: int, y: Any, leaves: Leaves, chosen: np.ndarray, W: np.ndarray
    ) -> np.ndarray:
        loss = self.gradients.problem.loss.output(k)
        r = y - self.gradients.F[k, :]
        assert isinstance(leaves, Slotted)
        slots = leaves.slots(chosen)
        if isinstance(loss, Huber):
            return self._huber(slots, r, W, loss.delta)
        return self._ranked(slots, r, np.ceil(loss.level * W).astype(np.int64), W)

    def _ranked(self, slots: Slots, r: Any, below: np.ndarray, W: np.ndarray) -> np.ndarray:
        """The lowest r such that the rows up to it weigh `below`; a zero has no sign."""
        ranks = np.minimum(np.maximum(below, 1), W)
        return self.engine.ranked(slots, r, self.weights, ranks) + 0.0

    def _huber(self, slots: Slots, r: Any, W: np.ndarray, delta: float) -> np.ndarray:
        median = self._ranked(slots, r, W - W // 2, W)
        unit = delta / MARKS
        first = np.floor(median / unit) - (2 * MARKS + 1)
        ruler = Ruler(first * unit, (MARKS << PLACE_BITS) / delta, PLACE_BITS, 4 * MARKS + 4)
        sums = self.engine.ruled_sums(slots, r, self.weights, ruler)
        return huber_marks(sums, first) * unit


def huber_marks(sums: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Where the slope of Huber's loss vanishes, in marks from r = 0; `first` is mark 0 there.

    `sums` [slot, mark, (w, w k)] as of `Engine.ruled_sums`.
    """
    n_slots, n_marks = sums.shape[:2]
    running = np.zeros((n_slots, n_marks + 1, 2), dtype=np.int64)
    np.cumsum(sums, axis=1, out=running[:, 1:])
    w, wk = running[..., 0], running[..., 1]
    at = np.arange(MARKS + 1, n_marks - MARKS)
    near = w[:, at + MARKS] - w[:, at - MARKS]
    far = w[:, at - MARKS] - (w[:, -1:] - w[:, at + MARKS])
    slope = (MARKS << PLACE_BITS) * far + (at << PLACE_BITS) * near
    slope -= wk[:, at + MARKS] - wk[:, at - MARKS]
    low = np.clip((slope < 0).sum(axis=1) - 1, 0, len(at) - 2)
    each, mark = np.arange(n_slots), at[low]
    steepest = w[each, mark + MARKS + 1] - w[each, mark - MARKS]
    full = np.maximum(steepest, 1).astype(np.float64) * 2.0**PLACE_BITS
    up = np.clip(-slope[each, low] / full, 0.0, 1.0)
    down = np.clip(slope[each, low + 1] / full, 0.0, 1.0)
    edge = first + mark
    return np.where(edge >= 0.0, edge + up, edge + (1.0 - down))
