"""Rectangles: the best axis-parallel rectangle in any pair of features.

Features are binned (at most 32 bins). For every pair (j, k) the sums of u_i = D_i y_i (or of
-gradients) over the cells of two codes give the sum over any rectangle a0 <= code_j <= a1,
b0 <= code_k <= b1, and the one with the largest |edge| is found in O(bins^3)
(kernels/host/rectangles.py):

    edge = sum_i u_i h(x_i),    h = +-1 inside, and -+1 outside, or 0 where those outside abstain

A missing value in either feature abstains. Sums are integers, so the rectangle is the same on every
engine; of equals the first in order of (j, k, a0, a1, b1) is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.data.matrix import BinnedMatrix, bin_matrix
from ensemble_gpu.data.parameters import check_choice, check_integer
from ensemble_gpu.kernels.host.rectangles import best_rectangle
from ensemble_gpu.kernels.protocol import LEFT, N_LEAVES, RIGHT, Engine, one_class
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.learners.votes import CUT, Found, GradientVoters, Voters, column_of
from ensemble_gpu.model.base import canonical_bytes

OUTSIDE = ("against", "abstain")
MOST_BINS = 255


class RectangleCodes(NamedTuple):
    """Which codes of features f and g are inside, and the answer there: +1 or -1."""

    f: int
    g: int
    f_first: int
    f_last: int
    g_first: int
    g_last: int
    sign: int


@dataclass(frozen=True)
class Rectangle:
    """Answers `sign` where low_f < x_f <= high_f and low_g < x_g <= high_g, and `outside` else.

    0 where x_f or x_g is missing.
    """

    f: int
    g: int
    limits: tuple[float, float, float, float]
    sign: int
    outside: int

    def __call__(self, X: Any, where: Where) -> Any:
        check_dense(X, "A model of rectangles")
        xp = where.xp
        x, z = where.as_float64(X[:, self.f]), where.as_float64(X[:, self.g])
        low_x, high_x, low_z, high_z = self.limits
        inside = (x > low_x) & (x <= high_x) & (z > low_z) & (z <= high_z)
        answers = xp.where(
            inside, where.full(self.sign, xp.int64), where.full(self.outside, xp.int64)
        )
        return xp.where(xp.isnan(x) | xp.isnan(z), where.full(0, xp.int64), answers)

    def canonical(self) -> bytes:
        whole = canonical_bytes([self.f, self.g, self.sign, self.outside])
        return whole + canonical_bytes(np.array(self.limits))


class Rectangles(BaseEstimator):
    """The best axis-parallel rectangle of all pairs of features, in every round.

    For `AdaBoostClassifier(Rectangles(), variant="discrete")` with two classes, and as `estimator`
    of BoostingClassifier (two classes) and BoostingRegressor with any loss. The rectangle is the
    best of all whose sides are edges of bins; X needs two features at least. A round costs O(p^2 n)
    for sums and O(p^2 bins^3) for the choice.

    Parameters
    ----------
    max_bins : int, default=32
        Bins of a feature, 2 to 255; the max_bins of the boosting is not used.
    outside : {"against", "abstain"}, default="against"
        What is answered outside of the rectangle: the opposite, or nothing.
    """

    variants = ("discrete",)
    two_classes = True

    def __init__(self, max_bins: int = 32, *, outside: str = "against") -> None:
        self.max_bins = max_bins
        self.outside = outside

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def check(self) -> None:
        """Raise where the parameters are wrong."""
        check_integer("max_bins", self.max_bins, 2, MOST_BINS)
        check_choice("outside", self.outside, OUTSIDE)

    def _found_in(self, rows: LearnerRows) -> RectangleSearch:
        self.check()
        check_dense(rows.X, "estimator Rectangles")
        n_classes = 2 if rows.classes is None else len(rows.classes)
        if n_classes > 2 or rows.n_outputs > 1:
            raise ValueError(
                "Only binary classification is supported by estimator Rectangles. The type of the "
                f"target is multiclass: {n_classes} classes, {rows.n_outputs} outputs."
            )
        if rows.X.shape[1] < 2:
            raise ValueError(
                "estimator Rectangles needs 2 features at least; got an X with 1 feature(s) "
                f"(shape={tuple(rows.X.shape)})."
            )
        return RectangleSearch(self, rows)

    def voters(self, rows: LearnerRows) -> Voters:
        """What AdaBoost's rounds go by."""
        return Voters(self._found_in(rows), rows.X.shape[1])

    def gradient_learner(self, rows: LearnerRows) -> GradientVoters:
        """What the rounds of any other loss go by."""
        return GradientVoters(rows.engine, self._found_in(rows), rows.X.shape[1])


