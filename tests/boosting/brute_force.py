"""AdaBoost in plain loops: every feature, every threshold, float64, no histograms.

Written from the formulas alone (the book, not the package), to compare the package with.
Weights are divided by their total after each round, so that a score is a share of one.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

TIE = 1.0 + 2.0**-22  # equal scores: the first (feature, threshold, missing left) wins


@dataclass(frozen=True)
class Stump:
    feature: int
    threshold: float
    missing: str  # "left", "right" or "abstain"
    left: np.ndarray  # values of the left leaf, one per output
    right: np.ndarray
    error: float
    alpha: float

    def __call__(self, X: np.ndarray) -> np.ndarray:
        out = np.zeros((len(X), len(self.left)))
        for i, x in enumerate(X[:, self.feature]):
            side = self.missing if math.isnan(x) else ("left" if x <= self.threshold else "right")
            if side != "abstain":
                out[i] = self.left if side == "left" else self.right
        return out


def candidates(X: np.ndarray, missing: str):
    """Every (feature, threshold, missing side, rows of the left leaf, rows of the right)."""
    for f in range(X.shape[1]):
        x = X[:, f]
        absent = np.isnan(x)
        values = sorted(set(x[~absent].tolist()))
        thresholds = [(a + b) / 2 for a, b in itertools.pairwise(values)]
        if missing == "learn" and absent.any() and values:
            thresholds.append(math.inf)
        for threshold in thresholds:
            left, right = x <= threshold, x > threshold
            if missing == "abstain":
                yield f, threshold, "abstain", left, right
            else:
                yield f, threshold, "left", left | absent, right
                yield f, threshold, "right", left, right | absent


class BruteForce:
    """fit(X, y, weights) with y = 0 ... K - 1; then `stumps` holds the rounds."""

    def __init__(self, variant: str, n_rounds: int, rate: float = 1.0, missing: str = "abstain"):
        self.variant, self.n_rounds, self.rate, self.missing = variant, n_rounds, rate, missing

    def fit(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> BruteForce:
        K = int(y.max()) + 1
        w = np.ones(len(y)) if weights is None else weights.astype(np.float64)
        smallest = w.min()
        if self.variant == "discrete":
            Y, D = None, w / w.sum()
        else:
            # Y[i, k] = +1 for the class, -1 otherwise; two classes need one column.
            Y = np.where(y[:, None] == np.arange(K), 1.0, -1.0)
            Y = Y[:, 1:] if K == 2 else Y
            D = np.repeat(w[:, None], Y.shape[1], axis=1)
            smallest, D = smallest / D.sum(), D / D.sum()
        self.smoothing = smallest / 2
        self.stumps: list[Stump] = []
        for _ in range(self.n_rounds):
            stump, D = self._vote(X, y, D, K) if self.variant == "discrete" else self._rate(X, Y, D)
            self.stumps.append(stump)
        return self

    def _best(self, scored):
        scored = list(scored)
        lowest = min(score for score, _ in scored)
        return next(what for score, what in scored if score <= lowest * TIE)

    def _rate(self, X, Y, D):
        """Real and gentle: a value per leaf and output."""

        def leaf_weights(rows):
            plus = np.array([D[rows & (Y[:, k] > 0), k].sum() for k in range(Y.shape[1])])
            minus = np.array([D[rows & (Y[:, k] < 0), k].sum() for k in range(Y.shape[1])])
            return plus, minus

        def score(left, right):
            apart = D[~(left | right)].sum()
            if self.variant == "real":  # Z = W0 + 2 sum sqrt(W+ W-)
                return apart + 2 * sum(
                    np.sqrt(p * m).sum() for p, m in map(leaf_weights, (left, right))
                )
            # weighted squared error of y against (W+ - W-) / (W+ + W-)
            return apart + 4 * sum(
                (p[p + m > 0] * m[p + m > 0] / (p + m)[p + m > 0]).sum()
                for p, m in map(leaf_weights, (left, right))
            )

        def value(rows):
            plus, minus = leaf_weights(rows)
            if self.variant == "real":
                return 0.5 * np.log((plus + self.smoothing) / (minus + self.smoothing))
            whole = plus + minus
            return np.array([(p - m) / t if t > 0 else 0.0 for p, m, t in zip(plus, minus, whole)])  # noqa: B905

        best = self._best((score(c[3], c[4]), c) for c in candidates(X, self.missing))
        f, threshold, side, left, right = best
        c_left, c_right = self.rate * value(left), self.rate * value(right)
        draft = Stump(f, threshold, side, c_left, c_right, 0.0, self.rate)
        D = D * np.exp(-Y * draft(X))
        Z = D.sum()
        return Stump(f, threshold, side, c_left, c_right, Z, self.rate), D / Z

    def _vote(self, X, y, D, K):
        """Discrete (K = 2) and SAMME: a vote per leaf."""

        def leaf_weights(rows):
            return np.array([D[rows & (y == k)].sum() for k in range(K)])

        def score(left, right):
            apart = D[~(left | right)].sum() * (1 - 1 / K)  # to abstain is to guess
            wrong = 0.0
            for w in map(leaf_weights, (left, right)):
                wrong += w.sum() - w.max()
            return apart + wrong

        best = self._best((score(c[3], c[4]), c) for c in candidates(X, self.missing))
        f, threshold, side, left, right = best
        votes = [int(leaf_weights(rows).argmax()) for rows in (left, right)]
        wrong = (left & (y != votes[0])) | (right & (y != votes[1]))
        e = D[wrong].sum() / D[left | right].sum()
        if K == 2:
            alpha = self.rate * 0.5 * math.log((1 - e) / e)
            values = [np.array([alpha if v else -alpha]) for v in votes]
            factor = np.where(wrong, math.exp(alpha), math.exp(-alpha))
            factor[~(left | right)] = 1.0
        else:
            alpha = self.rate * (math.log((1 - e) / e) + math.log(K - 1))
            values = [alpha * (np.arange(K) == v) for v in votes]
            factor = np.where(wrong, math.exp(alpha), 1.0)
        D = D * factor
        return Stump(f, threshold, side, *values, e, alpha), D / D.sum()