class RectangleSearch:
    """Rectangles on the training rows (a Finder)."""

    def __init__(self, learner: Rectangles, rows: LearnerRows) -> None:
        self.engine: Engine = rows.engine
        self.abstains = learner.outside == "abstain"
        where, xp = rows.where, rows.where.xp
        n = rows.X.shape[0]
        layout = one_class(n)
        at = xp.arange(n, dtype=xp.int64, device=where.device)
        self.matrix: BinnedMatrix = bin_matrix(rows.engine, rows.X, at, layout, learner.max_bins)
        self.sizes = np.array([len(edges) + 1 for edges in self.matrix.edges], dtype=np.int64)
        self.y: Any = None
        if rows.classes is not None:
            target = rows.engine.adopt(rows.target)
            own = rows.engine.where.xp
            self.y = 2 * own.astype(target, own.int64) - 1

    def _best(self, u: Any) -> RectangleCodes | None:
        """The rectangle with the largest edge of integers u [row]; None where all edges are 0."""
        codes, found = self.matrix.codes, np.zeros(8, dtype=np.int64)
        best: RectangleCodes | None = None
        for f in range(codes.n_features - 1):
            found[7] = f
            sums = self.engine.pair_counts(codes, f, u)
            if best_rectangle(sums, self.sizes, 0 if self.abstains else 1, found):
                g, f_first, f_last, g_first, g_last, sign = found[1:7].tolist()
                best = RectangleCodes(f, g, f_first, f_last, g_first, g_last, sign)
        return best

    def answers(self, key: RectangleCodes) -> Any:
        where, xp, codes = self.engine.where, self.engine.where.xp, self.matrix.codes
        a, b = self.engine.column(codes, key.f), self.engine.column(codes, key.g)
        missing = (a == codes.width - 1) | (b == codes.width - 1)
        inside = (a >= key.f_first) & (a <= key.f_last) & (b >= key.g_first) & (b <= key.g_last)
        own, none = where.full(key.sign, xp.int8), where.full(0, xp.int8)
        signs = xp.where(inside, own, none if self.abstains else -own)
        return column_of(xp.where(missing, none, signs), self.engine)

    def rights(self, key: RectangleCodes) -> Any:
        where, xp = self.engine.where, self.engine.where.xp
        sign = np.zeros(N_LEAVES, dtype=np.int64)
        sign[[LEFT, RIGHT]] = -1, 1
        right = xp.take(where.put(sign), self.answers(key)) * self.y
        return column_of(xp.astype(right, xp.int8), self.engine)

    def by_weight(self, q: Any) -> Found | None:
        xp = self.engine.where.xp
        q = xp.astype(q, xp.int64)
        key = self._best(q * self.y)
        return None if key is None else self._summed(key, q[None, :], self.rights(key))

    def by_gradient(self, S: Any, H: Any, barred: list[Any]) -> Found | None:
        key = None if barred else self._best(S)
        planes = self.engine.where.xp.stack([S, H])
        return None if key is None else self._summed(key, planes, self.answers(key))

    def _summed(self, key: RectangleCodes, planes: Any, codes: Any) -> Found:
        return Found(key, self.engine.leaf_sums(planes, codes, CUT)[:, [LEFT, RIGHT]])

    def voter(self, key: RectangleCodes) -> Rectangle:
        f_limits, g_limits = (
            (self._edge(feature, first - 1), self._edge(feature, last))
            for feature, first, last in (
                (key.f, key.f_first, key.f_last),
                (key.g, key.g_first, key.g_last),
            )
        )
        outside = 0 if self.abstains else -key.sign
        return Rectangle(key.f, key.g, (*f_limits, *g_limits), key.sign, outside)

    def _edge(self, feature: int, code: int) -> float:
        """The upper end of a code's bin; -inf before the first, inf after the last."""
        edges = self.matrix.edges[feature]
        if code < 0:
            return -np.inf
        return float(edges[code]) if code < len(edges) else np.inf
